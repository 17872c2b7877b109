package scalar

import (
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
)

// This file holds the tools of the transcendental functions: polynomials, powers of two, double-double arithmetic.

const (
	f32 = dtype.F32
	f64 = dtype.F64
)

// viaF64 makes a form that computes in F64 and rounds once for F32.
func viaF64(f func(b *Builder, a []Value) Value) Form {
	return func(b *Builder, dt dtype.DType, a ...Value) Value {
		if dt == f64 {
			return f(b, a)
		}
		wide := make([]Value, len(a))
		for i := range a {
			wide[i] = b.Convert(f64, a[i])
		}
		return b.Convert(f32, f(b, wide))
	}
}

// byType makes a form of one operand with an algorithm for each type.
func byType(on32, on64 func(b *Builder, x Value) Value) Form {
	return func(b *Builder, dt dtype.DType, a ...Value) Value {
		if dt == f32 {
			return on32(b, a[0])
		}
		return on64(b, a[0])
	}
}

// rounded makes a function on F32 from one on F64.
func rounded(f func(b *Builder, x Value) Value) func(b *Builder, x Value) Value {
	return func(b *Builder, x Value) Value { return b.Convert(f32, f(b, b.Convert(f64, x))) }
}

// k is the constant v of x's type.
func (b *Builder) k(x Value, v float64) Value { return b.F(x.dt, v) }

// poly is c[0] + c[1]*x + … by Horner's rule.
func (b *Builder) poly(x Value, c []float64) Value {
	p := b.k(x, c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		p = b.Add(b.Mul(p, x), b.k(x, c[i]))
	}
	return p
}

func (b *Builder) isNaN(x Value) Value { return b.NE(x, x) }

// roundSmall is the nearest integer to x, ties to even, as float and as integer of the same width. |x| < 2^21 (F32) or 2^50
// (F64); garbage otherwise. Adding 1.5*2^23 or 1.5*2^52 leaves the integer in the low bits.
func (b *Builder) roundSmall(x Value) (f, i Value) {
	magic := b.k(x, magicOf(x.dt))
	t := b.Add(x, magic)
	it := bitsType(x.dt)
	return b.Sub(t, magic), b.Sub(b.Bitcast(it, t), b.Bitcast(it, magic))
}

func magicOf(t dtype.DType) float64 {
	if t == f32 {
		return 3 << 22
	}
	return 3 << 51
}

// smallInt converts an integer of less than 2^21 (I32) or 2^50 (I64) to the float type of the same width.
func (b *Builder) smallInt(t dtype.DType, i Value) Value {
	magic := b.F(t, magicOf(t))
	return b.Sub(b.Bitcast(t, b.Add(i, b.Bitcast(i.dt, magic))), magic)
}

// pow2 is 2^n of float type t for n in the range of normal exponents.
func (b *Builder) pow2(t dtype.DType, n Value) Value {
	bias, mant := int64(127), int64(23)
	if t == f64 {
		bias, mant = 1023, 52
	}
	return b.Bitcast(t, b.Shl(b.Add(n, b.I(n.dt, bias)), b.I(n.dt, mant)))
}

// scale is y * 2^n for |n| up to twice the range of exponents: two factors, so that only the last multiplication rounds.
func (b *Builder) scale(y, n Value) Value {
	half := b.Shr(n, b.I(n.dt, 1))
	return b.Mul(b.Mul(y, b.pow2(y.dt, half)), b.pow2(y.dt, b.Sub(n, half)))
}

// clamp limits x to [lo, hi]; NaN stays.
func (b *Builder) clamp(x Value, lo, hi float64) Value {
	x = b.Select(b.GT(x, b.k(x, hi)), b.k(x, hi), x)
	return b.Select(b.LT(x, b.k(x, lo)), b.k(x, lo), x)
}

// dd is the unevaluated sum hi + lo of two F64, |lo| <= ulp(hi)/2.
type dd struct{ hi, lo Value }

// ddOf is a double-double constant.
func (b *Builder) ddOf(hi, lo float64) dd { return dd{b.F(f64, hi), b.F(f64, lo)} }

// fastTwoSum is x + y exactly, for |x| >= |y| or x = 0.
func (b *Builder) fastTwoSum(x, y Value) dd {
	s := b.Add(x, y)
	return dd{s, b.Sub(y, b.Sub(s, x))}
}

// twoSum is x + y exactly.
func (b *Builder) twoSum(x, y Value) dd {
	s := b.Add(x, y)
	yy := b.Sub(s, x)
	return dd{s, b.Add(b.Sub(x, b.Sub(s, yy)), b.Sub(y, yy))}
}

// split gives x as the sum of two numbers of 26 bits (Veltkamp).
func (b *Builder) split(x Value) (hi, lo Value) {
	c := b.Mul(x, b.F(f64, 1<<27+1))
	hi = b.Sub(c, b.Sub(c, x))
	return hi, b.Sub(x, hi)
}

// twoProd is x * y exactly, barring overflow and underflow (Dekker).
func (b *Builder) twoProd(x, y Value) dd {
	p := b.Mul(x, y)
	xh, xl := b.split(x)
	yh, yl := b.split(y)
	e := b.Sub(b.Mul(xh, yh), p)
	e = b.Add(b.Add(e, b.Mul(xh, yl)), b.Mul(xl, yh))
	return dd{p, b.Add(e, b.Mul(xl, yl))}
}

// ddMul is x * y to about 2^-102.
func (b *Builder) ddMul(x, y dd) dd {
	p := b.twoProd(x.hi, y.hi)
	return b.fastTwoSum(p.hi, b.Add(p.lo, b.Add(b.Mul(x.hi, y.lo), b.Mul(x.lo, y.hi))))
}

// ddAdd is x + y where |x| >= |y| or x = 0.
func (b *Builder) ddAdd(x, y dd) dd {
	s := b.fastTwoSum(x.hi, y.hi)
	return b.fastTwoSum(s.hi, b.Add(s.lo, b.Add(x.lo, y.lo)))
}

func (b *Builder) ddSum(x dd) Value { return b.Add(x.hi, x.lo) }

// double-double constants: the second part is what the first leaves over.
var (
	ln2Hi, ln2Lo       = 0x1.62e42fee00000p-1, 0x1.a39ef35793c76p-33 // 33 bits, and the rest
	ln2Hi32, ln2Lo32   = 355.0 / 512, -2.121944400546905827679e-4    // 9 bits, and the rest, for F32
	invLn2, invLn2Lo   = 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56
	invLn10, invLn10Lo = 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57
	piHalf, piHalfLo   = math.Pi / 2, 6.123233995736766e-17
	twoThirdsLo        = 3.700743415417188e-17
)
