package telemetry

import (
	"bytes"
	"io"
	"os"
	"strconv"

	"github.com/rs/zerolog"
)

// console turns JSON lines into lines for people. It runs where lines are written,
// so that whoever logs pays the same for either format.
type console struct {
	writer zerolog.ConsoleWriter
	text   bytes.Buffer
}

func newConsole(out io.Writer) *console {
	c := &console{}
	c.writer = zerolog.ConsoleWriter{
		Out:        &c.text,
		NoColor:    !isTerminal(out),
		TimeFormat: "15:04:05.000",
		FieldsOrder: []string{
			"method", "host", "path", "status", "code", "outcome", "detail", "total_ms", "queue_ms",
			"connect_ms", "head_ms", "route", "upstream", "endpoint", "attempts", "reused",
			"bytes_in", "bytes_out", "request_id",
		},
		FormatMessage: message,
		FormatCaller:  message,
	}
	return c
}

// message keeps a message, or a place in the source, to its line: of all that
// ConsoleWriter prints these alone are not quoted where they need to be.
func message(value any) string {
	text, _ := value.(string)
	for _, r := range text {
		if !strconv.IsPrint(r) {
			return strconv.Quote(text)
		}
	}
	return text
}

// render gives the lines for people, valid until the next call. A line that is no
// JSON, which nothing here makes, stays as it is.
func (c *console) render(lines []byte) []byte {
	c.text.Reset()
	for line := range bytes.Lines(lines) {
		before := c.text.Len()
		if _, err := c.writer.Write(line); err != nil {
			c.text.Truncate(before)
			c.text.Write(line)
		}
	}
	return c.text.Bytes()
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
