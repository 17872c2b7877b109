package aten

import (
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Less usual functions of several areas.

func init() {
	statistics()
	windowFunctions()
	oddities()
}

// statistics are covariances and the like.
func statistics() {
	def(Method|Torch, "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		if isNone(args[2]) && isNone(args[3]) {
			return one(covariance(b, args[0], constInt(b, args[1])))
		}
		return one(weightedCovariance(b, args[0], constInt(b, args[1]), args[2], args[3]))
	})
	def(Method|Torch, "corrcoef(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		c := covariance(b, args[0], 1)
		if rank(b, c) == 0 {
			return one(b.Op("div", c, c))
		}
		n := shapeOf(b, c)[0]
		sd := b.Op("sqrt", diagonal(b, c, 0, 0, 1))
		c = apply(b, "div", apply(b, "div", c, reshape(b, sd, []int{n, 1})), sd)
		return call2(b, "clamp", c, b.Float(-1), b.Float(1))
	})
	def(Method, "sum_to_size(Tensor self, int[] size) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		size := constInts(b, args[1])
		if !fits(size, shapeOf(b, args[0])) {
			b.Failf("size %v is not expandable to size %v.", size, shapeOf(b, args[0]))
		}
		return one(b.Op("sum_to", args[0], b.Ints(size...)))
	})
	def(Torch, "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		n, r := numel(b, args[0]), constInt(b, args[1])
		if rank(b, args[0]) != 1 || r < 0 {
			b.Failf("combinations expects a 1-D tensor and a non-negative number of elements, got shape %v and r=%d", shapeOf(b, args[0]), r)
		}
		if r == 0 { // as in PyTorch, not [1, 0]
			return one(em{b}.slice(args[0], 0, 0, 0))
		}
		needFew(b, r, "elements of a combination")
		var index []float64
		rows := 0
		choose(n, r, constBool(b, args[2]), func(c []int) {
			rows++
			needFew(b, rows*r, "elements")
			for _, i := range c {
				index = append(index, float64(i))
			}
		})
		return one(b.Op("take", args[0], b.Const(ir.FromFloats(dtype.I64, []int{rows, r}, index))))
	})
	def(Torch, "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x := args[0]
		if rank(b, x) != 1 {
			b.Failf("x must be a one-dimensional tensor, got shape %v", shapeOf(b, x))
		}
		out := vander(b, x, optInt(b, args[1], numel(b, x)))
		if !constBool(b, args[2]) {
			out = flip(b, out, 1)
		}
		return one(out)
	})
	def(Linalg, "linalg_vander(Tensor x, *, int? N=None) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		s := shapeOf(b, args[0])
		if len(s) == 0 {
			b.Failf("linalg.vander: expected a tensor with at least 1 dimension, got a 0-d tensor")
		}
		n := optInt(b, args[1], s[len(s)-1])
		if n <= 1 {
			b.Failf("N must be greater than 1, got %d", n)
		}
		return one(vander(b, args[0], n))
	})
	alias(Linalg, "vander", "linalg_vander")
	const gradientOf = "(Tensor self, *, Scalar? spacing=None, "
	def(Torch, "gradient"+gradientOf+"int? dim=None, int edge_order=1) -> Tensor[]", gradient)
	def(Torch, "gradient.array"+gradientOf+"int[] dim, int edge_order=1) -> Tensor[]", gradient)
	def(Torch, "gradient.spacings(Tensor self, *, float[] spacing, int[]? dim=None, int edge_order=1) -> Tensor[]", gradient)
}

// vander has the powers 0 to n-1 of x in a new last dim.
func vander(b *ir.Builder, x *ir.Value, n int) *ir.Value {
	needFew(b, n, "columns")
	if n < 0 {
		b.Failf("N must be non-negative, got %d", n)
	}
	r := rank(b, x)
	col := unsqueeze(b, cast(b, x, sumType(dt(b, x))), r)
	cols := []*ir.Value{onesLike(b, col)}
	for len(cols) < n {
		cols = append(cols, b.Op("mul", cols[len(cols)-1], col))
	}
	return sliceDim(b, concat(b, r, cols...), r, 0, n, 1)
}

