package aten

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

func TestSums(t *testing.T) {
	x := f32s([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	want(t, []string{"f32[]{21.0}"}, "sum", x)
	want(t, []string{"f32[3]{5.0,7.0,9.0}"}, "sum.dim_IntList", x, ints(0))
	want(t, []string{"f32[2,1]{6.0,15.0}"}, "sum.dim_IntList", x, ints(-1), true)
	want(t, []string{"f32[]{21.0}"}, "sum.dim_IntList", x, nil)
	want(t, []string{"i64[]{2}"}, "sum", bools([]int{3}, 1, 0, 1))
	want(t, []string{"f64[]{21.0}"}, "sum", x, dtype.F64)
	want(t, []string{"f32[2]{6.0,120.0}"}, "prod.dim_int", x, int64(1))
	want(t, []string{"f32[]{3.5}"}, "mean", x)
	want(t, []string{"f32[2]{2.0,5.0}"}, "mean.dim", x, ints(1))
	want(t, []string{"f32[]{nan}"}, "mean", f32s([]int{0}))
	fails(t, "mean(): could not infer output dtype", "mean", i64s([]int{1}, 1))
	fails(t, "Dimension out of range (expected to be in range of [-2, 1], but got 2)", "sum.dim_IntList", x, ints(2))
	fails(t, "appears multiple times", "sum.dim_IntList", x, ints(0, -2))
	n := f32s([]int{3}, 1, math.NaN(), 3)
	want(t, []string{"f32[]{4.0}"}, "nansum", n)
	want(t, []string{"f32[]{2.0}"}, "nanmean", n)
	want(t, []string{"i64[]{3}"}, "count_nonzero", n)
	want(t, []string{"f32[2]{4.0,10.0}"}, "trapezoid.dx", x)
}

func TestExtremes(t *testing.T) {
	x := f32s([]int{2, 3}, 1, 3, 3, 6, math.NaN(), 4)
	want(t, []string{"f32[]{nan}"}, "max", x)
	want(t, []string{"f32[2]{3.0,nan}", "i64[2]{1,1}"}, "max.dim", x, int64(1))
	want(t, []string{"f32[1,3]{1.0,nan,3.0}", "i64[1,3]{0,1,0}"}, "min.dim", x, int64(0), true)
	want(t, []string{"i64[]{4}"}, "argmax", x)
	want(t, []string{"i64[3]{1,1,1}"}, "argmax", x, int64(0))
	want(t, []string{"f32[2]{3.0,nan}"}, "amax", x, ints(1))
	want(t, []string{"f32[2]{1.0,nan}", "f32[2]{3.0,nan}"}, "aminmax", x, int64(1))
	want(t, []string{"bool[]{1}"}, "max", bools([]int{2}, 0, 1))
	fails(t, "input.numel() == 0", "max", f32s([]int{0}))
	fails(t, "non-zero size", "max.dim", f32s([]int{2, 0}), int64(1))
	fails(t, "input.numel() == 0", "argmax", f32s([]int{0}))
	want(t, []string{"bool[]{1}"}, "any", x)
	want(t, []string{"bool[2]{0,1}"}, "all.dim", bools([]int{2, 2}, 0, 1, 1, 1), int64(1))
	want(t, []string{"u8[]{1}"}, "any", ir.FromFloats(dtype.U8, []int{2}, []float64{0, 7}))
}

func TestSpread(t *testing.T) {
	x := f32s([]int{2, 2}, 1, 3, 5, 9)
	want(t, []string{"f32[2]{2.0,8.0}"}, "var.dim", x, ints(1))
	want(t, []string{"f32[2]{1.0,2.0}"}, "std.dim", x, ints(1), false)
	want(t, []string{"f32[2]{1.0,4.0}"}, "var.correction", x, ints(1), int64(0))
	want(t, []string{"f32[2,1]{1.0,4.0}", "f32[2,1]{2.0,7.0}"}, "var_mean.dim", x, ints(1), false, true)
	want(t, []string{"f32[]{nan}"}, "var", f32s([]int{1}, 4))
	fails(t, "std and var only support floating point", "std", i64s([]int{2}, 1, 2))
}

func TestNorms(t *testing.T) {
	x := f32s([]int{2, 2}, 3, -4, 0, 0)
	want(t, []string{"f32[]{5.0}"}, "norm", x)
	want(t, []string{"f32[2]{5.0,0.0}"}, "norm", x, int64(2), ints(1))
	want(t, []string{"f32[2]{7.0,0.0}"}, "norm", x, int64(1), ints(1))
	want(t, []string{"f32[2]{4.0,0.0}"}, "norm", x, math.Inf(1), ints(1))
	want(t, []string{"f32[2]{3.0,0.0}"}, "norm", x, math.Inf(-1), ints(1))
	want(t, []string{"f32[2]{2.0,0.0}"}, "norm", x, int64(0), ints(1))
	want(t, []string{"f32[]{5.0}"}, "norm.str", x, "fro")
	want(t, []string{"f32[]{5.0}"}, "dist", x, f32s([]int{1}, 0))
	fails(t, "floating point", "norm", i64s([]int{1}, 1))
}

func TestOrderStatistics(t *testing.T) {
	x := f32s([]int{5}, 3, 1, 2, 1, 5)
	n := f32s([]int{3}, 3, math.NaN(), 2)
	want(t, []string{"f32[]{2.0}"}, "median", x)
	want(t, []string{"f32[]{2.0}", "i64[]{2}"}, "median.dim", x, int64(0))
	want(t, []string{"f32[]{nan}", "i64[]{1}"}, "median.dim", n, int64(0))
	want(t, []string{"f32[]{2.0}"}, "nanmedian", n)
	want(t, []string{"f32[]{1.0}", "i64[]{3}"}, "mode", x)
	want(t, []string{"f32[]{1.0}"}, "quantile.scalar", x, 0.25)
	want(t, []string{"f32[2,1]{1.0,2.5}"}, "quantile", x, f32s([]int{2}, 0, 0.625), nil, true)
	want(t, []string{"f32[]{2.5}"}, "nanquantile.scalar", n, 0.5)
	fails(t, "[0, 1]", "quantile.scalar", x, 1.5)
}

func TestHistograms(t *testing.T) {
	want(t, []string{"i64[4]{1,2,0,1}"}, "bincount", i64s([]int{4}, 1, 0, 3, 1))
	want(t, []string{"i64[5]{1,2,0,1,0}"}, "bincount", i64s([]int{4}, 1, 0, 3, 1), nil, int64(5))
	want(t, []string{"f32[2]{0.5,0.25}"}, "bincount", i64s([]int{2}, 1, 0), f32s([]int{2}, 0.25, 0.5))
	want(t, []string{"f32[4]{1.0,0.0,1.0,2.0}"}, "histc", f32s([]int{5}, -2, 0.5, 1, 2, 3), int64(4), -2.0, 2.0)
	want(t, []string{"f32[2]{1.0,1.0}"}, "histc", f32s([]int{2}, 1, 3), int64(2))
}

func TestUniqueSlices(t *testing.T) {
	rows := f64s(dimsOf(4, 2), 2, 1, 0, 3, 2, 1, 0, 2)
	same(t, []float64{0, 2, 0, 3, 2, 1}, result(t, "unique.both", rows, true, true, true, int64(0)), "distinct rows in order of their elements")
	same(t, []float64{2, 1, 0, 3, 2, 1, 0, 2}, result(t, "unique_consecutive", rows, int64(0)), "no two neighbours are equal")
}

func TestPolygammaReflects(t *testing.T) {
	// psi_2(1) = -2 zeta(3); psi_2(-1/2) = psi_2(1/2) + 2/(1/2)^3 = -14 zeta(3) + 16
	const zeta3 = 1.2020569031595942
	same(t, []float64{-2 * zeta3, 16 - 14*zeta3}, result(t, "polygamma", int64(2), f64s(dimsOf(2), 1, -0.5)), "second derivative of digamma")
}

func TestGradientOfSamples(t *testing.T) {
	squares := f64s(dimsOf(4), 0, 1, 4, 9)
	out, err := expandAndRun("gradient", squares)
	require.NoError(t, err)
	same(t, []float64{1, 2, 4, 5}, out[0].(ir.List).Elems()[0].(*ir.Array), "one-sided at the ends")
	out, err = expandAndRun("gradient", squares, nil, nil, int64(2))
	require.NoError(t, err)
	same(t, []float64{0, 2, 4, 6}, out[0].(ir.List).Elems()[0].(*ir.Array), "exact for squares")
	same(t, []float64{1, 2, 4, 1, 3, 9}, result(t, "linalg_vander", f64s(dimsOf(2), 2, 3), int64(3)), "powers of each element")
}
