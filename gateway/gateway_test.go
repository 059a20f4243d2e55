package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/config"
	"sluice/gateway/edge"
	"sluice/gateway/outcome"
	"sluice/gateway/telemetry"
	"sluice/gateway/upstream"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// nobody is an engine in which nobody waits for a permit.
type nobody struct{ t *testing.T }

func (n nobody) Granted(*Exchange) { n.t.Error("granted a permit to an exchange that does not wait") }

func configuration(routes ...string) config.Config {
	cfg := config.Default()
	u := config.DefaultUpstream()
	u.Name, u.Endpoints = "payments", []string{"http://127.0.0.1:9"}
	cfg.Upstreams = append(cfg.Upstreams, u)
	for _, path := range routes {
		r := config.DefaultRoute()
		r.Name, r.Path, r.Upstream = strings.Trim(path, "/"), path, "payments"
		cfg.Routes = append(cfg.Routes, r)
	}
	return cfg
}

func newGateway(t *testing.T, cfg config.Config) (*Gateway, *telemetry.Metrics) {
	t.Helper()
	metrics := telemetry.NewMetrics()
	g, err := New(cfg, telemetry.NewLog(cfg.Log, io.Discard), metrics, func() uint64 { return 7 })
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range g.Upstreams() {
		u.Replace([]upstream.Address{{HostPort: "127.0.0.1:9"}}, func(upstream.Address) any { return nil })
	}
	return g, metrics
}

// exchange is one that has not arrived yet.
func exchange(t *testing.T, method, target string) *Exchange {
	x := &Exchange{Began: start, Request: &fasthttp.Request{}, Response: &fasthttp.Response{}, Whole: true, Caller: &edge.Caller{}, Owner: nobody{t}}
	x.Caller.Set(netip.MustParseAddr("192.0.2.7"), false)
	x.Request.Header.SetMethod(method)
	x.Request.Header.SetHost("pay.test")
	x.Request.SetRequestURI(target)
	return x
}

func TestAnswer_EveryCodeIsAWholeDocument(t *testing.T) {
	g, _ := newGateway(t, configuration("/a"))
	for c := outcome.Passed + 1; int(c) < outcome.Codes; c++ {
		for _, sent := range []bool{false, true} {
			x := exchange(t, "POST", "/a")
			if n := g.Arrive(x, start); n != Send {
				t.Fatalf("Arrive named %v", n)
			}
			x.Facts = upstream.Facts{Cause: upstream.Lost, Unsent: !sent}
			g.ended(x)
			g.answer(x, c)
			var doc struct {
				Type, Title, Code, Outcome string
				Status                     int
				RequestID                  string `json:"request_id"`
			}
			if err := json.Unmarshal(x.Response.Body(), &doc); err != nil {
				t.Fatalf("%v: %s: %v", c, x.Response.Body(), err)
			}
			told := string(x.Response.Header.Peek("Gateway-Outcome"))
			if doc.Code != c.String() || doc.Status != x.Response.StatusCode() || doc.Outcome != told || doc.RequestID == "" || doc.Title == "" {
				t.Errorf("%v: %+v with outcome %q in the header", c, doc, told)
			}
			if claims := c.Info().Outcome != outcome.OutcomeNone; claims && told != map[bool]string{false: "not-sent", true: "unknown"}[sent] {
				t.Errorf("%v, sent %v: told %q", c, sent, told)
			}
			g.Finish(x, start)
		}
	}
	if g.InFlight() != 0 {
		t.Errorf("%d in flight at the end", g.InFlight())
	}
}

