package scalar

import "math"

// The logarithm of the gamma function and its derivatives: Stirling's series for large arguments, recurrence below, reflection
// for negative ones. Near their negative zeros they are accurate absolutely, not relatively.

var _ = register(
	Op{"lgamma", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.lgamma(a[0]) }), "ln |gamma(x)|; infinite at 0 and the negative integers."},
	Op{"digamma", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.digamma(a[0]) }), "The derivative of lgamma; NaN at negative integers, infinite at 0 with the opposite sign."},
	Op{"trigamma", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.trigamma(a[0]) }), "The second derivative of lgamma; infinite at 0 and the negative integers."},
	Op{"zeta", 2, Floats, false, viaF64(func(b *Builder, a []Value) Value { return b.zeta(a[0], a[1]) }), "Hurwitz's zeta function, the sum of (y+k)^-x over k >= 0; infinite at x = 1, NaN for x < 1 and for y < 0 but at integers, where it is infinite."},
)

// Bernoulli numbers B2, B4, … B16.
var bernoulli = []float64{1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510}

// bernoulliOver divides the k-th Bernoulli number (k = 2, 4, …) by d(k).
func bernoulliOver(d func(k float64) float64) []float64 {
	c := make([]float64, len(bernoulli))
	for i, v := range bernoulli {
		c[i] = v / d(float64(2*i+2))
	}
	return c
}

// sinPi is sin(pi x) for |x| < 2^50 and 0 beyond, where every number is an integer or half of one.
func (b *Builder) sinPi(x Value) (sin, cos Value) {
	huge := b.GT(b.Abs(x), b.F(f64, 0x1p50))
	n, i := b.roundSmall(b.Select(huge, b.F(f64, 0), x))
	r := b.twoProd(b.Sub(b.Select(huge, b.F(f64, 0), x), n), b.F(f64, math.Pi))
	sin, cos = b.sinCosSmall(r.hi)
	odd := b.NE(b.And(i, b.I(i.dt, 1)), b.I(i.dt, 0))
	return b.Select(odd, b.Neg(sin), sin), b.Select(odd, b.Neg(cos), cos)
}

// sinCosSmall is for |x| <= pi/2: by halves, as sin 2t = 2 sin t cos t.
func (b *Builder) sinCosSmall(x Value) (sin, cos Value) {
	t := b.Mul(x, b.F(f64, 0.5))
	z := b.Mul(t, t)
	s := b.Add(t, b.Mul(b.Mul(t, z), b.poly(z, sinQ64)))
	c := b.cosKernel(dd{t, b.F(f64, 0)}, cosQ64)
	return b.Mul(b.Add(s, s), c), b.Sub(b.Mul(c, c), b.Mul(s, s))
}

func (b *Builder) lgamma(x Value) Value {
	zero, inf := b.F(f64, 0), b.F(f64, math.Inf(1))
	neg := b.LT(x, zero)
	a := b.Abs(x)
	y := b.lgammaPos(a)
	// ln|gamma(-a)| = ln(pi / (a |sin pi a|)) - ln gamma(a)
	sin, _ := b.sinPi(a)
	s := b.Abs(sin)
	reflected := b.Sub(b.Neg(b.log64(b.Mul(b.Mul(a, s), b.F(f64, 1/math.Pi)))), y)
	tiny := b.LT(a, b.F(f64, 0x1p-60)) // gamma(x) = 1/x
	y = b.Select(b.And(neg, b.Not(tiny)), reflected, y)
	pole := b.And(b.LE(x, zero), b.EQ(b.Floor(x), x))
	return b.Select(b.Or(pole, b.EQ(a, inf)), inf, y)
}

// lgammaPos brings arguments below 10 to [3/2, 5/2] by gamma(x+1) = x gamma(x).
func (b *Builder) lgammaPos(x Value) Value {
	one, half := b.F(f64, 1), b.F(f64, 0.5)
	y, up, down := x, one, one // x's gamma is gamma(y) * up / down
	for range 2 {
		low := b.LT(y, b.F(f64, 1.5))
		down = b.Select(low, b.Mul(down, y), down)
		y = b.Select(low, b.Add(y, one), y)
	}
	for range 8 {
		high := b.GE(y, b.F(f64, 2.5))
		next := b.Sub(y, one)
		up = b.Select(high, b.Mul(up, next), up)
		y = b.Select(high, next, y)
	}
	t := b.Sub(y, b.F(f64, 2))
	// Below 3/2 the argument's own digits matter: t = x - 1 is exact where y = x + 1 may not be.
	t = b.Select(b.LT(x, b.F(f64, 1.5)), b.Select(b.GE(x, half), b.Sub(x, one), x), t)
	// Below 2^-1000 up/down, which is 1/x, may be infinite.
	least := b.LT(x, b.F(f64, 0x1p-1000))
	l := b.log64(b.Select(least, x, b.Div(up, down)))
	small := b.Add(b.Mul(t, b.poly(t, lgammaP)), b.Select(least, b.Neg(l), l))

	big := b.Select(b.LT(x, b.F(f64, 10)), b.F(f64, 10), x)
	r := b.Div(one, big)
	tail := b.Mul(r, b.poly(b.Mul(r, r), bernoulliOver(func(k float64) float64 { return k * (k - 1) })))
	l = b.log64(big)
	stirling := b.Sub(b.Mul(big, b.Sub(l, one)), b.Mul(half, l))
	stirling = b.Add(stirling, b.Add(b.F(f64, 0.5*math.Log(2*math.Pi)), tail))
	return b.Select(b.LT(x, b.F(f64, 10)), small, stirling)
}

