package ir

import (
	"fmt"
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Whole-matrix algorithms on batches x[…,n,n] of f32 and f64. They compute in f64 and round once.

var (
	_ = register(&Op{
		Name: "inverse", Doc: "The inverses of the matrices x[…,n,n]; fails on a singular one.",
		Params: []string{"x"}, Class: Linalg, Effect: MayFail,
		Infer: inferSquare(1), Eval: checked(evalInverse),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			t := b.swapLast(n.Results[0])
			return []*Value{b.Op("neg", b.mm(b.mm(t, ct[0]), t))}
		},
	})
	_ = register(&Op{
		Name: "det", Doc: "The determinants of the matrices x[…,n,n].",
		Params: []string{"x"}, Class: Linalg,
		Infer: inferSquare(1), Eval: checked(evalDet),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			return []*Value{b.Op("mul", b.perMatrix(b.Op("mul", ct[0], n.Results[0]), n.Args[0]), b.swapLast(b.Op("inverse", n.Args[0])))}
		},
	})
	_ = register(&Op{
		Name: "slogdet", Doc: "The sign of the determinants of x[…,n,n] and the logarithm of their absolute values.",
		Params: []string{"x"}, Class: Linalg,
		Infer: inferSquare(2), Eval: checked(evalSlogdet),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			if ct[1] == nil {
				return []*Value{nil}
			}
			return []*Value{b.Op("mul", b.perMatrix(ct[1], n.Args[0]), b.swapLast(b.Op("inverse", n.Args[0])))}
		},
	})
	_ = register(&Op{
		Name: "cholesky", Doc: "The lower triangular L with L·Lᵀ = x for symmetric positive-definite x[…,n,n], or with upper its transpose; reads one triangle only.",
		Params: []string{"x", "upper"}, Class: Linalg, Effect: MayFail,
		Infer: inferCholesky, Eval: checked(evalCholesky), Grad: gradCholesky,
	})
	_ = register(&Op{
		Name: "triangular_solve", Doc: "X with A·X = b (transpose: Aᵀ·X = b) for triangular a[…,n,n] and b[…,n,k]; the other triangle, and with unitriangular the diagonal, is not read.",
		Params: []string{"a", "b", "upper", "transpose", "unitriangular"}, Class: Linalg,
		Infer: inferSolve(5), Eval: checked(evalTriangularSolve), Grad: gradTriangularSolve,
	})
	_ = register(&Op{
		Name: "solve", Doc: "X with A·X = b for a[…,n,n] and b[…,n,k], by LU decomposition with partial pivoting; fails where a is singular.",
		Params: []string{"a", "b"}, Class: Linalg, Effect: MayFail,
		Infer: inferSolve(2), Eval: checked(evalSolve),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			gb := b.Op("solve", b.swapLast(n.Args[0]), ct[0])
			return []*Value{b.Op("neg", b.mm(gb, b.swapLast(n.Results[0]))), gb}
		},
	})
)

// matrixArg is operand i as a batch of matrices.
func (c *Call) matrixArg(i int, square bool) (Type, error) {
	x, err := c.tensor(i)
	if err != nil {
		return x, err
	}
	if x.DType != dtype.Invalid && x.DType != dtype.F32 && x.DType != dtype.F64 {
		return x, c.Errorf("expected an f32 or f64 tensor for %s, got %s", c.param(i), x)
	}
	if !x.Ranked {
		return x, nil
	}
	r := len(x.Dims)
	if r < 2 {
		return x, c.Errorf("expected a batch of matrices with at least 2 dimensions for %s, got shape %s", c.param(i), dimsString(x.Dims))
	}
	if square && dimsDiffer(x.Dims[r-1], x.Dims[r-2]) {
		return x, c.Errorf("expected a batch of square matrices for %s, got shape %s", c.param(i), dimsString(x.Dims))
	}
	return x, nil
}

