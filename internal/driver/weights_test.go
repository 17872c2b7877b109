package driver_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/internal/driver"
	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/internal/safetensors"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

var linear = []driver.WeightSpec{
	{Name: "fc.weight", DType: dtype.F32, Shape: []int{2, 2}},
	{Name: "fc.bias", DType: dtype.F32, Shape: []int{2}},
	{Name: "bn.running_var", DType: dtype.F32, Shape: []int{2}, Buffer: true},
}

func TestLoadWeightsFromFiles(t *testing.T) {
	dir := t.TempDir()
	w, b, v := ir.FromFloats(dtype.F16, []int{2, 2}, []float64{1, 2, 3, 4}), f32(5, 6), f32(7, 8)
	st, nz := filepath.Join(dir, "w.safetensors"), filepath.Join(dir, "w.npz")
	require.NoError(t, safetensors.Write(st, []safetensors.Named{{Name: "fc.bias", Array: b}, {Name: "fc.weight", Array: w}, {Name: "bn.running_var", Array: v}}, nil))
	require.NoError(t, npz.Write(nz, []npz.Named{{Name: "fc.bias", Array: b}, {Name: "fc.weight", Array: w}, {Name: "bn.running_var", Array: v}}))
	for _, path := range []string{st, nz} {
		got, err := driver.LoadWeights(path, linear)
		require.NoError(t, err)
		require.Equal(t, "f32[2,2]{1.0,2.0,3.0,4.0}", got[0].Array.String(), "half precision is widened")
		require.Equal(t, "f32[2]{5.0,6.0}", got[1].Array.String())
		require.True(t, got[0].Trainable)
		require.False(t, got[2].Trainable, "a buffer has no gradient")
	}
}

// TestLoadWeightsListsEveryProblem: one error names all that is missing, extra or misshapen.
func TestLoadWeightsListsEveryProblem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.npz")
	require.NoError(t, npz.Write(path, []npz.Named{{Name: "fc.weight", Array: f32(1)}, {Name: "fc.gain", Array: f32(1)}}))
	_, err := driver.LoadWeights(path, linear)
	for _, want := range []string{path, "fc.weight: the shape is [1], the module's is [2 2]", "missing: fc.bias", "missing: bn.running_var", "not in the module: fc.gain"} {
		require.ErrorContains(t, err, want)
	}
	_, err = driver.LoadWeights("", linear)
	require.ErrorContains(t, err, "random:SEED")
	_, err = driver.LoadWeights("random:x", linear)
	require.ErrorContains(t, err, "random:1")
	none, err := driver.LoadWeights("", nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestRandomWeightsRepeat(t *testing.T) {
	a, err := driver.LoadWeights("random:3", linear)
	require.NoError(t, err)
	b, err := driver.LoadWeights("random:3", linear)
	require.NoError(t, err)
	require.Equal(t, a, b)
	c, err := driver.LoadWeights("random:4", linear)
	require.NoError(t, err)
	require.NotEqual(t, a[0].Array.Floats(), c[0].Array.Floats())
	require.Equal(t, []float64{1, 1}, a[2].Array.Floats())
}
