package admin

import (
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"time"

	profiles "runtime/pprof"
)

// profile serves what net/http/pprof also registers on http.DefaultServeMux, which
// nothing of ours ever serves, with a bound on how long a profile may take.
func (s *Server) profile(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/debug/pprof/")
	if r.Method == http.MethodPost && name != "symbol" {
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, http.StatusMethodNotAllowed, "method_not_allowed", "this path takes GET, HEAD")
		return
	}
	if text := r.URL.Query().Get("seconds"); text != "" {
		seconds, err := strconv.Atoi(text)
		if most := int(profileTime.Seconds()); err != nil || seconds < 1 || seconds > most {
			fail(w, http.StatusBadRequest, "bad_seconds", "seconds must be a whole number from 1 to "+strconv.Itoa(most))
			return
		}
		setDeadlines(w, time.Duration(seconds)*time.Second+answerTime)
	} else if name == "profile" {
		setDeadlines(w, 30*time.Second+answerTime) // its default
	}
	switch name {
	case "":
		// Its page has styles within.
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		pprof.Index(w, r)
	case "cmdline":
		pprof.Cmdline(w, r)
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		if profiles.Lookup(name) == nil {
			fail(w, http.StatusNotFound, "not_found", "there is no profile of this name; /debug/pprof/ lists them")
			return
		}
		pprof.Handler(name).ServeHTTP(w, r)
	}
}
