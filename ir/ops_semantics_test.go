package ir

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir/dtype"
)

// eval1 runs one op on its operands.
func eval1(op string, args ...Datum) ([]Datum, error) {
	row := LookupOp(op)
	return row.Eval(&EvalCall{Node: &Node{Op: row}, Args: args})
}

func mustEval(t *testing.T, op string, args ...Datum) string {
	t.Helper()
	out, err := eval1(op, args...)
	require.NoError(t, err)
	parts := make([]string, len(out))
	for i, d := range out {
		parts[i] = FormatDatum(d)
	}
	return strings.Join(parts, " ")
}

func f32(shape []int, v ...float64) *Array { return FromFloats(dtype.F32, shape, v) }

// orderedSum is the reduction order of ops_reduce.go, written down once more without regard to speed.
func orderedSum(x []float32, lanes int) float32 {
	total := float32(0)
	for start := 0; start < len(x); start += 256 * lanes {
		lane := make([]float32, lanes)
		for i := start; i < min(start+256*lanes, len(x)); i++ {
			lane[(i-start)%lanes] += x[i]
		}
		for h := lanes / 2; h >= 1; h /= 2 {
			for k := 0; k < h; k++ {
				lane[k] += lane[k+h]
			}
		}
		total += lane[0]
	}
	return total
}

func TestReductionOrder(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 100, 256, 4096, 5000, 70000} {
		x := NewArray(dtype.F32, n)
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(math.Sin(float64(i*i))) * 1e3
			x.SetFloat(i, float64(v[i]))
		}
		out, err := eval1("sum", x, Ints(0), false)
		require.NoError(t, err)
		require.Equal(t, orderedSum(v, 16), float32(out[0].(*Array).Float(0)), "last dim, %d", n)
		out, err = eval1("sum", x.View([]int{n, 1}, []int{1, 1}, 0), Ints(0), false)
		require.NoError(t, err)
		require.Equal(t, orderedSum(v, 1), float32(out[0].(*Array).Float(0)), "another dim, %d", n)
		generic := reduceRow(v, 16, 0, func(a, x float32) float32 { return a + x })
		require.Equal(t, orderedSum(v, 16), generic)
	}
}

func TestSumIsAccurate(t *testing.T) {
	n := 1000000
	x := NewArray(dtype.F32, n)
	exact := 0.0
	for i := 0; i < n; i++ {
		x.SetFloat(i, 0.1+float64(i%7))
		exact += x.Float(i)
	}
	out, err := eval1("sum", x, Ints(0), false)
	require.NoError(t, err)
	require.InEpsilon(t, exact, out[0].(*Array).Float(0), 5e-6)
}

func TestReductionsOfSpecialValues(t *testing.T) {
	x := f32([]int{3}, 1, nan, 3)
	require.Equal(t, "f32[]{nan}", mustEval(t, "amax", x, Ints(0), false))
	require.Equal(t, "f32[]{nan}", mustEval(t, "amin", x, Ints(0), false))
	require.Equal(t, "i64[]{1}", mustEval(t, "argmax", x, int64(0), false))
	require.Equal(t, "i64[]{1}", mustEval(t, "argmin", x, int64(0), false))
	require.Equal(t, "i64[]{1}", mustEval(t, "argmax", f32([]int{4}, 1, 3, 3, 2), int64(0), false), "the lowest index")
	require.Equal(t, "f32[]{-inf}", mustEval(t, "amax", f32([]int{2}, -inf, -inf), Ints(0), false))
	empty := NewArray(dtype.F32, 2, 0)
	require.Equal(t, "f32[2]{0.0,0.0}", mustEval(t, "sum", empty, Ints(1), false))
	require.Equal(t, "f32[2]{1.0,1.0}", mustEval(t, "prod", empty, Ints(1), false))
	require.Equal(t, "f32[0]{}", mustEval(t, "amax", empty, Ints(0), false))
	require.Equal(t, "bool[]{1}", mustEval(t, "all", NewArray(dtype.Bool, 0), Ints(0), false))
	require.Equal(t, "bool[]{0}", mustEval(t, "any", NewArray(dtype.Bool, 0), Ints(0), false))
	require.Equal(t, "i8[]{-56}", mustEval(t, "sum", FromFloats(dtype.I8, []int{2}, []float64{100, 100}), Ints(0), false), "wraps")
	require.Equal(t, "f16[]{2050.0}", mustEval(t, "sum", FromFloats(dtype.F16, []int{3}, []float64{2048, 1, 1}), Ints(0), false), "halves add in f32")
}

