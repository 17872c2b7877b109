package tensor_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/tensor"
)

func TestEqualSeedsGiveEqualNumbersWhateverIsDrawnBetween(t *testing.T) {
	a, b := tensor.NewGenerator(7), tensor.NewGenerator(7)
	require.Equal(t, floats(t, a.Rand(tensor.F32, 5)), floats(t, b.Rand(tensor.F32, 5)))
	a.Rand(tensor.F32, 1000) // a draw is one step of the stream, of any size
	b.Rand(tensor.F32, 1)
	want := floats(t, a.Randn(tensor.F64, 4))
	require.Equal(t, want, floats(t, b.Randn(tensor.F64, 4)))
	require.NotEqual(t, want, floats(t, a.Randn(tensor.F64, 4)), "each draw is new")
	require.NotEqual(t, floats(t, a.Fork(0).Rand(tensor.F64, 4)), floats(t, a.Fork(1).Rand(tensor.F64, 4)))
	require.Equal(t, floats(t, a.Fork(3).Rand(tensor.F64, 4)), floats(t, b.Fork(3).Rand(tensor.F64, 4)))
	require.ErrorContains(t, a.Call("exp", tensor.Zeros(tensor.F32)).Err(), "random")
}

// The longer draw begins with the shorter one's numbers: they depend on the key and the element's index.
func TestNumbersDependOnKeyAndIndex(t *testing.T) {
	short, long := floats(t, tensor.NewGenerator(1).Randn(tensor.F32, 7)), floats(t, tensor.NewGenerator(1).Randn(tensor.F32, 10, 100))
	require.Equal(t, short, long[:7])
}

// Moments of 40,000 numbers, within five standard errors.
func TestDistributions(t *testing.T) {
	const n = 40000
	base := tensor.Zeros(tensor.F64, n)
	for _, c := range []struct {
		name           string
		args           []any
		mean, variance float64
	}{
		{"uniform", []any{base, -1.0, 3.0}, 1, 16.0 / 12},
		{"normal", []any{base, 2.0, 3.0}, 2, 9},
		{"exponential", []any{base, 2.0}, 0.5, 0.25},
		{"geometric", []any{base, 0.25}, 4, 12},
		{"bernoulli", []any{tensor.Full(tensor.F64, 0.3, n)}, 0.3, 0.21},
		{"rand", []any{[]int{n}, tensor.F64}, 0.5, 1.0 / 12},
		{"randn", []any{[]int{n}, tensor.F32}, 0, 1},
		{"randint", []any{10, []int{n}}, 4.5, 99.0 / 12},
		{"dropout", []any{tensor.Ones(tensor.F64, n), 0.2, true}, 1, 0.25},
	} {
		x := tensor.NewGenerator(5).Call(c.name, c.args...)
		require.NoError(t, x.Err(), c.name)
		mean, variance := 0.0, 0.0
		xs := floats(t, x)
		for _, v := range xs {
			mean += v / n
		}
		for _, v := range xs {
			variance += (v - mean) * (v - mean) / n
		}
		require.InDelta(t, c.mean, mean, 5*math.Sqrt(c.variance/n), c.name)
		require.InEpsilon(t, c.variance, variance, 0.1, c.name)
	}
	perm := floats(t, tensor.NewGenerator(2).Perm(1000))
	require.NotEqual(t, 0.0, perm[0]+perm[1])
	slices.Sort(perm)
	require.Equal(t, []float64{0, 999}, []float64{perm[0], perm[999]})
	w, err := tensor.FromSlice([]float32{0, 1, 3})
	require.NoError(t, err)
	count := [3]float64{}
	for _, v := range floats(t, tensor.NewGenerator(3).Call("multinomial", w, 4000, true)) {
		count[int(v)]++
	}
	require.Zero(t, count[0])
	require.InDelta(t, 3000, count[2], 150)
}

func TestDropoutsGradientUsesItsMask(t *testing.T) {
	x := tensor.Ones(tensor.F32, 1000).RequiresGrad()
	y := tensor.Call("dropout", x, 0.5, true)
	require.NoError(t, y.Sum().Backward())
	require.Equal(t, floats(t, y), floats(t, x.Grad()))
}
