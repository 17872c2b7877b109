package cpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// normals fills an array with numbers around zero.
func normals(r *rand.Rand, a *ir.Array) *ir.Array {
	for i := range a.Len() {
		a.SetFloat(i, r.NormFloat64())
	}
	return a
}

func evalDot(t testing.TB, x, y *ir.Array, nb, nc int) *ir.Array {
	f := ir.NewFunc("f")
	require.NoError(t, ir.Try(func() {
		b := ir.NewBuilder(f)
		vx, vy := f.Param("x", x.Type()), f.Param("y", y.Type())
		b.Return(b.Op("dot", vx, vy, b.Int(nb), b.Int(nc)))
	}))
	res, err := new(ir.Evaluator).Run(context.Background(), f, x, y)
	require.NoError(t, err)
	return res[0].(*ir.Array)
}

// dotTolerance is the error that rounding may leave in sums of k products of normal numbers.
func dotTolerance(d dtype.DType, k int) float64 {
	eps := map[dtype.DType]float64{dtype.F32: 0x1p-23, dtype.F64: 0x1p-52, dtype.F16: 0x1p-10, dtype.BF16: 0x1p-7}[d]
	if d.IsHalf() {
		return eps * 4 * math.Sqrt(float64(k)+1)
	}
	return eps * 16 * float64(k+16)
}

func checkDots(t *testing.T, b *Backend, x, y *ir.Array, nb, nc int) {
	t.Helper()
	want := evalDot(t, x, y, nb, nc)
	k := 1
	for _, n := range x.Shape[len(x.Shape)-nc:] {
		k *= n
	}
	tol := dotTolerance(x.DType, k)
	got := ir.NewArray(want.DType, want.Shape...)
	for i := range got.Len() {
		got.SetFloat(i, 777) // what was there before must not matter
	}
	require.NoError(t, runDot(t.Context(), b, got, x, y, nb, nc))
	for i, w := range want.Floats() {
		g := got.Float(i)
		if !(math.Abs(w-g) <= tol*(1+math.Abs(w)/8)) {
			require.Failf(t, "results differ", "dot %s%v·%v: element %d: want %v, got %v", x.DType, x.Shape, y.Shape, i, w, g)
		}
	}
}

func TestDotSizes(t *testing.T) {
	b := backend(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16} {
		for _, c := range [][3]int{{1, 1, 1}, {6, 16, 8}, {5, 15, 7}, {7, 17, 9}, {1, 40, 300}, {100, 1, 33}, {97, 33, 257}, {13, 530, 20}, {200, 100, 513}, {3, 3, 0}, {4, 100, 1}} {
			x, y := normals(r, ir.NewArray(d, c[0], c[2])), normals(r, ir.NewArray(d, c[1], c[2]))
			checkDots(t, b, x, y, 0, 1)
		}
	}
}

// Any strides on either side: transposed, sliced, reversed, broadcast; several dims per group.
func TestDotLayouts(t *testing.T) {
	b := backend(t)
	r := rand.New(rand.NewPCG(3, 4))
	pick := func(n int) []int {
		s := make([]int, n)
		for i := range s {
			s[i] = 1 + r.IntN(9)
		}
		return s
	}
	for range 150 {
		batch, m, n, k := pick(r.IntN(3)), pick(r.IntN(3)), pick(r.IntN(3)), pick(r.IntN(3))
		d := []dtype.DType{dtype.F32, dtype.F64, dtype.BF16}[r.IntN(3)]
		side := func(rows []int) *ir.Array {
			shape := append(append(append([]int{}, batch...), rows...), k...)
			v := randomView(r, d, shape)
			normals(r, &ir.Array{DType: d, Shape: []int{len(v.Data) / d.Size()}, Data: v.Data})
			return v
		}
		checkDots(t, b, side(m), side(n), len(batch), len(k))
	}
}

// A convolution is a dot of a view of windows.
func TestDotConvolution(t *testing.T) {
	b := backend(t)
	r := rand.New(rand.NewPCG(5, 6))
	x, w := normals(r, ir.NewArray(dtype.F32, 2, 3, 12, 13)), normals(r, ir.NewArray(dtype.F32, 8, 3, 3, 3))
	st := x.Strides
	windows := x.View([]int{2, 10, 11, 3, 3, 3}, []int{st[0], st[2], st[3], st[1], st[2], st[3]}, 0)
	checkDots(t, b, windows, w, 0, 3)
	checkDots(t, b, w, windows, 0, 3)
}