func TestScans(t *testing.T) {
	x := f32([]int{5}, 1, 3, 3, nan, 5)
	require.Equal(t, "f32[5]{1.0,3.0,3.0,nan,nan} i64[5]{0,1,2,3,3}", mustEval(t, "cummax", x, int64(0)))
	require.Equal(t, "f32[2,2]{1.0,2.0,4.0,6.0}", mustEval(t, "cumsum", f32([]int{2, 2}, 1, 2, 3, 4), int64(0)))
}

func TestSortOrder(t *testing.T) {
	x := f32([]int{6}, 2, nan, -inf, 0, math.Copysign(0, -1), 2)
	require.Equal(t, "f32[6]{-inf,0.0,-0.0,2.0,2.0,nan} i64[6]{2,3,4,0,5,1}", mustEval(t, "sort", x, int64(0), false, true))
	require.Equal(t, "f32[6]{nan,2.0,2.0,0.0,-0.0,-inf} i64[6]{1,0,5,3,4,2}", mustEval(t, "sort", x, int64(0), true, true))
	require.Equal(t, "u8[2]{1,200} i64[2]{1,0}", mustEval(t, "sort", FromFloats(dtype.U8, []int{2}, []float64{200, 1}), int64(0), false, false))
}

func TestMovesOfRepeatedIndices(t *testing.T) {
	x := f32([]int{3}, 0, 10, 20)
	at := i64([]int{3}, 1, 1, 2)
	src := f32([]int{3}, 1, 2, 3)
	require.Equal(t, "f32[3]{0.0,2.0,3.0}", mustEval(t, "scatter", x, int64(0), at, src), "the last one wins")
	require.Equal(t, "f32[3]{0.0,13.0,23.0}", mustEval(t, "scatter_reduce", x, int64(0), at, src, "add", true))
	require.Equal(t, "f32[3]{0.0,2.0,3.0}", mustEval(t, "scatter_reduce", x, int64(0), at, src, "amax", false))
	require.Equal(t, "f32[3]{0.0,13.0,23.0}", mustEval(t, "put", x, at, src, true))
	require.Equal(t, "i64[2,2]{0,1,1,0}", mustEval(t, "nonzero", f32([]int{2, 2}, 0, nan, 2, 0)))
}

// Philox4x32-10 of the counter 0 and the key 0, as published with the algorithm.
func TestPhilox(t *testing.T) {
	require.Equal(t, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}, PhiloxBlock(0, 0))
}

func TestRandomDistributions(t *testing.T) {
	for _, d := range []dtype.DType{dtype.F16, dtype.BF16, dtype.F32, dtype.F64} {
		moments := func(op string) (mean, variance float64) {
			out, err := eval1(op, Ints(20001), int64(42), d)
			require.NoError(t, err)
			for _, v := range out[0].(*Array).Floats() {
				mean += v
				variance += v * v
			}
			mean /= 20001
			return mean, variance/20001 - mean*mean
		}
		mean, variance := moments("uniform")
		require.InDelta(t, 0.5, mean, 0.01)
		require.InDelta(t, 1.0/12, variance, 0.01)
		mean, variance = moments("normal")
		require.InDelta(t, 0, mean, 0.03)
		require.InDelta(t, 1, variance, 0.03)
	}
}

// Views share memory, and reshape does where strides allow it.
func TestViewsShareMemory(t *testing.T) {
	x := randn(1, 2, 3, 4)
	shares := func(op string, args ...Datum) bool {
		out, err := eval1(op, args...)
		require.NoError(t, err)
		return &out[0].(*Array).Data[0] == &x.Data[0]
	}
	require.True(t, shares("permute", x, Ints(2, 1, 0)))
	require.True(t, shares("flip", x, Ints(2)))
	require.True(t, shares("windows", x, Ints(2), Ints(1), Ints(2)))
	require.True(t, shares("reshape", x, Ints(4, 6)))
	p := permuteView(x, []int{1, 2, 0})
	require.True(t, shares("reshape", p, Ints(12, 1, 2)), "a run of dims that is contiguous in itself")
	require.False(t, shares("reshape", p, Ints(24)))
}

