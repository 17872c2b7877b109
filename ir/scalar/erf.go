package scalar

import (
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
)

// The error function and its relatives. erfc(x) = e^(-x^2) times a smooth function of (x-3.75)/(x+3.75).

var _ = register(
	Op{"erf", 1, Floats, false, byType((*Builder).erf32, (*Builder).erf64), "The error function."},
	Op{"erfc", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.erfc(a[0]) }), "1 - erf(x), accurate for large x."},
	Op{"erfinv", 1, Floats, false, erfinvForm, "The inverse of erf; infinite at -1 and 1, NaN beyond."},
)

// erf32 is x + x P(x^2) up to 1, and 1 - e^-Q(x) beyond.
func (b *Builder) erf32(x Value) Value {
	a, one := b.Abs(x), b.k(x, 1)
	small := b.Add(x, b.Mul(x, b.poly(b.Mul(x, x), erfP32)))
	c := b.clamp(a, 0.95, 4.05)
	large := b.copysign(b.Sub(one, b.exp32Small(b.Neg(b.poly(c, erfLog32)))), x)
	return b.Select(b.GT(a, one), large, small)
}

func (b *Builder) erf64(x Value) Value {
	a, one := b.Abs(x), b.F(f64, 1)
	z := b.Mul(x, x)
	small := b.Add(x, b.Mul(x, b.poly(z, erfP64)))
	large := b.copysign(b.Sub(one, b.erfcPos(b.clamp(a, 0.5, 30))), x)
	return b.Select(b.GT(a, one), large, small)
}

func (b *Builder) erfc(x Value) Value {
	a, one := b.Abs(x), b.F(f64, 1)
	z := b.Mul(x, x)
	near := b.Sub(one, b.Add(x, b.Mul(x, b.poly(z, erfP64))))
	far := b.erfcPos(b.clamp(a, 0, 30))
	far = b.Select(b.LT(x, b.F(f64, 0)), b.Sub(b.F(f64, 2), far), far)
	return b.Select(b.LT(a, b.F(f64, 0.5)), near, far)
}

// erfcPos is erfc(x) for 0 <= x <= 30; NaN stays.
func (b *Builder) erfcPos(x Value) Value {
	one, k := b.F(f64, 1), b.F(f64, 3.75)
	u := b.Div(b.Sub(x, k), b.Add(x, k))
	p := b.Div(b.poly(u, erfcxP), b.Add(one, b.Add(x, x)))
	sq := b.twoProd(x, x)
	return b.Mul(b.expSum(dd{b.Neg(sq.hi), b.Neg(sq.lo)}, 0, expQ64), p)
}

// erfinvForm is a polynomial in w = -ln(1 - x^2), or its root, to about 2^-28, and for F64 one step of Halley's method, which
// triples the digits. The step works on erfc and 1-|x| (exact beyond 1/2), or on erf within.
func erfinvForm(b *Builder, dt dtype.DType, a ...Value) Value {
	x := b.Convert(f64, a[0])
	one, zero := b.F(f64, 1), b.F(f64, 0)
	ax := b.Abs(x)
	inside := b.Select(b.LT(ax, one), ax, zero)
	gap := b.Sub(one, inside)
	w := b.Neg(b.Add(b.log64(gap), b.log1p(inside)))
	near := b.poly(b.Sub(w, b.F(f64, 3)), erfinvP)
	far := b.poly(b.Sub(b.Sqrt(w), b.F(f64, 4.25)), erfinvTail)
	y := b.Mul(inside, b.Select(b.LT(w, b.F(f64, 6)), near, far))
	if dt == f64 {
		e := b.Select(b.GT(inside, b.F(f64, 0.5)), b.Sub(gap, b.erfc(y)), b.Sub(b.erf64(y), inside))
		e = b.Mul(b.Mul(e, b.F(f64, math.Sqrt(math.Pi)/2)), b.exp64(b.Mul(y, y), 0))
		y = b.Sub(y, b.Div(e, b.Add(one, b.Mul(y, e))))
	}
	y = b.Select(b.EQ(ax, one), b.F(f64, math.Inf(1)), y)
	y = b.Select(b.LE(ax, one), b.copysign(y, x), b.F(f64, math.NaN()))
	return b.Convert(dt, y)
}
