package scalar

import "math"

// Modified Bessel functions of the first kind.

var _ = register(
	Op{"i0", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value {
		x := b.Abs(a[0])
		return b.besselI(x, besselSeries(0), i0Large, b.F(f64, 1))
	}), "The modified Bessel function of order 0."},
	Op{"i1", 1, Floats, false, viaF64(func(b *Builder, a []Value) Value {
		x := b.Abs(a[0])
		return b.copysign(b.besselI(x, besselSeries(1), i1Large, b.Mul(x, b.F(f64, 0.5))), a[0])
	}), "The modified Bessel function of order 1."},
)

// besselSeries has the power series in (x/2)^2: 1/(k! (k+n)!).
func besselSeries(n int) []float64 {
	c := make([]float64, 26)
	f := 1.0
	for k := range c {
		if k > 0 {
			f /= float64(k) * float64(k+n)
		}
		c[k] = f
	}
	return c
}

// besselI is the series times factor up to 8, and e^x / sqrt(x) times a polynomial in 8/x beyond; e^x is taken 2^-10 times
// too small as it overflows before the result does.
func (b *Builder) besselI(x Value, series, large []float64, factor Value) Value {
	eight := b.F(f64, 8)
	s := b.Select(b.GT(x, eight), eight, x)
	small := b.Mul(b.poly(b.Mul(b.Mul(s, s), b.F(f64, 0.25)), series), factor)
	l := b.Select(b.LT(x, eight), eight, x)
	p := b.Div(b.poly(b.Div(eight, l), large), b.Sqrt(l))
	far := b.Mul(b.Mul(b.exp64(l, -10), p), b.F(f64, 0x1p10))
	far = b.Select(b.EQ(x, b.F(f64, math.Inf(1))), x, far)
	return b.Select(b.GT(x, eight), far, small)
}
