package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"
)

// endpoint is one thing to ask for. The table of them is closed.
type endpoint struct {
	path    string // a trailing slash takes all below it too
	methods string // GET takes HEAD too
	open    bool   // asked without a token
	heavy   bool   // costs enough to refuse it to other sites' pages
	about   string
	serve   func(*Server, http.ResponseWriter, *http.Request)
}

func endpoints() []endpoint {
	return []endpoint{
		{"/healthz", "GET", true, false, "200 while the process lives", (*Server).healthz},
		{"/readyz", "GET", true, false, "200 when it can serve, else 503; ?upstream=NAME for one upstream", (*Server).readyz},
		{"/metrics", "GET", false, false, "metrics, Prometheus text", (*Server).metrics},
		{"/state", "GET", false, false, "what the gateway knows, JSON", (*Server).state},
		{"/log", "GET, PUT", false, false, "the log's level; PUT /log?level=debug changes it", (*Server).log},
		{"/debug/pprof/", "GET, POST", false, true, "profiles, for go tool pprof", (*Server).profile},
		{"/", "GET", false, false, "this list", (*Server).index},
	}
}

// handler checks who asks, finds the endpoint and asks it.
func (s *Server) handler() http.Handler {
	table := endpoints()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Content-Security-Policy", "default-src 'none'")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		defer func() { // the barrier against a fault in a source
			if fault := recover(); fault != nil {
				s.panicked(w, r, fault)
			}
		}()
		setDeadlines(w, answerTime)
		r.Body = http.MaxBytesReader(w, r.Body, bodyBytes)

		i := slices.IndexFunc(table, func(e endpoint) bool { return e.takes(r.URL.Path) })
		known := i >= 0
		switch {
		case !s.guard.addressed(r):
			fail(w, http.StatusForbidden, "wrong_host", "this listener answers to localhost, loopback addresses and its configured host only")
		case !(known && table[i].open) && !s.guard.knows(r):
			header.Set("WWW-Authenticate", `Bearer realm="sluice admin"`)
			// Who has no token holds no connection: there are few.
			header.Set("Connection", "close")
			fail(w, http.StatusUnauthorized, "unauthorized", "this needs the token in token_file, as Authorization: Bearer TOKEN")
		case !known:
			fail(w, http.StatusNotFound, "not_found", "nothing is served at this path; / lists what is")
		case !table[i].allows(r.Method):
			header.Set("Allow", table[i].allow())
			fail(w, http.StatusMethodNotAllowed, "method_not_allowed", "this path takes "+table[i].allow())
		case (table[i].heavy || !isSafe(r.Method)) && foreign(r):
			fail(w, http.StatusForbidden, "cross_site", "another site's page may not do this")
		default:
			table[i].serve(s, w, r)
		}
	})
}

func (e endpoint) takes(path string) bool {
	return path == e.path || len(e.path) > 1 && strings.HasSuffix(e.path, "/") && strings.HasPrefix(path, e.path)
}

func (e endpoint) allow() string { return strings.Replace(e.methods, "GET", "GET, HEAD", 1) }

func (e endpoint) allows(method string) bool {
	return slices.Contains(strings.Split(e.allow(), ", "), method)
}

func isSafe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	all := s.sources.Ready()
	if !r.URL.Query().Has("upstream") {
		if all.Upstreams == nil {
			all.Upstreams = []UpstreamReady{}
		}
		answer(w, readyStatus(all.Ready), all)
		return
	}
	name := r.URL.Query().Get("upstream")
	i := slices.IndexFunc(all.Upstreams, func(u UpstreamReady) bool { return u.Name == name })
	if i < 0 {
		fail(w, http.StatusNotFound, "unknown_upstream", "no upstream has this name")
		return
	}
	answer(w, readyStatus(all.Upstreams[i].Ready), all.Upstreams[i])
}

func readyStatus(ready bool) int {
	if ready {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s.sources.Metrics(w)
}

func (s *Server) state(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.sources.State())
}

func (s *Server) log(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		if err := s.sources.SetLevel(r.URL.Query().Get("level")); err != nil {
			fail(w, http.StatusBadRequest, "bad_level", err.Error())
			return
		}
	}
	answer(w, http.StatusOK, map[string]string{"level": s.sources.Level()})
}

func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	var b bytes.Buffer
	b.WriteString("sluice admin\n\n")
	for _, e := range endpoints() {
		fmt.Fprintf(&b, "%-15s %-15s %s\n", e.allow(), e.path, e.about)
	}
	_, _ = w.Write(b.Bytes())
}

func (s *Server) panicked(w http.ResponseWriter, r *http.Request, fault any) {
	if fault == http.ErrAbortHandler {
		panic(fault)
	}
	if s.sources.Warn != nil {
		stack := make([]byte, 4<<10)
		s.sources.Warn(fmt.Sprintf("admin: fault at %s: %v\n%s", r.URL.Path, fault, stack[:runtime.Stack(stack, false)]))
	}
	fail(w, http.StatusInternalServerError, "internal", "this could not be answered")
}

// setDeadlines bounds reading the rest of the request and writing the answer. Per
// request and not in http.Server, since profiles take as long as asked.
func setDeadlines(w http.ResponseWriter, d time.Duration) {
	c, at := http.NewResponseController(w), time.Now().Add(d)
	_ = c.SetReadDeadline(at)
	_ = c.SetWriteDeadline(at)
}

// answer writes a value as JSON. It is rendered first, so that what cannot be
// rendered is an error and no half answer.
func answer(w http.ResponseWriter, status int, value any) {
	body, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		fail(w, http.StatusInternalServerError, "internal", "this could not be written as JSON")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// fail writes an error as JSON.
func fail(w http.ResponseWriter, status int, code, detail string) {
	answer(w, status, map[string]any{"status": status, "error": code, "detail": detail})
}
