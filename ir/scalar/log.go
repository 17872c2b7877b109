package scalar

import (
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Logarithms: x = 2^k m with sqrt(1/2) <= m < sqrt(2), ln m = 2 atanh(f/(2+f)) with f = m - 1; and what is built on them.

var _ = register(
	Op{"log", 1, Floats, false, byType((*Builder).log32, (*Builder).log64), "ln x; -infinity at 0, NaN below."},
	Op{"log1p", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.log1p(a[0]) }), "ln(1 + x), accurate near 0."},
	Op{"log2", 1, Floats, false, byType(
		rounded(func(b *Builder, x Value) Value {
			return b.logCases(x, func(f, k Value) Value {
				zero := b.F(f64, 0)
				return b.Add(k, b.Mul(b.logSum(f, zero, zero), b.F(f64, invLn2)))
			})
		}),
		func(b *Builder, x Value) Value {
			return b.logCases(x, func(f, k Value) Value {
				m := b.ddMul(b.logDD(f), b.ddOf(invLn2, invLn2Lo))
				return b.ddSum(b.ddAdd(dd{k, b.F(f64, 0)}, m))
			})
		}), "The logarithm to base 2; exact for powers of 2."},
	Op{"log10", 1, Floats, false, byType(
		rounded(func(b *Builder, x Value) Value {
			return b.logCases(x, func(f, k Value) Value {
				return b.Mul(b.logSum(f, k, b.F(f64, 0)), b.F(f64, invLn10))
			})
		}),
		func(b *Builder, x Value) Value {
			return b.logCases(x, func(f, k Value) Value {
				return b.ddSum(b.ddMul(b.addLn2(b.logDD(f), k), b.ddOf(invLn10, invLn10Lo)))
			})
		}), "The logarithm to base 10; exact for powers of 10."},
	Op{"pow", 2, Numbers, false, powForm, "x^y by C99's cases; integers wrap, and a negative exponent gives 0 unless |x| = 1."},
	Op{"logaddexp", 2, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.logaddexp(a[0], a[1]) }), "ln(e^x + e^y)."},
	Op{"xlogy", 2, Floats, false, xlogyForm, "x ln y; 0 for x = 0 unless y is NaN."},
	Op{"asinh", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.asinh(a[0]) }), "The inverse hyperbolic sine."},
	Op{"acosh", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.acosh(a[0]) }), "The inverse hyperbolic cosine; NaN below 1."},
	Op{"atanh", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.atanh(a[0]) }), "The inverse hyperbolic tangent; NaN outside [-1, 1]."},
)

// frexp gives k and f with x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for positive finite x, subnormals included.
func (b *Builder) frexp(x Value) (f, k Value) {
	it, mant, up, smallest, root := dtype.I32, int64(23), 24.0, 0x1p-126, int64(0x3f3504f3)
	if x.dt == f64 {
		it, mant, up, smallest, root = dtype.I64, 52, 54, 0x1p-1022, 0x3fe6a09e667f3bcd
	}
	tiny := b.LT(x, b.k(x, smallest))
	x = b.Select(tiny, b.Mul(x, b.k(x, math.Ldexp(1, int(up)))), x)
	bits := b.Bitcast(it, x)
	e := b.Shr(b.Sub(bits, b.I(it, root)), b.I(it, mant))
	m := b.Bitcast(x.dt, b.Sub(bits, b.Shl(e, b.I(it, mant))))
	e = b.Sub(e, b.Select(tiny, b.I(it, int64(up)), b.I(it, 0)))
	return b.Sub(m, b.k(x, 1)), b.smallInt(x.dt, e)
}

// logCases adds the values of a logarithm outside the positive finite numbers.
func (b *Builder) logCases(x Value, log func(f, k Value) Value) Value {
	y := log(b.frexp(x))
	inf := b.k(x, math.Inf(1))
	y = b.Select(b.EQ(x, b.k(x, 0)), b.Neg(inf), y)
	y = b.Select(b.LT(x, b.k(x, 0)), b.k(x, math.NaN()), y)
	return b.Select(b.LT(x, inf), y, x) // infinity and NaN stay
}

func (b *Builder) log32(x Value) Value {
	return b.logCases(x, func(f, k Value) Value {
		z := b.Mul(f, f)
		y := b.Mul(b.Mul(f, z), b.poly(f, logP32))
		y = b.Add(y, b.Mul(k, b.k(x, ln2Lo32)))
		y = b.Sub(y, b.Mul(z, b.k(x, 0.5)))
		return b.Add(b.Add(f, y), b.Mul(k, b.k(x, ln2Hi32)))
	})
}

func (b *Builder) log64(x Value) Value {
	return b.logCases(x, func(f, k Value) Value { return b.logSum(f, k, b.F(f64, 0)) })
}

