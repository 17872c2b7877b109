package progen

import (
	"slices"
	"strings"
)

// control writes a branch or a loop whose body may change outer variables.
func (g *gen) control() {
	if g.depth >= 3 {
		return
	}
	x := g.find(isWide, isExact, filled)
	if x == nil {
		return
	}
	cond := pick(g, "flag", "n > 1", "n == 0 and flag", "not flag", "float(X.sum()) > 0.0", "bool((X > 0).all())", "X.numel() > 4")
	if g.inLoop() && g.IntN(3) == 0 {
		cond = "i > 0"
	}
	cond = strings.ReplaceAll(cond, "X", x.name)
	g.depth++
	defer func() { g.depth-- }()
	switch g.IntN(5) {
	case 0, 1:
		g.line("if %s:", cond)
		g.block(0)
		if g.IntN(2) == 0 {
			g.line("else:")
			g.block(0)
		}
	case 2:
		g.line("for i in range(%s):", pick(g, "n", "3", "n + 1", "2", "1, n + 2"))
		g.block(1)
	case 3:
		w := g.let(nil, x.dtype, false, true, "%s.abs().mean()", x.name)
		c := "c" + w.name
		g.line("%s = 0", c)
		g.line("while %s < %s:", c, pick(g, "n", "3", "n + 2"))
		g.indent++
		g.line("%s += 1", c)
		g.indent--
		g.block(2)
	case 4:
		l := "l" + x.name
		g.line("%s = [%s]", l, x.name)
		g.line("for i in range(%s):", pick(g, "n", "3"))
		g.indent++
		g.line("%s.append(torch.sin(%s[-1]) * (i + 1))", l, l)
		g.indent--
		shape := slices.Clone(x.shape)
		if g.IntN(2) == 0 {
			g.let(shape, x.dtype, false, true, "torch.stack(%s).sum(0)", l)
		} else {
			g.let(shape, x.dtype, false, false, "%s[%s]", l, pick(g, "-1", "0", "len("+l+") // 2"))
		}
	}
}

// inLoop reports whether the line being written stands in a for, so that i is there.
func (g *gen) inLoop() bool {
	indent := g.indent
	for k := len(g.lines) - 1; k >= 0; k-- {
		l := g.lines[k]
		in := 0
		for in < len(l) && l[in] == ' ' {
			in++
		}
		if in/4 < indent {
			indent = in / 4
			if len(l) > in+4 && l[in:in+4] == "for " {
				return true
			}
		}
	}
	return false
}

// block writes an indented block; what it defines goes with it, but it changes some outer variables. Loops (1: for, 2: while) may be left early.
func (g *gen) block(loop int) {
	outer := len(g.vars)
	g.indent++
	for range 1 + g.IntN(4) {
		g.statement()
	}
	if loop > 0 && g.IntN(3) == 0 {
		if x := g.find(isWide, isExact, filled); x != nil {
			g.line("if float(%s.mean()) > %s:", x.name, pick(g, "0.5", "0.0", "-0.3"))
			g.line("    %s", pick(g, "break", "continue"))
		}
	}
	inner := slices.Clone(g.vars[outer:])
	changed := false
	for _, v := range g.vars[:outer] {
		i := slices.IndexFunc(inner, func(w *variable) bool {
			return w.dtype == v.dtype && slices.Equal(w.shape, v.shape) && (v.inexact || !w.inexact)
		})
		if i < 0 || g.IntN(2) == 0 {
			continue
		}
		changed = true
		w := inner[i]
		switch {
		case isFloat(v) && g.IntN(2) == 0:
			g.line("%s = torch.tanh(%s) * 0.5 + %s", v.name, w.name, v.name)
		default:
			g.line("%s = %s", v.name, w.name)
			v.owned = v.owned && w.owned
		}
	}
	if v := g.find(isWide, func(v *variable) bool { return slices.Contains(g.vars[:outer], v) }); !changed && v != nil {
		g.line("%s = torch.sin(%s) + 0.1", v.name, v.name)
	}
	g.vars = g.vars[:outer]
	g.indent--
}