// gradient estimates the slopes of samples along dims: by the two neighbours of a sample, at the ends by the first edge_order+1 ones.
func gradient(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, order := args[0], constInt(b, args[3])
	if order != 1 && order != 2 {
		b.Failf("torch.gradient expected edge_order to be 1 or 2, got %d", order)
	}
	dims := allDims(b, x)
	if len(dims) == 0 {
		b.Failf("torch.gradient expects a tensor with at least 1 dimension, got a 0-d tensor")
	}
	if given, ok := optInts(b, args[2]); ok {
		dims = wrapDims(b, given, rank(b, x))
	}
	spacing := func(int) float64 { return 1 }
	switch {
	case isNone(args[1]):
	case isNumber(args[1]):
		spacing = func(int) float64 { return constFloat(b, args[1]) }
	default:
		l, ok := b.NeedConst(args[1]).(ir.List)
		if !ok || l.Len() != len(dims) {
			b.Failf("torch.gradient expected spacing to be unspecified, a scalar, or a list of %d numbers", len(dims))
		}
		spacing = func(i int) float64 { return constFloat(b, b.Const(l.Elems()[i])) }
	}
	x = cast(b, x, floatOf(dt(b, x)))
	out := make([]*ir.Value, len(dims))
	for i, d := range dims {
		n := shapeOf(b, x)[d]
		if n < order+1 {
			b.Failf("torch.gradient expected each dimension size to be at least edge_order+1, got size %d in dim %d", n, d)
		}
		// slope is the sum of the samples from a place on, each with a weight
		slope := func(from, count int, weights ...float64) *ir.Value {
			var sum *ir.Value
			for k, w := range weights {
				if w == 0 {
					continue
				}
				part := apply(b, "mul", sliceDim(b, x, d, from+k, from+k+count, 1), w/spacing(i))
				if sum != nil {
					part = b.Op("add", sum, part)
				}
				sum = part
			}
			return sum
		}
		first, last := slope(0, 1, -1, 1), slope(n-2, 1, -1, 1)
		if order == 2 {
			first, last = slope(0, 1, -1.5, 2, -0.5), slope(n-3, 1, 0.5, -2, 1.5)
		}
		out[i] = concat(b, d, first, slope(0, n-2, -0.5, 0, 0.5), last)
	}
	return one(b.List(out...))
}

func call2(b *ir.Builder, name string, args ...*ir.Value) []*ir.Value {
	return one(call(b, name, args...))
}

// covariance is that of the rows of x, each a variable.
func covariance(b *ir.Builder, x *ir.Value, correction int) *ir.Value {
	rows, n := observations(b, x)
	dev := apply(b, "sub", rows, apply(b, "div", reduce(b, "sum", rows, []int{1}, true), float64(n)))
	return covarianceShape(b, x, apply(b, "div", b.Op("dot", dev, dev, b.Int(0), b.Int(1)), float64(max(n-correction, 0))))
}

// observations are the rows of x, each a variable with n of them.
func observations(b *ir.Builder, x *ir.Value) (rows *ir.Value, n int) {
	if rank(b, x) > 2 {
		b.Failf("cov(): expected input to have two or fewer dimensions but got an input with %d dimensions", rank(b, x))
	}
	shape := shapeOf(b, x)
	n = product(shape)
	if len(shape) == 2 {
		n = shape[1]
	}
	return reshape(b, cast(b, x, floatOf(dt(b, x))), []int{product(shape) / max(n, 1), n}), n
}

// covarianceShape makes the variance of a single variable 0-d.
func covarianceShape(b *ir.Builder, x, c *ir.Value) *ir.Value {
	if rank(b, x) < 2 {
		return reshape(b, c, nil)
	}
	return c
}

// weightedCovariance counts each observation as often as the ints in fweights say, and weighs it by aweights; either may be None.
func weightedCovariance(b *ir.Builder, x *ir.Value, correction int, fweights, aweights *ir.Value) *ir.Value {
	rows, n := observations(b, x)
	d := dt(b, rows)
	weights := fill(b, 1, d, []int{n})
	for i, w := range []*ir.Value{fweights, aweights} {
		if isNone(w) {
			continue
		}
		if !sameInts(shapeOf(b, w), []int{n}) {
			b.Failf("cov(): expected weights of shape [%d], one for each observation, got %v", n, shapeOf(b, w))
		}
		if isFloat := dt(b, w).IsFloat(); isFloat != (i == 1) {
			b.Failf("cov(): expected integers for fweights and floating point numbers for aweights, got %s", typeName(dt(b, w)))
		}
		weights = b.Op("mul", weights, cast(b, w, d))
	}
	sum := reduce(b, "sum", weights, []int{0}, false)
	mean := apply(b, "div", reduce(b, "sum", apply(b, "mul", rows, weights), []int{1}, true), sum)
	dev := apply(b, "sub", rows, mean)
	lost := number(b, float64(correction), d)
	if !isNone(aweights) {
		squares := reduce(b, "sum", b.Op("mul", weights, cast(b, aweights, d)), []int{0}, false)
		lost = b.Op("mul", lost, b.Op("div", squares, sum))
	}
	divisor := apply(b, "maximum", b.Op("sub", sum, lost), 0.0)
	return covarianceShape(b, x, apply(b, "div", b.Op("dot", apply(b, "mul", dev, weights), dev, b.Int(0), b.Int(1)), divisor))
}

