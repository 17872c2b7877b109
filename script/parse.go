package script

import (
	"strconv"
)

const (
	maxDepth = 300   // nesting of expressions inside one another
	maxChain = 20000 // operators or calls in one chain
)

// Parse reads a script: the subset of Python that torch.jit.script accepts. The error is an *Error with the place.
func Parse(name string, src []byte) (f *File, err error) {
	text := string(src)
	file := newSource(name, text)
	toks, err := scan(file, text)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			f, err = nil, e
		}
	}()
	p := &parser{src: file, toks: toks}
	return p.file(), nil
}

// parser is a recursive-descent parser over the tokens of a file; a syntax error is a panic with an *Error.
type parser struct {
	src   *source
	toks  []token
	i     int
	depth int
	loops int
}

func (p *parser) cur() token { return p.toks[p.i] }

func (p *parser) next() token {
	t := p.toks[p.i]
	if t.kind != tEOF {
		p.i++
	}
	return t
}

func (p *parser) fail(at Pos, format string, args ...any) { panic(p.src.errorf(at, format, args...)) }

func (p *parser) is(text string) bool {
	t := p.cur()
	return t.text == text && (t.kind == tOp || t.kind == tKeyword)
}

func (p *parser) accept(text string) bool {
	if p.is(text) {
		p.i++
		return true
	}
	return false
}

func (p *parser) expect(text string) token {
	if !p.is(text) {
		p.unexpected("'" + text + "'")
	}
	return p.next()
}

func (p *parser) unexpected(want string) {
	t := p.cur()
	got := t.kind.String()
	if t.kind == tName || t.kind == tKeyword || t.kind == tOp {
		got = "'" + short(t.text) + "'"
	}
	p.fail(t.pos, "invalid syntax: expected %s, found %s", want, got)
}

func (p *parser) name() token {
	if p.cur().kind != tName {
		p.unexpected("a name")
	}
	return p.next()
}

func (p *parser) endLine() {
	if p.cur().kind != tNewline && p.cur().kind != tEOF {
		p.unexpected("the end of the line")
	}
	p.next()
}

// enter bounds the nesting of recursive rules; use as defer p.enter()().
func (p *parser) enter() func() {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.cur().pos, "too deeply nested: more than %d levels", maxDepth)
	}
	return func() { p.depth-- }
}

// span is the position from one node's start to the token before the current one.
func (p *parser) span(from Pos) Pos {
	last := p.toks[max(p.i-1, 0)].pos
	from.End = 0
	if last.Line == from.Line {
		from.End = last.End
	}
	return from
}

func (p *parser) file() *File {
	f := &File{src: p.src, funcs: map[string]*funcDef{}, classes: map[string]*classDef{}, consts: map[string]expr{}}
	for p.cur().kind != tEOF {
		p.topLevel(f)
	}
	for _, d := range f.funcs {
		d.file = f
	}
	for _, c := range f.classes {
		c.file = f
		for _, d := range c.methods {
			d.file, d.owner = f, c
		}
	}
	return f
}

func (p *parser) topLevel(f *File) {
	t := p.cur()
	switch {
	case p.is("@") || p.is("def") || p.is("class"):
		decorators := p.decorators()
		if p.is("class") {
			c := p.class(decorators)
			p.define(f, c.name, c.pos)
			f.classes[c.name] = c
			return
		}
		d := p.def(decorators)
		p.define(f, d.name, d.pos)
		f.funcs[d.name] = d
	case p.is("import") || p.is("from"):
		f.imports = append(f.imports, p.imports())
	case t.kind == tKeyword && t.text != "None" && t.text != "True" && t.text != "False" && t.text != "not" && t.text != "pass":
		p.fail(t.pos, "'%s' is not supported at the top level of a script: only imports, functions, classes and constants are", t.text)
	default:
		for _, s := range p.simpleLine() {
			if a, ok := s.(*assignStmt); ok && a.value != nil {
				for _, target := range a.targets {
					n, ok := target.(*nameExpr)
					if !ok {
						continue
					}
					if c := namedTupleCall(n, a.value); c != nil {
						p.define(f, c.name, c.pos)
						f.classes[c.name] = c
						continue
					}
					f.consts[n.name] = a.value
				}
			} else if e, ok := s.(*exprStmt); ok {
				if _, doc := e.x.(*strExpr); !doc {
					p.fail(e.pos, "statements at the top level of a script must be imports, functions, classes or constants")
				}
			}
		}
	}
}

func (p *parser) define(f *File, name string, at Pos) {
	delete(f.funcs, name)
	delete(f.classes, name)
	f.order = append(f.order, name)
}

