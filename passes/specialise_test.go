package passes_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/passes"
)

// same checks that a specialised function computes what the generic one does, bit for bit, and that it is well-formed.
func same(t *testing.T, f *ir.Func, args ...ir.Datum) *ir.Func {
	t.Helper()
	before := f.String()
	s, err := passes.Specialise(f, args)
	require.NoError(t, err)
	require.Equal(t, before, f.String(), "the function itself must not change")
	require.Empty(t, ir.Verify(s), s.String())
	want, err1 := runner()(f, args...)
	got, err2 := runner()(s, args...)
	if err1 != nil {
		require.EqualError(t, err2, err1.Error())
		return s
	}
	require.NoError(t, err2, s.String())
	require.Equal(t, ir.FormatDatum(ir.Tuple(want)), ir.FormatDatum(ir.Tuple(got)), s.String())
	return s
}

// left lists the ops of a function that are neither literals nor its return.
func left(f *ir.Func) string {
	var names []string
	f.Body.Walk(func(n *ir.Node) {
		if n.Op != ir.OpConst && n.Op.Class != ir.Terminator {
			name := n.Op.Name
			if n.Op.Class == ir.Generic {
				name += "." + n.Attrs.Callee
			}
			names = append(names, name)
		}
	})
	return strings.Join(names, " ")
}

