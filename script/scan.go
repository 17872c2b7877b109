package script

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxSource  = 16 << 20 // bytes of a source file
	maxIndents = 100      // nested blocks, as Python's own limit
	maxParens  = 200      // nested brackets, as Python's own limit
	tabSize    = 8
)

// scanner turns source text into tokens.
type scanner struct {
	file   *source
	src    string
	at     int // byte offset
	line   int
	bol    int // byte offset of the line's first byte
	known  int //  a byte offset on the current line whose column is knownCol
	column int
	toks   []token
	indent []indent
	parens []token
}

// indent is a block's indentation, with tabs counted as eight columns and as one: both must agree in order, or the
// block structure would depend on the reader's tab width.
type indent struct{ wide, narrow int }

// source is a file's name and text, and makes diagnostics about it.
type source struct {
	name  string
	lines []string
	types map[int]string // types in comments, by line
}

func newSource(name, text string) *source {
	return &source{name: name, lines: strings.Split(text, "\n")}
}

// errorf makes a diagnostic at p.
func (s *source) errorf(p Pos, format string, args ...any) *Error {
	e := &Error{File: s.name, Pos: p, Msg: fmt.Sprintf(format, args...)}
	if p.Line >= 1 && p.Line <= len(s.lines) {
		e.Snippet = strings.ToValidUTF8(s.lines[p.Line-1], "\uFFFD")
	}
	return e
}

// scan gives the tokens of a whole file, ending with tEOF.
func scan(file *source, src string) (toks []token, err error) {
	s := &scanner{file: file, src: src, line: 1, indent: []indent{{}}}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			toks, err = nil, e
		}
	}()
	s.check()
	for s.lineStart() {
		s.logicalLine()
	}
	for len(s.indent) > 1 {
		s.indent = s.indent[:len(s.indent)-1]
		s.emit(tDedent, "", s.at)
	}
	s.emit(tEOF, "", s.at)
	return s.toks, nil
}

// check refuses what no source file holds: too many bytes, NUL and other control characters, invalid UTF-8.
func (s *scanner) check() {
	if len(s.src) > maxSource {
		panic(s.file.errorf(Pos{1, 1, 0}, "the source has %d bytes, more than the limit of %d", len(s.src), maxSource))
	}
	s.src = strings.TrimPrefix(s.src, "\uFEFF")
	line, bol := 1, 0
	for i, r := range s.src {
		switch {
		case r == '\n':
			line, bol = line+1, i+1
		case r == utf8.RuneError && !strings.HasPrefix(s.src[i:], "\uFFFD"):
			panic(s.file.errorf(s.posIn(line, bol, i), "invalid UTF-8 (byte 0x%02x)", s.src[i]))
		case r == 0:
			panic(s.file.errorf(s.posIn(line, bol, i), "the source holds a NUL byte"))
		case r < ' ' && r != '\t' && r != '\r' && r != '\f':
			panic(s.file.errorf(s.posIn(line, bol, i), "the source holds the control character 0x%02x", r))
		}
	}
}

func (s *scanner) posIn(line, bol, at int) Pos {
	return Pos{Line: line, Col: utf8.RuneCountInString(s.src[bol:min(at, len(s.src))]) + 1}
}

// pos is the position of a byte on the current line. Long lines are counted once only: from the last place asked for.
func (s *scanner) pos(at int) Pos {
	if s.known < s.bol || s.known > at {
		s.known, s.column = s.bol, 1
	}
	s.column += utf8.RuneCountInString(s.src[s.known:min(at, len(s.src))])
	s.known = at
	return Pos{Line: s.line, Col: s.column}
}

func (s *scanner) fail(at int, format string, args ...any) {
	panic(s.file.errorf(s.pos(at), format, args...))
}

// emit appends a token that began at byte start on the current line and ends here.
func (s *scanner) emit(k kind, text string, start int) *token {
	p := s.pos(start)
	if s.at > start {
		p.End = p.Col + utf8.RuneCountInString(s.src[start:s.at])
	}
	s.toks = append(s.toks, token{kind: k, text: text, pos: p})
	return &s.toks[len(s.toks)-1]
}

func (s *scanner) peek() byte { return s.peekAt(0) }

