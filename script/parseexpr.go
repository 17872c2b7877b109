package script

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// exprList parses expressions separated by commas: one expression, or a tuple.
func (p *parser) exprList() expr {
	start := p.cur().pos
	first := p.starred()
	if !p.is(",") {
		if s, ok := first.(*starExpr); ok {
			p.fail(s.pos, "a starred expression is not supported here")
		}
		return first
	}
	t := &tupleExpr{elems: []expr{first}}
	for p.accept(",") {
		if p.endOfList() {
			break
		}
		t.elems = append(t.elems, p.starred())
	}
	t.pos = p.span(start)
	return t
}

func (p *parser) endOfList() bool {
	t := p.cur()
	return t.kind == tNewline || t.kind == tEOF || t.kind == tOp && strings.Contains(")]}=:;", t.text) || augOps[t.text] != "" && t.kind == tOp
}

func (p *parser) starred() expr {
	if p.is("*") {
		t := p.next()
		x := p.expr()
		return &starExpr{node{p.span(t.pos)}, x}
	}
	return p.named()
}

// named is an expression in a place where Python allows :=, which scripts do not have.
func (p *parser) named() expr {
	e := p.expr()
	if p.is(":=") {
		p.fail(p.cur().pos, "':=' is not supported in a script")
	}
	return e
}

// expr parses `a if c else b` and everything that binds tighter.
func (p *parser) expr() expr {
	defer p.enter()()
	if p.is("lambda") {
		p.fail(p.cur().pos, "lambda is not supported in a script: write a function")
	}
	if p.is("await") || p.is("yield") {
		p.fail(p.cur().pos, "'%s' is not supported in a script", p.cur().text)
	}
	start := p.cur().pos
	x := p.or()
	if !p.accept("if") {
		return x
	}
	cond := p.or()
	p.expect("else")
	els := p.expr()
	return &ifExpr{node{p.span(start)}, cond, x, els}
}

func (p *parser) or() expr  { return p.boolean("or", p.and) }
func (p *parser) and() expr { return p.boolean("and", p.not) }

func (p *parser) boolean(op string, term func() expr) expr {
	start := p.cur().pos
	x := term()
	if !p.is(op) {
		return x
	}
	b := &boolExpr{op: op, terms: []expr{x}}
	for p.accept(op) {
		b.terms = append(b.terms, term())
		p.chain(len(b.terms))
	}
	b.pos = p.span(start)
	return b
}

func (p *parser) chain(n int) {
	if n > maxChain {
		p.fail(p.cur().pos, "expression too long: more than %d operators in one chain", maxChain)
	}
}

func (p *parser) not() expr {
	if !p.is("not") {
		return p.comparison()
	}
	start := p.cur().pos
	n := 0
	for p.accept("not") {
		n++
	}
	var x expr = p.comparison()
	if n > 2 {
		n = 2 - n%2 // an even number of nots is two of them, an odd number one: the result is a bool
	}
	for range n {
		x = &unaryExpr{node{p.span(start)}, "not", x}
	}
	return x
}

var comparisons = map[string]bool{"<": true, ">": true, "<=": true, ">=": true, "==": true, "!=": true, "is": true, "in": true}

func (p *parser) comparisonOp() string {
	t := p.cur()
	if t.kind != tOp && t.kind != tKeyword {
		return ""
	}
	switch {
	case p.is("is"):
		p.next()
		if p.accept("not") {
			return "is not"
		}
		return "is"
	case p.is("not"):
		p.next()
		p.expect("in")
		return "not in"
	case comparisons[t.text]:
		return p.next().text
	}
	return ""
}

func (p *parser) comparison() expr {
	start := p.cur().pos
	x := p.binary(0)
	op := p.comparisonOp()
	if op == "" {
		return x
	}
	c := &compareExpr{first: x}
	for ; op != ""; op = p.comparisonOp() {
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, p.binary(0))
		p.chain(len(c.ops))
	}
	c.pos = p.span(start)
	return c
}

