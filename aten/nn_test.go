package aten

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// expandAndRun is eval with a key for random functions.
func expandAndRun(name string, args ...ir.Datum) ([]ir.Datum, error) {
	fn := byName[name]
	for _, p := range fn.Params[len(args):] {
		if p.Name == "key" {
			args = append(args, int64(42))
		} else {
			args = append(args, p.Default)
		}
	}
	return eval(name, args...)
}

// result is the first result of a call that must succeed.
func result(t *testing.T, name string, args ...ir.Datum) *ir.Array {
	t.Helper()
	out, err := expandAndRun(name, args...)
	require.NoError(t, err, name)
	return out[0].(*ir.Array)
}

func f64s(shape []int, v ...float64) *ir.Array { return ir.FromFloats(dtype.F64, shape, v) }

// wave is a tensor of numbers without a pattern.
func wave(shape ...int) *ir.Array {
	v := make([]float64, product(shape))
	for i := range v {
		v[i] = math.Round(1000*math.Sin(float64(3*i+len(shape)))) / 100
	}
	return f64s(shape, v...)
}

func dimsOf(n ...int) []int { return n }

func same(t *testing.T, want []float64, got *ir.Array, msg string) {
	t.Helper()
	require.InDeltaSlice(t, want, got.Floats(), 1e-9, msg)
}

func TestMatmulShapes(t *testing.T) {
	for _, c := range []struct{ x, y, want []int }{
		{dimsOf(3), dimsOf(3), dimsOf()},
		{dimsOf(2, 3), dimsOf(3), dimsOf(2)},
		{dimsOf(3), dimsOf(3, 4), dimsOf(4)},
		{dimsOf(2, 3), dimsOf(3, 4), dimsOf(2, 4)},
		{dimsOf(5, 2, 3), dimsOf(3), dimsOf(5, 2)},
		{dimsOf(3), dimsOf(5, 3, 4), dimsOf(5, 4)},
		{dimsOf(2, 3), dimsOf(5, 3, 4), dimsOf(5, 2, 4)},
		{dimsOf(6, 1, 2, 3), dimsOf(5, 3, 4), dimsOf(6, 5, 2, 4)},
		{dimsOf(0, 2, 3), dimsOf(0, 3, 4), dimsOf(0, 2, 4)},
		{dimsOf(2, 0), dimsOf(0, 4), dimsOf(2, 4)},
	} {
		got := result(t, "matmul", wave(c.x...), wave(c.y...))
		require.Equal(t, fmt.Sprint(c.want), fmt.Sprint(got.Shape), "%v @ %v", c.x, c.y)
	}
	got := result(t, "matmul", f64s(dimsOf(2, 2), 1, 2, 3, 4), f64s(dimsOf(2, 1, 2, 1), 1, 10, 2, 20))
	same(t, []float64{21, 43, 42, 86}, got, "batches broadcast")
}

func TestEinsum(t *testing.T) {
	m, v := f64s(dimsOf(2, 2), 1, 2, 3, 4), f64s(dimsOf(2), 1, 10)
	for _, c := range []struct {
		equation string
		operands []ir.Datum
		want     []float64
	}{
		{"ij,j->i", []ir.Datum{m, v}, []float64{21, 43}},
		{"ij->ji", []ir.Datum{m}, []float64{1, 3, 2, 4}},
		{"ii", []ir.Datum{m}, []float64{5}},
		{"ii->i", []ir.Datum{m}, []float64{1, 4}},
		{"ba", []ir.Datum{m}, []float64{1, 3, 2, 4}},
		{"i,j", []ir.Datum{v, v}, []float64{1, 10, 10, 100}},
		{"...j,j", []ir.Datum{m, v}, []float64{21, 43}},
		{"ij,ij,j->", []ir.Datum{m, m, v}, []float64{1 + 40 + 9 + 160}},
		{"i j , j k -> i k", []ir.Datum{m, m}, []float64{7, 10, 15, 22}},
	} {
		same(t, c.want, result(t, "einsum", c.equation, ir.NewList(c.operands...)), c.equation)
	}
}