// inferSquare is the rule of inverse (one matrix each) and of det and slogdet (numbers each).
func inferSquare(results int) func(c *Call) ([]Type, error) {
	return func(c *Call) ([]Type, error) {
		if err := c.need(1); err != nil {
			return nil, err
		}
		x, err := c.matrixArg(0, true)
		if err != nil {
			return nil, err
		}
		if c.Op.Name != "inverse" && x.Ranked {
			x = x.withDims(append([]Dim{}, x.Dims[:len(x.Dims)-2]...))
		}
		out := make([]Type, results)
		for i := range out {
			out[i] = x
		}
		return out, nil
	}
}

func inferCholesky(c *Call) ([]Type, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, err := c.matrixArg(0, true)
	if err != nil {
		return nil, err
	}
	_, _, err = c.boolArg(1)
	return []Type{x}, err
}

func inferSolve(n int) func(c *Call) ([]Type, error) {
	return func(c *Call) ([]Type, error) {
		if err := c.need(n); err != nil {
			return nil, err
		}
		for i := 2; i < n; i++ {
			if _, _, err := c.boolArg(i); err != nil {
				return nil, err
			}
		}
		a, err := c.matrixArg(0, true)
		if err != nil {
			return nil, err
		}
		b, err := c.matrixArg(1, false)
		if err != nil {
			return nil, err
		}
		d, err := c.sameDType(a, b)
		if err != nil {
			return nil, err
		}
		b.DType = d
		if !a.Ranked || !b.Ranked {
			return t1(b)
		}
		r := len(a.Dims)
		if len(b.Dims) != r || !shapesFit(a.Dims[:r-1], b.Dims[:r-1]) {
			return nil, c.Errorf("shapes %s and %s do not match: expected a[…,n,n] and b[…,n,k] with equal batch sizes", dimsString(a.Dims), dimsString(b.Dims))
		}
		return t1(b)
	}
}

// mm is the batched matrix product x[…,m,k] · y[…,k,n].
func (b *Builder) mm(x, y *Value) *Value {
	return b.Op("dot", x, b.swapLast(y), b.Int(b.NeedRank(x)-2), b.Int(1))
}

// perMatrix broadcasts a number for each matrix of x to x's shape.
func (b *Builder) perMatrix(v, x *Value) *Value {
	r := b.NeedRank(x)
	dims := iotaInts(r)
	dims[r-1], dims[r-2] = -1, -1
	return b.Op("broadcast", b.Op("reshape", v, b.sizesOf(x, dims...)), b.ShapeOf(x))
}

// triangle keeps one triangle of the matrices x and scales the diagonal.
func (b *Builder) triangle(x *Value, upper bool, diagonal float64) *Value {
	r := b.NeedRank(x)
	row := b.Op("iota", b.SizeOf(x, r-2), b.DType(dtype.I64))
	col := b.Op("iota", b.SizeOf(x, r-1), b.DType(dtype.I64))
	shape := b.ShapeOf(x)
	rows := b.Op("broadcast", b.Op("reshape", row, b.sizesOf(x, r-2, -1)), shape)
	cols := b.Op("broadcast", col, shape)
	cmp := "gt"
	if upper {
		cmp = "lt"
	}
	zero := b.fullLike(x, 0)
	diag := zero
	if diagonal != 0 {
		diag = b.Op("mul", x, b.fullLike(x, diagonal))
	}
	return b.Op("where", b.Op(cmp, rows, cols), x, b.Op("where", b.Op("eq", rows, cols), diag, zero))
}

// gradCholesky is L⁻ᵀ·Φ(Lᵀ·g)·L⁻¹, made symmetric; Φ keeps the lower triangle and halves the diagonal (Murray, "Differentiation of
// the Cholesky decomposition", 2016).
func gradCholesky(b *Builder, n *Node, ct []*Value) []*Value {
	l, g := n.Results[0], ct[0]
	if b.constBool(n.Args[1]) {
		l, g = b.swapLast(l), b.swapLast(g)
	}
	phi := b.triangle(b.mm(b.swapLast(l), g), false, 0.5)
	no, yes := b.Bool(false), b.Bool(true)
	left := b.Op("triangular_solve", l, phi, no, yes, no)                       // L⁻ᵀ·Φ
	s := b.swapLast(b.Op("triangular_solve", l, b.swapLast(left), no, yes, no)) // (L⁻ᵀ·leftᵀ)ᵀ = left·L⁻¹
	return only(2, 0, b.Op("mul", b.Op("add", s, b.swapLast(s)), b.fullLike(s, 0.5)))
}