// levels lists the left-associative binary operators from the loosest to the tightest.
var levels = [][]string{{"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%", "@"}}

func (p *parser) binary(level int) expr {
	if level == len(levels) {
		return p.unary()
	}
	start := p.cur().pos
	x := p.binary(level + 1)
	for n := 0; ; n++ {
		op := p.oneOf(levels[level])
		if op == "" {
			return x
		}
		p.chain(n)
		y := p.binary(level + 1)
		x = &binaryExpr{node{p.span(start)}, op, x, y}
	}
}

func (p *parser) oneOf(ops []string) string {
	if p.cur().kind != tOp {
		return ""
	}
	for _, op := range ops {
		if p.accept(op) {
			return op
		}
	}
	return ""
}

func (p *parser) unary() expr {
	start := p.cur().pos
	var ops []string
	for p.is("-") || p.is("+") || p.is("~") {
		ops = append(ops, p.next().text)
		if len(ops) > maxDepth {
			p.fail(start, "expression too long: more than %d unary operators in a row", maxDepth)
		}
	}
	x := p.power()
	for i := len(ops) - 1; i >= 0; i-- {
		if n, ok := x.(*intExpr); ok && ops[i] == "-" && (n.v > 0 || n.big) {
			x = &intExpr{node: node{p.span(start)}, v: -n.v}
			continue
		}
		x = &unaryExpr{node{p.span(start)}, ops[i], x}
	}
	p.noBig(x)
	return x
}

func (p *parser) noBig(x expr) {
	if n, ok := x.(*intExpr); ok && n.big {
		p.fail(n.pos, "the integer literal 9223372036854775808 does not fit into 64 bits")
	}
}

// power parses a ** b ** c, right-associative, without recursing over the chain.
func (p *parser) power() expr {
	start := p.cur().pos
	terms := []expr{p.postfix()}
	for p.accept("**") {
		p.noBig(terms[len(terms)-1])
		p.chain(len(terms))
		if p.is("-") || p.is("+") || p.is("~") { // -x binds looser on the left of **, but is allowed on its right
			terms = append(terms, p.deepUnary())
			break
		}
		terms = append(terms, p.postfix())
	}
	x := terms[len(terms)-1]
	if len(terms) > 1000 {
		p.fail(start, "expression too long: a tower of %d powers", len(terms))
	}
	for i := len(terms) - 2; i >= 0; i-- {
		x = &binaryExpr{node{p.span(start)}, "**", terms[i], x}
	}
	return x
}

func (p *parser) deepUnary() expr {
	defer p.enter()()
	return p.unary()
}

func (p *parser) postfix() expr {
	start := p.cur().pos
	x := p.atom()
	for n := 0; ; n++ {
		if n > maxChain/2 {
			p.fail(p.cur().pos, "expression too long: more than %d calls, attributes or subscripts in one chain", maxChain/2)
		}
		switch {
		case p.accept("."):
			name := p.name()
			x = &attrExpr{node{p.span(start)}, x, name.text}
		case p.is("("):
			x = p.call(x, start)
		case p.accept("["):
			x = p.subscript(x, start)
		default:
			return x
		}
	}
}