func TestConvolutionsAgainstLoops(t *testing.T) {
	x, w, bias := wave(2, 4, 7, 6), wave(6, 2, 3, 2), wave(6)
	stride, pad, dil, groups := dimsOf(2, 1), dimsOf(1, 2), dimsOf(1, 2), 2
	got := result(t, "conv2d", x, w, bias, ir.Ints(stride...), ir.Ints(pad...), ir.Ints(dil...), int64(groups))
	xs, ws := x.Floats(), w.Floats()
	var want []float64
	for n := range 2 {
		for o := range 6 {
			for i := range 4 {
				for j := range 8 {
					sum := bias.Floats()[o]
					for c := range 2 {
						for ki := range 3 {
							for kj := range 2 {
								p, q := i*stride[0]-pad[0]+ki*dil[0], j*stride[1]-pad[1]+kj*dil[1]
								if p >= 0 && p < 7 && q >= 0 && q < 6 {
									sum += xs[((n*4+o/3*2+c)*7+p)*6+q] * ws[((o*2+c)*3+ki)*2+kj]
								}
							}
						}
					}
					want = append(want, sum)
				}
			}
		}
	}
	require.Equal(t, dimsOf(2, 6, 4, 8), got.Shape)
	same(t, want, got, "conv2d")

	// the transposed convolution is the adjoint: <conv(x), y> = <x, convT(y)>
	y := wave(2, 6, 4, 8)
	ct := result(t, "conv_transpose2d", y, w, nil, ir.Ints(stride...), ir.Ints(pad...), ir.Ints(0, 0), int64(groups), ir.Ints(dil...))
	require.Equal(t, x.Shape, ct.Shape)
	plain := result(t, "conv2d", x, w, nil, ir.Ints(stride...), ir.Ints(pad...), ir.Ints(dil...), int64(groups))
	require.InDelta(t, inner(plain, y), inner(x, ct), 1e-6)

	same(t, result(t, "conv1d", wave(1, 2, 9), wave(2, 2, 3), nil, ir.Ints(1), ir.Ints(2), ir.Ints(2)).Floats(),
		result(t, "conv1d.padding", wave(1, 2, 9), wave(2, 2, 3), nil, ir.Ints(1), "same", ir.Ints(2)), "same padding")
}

func inner(x, y *ir.Array) float64 {
	sum, ys := 0.0, y.Floats()
	for i, v := range x.Floats() {
		sum += v * ys[i]
	}
	return sum
}

func TestUnfoldAndFoldAreAdjoint(t *testing.T) {
	x := wave(1, 2, 5, 6)
	args := []ir.Datum{ir.Ints(2, 3), ir.Ints(2, 1), ir.Ints(1, 0), ir.Ints(2, 1)}
	cols := result(t, "unfold.im2col", append([]ir.Datum{x}, args...)...)
	y := wave(cols.Shape...)
	back := result(t, "fold", append([]ir.Datum{y, ir.Ints(5, 6)}, args...)...)
	require.InDelta(t, inner(cols, y), inner(x, back), 1e-6)
}

func TestPooling(t *testing.T) {
	x := f64s(dimsOf(1, 1, 3, 3), 1, 5, 2, 7, 7, 0, -1, 3, 9)
	out, err := expandAndRun("max_pool2d_with_indices", x, ir.Ints(2, 2), ir.Ints(1, 1))
	require.NoError(t, err)
	same(t, []float64{7, 7, 7, 9}, out[0].(*ir.Array), "values")
	same(t, []float64{3, 4, 3, 8}, out[1].(*ir.Array), "the first of equal elements is chosen")

	padded := f64s(dimsOf(1, 1, 2), 1, 3)
	same(t, []float64{1, 3}, result(t, "max_pool1d", padded, ir.Ints(2), ir.Ints(2), ir.Ints(1)), "padding never wins")
	same(t, []float64{0.5, 1.5}, result(t, "avg_pool1d", padded, ir.Ints(2), ir.Ints(2), ir.Ints(1)), "padding counts")
	same(t, []float64{1, 3}, result(t, "avg_pool1d", padded, ir.Ints(2), ir.Ints(2), ir.Ints(1), false, false), "padding does not count")
	same(t, []float64{1, 2, 4, 5}, result(t, "adaptive_avg_pool2d", f64s(dimsOf(1, 2, 3), 0, 2, 2, 4, 4, 6), ir.Ints(2, 2)), "bins overlap")
	same(t, []float64{2, 6}, result(t, "adaptive_max_pool2d", f64s(dimsOf(1, 2, 3), 0, 2, 2, 4, 4, 6), ir.Ints(2, 1)), "unbatched")
}

func TestActivationsKeepSpecialValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	x := f64s(dimsOf(4), inf, -inf, nan, 0)
	for name, want := range map[string][]float64{
		"elu": {inf, -1, nan, 0}, "celu": {inf, -1, nan, 0}, "hardtanh": {1, -1, nan, 0}, "relu6": {6, 0, nan, 0},
		"softplus": {inf, 0, nan, math.Ln2}, "logsigmoid": {0, -inf, nan, -math.Ln2}, "hardsigmoid": {1, 0, nan, 0.5},
		"hardshrink": {inf, -inf, nan, 0}, "silu": {inf, nan, nan, 0}, "leaky_relu": {inf, -inf, nan, 0},
	} {
		got := result(t, name, x).Floats()
		for i, w := range want {
			require.True(t, got[i] == w || math.IsNaN(w) && math.IsNaN(got[i]) || math.Abs(got[i]-w) < 1e-12, "%s: %v, expected %v", name, got, want)
		}
	}
}

