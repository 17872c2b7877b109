package passes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/passes"
)

// runner evaluates with the function library.
func runner() autograd.Runner {
	r := passes.NewResolver()
	return func(f *ir.Func, args ...ir.Datum) ([]ir.Datum, error) {
		return (&ir.Evaluator{Resolve: r.Resolve}).Run(context.Background(), f, args...)
	}
}

func mat(shape []int, v ...float64) *ir.Array { return ir.FromFloats(dtype.F64, shape, v) }

func parse(t *testing.T, text string) *ir.Func {
	t.Helper()
	f, err := ir.ParseFunc(text)
	require.NoError(t, err)
	return f
}

// Generic calls run, are differentiated and differentiated again, on types that only the run shows.
func TestGenericFunctionsAndTheirGradients(t *testing.T) {
	for _, p := range []struct {
		name, text string
		args       []ir.Datum
	}{
		{"softmax", `func @f(%x: tensor<?>) { %y: tensor<?> = aten.softmax(%x, 1, none) return(%y) }`, []ir.Datum{mat([]int{2, 2}, 1, 2, 3, 4)}},
		{"broadcast", `func @f(%x: tensor<?>, %y: tensor<?>) { %m: tensor<?> = aten.mul.Tensor(%x, %y) %z: tensor<?> = aten.mul.Tensor(%m, %y) return(%z) }`, []ir.Datum{mat([]int{2, 2}, 1, 2, 3, 4), mat([]int{2}, 5, 6)}},
		{"list operand", `func @f(%x: tensor<?>, %y: tensor<?>) { %l: list<tensor<?>> = list(%x, %y) %c: tensor<?> = aten.cat(%l, 0) %z: tensor<?> = aten.mul.Tensor(%c, %c) return(%z) }`, []ir.Datum{mat([]int{1, 2}, 1, 2), mat([]int{2, 2}, 5, 6, 7, 8)}},
		{"while", `func @f(%x: tensor<?>) {
			%r: tensor<?>, %n: int = while(%x, 0) cond(%a: tensor<?>, %i: int) {
				%s: tensor<?> = aten.norm(%a, 2, none, false, none) %m: float = item_float(%s) %c = py_gt(%m, 1.0) yield(%c)
			} body(%h: tensor<?>, %j: int) { %b: tensor<?> = aten.sin(%h) %d: tensor<?> = aten.mul.Scalar(%b, 0.9) %l = py_add(%j, 1) yield(%d, %l) }
			%p: tensor<?> = aten.pow.Tensor_Scalar(%r, 3)
			return(%p, %n) }`, []ir.Datum{mat([]int{3}, 2, -1, .5)}},
	} {
		t.Run(p.name, func(t *testing.T) {
			require.NoError(t, autograd.Check(runner(), parse(t, p.text), 2, 1e-6, p.args...))
		})
	}
}
