package ir

import (
	"fmt"
	"math"
	"sort"
)

// Decompositions of matrices, in f64 and rounded once.

var (
	_ = register(&Op{
		Name: "qr", Doc: "Q[…,m,n] with orthonormal columns and upper triangular R[…,n,n] with Q·R = x[…,m,n], m >= n, by Householder reflections.",
		Params: []string{"x"}, Class: Linalg, Effect: MayFail,
		Infer: inferQR, Eval: checked(evalQR), Grad: gradQR,
	})
	_ = register(&Op{
		Name: "eigh", Doc: "The eigenvalues L[…,n] in ascending order and eigenvectors V[…,n,n] (columns) of the symmetric x[…,n,n], of which the lower triangle is read.",
		Params: []string{"x"}, Class: Linalg, Effect: MayFail,
		Infer: inferEigh, Eval: checked(evalEigh), Grad: gradEigh,
	})
	_ = register(&Op{
		Name: "svd", Doc: "U[…,m,n], the singular values S[…,n] in descending order, and V[…,n,n] with U·diag(S)·Vᵀ = x[…,m,n], m >= n.",
		Params: []string{"x"}, Class: Linalg, Effect: MayFail,
		Infer: inferSVD, Eval: checked(evalSVD), Grad: gradSVD,
	})
)

// tallArg is operand 0 as matrices with at least as many rows as columns.
func (c *Call) tallArg() (Type, error) {
	if err := c.need(1); err != nil {
		return Type{}, err
	}
	x, err := c.matrixArg(0, false)
	if err != nil || !x.Ranked {
		return x, err
	}
	m, n := x.Dims[len(x.Dims)-2], x.Dims[len(x.Dims)-1]
	if m.Known() && n.Known() && m.N < n.N {
		return x, c.Errorf("expected matrices with at least as many rows as columns, got shape %s", dimsString(x.Dims))
	}
	return x, nil
}

// square is the type of the matrices [n, n] for the columns of x.
func (t Type) square() Type {
	if !t.Ranked {
		return t
	}
	dims := append([]Dim{}, t.Dims...)
	dims[len(dims)-2] = dims[len(dims)-1]
	return t.withDims(dims)
}

// vector is t without the dim before the last.
func (t Type) vector() Type {
	if !t.Ranked {
		return t
	}
	r := len(t.Dims)
	return t.withDims(append(append([]Dim{}, t.Dims[:r-2]...), t.Dims[r-1]))
}

func inferQR(c *Call) ([]Type, error) {
	x, err := c.tallArg()
	if err != nil {
		return nil, err
	}
	return []Type{x, x.square()}, nil
}

func inferSVD(c *Call) ([]Type, error) {
	x, err := c.tallArg()
	if err != nil {
		return nil, err
	}
	return []Type{x, x.vector(), x.square()}, nil
}

func inferEigh(c *Call) ([]Type, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x, err := c.matrixArg(0, true)
	if err != nil {
		return nil, err
	}
	return []Type{x.vector(), x}, nil
}

// packedAll makes several result arrays.
func packedAll(types []Type, err error, parts ...[]float64) ([]Datum, error) {
	var out []Datum
	for i, t := range types {
		d, err := packed(t, parts[i], err)
		if err != nil {
			return nil, err
		}
		out = append(out, d...)
	}
	return out, nil
}

func evalQR(c *EvalCall, out []Type) ([]Datum, error) {
	x := c.Array(0)
	m, n := x.Shape[len(x.Shape)-2], x.Shape[len(x.Shape)-1]
	var qs, rs []float64
	err := eachMatrix(x, func(_ int, a []float64) error {
		q, r := householder(a, m, n)
		qs, rs = append(qs, q...), append(rs, r...)
		return nil
	})
	return packedAll(out, err, qs, rs)
}

