package autograd_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

func run(f *ir.Func, args ...ir.Datum) ([]ir.Datum, error) {
	return (&ir.Evaluator{}).Run(context.Background(), f, args...)
}

func vec(v ...float64) *ir.Array { return ir.FromFloats(dtype.F64, []int{len(v)}, v) }

func parse(t *testing.T, text string) *ir.Func {
	t.Helper()
	f, err := ir.ParseFunc(text)
	require.NoError(t, err)
	return f
}

// programs covers every kind of control flow; each is checked against finite differences, twice differentiated.
var programs = []struct {
	name, text string
	args       []ir.Datum
}{
	{"straight line", `func @f(%x: tensor<f64[2]>, %y: tensor<f64[2]>) {
		%a = sin(%x) %b = mul(%a, %y) %c = mul(%b, %a) %d = exp(%y)
		return(%c, %d) }`, []ir.Datum{vec(.3, .7), vec(-.2, 1.1)}},
	{"if", `func @f(%x: tensor<f64[2]>, %c: bool) {
		%s = sin(%x)
		%z, %w = if(%c) { %a = mul(%s, %x) %b = exp(%a) %d = mul(%b, %a) yield(%d, %x) } else { %n = neg(%s) yield(%n, %s) }
		%r = mul(%z, %w)
		return(%r) }`, []ir.Datum{vec(.3, .7), true}},
	{"else", `func @f(%x: tensor<f64[2]>, %y: tensor<f64[2]>, %c: bool) {
		%z = if(%c) { %a = mul(%y, %x) yield(%a) } else { %n = exp(%x) %m = mul(%n, %n) yield(%m) }
		return(%z) }`, []ir.Datum{vec(.3, .7), vec(1, 2), false}},
	{"for", `func @f(%x: tensor<f64[2]>, %w: tensor<f64[2]>, %n: int) {
		%r = for(%n, %x) (%i: int, %h: tensor<f64[2]>) { %a = mul(%h, %w) %b = sin(%a) %c = mul(%b, %h) yield(%c) }
		return(%r) }`, []ir.Datum{vec(.3, .7), vec(1.2, -.7), int64(4)}},
	{"for over nothing", `func @f(%x: tensor<f64[2]>, %w: tensor<f64[2]>, %n: int) {
		%r = for(%n, %x) (%i: int, %h: tensor<f64[2]>) { %a = mul(%h, %w) yield(%a) }
		return(%r) }`, []ir.Datum{vec(.3, .7), vec(1.2, -.7), int64(0)}},
	{"for with the iteration number", `func @f(%x: tensor<f64[2]>, %n: int) {
		%r = for(%n, %x) (%i: int, %h: tensor<f64[2]>) { %j = py_add(%i, 1) %t = full([2], 0.5, dtype.f64) %s = scalar_tensor(%j, dtype.f64)
			%u = broadcast(%s, [2]) %a = mul(%h, %u) %b = add(%a, %t) %c = mul(%b, %b) yield(%c) }
		return(%r) }`, []ir.Datum{vec(.03, .07), int64(3)}},
	{"while", `func @f(%x: tensor<f64[2]>, %w: tensor<f64[2]>) {
		%r, %k = while(%x, 0) cond(%a: tensor<f64[2]>, %i: int) {
			%s = sum(%a, [0], false) %m = item(%s) %c = py_gt(%m, 0.5) yield(%c)
		} body(%h: tensor<f64[2]>, %j: int) { %b = sin(%h) %d = mul(%b, %w) %l = py_add(%j, 1) yield(%d, %l) }
		%q = mul(%r, %r)
		return(%q, %k) }`, []ir.Datum{vec(.9, .8), vec(.9, .7)}},
	{"nested loops", `func @f(%x: tensor<f64[2]>, %w: tensor<f64[2]>, %n: int) {
		%r = for(%n, %x) (%i: int, %h: tensor<f64[2]>) {
			%e = sin(%h)
			%m = py_add(%i, 1)
			%g = for(%m, %h) (%j: int, %p: tensor<f64[2]>) { %a = mul(%p, %w) %b = mul(%a, %e) %c = sin(%b) yield(%c) }
			%o = add(%g, %e)
			yield(%o) }
		return(%r) }`, []ir.Datum{vec(.3, .7), vec(1.2, -.7), int64(3)}},
	{"if in a loop", `func @f(%x: tensor<f64[2]>, %n: int) {
		%r = for(%n, %x) (%i: int, %h: tensor<f64[2]>) {
			%m = py_mod(%i, 2) %c = py_eq(%m, 0)
			%z = if(%c) { %a = sin(%h) %b = mul(%a, %h) yield(%b) } else { %d = exp(%h) %e = mul(%d, %x) yield(%e) }
			yield(%z) }
		return(%r) }`, []ir.Datum{vec(.3, .7), int64(3)}},
	{"ifs in ifs", `func @f(%x: tensor<f64[2]>, %c: bool, %d: bool) {
		%z = if(%c) {
			%a = sin(%x)
			%y = if(%d) { %b = mul(%a, %x) %e = exp(%b) yield(%e) } else { %m = mul(%a, %a) yield(%m) }
			%v = mul(%y, %a)
			yield(%v)
		} else { yield(%x) }
		return(%z) }`, []ir.Datum{vec(.3, .7), true, false}},
	{"loop in an if", `func @f(%x: tensor<f64[2]>, %c: bool, %n: int) {
		%z = if(%c) {
			%r = for(%n, %x) (%i: int, %h: tensor<f64[2]>) { %a = mul(%h, %x) %b = sin(%a) yield(%b) }
			yield(%r)
		} else { yield(%x) }
		return(%z) }`, []ir.Datum{vec(.3, .7), true, int64(3)}},
	{"swapped carried values", `func @f(%x: tensor<f64[2]>, %y: tensor<f64[2]>, %n: int) {
		%r, %s = for(%n, %x, %y) (%i: int, %a: tensor<f64[2]>, %b: tensor<f64[2]>) { %c = mul(%a, %b) yield(%b, %c) }
		return(%s) }`, []ir.Datum{vec(.3, .7), vec(1.2, -.7), int64(3)}},
	{"a list of tensors", `func @f(%x: tensor<f64[2]>, %l: list<tensor<f64[2]>>, %n: int) {
		%r, %m = for(%n, %x, %l) (%i: int, %h: tensor<f64[2]>, %k: list<tensor<f64[2]>>) {
			%e = list_get(%k, %i) %a = mul(%h, %e) %b = sin(%a) %o = list_append(%k, %b) yield(%b, %o) }
		%len = list_len(%m) %at = py_sub(%len, 2) %q = list_get(%m, %at) %z = list_get(%m, 0) %v = mul(%q, %z)
		return(%v, %m) }`, []ir.Datum{vec(.3, .7), ir.NewList(vec(.5, .6), vec(-.7, .8)), int64(3)}},
	{"tuples and dicts", `func @f(%x: tensor<f64[2]>, %t: tuple<tensor<f64[2]>,int>, %d: dict<str,tensor<f64[2]>>) {
		%a = tuple_get(%t, 0) %b = dict_get(%d, "w") %c = mul(%a, %b) %e = dict_set(%d, "v", %c) %f = dict_get(%e, "v") %g = mul(%f, %x)
		%u = tuple(%g, %e)
		return(%u) }`, []ir.Datum{vec(.3, .7), ir.Tuple{vec(1, 2), int64(3)}, ir.NewDict([]ir.Datum{"w", "z"}, []ir.Datum{vec(4, 5), vec(6, 7)})}},
}

