package aten

import (
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Functions that combine the elements along some dims.

func init() {
	sums()
	extremes()
	truth()
	spreads()
	norms()
	medians()
	histograms()
}

// sumType is the dtype of a sum or product: i64 for integers and bools.
func sumType(d dtype.DType) dtype.DType {
	if d.IsFloat() {
		return d
	}
	return dtype.I64
}

// total converts x as a dtype argument says and reduces it with sum or prod.
func total(b *ir.Builder, op string, x *ir.Value, dims []int, keepdim bool, to *ir.Value) *ir.Value {
	x = cast(b, x, optDType(b, to, sumType(dt(b, x))))
	return addUp(b, op, x, dims, keepdim)
}

// addUp reduces x with sum or prod; bools, which have no sum, go by way of i64.
func addUp(b *ir.Builder, op string, x *ir.Value, dims []int, keepdim bool) *ir.Value {
	d := dt(b, x)
	if d == dtype.Bool {
		return cast(b, reduce(b, op, cast(b, x, dtype.I64), dims, keepdim), d)
	}
	return reduce(b, op, x, dims, keepdim)
}

func sums() {
	def(Method|Torch, "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(total(b, "sum", args[0], allDims(b, args[0]), false, args[1]))
	})
	def(Method|Torch, "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return one(total(b, "sum", args[0], reduceDims(b, args[0], args[1]), constBool(b, args[2]), args[3]))
		})
	def(Method|Torch, "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(total(b, "prod", args[0], allDims(b, args[0]), false, args[1]))
	})
	def(Method|Torch, "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return one(total(b, "prod", args[0], reduceDims(b, args[0], args[1]), constBool(b, args[2]), args[3]))
		})
	def(Method|Torch, "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(mean(b, args[0], allDims(b, args[0]), false, args[1]))
	})
	def(Method|Torch, "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return one(mean(b, args[0], reduceDims(b, args[0], args[1]), constBool(b, args[2]), args[3]))
		})
	def(Method|Torch, "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			x, dims := withoutNaN(b, args[0]), reduceDims(b, args[0], args[1])
			return one(total(b, "sum", x, dims, constBool(b, args[2]), args[3]))
		})
	def(Method|Torch, "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			x, dims, keepdim := args[0], reduceDims(b, args[0], args[1]), constBool(b, args[2])
			needFloat(b, "nanmean", x)
			sum := total(b, "sum", withoutNaN(b, x), dims, keepdim, args[3])
			count := reduce(b, "sum", cast(b, b.Op("logical_not", b.Op("isnan", x)), dt(b, sum)), dims, keepdim)
			return one(b.Op("div", sum, count))
		})
	def(Method|Torch, "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", countNonzero)
	def(Method|Torch, "count_nonzero(Tensor self, int? dim=None) -> Tensor", countNonzero)
	def(everywhere, "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(logsumexp(b, args[0], reduceDims(b, args[0], args[1]), constBool(b, args[2])))
	})
	for _, name := range []string{"trapezoid", "trapz"} {
		def(Torch, name+".x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", trapezoid(false))
		def(Torch, name+".dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", trapezoid(false))
	}
	def(Torch, "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", trapezoid(true))
	def(Torch, "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", trapezoid(true))
}

// withoutNaN is x with zeros for NaNs.
func withoutNaN(b *ir.Builder, x *ir.Value) *ir.Value {
	if !dt(b, x).IsFloat() {
		return x
	}
	return apply(b, "where", b.Op("isnan", x), 0.0, x)
}

// mean is the sum over dims divided by the number of elements; halves are added and divided in f32.
func mean(b *ir.Builder, x *ir.Value, dims []int, keepdim bool, to *ir.Value) *ir.Value {
	d := optDType(b, to, dt(b, x))
	if !d.IsFloat() {
		b.Failf("mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: %s", typeName(d))
	}
	work := d
	if d.IsHalf() {
		work = dtype.F32
	}
	x = cast(b, x, work)
	return cast(b, apply(b, "div", reduce(b, "sum", x, dims, keepdim), count(b, x, dims, work)), d)
}

// count is the number of elements that a reduction over dims combines, as a 0-d tensor.
func count(b *ir.Builder, x *ir.Value, dims []int, d dtype.DType) *ir.Value {
	n := 1
	for _, i := range dims {
		size := x.Type.Dims[i].N
		if size < 0 {
			return countAtRun(b, x, dims, d)
		}
		n *= size
	}
	return number(b, float64(n), d)
}

