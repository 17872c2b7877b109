package ir

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Bounds on text from outside.
const (
	maxTextBytes = 1 << 30
	maxTextDepth = 500 // of nested blocks, types and literals
)

// ParseError is a mistake in IR text, or a violation of the IR's rules at a place in IR text.
type ParseError struct {
	File      string
	Line, Col int // from 1; Col counts bytes
	Msg       string
	Source    string // the line
}

// Error is file:line:col: message, then the line with a caret below the column.
func (e *ParseError) Error() string {
	line, col := e.Source, e.Col-1
	const width = 100
	if col > width/2 && len(line) > width { // show the part of a long line around the column
		cut := col - width/2
		line, col = line[cut:], col-cut
	}
	if len(line) > width {
		line = line[:width]
	}
	show := strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError {
			return ' '
		}
		return r
	}, line)
	return fmt.Sprintf("%s:%d:%d: %s\n  %s\n  %s^", e.File, e.Line, e.Col, e.Msg, strings.TrimRight(show, " "), strings.Repeat(" ", utf8.RuneCountInString(line[:min(max(col, 0), len(line))])))
}

// ParseFile reads and verifies the functions of an IR text file.
func ParseFile(path string) ([]*Func, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Size() > maxTextBytes {
		return nil, fmt.Errorf("%s: %d bytes are more than the limit of %d for IR text", path, st.Size(), maxTextBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ParseString(path, string(text))
}

// ParseString parses and verifies the functions of IR text; file is used in messages. The first mistake is reported as a
// *ParseError; where the text is well-formed but the functions are not, all violations are reported, joined.
func ParseString(file, text string) (fs []*Func, err error) {
	p := &parser{file: file, src: text, places: map[*Node]int{}}
	defer p.recover(&err)
	names := map[string]bool{}
	for p.skip(); p.pos < len(p.src); p.skip() {
		start := p.pos
		f := p.function()
		if names[f.Name] {
			p.failAt(start, "function @%s is defined twice", f.Name)
		}
		names[f.Name] = true
		if errs := Verify(f); len(errs) > 0 {
			return nil, p.violations(start, errs)
		}
		fs = append(fs, f)
	}
	if len(fs) == 0 {
		p.fail("expected a function: func @name(%%x: type, …) { … }")
	}
	return fs, nil
}

// ParseFunc parses text that holds one function.
func ParseFunc(text string) (*Func, error) {
	fs, err := ParseString("ir", text)
	if err != nil {
		return nil, err
	}
	if len(fs) != 1 {
		return nil, fmt.Errorf("expected one function, got %d", len(fs))
	}
	return fs[0], nil
}

// ParseType reads the text form of a type.
func ParseType(text string) (t Type, err error) {
	p := &parser{file: "type", src: text}
	defer p.recover(&err)
	t = p.typ(0)
	p.end()
	return t, nil
}

// ParseDatum reads the text form of a literal.
func ParseDatum(text string) (d Datum, err error) {
	p := &parser{file: "literal", src: text}
	defer p.recover(&err)
	d = p.literal(0)
	p.end()
	return d, nil
}

type parser struct {
	file, src string
	pos       int
	f         *Func
	values    map[string]*Value // by name; nil once out of scope
	scope     []string          // names of open blocks, innermost last
	places    map[*Node]int
}

func (p *parser) recover(err *error) {
	if r := recover(); r != nil {
		e, ok := r.(*ParseError)
		if !ok {
			panic(r)
		}
		*err = e
	}
}

func (p *parser) errorAt(pos int, msg string) *ParseError {
	start := strings.LastIndexByte(p.src[:pos], '\n') + 1
	end := len(p.src)
	if i := strings.IndexByte(p.src[pos:], '\n'); i >= 0 {
		end = pos + i
	}
	return &ParseError{File: p.file, Line: 1 + strings.Count(p.src[:start], "\n"), Col: pos - start + 1, Msg: msg, Source: p.src[start:end]}
}

func (p *parser) failAt(pos int, format string, args ...any) {
	panic(p.errorAt(pos, fmt.Sprintf(format, args...)))
}

func (p *parser) fail(format string, args ...any) { p.failAt(p.pos, format, args...) }

// violations gives the verifier's errors the places of their nodes.
func (p *parser) violations(start int, errs []error) error {
	out := make([]error, len(errs))
	for i, err := range errs {
		at := start
		var v *Violation
		if errors.As(err, &v) {
			if pos, ok := p.places[v.Node]; ok {
				at = pos
			}
		}
		out[i] = p.errorAt(at, err.Error())
	}
	return errors.Join(out...)
}

// skip passes white space and // comments.
func (p *parser) skip() {
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			p.pos++
		case strings.HasPrefix(p.src[p.pos:], "//"):
			if i := strings.IndexByte(p.src[p.pos:], '\n'); i >= 0 {
				p.pos += i
			} else {
				p.pos = len(p.src)
			}
		default:
			return
		}
	}
}

