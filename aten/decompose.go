package aten

import (
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Decompositions of matrices and what is computed by them.

func init() {
	qr := func(e em, x *ir.Value, mode string) []*ir.Value {
		q, r := e.qr(x)
		s := e.NeedShape(x)
		switch rows, cols := s[len(s)-2], s[len(s)-1]; {
		case mode == "r":
			q = e.zeros(e.NeedDType(x), 0)
		case mode == "complete" && rows > cols:
			e.Failf("linalg.qr: mode='complete' is not supported for matrices with more rows than columns (%d by %d): use mode='reduced'", rows, cols)
		case mode != "reduced" && mode != "complete":
			e.Failf("linalg.qr: unknown mode %q, expected 'reduced', 'complete' or 'r'", mode)
		}
		return []*ir.Value{q, r}
	}
	def(Linalg, "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", func(b *ir.Builder, a []*ir.Value) []*ir.Value {
		return qr(em{b}, a[0], constStr(b, a[1]))
	})
	alias(Linalg, "qr", "linalg_qr")
	def(Method|Torch, "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", func(b *ir.Builder, a []*ir.Value) []*ir.Value {
		if constBool(b, a[1]) {
			return qr(em{b}, a[0], "reduced")
		}
		return qr(em{b}, a[0], "complete")
	})
	def(Linalg, "linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)", func(b *ir.Builder, a []*ir.Value) []*ir.Value {
		return em{b}.eigh("linalg.eigh", a[0], constStr(b, a[1]))
	})
	alias(Linalg, "eigh", "linalg_eigh")
	def(Linalg, "eigvalsh(Tensor self, str UPLO='L') -> Tensor", func(b *ir.Builder, a []*ir.Value) []*ir.Value {
		return em{b}.eigh("linalg.eigvalsh", a[0], constStr(b, a[1]))[:1]
	})
	def(Linalg, "linalg_svd(Tensor A, bool full_matrices=True) -> (Tensor U, Tensor S, Tensor Vh)", func(b *ir.Builder, a []*ir.Value) []*ir.Value {
		e := em{b}
		s := e.NeedShape(a[0])
		if constBool(b, a[1]) && len(s) > 1 && s[len(s)-1] != s[len(s)-2] {
			e.Failf("linalg.svd: full_matrices=True is supported for square matrices only, got shape %v: pass full_matrices=False", s)
		}
		u, sv, v := e.svd("linalg.svd", a[0])
		return []*ir.Value{u, sv, e.transposed(v)}
	})
	alias(Linalg, "svd", "linalg_svd")
	def(Method|Torch, "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", func(b *ir.Builder, a []*ir.Value) []*ir.Value {
		e := em{b}
		if s := e.NeedShape(a[0]); !constBool(b, a[1]) && len(s) > 1 && s[len(s)-1] != s[len(s)-2] {
			e.Failf("svd: some=False is supported for square matrices only, got shape %v", s)
		}
		u, s, v := e.svd("svd", a[0])
		if !constBool(b, a[2]) {
			u, v = zerosLike(b, u), zerosLike(b, v)
		}
		return []*ir.Value{u, s, v}
	})
	def(Linalg, "svdvals(Tensor A) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		_, s, _ := e.svd("linalg.svdvals", a[0])
		return s
	}))
	def(Linalg, "pinv(Tensor A, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.pinv(a[0], a[1], a[2])
	}))
	def(Linalg, "pinv.rcond(Tensor A, float rcond, bool hermitian=False) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.pinv(a[0], e.None(), a[1])
	}))
	def(Method|Torch, "pinverse(Tensor self, float rcond=1e-15) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.pinv(a[0], e.None(), a[1])
	}))
	def(Linalg, "matrix_rank(Tensor A, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		_, s, _ := e.svd("linalg.matrix_rank", a[0])
		big := e.gt(s, e.rankTolerance(a[0], s, a[1], a[2]))
		return e.sum(cast(e.Builder, big, dtype.I64), false, rank(e.Builder, s)-1)
	}))
	cond := func(e em, a []*ir.Value) *ir.Value { return e.cond(a[0], a[1]) }
	def(Linalg, "cond(Tensor A, Scalar? p=None) -> Tensor", expand1(cond))
	def(Linalg, "cond.str(Tensor A, str p) -> Tensor", expand1(cond))
	def(Linalg, "lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
		func(b *ir.Builder, a []*ir.Value) []*ir.Value { return em{b}.lstsq(a[0], a[1]) })
}

// matrices stops unless x is a batch of matrices that linear algebra works on; it gives their shape.
func (e em) matrices(name string, x *ir.Value) []int {
	e.linalgOperand(name, x)
	s := e.NeedShape(x)
	if len(s) < 2 {
		e.Failf("%s: The input tensor A must have at least 2 dimensions, got shape %v", name, s)
	}
	return s
}

// qr is the reduced decomposition; that of a wide matrix is the one of its leading square part, applied to the rest.
func (e em) qr(x *ir.Value) (q, r *ir.Value) {
	s := e.matrices("linalg.qr", x)
	last := len(s) - 1
	m, n := s[last-1], s[last]
	if m >= n {
		qr := e.Emit("qr", x)
		return qr[0], qr[1]
	}
	qr := e.Emit("qr", e.slice(x, last, 0, m))
	return qr[0], e.concat(last, qr[1], e.matmul(e.transposed(qr[0]), e.slice(x, last, m, n)))
}