// logSum is k ln 2 + ln(1+f) + c for small c.
func (b *Builder) logSum(f, k, c Value) Value {
	s := b.Div(f, b.Add(b.F(f64, 2), f))
	z := b.Mul(s, s)
	r := b.Mul(z, b.poly(z, logR64))
	half := b.Mul(b.Mul(b.F(f64, 0.5), f), f)
	lo := b.Add(b.Mul(s, b.Add(half, r)), b.Add(b.Mul(k, b.F(f64, ln2Lo)), c))
	return b.Sub(b.Mul(k, b.F(f64, ln2Hi)), b.Sub(b.Sub(half, lo), f))
}

// logDD is ln(1+f) to about 2^-65 relatively: 2s + s^3 (2/3 + s^2 …), the first two terms in double-double.
func (b *Builder) logDD(f Value) dd {
	two := b.F(f64, 2)
	den := b.fastTwoSum(two, f)
	s := b.Div(f, den.hi)
	p := b.twoProd(s, den.hi)
	rest := b.Sub(b.Sub(b.Sub(f, p.hi), p.lo), b.Mul(s, den.lo))
	sd := dd{s, b.Div(rest, den.hi)}
	z := b.ddMul(sd, sd)
	w := b.ddMul(z, b.ddOf(2.0/3, twoThirdsLo))
	extra := b.Mul(b.Mul(z.hi, z.hi), b.poly(z.hi, logRExtra))
	t := b.fastTwoSum(two, w.hi)
	t.lo = b.Add(t.lo, b.Add(w.lo, extra))
	return b.ddMul(sd, t)
}

// addLn2 is k ln 2 + m.
func (b *Builder) addLn2(m dd, k Value) dd {
	s := b.twoSum(b.Mul(k, b.F(f64, ln2Hi)), m.hi)
	return b.fastTwoSum(s.hi, b.Add(s.lo, b.Add(m.lo, b.Mul(k, b.F(f64, ln2Lo)))))
}

// log1p takes the logarithm of u = 1 + x and corrects it by (1 + x - u)/u.
func (b *Builder) log1p(x Value) Value {
	one, zero := b.F(f64, 1), b.F(f64, 0)
	u := b.Add(one, x)
	f, k := b.frexp(u)
	c := b.Select(b.GE(x, one), b.Sub(one, b.Sub(u, x)), b.Sub(x, b.Sub(u, one)))
	near := b.EQ(k, zero)
	f = b.Select(near, x, f)
	y := b.logSum(f, k, b.Select(near, zero, b.Div(c, u)))
	inf := b.F(f64, math.Inf(1))
	y = b.Select(b.EQ(x, b.F(f64, -1)), b.Neg(inf), y)
	y = b.Select(b.LT(x, b.F(f64, -1)), b.F(f64, math.NaN()), y)
	y = b.Select(b.EQ(x, zero), x, y)
	return b.Select(b.LT(x, inf), y, x)
}

func powForm(b *Builder, dt dtype.DType, a ...Value) Value {
	switch {
	case dt.IsInt():
		return b.powInt(a[0], a[1])
	case dt == f64:
		return b.powFloat(a[0], a[1], func(x, y Value) Value {
			l := b.addLn2From(x)
			p := b.twoProd(l.hi, y)
			lo := b.clamp(b.Add(p.lo, b.Mul(l.lo, y)), -1, 1) // more where p.hi is far out of range
			return b.expSum(dd{p.hi, lo}, 0, expQ64)
		})
	}
	return b.Convert(f32, b.powFloat(b.Convert(f64, a[0]), b.Convert(f64, a[1]), func(x, y Value) Value {
		f, k := b.frexp(x)
		return b.expMid(b.Mul(y, b.logSum(f, k, b.F(f64, 0))))
	}))
}

func (b *Builder) addLn2From(x Value) dd {
	f, k := b.frexp(x)
	return b.addLn2(b.logDD(f), k)
}

