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
		if !isNone(args[2]) || !isNone(args[3]) {
			b.Failf("cov(): fweights and aweights are not supported: scale the observations before")
		}
		return one(covariance(b, args[0], constInt(b, args[1])))
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
		x, n := args[0], optInt(b, args[1], numel(b, args[0]))
		needFew(b, n, "columns")
		d := sumType(dt(b, x))
		col := reshape(b, cast(b, x, d), []int{numel(b, x), 1})
		cols := []*ir.Value{fill(b, 1, d, shapeOf(b, col))}
		for len(cols) < n {
			cols = append(cols, b.Op("mul", cols[len(cols)-1], col))
		}
		out := sliceDim(b, concat(b, 1, cols...), 1, 0, n, 1)
		if !constBool(b, args[2]) {
			out = flip(b, out, 1)
		}
		return one(out)
	})
}

func call2(b *ir.Builder, name string, args ...*ir.Value) []*ir.Value {
	return one(call(b, name, args...))
}

// covariance is that of the rows of x, each a variable.
func covariance(b *ir.Builder, x *ir.Value, correction int) *ir.Value {
	if rank(b, x) > 2 {
		b.Failf("cov(): expected input to have two or fewer dimensions but got an input with %d dimensions", rank(b, x))
	}
	d := floatOf(dt(b, x))
	shape := shapeOf(b, x)
	single := len(shape) < 2
	n := product(shape)
	if !single {
		n = shape[1]
	}
	rows := reshape(b, cast(b, x, d), []int{product(shape) / max(n, 1), n})
	dev := apply(b, "sub", rows, apply(b, "div", reduce(b, "sum", rows, []int{1}, true), float64(n)))
	c := apply(b, "div", b.Op("dot", dev, dev, b.Int(0), b.Int(1)), float64(max(n-correction, 0)))
	if single {
		c = reshape(b, c, nil)
	}
	return c
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
	def(Torch, "bartlett_window(int window_length, bool periodic=True, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		n, d := constInt(b, args[0]), optDType(b, args[2], dtype.F32)
		return one(b.Const(window(b, n, constBool(b, args[1]), d, func(phase float64) float64 { return 1 - math.Abs(2*phase-1) })))
	})
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