func (p *parser) decorators() []expr {
	var out []expr
	for p.accept("@") {
		out = append(out, p.expr())
		p.endLine()
	}
	if !p.is("def") && !p.is("class") {
		p.unexpected("'def' or 'class' after a decorator")
	}
	return out
}

// imports parses `import a.b as c, d` or `from a import b as c`.
func (p *parser) imports() *importStmt {
	s := &importStmt{node: node{p.cur().pos}, names: map[string]string{}}
	if p.accept("import") {
		for {
			module := p.dotted()
			local := module
			if p.accept("as") {
				local = p.name().text
			}
			s.names[local] = "=" + module
			if !p.accept(",") {
				break
			}
		}
		p.endLine()
		return s
	}
	p.expect("from")
	s.module = p.dotted()
	p.expect("import")
	paren := p.accept("(")
	for {
		if p.accept("*") {
			p.fail(s.pos, "'from %s import *' is not supported: import names one by one", s.module)
		}
		name := p.name().text
		local := name
		if p.accept("as") {
			local = p.name().text
		}
		s.names[local] = name
		if !p.accept(",") || paren && p.is(")") {
			break
		}
	}
	if paren {
		p.expect(")")
	}
	p.endLine()
	return s
}

func (p *parser) dotted() string {
	s := p.name().text
	for p.accept(".") {
		s += "." + p.name().text
	}
	return s
}

func (p *parser) def(decorators []expr) *funcDef {
	p.expect("def")
	name := p.name()
	d := &funcDef{node: node{name.pos}, name: name.text, decorators: decorators}
	p.expect("(")
	seen := map[string]bool{}
	kwOnly := false
	for !p.is(")") {
		star := ""
		if p.is("*") || p.is("**") {
			star = p.next().text
			kwOnly = true
		}
		if star != "*" || !p.is(",") {
			prm := p.param(kwOnly)
			prm.star = star
			if seen[prm.name] {
				p.fail(prm.pos, "duplicate argument '%s' in the definition of %s", short(prm.name), short(d.name))
			}
			seen[prm.name] = true
			if n := len(d.params); n > 0 && prm.deflt == nil && d.params[n-1].deflt != nil && !kwOnly && star == "" {
				p.fail(prm.pos, "parameter '%s' without a default follows one with a default", short(prm.name))
			}
			d.params = append(d.params, prm)
		}
		more := p.accept(",")
		if n := len(d.params); n > 0 && d.params[n-1].typ == nil {
			d.params[n-1].typ = p.typeOn(p.toks[p.i-1].pos.Line)
		}
		if !more {
			break
		}
	}
	p.expect(")")
	if p.accept("->") {
		d.ret = p.expr()
	}
	loops := p.loops
	p.loops = 0
	header := p.cur().pos.Line
	d.body = p.block()
	p.loops = loops
	last := header
	if len(d.body) > 0 {
		last = max(header, d.body[0].at().Line-1)
	}
	p.signatureComment(d, header, last)
	return d
}

func (p *parser) param(kwOnly bool) param {
	if p.is("/") {
		p.fail(p.cur().pos, "'%s' in a parameter list is not supported", p.cur().text)
	}
	t := p.name()
	prm := param{name: t.text, pos: t.pos, kwOnly: kwOnly}
	if p.accept(":") {
		prm.typ = p.expr()
	}
	if p.accept("=") {
		prm.deflt = p.expr()
	}
	return prm
}