// countAtRun is count where a size is known only at run time.
func countAtRun(b *ir.Builder, x *ir.Value, dims []int, d dtype.DType) *ir.Value {
	n := number(b, 1.0, d)
	for _, i := range dims {
		n = b.Op("mul", n, b.Op("scalar_tensor", sizeOf(b, x, i), b.DType(d)))
	}
	return n
}

func countNonzero(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x := args[0]
	return one(reduce(b, "sum", cast(b, cast(b, x, dtype.Bool), dtype.I64), reduceDims(b, x, args[1]), false))
}

// logsumexp subtracts the maximum as a constant; where that is infinite the plain formula has the right value.
func logsumexp(b *ir.Builder, x *ir.Value, dims []int, keepdim bool) *ir.Value {
	x = cast(b, x, floatOf(dt(b, x)))
	if d := dt(b, x); d.IsHalf() {
		return cast(b, logsumexp(b, cast(b, x, dtype.F32), dims, keepdim), d)
	}
	if x.Type.Static() && numel(b, x) == 0 {
		return b.Op("log", reduce(b, "sum", b.Op("exp", x), dims, keepdim))
	}
	m := b.Op("detach", reduce(b, "amax", x, dims, true))
	m = apply(b, "where", b.Op("isinf", m), 0.0, m)
	lse := apply(b, "add", b.Op("log", reduce(b, "sum", b.Op("exp", apply(b, "sub", x, m)), dims, true)), m)
	return dropDims(b, lse, dims, keepdim)
}

// dropDims removes dims of size 1 that a reduction has kept.
func dropDims(b *ir.Builder, x *ir.Value, dims []int, keepdim bool) *ir.Value {
	if keepdim {
		return x
	}
	for i := len(dims) - 1; i >= 0; i-- {
		x = squeezeDim(b, x, dims[i])
	}
	return x
}

// trapezoid integrates by the trapezoidal rule over points y at abscissae x, or at a constant distance.
func trapezoid(running bool) expansion {
	return func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		y := args[0]
		dim := wrapDim(b, constInt(b, args[2]), rank(b, y))
		if rank(b, y) == 0 {
			b.Failf("trapezoid: expected a tensor of points with at least 1 dimension, got a 0-d tensor")
		}
		d := floatOf(dt(b, y))
		y = cast(b, y, d)
		n := shapeOf(b, y)[dim]
		if n == 0 {
			return one(reduce(b, "sum", y, []int{dim}, false))
		}
		pairs := b.Op("add", sliceDim(b, y, dim, 1, n, 1), sliceDim(b, y, dim, 0, n-1, 1))
		step := args[1]
		if step.Type.IsTensor() {
			x := cast(b, step, d)
			if rank(b, x) == 1 { // aligned with dim
				shape := ones(rank(b, y))
				shape[dim] = shapeOf(b, x)[0]
				x = reshape(b, x, shape)
			}
			xd, size := rank(b, x)-rank(b, y)+dim, 0
			if xd >= 0 {
				size = shapeOf(b, x)[xd]
			}
			if size != n {
				b.Failf("trapezoid: x must have %d values along the dimension that is integrated, its shape is %v", n, shapeOf(b, step))
			}
			step = b.Op("sub", sliceDim(b, x, xd, 1, n, 1), sliceDim(b, x, xd, 0, n-1, 1))
		}
		areas := apply(b, "mul", binary(b, "mul", pairs, step), 0.5)
		if running {
			return one(b.Op("cumsum", areas, b.Int(dim)))
		}
		return one(reduce(b, "sum", areas, []int{dim}, false))
	}
}