// householder reduces the m×n matrix a; the diagonal of R has the sign opposite to the column's leading element, as in LAPACK.
func householder(a []float64, m, n int) (q, r []float64) {
	q = make([]float64, m*n)
	vs := make([][]float64, n)
	for k := range n {
		below := 0.0
		for i := k + 1; i < m; i++ {
			below = math.Hypot(below, a[i*n+k])
		}
		if below == 0 {
			continue
		}
		v := make([]float64, m-k)
		for i := range v {
			v[i] = a[(k+i)*n+k]
		}
		v[0] += math.Copysign(math.Hypot(v[0], below), v[0])
		reflect(v, a, k, m, n)
		vs[k] = v
	}
	r = make([]float64, n*n)
	for i := range n {
		copy(r[i*n+i:(i+1)*n], a[i*n+i:(i+1)*n])
		q[i*n+i] = 1
	}
	for k := n - 1; k >= 0; k-- {
		if vs[k] != nil {
			reflect(vs[k], q, k, m, n)
		}
	}
	return q, r
}

// reflect subtracts from every column of a, rows k to m, twice its projection on v.
func reflect(v, a []float64, k, m, n int) {
	norm := 0.0
	for _, x := range v {
		norm += x * x
	}
	for j := range n {
		dot := 0.0
		for i, x := range v {
			dot += x * a[(k+i)*n+j]
		}
		f := 2 * dot / norm
		for i, x := range v {
			a[(k+i)*n+j] -= f * x
		}
	}
}

const maxSweeps = 60

func evalEigh(c *EvalCall, out []Type) ([]Datum, error) {
	x := c.Array(0)
	n := x.Shape[len(x.Shape)-1]
	var ls, vs []float64
	err := eachMatrix(x, func(i int, a []float64) error {
		for r := range n {
			for k := r + 1; k < n; k++ {
				a[r*n+k] = a[k*n+r]
			}
		}
		l, v, err := jacobi(a, n)
		if err != nil {
			return fmt.Errorf("matrix %d of the batch: %w", i, err)
		}
		ls, vs = append(ls, l...), append(vs, v...)
		return nil
	})
	return packedAll(out, err, ls, vs)
}

// jacobi diagonalises the symmetric matrix a by rotations.
func jacobi(a []float64, n int) (values, vectors []float64, err error) {
	v := make([]float64, n*n)
	scale := 0.0
	for i := range n {
		v[i*n+i] = 1
	}
	for _, x := range a {
		scale = math.Max(scale, math.Abs(x))
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, nil, fmt.Errorf("eigh: the input has elements that are not finite")
		}
	}
	for sweep := 0; ; sweep++ {
		off := 0.0
		for p := range n {
			for q := p + 1; q < n; q++ {
				off = math.Max(off, math.Abs(a[p*n+q]))
			}
		}
		if off <= 1e-17*scale {
			break
		}
		if sweep == maxSweeps {
			return nil, nil, fmt.Errorf("eigh: the algorithm failed to converge")
		}
		for p := range n {
			for q := p + 1; q < n; q++ {
				if a[p*n+q] != 0 {
					rotate(a, v, n, p, q)
				}
			}
		}
	}
	order := iotaInts(n)
	sort.SliceStable(order, func(i, j int) bool { return a[order[i]*n+order[i]] < a[order[j]*n+order[j]] })
	values, vectors = make([]float64, n), make([]float64, n*n)
	for to, from := range order {
		values[to] = a[from*n+from]
		for i := range n {
			vectors[i*n+to] = v[i*n+from]
		}
	}
	return values, vectors, nil
}

// rotate makes a[p,q] zero.
func rotate(a, v []float64, n, p, q int) {
	t := tangent(a[p*n+p], a[q*n+q], a[p*n+q])
	cos := 1 / math.Sqrt(t*t+1)
	sin := t * cos
	for k := range n {
		x, y := a[k*n+p], a[k*n+q]
		a[k*n+p], a[k*n+q] = cos*x-sin*y, sin*x+cos*y
	}
	for k := range n {
		x, y := a[p*n+k], a[q*n+k]
		a[p*n+k], a[q*n+k] = cos*x-sin*y, sin*x+cos*y
		x, y = v[k*n+p], v[k*n+q]
		v[k*n+p], v[k*n+q] = cos*x-sin*y, sin*x+cos*y
	}
}

// tangent is that of the angle that diagonalises [[pp, pq], [pq, qq]].
func tangent(pp, qq, pq float64) float64 {
	theta := (qq - pp) / (2 * pq)
	return math.Copysign(1, theta) / (math.Abs(theta) + math.Hypot(theta, 1))
}

