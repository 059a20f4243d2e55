package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// nginxConfig closes connections as often as it can: after three requests, and
// after a second without one. Its log is the witness of what was executed.
const nginxConfig = `
daemon off;
worker_processes 1;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log;
events { worker_connections 512; }
http {
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  log_format witness '$request_method $arg_id $status $connection_requests';
  access_log %[1]s/access.log witness;
  keepalive_requests 3;
  keepalive_timeout 1s;
  server {
    listen %[2]s;
    location / { return 200 "paid"; }
  }
}
`

// nginx is a running nginx and its access log.
type nginx struct {
	*program
	addr string
	log  string
}

func startNginx(t *testing.T) *nginx {
	t.Helper()
	path := installed(t, "nginx", "apt-get install nginx")
	dir := t.TempDir()
	n := &nginx{addr: freeAddr(t), log: filepath.Join(dir, "access.log")}
	config := writeFile(t, filepath.Join(dir, "nginx.conf"), fmt.Sprintf(nginxConfig, dir, n.addr))
	n.program = start(t, path, "-p", dir, "-c", config, "-e", filepath.Join(dir, "error.log"))
	n.waitListening(t, n.addr)
	return n
}

// served returns how often each id stands in the log, for one method.
func (n *nginx) served(t *testing.T, method string) map[string]int {
	t.Helper()
	times := map[string]int{}
	for line := range strings.Lines(readFile(t, n.log)) {
		if fields := strings.Fields(line); len(fields) == 4 && fields[0] == method {
			times[fields[1]]++
		}
	}
	return times
}

// ask sends one request with an id of its own; 0 when no answer came.
func ask(caller *http.Client, method, url string) (status int) {
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(`{"amount":1250}`)
	}
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		return 0
	}
	resp, err := caller.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}

// statuses of a burst, by id.
type statuses struct {
	mu sync.Mutex
	of map[string]int
}

// burst sends each× workers requests and notes what came of each id.
func (s *statuses) burst(caller *http.Client, g *gateway, method, name string, workers, each int) {
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for n := range each {
				id := fmt.Sprintf("%s-%d-%d", name, w, n)
				status := ask(caller, method, g.url("/pay?id="+id))
				s.mu.Lock()
				s.of[id] = status
				s.mu.Unlock()
			}
		})
	}
	group.Wait()
}

func (s *statuses) wantAll200(t *testing.T, count int) {
	t.Helper()
	bad := map[string]int{}
	for id, status := range s.of {
		if status != http.StatusOK {
			bad[id] = status
		}
	}
	if len(bad) > 0 || len(s.of) != count {
		t.Errorf("%d of %d requests did not get their 200: %.500s", len(bad), len(s.of), fmt.Sprint(bad))
	}
}

// pause lets idle connections pass nginx's keep-alive time. The time is the
// subject: nginx gives no sign that could be waited for.
func pause(d time.Duration) { time.Sleep(d) }

func TestNginx_ClosedConnectionsReachNoCaller(t *testing.T) {
	n := startNginx(t)
	g := startGateway(t, oneUpstream("http://"+n.addr))
	caller := newCaller(t)
	gets, posts := statuses{of: map[string]int{}}, statuses{of: map[string]int{}}
	for round := range 4 {
		if round > 0 {
			pause(1300 * time.Millisecond)
		}
		gets.burst(caller, g, http.MethodGet, fmt.Sprintf("g%d", round), 8, 100)
		posts.burst(caller, g, http.MethodPost, fmt.Sprintf("p%d", round), 8, 25)
	}
	gets.wantAll200(t, 4*8*100)
	posts.wantAll200(t, 4*8*25)

	// nginx writes its log after its answer.
	waitFor(t, "nginx's log to be complete", 5*time.Second, func() bool {
		return len(n.served(t, "POST")) >= len(posts.of)
	})
	for id, times := range n.served(t, "POST") {
		if times != 1 {
			t.Errorf("POST %s was executed %d times", id, times)
		}
	}
}

// At the very moment at which nginx closes, a write may be lost in between: the
// caller then gets an error, but never a second execution.
func TestNginx_WriteAtTheEdgeOfKeepAliveIsNeverTwice(t *testing.T) {
	n := startNginx(t)
	g := startGateway(t, oneUpstream("http://"+n.addr))
	caller := newCaller(t)
	posts := statuses{of: map[string]int{}}
	for round, wait := range []int{990, 995, 998, 1000, 1002, 1005} {
		posts.burst(caller, g, http.MethodPost, fmt.Sprintf("e%d", round), 8, 2)
		pause(time.Duration(wait) * time.Millisecond)
	}
	answered := 0
	waitFor(t, "nginx's log to hold every POST that was answered", 5*time.Second, func() bool {
		served := n.served(t, "POST")
		answered = 0
		for id, status := range posts.of {
			if status == http.StatusOK {
				answered++
				if served[id] == 0 {
					return false
				}
			}
		}
		return true
	})
	for id, times := range n.served(t, "POST") {
		if times != 1 {
			t.Errorf("POST %s was executed %d times, its caller got %d", id, times, posts.of[id])
		}
	}
	if answered < len(posts.of)/2 {
		t.Errorf("%d of %d writes were answered 200, want nearly all: %v", answered, len(posts.of), posts.of)
	}
}
