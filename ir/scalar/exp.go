package scalar

import (
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Exponentials: x = n ln 2 + r with |r| <= ln(2)/2, e^r by a polynomial, then an exact scaling by 2^n.

var _ = register(
	Op{"exp", 1, Floats, false, byType(
		func(b *Builder, x Value) Value { return b.exp32(x) },
		func(b *Builder, x Value) Value { return b.exp64(x, 0) }), "e^x; infinite above the range, 0 below."},
	Op{"exp2", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.exp2(a[0]) }), "2^x."},
	Op{"expm1", 1, Floats, false, byType(
		rounded(func(b *Builder, x Value) Value { return b.expm1(x, expQMid) }),
		func(b *Builder, x Value) Value { return b.expm1(x, expQ64) }), "e^x - 1, accurate near 0."},
	Op{"sigmoid", 1, Floats, false, sigmoidForm, "1/(1 + e^-x)."},
	Op{"tanh", 1, Floats, false, byType((*Builder).tanh32, (*Builder).tanh64), "The hyperbolic tangent."},
	Op{"sinh", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.sinh(a[0]) }), "The hyperbolic sine."},
	Op{"cosh", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.cosh(a[0]) }), "The hyperbolic cosine."},
)

// exp32 works in F32 throughout. n*ln2Hi32 is exact (8 + 9 bits) and x - n*ln2Hi32 too, as the two are close.
func (b *Builder) exp32(x Value) Value {
	x = b.clamp(x, -104, 89)
	n, ni := b.roundSmall(b.Mul(x, b.k(x, math.Log2E)))
	return b.scale(b.exp32Reduced(x, n), ni)
}

// exp32Small is e^x for |x| <= 80, where 2^n is a normal number and no clamping is needed.
func (b *Builder) exp32Small(x Value) Value {
	n, ni := b.roundSmall(b.Mul(x, b.k(x, math.Log2E)))
	return b.Mul(b.exp32Reduced(x, n), b.pow2(f32, ni))
}

// exp32Reduced is e^(x - n ln 2).
func (b *Builder) exp32Reduced(x, n Value) Value {
	r := b.Sub(b.Sub(x, b.Mul(n, b.k(x, ln2Hi32))), b.Mul(n, b.k(x, ln2Lo32)))
	return b.Add(b.k(x, 1), b.Add(r, b.Mul(b.Mul(r, r), b.poly(r, expQ32))))
}

// exp64 is e^x * 2^shift; only the product need be in range.
func (b *Builder) exp64(x Value, shift int64) Value {
	return b.expSum(dd{x, b.F(f64, 0)}, shift, expQ64)
}

// expMid is e^x to about 2^-38, in F64.
func (b *Builder) expMid(x Value) Value { return b.expSum(dd{x, b.F(f64, 0)}, 0, expQMid) }

// expSum is e^(x.hi + x.lo) * 2^shift.
func (b *Builder) expSum(x dd, shift int64, q []float64) Value {
	hi := b.clamp(x.hi, -800, 800)
	n, ni := b.roundSmall(b.Mul(hi, b.F(f64, math.Log2E)))
	r := b.Sub(hi, b.Mul(n, b.F(f64, ln2Hi)))
	r = b.Sub(r, b.Sub(b.Mul(n, b.F(f64, ln2Lo)), x.lo))
	p := b.Add(r, b.Mul(b.Mul(r, r), b.poly(r, q)))
	return b.scale(b.Add(b.F(f64, 1), p), b.Add(ni, b.I(dtype.I64, shift)))
}

func (b *Builder) exp2(x Value) Value {
	x = b.clamp(x, -1100, 1100)
	n, ni := b.roundSmall(x)
	r := b.Sub(x, n)
	return b.scale(b.Add(b.F(f64, 1), b.Mul(r, b.poly(r, exp2Q64))), ni)
}

// expm1 is 2^n ((1 - 2^-n) + (e^r - 1)); the first sum is kept exactly, so that cancellation does no harm.
func (b *Builder) expm1(x Value, q []float64) Value {
	c := b.clamp(x, -50, 800)
	n, ni := b.roundSmall(b.Mul(c, b.F(f64, math.Log2E)))
	hi := b.Sub(c, b.Mul(n, b.F(f64, ln2Hi)))
	lo := b.Mul(n, b.F(f64, ln2Lo))
	r := b.Sub(hi, lo)
	rLo := b.Sub(b.Sub(hi, r), lo)
	// 2^-n as a product, since n reaches 1154
	t := b.Sub(b.F(f64, 1), b.scale(b.F(f64, 1), b.Neg(ni)))
	s := b.fastTwoSum(t, r)
	y := b.Add(s.hi, b.Add(s.lo, b.Add(rLo, b.Mul(b.Mul(r, r), b.poly(r, q)))))
	return b.Select(b.EQ(x, b.F(f64, 0)), x, b.scale(y, ni))
}

// sigmoidForm uses e = e^-|x|, which cannot overflow: 1/(1+e), or e/(1+e) written e - e e/(1+e), which rounds less.
func sigmoidForm(b *Builder, dt dtype.DType, a ...Value) Value {
	x, one := a[0], b.F(dt, 1)
	neg := b.Neg(b.Abs(x))
	var e Value
	if dt == f32 {
		e = b.exp32(neg)
	} else {
		e = b.exp64(neg, 0)
	}
	below := b.LT(x, b.F(dt, 0))
	q := b.Div(b.Select(below, e, one), b.Add(one, e))
	return b.Select(below, b.Sub(e, b.Mul(e, q)), q)
}

// tanh32 is odd: a polynomial up to 5/8, 1 - 2/(e^2x + 1) above.
func (b *Builder) tanh32(x Value) Value {
	a := b.Abs(x)
	z := b.Mul(x, x)
	small := b.Add(a, b.Mul(b.Mul(a, z), b.poly(z, tanhQ32)))
	one := b.k(x, 1)
	c := b.Select(b.GT(a, b.k(x, 10)), b.k(x, 10), a) // tanh(10) rounds to 1
	e := b.exp32Small(b.Add(c, c))
	large := b.Sub(one, b.Div(b.k(x, 2), b.Add(e, one)))
	return b.copysign(b.Select(b.LT(a, b.k(x, 0.625)), small, large), x)
}

func (b *Builder) tanh64(x Value) Value {
	a := b.Abs(x)
	t, one := b.expm1(b.Neg(b.Add(a, a)), expQ64), b.F(f64, 1)
	small := b.Neg(b.Div(t, b.Add(t, b.F(f64, 2))))
	e := b.Add(t, one) // exact where it is used; 1 - 2e/(1+e) rounds less there
	large := b.Sub(one, b.Div(b.Add(e, e), b.Add(one, e)))
	return b.copysign(b.Select(b.LT(a, one), small, large), x)
}

func (b *Builder) sinh(x Value) Value {
	a := b.Abs(x)
	t := b.expm1(b.clamp(a, 0, 50), expQ64)
	mid := b.Mul(b.F(f64, 0.5), b.Add(t, b.Div(t, b.Add(t, b.F(f64, 1)))))
	large := b.exp64(a, -1)
	return b.copysign(b.Select(b.LT(a, b.F(f64, 40)), mid, large), x)
}

func (b *Builder) cosh(x Value) Value {
	h := b.exp64(b.Abs(x), -1)
	return b.Add(h, b.Div(b.F(f64, 0.25), h))
}