func gradTriangularSolve(b *Builder, n *Node, ct []*Value) []*Value {
	a, x := n.Args[0], n.Results[0]
	upper, trans, unit := b.constBool(n.Args[2]), b.constBool(n.Args[3]), b.constBool(n.Args[4])
	gb := b.Op("triangular_solve", a, ct[0], n.Args[2], b.Bool(!trans), n.Args[4])
	ga := b.Op("neg", b.mm(gb, b.swapLast(x)))
	if trans {
		ga = b.swapLast(ga)
	}
	diagonal := 1.0
	if unit {
		diagonal = 0
	}
	return []*Value{b.triangle(ga, upper, diagonal), gb, nil, nil, nil}
}

// eachMatrix gives the matrices of a batch as f64, one after another.
func eachMatrix(x *Array, f func(i int, m []float64) error) error {
	r := len(x.Shape)
	size := x.Shape[r-1] * x.Shape[r-2]
	data := load[float64](x)
	for i := 0; i < product(x.Shape[:r-2]); i++ {
		if err := f(i, data[i*size:(i+1)*size]); err != nil {
			return err
		}
	}
	return nil
}

// factor decomposes the n×n matrix a in place into L (unit diagonal, below) and U with row exchanges: row i of L·U is row perm[i] of
// a. sign is that of the permutation; singular is the first column without a pivot, or -1.
func factor(a []float64, n int) (perm []int, sign float64, singular int) {
	perm, sign, singular = iotaInts(n), 1, -1
	for k := 0; k < n; k++ {
		p := k
		for i := k + 1; i < n; i++ {
			if math.Abs(a[i*n+k]) > math.Abs(a[p*n+k]) {
				p = i
			}
		}
		if a[p*n+k] == 0 {
			if singular < 0 {
				singular = k
			}
			continue
		}
		if p != k {
			for j := 0; j < n; j++ {
				a[p*n+j], a[k*n+j] = a[k*n+j], a[p*n+j]
			}
			perm[p], perm[k] = perm[k], perm[p]
			sign = -sign
		}
		for i := k + 1; i < n; i++ {
			f := a[i*n+k] / a[k*n+k]
			a[i*n+k] = f
			if f == 0 {
				continue
			}
			for j := k + 1; j < n; j++ {
				a[i*n+j] -= f * a[k*n+j]
			}
		}
	}
	return perm, sign, singular
}

// solveLU solves for the k columns of b.
func solveLU(a, b []float64, n, k int) (x []float64, err error) {
	perm, _, singular := factor(a, n)
	if singular >= 0 {
		return nil, fmt.Errorf("the matrix is singular: the diagonal element %d of U is zero", singular)
	}
	x = make([]float64, n*k)
	for i, p := range perm {
		copy(x[i*k:(i+1)*k], b[p*k:(p+1)*k])
	}
	substitute(func(i, j int) float64 { return a[i*n+j] }, x, n, k, false, true)
	substitute(func(i, j int) float64 { return a[i*n+j] }, x, n, k, true, false)
	return x, nil
}

// substitute solves the triangular system at·X = x in place.
func substitute(at func(i, j int) float64, x []float64, n, k int, upper, unit bool) {
	for step := 0; step < n; step++ {
		i := step
		if upper {
			i = n - 1 - step
		}
		row := x[i*k : (i+1)*k]
		for s := 0; s < step; s++ {
			j := s
			if upper {
				j = n - 1 - s
			}
			if f := at(i, j); f != 0 {
				for c, v := range x[j*k : (j+1)*k] {
					row[c] -= f * v
				}
			}
		}
		if !unit {
			d := at(i, i)
			for c := range row {
				row[c] /= d
			}
		}
	}
}

func evalInverse(c *EvalCall, out []Type) ([]Datum, error) {
	x := c.Array(0)
	n := x.Shape[len(x.Shape)-1]
	res := make([]float64, 0, x.Len())
	err := eachMatrix(x, func(i int, m []float64) error {
		eye := make([]float64, n*n)
		for k := 0; k < n; k++ {
			eye[k*n+k] = 1
		}
		inv, err := solveLU(m, eye, n, n)
		res = append(res, inv...)
		return err
	})
	return packed(out[0], res, err)
}