// The bits do not depend on layout, nor on how much else is computed.
func TestDotBitsDependOnShapeOnly(t *testing.T) {
	b := backend(t)
	r := rand.New(rand.NewPCG(7, 8))
	x, y := normals(r, ir.NewArray(dtype.F32, 150, 600)), normals(r, ir.NewArray(dtype.F32, 700, 600))
	run := func(x, y *ir.Array) *ir.Array {
		out := ir.NewArray(dtype.F32, x.Shape[0], y.Shape[0])
		require.NoError(t, runDot(t.Context(), b, out, x, y, 0, 1))
		return out
	}
	want := run(x, y)
	yt := ir.NewArray(dtype.F32, 600, 700)
	for i := range 700 {
		for k := range 600 {
			yt.SetFloat(k*700+i, y.Float(i*600+k))
		}
	}
	requireEqual(t, want, run(x, yt.View([]int{700, 600}, []int{1, 700}, 0)), "b transposed in memory")
	requireEqual(t, want, run(x, y), "again")
	for few := range 9 { // few rows on one side: kernels of their own
		x := x.View([]int{few, 600}, x.Strides, 0)
		requireEqual(t, run(x, y), run(x, yt.View([]int{700, 600}, []int{1, 700}, 0)), "few rows, b transposed in memory")
		swapped := run(y, x)
		requireEqual(t, run(x, y), swapped.View([]int{few, 700}, []int{1, few}, 0), "few columns")
	}
}

// Products with few rows or columns, contiguous along k or not, of every dtype.
func TestDotThin(t *testing.T) {
	b := backend(t)
	r := rand.New(rand.NewPCG(9, 10))
	for range 80 {
		d := []dtype.DType{dtype.F32, dtype.F64, dtype.F16}[r.IntN(3)]
		m, n, k := 1+r.IntN(9), 1+r.IntN(70), 16+r.IntN(50)
		if r.IntN(2) == 0 {
			m, n = n, m
		}
		batch := 1 + r.IntN(3)
		side := func(rows int) *ir.Array {
			v := randomView(r, d, []int{batch, rows, k})
			normals(r, &ir.Array{DType: d, Shape: []int{len(v.Data) / d.Size()}, Data: v.Data})
			return v
		}
		checkDots(t, b, side(m), side(n), 1, 1)
	}
}

func TestDotErrors(t *testing.T) {
	b := backend(t)
	x := ir.NewArray(dtype.F32, 2, 3)
	out := ir.NewArray(dtype.F32, 2, 2)
	require.NoError(t, runDot(t.Context(), b, out, x, x, 0, 1))
	require.ErrorContains(t, runDot(t.Context(), b, out, x, x, 0, 2), "does not fit")
	require.ErrorContains(t, runDot(t.Context(), b, out, x, x, 3, 1), "does not fit")
	require.ErrorContains(t, runDot(t.Context(), b, x, x, x, 0, 1), "does not fit")
	require.ErrorContains(t, runDot(t.Context(), b, out, x, ir.NewArray(dtype.I32, 2, 3), 0, 1), "one float dtype")
	require.ErrorContains(t, runDot(t.Context(), b, out, x.View([]int{2, 3}, []int{9, 1}, 0), x, 0, 1), "outside")
}

func BenchmarkDot(bb *testing.B) {
	b := backend(bb)
	for _, c := range []struct {
		d           dtype.DType
		nb, m, n, k int
	}{{dtype.F32, 1, 64, 64, 64}, {dtype.F32, 1, 256, 256, 256}, {dtype.F32, 1, 512, 512, 512}, {dtype.F32, 1, 1024, 1024, 1024}, {dtype.F32, 1, 128, 3072, 768}, {dtype.F32, 1, 1, 3072, 768},
		{dtype.F32, 1, 4, 3072, 768}, {dtype.F32, 1, 3072, 4, 768}, {dtype.F32, 96, 128, 128, 64}, {dtype.F64, 1, 512, 512, 512}, {dtype.BF16, 1, 512, 512, 512}} {
		bb.Run(fmt.Sprintf("%s/%dx%dx%dx%d", c.d, c.nb, c.m, c.n, c.k), func(bb *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			x, y := normals(r, ir.NewArray(c.d, c.nb, c.m, c.k)), normals(r, ir.NewArray(c.d, c.nb, c.n, c.k))
			out := ir.NewArray(c.d, c.nb, c.m, c.n)
			for bb.Loop() {
				if err := runDot(bb.Context(), b, out, x, y, 1, 1); err != nil {
					bb.Fatal(err)
				}
			}
			flops := 2 * float64(c.nb*c.m*c.n*c.k) * float64(bb.N)
			bb.ReportMetric(flops/float64(bb.Elapsed().Nanoseconds()), "GFLOP/s")
		})
	}
}

// runDot prepares a dot and runs it once.
func runDot(ctx context.Context, b *Backend, out, x, y *ir.Array, nbatch, ncontract int) error {
	d, err := b.Dot(out, x, y, nbatch, ncontract)
	if err != nil {
		return err
	}
	return d.Run(ctx, x, y, out)
}