func (s *scanner) peekAt(n int) byte {
	if s.at+n < len(s.src) {
		return s.src[s.at+n]
	}
	return 0
}

func (s *scanner) newline() {
	s.at++
	s.line++
	s.bol = s.at
}

// lineStart skips blank and comment lines, handles the indentation of the next logical line, and reports whether there
// is one.
func (s *scanner) lineStart() bool {
	for {
		in := s.measure()
		switch {
		case s.at >= len(s.src):
			return false
		case s.peek() == '\n':
			s.newline()
			continue
		case s.peek() == '#':
			s.comment()
			continue
		}
		s.setIndent(in)
		return true
	}
}

func (s *scanner) measure() indent {
	var in indent
	for {
		switch s.peek() {
		case ' ':
			in.wide++
			in.narrow++
		case '\t':
			in.wide = (in.wide/tabSize + 1) * tabSize
			in.narrow++
		case '\f':
			in = indent{}
		case '\r':
		default:
			return in
		}
		s.at++
	}
}

func (s *scanner) setIndent(in indent) {
	top := s.indent[len(s.indent)-1]
	if in.wide == top.wide && in.narrow == top.narrow {
		return
	}
	if (in.wide > top.wide) != (in.narrow > top.narrow) || in.wide == top.wide || in.narrow == top.narrow {
		s.fail(s.at, "inconsistent use of tabs and spaces in indentation")
	}
	if in.wide > top.wide {
		if len(s.indent) >= maxIndents {
			s.fail(s.at, "too many levels of indentation (the limit is %d)", maxIndents)
		}
		s.indent = append(s.indent, in)
		s.emit(tIndent, "", s.at)
		return
	}
	for in.wide < s.indent[len(s.indent)-1].wide {
		s.indent = s.indent[:len(s.indent)-1]
		s.emit(tDedent, "", s.at)
	}
	switch top = s.indent[len(s.indent)-1]; {
	case in.wide != top.wide:
		s.fail(s.at, "unindent does not match any outer indentation level")
	case in.narrow != top.narrow:
		s.fail(s.at, "inconsistent use of tabs and spaces in indentation")
	}
}

func (s *scanner) comment() {
	start := s.at
	defer func() { s.file.typeComment(s.line, s.src[start:s.at]) }()
	for s.at < len(s.src) && s.peek() != '\n' {
		s.at++
	}
}

// logicalLine scans to the end of a logical line, which brackets and backslashes continue over physical lines.
func (s *scanner) logicalLine() {
	for s.at < len(s.src) {
		switch c := s.peek(); {
		case c == '\n':
			if len(s.parens) == 0 {
				s.emit(tNewline, "", s.at)
				s.newline()
				return
			}
			s.newline()
		case c == ' ' || c == '\t' || c == '\r' || c == '\f':
			s.at++
		case c == '#':
			s.comment()
		case c == '\\':
			s.joinLine()
		default:
			s.token()
		}
	}
	if len(s.parens) > 0 {
		open := s.parens[len(s.parens)-1]
		panic(s.file.errorf(open.pos, "'%s' was never closed", open.text))
	}
	s.emit(tNewline, "", s.at)
}