func evalSVD(c *EvalCall, out []Type) ([]Datum, error) {
	x := c.Array(0)
	m, n := x.Shape[len(x.Shape)-2], x.Shape[len(x.Shape)-1]
	var us, ss, vs []float64
	err := eachMatrix(x, func(i int, a []float64) error {
		u, s, v, err := hestenes(a, m, n)
		if err != nil {
			return fmt.Errorf("matrix %d of the batch: %w", i, err)
		}
		us, ss, vs = append(us, u...), append(ss, s...), append(vs, v...)
		return nil
	})
	return packedAll(out, err, us, ss, vs)
}

// hestenes rotates pairs of columns of the m×n matrix a until all are orthogonal: one-sided Jacobi.
func hestenes(a []float64, m, n int) (u, s, v []float64, err error) {
	v = make([]float64, n*n)
	for i := range n {
		v[i*n+i] = 1
	}
	for _, x := range a {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, nil, nil, fmt.Errorf("svd: the input has elements that are not finite")
		}
	}
	for sweep, done := 0, false; !done; sweep++ {
		if sweep == maxSweeps {
			return nil, nil, nil, fmt.Errorf("svd: the algorithm failed to converge")
		}
		done = true
		for p := range n {
			for q := p + 1; q < n; q++ {
				var pp, qq, pq float64
				for k := range m {
					x, y := a[k*n+p], a[k*n+q]
					pp, qq, pq = pp+x*x, qq+y*y, pq+x*y
				}
				if math.Abs(pq) <= 1e-15*math.Sqrt(pp*qq) || pq == 0 {
					continue
				}
				done = false
				t := tangent(pp, qq, pq)
				cos := 1 / math.Sqrt(t*t+1)
				turnColumns(a, m, n, p, q, cos, t*cos)
				turnColumns(v, n, n, p, q, cos, t*cos)
			}
		}
	}
	norms, order := make([]float64, n), iotaInts(n)
	for j := range n {
		for k := range m {
			norms[j] = math.Hypot(norms[j], a[k*n+j])
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return norms[order[i]] > norms[order[j]] })
	u, s = make([]float64, m*n), make([]float64, n)
	vs := make([]float64, n*n)
	for to, from := range order {
		s[to] = norms[from]
		for k := range n {
			vs[k*n+to] = v[k*n+from]
		}
		for k := range m {
			if norms[from] > 0 {
				u[k*n+to] = a[k*n+from] / norms[from]
			}
		}
	}
	completeColumns(u, s, m, n)
	return u, s, vs, nil
}

func turnColumns(a []float64, m, n, p, q int, cos, sin float64) {
	for k := range m {
		x, y := a[k*n+p], a[k*n+q]
		a[k*n+p], a[k*n+q] = cos*x-sin*y, sin*x+cos*y
	}
}

// completeColumns fills the columns of u that belong to zero singular values with unit vectors orthogonal to the others.
func completeColumns(u, s []float64, m, n int) {
	for j := range n {
		if s[j] > 0 {
			continue
		}
		for axis := range m {
			col := make([]float64, m)
			col[axis] = 1
			for pass := 0; pass < 2; pass++ {
				for o := range n {
					if o >= j {
						break
					}
					dot := 0.0
					for k := range m {
						dot += col[k] * u[k*n+o]
					}
					for k := range m {
						col[k] -= dot * u[k*n+o]
					}
				}
			}
			norm := 0.0
			for _, x := range col {
				norm = math.Hypot(norm, x)
			}
			if norm > 0.5/float64(m) {
				for k := range m {
					u[k*n+j] = col[k] / norm
				}
				break
			}
		}
	}
}

// orZeros is ct, or zeros like v where there is none.
func (b *Builder) orZeros(ct, v *Value) *Value {
	if ct == nil {
		return b.fullLike(v, 0)
	}
	return ct
}

// diagonalOf makes matrices of the shape of like from their diagonals v[…,n].
func (b *Builder) diagonalOf(v, like *Value) *Value {
	return b.triangle(b.triangle(b.columns(v, like), false, 1), true, 1)
}