func (e em) eigh(name string, x *ir.Value, uplo string) []*ir.Value {
	e.linalgOperand(name, x)
	e.needSquare(name, x)
	switch uplo {
	case "L", "l":
	case "U", "u":
		x = e.transposed(x)
	default:
		e.Failf("%s: Expected UPLO argument to be 'L' or 'U', but got %s", name, uplo)
	}
	return e.Emit("eigh", x)
}

// svd is the reduced decomposition U, S, V.
func (e em) svd(name string, x *ir.Value) (u, s, v *ir.Value) {
	shape := e.matrices(name, x)
	if last := len(shape) - 1; shape[last-1] < shape[last] {
		r := e.Emit("svd", e.transposed(x))
		return r[2], r[1], r[0]
	}
	r := e.Emit("svd", x)
	return r[0], r[1], r[2]
}

// rankTolerance is what singular values must exceed: the larger of atol and rtol times the largest one.
func (e em) rankTolerance(x, s, atol, rtol *ir.Value) *ir.Value {
	shape := e.NeedShape(x)
	eps := 0x1p-23
	if e.NeedDType(x) == dtype.F64 {
		eps = 0x1p-52
	}
	rel, abs := eps*float64(max(shape[len(shape)-1], shape[len(shape)-2])), 0.0
	if !isNone(atol) {
		abs, rel = constFloat(e.Builder, atol), 0
	}
	if !isNone(rtol) {
		rel = constFloat(e.Builder, rtol)
	}
	if n := e.NeedShape(s); n[len(n)-1] == 0 {
		return e.Float(abs)
	}
	largest := e.detach(e.amax(s, true, rank(e.Builder, s)-1))
	return e.maxi(e.mulF(largest, rel), e.Float(abs))
}

func (e em) pinv(x, atol, rtol *ir.Value) *ir.Value {
	u, s, v := e.svd("linalg.pinv", x)
	small := e.le(s, e.rankTolerance(x, s, atol, rtol))
	inverse := e.where(small, e.Float(0), e.div(e.Float(1), e.where(small, e.Float(1), s)))
	return e.matmul(e.mul(v, e.insert(inverse, rank(e.Builder, s)-1)), e.transposed(u))
}

func (e em) cond(x, p *ir.Value) *ir.Value {
	s := e.matrices("linalg.cond", x)
	if isNone(p) || isConst(p, 2) || isConst(p, -2) {
		_, sv, _ := e.svd("linalg.cond", x)
		last := rank(e.Builder, sv) - 1
		n := e.NeedShape(sv)[last]
		if n == 0 {
			return e.zeros(e.NeedDType(x), s[:len(s)-2]...)
		}
		ends := []*ir.Value{e.slice(sv, last, 0, 1), e.slice(sv, last, n-1, n)}
		if isConst(p, -2) {
			ends[0], ends[1] = ends[1], ends[0]
		}
		return e.reshape(e.Op("div", ends[0], ends[1]), s[:len(s)-2]...)
	}
	e.needSquare("linalg.cond", x)
	dims := []int{len(s) - 2, len(s) - 1}
	return e.mul(e.matrixNorm(x, p, dims, false), e.matrixNorm(e.Op("inverse", x), p, dims, false))
}

// spectral is a norm by singular values: the largest (2), the smallest (-2) or the sum of all (nuc) for matrices in the last two dims.
func (e em) spectral(x *ir.Value, kind string) *ir.Value {
	_, s, _ := e.svd("linalg.matrix_norm", x)
	last := rank(e.Builder, s) - 1
	switch kind {
	case "2":
		return e.amax(s, false, last)
	case "-2":
		return e.Op("amin", s, e.Ints(last), e.Bool(false))
	}
	return e.sum(s, false, last)
}

// lstsq solves least squares problems of full rank.
func (e em) lstsq(x, y *ir.Value) []*ir.Value {
	s := e.matrices("linalg.lstsq", x)
	e.needSame(x, y)
	r := len(s)
	sy := e.NeedShape(y)
	isVector := len(sy) == r-1 && sameInts(sy, s[:r-1])
	if isVector {
		y = e.insert(y, r-1)
	}
	if sy = e.NeedShape(y); len(sy) != r || !sameInts(sy[:r-1], s[:r-1]) {
		e.Failf("linalg.lstsq: shapes %v and %v do not match: expected A[..., m, n] and B[..., m, k]", s, sy)
	}
	m, n, d := s[r-2], s[r-1], e.NeedDType(x)
	var sol *ir.Value
	residuals := e.zeros(d, 0)
	if m >= n {
		qr := e.Emit("qr", x)
		sol = e.Op("triangular_solve", qr[1], e.matmul(e.transposed(qr[0]), y), e.Bool(true), e.Bool(false), e.Bool(false))
		if m > n {
			residuals = e.sum(e.sqr(e.sub(y, e.matmul(x, sol))), false, r-2)
		}
	} else {
		sol = e.matmul(e.pinv(x, e.None(), e.None()), y)
	}
	if isVector {
		sol = e.reshape(sol, catInts(s[:r-2], []int{n})...)
	}
	ranks := fill(e.Builder, min(m, n), dtype.I64, s[:r-2])
	return []*ir.Value{sol, residuals, ranks, e.zeros(d, 0)}
}