func (p *parser) end() {
	if p.skip(); p.pos < len(p.src) {
		p.fail("unexpected %s after the end", p.found())
	}
}

// peek is the next character after white space, 0 at the end.
func (p *parser) peek() byte {
	p.skip()
	if p.pos == len(p.src) {
		return 0
	}
	return p.src[p.pos]
}

// found describes what is there in place of what was expected.
func (p *parser) found() string {
	p.skip()
	if p.pos == len(p.src) {
		return "the end of the text"
	}
	if c := p.src[p.pos]; isLetter(c) || isDigit(c) {
		end := p.pos
		for end < len(p.src) && end < p.pos+30 && (isLetter(p.src[end]) || isDigit(p.src[end]) || p.src[end] == '.') {
			end++
		}
		return strconv.Quote(p.src[p.pos:end])
	}
	r, n := utf8.DecodeRuneInString(p.src[p.pos:])
	if r == utf8.RuneError && n == 1 {
		return fmt.Sprintf("the byte 0x%02x, which is not UTF-8", p.src[p.pos])
	}
	return strconv.QuoteRune(r)
}

func (p *parser) accept(s string) bool {
	p.skip()
	if strings.HasPrefix(p.src[p.pos:], s) {
		p.pos += len(s)
		return true
	}
	return false
}

func (p *parser) expect(s, where string) {
	if !p.accept(s) {
		p.fail("expected %q %s, found %s", s, where, p.found())
	}
}

// word reads letters, digits, _ and, where dots, dots.
func (p *parser) word(dots bool) string {
	p.skip()
	start := p.pos
	for p.pos < len(p.src) {
		if c := p.src[p.pos]; !isLetter(c) && !isDigit(c) && !(dots && c == '.') {
			break
		}
		p.pos++
	}
	return p.src[start:p.pos]
}

// name reads a name, quoted or not.
func (p *parser) name(what string) string {
	if p.pos < len(p.src) && p.src[p.pos] == '"' {
		return p.str()
	}
	at := p.pos
	if p.pos == len(p.src) || !isLetter(p.src[p.pos]) && !isDigit(p.src[p.pos]) {
		p.failAt(at, "expected the name of %s, found %s", what, p.found())
	}
	return p.word(true)
}

// str reads a quoted string.
func (p *parser) str() string {
	at := p.pos
	for p.pos++; ; p.pos++ {
		if p.pos >= len(p.src) || p.src[p.pos] == '\n' {
			p.failAt(at, "unterminated string: expected a closing \"")
		}
		if p.src[p.pos] == '\\' {
			p.pos++
			continue
		}
		if p.src[p.pos] == '"' {
			break
		}
	}
	p.pos++
	s, err := strconv.Unquote(p.src[at:p.pos])
	if err != nil || !utf8.ValidString(p.src[at:p.pos]) {
		p.failAt(at, "invalid string literal")
	}
	return s
}

// number reads a literal number and says whether it is an integer.
func (p *parser) number() (s string, isInt bool) {
	start := p.pos
	if p.src[p.pos] == '-' {
		p.pos++
	}
	if strings.HasPrefix(p.src[p.pos:], "inf") {
		p.pos += 3
		return p.src[start:p.pos], false
	}
	isInt = true
	digits := p.pos
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		switch {
		case isDigit(c):
		case c == '.':
			isInt = false
		case c|0x20 == 'e' && p.pos > digits:
			isInt = false
			if p.pos+1 < len(p.src) && (p.src[p.pos+1] == '+' || p.src[p.pos+1] == '-') {
				p.pos++
			}
		default:
			goto done
		}
		p.pos++
	}
done:
	if p.pos == digits {
		p.failAt(start, "expected a number, found %s", p.found())
	}
	return p.src[start:p.pos], isInt
}