// packed makes the result array of a computation that may have failed.
func packed(t Type, v []float64, err error) ([]Datum, error) {
	if err != nil {
		return nil, err
	}
	y, err := tensorOf(t)
	if err != nil {
		return nil, err
	}
	store(y, v)
	return one(y)
}

func evalDet(c *EvalCall, out []Type) ([]Datum, error) {
	var res []float64
	err := eachMatrix(c.Array(0), func(i int, m []float64) error {
		n := c.Array(0).Shape[len(c.Array(0).Shape)-1]
		_, det, _ := factor(m, n)
		for k := 0; k < n; k++ {
			det *= m[k*n+k]
		}
		res = append(res, det)
		return nil
	})
	return packed(out[0], res, err)
}

func evalSlogdet(c *EvalCall, out []Type) ([]Datum, error) {
	x := c.Array(0)
	n := x.Shape[len(x.Shape)-1]
	var signs, logs []float64
	err := eachMatrix(x, func(i int, m []float64) error {
		_, sign, singular := factor(m, n)
		log := 0.0
		for k := 0; k < n; k++ {
			if m[k*n+k] < 0 {
				sign = -sign
			}
			log += math.Log(math.Abs(m[k*n+k]))
		}
		if singular >= 0 {
			sign, log = 0, math.Inf(-1)
		}
		signs, logs = append(signs, sign), append(logs, log)
		return nil
	})
	s, err := packed(out[0], signs, err)
	if err != nil {
		return nil, err
	}
	l, err := packed(out[1], logs, err)
	return append(s, l...), err
}

func evalCholesky(c *EvalCall, out []Type) ([]Datum, error) {
	x, upper := c.Array(0), c.Bool(1)
	n := x.Shape[len(x.Shape)-1]
	res := make([]float64, 0, x.Len())
	err := eachMatrix(x, func(b int, m []float64) error {
		l := make([]float64, n*n)
		at := func(i, j int) *float64 { // the element of L, wherever it is kept
			if upper {
				i, j = j, i
			}
			return &l[i*n+j]
		}
		for j := 0; j < n; j++ {
			for i := j; i < n; i++ {
				s := m[i*n+j]
				if upper {
					s = m[j*n+i]
				}
				for k := 0; k < j; k++ {
					s -= *at(i, k) * *at(j, k)
				}
				switch {
				case i > j:
					*at(i, j) = s / *at(j, j)
				case !(s > 0):
					return fmt.Errorf("matrix %d of the batch is not positive-definite: the leading minor of order %d is not", b, j+1)
				default:
					*at(j, j) = math.Sqrt(s)
				}
			}
		}
		res = append(res, l...)
		return nil
	})
	return packed(out[0], res, err)
}

func evalTriangularSolve(c *EvalCall, out []Type) ([]Datum, error) {
	a, rhs := c.Array(0), load[float64](c.Array(1))
	upper, trans, unit := c.Bool(2), c.Bool(3), c.Bool(4)
	n := a.Shape[len(a.Shape)-1]
	k := out[0].Dims[len(out[0].Dims)-1].N
	err := eachMatrix(a, func(i int, m []float64) error {
		at := func(i, j int) float64 { return m[i*n+j] }
		if trans {
			at = func(i, j int) float64 { return m[j*n+i] }
		}
		substitute(at, rhs[i*n*k:(i+1)*n*k], n, k, upper != trans, unit)
		return nil
	})
	return packed(out[0], rhs, err)
}

func evalSolve(c *EvalCall, out []Type) ([]Datum, error) {
	a, rhs := c.Array(0), load[float64](c.Array(1))
	n := a.Shape[len(a.Shape)-1]
	k := out[0].Dims[len(out[0].Dims)-1].N
	res := make([]float64, 0, len(rhs))
	err := eachMatrix(a, func(i int, m []float64) error {
		x, err := solveLU(m, rhs[i*n*k:(i+1)*n*k], n, k)
		res = append(res, x...)
		return err
	})
	return packed(out[0], res, err)
}
