package script

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Pos is a place in a source file: a 1-based line, a 1-based column counted in characters, and the column just past
// the construct when it ends on the same line (0 when unknown).
type Pos struct {
	Line, Col, End int
}

// Error is a diagnostic with the place it is about. Its text is `file.py:LINE:COL: error: message`, then the source
// line and a caret under the offending expression.
type Error struct {
	File    string
	Pos     Pos
	Msg     string
	Snippet string // the source line, "" when there is none
	Calls   []string

	shared bool // it is about what shares memory
}

const (
	maxSnippet = 120 // characters of a source line that a diagnostic shows
	maxName    = 60  // characters of a user's name that a diagnostic repeats
)

// Error gives the full text, several lines.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: error: %s", e.File, e.Pos.Line, e.Pos.Col, e.Msg)
	if e.Snippet != "" {
		line, col, width := window(e.Snippet, e.Pos)
		fmt.Fprintf(&b, "\n    %s\n    %s^%s", line, strings.Repeat(" ", col), strings.Repeat("~", width))
	}
	for _, c := range e.Calls {
		b.WriteString("\n  " + c)
	}
	return b.String()
}

// window cuts a long source line to the part around the position; it gives that part, the caret's offset in it and how
// many tildes follow the caret.
func window(line string, p Pos) (text string, col, width int) {
	runes := []rune(strings.Map(printable, line))
	start := 0
	if p.Col-1 > maxSnippet*2/3 {
		start = p.Col - 1 - maxSnippet/2
	}
	start = min(start, len(runes))
	end := min(start+maxSnippet, len(runes))
	col = max(p.Col-1-start, 0)
	if p.End > p.Col+1 {
		width = min(p.End-p.Col-1, max(end-start-col-1, 0))
	}
	return strings.TrimRight(string(runes[start:end]), " \r"), col, width
}

// printable keeps a terminal safe from what a source line holds.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// short cuts a name from the user's source so that a message stays readable.
func short(name string) string {
	if utf8.RuneCountInString(name) <= maxName {
		return name
	}
	return string([]rune(name)[:maxName]) + "…"
}