func (p *parser) int(what string) int64 {
	at := p.pos
	if c := p.peek(); !isDigit(c) && c != '-' {
		p.fail("expected %s, found %s", what, p.found())
	}
	s, isInt := p.number()
	if !isInt {
		p.failAt(at, "expected %s, found %q", what, shorten(s))
	}
	return p.parseInt(at, s)
}

func (p *parser) parseInt(at int, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		p.failAt(at, "the integer %s is out of range for 64 bits", shorten(s))
	}
	return n
}

func (p *parser) parseFloat(at int, s string, bits int) float64 {
	f, err := strconv.ParseFloat(s, bits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		p.failAt(at, "the number %s is out of range for f%d", shorten(s), bits)
	case err != nil:
		p.failAt(at, "invalid number %q", shorten(s))
	}
	return f
}

func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

func (p *parser) size() Dim {
	p.skip()
	at := p.pos
	if p.accept("?") {
		return Unknown
	}
	if c := p.peek(); isLetter(c) {
		return Dim{N: -1, Sym: p.word(false)}
	}
	n := p.int("a size, a symbol or ?")
	if n < 0 {
		p.failAt(at, "the size %d is negative: sizes must be non-negative", n)
	}
	if n > MaxElems {
		p.failAt(at, "the size %d is out of range: a tensor has at most %d elements", n, MaxElems)
	}
	return Dim{N: int(n)}
}

// dims reads sizes up to the closing bracket, the opening one having been read.
func (p *parser) dims() []Dim {
	at := p.pos
	dims := []Dim{}
	for !p.accept("]") {
		if len(dims) > 0 {
			p.expect(",", "or \"]\" in a shape")
		}
		dims = append(dims, p.size())
		if len(dims) > maxRank {
			p.failAt(at, "more than %d dimensions", maxRank)
		}
	}
	known := []int{}
	for _, d := range dims {
		if d.Known() {
			known = append(known, d.N)
		}
	}
	if _, err := CountElems(known); err != nil {
		p.failAt(at, "the shape has too many elements: at most %d", MaxElems)
	}
	return dims
}

// maxRank bounds the dimensions of tensors in text.
const maxRank = 64

func (p *parser) deeper(depth int) int {
	if depth >= maxTextDepth {
		p.fail("nested more than %d levels deep", maxTextDepth)
	}
	return depth + 1
}

// typ reads a type.
func (p *parser) typ(depth int) Type {
	depth = p.deeper(depth)
	p.skip()
	at := p.pos
	word := p.word(false)
	kind := -1
	for k, s := range kindNames {
		if s == word {
			kind = k
		}
	}
	switch k := Kind(kind); {
	case kind < 0:
		p.pos = at
		p.fail("expected a type (tensor<…>, int, float, bool, str, list<…>, …), found %s", p.found())
		return Type{}
	case k == KTensor:
		p.expect("<", "after tensor")
		t := p.tensorType()
		p.expect(">", "after a tensor type")
		return t
	case k == KList, k == KTuple, k == KDict, k == KOptional:
		p.expect("<", "after "+word)
		t := Type{Kind: k}
		for !p.accept(">") {
			if len(t.Elems) > 0 {
				p.expect(",", "or \">\" in a type")
			}
			t.Elems = append(t.Elems, p.typ(depth))
		}
		if want := map[Kind]int{KList: 1, KOptional: 1, KDict: 2}[k]; want > 0 && len(t.Elems) != want {
			p.failAt(at, "%s takes %d element types, got %d", word, want, len(t.Elems))
		}
		return t
	default:
		return Type{Kind: k}
	}
}

// tensorType reads ?, f32[*], f32[2,N,?], ?[2].
func (p *parser) tensorType() Type {
	t := AnyTensor
	if !p.accept("?") {
		t.DType = p.dtype()
	} else if c := p.peek(); c != '[' {
		return t
	}
	p.expect("[", "after the dtype of a tensor")
	if p.accept("*") {
		p.expect("]", "after *")
		return t
	}
	t.Ranked, t.Dims = true, p.dims()
	return t
}

func (p *parser) dtype() dtype.DType {
	p.skip()
	at := p.pos
	d, ok := dtype.Parse(p.word(false))
	if !ok {
		p.pos = at
		p.fail("expected a dtype (bool, u8, i8, i16, i32, i64, f16, bf16, f32 or f64), found %s", p.found())
	}
	return d
}