func (s *scanner) joinLine() {
	start := s.at
	s.at++
	if s.peek() == '\r' {
		s.at++
	}
	if s.at >= len(s.src) || s.peek() != '\n' {
		s.fail(start, "unexpected character after line continuation, or end of file")
	}
	s.newline()
	if s.at >= len(s.src) {
		s.fail(s.at, "unexpected end of file after line continuation")
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (s *scanner) token() {
	c := s.peek()
	switch {
	case c == '"' || c == '\'':
		s.stringLit(s.at, "")
	case isDigit(c) || c == '.' && isDigit(s.peekAt(1)):
		s.number()
	case c == '_' || c >= utf8.RuneSelf || unicode.IsLetter(rune(c)):
		s.name()
	default:
		s.operator()
	}
}

func (s *scanner) name() {
	start := s.at
	for s.at < len(s.src) {
		r, n := utf8.DecodeRuneInString(s.src[s.at:])
		if r != '_' && !unicode.IsLetter(r) && !(s.at > start && (unicode.IsDigit(r) || unicode.Is(unicode.Mn, r))) {
			break
		}
		s.at += n
	}
	if s.at == start {
		r, _ := utf8.DecodeRuneInString(s.src[s.at:])
		s.fail(start, "invalid character %q", r)
	}
	text := s.src[start:s.at]
	if q := s.peek(); (q == '"' || q == '\'') && len(text) <= 2 {
		s.stringLit(start, strings.ToLower(text))
		return
	}
	if keywords[text] {
		s.emit(tKeyword, text, start)
		return
	}
	s.emit(tName, text, start)
}

func (s *scanner) number() {
	start := s.at
	isFloat := false
	if s.peek() == '0' && strings.ContainsRune("xXoObB", rune(s.peekAt(1))) && s.peekAt(1) != 0 {
		s.at += 2
		for isAlnum(s.peek()) {
			s.at++
		}
	} else {
		s.digits()
		if s.peek() == '.' {
			isFloat = true
			s.at++
			s.digits()
		}
		if c := s.peek(); c == 'e' || c == 'E' {
			n := 1
			if d := s.peekAt(1); d == '+' || d == '-' {
				n = 2
			}
			if isDigit(s.peekAt(n)) {
				isFloat = true
				s.at += n
				s.digits()
			}
		}
	}
	text := s.src[start:s.at]
	if c := s.peek(); c == 'j' || c == 'J' {
		s.fail(start, "complex numbers are not supported")
	} else if isAlnum(c) || c >= utf8.RuneSelf {
		s.fail(s.at, "invalid character in a number")
	}
	s.checkNumber(text, isFloat, start)
}

func (s *scanner) checkNumber(text string, isFloat bool, start int) {
	clean := strings.ReplaceAll(text, "_", "")
	if isFloat {
		if _, err := strconv.ParseFloat(clean, 64); err != nil && !strings.Contains(err.Error(), "range") {
			s.fail(start, "invalid number %s", short(text))
		}
		s.emit(tFloat, clean, start)
		return
	}
	if len(clean) > 1 && clean[0] == '0' && isDigit(clean[1]) && strings.Trim(clean, "0") != "" {
		s.fail(start, "leading zeros in an integer are not permitted")
	}
	if len(clean) > 24 && strings.Trim(clean, "0123456789") == "" || !s.emitInt(clean, start) {
		s.fail(start, "the integer literal %s does not fit into 64 bits", short(text))
	}
}

// emitInt emits an integer token. 2**63 itself is let through for the parser, which accepts it after a minus only.
func (s *scanner) emitInt(clean string, start int) bool {
	trimmed := clean
	if strings.Trim(clean, "0") == "" {
		trimmed = "0"
	}
	_, err := strconv.ParseUint(trimmed, 0, 64)
	if err != nil {
		return false
	}
	s.emit(tInt, trimmed, start)
	return true
}

func isAlnum(c byte) bool {
	return isDigit(c) || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (s *scanner) digits() {
	for isDigit(s.peek()) || s.peek() == '_' && isDigit(s.peekAt(1)) {
		s.at++
	}
}

func (s *scanner) operator() {
	for _, op := range operators {
		if strings.HasPrefix(s.src[s.at:], op) {
			start := s.at
			s.at += len(op)
			s.bracket(*s.emit(tOp, op, start))
			return
		}
	}
	r, _ := utf8.DecodeRuneInString(s.src[s.at:])
	s.fail(s.at, "invalid character %q", r)
}

var closing = map[string]string{")": "(", "]": "[", "}": "{"}

// bracket keeps the stack of open brackets.
func (s *scanner) bracket(t token) {
	switch t.text {
	case "(", "[", "{":
		if len(s.parens) >= maxParens {
			panic(s.file.errorf(t.pos, "too many nested brackets (the limit is %d)", maxParens))
		}
		s.parens = append(s.parens, t)
	case ")", "]", "}":
		if len(s.parens) == 0 {
			panic(s.file.errorf(t.pos, "unmatched '%s'", t.text))
		}
		if open := s.parens[len(s.parens)-1]; open.text != closing[t.text] {
			panic(s.file.errorf(t.pos, "'%s' does not match the opening '%s' of line %d", t.text, open.text, open.pos.Line))
		}
		s.parens = s.parens[:len(s.parens)-1]
	}
}