func extremes() {
	for op, arg := range map[string]string{"max": "argmax", "min": "argmin"} {
		prim := "a" + op
		def(Method|Torch, op+"(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			x := args[0]
			if x.Type.Static() && numel(b, x) == 0 {
				b.Failf("%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.", op)
			}
			return one(reduce(b, prim, x, allDims(b, x), false))
		})
		def(Method|Torch, op+".dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
			func(b *ir.Builder, args []*ir.Value) []*ir.Value {
				return pick(b, args[0], args[1], args[2], func(x *ir.Value, dim int) *ir.Value {
					return b.Op(arg, x, b.Int(dim), b.Bool(true))
				})
			})
		def(Method|Torch, op+".other(Tensor self, Tensor other) -> Tensor", primitive(op+"imum"))
		def(Method|Torch, prim+"(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			dims := reduceDims(b, args[0], args[1])
			needElements(b, prim, args[0], dims)
			return one(reduce(b, prim, args[0], dims, constBool(b, args[2])))
		})
		def(Method|Torch, arg+"(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", argExtreme(arg))
	}
	def(Method|Torch, "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			dims, keepdim := reduceDims(b, args[0], args[1]), constBool(b, args[2])
			needElements(b, "aminmax", args[0], dims)
			return []*ir.Value{reduce(b, "amin", args[0], dims, keepdim), reduce(b, "amax", args[0], dims, keepdim)}
		})
}

// needElements stops where a reduction without a neutral element would combine nothing.
func needElements(b *ir.Builder, fn string, x *ir.Value, dims []int) {
	for _, d := range dims {
		if x.Type.Dims[d].N == 0 {
			b.Failf("%s(): Expected reduction dim %d to have non-zero size, but the shape is %v", fn, d, x.Type.Shape())
		}
	}
}

// pick gives the elements along dim that an index function chooses, and their indices: the gradient goes to the chosen elements.
// index gives its result with the dim kept at size 1.
func pick(b *ir.Builder, x, dimArg, keepArg *ir.Value, index func(x *ir.Value, dim int) *ir.Value) []*ir.Value {
	r := rank(b, x)
	dim, keepdim := wrapDim(b, constInt(b, dimArg), r), constBool(b, keepArg)
	if r == 0 {
		return []*ir.Value{x, fill(b, 0, dtype.I64, nil)}
	}
	needElements(b, "max/min", x, []int{dim})
	i := index(x, dim)
	v := b.Op("gather", x, b.Int(dim), i)
	if !keepdim {
		v, i = squeezeDim(b, v, dim), squeezeDim(b, i, dim)
	}
	return []*ir.Value{v, i}
}

func argExtreme(arg string) expansion {
	return func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, keepdim := args[0], constBool(b, args[2])
		r := rank(b, x)
		if isNone(args[1]) {
			if numel(b, x) == 0 {
				b.Failf("%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.", arg)
			}
			i := b.Op(arg, reshape(b, x, []int{numel(b, x)}), b.Int(0), b.Bool(false))
			if keepdim {
				i = reshape(b, i, ones(r))
			}
			return one(i)
		}
		dim := wrapDim(b, constInt(b, args[1]), r)
		if r == 0 {
			return one(fill(b, 0, dtype.I64, nil))
		}
		needElements(b, arg, x, []int{dim})
		return one(b.Op(arg, x, b.Int(dim), b.Bool(keepdim)))
	}
}

func truth() {
	for _, op := range []string{"any", "all"} {
		f := func(b *ir.Builder, x *ir.Value, dims []int, keepdim bool) []*ir.Value {
			r := reduce(b, op, cast(b, x, dtype.Bool), dims, keepdim)
			if dt(b, x) == dtype.U8 {
				r = cast(b, r, dtype.U8)
			}
			return one(r)
		}
		def(Method|Torch, op+"(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return f(b, args[0], allDims(b, args[0]), false)
		})
		def(Method|Torch, op+".dim(Tensor self, int dim, bool keepdim=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return f(b, args[0], reduceDims(b, args[0], args[1]), constBool(b, args[2]))
		})
	}
}

