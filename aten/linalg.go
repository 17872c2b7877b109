package aten

import (
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Linear algebra on batches of matrices [..., n, n] of f32 or f64.

func init() {
	inv := func(e em, a []*ir.Value) *ir.Value {
		e.linalgOperand("linalg.inv", a[0])
		e.needSquare("linalg.inv", a[0])
		return e.Op("inverse", a[0])
	}
	def(Method|Torch, "inverse(Tensor self) -> Tensor", expand1(inv))
	alias(Linalg, "inv", "inverse")
	def(Method|Torch|Linalg, "det(Tensor self) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		e.linalgOperand("linalg.det", a[0])
		e.needSquare("linalg.det", a[0])
		return e.Op("det", a[0])
	}))
	slogdet := func(e em, x *ir.Value) []*ir.Value {
		e.linalgOperand("linalg.slogdet", x)
		e.needSquare("linalg.slogdet", x)
		return e.Emit("slogdet", x)
	}
	def(Method|Torch|Linalg, "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", func(b *ir.Builder, a []*ir.Value) []*ir.Value {
		return slogdet(em{b}, a[0])
	})
	def(Method|Torch, "logdet(Tensor self) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		r := slogdet(e, a[0])
		negative := e.lt(r[0], e.Float(0))
		return e.where(negative, e.full(e.NeedDType(a[0]), math.NaN()), r[1])
	}))
	cholesky := func(e em, a []*ir.Value) *ir.Value {
		e.linalgOperand("linalg.cholesky", a[0])
		e.needSquare("linalg.cholesky", a[0])
		return e.Op("cholesky", a[0], a[1])
	}
	def(Method|Torch, "cholesky(Tensor self, bool upper=False) -> Tensor", expand1(cholesky))
	def(Linalg, "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", expand1(cholesky))
	alias(Linalg, "cholesky", "linalg_cholesky")
	def(Method|Torch, "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.choleskySolve(a[0], a[1], constBool(e.Builder, a[2]))
	}))
	def(Method|Torch, "cholesky_inverse(Tensor self, bool upper=False) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		s := e.needSquare("cholesky_inverse", a[0])
		return e.choleskySolve(e.eye(s[len(s)-1], e.NeedDType(a[0])), a[0], constBool(e.Builder, a[1]))
	}))
	def(Linalg, "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.solve(a[0], a[1], constBool(e.Builder, a[2]))
	}))
	alias(Linalg, "solve", "linalg_solve")
	def(Linalg, "solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.solveTriangular(a[0], a[1], constBool(e.Builder, a[2]), constBool(e.Builder, a[3]), constBool(e.Builder, a[4]))
	}))
	def(Method|Torch, "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
		func(b *ir.Builder, a []*ir.Value) []*ir.Value {
			e := em{b}
			x, m := e.matrixPair("triangular_solve", a[1], a[0])
			return []*ir.Value{e.Op("triangular_solve", x, m, a[2], a[3], a[4]), a[1]}
		})
	// those named _ex report failure, which stops the program here, by a tensor that is not zero
	withInfo := func(f func(e em, a []*ir.Value) *ir.Value) expansion {
		return func(b *ir.Builder, a []*ir.Value) []*ir.Value {
			e := em{b}
			y, s := f(e, a), e.NeedShape(a[0])
			return []*ir.Value{y, e.zeros(dtype.I32, s[:len(s)-2]...)}
		}
	}
	def(Linalg, "inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", withInfo(inv))
	def(Linalg, "cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)", withInfo(cholesky))
	def(Linalg, "solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)", withInfo(func(e em, a []*ir.Value) *ir.Value {
		return e.solve(a[0], a[1], constBool(e.Builder, a[2]))
	}))
	def(Linalg, "tensorinv(Tensor self, int ind=2) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		s, ind := e.NeedShape(a[0]), constInt(e.Builder, a[1])
		if ind < 1 || ind > len(s) || product(s[:ind]) != product(s[ind:]) {
			e.Failf("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got shape %v and ind = %d", s, ind)
		}
		n := product(s[:ind])
		square := inv(e, []*ir.Value{e.reshape(a[0], n, n)})
		return e.reshape(square, catInts(s[ind:], s[:ind])...)
	}))
	def(Linalg, "tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		x, y := a[0], a[1]
		if dims, ok := optInts(e.Builder, a[2]); ok {
			order := []int{}
			dims = wrapDims(e.Builder, dims, rank(e.Builder, x))
			for _, d := range allDims(e.Builder, x) {
				if !contains(dims, d) {
					order = append(order, d)
				}
			}
			x = permute(e.Builder, x, append(order, dims...))
		}
		s, n := e.NeedShape(x), numel(e.Builder, y)
		k := rank(e.Builder, y)
		if k > len(s) || product(s[:k]) != n || product(s[k:]) != n {
			e.Failf("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got shapes %v and %v", s, e.NeedShape(y))
		}
		return e.reshape(e.solve(e.reshape(x, n, n), e.reshape(y, n), true), s[k:]...)
	}))
	def(Method|Torch|Linalg, "matrix_exp(Tensor self) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value { return e.matrixExp(a[0]) }))
}