// What an op rejects it rejects with sizes, at construction and at run time.
func TestOpErrors(t *testing.T) {
	x := randn(1, 2, 3)
	for _, c := range []struct {
		want string
		op   string
		args []Datum
	}{
		{"a tensor of shape [2, 3] cannot be broadcast to shape [2, 4]: the size 3 does not match the expected size 4 at dimension 1", "broadcast", []Datum{x, Ints(2, 4)}},
		{"shape [4, 2] is invalid for a tensor of shape [2, 3] with 6 elements", "reshape", []Datum{x, Ints(4, 2)}},
		{"dimension 2 is out of range for a tensor of shape [2, 3], expected 0 to 1", "sum", []Datum{x, Ints(2), false}},
		{"dimension 1 appears twice", "permute", []Datum{x, Ints(1, 1)}},
		{"stop 4 is out of range for dimension 1 of size 3", "slice", []Datum{x, int64(1), int64(0), int64(4), int64(1)}},
		{"kernel size 4 (4 with dilation) is larger than the input size 3", "windows", []Datum{x, Ints(4), Ints(1), Ints(1)}},
		{"non-zero size", "amax", []Datum{NewArray(dtype.F32, 0), Ints(0), false}},
		{"is empty", "argmax", []Datum{NewArray(dtype.F32, 2, 0), int64(1), false}},
		{"index 7 is out of range for dimension 0 of size 5", "take", []Datum{randn(1, 5), i64([]int{1}, 7)}},
		{"index -1 is out of range for dimension 0 of size 2", "put", []Datum{x, i64([]int{1}, -1), randn(1, 1, 3), true}},
		{"index 3 is out of range for dimension 1 of size 3", "gather", []Datum{x, int64(1), i64([]int{1, 1}, 3)}},
		{"expected an i64 tensor for index, got tensor<f64[2,3]>", "gather", []Datum{x, int64(1), x}},
		{"sizes of tensors must match except in dimension 0: expected size 3 but got size 2", "concat", []Datum{NewList(x, randn(1, 2, 2)), int64(0)}},
		{"expected a non-empty list", "concat", []Datum{NewList(), int64(0)}},
		{"shapes [2, 3] and [2, 2] cannot be multiplied", "dot", []Datum{x, randn(1, 2, 2), int64(0), int64(1)}},
		{"batch sizes 2 and 4 at dimension 0 do not match", "dot", []Datum{x, randn(1, 4, 3), int64(1), int64(1)}},
		{"expected tensors of the same dtype, got f64 and f32", "dot", []Datum{x, NewArray(dtype.F32, 2, 3), int64(0), int64(1)}},
		{"expected a batch of square matrices", "inverse", []Datum{x}},
		{"singular", "inverse", []Datum{NewArray(dtype.F64, 2, 2)}},
		{"not positive-definite", "cholesky", []Datum{NewArray(dtype.F64, 2, 2), false}},
		{"too many elements", "full", []Datum{Ints(1<<40, 1<<40), 1.0, dtype.F32}},
		{"expected a floating-point dtype, got i64", "uniform", []Datum{Ints(2), int64(1), dtype.I64}},
		{"expected mode add, mul, amax or amin", "scatter_reduce", []Datum{x, int64(0), i64([]int{1, 1}, 0), randn(1, 1, 1), "mean", true}},
	} {
		_, err := eval1(c.op, c.args...)
		require.ErrorContains(t, err, c.want, c.op)
	}
}

func BenchmarkDotF32(b *testing.B) {
	x := NewArray(dtype.F32, 256, 256)
	for b.Loop() {
		if _, err := eval1("dot", x, x, int64(0), int64(1)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(2*256*256*256/1e9/(b.Elapsed().Seconds()/float64(b.N)), "GFLOP/s")
}

func BenchmarkSumF32(b *testing.B) {
	x := NewArray(dtype.F32, 1000, 1000)
	for b.Loop() {
		if _, err := eval1("sum", x, Ints(1), false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPackWindows(b *testing.B) {
	x := windowsView(NewArray(dtype.F32, 64, 28, 28), []int{64, 24, 24, 5, 5}, []int{1, 1}, []int{1, 1})
	for b.Loop() {
		load[float32](x)
	}
}