// literal reads a constant.
func (p *parser) literal(depth int) Datum {
	depth = p.deeper(depth)
	c := p.peek()
	at := p.pos
	switch {
	case c == '"':
		return p.str()
	case c == '[':
		p.pos++
		return NewList(p.literals("]", depth)...)
	case c == '(':
		p.pos++
		return Tuple(p.literals(")", depth))
	case c == '{':
		p.pos++
		return p.dict(depth)
	case isDigit(c) || c == '-':
		s, isInt := p.number()
		if isInt {
			return p.parseInt(at, s)
		}
		return p.parseFloat(at, s, 64)
	case isLetter(c):
		switch w := p.word(false); w {
		case "true", "false":
			return w == "true"
		case "none":
			return nil
		case "nan", "inf":
			return p.parseFloat(at, w, 64)
		case "dtype":
			p.expect(".", "after dtype")
			return p.dtype()
		default:
			if d, ok := dtype.Parse(w); ok && p.peek() == '[' {
				return p.array(d)
			}
		}
		p.pos = at
	}
	p.fail("expected a value (%%name) or a literal, found %s", p.found())
	return nil
}

func (p *parser) literals(closing string, depth int) []Datum {
	out := []Datum{}
	for !p.accept(closing) {
		if len(out) > 0 {
			p.expect(",", "or "+strconv.Quote(closing))
		}
		out = append(out, p.literal(depth))
	}
	return out
}

func (p *parser) dict(depth int) Datum {
	var keys, values []Datum
	for !p.accept("}") {
		if len(keys) > 0 {
			p.expect(",", "or \"}\" in a dict")
		}
		p.skip()
		at := p.pos
		k := p.literal(depth)
		switch k.(type) {
		case int64, float64, bool, string:
		default:
			p.failAt(at, "a dict's key must be an int, a float, a bool or a string, not %s", TypeOf(k))
		}
		keys = append(keys, k)
		p.expect(":", "after a dict's key")
		values = append(values, p.literal(depth))
	}
	return NewDict(keys, values)
}

// array reads [sizes]{elements} of a tensor literal. The elements are read before memory of the claimed size is taken.
func (p *parser) array(d dtype.DType) *Array {
	at := p.pos
	p.expect("[", "after a dtype")
	var shape []int
	for _, dim := range p.dims() {
		if !dim.Known() {
			p.failAt(at, "the sizes of a tensor literal must be numbers")
		}
		shape = append(shape, dim.N)
	}
	n, _ := CountElems(shape)
	p.expect("{", "after the shape of a tensor literal")
	var floats []float64
	var ints []int64
	count := 0
	for ; !p.accept("}"); count++ {
		if count > 0 {
			p.expect(",", "or \"}\" in a tensor literal")
		}
		if count == n {
			p.fail("the shape %v has only %d elements", shape, n)
		}
		c := p.peek()
		start := p.pos
		var s string
		switch {
		case isDigit(c) || c == '-':
			s, _ = p.number()
		case isLetter(c):
			s = p.word(false)
		}
		if s == "" || isLetter(s[0]) && s != "nan" && s != "inf" {
			p.failAt(start, "expected a number in a tensor literal, found %s", p.found())
		}
		switch {
		case d == dtype.F64:
			floats = append(floats, p.parseFloat(start, s, 64))
		case d.IsFloat():
			floats = append(floats, p.parseFloat(start, s, 32))
		default:
			ints = append(ints, p.parseInt(start, s))
		}
	}
	if count != n {
		p.fail("the shape %v has %d elements, got %d", shape, n, count)
	}
	a := NewArray(d, shape...)
	for i, f := range floats {
		a.SetFloat(i, f)
	}
	for i, v := range ints {
		a.SetInt(i, v)
	}
	return a
}

// function reads func @name(params) { … }.
func (p *parser) function() *Func {
	p.expect("func", "at the start of a function")
	p.expect("@", "before the name of a function")
	p.f, p.values, p.scope = NewFunc(p.name("a function")), map[string]*Value{}, nil
	p.expect("(", "after the name of a function")
	for !p.accept(")") {
		if len(p.f.Body.Params) > 0 {
			p.expect(",", "or \")\" after a parameter")
		}
		name, hint, at := p.valueName()
		p.expect(":", "after a parameter")
		v := p.f.Param(hint, p.typ(0))
		p.define(name, v, at)
	}
	p.block(p.f.Body, 0)
	return p.f
}