// spreads are variance and standard deviation.
func spreads() {
	for _, fn := range []struct {
		name     string
		root     bool
		withMean bool
	}{{"var", false, false}, {"std", true, false}, {"var_mean", false, true}, {"std_mean", true, true}} {
		where, ret := Method|Torch, "Tensor"
		if fn.withMean {
			where, ret = Torch, "(Tensor, Tensor)"
		}
		f := func(b *ir.Builder, x *ir.Value, dims []int, correction int, keepdim bool) []*ir.Value {
			if !dt(b, x).IsFloat() {
				b.Failf("std and var only support floating point and complex dtypes, got %s", typeName(dt(b, x)))
			}
			v, m := variance(b, x, dims, correction, keepdim)
			if fn.root {
				v = em{b}.safeSqrt(v)
			}
			if fn.withMean {
				return []*ir.Value{cast(b, v, dt(b, x)), cast(b, m, dt(b, x))}
			}
			return one(cast(b, v, dt(b, x)))
		}
		def(where, fn.name+"(Tensor self, bool unbiased=True) -> "+ret, func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return f(b, args[0], allDims(b, args[0]), constInt(b, args[1]), false)
		})
		def(where, fn.name+".dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "+ret,
			func(b *ir.Builder, args []*ir.Value) []*ir.Value {
				return f(b, args[0], reduceDims(b, args[0], args[1]), constInt(b, args[2]), constBool(b, args[3]))
			})
		def(where, fn.name+".correction(Tensor self, int[1]? dim=None, *, int? correction=None, bool keepdim=False) -> "+ret,
			func(b *ir.Builder, args []*ir.Value) []*ir.Value {
				return f(b, args[0], reduceDims(b, args[0], args[1]), optInt(b, args[2], 1), constBool(b, args[3]))
			})
	}
}

// variance gives variance and mean over dims, in f32 for halves. The squared deviations are divided by count - correction, and by
// zero where that is negative.
func variance(b *ir.Builder, x *ir.Value, dims []int, correction int, keepdim bool) (v, m *ir.Value) {
	if dt(b, x).IsHalf() {
		x = cast(b, x, dtype.F32)
	}
	d := dt(b, x)
	n := count(b, x, dims, d)
	m = apply(b, "div", reduce(b, "sum", x, dims, true), n)
	// the gradient by way of the mean is zero; where the mean is infinite it would come out as NaN
	center := b.Op("where", b.Op("isfinite", m), m, b.Op("detach", m))
	dev := apply(b, "sub", x, center)
	squares := reduce(b, "sum", b.Op("mul", dev, dev), dims, keepdim)
	divisor := apply(b, "maximum", apply(b, "sub", n, float64(correction)), 0.0)
	return apply(b, "div", squares, divisor), dropDims(b, m, dims, keepdim)
}

func norms() {
	def(Method|Torch, "norm(Tensor self, Scalar? p=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", norm)
	def(Method|Torch, "norm.str(Tensor self, str p, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			switch p := constStr(b, args[1]); p {
			case "fro":
				return norm(b, append([]*ir.Value{args[0], b.Float(2)}, args[2:]...))
			case "nuc":
				return one(nuclearNorm(b, cast(b, args[0], optDType(b, args[4], dt(b, args[0]))), args[2], constBool(b, args[3])))
			default:
				b.Failf("norm: p = '%s' is not supported: use a number, 'fro' or 'nuc'", p)
				return nil
			}
		})
	def(Method|Torch, "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(nuclearNorm(b, args[0], b.None(), constBool(b, args[1])))
	})
	def(Method|Torch, "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(nuclearNorm(b, args[0], args[1], constBool(b, args[2])))
	})
	def(Torch, "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		v, p, dim := args[0], constInt(b, args[1]), constInt(b, args[2])
		dims := allDims(b, v)
		if dim == -1 {
			return one(vectorNorm(b, v, float64(p), dims, false))
		}
		return one(vectorNorm(b, v, float64(p), remove(dims, wrapDim(b, dim, len(dims))), true))
	})
	def(Method|Torch, "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		diff := binary(b, "sub", args[0], args[1])
		return norm(b, []*ir.Value{diff, args[2], b.None(), b.Bool(false), b.None()})
	})
}

func norm(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, p := args[0], 2.0
	if !isNone(args[1]) {
		p = constFloat(b, args[1])
	}
	x = cast(b, x, optDType(b, args[4], dt(b, x)))
	if d := dt(b, x); !d.IsFloat() {
		b.Failf("linalg.vector_norm: Expected a floating point or complex tensor as input. Got %s", typeName(d))
	}
	dims := reduceDims(b, x, args[2])
	if p < 0 || math.IsInf(p, 1) { // torch.norm, unlike torch.linalg.vector_norm, has a value where there are no elements
		for _, i := range dims {
			if shapeOf(b, x)[i] == 0 {
				return one(reduce(b, "sum", x, dims, constBool(b, args[3])))
			}
		}
	}
	return one(vectorNorm(b, x, p, dims, constBool(b, args[3])))
}

