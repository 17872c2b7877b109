package trace_test

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/tensor"
	"github.com/gtc-project/gtc/trace"
)

func printed(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	old := os.Stdout
	os.Stdout = w
	defer func() { os.Stdout = old }()
	f()
	require.NoError(t, w.Close())
	out, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(out)
}

// Print is part of the program: it writes at each call, once, and neither in the trace nor where gradients are computed.
func TestPrintIsRecorded(t *testing.T) {
	fn := func(x *tensor.Tensor) *tensor.Tensor {
		y := x.Mul(2)
		trace.Print("y is", y, 3)
		return y.Square().Sum()
	}
	f := ones(fn)
	require.Equal(t, "y is tensor(f32[2]{2.0,4.0}) 3\n", printed(t, func() { fn(vec(t, 1, 2)) }))
	require.Equal(t, "y is tensor(f32[2]{2.0,4.0}) 3\n", printed(t, func() { call(t, f, vec(t, 1, 2)) }))
	require.Equal(t, "y is tensor(f32[2]{6.0,8.0}) 3\n", printed(t, func() { call(t, f, vec(t, 3, 4)) }))
	x := vec(t, 1, 2).RequiresGrad()
	require.Equal(t, "y is tensor(f32[2]{2.0,4.0}) 3\n", printed(t, func() { require.NoError(t, call(t, f, x).Backward()) }))
	require.Equal(t, []float64{8, 16}, floats(t, x.Grad()))
}