// What each program becomes: its remaining ops, in order.
func TestSpecialise(t *testing.T) {
	x := mat([]int{2, 2}, 1, 2, 3, -4)
	for _, c := range []struct {
		name, text string
		args       []ir.Datum
		left       string
	}{
		{"types and sizes are known", `func @f(%x: tensor<?>) {
			%s = shape(%x) %n = size(%x, -1) %d = rank(%x) %e = numel(%x) %t = dtype_of(%x) return(%s, %n, %d, %e, %t) }`, []ir.Datum{x}, ""},
		{"calls become primitive ops", `func @f(%x: tensor<?>) { %y: tensor<?> = aten.relu(%x) %z: tensor<?> = aten.add.Tensor(%y, %x, 1) return(%z) }`, []ir.Datum{x}, "relu add"},
		{"branches on what is known", `func @f(%x: tensor<?>, %n: int) {
			%r = rank(%x) %c = py_eq(%r, 2)
			%y = if(%c) { %a: tensor<?> = aten.neg(%x) yield(%a) } else { %b: tensor<?> = aten.exp(%x) yield(%b) }
			return(%y) }`, []ir.Datum{x, int64(1)}, "neg"},
		{"branches on what is not", `func @f(%x: tensor<?>) {
			%s: tensor<?> = aten.sum(%x, none) %c = item_bool(%s)
			%y = if(%c) { %a: tensor<?> = aten.neg(%x) yield(%a) } else { yield(%x) }
			return(%y) }`, []ir.Datum{x}, "sum item_bool if neg"},
		{"a branch that raises says nothing of types", `func @f(%x: tensor<?>) {
			%s: tensor<?> = aten.sum(%x, none) %c = item_bool(%s)
			%y: optional<tensor<?>> = if(%c) { yield(%x) } else { raise("ValueError", "zero") yield(none) }
			%u: tensor<?> = unwrap(%y) %z: tensor<?> = aten.neg(%u) return(%z) }`, []ir.Datum{x}, "sum item_bool if raise list list_get neg"},
		{"grad nodes are for autograd to expand", `func @f(%x: tensor<f64[1]>) { %y = mul(%x, %x) %g: tensor<?> = grad[1](%y, none, %x) return(%y) }`, []ir.Datum{mat([]int{1}, 2)}, "mul grad."},
		{"short loops are unrolled", `func @f(%x: tensor<?>, %n: int) {
			%y = for(%n, %x) (%i: int, %h: tensor<?>) { %a: tensor<?> = aten.neg(%h) %e: tensor<?> = aten.exp(%a) yield(%e) } return(%y) }`,
			[]ir.Datum{x, int64(2)}, "neg exp neg exp"},
		{"long loops stay", `func @f(%x: tensor<?>, %n: int) {
			%y = for(%n, %x) (%i: int, %h: tensor<?>) { %a: tensor<?> = aten.neg(%h) yield(%a) } return(%y) }`,
			[]ir.Datum{x, int64(1000)}, "for neg"},
		{"loops whose carried shape changes are unrolled", `func @f(%x: tensor<?>, %n: int) {
			%y = for(%n, %x) (%i: int, %h: tensor<?>) { %l: list<tensor<?>> = list(%h, %h) %a: tensor<?> = aten.cat(%l, 0) yield(%a) } %s = size(%y, 0) return(%y, %s) }`,
			[]ir.Datum{x, int64(3)}, "list concat list concat list concat"},
		{"what does not depend on the iteration leaves the loop", `func @f(%x: tensor<?>, %w: tensor<?>, %n: int) {
			%y = for(%n, %x) (%i: int, %h: tensor<?>) { %a: tensor<?> = aten.exp(%w) %b: tensor<?> = aten.mul.Tensor(%h, %a) yield(%b) } return(%y) }`,
			[]ir.Datum{x, mat([]int{2, 2}, .1, .2, .3, .4), int64(1000)}, "exp for mul"},
		{"while on what is known", `func @f(%x: tensor<?>, %n: int) {
			%y, %k = while(%x, 0) cond(%a: tensor<?>, %i: int) { %c = py_lt(%i, %n) yield(%c) } body(%h: tensor<?>, %j: int) { %b: tensor<?> = aten.neg(%h) %m = py_add(%j, 1) yield(%b, %m) }
			return(%y, %k) }`, []ir.Datum{x, int64(3)}, "neg"},
		{"long while on what is known", `func @f(%x: tensor<?>, %n: int) {
			%y, %k = while(%x, 0) cond(%a: tensor<?>, %i: int) { %c = py_lt(%i, %n) yield(%c) } body(%h: tensor<?>, %j: int) { %b: tensor<?> = aten.sin(%h) %m = py_add(%j, 1) yield(%b, %m) }
			return(%y, %k) }`, []ir.Datum{x, int64(300)}, "while py_lt sin py_add"},
		{"lists of known elements", `func @f(%x: tensor<?>) {
			%e: list<tensor<?>> = list() %l = list_append(%e, %x) %m = list_append(%l, %x) %n = list_len(%m) %k = list_get(%m, -1) %s: tensor<?> = aten.stack(%m, 0) return(%k, %n, %s) }`,
			[]ir.Datum{x}, "reshape list concat"},
		{"a list argument", `func @f(%l: list<tensor<?>>) { %s: tensor<?> = aten.cat(%l, 1) return(%s) }`, []ir.Datum{ir.NewList(x, x)}, "list_get list_get list concat"},
		{"the same is computed once", `func @f(%x: tensor<?>) { %a: tensor<?> = aten.exp(%x) %b: tensor<?> = aten.exp(%x) %y: tensor<?> = aten.mul.Tensor(%a, %b) return(%y) }`, []ir.Datum{x}, "exp mul"},
		{"wrong calls fail where they stand", `func @f(%x: tensor<?>, %y: tensor<?>) { print("before") %z: tensor<?> = aten.matmul(%x, %y) return(%z) }`,
			[]ir.Datum{x, mat([]int{3}, 1, 2, 3)}, "print aten.matmul"},
		{"sizes that only the run shows", `func @f(%x: tensor<?>) { %n: tensor<?> = aten.nonzero(%x) %y: tensor<?> = aten.exp(%x) return(%n, %y) }`, []ir.Datum{x}, "convert nonzero exp"},
		{"-0 is kept", `func @f(%x: tensor<f64[2]>) {
			%z = full([2], 0.0, dtype.f64) %m = full([2], -0.0, dtype.f64) %o = full([2], 1.0, dtype.f64)
			%a = add(%x, %z) %b = add(%x, %m) %c = sub(%x, %z) %d = sub(%x, %m) %e = mul(%x, %z) %f = mul(%x, %o) return(%a, %b, %c, %d, %e, %f) }`,
			[]ir.Datum{mat([]int{2}, 1, negZero)}, "full full add sub mul"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.left, left(same(t, parse(t, c.text), c.args...))) })
	}
}