// nuclearNorm is the sum of the singular values over two dims, the only two where dims is None.
func nuclearNorm(b *ir.Builder, x, dims *ir.Value, keepdim bool) *ir.Value {
	at := []int{-2, -1}
	if given, ok := optInts(b, dims); ok {
		at = given
	} else if rank(b, x) != 2 {
		b.Failf("Expected a tensor with 2 dimensions, but got a tensor with %d dimensions instead: name two with dim", rank(b, x))
	}
	return call(b, "linalg_matrix_norm.str", x, b.Str("nuc"), b.Ints(at...), b.Bool(keepdim), b.None())
}

// vectorNorm is (sum |x|^p)^(1/p) over dims and its limits for p = 0, inf, -inf. Zeros are guarded so that the gradient of a zero
// element, or of a zero norm, is zero where it would otherwise be infinite or NaN.
func vectorNorm(b *ir.Builder, x *ir.Value, p float64, dims []int, keepdim bool) *ir.Value {
	d := dt(b, x)
	if d.IsHalf() {
		return cast(b, vectorNorm(b, cast(b, x, dtype.F32), p, dims, keepdim), d)
	}
	switch {
	case p == 2:
		return em{b}.safeSqrt(reduce(b, "sum", b.Op("mul", x, x), dims, keepdim))
	case p == 1:
		return reduce(b, "sum", b.Op("abs", x), dims, keepdim)
	case p == 0:
		return reduce(b, "sum", cast(b, apply(b, "ne", x, 0.0), d), dims, keepdim)
	case math.IsInf(p, 1):
		needElements(b, "norm", x, dims)
		return reduce(b, "amax", b.Op("abs", x), dims, keepdim)
	case math.IsInf(p, -1):
		needElements(b, "norm", x, dims)
		return reduce(b, "amin", b.Op("abs", x), dims, keepdim)
	}
	atZero := 0.0
	if p < 0 {
		atZero = math.Inf(1)
	}
	sum := reduce(b, "sum", guardedPow(b, b.Op("abs", x), p, atZero), dims, keepdim)
	return guardedPow(b, sum, 1/p, atZero)
}

// guardedPow is x^p for x >= 0, with a constant at 0.
func guardedPow(b *ir.Builder, x *ir.Value, p, atZero float64) *ir.Value {
	zero := apply(b, "eq", x, 0.0)
	safe := apply(b, "where", zero, 1.0, x)
	y := smallPower(b, safe, p)
	if y == nil {
		y = apply(b, "pow", safe, p)
	}
	return apply(b, "where", zero, atZero, y)
}

// medians are order statistics.
func medians() {
	for name, skipNaN := range map[string]bool{"median": false, "nanmedian": true} {
		def(Method|Torch, name+"(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			x := reshape(b, args[0], []int{numel(b, args[0])})
			d := dt(b, x)
			if d == dtype.Bool {
				b.Failf("\"median_cpu\" not implemented for 'Bool'")
			}
			if numel(b, x) == 0 {
				return one(fill(b, math.NaN(), d, nil))
			}
			v := b.Op("gather", x, b.Int(0), medianIndex(b, x, 0, skipNaN))
			if !d.IsFloat() {
				return one(squeezeDim(b, v, 0))
			}
			// the maximum of the elements equal to the median: its gradient goes to them in equal parts
			v = b.Op("detach", v)
			equal := b.Op("logical_or", apply(b, "eq", x, v), apply(b, "logical_and", b.Op("isnan", x), b.Op("isnan", v)))
			return one(reduce(b, "amax", apply(b, "where", equal, x, math.Inf(-1)), []int{0}, false))
		})
		def(Method|Torch, name+".dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
			func(b *ir.Builder, args []*ir.Value) []*ir.Value {
				return pick(b, args[0], args[1], args[2], func(x *ir.Value, dim int) *ir.Value { return medianIndex(b, x, dim, skipNaN) })
			})
	}
	def(Method|Torch, "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return pick(b, args[0], args[1], args[2], func(x *ir.Value, dim int) *ir.Value { return modeIndex(b, x, dim) })
		})
	for name, skipNaN := range map[string]bool{"quantile": false, "nanquantile": true} {
		for _, q := range []string{".scalar(Tensor self, float q", "(Tensor self, Tensor q"} {
			def(Method|Torch, name+q+", int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
				func(b *ir.Builder, args []*ir.Value) []*ir.Value { return one(quantile(b, args, skipNaN)) })
		}
	}
}