// choose visits the ascending choices of r out of n numbers, in lexicographic order.
func choose(n, r int, repeat bool, visit func([]int)) {
	c := make([]int, 0, r)
	var grow func(from int)
	grow = func(from int) {
		if len(c) == r {
			visit(c)
			return
		}
		for i := from; i < n; i++ {
			c = append(c, i)
			next := i + 1
			if repeat {
				next = i
			}
			grow(next)
			c = c[:len(c)-1]
		}
	}
	grow(0)
}

// windowFunctions are those of signal processing: sums of a few cosines over one period.
func windowFunctions() {
	for name, coeffs := range map[string][]float64{
		"hann_window": {0.5, -0.5}, "hamming_window": {0.54, -0.46}, "blackman_window": {0.42, -0.5, 0.08},
	} {
		def(Torch, name+"(int window_length, bool periodic=True, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			n, d := constInt(b, args[0]), optDType(b, args[2], dtype.F32)
			return one(b.Const(window(b, n, constBool(b, args[1]), d, func(phase float64) float64 {
				v := 0.0
				for k, c := range coeffs {
					v += c * math.Cos(2*math.Pi*float64(k)*phase)
				}
				return v
			})))
		})
	}
	for _, form := range []string{"alpha(int window_length, bool periodic, float alpha, ", "alpha_beta(int window_length, bool periodic, float alpha, float beta, "} {
		def(Torch, "hamming_window."+form+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			alpha, beta, to := constFloat(b, args[2]), 0.46, args[3]
			if form[5] == '_' {
				beta, to = constFloat(b, args[3]), args[4]
			}
			return one(b.Const(window(b, constInt(b, args[0]), constBool(b, args[1]), optDType(b, to, dtype.F32), func(phase float64) float64 {
				return alpha - beta*math.Cos(2*math.Pi*phase)
			})))
		})
	}
	def(Torch, "kaiser_window(int window_length, bool periodic=True, float beta=12.0, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		beta := constFloat(b, args[2])
		return one(b.Const(window(b, constInt(b, args[0]), constBool(b, args[1]), optDType(b, args[3], dtype.F32), func(phase float64) float64 {
			r := 2*phase - 1
			return besselI0(beta*math.Sqrt(1-r*r)) / besselI0(beta)
		})))
	})
	def(Torch, "bartlett_window(int window_length, bool periodic=True, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		n, d := constInt(b, args[0]), optDType(b, args[2], dtype.F32)
		return one(b.Const(window(b, n, constBool(b, args[1]), d, func(phase float64) float64 { return 1 - math.Abs(2*phase-1) })))
	})
}

// besselI0 is the modified Bessel function of order 0, by its power series.
func besselI0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-17 && k < 1000; k++ {
		term *= x / (2 * k) * (x / (2 * k))
		sum += term
	}
	return sum
}

// window evaluates f at n phases from 0 on; the last is 1 unless the window is periodic.
func window(b *ir.Builder, n int, periodic bool, d dtype.DType, f func(phase float64) float64) *ir.Array {
	if n < 0 {
		b.Failf("window functions require a non-negative window_length, got %d", n)
	}
	needFew(b, n, "elements")
	if !d.IsFloat() {
		b.Failf("window functions expect a floating point dtype, got %s", typeName(d))
	}
	steps := n - 1
	if periodic {
		steps = n
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = 1
		if n > 1 {
			v[i] = f(float64(i) / float64(steps))
		}
	}
	return ir.FromFloats(d, []int{n}, v)
}

func oddities() {
	unary(Method|Torch, "angle", func(b *ir.Builder, x *ir.Value) *ir.Value {
		x = cast(b, x, floatOf(dt(b, x)))
		return apply(b, "where", b.Op("isnan", x), x, apply(b, "where", apply(b, "lt", x, 0.0), fillLike(b, math.Pi, x), 0.0))
	})
	unary(Method|Torch, "conj_physical", func(_ *ir.Builder, x *ir.Value) *ir.Value { return x })
	def(Method, "narrow_copy(Tensor self, int dim, int start, int length) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(call(b, "narrow", args...))
	})
	def(Method, "is_contiguous(Tensor self, *, MemoryFormat? memory_format=None) -> bool", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		rank(b, args[0])
		_, moved := strideOrder(args[0])
		return one(b.Bool(!moved))
	})
	def(Method, "new_tensor(Tensor self, any data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			d := optDType(b, args[2], dt(b, args[0]))
			return one(b.Op("detach", tensorFrom(b, args[1], b.DType(d))))
		})
}
