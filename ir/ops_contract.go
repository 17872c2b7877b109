package ir

import (
	"runtime"
	"sync"

	"github.com/gtc-project/gtc/ir/dtype"
)

// dot, the one contraction: matrix products, convolutions (over windows) and attention all become it.

var _ = register(&Op{
	Name: "dot", Doc: "General contraction a[B…,M…,K…] · b[B…,N…,K…] -> [B…,M…,N…]: nbatch leading dims are shared, ncontract last dims are multiplied and summed; halves accumulate in f32.",
	Params: []string{"a", "b", "nbatch", "ncontract"}, Class: Contract,
	Infer: inferDot, Eval: checked(evalDot), Grad: gradDot,
})

func inferDot(c *Call) ([]Type, error) {
	if err := c.need(4); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	y, err := c.tensor(1)
	if err != nil {
		return nil, err
	}
	d, err := c.sameDType(x, y)
	if err != nil {
		return nil, err
	}
	if d == dtype.Bool {
		return nil, c.Errorf("expected tensors of numbers, got %s", d)
	}
	out := Type{Kind: KTensor, DType: d}
	nb, known1, err := c.intArg(2)
	if err != nil {
		return nil, err
	}
	nc, known2, err := c.intArg(3)
	if err != nil {
		return nil, err
	}
	if !known1 || !known2 || !x.Ranked || !y.Ranked {
		return t1(out)
	}
	if nb < 0 || nc < 0 || nb+nc > len(x.Dims) || nb+nc > len(y.Dims) {
		return nil, c.Errorf("expected tensors with at least %d batch and %d contracted dimensions, got shapes %s and %s", nb, nc, dimsString(x.Dims), dimsString(y.Dims))
	}
	var dims []Dim
	for i := 0; i < nb; i++ {
		if dimsDiffer(x.Dims[i], y.Dims[i]) {
			return nil, c.Errorf("batch sizes %d and %d at dimension %d do not match, expected equal sizes: shapes %s and %s", x.Dims[i].N, y.Dims[i].N, i, dimsString(x.Dims), dimsString(y.Dims))
		}
		dims = append(dims, meetDim(x.Dims[i], y.Dims[i]))
	}
	kx, ky := len(x.Dims)-nc, len(y.Dims)-nc
	for i := 0; i < nc; i++ {
		if dimsDiffer(x.Dims[kx+i], y.Dims[ky+i]) {
			return nil, c.Errorf("shapes %s and %s cannot be multiplied: contracted sizes %d and %d do not match, expected equal sizes", dimsString(x.Dims), dimsString(y.Dims), x.Dims[kx+i].N, y.Dims[ky+i].N)
		}
	}
	dims = append(append(dims, x.Dims[nb:kx]...), y.Dims[nb:ky]...)
	return t1(out.withDims(dims))
}

// gradDot contracts the cotangent [B…,M…,N…] with the other operand over that one's free dims.
func gradDot(b *Builder, n *Node, ct []*Value) []*Value {
	x, y, g := n.Args[0], n.Args[1], ct[0]
	nb, nc := b.constInt(n.Args[2]), b.constInt(n.Args[3])
	nm, nn := b.NeedRank(x)-nb-nc, b.NeedRank(y)-nb-nc
	dx := b.Op("dot", g, b.freeLast(y, nb, nn, nc), b.Int(nb), b.Int(nn))
	dy := b.Op("dot", b.freeLast(g, nb, nm, nn), b.freeLast(x, nb, nm, nc), b.Int(nb), b.Int(nm))
	return []*Value{dx, dy, nil, nil}
}

// freeLast permutes [batch, first, last] to [batch, last, first].
func (b *Builder) freeLast(v *Value, batch, first, last int) *Value {
	if first == 0 || last == 0 {
		return v
	}
	p := iotaInts(batch)
	for i := 0; i < last; i++ {
		p = append(p, batch+first+i)
	}
	for i := 0; i < first; i++ {
		p = append(p, batch+i)
	}
	return b.Op("permute", v, b.Ints(p...))
}

func evalDot(c *EvalCall, out []Type) ([]Datum, error) {
	switch x := c.Array(0); {
	case x.DType == dtype.F64:
		return contract[float64](c, out[0])
	case x.DType.IsFloat():
		return contract[float32](c, out[0])
	}
	return contract[int64](c, out[0])
}

