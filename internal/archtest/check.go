package archtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// violation is one use that a rule forbids and no exception allows.
type violation struct {
	pkg, use string
	rule     rule
}

func (v violation) String() string {
	return fmt.Sprintf("%s uses %s, against the rule %q: %s", v.pkg, v.use, v.rule.name, v.rule.reason)
}

// check holds a graph (package to what it uses) against the rules. It returns
// what is forbidden, in order, and the exceptions that nothing needs.
func check(graph map[string][]string, rules []rule, exceptions []exception) (found []violation, idle []exception) {
	needed := make([]bool, len(exceptions))
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		for _, r := range rules {
			if !matches(r.of, pkg) || matches(r.except, pkg) {
				continue
			}
			for _, use := range graph[pkg] {
				if !matches(r.uses, use) || matches(r.but, use) {
					continue
				}
				i := slices.IndexFunc(exceptions, func(e exception) bool {
					return e.rule == r.name && match(e.pkg, pkg) && match(e.use, use)
				})
				if i < 0 {
					found = append(found, violation{pkg, use, r})
					continue
				}
				needed[i] = true
			}
		}
	}
	for i, e := range exceptions {
		if !needed[i] {
			idle = append(idle, e)
		}
	}
	return found, idle
}

func matches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, path) })
}

func match(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	top, all := strings.CutSuffix(pattern, "/...")
	if !all {
		return path == pattern
	}
	return path == top || strings.HasPrefix(path, top+"/")
}

// join returns list with more after it, and leaves list alone.
func join(list []string, more ...string) []string {
	return slices.Concat(list, more)
}
