package scalar

import (
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Trigonometric functions. Arguments of any size are reduced exactly: x * 2/pi mod 4 with as many bits of 2/pi as x needs
// (Payne and Hanek), then polynomials on [-pi/4, pi/4].

var _ = register(
	Op{"sin", 1, Floats, false, trigForm(func(b *Builder, t trig) Value { return b.sinOf(t, 0) }), "The sine of x radians; NaN for infinities."},
	Op{"cos", 1, Floats, false, trigForm(func(b *Builder, t trig) Value { return b.sinOf(t, 1) }), "The cosine of x radians; NaN for infinities."},
	Op{"tan", 1, Floats, false, trigForm((*Builder).tanOf), "The tangent of x radians; NaN for infinities."},
	Op{"asin", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.asin(a[0]) }), "The inverse sine; NaN outside [-1, 1]."},
	Op{"acos", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.acos(a[0]) }), "The inverse cosine; NaN outside [-1, 1]."},
	Op{"atan", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value {
		return b.copysign(b.atanPos(b.Abs(a[0]), b.F(f64, 0)), a[0])
	}), "The inverse tangent."},
	Op{"atan2", 2, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.atan2(a[0], a[1]) }), "The angle of the point (y, x) = operands 0 and 1, by C99's cases."},
	Op{"hypot", 2, Floats, false, hypotForm, "sqrt(x^2 + y^2) without overflow; infinite if either is."},
)

// trig is an argument reduced by a multiple of pi/2: kernel values for the remainder, and the multiple mod 4.
type trig struct {
	sin, cos Value
	quadrant Value // I64
}

func trigForm(f func(b *Builder, t trig) Value) Form {
	return byType(rounded(func(b *Builder, x Value) Value {
		r, q := b.reduce32(x)
		z := b.Mul(r, r)
		sin := b.Add(r, b.Mul(b.Mul(r, z), b.poly(z, sinQMid)))
		sin = b.Select(b.EQ(x, b.F(f64, 0)), x, sin)
		return f(b, trig{sin, b.cosKernel(dd{r, b.F(f64, 0)}, cosQMid), q})
	}), func(b *Builder, x Value) Value {
		r, q := b.reduce64(x)
		z := b.Mul(r.hi, r.hi)
		half := b.F(f64, 0.5)
		// sin(hi + lo) = sin(hi) + lo cos(hi)
		lo := b.Sub(r.lo, b.Mul(b.Mul(half, r.lo), z))
		sin := b.Add(r.hi, b.Add(b.Mul(b.Mul(r.hi, z), b.poly(z, sinQ64)), lo))
		sin = b.Select(b.EQ(x, b.F(f64, 0)), x, sin)
		return f(b, trig{sin, b.cosKernel(r, cosQ64), q})
	})
}

// cosKernel keeps what 1 - z/2 rounds off.
func (b *Builder) cosKernel(r dd, q []float64) Value {
	z := b.Mul(r.hi, r.hi)
	one, half := b.F(f64, 1), b.Mul(z, b.F(f64, 0.5))
	w := b.Sub(one, half)
	rest := b.Sub(b.Sub(one, w), half)
	tail := b.Sub(b.Mul(b.Mul(z, z), b.poly(z, q)), b.Mul(r.hi, r.lo))
	return b.Add(w, b.Add(rest, tail))
}

// sinOf is the sine of the reduced argument advanced by quarter turns.
func (b *Builder) sinOf(t trig, advance int64) Value {
	i64 := dtype.I64
	q := b.Add(t.quadrant, b.I(i64, advance))
	zero := b.I(i64, 0)
	v := b.Select(b.NE(b.And(q, b.I(i64, 1)), zero), t.cos, t.sin)
	return b.Select(b.NE(b.And(q, b.I(i64, 2)), zero), b.Neg(v), v)
}

func (b *Builder) tanOf(t trig) Value {
	odd := b.NE(b.And(t.quadrant, b.I(dtype.I64, 1)), b.I(dtype.I64, 0))
	return b.Div(b.Select(odd, b.Neg(t.cos), t.sin), b.Select(odd, t.sin, t.cos))
}

// reduce32 is for F64 registers that hold a float32: x = M 2^(e-23) with M below 2^24, and M times each of the first two parts
// of 2^(e-23) 2/pi mod 4 is exact.
func (b *Builder) reduce32(x Value) (r, q Value) {
	i64 := dtype.I64
	a := b.Abs(x)
	e := b.Sub(b.LShr(b.Bitcast(i64, a), b.I(i64, 52)), b.I(i64, 1023))
	e = b.Select(b.LT(e, b.I(i64, 0)), b.I(i64, 0), e)
	m := b.Mul(a, b.pow2(f64, b.Sub(b.I(i64, 23), e)))
	hi := b.Mul(m, b.Table(f64, twoOverPi32Hi, e))
	mid := b.Mul(m, b.Table(f64, twoOverPi32Mid, e))
	lo := b.Mul(m, b.Table(f64, twoOverPi32Lo, e))
	n, q := b.roundSmall(b.Add(hi, mid))
	f := b.Add(b.Add(b.Sub(hi, n), mid), lo)
	return b.finishReduction(x, dd{b.Mul(f, b.F(f64, piHalf)), b.F(f64, 0)}, q)
}

