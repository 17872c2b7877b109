package check

import (
	"fmt"
	"strings"
)

// token is a word, a number or one character of punctuation.
type token struct {
	line int
	text string
}

// isWord reports whether c may be part of a word or number; words hold dots (add.s64, %tid.x) and start with %, $, . or a letter.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_$%.", c) >= 0
}

// lex cuts text into tokens, without comments.
func lex(text string) ([]token, error) {
	var out []token
	line := 1
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case strings.HasPrefix(text[i:], "//"):
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case isWord(c):
			j := i
			for j < len(text) && isWord(text[j]) {
				j++
			}
			out = append(out, token{line, text[i:j]})
			i = j
		case strings.IndexByte("{}()[]<>,;:=+-@!|", c) >= 0:
			out = append(out, token{line, text[i : i+1]})
			i++
		default:
			return nil, lineError(line, "unexpected character %q", c)
		}
	}
	return out, nil
}

func lineError(line int, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))
}