// columns repeats v[…,n] to the shape of like, element j in column j; rows has element i in row i.
func (b *Builder) columns(v, like *Value) *Value {
	r := b.NeedRank(like)
	dims := iotaInts(r)
	dims[r-2] = -1
	return b.Op("broadcast", b.Op("reshape", v, b.sizesOf(like, dims...)), b.ShapeOf(like))
}

func (b *Builder) rows(v, like *Value) *Value { return b.swapLast(b.columns(v, b.swapLast(like))) }

// gradQR is (gQ + Q·copyltu(R·gRᵀ − gQᵀ·Q))·R⁻ᵀ, copyltu(M) being M with the lower triangle copied above the diagonal.
func gradQR(b *Builder, n *Node, ct []*Value) []*Value {
	q, r := n.Results[0], n.Results[1]
	gq, gr := b.orZeros(ct[0], q), b.orZeros(ct[1], r)
	m := b.Op("sub", b.mm(r, b.swapLast(gr)), b.mm(b.swapLast(gq), q))
	sym := b.Op("add", b.triangle(m, false, 1), b.swapLast(b.triangle(m, false, 0)))
	left := b.Op("add", gq, b.mm(q, sym))
	// X·R⁻ᵀ = (R⁻¹·Xᵀ)ᵀ
	return []*Value{b.swapLast(b.Op("triangular_solve", r, b.swapLast(left), b.Bool(true), b.Bool(false), b.Bool(false)))}
}

// overGaps divides m[i,j] by (to[j]-to[i]), and leaves zero where these are equal, the diagonal included.
func (b *Builder) overGaps(m, to *Value) *Value {
	gap := b.Op("sub", b.columns(to, m), b.rows(to, m))
	equal := b.Op("eq", gap, b.fullLike(gap, 0))
	zero := b.fullLike(m, 0)
	return b.Op("where", equal, zero, b.Op("div", m, b.Op("where", equal, b.fullLike(gap, 1), gap)))
}

// gradEigh is V·(diag(gL) + sym((Vᵀ·gV)/gaps))·Vᵀ, sym(m) being (m+mᵀ)/2.
func gradEigh(b *Builder, n *Node, ct []*Value) []*Value {
	l, v := n.Results[0], n.Results[1]
	inner := b.fullLike(v, 0)
	if ct[1] != nil {
		m := b.overGaps(b.mm(b.swapLast(v), ct[1]), l)
		inner = b.Op("mul", b.Op("add", m, b.swapLast(m)), b.fullLike(v, 0.5)) // x stays symmetric, whatever gV is
	}
	if ct[0] != nil {
		inner = b.Op("add", inner, b.diagonalOf(ct[0], v))
	}
	return []*Value{b.mm(b.mm(v, inner), b.swapLast(v))}
}

// gradSVD is U·((skew(Uᵀ·gU)/E)·S + S·(skew(Vᵀ·gV)/E) + diag(gS))·Vᵀ with E[i,j] = S[j]²−S[i]², and for tall matrices the part of gU
// outside U's columns, (I−U·Uᵀ)·gU·S⁻¹·Vᵀ.
func gradSVD(b *Builder, n *Node, ct []*Value) []*Value {
	u, s, v := n.Results[0], n.Results[1], n.Results[2]
	skew := func(m *Value) *Value { return b.Op("sub", m, b.swapLast(m)) }
	squares := b.Op("mul", s, s)
	inner := b.fullLike(v, 0)
	if ct[1] != nil {
		inner = b.diagonalOf(ct[1], v)
	}
	if ct[2] != nil {
		k := b.overGaps(skew(b.mm(b.swapLast(v), ct[2])), squares)
		inner = b.Op("add", inner, b.Op("mul", b.rows(s, v), k))
	}
	if ct[0] == nil {
		return []*Value{b.mm(b.mm(u, inner), b.swapLast(v))}
	}
	utg := b.mm(b.swapLast(u), ct[0])
	inner = b.Op("add", inner, b.Op("mul", b.overGaps(skew(utg), squares), b.columns(s, v)))
	outside := b.Op("div", b.Op("sub", ct[0], b.mm(u, utg)), b.columns(s, u))
	return []*Value{b.mm(b.Op("add", b.mm(u, inner), outside), b.swapLast(v))}
}