// sorted gives values and indices in ascending order, NaN last.
func sorted(b *ir.Builder, x *ir.Value, dim int) (values, indices *ir.Value) {
	r := b.Emit("sort", x, b.Int(dim), b.Bool(false), b.Bool(true))
	return r[0], r[1]
}

// medianIndex is the index of the lower median along dim; of a NaN where there is one, unless NaNs are skipped.
func medianIndex(b *ir.Builder, x *ir.Value, dim int, skipNaN bool) *ir.Value {
	n := shapeOf(b, x)[dim]
	_, order := sorted(b, x, dim)
	nans := reduce(b, "sum", cast(b, b.Op("isnan", x), dtype.I64), []int{dim}, true)
	var at *ir.Value
	if skipNaN {
		at = apply(b, "floor_div", apply(b, "maximum", apply(b, "sub", n-1, nans), 0), 2)
	} else {
		at = apply(b, "where", apply(b, "gt", nans, 0), apply(b, "sub", n, nans), fillLike(b, (n-1)/2, nans))
	}
	return b.Op("gather", order, b.Int(dim), at)
}

// modeIndex is the last index of the smallest of the most frequent values along dim.
func modeIndex(b *ir.Builder, x *ir.Value, dim int) *ir.Value {
	n := shapeOf(b, x)[dim]
	last := rank(b, x)
	row := moveDim(b, x, dim, last-1)
	pairs := broadcast(b, unsqueeze(b, row, last), unsqueeze(b, row, last-1))
	count := reduce(b, "sum", cast(b, b.Op("eq", pairs[0], pairs[1]), dtype.I64), []int{last}, false)
	frequent := apply(b, "eq", count, reduce(b, "amax", count, []int{last - 1}, true))
	_, order := sorted(b, row, last-1)
	// ranks[i] is the place of element i in sorted order, so equal values lie together: the first frequent place is the smallest value
	_, ranks := sorted(b, order, last-1)
	place := reduce(b, "amin", apply(b, "where", frequent, ranks, n), []int{last - 1}, true)
	smallest := b.Op("gather", row, b.Int(last-1), b.Op("gather", order, b.Int(last-1), place))
	is := apply(b, "eq", row, smallest)
	at := apply(b, "where", is, counting(b, n, dtype.I64), fill(b, -1, dtype.I64, nil))
	return moveDim(b, reduce(b, "amax", at, []int{last - 1}, true), last-1, dim)
}

func quantile(b *ir.Builder, args []*ir.Value, skipNaN bool) *ir.Value {
	x, q, keepdim, mode := args[0], args[1], constBool(b, args[3]), constStr(b, args[4])
	d := needFloat(b, "quantile", x)
	if c, ok := q.Const(); ok && isNumber(q) {
		if f := constFloat(b, q); f < 0 || f > 1 {
			b.Failf("quantile() q must be in the range [0, 1] but got %v", c)
		}
	}
	var dims []int
	dim := 0
	r := rank(b, x)
	if isNone(args[2]) {
		dims = allDims(b, x)
		x = reshape(b, x, []int{numel(b, x)})
	} else {
		dim = wrapDim(b, constInt(b, args[2]), r)
		dims = []int{dim}
	}
	outShape := []int{}
	for i, s := range shapeOf(b, args[0]) {
		switch isReduced := contains(dims, i); {
		case !isReduced:
			outShape = append(outShape, s)
		case keepdim:
			outShape = append(outShape, 1)
		}
	}
	if rank(b, x) == 0 {
		x = reshape(b, x, []int{1})
	}
	row := moveDim(b, x, dim, rank(b, x)-1)
	last := rank(b, row) - 1
	n := shapeOf(b, row)[last]
	if n == 0 {
		b.Failf("quantile() input tensor must be non-empty")
	}
	values, _ := sorted(b, row, last)
	qs := tensorArg(b, q, d)
	qShape := shapeOf(b, qs)
	if len(qShape) > 1 {
		b.Failf("quantile() q must be a scalar or 1D tensor, got shape %v", qShape)
	}
	m := numel(b, qs)
	qs = reshape(b, qs, []int{m})
	nans := reduce(b, "sum", cast(b, b.Op("isnan", row), d), []int{last}, true)
	valid := fillLike(b, float64(n), nans)
	if skipNaN {
		valid = b.Op("sub", valid, nans)
	}
	ranks := apply(b, "maximum", apply(b, "mul", qs, apply(b, "sub", valid, 1.0)), 0.0)
	lo, hi := b.Op("floor", ranks), b.Op("ceil", ranks)
	at := func(i *ir.Value) *ir.Value { return b.Op("gather", values, b.Int(last), cast(b, i, dtype.I64)) }
	var out *ir.Value
	switch mode {
	case "linear":
		out = b.Op("lerp", at(lo), at(hi), b.Op("sub", ranks, lo))
	case "lower":
		out = at(lo)
	case "higher":
		out = at(hi)
	case "midpoint":
		out = apply(b, "mul", b.Op("add", at(lo), at(hi)), 0.5)
	case "nearest":
		out = at(b.Op("round", ranks))
	default:
		b.Failf("quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got %s", mode)
	}
	if !skipNaN {
		out = apply(b, "where", apply(b, "gt", nans, 0.0), fill(b, math.NaN(), d, nil), out)
	}
	out = moveDim(b, out, last, 0)
	return reshape(b, out, append(append([]int{}, qShape...), outShape...))
}