func (p *parser) call(fn expr, start Pos) expr {
	defer p.enter()()
	p.expect("(")
	c := &callExpr{fn: fn}
	for !p.is(")") {
		t := p.cur()
		switch {
		case p.accept("**"):
			c.kws = append(c.kws, keyword{"**", t.pos, p.expr()})
		case t.kind == tName && p.toks[p.i+1].text == "=" && p.toks[p.i+1].kind == tOp:
			p.i += 2
			c.kws = append(c.kws, keyword{t.text, t.pos, p.expr()})
		default:
			a := p.starred()
			if _, star := a.(*starExpr); !star && len(c.kws) > 0 {
				p.fail(t.pos, "positional argument follows keyword argument")
			}
			if p.is("for") {
				a = p.comprehension(a, nil, a.at())
			}
			c.args = append(c.args, a)
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	c.pos = p.span(start)
	return c
}

func (p *parser) subscript(x expr, start Pos) expr {
	defer p.enter()()
	e := &indexExpr{x: x}
	for !p.is("]") {
		e.subs = append(e.subs, p.slice())
		if !p.accept(",") {
			break
		}
		e.tup = true
	}
	if len(e.subs) == 0 {
		p.unexpected("an index")
	}
	p.expect("]")
	e.pos = p.span(start)
	return e
}

func (p *parser) slice() expr {
	start := p.cur().pos
	s := &sliceExpr{}
	if !p.is(":") {
		x := p.expr()
		if !p.is(":") {
			return x
		}
		s.lo = x
	}
	p.expect(":")
	end := func() bool { return p.is(":") || p.is("]") || p.is(",") }
	if !end() {
		s.hi = p.expr()
	}
	if p.accept(":") && !end() {
		s.step = p.expr()
	}
	s.pos = p.span(start)
	return s
}

func (p *parser) atom() expr {
	t := p.cur()
	n := node{t.pos}
	switch t.kind {
	case tName:
		p.next()
		return &nameExpr{n, t.text}
	case tInt:
		p.next()
		v, _ := strconv.ParseUint(t.text, 0, 64)
		if v > 1<<63 {
			p.fail(t.pos, "the integer literal %s does not fit into 64 bits", short(t.text))
		}
		e := &intExpr{node: n, v: int64(v), big: v == 1<<63}
		if e.big {
			e.v = math.MinInt64
			if p.toks[max(p.i-2, 0)].text != "-" {
				p.noBig(e)
			}
		}
		return e
	case tFloat:
		p.next()
		return &floatExpr{n, parseFloat(t.text)}
	case tString, tFString:
		return p.strings()
	case tKeyword:
		switch t.text {
		case "True", "False", "None":
			p.next()
			return &constExpr{n, t.text}
		}
	case tOp:
		switch t.text {
		case "(":
			return p.paren()
		case "[":
			return p.list()
		case "{":
			return p.dict()
		case "...":
			p.next()
			return &constExpr{n, "Ellipsis"}
		}
	}
	p.unexpected("an expression")
	return nil
}

// strings parses adjacent string literals, which are one string.
func (p *parser) strings() expr {
	start := p.cur().pos
	out := &fstrExpr{}
	isF := false
	for p.cur().kind == tString || p.cur().kind == tFString {
		t := p.next()
		if t.kind == tString {
			out.add(&strExpr{node{t.pos}, t.text}, "")
			continue
		}
		isF = true
		p.fstring(out, t)
	}
	out.pos = p.span(start)
	if isF {
		return out
	}
	var b strings.Builder
	for _, part := range out.parts {
		b.WriteString(part.(*strExpr).v)
	}
	return &strExpr{node{out.pos}, b.String()}
}

func (f *fstrExpr) add(e expr, spec string) {
	f.parts = append(f.parts, e)
	f.specs = append(f.specs, spec)
}

// fstring splits an f-string into its text and the expressions in its braces.
func (p *parser) fstring(out *fstrExpr, t token) {
	s := t.text
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			out.add(&strExpr{node{t.pos}, text.String()}, "")
			text.Reset()
		}
	}
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case (c == '{' || c == '}') && i+1 < len(s) && s[i+1] == c:
			text.WriteByte(c)
			i += 2
		case c == '}':
			p.fail(t.pos, "f-string: single '}' is not allowed")
		case c == '{':
			flush()
			n := p.field(out, t, s[i+1:])
			i += 1 + n
		case c == '\\' && !t.raw && i+1 < len(s):
			i += 2 + decodeEscape(&text, s[i+1], s[i+2:], func(m string) { p.fail(t.pos, "%s", m) })
		default:
			text.WriteByte(c)
			i++
		}
	}
	flush()
}