// valueName reads %name: the key it is known by, and the hint to print it by (none for numbers).
func (p *parser) valueName() (name, hint string, at int) {
	p.skip()
	at = p.pos
	p.expect("%", "before the name of a value")
	quoted := p.pos < len(p.src) && p.src[p.pos] == '"'
	name = p.name("a value")
	if quoted || !isDigit(name[0]) {
		hint = name
	}
	return name, hint, at
}

func (p *parser) define(name string, v *Value, at int) {
	if _, ok := p.values[name]; ok {
		p.failAt(at, "%%%s is defined twice", name)
	}
	p.values[name] = v
	p.scope = append(p.scope, name)
}

// block reads { nodes } into b; names defined in it end with it.
func (p *parser) block(b *Block, depth int) {
	depth = p.deeper(depth)
	outer := len(p.scope) - len(b.Params) // b's parameters have just been defined
	p.expect("{", "at the start of a block")
	for !p.accept("}") {
		if p.pos == len(p.src) {
			p.fail("expected \"}\" at the end of a block")
		}
		p.node(b, depth)
	}
	for _, name := range p.scope[outer:] {
		p.values[name] = nil
	}
	p.scope = p.scope[:outer]
}

// result is what stands on the left of =.
type result struct {
	name, hint string
	at         int
	typ        Type
	typed      bool
}

func (p *parser) node(b *Block, depth int) {
	p.skip()
	at := p.pos
	var results []result
	if p.peek() == '%' {
		for {
			var r result
			r.name, r.hint, r.at = p.valueName()
			if r.typed = p.accept(":"); r.typed {
				r.typ = p.typ(0)
			}
			results = append(results, r)
			if !p.accept(",") {
				break
			}
		}
		p.expect("=", "after the results of a node")
	}
	op, attrs := p.head()
	if op == OpVjp {
		attrs.Count = len(results)
	}
	n := &Node{Op: op, Attrs: attrs}
	p.places[n] = at
	p.args(b, n)
	p.blocks(n, depth)
	if p.accept("@") {
		n.Pos = p.position()
	}
	types := p.resultTypes(n, results, at)
	for i, r := range results {
		v := p.f.NewValue(types[i])
		v.Def, v.Index, v.Name = n, i, r.hint
		n.Results = append(n.Results, v)
		p.define(r.name, v, r.at)
	}
	b.Nodes = append(b.Nodes, n)
}

// resultTypes are those that the text gives, or the inferred ones where it gives none.
func (p *parser) resultTypes(n *Node, results []result, at int) []Type {
	types := make([]Type, len(results))
	var inferred []Type
	done := false
	for i, r := range results {
		if r.typed {
			types[i] = r.typ
			continue
		}
		if !done {
			var err error
			if inferred, err = inferNode(n); err != nil {
				p.failAt(at, "%v", err)
			}
			done = true
		}
		types[i] = Any
		if i < len(inferred) {
			types[i] = inferred[i]
		}
	}
	return types
}

// inferNode gives the result types of a node, as far as its operands and blocks tell.
func inferNode(n *Node) ([]Type, error) {
	switch {
	case n.Op == OpIf && len(n.Blocks) == 2:
		t, e := n.Blocks[0].Terminator(), n.Blocks[1].Terminator()
		if t == nil || e == nil || len(t.Args) != len(e.Args) {
			return nil, nil
		}
		out := make([]Type, len(t.Args))
		for i := range out {
			out[i] = t.Args[i].Type.Join(e.Args[i].Type)
		}
		return out, nil
	case n.Op == OpWhile && len(n.Blocks) == 2:
		return valueTypes(n.Blocks[1].Params), nil
	case n.Op == OpFor && len(n.Blocks) == 1 && len(n.Blocks[0].Params) > 0:
		return valueTypes(n.Blocks[0].Params[1:]), nil
	case n.Op == OpFused && len(n.Blocks) == 1 && n.Blocks[0].Terminator() != nil:
		return valueTypes(n.Blocks[0].Terminator().Args), nil
	case n.Op.Infer == nil:
		return nil, nil
	}
	if err := checkArity(n); err != nil {
		return nil, fmt.Errorf("%s: %w", n.Op.Name, err)
	}
	return n.Op.Infer(&Call{Op: n.Op, Args: valueTypes(n.Args), Vals: n.Args, Attrs: n.Attrs})
}