func contains(s []int, v int) bool {
	for _, x := range s {
		if x == v {
			return true
		}
	}
	return false
}

func histograms() {
	def(Method|Torch, "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", bincount)
	def(Method|Torch, "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", histc)
}

// bincount has as many elements as the largest value demands: that is known only at run time.
func bincount(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, minlength := args[0], constInt(b, args[2])
	if rank(b, x) != 1 || dt(b, x).IsFloat() || dt(b, x) == dtype.Bool {
		b.Failf("bincount only supports 1-d non-negative integral inputs, got %s", x.Type)
	}
	if minlength < 0 {
		b.Failf("minlength should be >= 0, got %d", minlength)
	}
	d := dtype.I64
	x = cast(b, x, dtype.I64)
	weights := fillLike(b, 1, x)
	if !isNone(args[1]) {
		weights = args[1]
		if d = dt(b, weights); d != dtype.F32 {
			d = dtype.F64
		}
		weights = cast(b, weights, d)
		if !sameInts(shapeOf(b, weights), shapeOf(b, x)) {
			b.Failf("weights should be 1-d and have the same length as input, got shapes %v and %v", shapeOf(b, weights), shapeOf(b, x))
		}
	}
	if numel(b, x) == 0 {
		return one(fill(b, 0, d, []int{minlength}))
	}
	largest := apply(b, "maximum", reduce(b, "amax", x, []int{0}, false), minlength-1)
	n := b.Op("py_add", b.Op("item_int", largest), b.Int(1))
	zeros := b.Op("full", b.List(n), b.Int(0), b.DType(d))
	return one(b.Op("scatter_reduce", zeros, b.Int(0), x, weights, b.Str("add"), b.Bool(true)))
}

func histc(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, bins := args[0], constInt(b, args[1])
	d := needFloat(b, "histc", x)
	if bins <= 0 {
		b.Failf("bins must be > 0, got %d", bins)
	}
	n := numel(b, x)
	x = b.Op("detach", reshape(b, x, []int{n}))
	if n == 0 {
		return one(fill(b, 0, d, []int{bins}))
	}
	lo, hi := tensorArg(b, args[2], d), tensorArg(b, args[3], d)
	same := b.Op("eq", lo, hi)
	lo = b.Op("where", same, reduce(b, "amin", x, []int{0}, false), lo)
	hi = b.Op("where", same, reduce(b, "amax", x, []int{0}, false), hi)
	flat := b.Op("eq", lo, hi)
	lo = b.Op("where", flat, apply(b, "sub", lo, 1.0), lo)
	hi = b.Op("where", flat, apply(b, "add", hi, 1.0), hi)
	inside := apply(b, "logical_and", apply(b, "ge", x, lo), apply(b, "le", x, hi))
	pos := apply(b, "div", apply(b, "mul", apply(b, "sub", x, lo), float64(bins)), b.Op("sub", hi, lo))
	pos = apply(b, "where", inside, pos, 0.0)
	bin := apply(b, "minimum", cast(b, pos, dtype.I64), bins-1)
	zeros := fill(b, 0, d, []int{bins})
	return one(b.Op("scatter_reduce", zeros, b.Int(0), bin, cast(b, inside, d), b.Str("add"), b.Bool(true)))
}