// field parses one replacement field and gives the number of bytes up to and including its closing brace.
func (p *parser) field(out *fstrExpr, t token, s string) int {
	depth, end, colon := 0, -1, -1
	for i := 0; i < len(s) && end < 0; i++ {
		switch c := s[i]; {
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == '}' && depth == 0:
			end = i
		case c == ')' || c == ']' || c == '}':
			depth--
		case c == ':' && depth == 0 && colon < 0:
			colon = i
		}
	}
	if end < 0 {
		p.fail(t.pos, "f-string: expecting '}'")
	}
	body, spec := s[:end], ""
	if colon >= 0 {
		body, spec = s[:colon], s[colon+1:end]
	}
	for _, conv := range []string{"!r", "!s", "!a"} {
		body = strings.TrimSuffix(body, conv)
	}
	if strings.TrimSpace(body) == "" {
		p.fail(t.pos, "f-string: empty expression not allowed")
	}
	if utf8.RuneCountInString(body) > 2000 {
		p.fail(t.pos, "f-string: expression too long")
	}
	toks, err := scan(newSource(p.src.name, body), strings.TrimSpace(body))
	if err != nil {
		p.fail(t.pos, "f-string: %s", err.(*Error).Msg)
	}
	for i := range toks {
		toks[i].pos = t.pos
	}
	inner := &parser{src: p.src, toks: toks, depth: p.depth + 1}
	e := inner.exprList()
	if inner.cur().kind != tNewline {
		p.fail(t.pos, "f-string: invalid syntax")
	}
	out.add(e, spec)
	return end + 1
}

func (p *parser) paren() expr {
	defer p.enter()()
	start := p.next().pos
	if p.accept(")") {
		return &tupleExpr{node{p.span(start)}, nil}
	}
	first := p.starred()
	if p.is("for") { // a generator expression, which is a list in a script
		c := p.comprehension(first, nil, start)
		p.expect(")")
		return c
	}
	if !p.is(",") {
		p.expect(")")
		return first
	}
	t := &tupleExpr{elems: []expr{first}}
	for p.accept(",") && !p.is(")") {
		t.elems = append(t.elems, p.starred())
	}
	p.expect(")")
	t.pos = p.span(start)
	return t
}

func (p *parser) list() expr {
	defer p.enter()()
	start := p.next().pos
	l := &listExpr{}
	for !p.is("]") {
		e := p.starred()
		if p.is("for") {
			c := p.comprehension(e, nil, start)
			p.expect("]")
			return c
		}
		l.elems = append(l.elems, e)
		if !p.accept(",") {
			break
		}
	}
	p.expect("]")
	l.pos = p.span(start)
	return l
}

func (p *parser) dict() expr {
	defer p.enter()()
	start := p.next().pos
	d := &dictExpr{}
	for !p.is("}") {
		if p.is("**") {
			at := p.next().pos
			d.keys, d.values = append(d.keys, &starExpr{node{at}, p.expr()}), append(d.values, &constExpr{node{at}, "None"})
			if !p.accept(",") {
				break
			}
			continue
		}
		k := p.expr()
		if !p.is(":") {
			p.fail(k.at(), "sets are not supported in a script")
		}
		p.next()
		v := p.expr()
		if p.is("for") {
			c := p.comprehension(k, v, start)
			p.expect("}")
			return c
		}
		d.keys, d.values = append(d.keys, k), append(d.values, v)
		if !p.accept(",") {
			break
		}
	}
	p.expect("}")
	d.pos = p.span(start)
	return d
}

func (p *parser) comprehension(elem, value expr, start Pos) expr {
	p.expect("for")
	c := &compExpr{elem: elem, value: value, target: p.targetList()}
	p.expect("in")
	c.iter = p.or()
	for p.accept("if") {
		c.conds = append(c.conds, p.or())
	}
	if p.is("for") {
		p.fail(p.cur().pos, "a comprehension with two 'for' is not supported")
	}
	c.pos = p.span(start)
	return c
}