func TestSoftmax(t *testing.T) {
	x := f64s(dimsOf(2, 2), 0, math.Log(3), 1000, 1000)
	same(t, []float64{0.25, 0.75, 0.5, 0.5}, result(t, "softmax", x, int64(-1)), "softmax")
	same(t, []float64{math.Log(0.25), math.Log(0.75), -math.Ln2, -math.Ln2}, result(t, "log_softmax", x, int64(1)), "log_softmax")
	require.Equal(t, dimsOf(0, 3), result(t, "softmax", f64s(dimsOf(0, 3)), int64(0)).Shape)
	same(t, []float64{1}, result(t, "softmax", f64s(nil, 5), int64(0)), "0-d")
}

func TestNormalisation(t *testing.T) {
	x := f64s(dimsOf(2, 1, 2), 1, 2, 3, 6)
	out, err := expandAndRun("batch_norm_stats", x, f64s(dimsOf(1), 0), f64s(dimsOf(1), 1), nil, nil, true, 0.1, 0.0)
	require.NoError(t, err)
	sd := math.Sqrt(3.5)
	same(t, []float64{-2 / sd, -1 / sd, 0, 3 / sd}, out[0].(*ir.Array), "standardised")
	same(t, []float64{0.3}, out[1].(*ir.Array), "running mean")
	same(t, []float64{0.9 + 0.1*3.5*4/3}, out[2].(*ir.Array), "running variance is unbiased")
	same(t, []float64{-1, 1, -1, 1}, result(t, "layer_norm", x, ir.Ints(2), nil, nil, 0.0), "layer_norm")
	same(t, []float64{0.6, 0.8}, result(t, "normalize", f64s(dimsOf(1, 2), 3, 4)), "normalize")
}

func TestLosses(t *testing.T) {
	x := f64s(dimsOf(2, 2), 0, math.Log(3), math.Log(3), 0)
	y := i64s(dimsOf(2), 1, 1)
	a, b := -math.Log(0.75), -math.Log(0.25)
	same(t, []float64{(a + b) / 2}, result(t, "cross_entropy", x, y), "mean")
	same(t, []float64{a, b}, result(t, "cross_entropy", x, y, nil, nil, int64(-100), nil, "none"), "none")
	same(t, []float64{a + b}, result(t, "cross_entropy", x, y, nil, false), "size_average=False means sum")
	same(t, []float64{a}, result(t, "cross_entropy", x, i64s(dimsOf(2), 1, -100)), "ignored targets do not count")
	same(t, []float64{(2*a + a) / 3}, result(t, "cross_entropy", x, i64s(dimsOf(2), 1, 0), f64s(dimsOf(2), 1, 2)), "weights")
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	x := wave(2, 3)
	for _, c := range []struct {
		want, name string
		args       []ir.Datum
	}{
		{"both arguments to matmul need to be at least 1D", "matmul", []ir.Datum{f64s(nil, 1), x}},
		{"mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)", "mm", []ir.Datum{x, x}},
		{"expected scalar type Double but found Long", "mm", []ir.Datum{x, i64s(dimsOf(3, 1), 1, 2, 3)}},
		{"does not match the number of dimensions", "einsum", []ir.Datum{"ijk->i", ir.NewList(x)}},
		{"Halving dimension must be even", "glu", []ir.Datum{x}},
		{"to have 3 channels, but got 2 channels", "conv1d", []ir.Datum{wave(1, 2, 4), wave(1, 3, 2)}},
		{"Kernel size can't be greater than actual input size", "conv1d", []ir.Datum{wave(1, 2, 1), wave(1, 2, 2)}},
		{"pad should be at most half of kernel size", "avg_pool2d", []ir.Datum{wave(1, 1, 4, 4), ir.Ints(2, 2), nil, ir.Ints(2, 2)}},
		{"Output size is too small", "max_pool2d", []ir.Datum{wave(1, 1, 4, 4), ir.Ints(5, 5)}},
		{"Expected more than 1 value per channel when training", "batch_norm", []ir.Datum{wave(1, 3), nil, nil, nil, nil, true}},
		{"Given normalized_shape=[5]", "layer_norm", []ir.Datum{x, ir.Ints(5)}},
		{"Expected input batch_size (2) to match target batch_size (3)", "cross_entropy", []ir.Datum{x, i64s(dimsOf(3), 0, 0, 0)}},
		{"out of range", "cross_entropy", []ir.Datum{x, i64s(dimsOf(2), 0, 3)}},
		{"not divisible by 4", "pixel_shuffle", []ir.Datum{wave(3, 2, 2), int64(2)}},
		{"singular", "inverse", []ir.Datum{f64s(dimsOf(2, 2), 1, 1, 1, 1)}},
		{"same number of spatial dimensions", "interpolate", []ir.Datum{wave(1, 1, 2), ir.Ints(2, 2)}},
		{"dropout probability has to be between 0 and 1", "dropout", []ir.Datum{x, 1.5}},
	} {
		_, err := expandAndRun(c.name, c.args...)
		require.ErrorContains(t, err, c.want, c.name)
	}
}