// powFloat adds C99's cases (Annex F.9.4.4) to a power of a positive finite base and a bounded exponent.
func (b *Builder) powFloat(x, y Value, power func(x, y Value) Value) Value {
	zero, one, inf := b.F(f64, 0), b.F(f64, 1), b.F(f64, math.Inf(1))
	ax := b.Abs(x)
	finite := b.And(b.GT(ax, zero), b.LT(ax, inf))
	// Beyond 2^66 every power but that of 1 is 0 or infinite.
	p := power(b.Select(finite, ax, one), b.clamp(y, -0x1p66, 0x1p66))
	neg := b.LT(y, zero)
	p = b.Select(b.EQ(ax, zero), b.Select(neg, inf, zero), p)
	p = b.Select(b.EQ(ax, inf), b.Select(neg, zero, inf), p)

	isInt := b.EQ(b.Trunc(y), y)
	half := b.Mul(y, b.F(f64, 0.5))
	odd := b.And(isInt, b.NE(b.Trunc(half), half))
	minus := b.signBit(x)
	p = b.Select(b.And(minus, odd), b.Neg(p), p)
	undefined := b.And(b.And(b.LT(x, zero), b.Not(isInt)), finite)
	p = b.Select(undefined, b.F(f64, math.NaN()), p)
	p = b.Select(b.Or(b.isNaN(x), b.isNaN(y)), b.F(f64, math.NaN()), p)
	unit := b.And(b.EQ(ax, one), b.EQ(b.Abs(y), inf))
	return b.Select(b.Or(b.Or(b.EQ(x, one), b.EQ(y, zero)), unit), one, p)
}

// powInt squares repeatedly. Exponents below the width suffice for even bases (the power is 0 from there on) and one bit less
// than the width for odd ones.
func (b *Builder) powInt(x, y Value) Value {
	t := x.dt
	zero, one := b.I(t, 0), b.I(t, 1)
	bits := 8 * t.Size()
	if t != dtype.U8 {
		bits--
	}
	r, sq := one, x
	for i := range bits {
		set := b.NE(b.And(y, b.Shl(one, b.I(t, int64(i)))), zero)
		r = b.Select(set, b.Mul(r, sq), r)
		sq = b.Mul(sq, sq)
	}
	if t == dtype.U8 {
		return r
	}
	odd := b.NE(b.And(y, one), zero)
	inv := b.Select(b.EQ(x, one), one, zero)
	inv = b.Select(b.EQ(x, b.I(t, -1)), b.Select(odd, b.I(t, -1), one), inv)
	return b.Select(b.LT(y, zero), inv, r)
}

// logaddexp is the larger plus log1p(e^-difference); equal infinities have no difference.
func (b *Builder) logaddexp(x, y Value) Value {
	m := b.Select(b.GT(x, y), x, y)
	d := b.Neg(b.Abs(b.Sub(x, y)))
	s := b.Add(m, b.log1p(b.exp64(d, 0)))
	s = b.Select(b.And(b.EQ(x, y), b.EQ(b.Abs(x), b.F(f64, math.Inf(1)))), x, s)
	return b.Select(b.isNaN(x), x, s)
}

func xlogyForm(b *Builder, dt dtype.DType, a ...Value) Value {
	x, y := a[0], a[1]
	log := b.log64
	if dt == f32 {
		log = b.log32
	}
	r := b.Select(b.EQ(x, b.F(dt, 0)), b.F(dt, 0), b.Mul(x, log(y)))
	return b.Select(b.isNaN(y), y, r)
}

// asinh is log1p(a + a^2/(1 + sqrt(a^2 + 1))) and, where a^2 could overflow, ln a + ln 2.
func (b *Builder) asinh(x Value) Value {
	one := b.F(f64, 1)
	a := b.Abs(x)
	big := b.GT(a, b.F(f64, 0x1p30))
	m := b.Select(big, one, a)
	z := b.Mul(m, m)
	y := b.log1p(b.Add(m, b.Div(z, b.Add(one, b.Sqrt(b.Add(z, one))))))
	l := b.Add(b.log64(b.Select(big, a, one)), b.F(f64, math.Ln2))
	return b.copysign(b.Select(big, l, y), x)
}

// acosh is log1p(t + sqrt(2t + t^2)) with t = x - 1.
func (b *Builder) acosh(x Value) Value {
	one := b.F(f64, 1)
	big := b.GT(x, b.F(f64, 0x1p30))
	t := b.Sub(b.Select(big, one, x), one)
	y := b.log1p(b.Add(t, b.Sqrt(b.Add(b.Add(t, t), b.Mul(t, t)))))
	l := b.Add(b.log64(b.Select(big, x, one)), b.F(f64, math.Ln2))
	return b.Select(b.LT(x, one), b.F(f64, math.NaN()), b.Select(big, l, y))
}

// atanh is log1p(2a/(1-a))/2; for small a the quotient is written 2a + 2a^2/(1-a).
func (b *Builder) atanh(x Value) Value {
	one := b.F(f64, 1)
	a := b.Abs(x)
	d := b.Sub(one, a)
	t := b.Add(a, a)
	small := b.Add(t, b.Div(b.Mul(t, a), d))
	y := b.log1p(b.Select(b.LT(a, b.F(f64, 0.5)), small, b.Div(t, d)))
	y = b.copysign(b.Mul(y, b.F(f64, 0.5)), x)
	return b.Select(b.GT(a, one), b.F(f64, math.NaN()), y)
}