// TestArrive_BodyIsAskedForOnceItsPlaceIsKnown has an engine that reads heads alone.
func TestArrive_BodyIsAskedForOnceItsPlaceIsKnown(t *testing.T) {
	cfg := configuration("/a")
	cfg.Routes[0].MaxBody = 100
	g, _ := newGateway(t, cfg)
	x := exchange(t, "POST", "/a")
	x.Whole = false
	x.Request.Header.SetContentLength(100)
	if n := g.Arrive(x, start); n != Receive || x.BodyMost != 100 {
		t.Fatalf("named %v with at most %d bytes, want receive with 100", n, x.BodyMost)
	}
	x.Request.SetBody(make([]byte, 100))
	if n := g.Received(x, start); n != Send {
		t.Fatalf("then named %v, want send", n)
	}
	g.Finish(x, start)

	for name, c := range map[string]struct {
		target string
		length int
		want   outcome.Code
	}{"too large": {"/a", 101, outcome.BodyTooLarge}, "nowhere": {"/b", 10, outcome.NoRoute}} {
		x := exchange(t, "POST", c.target)
		x.Whole = false
		x.Request.Header.SetContentLength(c.length)
		if n := g.Arrive(x, start); n != Answer || x.Code() != c.want {
			t.Errorf("%s: named %v, code %v; want an answer without reading the body, %v", name, n, x.Code(), c.want)
		}
		g.Finish(x, start)
	}

	slow := exchange(t, "POST", "/a")
	slow.Whole = false
	if n := g.Arrive(slow, start); n != Receive {
		t.Fatalf("named %v", n)
	}
	if n := g.Unreadable(slow, outcome.RequestTimeout, start); n != Answer || !slow.Response.Header.ConnectionClose() {
		t.Errorf("a body that never came: named %v, closes %v", n, slow.Response.Header.ConnectionClose())
	}
	g.Finish(slow, start)
	if g.InFlight() != 0 {
		t.Errorf("%d in flight at the end", g.InFlight())
	}
}

func TestSwap_KeepsWhatLives(t *testing.T) {
	g, metrics := newGateway(t, configuration("/a"))
	under := exchange(t, "GET", "/a")
	if n := g.Arrive(under, start); n != Send {
		t.Fatalf("named %v", n)
	}
	before := g.Upstreams()[0]
	cfg := configuration("/b")
	cfg.Upstreams[0].Limit.Max = 1
	other := config.DefaultUpstream()
	other.Name, other.Endpoints = "other", []string{"http://127.0.0.1:8"}
	cfg.Upstreams = append(cfg.Upstreams, other)
	if err := g.Swap(cfg); err != nil {
		t.Fatal(err)
	}
	if after := g.Upstreams()[1]; after != before || after.Endpoints()[0].InFlight() != 1 {
		t.Error("an upstream whose name stays must keep its state")
	}
	second := exchange(t, "GET", "/b")
	if n := g.Arrive(second, start); n != Queue {
		t.Errorf("with a limit of 1 and one inside: %v, want queue", n)
	}
	if n := g.Shed(second, start.Add(time.Second)); n != Answer {
		t.Errorf("named %v", n)
	}
	g.Finish(second, start)
	under.Facts = upstream.Facts{Cause: upstream.Complete, Status: 200}
	if n := g.Attempted(under, start); n != Answer || under.Code() != outcome.Passed {
		t.Errorf("the exchange under way: %v, %v", n, under.Code())
	}
	g.Finish(under, start)

	shown := func() string {
		var text bytes.Buffer
		metrics.Write(&text)
		return text.String()
	}
	if !strings.Contains(shown(), `sluice_limit{upstream="other"}`) {
		t.Error("the new upstream is not shown")
	}
	if err := g.Swap(configuration("/a")); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(shown(), `sluice_limit{upstream="other"}`) {
		t.Error("an upstream that is gone is still shown")
	}
}

func TestSwap_AFaultChangesNothing(t *testing.T) {
	g, metrics := newGateway(t, configuration("/a"))
	bad := configuration("/b", "/b")
	bad.Upstreams[0].Name, bad.Routes[0].Upstream, bad.Routes[1].Upstream = "new", "new", "new"
	if err := g.Swap(bad); err == nil {
		t.Fatal("two routes for one path were taken")
	}
	if names := g.Upstreams(); len(names) != 1 || names[0].Name != "payments" {
		t.Errorf("upstreams %v", names)
	}
	var text bytes.Buffer
	metrics.Write(&text)
	if strings.Contains(text.String(), `sluice_limit{upstream="new"}`) {
		t.Error("an upstream that was not taken is shown")
	}
	x := exchange(t, "GET", "/a")
	if n := g.Arrive(x, start); n != Send {
		t.Errorf("the old route: %v, want send", n)
	}
	g.Finish(x, start)
}