func (p *parser) class(decorators []expr) *classDef {
	p.expect("class")
	name := p.name()
	c := &classDef{node: node{name.pos}, name: name.text, methods: map[string]*funcDef{}, decorators: decorators}
	if p.accept("(") {
		for !p.is(")") {
			c.bases = append(c.bases, p.expr())
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
	}
	p.expect(":")
	if p.cur().kind != tNewline {
		p.simpleLine()
		return c
	}
	p.next()
	p.openBlock()
	for p.cur().kind != tDedent && p.cur().kind != tEOF {
		p.member(c)
	}
	p.next()
	return c
}

func (p *parser) member(c *classDef) {
	switch {
	case p.is("@") || p.is("def"):
		d := p.def(p.decorators())
		c.methods[d.name] = d
		c.order = append(c.order, d.name)
	case p.is("class"):
		p.fail(p.cur().pos, "a class inside a class is not supported")
	default:
		for _, s := range p.simpleLine() {
			switch s := s.(type) {
			case *assignStmt:
				c.fields = append(c.fields, s)
			case *passStmt:
			case *exprStmt:
				_, doc := s.x.(*strExpr)
				_, dots := s.x.(*constExpr)
				if !doc && !dots {
					p.fail(s.pos, "only methods, constants and annotations are supported in a class body")
				}
			default:
				p.fail(s.at(), "only methods, constants and annotations are supported in a class body")
			}
		}
	}
}

func (p *parser) openBlock() {
	if p.cur().kind != tIndent {
		p.fail(p.cur().pos, "expected an indented block")
	}
	p.next()
}

// block parses `: suite`.
func (p *parser) block() []stmt {
	p.expect(":")
	if p.cur().kind != tNewline {
		return p.simpleLine()
	}
	p.next()
	p.openBlock()
	var out []stmt
	for p.cur().kind != tDedent && p.cur().kind != tEOF {
		out = append(out, p.stmt()...)
	}
	if p.cur().kind == tDedent {
		p.next()
	}
	return out
}

func (p *parser) stmt() []stmt {
	t := p.cur()
	if t.kind == tIndent {
		p.fail(t.pos, "unexpected indent")
	}
	if t.kind == tKeyword {
		switch t.text {
		case "if":
			return []stmt{p.ifStmt()}
		case "while":
			p.next()
			s := &whileStmt{node: node{t.pos}, cond: p.named()}
			s.body = p.loopBody()
			return []stmt{s}
		case "for":
			return []stmt{p.forStmt()}
		case "with":
			return []stmt{p.withStmt()}
		case "def", "class", "async", "try", "lambda", "global", "nonlocal", "yield":
			what := map[string]string{"def": "a function inside a function", "class": "a class inside a function", "lambda": "lambda"}[t.text]
			if what == "" {
				what = "'" + t.text + "'"
			}
			p.fail(t.pos, "%s is not supported in a script", what)
		}
	}
	if p.is("@") {
		p.fail(t.pos, "a function inside a function is not supported in a script")
	}
	return p.simpleLine()
}

func (p *parser) loopBody() []stmt {
	p.loops++
	body := p.block()
	p.loops--
	if p.is("else") {
		p.fail(p.cur().pos, "'else' after a loop is not supported")
	}
	return body
}

// ifStmt parses if and its elifs without recursing over the elifs.
func (p *parser) ifStmt() *ifStmt {
	t := p.next()
	root := &ifStmt{node: node{t.pos}, cond: p.named()}
	root.then = p.block()
	last := root
	for n := 0; p.is("elif"); n++ {
		if n > 2000 {
			p.fail(p.cur().pos, "too many elif branches")
		}
		t = p.next()
		s := &ifStmt{node: node{t.pos}, cond: p.named()}
		s.then = p.block()
		last.els = []stmt{s}
		last = s
	}
	if p.accept("else") {
		last.els = p.block()
	}
	return root
}

func (p *parser) forStmt() stmt {
	t := p.next()
	s := &forStmt{node: node{t.pos}, target: p.targetList()}
	p.expect("in")
	s.iter = p.exprList()
	s.body = p.loopBody()
	return s
}

func (p *parser) withStmt() stmt {
	t := p.next()
	s := &withStmt{node: node{t.pos}}
	for {
		s.items = append(s.items, p.expr())
		if p.is("as") {
			p.fail(p.cur().pos, "'with … as name' is not supported")
		}
		if !p.accept(",") {
			break
		}
	}
	s.body = p.block()
	return s
}

func (p *parser) simpleLine() []stmt {
	var out []stmt
	for {
		out = append(out, p.simple())
		if !p.accept(";") || p.cur().kind == tNewline {
			break
		}
	}
	p.endLine()
	return out
}

func (p *parser) simple() stmt {
	t := p.cur()
	n := node{t.pos}
	if t.kind == tKeyword {
		switch t.text {
		case "pass":
			p.next()
			return &passStmt{n}
		case "break", "continue":
			p.next()
			if p.loops == 0 {
				p.fail(t.pos, "'%s' outside a loop", t.text)
			}
			if t.text == "break" {
				return &breakStmt{n}
			}
			return &continueStmt{n}
		case "return":
			p.next()
			s := &returnStmt{node: n}
			if p.cur().kind != tNewline && !p.is(";") {
				s.x = p.exprList()
			}
			return s
		case "assert":
			p.next()
			s := &assertStmt{node: n, cond: p.expr()}
			if p.accept(",") {
				s.msg = p.expr()
			}
			return s
		case "raise":
			p.next()
			s := &raiseStmt{node: n}
			if p.cur().kind != tNewline && !p.is(";") {
				s.x = p.expr()
				if p.accept("from") {
					p.expr()
				}
			}
			return s
		case "del":
			p.next()
			s := &delStmt{node: n, targets: []expr{p.exprList()}}
			if tup, ok := s.targets[0].(*tupleExpr); ok {
				s.targets = tup.elems
			}
			return s
		case "import", "from":
			p.fail(t.pos, "import inside a function is not supported")
		case "global", "nonlocal", "yield", "await", "async", "try", "except", "finally", "if", "while", "for", "with", "def", "class":
			p.fail(t.pos, "invalid syntax: '%s' is not supported here", t.text)
		}
	}
	return p.assignment()
}

var augOps = map[string]string{
	"+=": "+", "-=": "-", "*=": "*", "/=": "/", "//=": "//", "%=": "%", "**=": "**", "@=": "@", "&=": "&", "|=": "|", "^=": "^", ">>=": ">>", "<<=": "<<",
}

func (p *parser) assignment() stmt {
	n := node{p.cur().pos}
	first := p.exprList()
	if op, ok := augOps[p.cur().text]; ok && p.cur().kind == tOp {
		p.next()
		p.checkTarget(first, false)
		s := &augStmt{node: n, op: op, target: first, value: p.exprList()}
		s.pos = p.span(n.pos)
		return s
	}
	if p.accept(":") {
		p.checkTarget(first, false)
		s := &assignStmt{node: n, targets: []expr{first}, typ: p.expr()}
		if p.accept("=") {
			s.value = p.exprList()
		}
		return s
	}
	if !p.is("=") {
		return &exprStmt{node{first.at()}, first}
	}
	s := &assignStmt{node: n, value: first}
	for p.accept("=") {
		p.checkTarget(s.value, true)
		s.targets = append(s.targets, s.value)
		s.value = p.exprList()
	}
	if _, isName := s.targets[0].(*nameExpr); isName && len(s.targets) == 1 {
		s.typ = p.typeOn(p.toks[p.i-1].pos.Line)
	}
	return s
}

// checkTarget refuses what cannot be assigned to.
func (p *parser) checkTarget(e expr, tuples bool) {
	switch e := e.(type) {
	case *nameExpr, *attrExpr, *indexExpr:
		return
	case *starExpr:
		p.fail(e.pos, "a starred assignment target must be in a list or tuple")
	case *tupleExpr:
		if tuples {
			p.checkTargets(e.elems)
			return
		}
	case *listExpr:
		if tuples {
			p.checkTargets(e.elems)
			return
		}
	}
	p.fail(e.at(), "cannot assign to this expression")
}

func (p *parser) checkTargets(elems []expr) {
	stars := 0
	for _, x := range elems {
		if s, ok := x.(*starExpr); ok {
			if stars++; stars > 1 {
				p.fail(s.pos, "only one starred expression is allowed in an assignment")
			}
			x = s.x
		}
		p.checkTarget(x, true)
	}
}

// targetList parses the target of a for loop or comprehension.
func (p *parser) targetList() expr {
	start := p.cur().pos
	first := p.target()
	if !p.is(",") {
		return first
	}
	t := &tupleExpr{node: node{start}, elems: []expr{first}}
	for p.accept(",") && !p.is("in") {
		t.elems = append(t.elems, p.target())
	}
	t.pos = p.span(start)
	return t
}

func (p *parser) target() expr {
	defer p.enter()()
	if p.is("(") || p.is("[") {
		closer := map[string]string{"(": ")", "[": "]"}[p.next().text]
		t := p.targetList()
		p.expect(closer)
		return t
	}
	e := p.postfix()
	p.checkTarget(e, true)
	return e
}

func parseFloat(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

// namedTupleCall is the class that P = namedtuple("P", ["a", "b"]) defines; nil for other values.
func namedTupleCall(n *nameExpr, e expr) *classDef {
	call, ok := e.(*callExpr)
	if !ok || len(call.args) != 2 {
		return nil
	}
	switch dottedName(call.fn) {
	case "namedtuple", "collections.namedtuple", "NamedTuple", "typing.NamedTuple":
	default:
		return nil
	}
	list, ok := call.args[1].(*listExpr)
	if !ok {
		return nil
	}
	c := &classDef{node: n.node, name: n.name, methods: map[string]*funcDef{}, bases: []expr{&nameExpr{n.node, "NamedTuple"}}}
	for _, el := range list.elems {
		var typ expr = &nameExpr{node{el.at()}, "Tensor"}
		if t, ok := el.(*tupleExpr); ok && len(t.elems) == 2 {
			el, typ = t.elems[0], t.elems[1]
		}
		s, ok := el.(*strExpr)
		if !ok {
			return nil
		}
		c.fields = append(c.fields, &assignStmt{node: s.node, targets: []expr{&nameExpr{s.node, s.v}}, typ: typ})
	}
	return c
}
