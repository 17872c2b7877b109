package script

import "strings"

// Types in comments, as code for Python 2 states them:
//
//	def f(x, n):
//	    # type: (Tensor, int) -> Tensor
//	a = []  # type: List[int]

const typeMark = "# type:"

// typeComment takes note of a comment that states a type.
func (s *source) typeComment(line int, text string) {
	rest, ok := strings.CutPrefix(text, typeMark)
	if rest = strings.TrimSpace(rest); !ok || rest == "" || strings.HasPrefix(rest, "ignore") {
		return
	}
	if s.types == nil {
		s.types = map[int]string{}
	}
	s.types[line], _, _ = strings.Cut(rest, "#")
}

// typeOn parses the type that the comment at the end of a line states; nil where there is none.
func (p *parser) typeOn(line int) expr {
	text, ok := p.src.types[line]
	if !ok || strings.Contains(text, "->") {
		return nil
	}
	return p.typeText(text, Pos{Line: line, Col: 1}).exprList()
}

// typeText is a parser of a type in a comment.
func (p *parser) typeText(text string, at Pos) *parser {
	toks, err := scan(newSource(p.src.name, text), text)
	if err != nil {
		p.fail(at, "the type in the comment is not understood")
	}
	for i := range toks {
		toks[i].pos = at
	}
	return &parser{src: p.src, toks: toks}
}

// signatureComment applies a comment `# type: (A, B) -> R` on the lines from first to before last to a function; the parameters of
// `(...) -> R` have comments of their own.
func (p *parser) signatureComment(d *funcDef, first, last int) {
	for line := first; line <= last; line++ {
		text, ok := p.src.types[line]
		if !ok || !strings.Contains(text, "->") {
			continue
		}
		at := Pos{Line: line, Col: 1}
		t := p.typeText(text, at)
		t.expect("(")
		var types []expr
		dots := t.accept("...")
		for !dots && !t.is(")") {
			types = append(types, t.expr())
			if !t.accept(",") {
				break
			}
		}
		t.expect(")")
		t.expect("->")
		if d.ret == nil {
			d.ret = t.expr()
		}
		if dots {
			return
		}
		params := d.params
		if len(params) == len(types)+1 && params[0].name == "self" {
			params = params[1:]
		}
		if len(params) != len(types) {
			p.fail(at, "the type comment of '%s' has %d parameters, the function has %d", short(d.name), len(types), len(params))
		}
		for i, typ := range types {
			params[i].typ = typ
		}
		return
	}
}