var negZero = math.Copysign(0, -1)

// Gradients of specialised functions need no generic calls; they match those of the generic function.
func TestGradient(t *testing.T) {
	f := parse(t, `func @f(%x: tensor<?>, %n: int) {
		%y = for(%n, %x) (%i: int, %h: tensor<?>) { %a: tensor<?> = aten.softmax(%h, 1, none) %b: tensor<?> = aten.mul.Tensor(%a, %x) yield(%b) }
		return(%y) }`)
	x, ct := mat([]int{2, 2}, 1, 2, 3, -4), mat([]int{2, 2}, 1, 1, 2, 2)
	o := autograd.Options{Wrt: []int{0}}
	g, err := passes.Gradient(f, []ir.Datum{x, int64(100)}, o)
	require.NoError(t, err)
	require.Empty(t, ir.Verify(g))
	require.NotContains(t, left(g), "aten")
	require.NotContains(t, left(g), "vjp")
	generic, err := autograd.Differentiate(f, o)
	require.NoError(t, err)
	want, err := runner()(generic, x, int64(100), ct)
	require.NoError(t, err)
	got, err := runner()(g, x, int64(100), ct)
	require.NoError(t, err)
	require.Equal(t, ir.FormatDatum(ir.Tuple(want)), ir.FormatDatum(ir.Tuple(got)))
}

// 100,000 calls in a chain are specialised in linear time.
func TestSpecialiseLongChain(t *testing.T) {
	f := ir.NewFunc("chain")
	b := ir.NewBuilder(f)
	v := f.Param("x", ir.AnyTensor)
	require.NoError(t, ir.Try(func() {
		for range 100_000 {
			v = b.Aten("sin", []ir.Type{ir.AnyTensor}, v)[0]
		}
		b.Return(v)
	}))
	start := time.Now()
	s, err := passes.Specialise(f, []ir.Datum{ir.FromFloats(dtype.F32, []int{2}, []float64{1, 2})})
	require.NoError(t, err)
	require.Less(t, time.Since(start), 20*time.Second)
	require.Equal(t, "tensor<f32[2]>", s.ResultTypes()[0].String())
	_, err = (&ir.Evaluator{}).Run(context.Background(), s, ir.FromFloats(dtype.F32, []int{2}, []float64{1, 2}))
	require.NoError(t, err)
}

// Endless loops on known conditions stay loops.
func TestSpecialiseEndsOnEndlessLoops(t *testing.T) {
	f := parse(t, `func @f(%x: tensor<?>) {
		%y = while(%x) cond(%a: tensor<?>) { yield(true) } body(%h: tensor<?>) { %b: tensor<?> = aten.neg(%h) yield(%b) } return(%y) }`)
	s, err := passes.Specialise(f, []ir.Datum{mat([]int{1}, 1)})
	require.NoError(t, err)
	require.Contains(t, left(s), "while")
}

// A list that a loop appends to in every trip has a length that is known, and what is stacked from it has sizes.
func TestLengthOfGrownLists(t *testing.T) {
	f := ir.NewFunc("f")
	x := ir.NewArray(dtype.F32, 3)
	require.NoError(t, ir.Try(func() {
		b := ir.NewBuilder(f)
		p := f.Param("x", x.Type())
		list := ir.ListOf(ir.AnyTensor)
		r := b.For(b.Int(300), []*ir.Value{p, b.Const(ir.NewList())}, []ir.Type{ir.AnyTensor, list}, func(_ *ir.Value, c []*ir.Value) []*ir.Value {
			y := b.Op("neg", c[0])
			return []*ir.Value{y, b.Op("list_append", c[1], y)}
		})
		b.Return(b.Aten("stack", []ir.Type{ir.AnyTensor}, r[1], b.Int(1))[0], b.Aten("cat", []ir.Type{ir.AnyTensor}, r[1], b.Int(0))[0])
	}))
	g, err := passes.Specialise(f, []ir.Datum{x})
	require.NoError(t, err)
	types := g.ResultTypes()
	require.Equal(t, "tensor<f32[3,300]>", types[0].String())
	require.Equal(t, "tensor<f32[900]>", types[1].String())
}