func (b *Builder) digamma(x Value) Value {
	zero, one, half := b.F(f64, 0), b.F(f64, 1), b.F(f64, 0.5)
	reflect := b.LT(x, half)
	y := b.Select(reflect, b.Sub(one, x), x)
	sum := zero
	for range 10 {
		low := b.LT(y, b.F(f64, 10))
		sum = b.Select(low, b.Add(sum, b.Div(one, y)), sum)
		y = b.Select(low, b.Add(y, one), y)
	}
	r := b.Div(one, y)
	z := b.Mul(r, r)
	tail := b.Mul(z, b.poly(z, bernoulliOver(func(k float64) float64 { return k })))
	v := b.Sub(b.Sub(b.log64(y), b.Add(b.Mul(half, r), tail)), sum)
	sin, cos := b.sinPi(x)
	v = b.Select(reflect, b.Sub(v, b.Div(b.Mul(b.F(f64, math.Pi), cos), sin)), v)
	pole := b.And(b.LT(x, zero), b.EQ(b.Floor(x), x))
	v = b.Select(pole, b.F(f64, math.NaN()), v)
	return b.Select(b.EQ(x, zero), b.copysign(b.F(f64, math.Inf(1)), b.Neg(x)), v)
}

func (b *Builder) trigamma(x Value) Value {
	zero, one, half := b.F(f64, 0), b.F(f64, 1), b.F(f64, 0.5)
	reflect := b.LT(x, half)
	y := b.Select(reflect, b.Sub(one, x), x)
	sum := zero
	for range 10 {
		low := b.LT(y, b.F(f64, 10))
		sum = b.Select(low, b.Add(sum, b.Div(one, b.Mul(y, y))), sum)
		y = b.Select(low, b.Add(y, one), y)
	}
	r := b.Div(one, y)
	z := b.Mul(r, r)
	tail := b.Mul(b.Mul(z, r), b.poly(z, bernoulli))
	v := b.Add(sum, b.Add(r, b.Add(b.Mul(half, z), tail)))
	sin, _ := b.sinPi(x)
	q := b.Div(b.F(f64, math.Pi), sin)
	return b.Select(reflect, b.Sub(b.Mul(q, q), v), v)
}

// zeta adds ten terms and estimates the rest by Euler's and Maclaurin's formula.
func (b *Builder) zeta(x, q Value) Value {
	zero, one, inf, nan := b.F(f64, 0), b.F(f64, 1), b.F(f64, math.Inf(1)), b.F(f64, math.NaN())
	power := func(y Value) Value { return powForm(b, f64, y, b.Neg(x)) }
	sum, y := zero, q
	for range 10 {
		sum = b.Add(sum, power(y))
		y = b.Add(y, one)
	}
	last := power(y)
	rest := b.Add(b.Div(b.Mul(last, y), b.Sub(x, one)), b.Mul(last, b.F(f64, 0.5)))
	// the k-th term has the k-th Bernoulli number over k! and x (x+1) … (x+k-2) y^(-x-k+1)
	rising, factorial := b.Div(b.Mul(last, x), y), 2.0
	for i, bernoulli := range bernoulli {
		k := float64(2*i + 2)
		rest = b.Add(rest, b.Mul(rising, b.F(f64, bernoulli/factorial)))
		rising = b.Div(b.Mul(rising, b.Mul(b.Add(x, b.F(f64, k-1)), b.Add(x, b.F(f64, k)))), b.Mul(y, y))
		factorial *= (k + 1) * (k + 2)
	}
	v := b.Add(sum, rest)
	v = b.Select(b.EQ(q, inf), zero, v)
	v = b.Select(b.EQ(x, inf), b.Select(b.LT(q, one), inf, b.Select(b.EQ(q, one), one, zero)), v)
	v = b.Select(b.LE(q, zero), b.Select(b.EQ(b.Floor(q), q), inf, nan), v)
	v = b.Select(b.EQ(x, one), inf, v)
	return b.Select(b.Or(b.LT(x, one), b.Or(b.NE(x, x), b.NE(q, q))), nan, v)
}
