package script

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// stringLit scans a string literal whose prefix began at byte start; the scanner stands on the opening quote.
func (s *scanner) stringLit(start int, prefix string) {
	raw := strings.Contains(prefix, "r")
	isF := strings.Contains(prefix, "f")
	if strings.Contains(prefix, "b") {
		s.fail(start, "bytes literals are not supported")
	}
	if strings.Trim(prefix, "rfu") != "" {
		s.fail(start, "unknown string prefix %q", prefix)
	}
	first := s.pos(start)
	quote := s.src[s.at : s.at+1]
	if strings.HasPrefix(s.src[s.at:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	s.at += len(quote)
	body := s.stringBody(first, quote)
	if !raw && !isF {
		body = s.unescape(body, first)
	}
	k := tString
	if isF {
		k = tFString
	}
	s.toks = append(s.toks, token{kind: k, text: body, raw: raw, pos: s.endAt(first, start)})
}

// endAt completes the position of a token that may span lines.
func (s *scanner) endAt(first Pos, start int) Pos {
	if first.Line == s.line {
		first.End = first.Col + utf8.RuneCountInString(s.src[start:s.at])
	}
	return first
}

// stringBody gives the undecoded text up to the closing quote and steps past it.
func (s *scanner) stringBody(first Pos, quote string) string {
	start := s.at
	for s.at < len(s.src) {
		switch c := s.peek(); {
		case strings.HasPrefix(s.src[s.at:], quote):
			body := s.src[start:s.at]
			s.at += len(quote)
			return body
		case c == '\\' && s.at+1 < len(s.src):
			s.at++
			s.stringChar()
		case c == '\n' && len(quote) == 1:
			panic(s.file.errorf(first, "unterminated string: the closing quote is missing on this line"))
		default:
			s.stringChar()
		}
	}
	panic(s.file.errorf(first, "unterminated string: the file ends before the closing quote"))
}

func (s *scanner) stringChar() {
	if s.peek() == '\n' {
		s.newline()
		return
	}
	s.at++
}

var simpleEscapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '\'': '\'', '"': '"', 'a': 7, 'b': 8, 'f': 12, 'v': 11}

// unescape decodes the backslash escapes of a string.
func (s *scanner) unescape(body string, p Pos) string {
	if !strings.Contains(body, `\`) {
		return body
	}
	var b strings.Builder
	for i := 0; i < len(body); {
		if body[i] != '\\' || i+1 == len(body) {
			b.WriteByte(body[i])
			i++
			continue
		}
		i += 2 + decodeEscape(&b, body[i+1], body[i+2:], func(msg string) { panic(s.file.errorf(p, "%s", msg)) })
	}
	return b.String()
}

// decodeEscape writes what the escape \c (with the text after it) stands for, and gives how many bytes of that text
// belong to it.
func decodeEscape(b *strings.Builder, c byte, rest string, fail func(string)) int {
	if e, ok := simpleEscapes[c]; ok {
		b.WriteByte(e)
		return 0
	}
	switch n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]; {
	case c == '\n':
	case n > 0:
		v, err := strconv.ParseUint(rest[:min(n, len(rest))], 16, 32)
		if len(rest) < n || err != nil || v > utf8.MaxRune {
			fail("invalid \\" + string(c) + " escape in a string")
		}
		b.WriteRune(rune(v))
		return n
	case c >= '0' && c <= '7':
		n := 0
		v := int(c - '0')
		for n < 2 && n < len(rest) && rest[n] >= '0' && rest[n] <= '7' {
			v = v*8 + int(rest[n]-'0')
			n++
		}
		b.WriteRune(rune(v))
		return n
	default:
		b.WriteByte('\\')
		b.WriteByte(c)
	}
	return 0
}