// finishReduction keeps small arguments as they are, makes infinities NaN and gives the remainder x's sign.
func (b *Builder) finishReduction(x Value, r dd, q Value) (Value, Value) {
	s, q := b.finishReductionDD(x, r, q)
	return s.hi, q
}

func (b *Builder) finishReductionDD(x Value, r dd, q Value) (dd, Value) {
	i64 := dtype.I64
	a := b.Abs(x)
	small := b.LE(a, b.F(f64, math.Pi/4))
	neg := b.signBit(x)
	zero := b.F(f64, 0)
	hi := b.Select(neg, b.Neg(r.hi), r.hi)
	lo := b.Select(neg, b.Neg(r.lo), r.lo)
	q = b.Select(neg, b.Neg(q), q)
	hi = b.Select(b.LT(a, b.F(f64, math.Inf(1))), hi, b.F(f64, math.NaN()))
	return dd{b.Select(small, x, hi), b.Select(small, zero, lo)}, b.Select(small, b.I(i64, 0), q)
}

// reduce64 multiplies the 53-bit mantissa by 192 bits of 2/pi in 32-bit limbs, modulo 4.
func (b *Builder) reduce64(x Value) (dd, Value) {
	i64 := dtype.I64
	i := func(v int64) Value { return b.I(i64, v) }
	mask := i(1<<32 - 1)
	bits := b.Bitcast(i64, b.Abs(x))
	e := b.LShr(bits, i(52))
	e = b.Select(b.LT(e, i(1022)), i(1022), e) // smaller ones are not reduced
	m := b.Or(b.And(bits, i(1<<52-1)), i(1<<52))
	m0, m1 := b.And(m, mask), b.LShr(m, i(32))

	// x = m 2^(e-1075). The first bit of 2/pi that matters has weight 2^(1-(e-1075)): bit e-1076 counted from 1, and entry
	// positions count from 0 after 64 zeros.
	pos := b.Add(e, i(-1076+63))
	word, shift := b.LShr(pos, i(5)), b.Sub(i(32), b.And(pos, i(31)))
	var w [6]Value // limbs, lowest first
	for k := range w {
		w[5-k] = b.And(b.LShr(b.Table(i64, twoOverPi, b.Add(word, i(int64(k)))), shift), mask)
	}
	var p [6]Value
	carry0, carry1, carry := i(0), i(0), i(0)
	for k := range p {
		t0 := b.Add(b.Mul(m0, w[k]), carry0)
		carry0 = b.LShr(t0, i(32))
		sum := b.Add(b.And(t0, mask), carry)
		if k > 0 {
			t1 := b.Add(b.Mul(m1, w[k-1]), carry1)
			carry1 = b.LShr(t1, i(32))
			sum = b.Add(sum, b.And(t1, mask))
		}
		carry = b.LShr(sum, i(32))
		p[k] = b.And(sum, mask)
	}

	// The value is p 2^-190: two integer bits, then the fraction, taken in [-1/2, 1/2).
	q := b.LShr(p[5], i(30))
	top := b.And(p[5], i(1<<30-1))
	up := b.GE(top, i(1<<29))
	q = b.Add(q, b.Select(up, i(1), i(0)))
	top = b.Sub(top, b.Select(up, i(1<<30), i(0)))
	part := func(v Value, exp int) Value {
		return b.Mul(b.smallInt(f64, v), b.F(f64, math.Ldexp(1, exp)))
	}
	s := b.fastTwoSum(part(top, -30), part(p[4], -62))
	u := b.fastTwoSum(s.hi, b.Add(s.lo, part(p[3], -94)))
	f := b.fastTwoSum(u.hi, b.Add(u.lo, part(p[2], -126)))
	r := b.ddMul(f, b.ddOf(piHalf, piHalfLo))
	return b.finishReductionDD(x, r, q)
}

// atanPos is atan(a) + c for a >= 0 and small c: beyond tan(3pi/8) by pi/2 - atan(1/a), beyond tan(pi/8) by
// pi/4 + atan((a-1)/(a+1)).
func (b *Builder) atanPos(a, c Value) Value {
	zero, one := b.F(f64, 0), b.F(f64, 1)
	large := b.GT(a, b.F(f64, 1+math.Sqrt2))
	middle := b.GT(a, b.F(f64, math.Sqrt2-1))
	num := b.Select(large, b.F(f64, -1), b.Select(middle, b.Sub(a, one), a))
	den := b.Select(large, a, b.Select(middle, b.Add(a, one), one))
	base := b.Select(large, b.F(f64, piHalf), b.Select(middle, b.F(f64, piHalf/2), zero))
	baseLo := b.Select(large, b.F(f64, piHalfLo), b.Select(middle, b.F(f64, piHalfLo/2), zero))
	t := b.Div(num, den)
	z := b.Mul(t, t)
	s := b.Mul(b.Mul(t, z), b.poly(z, atanQ))
	y := b.fastTwoSum(base, t)
	return b.Add(y.hi, b.Add(y.lo, b.Add(s, b.Add(baseLo, c))))
}