func product(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

func contract[T number](c *EvalCall, t Type) ([]Datum, error) {
	y, err := tensorOf(t)
	if err != nil {
		return nil, err
	}
	x, w := c.Array(0), c.Array(1)
	nb, nc := c.Int(2), c.Int(3)
	k := product(x.Shape[len(x.Shape)-nc:])
	batch := product(x.Shape[:nb])
	m := product(x.Shape[nb : len(x.Shape)-nc])
	n := product(w.Shape[nb : len(w.Shape)-nc])
	res := make([]T, batch*m*n)
	if len(res) > 0 && k > 0 {
		a, b := load[T](x), load[T](w)
		for i := 0; i < batch; i++ {
			matmul(res[i*m*n:(i+1)*m*n], a[i*m*k:(i+1)*m*k], b[i*n*k:(i+1)*n*k], m, n, k)
		}
	}
	store(y, res)
	return one(y)
}

// matmul adds a[m,k] · b[n,k] to out[m,n]. Every element is summed over blocks of k in order, so its bits do not depend on how rows
// are shared among threads.
func matmul[T number](out, a, b []T, m, n, k int) {
	workers := min(runtime.GOMAXPROCS(0), m, 1+m*n/4096*k/64)
	if workers <= 1 {
		matmulRows(out, a, b, m, n, k)
		return
	}
	var wg sync.WaitGroup
	step := ((m+workers-1)/workers + 1) &^ 1
	for lo := 0; lo < m; lo += step {
		hi := min(lo+step, m)
		wg.Go(func() { matmulRows(out[lo*n:hi*n], a[lo*k:hi*k], b, hi-lo, n, k) })
	}
	wg.Wait()
}

// kBlock bounds how long a partial sum grows, and keeps four rows of b in the first-level cache.
const kBlock = 512

func matmulRows[T number](out, a, b []T, m, n, k int) {
	for k0 := 0; k0 < k; k0 += kBlock {
		kb := min(kBlock, k-k0)
		for j := 0; j < n; j += 4 {
			if j+4 > n {
				for ; j < n; j++ {
					bj := b[j*k+k0 : j*k+k0+kb]
					for i := 0; i < m; i++ {
						out[i*n+j] += dotRow(a[i*k+k0:i*k+k0+kb], bj)
					}
				}
				break
			}
			b0, b1 := b[j*k+k0:j*k+k0+kb], b[(j+1)*k+k0:(j+1)*k+k0+kb]
			b2, b3 := b[(j+2)*k+k0:(j+2)*k+k0+kb], b[(j+3)*k+k0:(j+3)*k+k0+kb]
			i := 0
			for ; i+2 <= m; i += 2 {
				tile2x4(out[i*n+j:], out[(i+1)*n+j:], a[i*k+k0:i*k+k0+kb], a[(i+1)*k+k0:(i+1)*k+k0+kb], b0, b1, b2, b3)
			}
			if i < m {
				ai := a[i*k+k0 : i*k+k0+kb]
				for q, bq := range [][]T{b0, b1, b2, b3} {
					out[i*n+j+q] += dotRow(ai, bq)
				}
			}
		}
	}
}

func dotRow[T number](a, b []T) T {
	var s T
	b = b[:len(a)]
	for i, x := range a {
		s += T(x * b[i])
	}
	return s
}

// tile2x4 keeps eight sums in registers.
func tile2x4[T number](o0, o1, a0, a1, b0, b1, b2, b3 []T) {
	var s00, s01, s02, s03, s10, s11, s12, s13 T
	a1, b0, b1, b2, b3 = a1[:len(a0)], b0[:len(a0)], b1[:len(a0)], b2[:len(a0)], b3[:len(a0)]
	for i, x := range a0 {
		y := a1[i]
		v := b0[i]
		s00 += T(x * v)
		s10 += T(y * v)
		v = b1[i]
		s01 += T(x * v)
		s11 += T(y * v)
		v = b2[i]
		s02 += T(x * v)
		s12 += T(y * v)
		v = b3[i]
		s03 += T(x * v)
		s13 += T(y * v)
	}
	o0, o1 = o0[:4], o1[:4]
	o0[0] += s00
	o0[1] += s01
	o0[2] += s02
	o0[3] += s03
	o1[0] += s10
	o1[1] += s11
	o1[2] += s12
	o1[3] += s13
}
