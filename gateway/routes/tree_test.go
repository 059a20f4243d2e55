package routes

import (
	"strings"
	"testing"

	"github.com/fasthttp/router/radix"
)

// No configuration makes the router panic, so this barrier is tried by hand.
func TestPlant_TurnsPanicsIntoErrors(t *testing.T) {
	tree := radix.New()
	if err := plant(tree, "/a", &leaf{}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"/a":  "a handler is already registered for path '/a'",
		"/a/": "a handler is already registered for path '/a/'",
		"a":   "path must begin with '/' in path 'a'",
	} {
		if err := plant(tree, key, &leaf{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", key, err, want)
		}
	}
}
