package config

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// syntax gives the line, 0 when unknown, and the text of what the YAML parser has
// to say. Its own line numbers begin at 0 for some errors and at 1 for others, and
// are left out where they are 0.
func syntax(err error, data []byte) (line int, text string) {
	text = strings.TrimPrefix(err.Error(), "yaml: ")
	if match := lineOfError.FindStringSubmatch(text); match != nil {
		line, _ = strconv.Atoi(match[1])
		text = text[len(match[0]):]
	}
	switch {
	case beginsWithOneOf(text, grammarErrors):
		line++
	case line == 0 && beginsWithOneOf(text, byteErrors):
		line = lineAt(data, bytes.IndexFunc(data, unreadable))
	case line == 0 && strings.HasPrefix(text, "unknown anchor"):
		if name := strings.Split(text, "'"); len(name) == 3 {
			line = lineAt(data, bytes.Index(data, []byte("*"+name[1])))
		}
	case line == 0:
		line = 1
	}
	// Tabs get words of their own, since the parser's name neither them nor always
	// their line.
	lines := strings.Split(string(data), "\n")
	for _, near := range []int{line, line + 1} {
		if near >= 1 && near <= len(lines) && indentedByTab.MatchString(lines[near-1]) {
			return near, "a tab stands at the beginning of the line, indent with spaces"
		}
	}
	return line, text
}

var (
	lineOfError   = regexp.MustCompile(`^line (\d+): `)
	indentedByTab = regexp.MustCompile(`^ *\t`)

	// grammarErrors are those whose line begins at 0.
	grammarErrors = []string{
		"did not find expected <", "did not find expected node content", "did not find expected key",
		"did not find expected '-'", "did not find expected ','", "found undefined tag handle",
		"found duplicate", "found incompatible YAML document",
	}
	// byteErrors are those that never have a line.
	byteErrors = []string{"control characters", "invalid", "incomplete", "unexpected low surrogate"}
)

func beginsWithOneOf(text string, list []string) bool {
	for _, beginning := range list {
		if strings.HasPrefix(text, beginning) {
			return true
		}
	}
	return false
}

func unreadable(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune("\t\r\n\u0085", r)
}

// lineAt gives the line of an offset, 0 for a negative one.
func lineAt(data []byte, offset int) int {
	if offset < 0 {
		return 0
	}
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}