// head reads the op and its attributes.
func (p *parser) head() (*Op, Attrs) {
	p.skip()
	at := p.pos
	word := p.word(false)
	switch word {
	case "aten":
		p.expect(".", "after aten")
		return OpAten, Attrs{Callee: p.name("a function of torch")}
	case "vjp":
		p.expect("[", "after vjp")
		order := p.int("the number of differentiations")
		if order < 1 || order > 100 {
			p.failAt(at, "the order %d of a vjp is out of range: expected 1 to 100", order)
		}
		p.expect("]", "after the order of a vjp")
		p.expect(".aten.", "after vjp[…]")
		return OpVjp, Attrs{Callee: p.name("a function of torch"), Order: int(order)}
	case "grad":
		p.expect("[", "after grad")
		n := p.int("the number of outputs")
		if n < 0 || n > 1<<30 {
			p.failAt(at, "the number %d of outputs is out of range", n)
		}
		p.expect("]", "after the number of outputs")
		return OpGrad, Attrs{Count: int(n)}
	case "fused":
		if p.accept(".") {
			return OpFused, Attrs{Callee: p.name("a kernel")}
		}
		return OpFused, Attrs{}
	case "const":
		p.failAt(at, "literals are written where they are used, not as const nodes")
	}
	op := LookupOp(word)
	if op == nil {
		if word == "" {
			p.fail("expected a node or \"}\", found %s", p.found())
		}
		p.failAt(at, "unknown op %q: PyTorch's functions are written aten.%s", shorten(word), shorten(word))
	}
	return op, Attrs{}
}

// args reads the operands; literals become const nodes before n.
func (p *parser) args(b *Block, n *Node) {
	closing := true
	if n.Op.Class == Terminator && p.peek() != '(' {
		closing = false
		if c := p.peek(); c == '}' || c == '@' || c == 0 {
			return
		}
	} else {
		p.expect("(", "after "+n.head())
		if p.accept(")") {
			return
		}
	}
	for {
		n.Args = append(n.Args, p.operand(b))
		if closing && p.accept(")") || !closing && p.peek() != ',' {
			return
		}
		p.expect(",", "or \")\" after an operand")
	}
}

func (p *parser) operand(b *Block) *Value {
	if p.peek() == '%' {
		name, _, at := p.valueName()
		v, ok := p.values[name]
		if v == nil {
			if ok {
				p.failAt(at, "%%%s is not visible here: it is defined in another block", name)
			}
			p.failAt(at, "%%%s is not defined before this use", name)
		}
		return v
	}
	d := p.literal(0)
	c := p.f.NewNode(OpConst, nil, []Type{TypeOf(d)}, Pos{})
	c.Attrs.Value = d
	b.Nodes = append(b.Nodes, c)
	return c.Results[0]
}

func (p *parser) blocks(n *Node, depth int) {
	switch n.Op {
	case OpIf:
		n.Blocks = []*Block{{}, {}}
		p.block(n.Blocks[0], depth)
		p.expect("else", "after the first block of if")
		p.block(n.Blocks[1], depth)
	case OpWhile:
		p.expect("cond", "after the operands of while")
		cond := p.blockWithParams(depth)
		p.expect("body", "after the condition of while")
		n.Blocks = []*Block{cond, p.blockWithParams(depth)}
	case OpFor, OpFused:
		n.Blocks = []*Block{p.blockWithParams(depth)}
	}
}

func (p *parser) blockWithParams(depth int) *Block {
	b := &Block{}
	p.expect("(", "before the parameters of a block")
	for !p.accept(")") {
		if len(b.Params) > 0 {
			p.expect(",", "or \")\" after a parameter")
		}
		name, hint, at := p.valueName()
		p.expect(":", "after a parameter")
		v := p.f.BlockParam(b, p.typ(0))
		v.Name = hint
		p.define(name, v, at)
	}
	p.block(b, depth)
	return b
}

func (p *parser) position() Pos {
	if p.peek() != '"' {
		p.fail("expected a file name after @, found %s", p.found())
	}
	pos := Pos{File: p.str()}
	for _, n := range []*int{&pos.Line, &pos.Col} {
		p.expect(":", "in a position")
		at := p.pos
		v := p.int("a line or column number")
		if v < 0 || v > 1<<40 {
			p.failAt(at, "line or column %d is out of range", v)
		}
		*n = int(v)
	}
	return pos
}