func TestRandomFunctions(t *testing.T) {
	ones := ir.FromFloats(dtype.F32, dimsOf(1000), make([]float64, 1000))
	for i := range 1000 {
		ones.SetFloat(i, 1)
	}
	dropped := result(t, "dropout", ones, 0.25)
	zeros := 0
	for _, v := range dropped.Floats() {
		if v == 0 {
			zeros++
		} else {
			require.InDelta(t, 1/0.75, v, 1e-6)
		}
	}
	require.InDelta(t, 250, zeros, 60)
	require.Same(t, ones, result(t, "dropout", ones, 0.25, false), "nothing happens in evaluation")

	seen := map[float64]bool{}
	for _, v := range result(t, "randperm", int64(20)).Floats() {
		seen[v] = true
	}
	require.Len(t, seen, 20, "a permutation")
	for _, v := range result(t, "randint.low", int64(-2), int64(3), ir.Ints(200)).Floats() {
		require.True(t, v >= -2 && v < 3, "%v", v)
	}
	same(t, []float64{2, 2, 2}, result(t, "multinomial", f64s(dimsOf(3), 0, 0, 1), int64(3), true), "only what is probable")
}

func TestResizing(t *testing.T) {
	x := f64s(dimsOf(1, 1, 2), 0, 4)
	same(t, []float64{0, 0, 4, 4}, result(t, "interpolate", x, nil, 2.0), "nearest")
	same(t, []float64{0, 1, 3, 4}, result(t, "interpolate", x, nil, 2.0, "linear"), "linear")
	same(t, []float64{0, 2, 4}, result(t, "interpolate", x, ir.Ints(3), nil, "linear", true), "linear with aligned corners")
	same(t, []float64{4, 0, 4, 0}, result(t, "pad", x, ir.Ints(1, 1), "reflect"), "reflect")
	same(t, []float64{9, 4}, result(t, "pad", f64s(dimsOf(1, 2), 0, 4), ir.Ints(-1, 0, 1, 0), "constant", 9.0), "negative padding cuts")

	theta := f64s(dimsOf(1, 2, 3), 1, 0, 0, 0, 1, 0)
	image := wave(1, 2, 3, 4)
	grid := result(t, "affine_grid", theta, ir.Ints(1, 2, 3, 4))
	same(t, image.Floats(), result(t, "grid_sample", image, grid), "the identity map samples the image itself")
}

func TestLinalg(t *testing.T) {
	a := f64s(dimsOf(2, 2), 2, 1, 1, 3)
	same(t, []float64{0.6, 0.8}, result(t, "linalg_solve", a, f64s(dimsOf(2), 2, 3)), "a vector")
	same(t, []float64{5, 5, 5, 10}, result(t, "matrix_power", a, int64(2)), "power")
	c, s := math.Cos(1), math.Sin(1)
	same(t, []float64{c, -s, s, c}, result(t, "matrix_exp", f64s(dimsOf(2, 2), 0, -1, 1, 0)), "a rotation")
	same(t, []float64{math.Log(5)}, result(t, "logdet", a), "logdet")
	same(t, []float64{0.6, -0.2, -0.2, 0.4}, result(t, "pinverse", a), "the pseudo-inverse of a regular matrix is its inverse")
	same(t, []float64{1}, result(t, "matrix_rank", f64s(dimsOf(2, 2), 1, 2, 2, 4)), "rank")
	same(t, []float64{5}, result(t, "linalg_matrix_norm", f64s(dimsOf(2, 2), 3, 0, 0, -5), int64(2)), "spectral norm")
	same(t, []float64{8}, result(t, "linalg_matrix_norm.str", f64s(dimsOf(2, 2), 3, 0, 0, -5), "nuc"), "nuclear norm")
}

func TestEmbedding(t *testing.T) {
	table := f64s(dimsOf(3, 2), 0, 1, 10, 11, 20, 21)
	same(t, []float64{20, 21, 0, 1}, result(t, "embedding", i64s(dimsOf(2), 2, 0), table), "rows")
	same(t, []float64{15, 16, 0, 0}, result(t, "embedding_bag", i64s(dimsOf(2), 1, 2), table, i64s(dimsOf(2), 0, 2)), "the mean of a bag; an empty bag is zero")
	_, err := expandAndRun("embedding", f64s(dimsOf(1), 0), table)
	require.ErrorContains(t, err, "Long, Int")
}