func TestGradMatchesFiniteDifferences(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			f := parse(t, p.text)
			before := f.String()
			require.NoError(t, autograd.Check(run, f, 2, 1e-6, p.args...))
			require.Equal(t, before, f.String(), "the function itself must not change")
		})
	}
}

// A gradient on which nothing depends is zeros, also through detach.
func TestGradOfUnrelatedIsZero(t *testing.T) {
	f := parse(t, `func @f(%x: tensor<f64[2]>, %y: tensor<?>) { %d = detach(%x) %z = mul(%d, %d) return(%z) }`)
	g, err := autograd.Grad(f, []int{0, 1}, nil)
	require.NoError(t, err)
	out, err := run(g, vec(1, 2), ir.FromFloats(dtype.F32, []int{1, 2}, []float64{1, 2}), vec(1, 1))
	require.NoError(t, err)
	require.Equal(t, "f64[2]{0.0,0.0}", ir.FormatDatum(out[1]))
	require.Equal(t, "f32[1,2]{0.0,0.0}", ir.FormatDatum(out[2]))
}

// VJP leaves out what only the results and effects of the function need.
func TestVJPLeavesOutTheFunction(t *testing.T) {
	f := parse(t, `func @f(%x: tensor<f64[2]>) { print("hello") %e = exp(%x) %y = sin(%x) return(%y) }`)
	g, err := autograd.VJP(f, []int{0}, nil)
	require.NoError(t, err)
	names := []string{}
	g.Body.Walk(func(n *ir.Node) { names = append(names, n.Op.Name) })
	require.Equal(t, []string{"cos", "mul", "return"}, names)
}

// Generic calls become vjp nodes, those of vjp nodes vjp nodes of the next order.
func TestGenericCallsBecomeVjp(t *testing.T) {
	f := parse(t, `func @f(%x: tensor<?>) { %y: tensor<?> = aten.gelu(%x, "none") return(%y) }`)
	g, err := autograd.Grad(f, []int{0}, nil)
	require.NoError(t, err)
	require.Contains(t, g.String(), `= vjp[1].aten.gelu(%x, "none", %ct0)`)
	h, err := autograd.VJP(g, []int{0}, nil)
	require.NoError(t, err)
	require.Contains(t, h.String(), `= vjp[2].aten.gelu(%x, "none", %ct0,`)
}

// A chain of 100,000 nodes is differentiated without deep recursion, in linear time.
func TestLongChain(t *testing.T) {
	f := ir.NewFunc("chain")
	b := ir.NewBuilder(f)
	v := f.Param("x", ir.TensorOf(dtype.F64, 1))
	require.NoError(t, ir.Try(func() {
		for range 100_000 {
			v = b.Op("sin", v)
		}
		b.Return(v)
	}))
	start := time.Now()
	g, err := autograd.Grad(f, []int{0}, nil)
	require.NoError(t, err)
	require.Less(t, time.Since(start), 10*time.Second)
	out, err := run(g, vec(.5), vec(1))
	require.NoError(t, err)
	require.False(t, math.IsNaN(out[1].(*ir.Array).Float(0)))
}