func (b *Builder) atan2(y, x Value) Value {
	zero, one, inf := b.F(f64, 0), b.F(f64, 1), b.F(f64, math.Inf(1))
	ax, ay := b.Abs(x), b.Abs(y)
	bothInf := b.And(b.EQ(ax, inf), b.EQ(ay, inf))
	bothZero := b.And(b.EQ(ax, zero), b.EQ(ay, zero))
	num := b.Select(bothInf, one, ay)
	den := b.Select(b.Or(bothInf, bothZero), one, ax)
	a := b.atanPos(b.Div(num, den), zero)
	// pi - a, where the error of pi counts
	back := b.Sub(b.F(f64, math.Pi), b.Sub(a, b.F(f64, 2*piHalfLo)))
	a = b.Select(b.signBit(x), back, a)
	a = b.copysign(a, y)
	return b.Select(b.Or(b.isNaN(x), b.isNaN(y)), b.F(f64, math.NaN()), a)
}

// asinParts gives for |x| <= 1/2 the series tail s z P(z) of s = |x|; otherwise s = sqrt((1-|x|)/2), its rounding error c, and
// the tail of asin(s).
func (b *Builder) asinParts(a Value) (small, s, c, tail Value) {
	half := b.F(f64, 0.5)
	small = b.LE(a, half)
	z := b.Select(small, b.Mul(a, a), b.Mul(b.Sub(b.F(f64, 1), a), half))
	s = b.Select(small, a, b.Sqrt(z))
	p := b.twoProd(s, s)
	rest := b.Sub(b.Sub(z, p.hi), p.lo)
	c = b.Div(rest, b.Add(s, s))
	c = b.Select(b.Or(small, b.EQ(s, b.F(f64, 0))), b.F(f64, 0), c)
	return small, s, c, b.Mul(b.Mul(s, z), b.poly(z, asinQ))
}

// asin is pi/2 - 2 asin(sqrt((1-|x|)/2)) beyond 1/2.
func (b *Builder) asin(x Value) Value {
	small, s, c, tail := b.asinParts(b.Abs(x))
	two := b.F(f64, 2)
	d := b.fastTwoSum(b.F(f64, piHalf), b.Neg(b.Mul(two, s)))
	far := b.Add(d.hi, b.Add(d.lo, b.Sub(b.F(f64, piHalfLo), b.Mul(two, b.Add(tail, c)))))
	return b.copysign(b.Select(small, b.Add(s, tail), far), x)
}

// acos is pi/2 - asin(x) within 1/2, and 2 asin(sqrt((1-|x|)/2)) or pi minus that beyond.
func (b *Builder) acos(x Value) Value {
	small, s, c, tail := b.asinParts(b.Abs(x))
	neg := b.signBit(x)
	two := b.F(f64, 2)
	sx, tx := b.Select(neg, b.Neg(s), s), b.Select(neg, b.Neg(tail), tail)
	d := b.fastTwoSum(b.F(f64, piHalf), b.Neg(sx))
	near := b.Add(d.hi, b.Add(d.lo, b.Sub(b.F(f64, piHalfLo), tx)))
	right := b.Mul(two, b.Add(s, b.Add(tail, c)))
	d = b.fastTwoSum(b.F(f64, math.Pi), b.Neg(b.Mul(two, s)))
	left := b.Add(d.hi, b.Add(d.lo, b.Sub(b.F(f64, 2*piHalfLo), b.Mul(two, b.Add(tail, c)))))
	return b.Select(small, near, b.Select(neg, left, right))
}

// hypotForm for F64 scales by a power of two and keeps the rounding errors of the squares.
func hypotForm(b *Builder, dt dtype.DType, a ...Value) Value {
	x, y := b.Abs(a[0]), b.Abs(a[1])
	inf := b.F(dt, math.Inf(1))
	isInf := b.Or(b.EQ(x, inf), b.EQ(y, inf))
	var h Value
	if dt == f32 {
		x, y := b.Convert(f64, x), b.Convert(f64, y)
		h = b.Convert(f32, b.Sqrt(b.Add(b.Mul(x, x), b.Mul(y, y))))
	} else {
		big, small := b.Select(b.LT(x, y), y, x), b.Select(b.LT(x, y), x, y)
		huge, tiny := b.GT(big, b.F(f64, 0x1p500)), b.LT(big, b.F(f64, 0x1p-400))
		one := b.F(f64, 1)
		down := b.Select(huge, b.F(f64, 0x1p-600), b.Select(tiny, b.F(f64, 0x1p600), one))
		up := b.Select(huge, b.F(f64, 0x1p600), b.Select(tiny, b.F(f64, 0x1p-600), one))
		p, q := b.Mul(big, down), b.Mul(small, down)
		pp := b.twoProd(p, p)
		s := b.fastTwoSum(pp.hi, b.Mul(q, q))
		h = b.Mul(b.Sqrt(b.Add(s.hi, b.Add(s.lo, pp.lo))), up)
		h = b.Select(b.isNaN(x), x, h)
	}
	return b.Select(isInf, inf, h)
}