// linalgOperand stops unless x is of a dtype that linear algebra works on.
func (e em) linalgOperand(name string, x *ir.Value) {
	switch d := e.NeedDType(x); {
	case !d.IsFloat():
		e.Failf("%s: Expected a floating point or complex tensor as input. Got %s", name, typeName(d))
	case d.IsHalf():
		e.Failf("%s: Low precision dtypes not supported. Got %s", name, typeName(d))
	}
}

// matrixPair checks a system of equations A X = B and broadcasts the batch dims.
func (e em) matrixPair(name string, a, b *ir.Value) (x, y *ir.Value) {
	e.linalgOperand(name, a)
	e.needSame(a, b)
	sa := e.needSquare(name, a)
	sb := e.NeedShape(b)
	if len(sb) < 2 {
		e.Failf("%s: The input tensor B must have at least 2 dimensions, got shape %v", name, sb)
	}
	if sa[len(sa)-1] != sb[len(sb)-2] {
		e.Failf("%s: Incompatible shapes of A and B for the equation AX = B (%dx%d and %dx%d)", name, sa[len(sa)-2], sa[len(sa)-1], sb[len(sb)-2], sb[len(sb)-1])
	}
	x, y, _ = e.batchMatrices(a, b)
	return x, y
}

// solve is X with A X = B (or X A = B); B is a batch of vectors where its shape is A's without the last dim.
func (e em) solve(a, b *ir.Value, left bool) *ir.Value {
	sa := e.needSquare("linalg.solve", a)
	sb := e.NeedShape(b)
	isVector := len(sb) == 1 || len(sa)-1 == len(sb) && sameInts(sb, sa[:len(sa)-1])
	if isVector {
		b = e.insert(b, len(sb))
	}
	if !left {
		a, b = e.transposed(a), e.transposed(b)
	}
	x, y := e.matrixPair("linalg.solve", a, b)
	out := e.Op("solve", x, y)
	if !left {
		out = e.transposed(out)
	}
	if isVector {
		s := e.NeedShape(out)
		return e.reshape(out, s[:len(s)-1]...)
	}
	return out
}

// solveTriangular is X with A X = B (or X A = B) for triangular A.
func (e em) solveTriangular(a, b *ir.Value, upper, left, unit bool) *ir.Value {
	if !left { // X A = B is Aᵀ Xᵀ = Bᵀ
		x, y := e.matrixPair("linalg.solve_triangular", a, e.transposed(b))
		return e.transposed(e.Op("triangular_solve", x, y, e.Bool(upper), e.Bool(true), e.Bool(unit)))
	}
	x, y := e.matrixPair("linalg.solve_triangular", a, b)
	return e.Op("triangular_solve", x, y, e.Bool(upper), e.Bool(false), e.Bool(unit))
}

// choleskySolve is X with A X = b, given the factor of A.
func (e em) choleskySolve(b, factor *ir.Value, upper bool) *ir.Value {
	f, y := e.matrixPair("cholesky_solve", factor, b)
	no := e.Bool(false)
	y = e.Op("triangular_solve", f, y, e.Bool(upper), e.Bool(upper), no)
	return e.Op("triangular_solve", f, y, e.Bool(upper), e.Bool(!upper), no)
}

// matrixExp scales the matrix down by a power of two until its norm is below one, sums the Taylor series, and squares as often.
// It computes in f64. Every matrix of a batch has its own number of squarings; those not needed act on zeros.
func (e em) matrixExp(x *ir.Value) *ir.Value {
	e.needFloat("linalg.matrix_exp", x)
	s, d := e.needSquare("linalg.matrix_exp", x), e.NeedDType(x)
	r, n := len(s), s[len(s)-1]
	if product(s) == 0 {
		return x
	}
	const squarings, terms = 24, 20
	x = cast(e.Builder, x, dtype.F64)
	norm := e.detach(e.amax(e.sum(e.abs(x), true, r-1), true, r-2, r-1))
	steps := e.maxi(e.addF(e.Op("ceil", e.Op("log2", e.maxi(norm, e.Float(1)))), 1), e.Float(0))
	steps = e.where(e.le(steps, e.Float(squarings)), steps, e.Float(squarings)) // infinities and NaN spread by themselves
	scaled := e.mul(x, e.Op("exp2", e.neg(steps)))
	eye := e.eye(n, dtype.F64)
	sum := e.add(eye, e.divF(scaled, terms))
	for k := terms - 1; k >= 1; k-- { // Horner's scheme
		sum = e.add(eye, e.divF(e.matmul(scaled, sum), float64(k)))
	}
	for k := range squarings {
		active := e.lt(e.Float(float64(k)), steps)
		base := e.where(active, sum, e.Float(0))
		sum = e.where(active, e.matmul(base, base), sum)
	}
	return cast(e.Builder, sum, d)
}
