// Package progen makes random, well-typed scripts: shapes, dtypes, control flow, views, in-place writes, reductions, indexing and random
// numbers, mixed. Its tests run each in every way that gtc has and compare.
package progen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Program is a script with a function forward, and arguments for it.
type Program struct {
	Source string
	Args   []ir.Datum
	// Inexact says that a matrix product takes part, whose sums targets may order as they like.
	Inexact bool
}

// variable is a tensor of the program.
type variable struct {
	name  string
	shape []int
	dtype dtype.DType
	// inexact values depend on a matrix product: nothing that jumps may be computed from them.
	inexact bool
	// owned variables hold memory that the program may write to.
	owned bool
}

// gen writes one program.
type gen struct {
	*rand.Rand
	lines   []string
	indent  int
	vars    []*variable
	names   int
	depth   int
	inexact bool
}

// Generate makes the program of a seed; the same one at every call.
func Generate(seed uint64) *Program {
	g := &gen{Rand: newRand(seed), indent: 1}
	p := &Program{}
	params := []string{}
	for i := range 2 + g.IntN(3) {
		v := &variable{name: fmt.Sprintf("x%d", i), shape: g.shape(), dtype: pick(g, dtype.F32, dtype.F32, dtype.F32, dtype.F64, dtype.F64, dtype.I64, dtype.F16, dtype.Bool)}
		if i == 0 {
			v.dtype = dtype.F32
		}
		g.vars = append(g.vars, v)
		params = append(params, v.name+": Tensor")
		p.Args = append(p.Args, g.array(v))
	}
	params = append(params, "n: int", "flag: bool")
	p.Args = append(p.Args, int64(g.IntN(4)), g.IntN(2) == 0)
	for range 4 + g.IntN(14) {
		g.statement()
	}
	results := []string{}
	for _, v := range g.vars[max(0, len(g.vars)-4):] {
		results = append(results, v.name)
	}
	g.line("return (%s,)", strings.Join(results, ", "))
	p.Source = "import torch\nimport torch.nn.functional as F\nfrom torch import Tensor\n\ndef forward(" + strings.Join(params, ", ") + "):\n" + strings.Join(g.lines, "\n") + "\n"
	p.Inexact = g.inexact
	return p
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func pick[T any](g *gen, of ...T) T { return of[g.IntN(len(of))] }

// shape is mostly small; sizes of 0 and 1 and those beyond a vector occur.
func (g *gen) shape() []int {
	s := make([]int, pick(g, 0, 1, 1, 2, 2, 2, 3, 3, 4))
	for i := range s {
		s[i] = pick(g, 1, 2, 3, 3, 4, 4, 5, 7)
	}
	if len(s) > 0 && g.IntN(8) == 0 {
		s[g.IntN(len(s))] = pick(g, 0, 16, 17, 33, 65)
	}
	return s
}

func (g *gen) array(v *variable) *ir.Array {
	a := ir.NewArray(v.dtype, v.shape...)
	for i := range a.Len() {
		switch {
		case v.dtype.IsFloat():
			x := g.NormFloat64()
			if g.IntN(40) == 0 {
				x = pick(g, 0.0, 1, -1, 3)
			}
			a.SetFloat(i, x)
		case v.dtype == dtype.Bool:
			a.SetInt(i, int64(g.IntN(2)))
		default:
			a.SetInt(i, int64(g.IntN(9)-4))
		}
	}
	return a
}

func (g *gen) line(format string, args ...any) {
	g.lines = append(g.lines, strings.Repeat("    ", g.indent)+fmt.Sprintf(format, args...))
}

// let makes a new variable of an expression.
func (g *gen) let(shape []int, d dtype.DType, inexact, owned bool, format string, args ...any) *variable {
	v := &variable{name: fmt.Sprintf("v%d", g.names), shape: slices.Clone(shape), dtype: d, inexact: inexact, owned: owned}
	g.names++
	g.line("%s = %s", v.name, fmt.Sprintf(format, args...))
	g.vars = append(g.vars, v)
	return v
}

// find picks a variable that satisfies every condition, a late one rather; nil where there is none.
func (g *gen) find(conds ...func(*variable) bool) *variable {
	var fit []*variable
	for _, v := range g.vars {
		if !slices.ContainsFunc(conds, func(c func(*variable) bool) bool { return !c(v) }) {
			fit = append(fit, v)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[max(g.IntN(len(fit)), g.IntN(len(fit)))]
}

func isFloat(v *variable) bool { return v.dtype.IsFloat() }
func isWide(v *variable) bool  { return v.dtype == dtype.F32 || v.dtype == dtype.F64 }
func isInt(v *variable) bool   { return v.dtype == dtype.I64 || v.dtype == dtype.I32 }
func isBool(v *variable) bool  { return v.dtype == dtype.Bool }
func isExact(v *variable) bool { return !v.inexact }
func isOwned(v *variable) bool { return v.owned }
func number(v *variable) bool  { return v.dtype != dtype.Bool }
func filled(v *variable) bool  { return !slices.Contains(v.shape, 0) }
func small(v *variable) bool   { return count(v.shape) <= 3000 }
func ranked(lo int) func(*variable) bool {
	return func(v *variable) bool { return len(v.shape) >= lo }
}
func rankedJust(n int) func(*variable) bool {
	return func(v *variable) bool { return len(v.shape) == n }
}
func shaped(s []int) func(*variable) bool {
	return func(v *variable) bool { return slices.Equal(v.shape, s) }
}
func typed(d dtype.DType) func(*variable) bool {
	return func(v *variable) bool { return v.dtype == d }
}

func count(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

func torchName(d dtype.DType) string {
	return "torch." + map[dtype.DType]string{dtype.F32: "float32", dtype.F64: "float64", dtype.F16: "float16", dtype.BF16: "bfloat16", dtype.I64: "int64", dtype.I32: "int32", dtype.Bool: "bool"}[d]
}

// list writes ints as a script's list.
func list(s []int) string {
	return "[" + strings.Trim(strings.ReplaceAll(fmt.Sprint(s), " ", ", "), "[]") + "]"
}

// statement writes one more statement, or a few.
func (g *gen) statement() {
	before := len(g.lines)
	for try := 0; len(g.lines) == before && try < 20; try++ {
		k := g.IntN(100)
		switch {
		case k < 18:
			g.unary()
		case k < 36:
			g.binary()
		case k < 40:
			g.integer()
		case k < 45:
			g.compare()
		case k < 57:
			g.view()
		case k < 68:
			g.move()
		case k < 78:
			g.reduce()
		case k < 82:
			g.product()
		case k < 91:
			g.write()
		case k < 93:
			g.random()
		default:
			g.control()
		}
	}
}

func (g *gen) unary() {
	x := g.find(isFloat, small)
	if x == nil {
		return
	}
	smooth := []string{"torch.sin(%s)", "torch.cos(%s)", "torch.tanh(%s)", "torch.sigmoid(%s)", "torch.exp(torch.tanh(%s))", "%s.neg()", "%s.abs()", "torch.relu(%s)", "%s.abs().sqrt()",
		"torch.log1p(%s.abs())", "torch.erf(%s)", "torch.rsqrt(%s.abs() + 1.0)", "F.silu(%s)", "F.softplus(%s)", "%s.square()", "%s.clamp(-1.0, 1.0)", "F.leaky_relu(%s, 0.1)", "F.elu(%s)",
		"torch.atan(%s)", "F.hardtanh(%s)", "%s.sinc()", "torch.expm1(torch.sin(%s))", "F.gelu(%s)", "-%s", "%s * 0.5", "1.0 - %s", "%s / 3", "2.0 / (%s * %[1]s + 1.0)", "%s ** 2", "F.logsigmoid(%s)",
		"F.mish(%s)", "torch.nan_to_num(%s)", "F.hardswish(%s)", "torch.asinh(%s)", "%s.pow(3)", "torch.logit(torch.sigmoid(%s) * 0.8 + 0.1)", "%s.to(torch.float64)", "%s.float()", "%s.double() * 2"}
	jumpy := []string{"torch.floor(%s)", "torch.round(%s)", "torch.sign(%s)", "torch.ceil(%s)", "torch.trunc(%s)", "torch.frac(%s)", "torch.reciprocal(%s)", "torch.log(%s)", "%s %% 1.5", "%s // 0.7", "torch.heaviside(%s, %[1]s)", "torch.fmod(%s, 0.7)", "torch.remainder(%s, -0.4)"}
	e := pick(g, smooth...)
	if !x.inexact && g.IntN(4) == 0 {
		e = pick(g, jumpy...)
	}
	d := x.dtype
	switch {
	case strings.Contains(e, "float64") || strings.Contains(e, "double"):
		d = dtype.F64
	case strings.Contains(e, "float()"):
		d = dtype.F32
	case x.dtype == dtype.F16 && strings.HasPrefix(e, "F."):
		return // some are not there for halves
	}
	g.let(x.shape, d, x.inexact, !strings.Contains(e, ".to(") && !strings.Contains(e, "float()"), e, x.name)
}

// like gives a variable that broadcasts with x, and the shape of both together.
func (g *gen) like(x *variable, conds ...func(*variable) bool) (*variable, []int) {
	var shape []int
	y := g.find(append(conds, func(v *variable) bool {
		_, ok := broadcast(x.shape, v.shape)
		return ok && (v != x || g.IntN(3) == 0)
	})...)
	if y != nil {
		shape, _ = broadcast(x.shape, y.shape)
	}
	return y, shape
}

func broadcast(a, b []int) ([]int, bool) {
	out := make([]int, max(len(a), len(b)))
	for i := range out {
		s, t := 1, 1
		if j := i - len(out) + len(a); j >= 0 {
			s = a[j]
		}
		if j := i - len(out) + len(b); j >= 0 {
			t = b[j]
		}
		switch {
		case s == t || t == 1:
			out[i] = s
		case s == 1:
			out[i] = t
		default:
			return nil, false
		}
	}
	return out, true
}

// promoted is the dtype of an operation on both; ok is false where the rules are long-winded.
func promoted(x, y *variable) (dtype.DType, bool) {
	if x.dtype == y.dtype {
		return x.dtype, true
	}
	rank := map[dtype.DType]int{dtype.Bool: 0, dtype.I32: 1, dtype.I64: 2, dtype.F16: 10, dtype.F32: 11, dtype.F64: 12}
	a, b := x, y
	if rank[a.dtype] < rank[b.dtype] {
		a, b = b, a
	}
	if (len(a.shape) == 0) != (len(b.shape) == 0) && (rank[a.dtype] < 10) == (rank[b.dtype] < 10) {
		return 0, false
	}
	if len(a.shape) == 0 && len(b.shape) > 0 && rank[b.dtype] < 10 {
		return 0, false
	}
	return a.dtype, true
}

func (g *gen) binary() {
	x := g.find(isFloat, small)
	if x == nil {
		return
	}
	y, shape := g.like(x, number)
	if y == nil || count(shape) > 3000 {
		return
	}
	d, ok := promoted(x, y)
	if !ok {
		return
	}
	inexact := x.inexact || y.inexact
	e := pick(g, "%s + %s", "%s - %s", "%s * %s", "%s / (%s.abs() + 1)", "torch.add(%s, %s, alpha=2)", "torch.maximum(%s, %s)", "torch.minimum(%s, %s)", "%s * 0.5 + %s * %[1]s", "torch.tanh(%s) * %s", "torch.sub(%s, %s)")
	if x.dtype == y.dtype && isWide(x) && g.IntN(3) == 0 {
		e = pick(g, "torch.atan2(%s, %s.abs() + 0.5)", "torch.lerp(%s, %s, 0.3)", "torch.hypot(%s, %s.abs() + 1)", "torch.addcmul(%s, %s, %[1]s)", "torch.logaddexp(%s, %s)", "torch.where(n > 1, %s, %s)", "torch.pow(torch.sigmoid(%s) + 0.1, %s.clamp(-2, 2))",
			"torch.fmax(%s, %s)", "torch.copysign(%s, %s)")
		if strings.Contains(e, "where") {
			e = "(%s if flag else %s)"
			if !slices.Equal(x.shape, y.shape) {
				return
			}
			g.let(shape, d, inexact, false, e, x.name, y.name)
			return
		}
	}
	if inexact && (strings.Contains(e, "copysign")) {
		return
	}
	if m := g.find(isBool, shaped(shape)); m != nil && x.dtype == y.dtype && g.IntN(4) == 0 {
		g.let(shape, d, inexact, true, "torch.where(%s, %s, %s)", m.name, x.name, y.name)
		return
	}
	g.let(shape, d, inexact, true, e, x.name, y.name)
}

func (g *gen) integer() {
	x := g.find(isInt, small)
	if x == nil {
		n := pick(g, 1, 3, 5, 8)
		g.let([]int{n}, dtype.I64, false, true, "torch.arange(%d)", n)
		return
	}
	y, shape := g.like(x, typed(x.dtype))
	if g.IntN(3) == 0 || y == nil || count(shape) > 3000 {
		e := pick(g, "%s * 3 %% 7", "%s // 2", "-%s", "%s.abs()", "%s & 6", "%s ^ 3", "%s << 1", "%s >> 1", "~%s", "%s.clamp(-2, 3)", "%s * 0.5", "torch.sin(%s)", "%s.to(torch.float32)", "%s / 3", "%s.sign()")
		d := x.dtype
		if strings.Contains(e, ".5") || strings.Contains(e, "sin") || strings.Contains(e, "float") || strings.Contains(e, "/ 3") {
			d = dtype.F32
		}
		g.let(x.shape, d, false, true, e, x.name)
		return
	}
	g.let(shape, x.dtype, false, true, pick(g, "(%s + %s) %% 11", "%s - %s", "(%s * %s).clamp(-50, 50)", "%s & %s", "%s | %s", "torch.maximum(%s, %s)", "%s // (%s.abs() + 1)", "%s %% (%s.abs() + 2)", "torch.div(%s, %s.abs() + 1, rounding_mode='trunc')"), x.name, y.name)
}

func (g *gen) compare() {
	x := g.find(isExact, number, small)
	if x == nil {
		return
	}
	if m := g.find(isBool); m != nil && g.IntN(3) == 0 {
		if o, shape := g.like(m, isBool); o != nil && count(shape) < 3000 {
			g.let(shape, dtype.Bool, false, true, pick(g, "%s & %s", "%s | %s", "torch.logical_xor(%s, %s)", "~%s | %s"), m.name, o.name)
			return
		}
	}
	y, shape := g.like(x, isExact, typed(x.dtype))
	if y == nil || count(shape) > 3000 || g.IntN(3) == 0 {
		g.let(x.shape, dtype.Bool, false, true, pick(g, "%s > 0", "%s <= 0.5", "%s != 1", "torch.isfinite(%s)", "torch.isnan(%s)", "%s == %[1]s.round()"), x.name)
		return
	}
	g.let(shape, dtype.Bool, false, true, pick(g, "%s < %s", "%s >= %s", "%s == %s", "%s.ne(%s)"), x.name, y.name)
}
