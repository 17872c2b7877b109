package aten

import (
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// em writes expressions: the arithmetic of an expansion by short names. Operands may be tensors or numbers; dtypes are promoted
// and shapes broadcast as PyTorch does.
type em struct{ *ir.Builder }

func (e em) add(x, y *ir.Value) *ir.Value  { return binary(e.Builder, "add", x, y) }
func (e em) sub(x, y *ir.Value) *ir.Value  { return binary(e.Builder, "sub", x, y) }
func (e em) mul(x, y *ir.Value) *ir.Value  { return binary(e.Builder, "mul", x, y) }
func (e em) div(x, y *ir.Value) *ir.Value  { return binary(e.Builder, "div", x, y) }
func (e em) maxi(x, y *ir.Value) *ir.Value { return binary(e.Builder, "maximum", x, y) }
func (e em) mini(x, y *ir.Value) *ir.Value { return binary(e.Builder, "minimum", x, y) }
func (e em) lt(x, y *ir.Value) *ir.Value   { return binary(e.Builder, "lt", x, y) }
func (e em) le(x, y *ir.Value) *ir.Value   { return binary(e.Builder, "le", x, y) }
func (e em) gt(x, y *ir.Value) *ir.Value   { return binary(e.Builder, "gt", x, y) }
func (e em) ge(x, y *ir.Value) *ir.Value   { return binary(e.Builder, "ge", x, y) }
func (e em) eq(x, y *ir.Value) *ir.Value   { return binary(e.Builder, "eq", x, y) }
func (e em) ne(x, y *ir.Value) *ir.Value   { return binary(e.Builder, "ne", x, y) }
func (e em) pow(x, y *ir.Value) *ir.Value  { return binary(e.Builder, "pow", x, y) }
func (e em) neg(x *ir.Value) *ir.Value     { return e.Op("neg", x) }
func (e em) exp(x *ir.Value) *ir.Value     { return e.Op("exp", x) }
func (e em) log(x *ir.Value) *ir.Value     { return e.Op("log", x) }
func (e em) abs(x *ir.Value) *ir.Value     { return e.Op("abs", x) }
func (e em) sqrt(x *ir.Value) *ir.Value    { return e.Op("sqrt", x) }
func (e em) and(x, y *ir.Value) *ir.Value  { return binary(e.Builder, "logical_and", x, y) }
func (e em) sqr(x *ir.Value) *ir.Value     { return e.Op("mul", x, x) }

// addF, subF, mulF and divF combine a tensor with a number.
func (e em) addF(x *ir.Value, f float64) *ir.Value { return e.add(x, e.Float(f)) }
func (e em) mulF(x *ir.Value, f float64) *ir.Value { return e.mul(x, e.Float(f)) }
func (e em) divF(x *ir.Value, f float64) *ir.Value { return e.div(x, e.Float(f)) }

// where chooses elementwise; x and y are promoted to one dtype, all three broadcast.
func (e em) where(c, x, y *ir.Value) *ir.Value {
	d := promote(e.Builder, x, y)
	vs := broadcast(e.Builder, c, tensorArg(e.Builder, x, d), tensorArg(e.Builder, y, d))
	return e.Op("where", vs[0], vs[1], vs[2])
}

// sum, amax and the other reductions over some dims, which are already normalised.
func (e em) sum(x *ir.Value, keep bool, dims ...int) *ir.Value {
	return e.Op("sum", x, e.Ints(dims...), e.Bool(keep))
}
func (e em) amax(x *ir.Value, keep bool, dims ...int) *ir.Value {
	return e.Op("amax", x, e.Ints(dims...), e.Bool(keep))
}

// mean divides the sum by the number of elements summed (NaN where that is zero).
func (e em) mean(x *ir.Value, keep bool, dims ...int) *ir.Value {
	shape, n := e.NeedShape(x), 1
	for _, d := range dims {
		n *= shape[d]
	}
	return e.divF(e.sum(x, keep, dims...), float64(n))
}

func (e em) permute(x *ir.Value, dims ...int) *ir.Value {
	for i, d := range dims {
		if i != d {
			return e.Op("permute", x, e.Ints(dims...))
		}
	}
	return x
}

func (e em) reshape(x *ir.Value, shape ...int) *ir.Value {
	if sameInts(x.Type.Shape(), shape) && x.Type.Ranked {
		return x
	}
	return e.Op("reshape", x, e.Ints(shape...))
}

// swap exchanges two dims.
func (e em) swap(x *ir.Value, i, j int) *ir.Value {
	p := span(0, rank(e.Builder, x))
	p[i], p[j] = p[j], p[i]
	return e.permute(x, p...)
}

// moveLast puts dim d last.
func (e em) moveLast(x *ir.Value, d int) *ir.Value {
	r := rank(e.Builder, x)
	p := append(span(0, d), span(d+1, r)...)
	return e.permute(x, append(p, d)...)
}

// insert adds dims of size 1 so that they are at the given places of the result, in ascending order.
func (e em) insert(x *ir.Value, at ...int) *ir.Value {
	shape := append([]int{}, e.NeedShape(x)...)
	for _, d := range at {
		shape = append(shape[:d], append([]int{1}, shape[d:]...)...)
	}
	return e.reshape(x, shape...)
}

// slice takes [start, stop) of a dim.
func (e em) slice(x *ir.Value, dim, start, stop int) *ir.Value {
	if s := x.Type.Shape(); s != nil && start == 0 && stop == s[dim] {
		return x
	}
	return e.Op("slice", x, e.Int(dim), e.Int(start), e.Int(stop), e.Int(1))
}

func (e em) concat(dim int, xs ...*ir.Value) *ir.Value {
	if len(xs) == 1 {
		return xs[0]
	}
	return e.Op("concat", e.List(xs...), e.Int(dim))
}

// dot contracts the last k dims of x and y, with the first nb dims as batch.
func (e em) dot(x, y *ir.Value, nb, k int) *ir.Value {
	return e.Op("dot", x, y, e.Int(nb), e.Int(k))
}

// pick selects rows along a dim: index, an i64 tensor of rank 1 without negative entries.
func (e em) pick(x *ir.Value, dim int, index *ir.Value) *ir.Value {
	r := rank(e.Builder, x)
	front := append(append([]int{dim}, span(0, dim)...), span(dim+1, r)...)
	back := append(append(span(1, dim+1), 0), span(dim+1, r)...)
	return e.permute(e.Op("take", e.permute(x, front...), index), back...)
}

// detach cuts the gradient.
func (e em) detach(x *ir.Value) *ir.Value { return e.Op("detach", x) }

// safeSqrt is the square root whose gradient at zero is zero.
func (e em) safeSqrt(x *ir.Value) *ir.Value {
	zero := e.eq(x, e.Float(0))
	return e.where(zero, e.Float(0), e.sqrt(e.where(zero, e.Float(1), x)))
}

// zeros and full make tensors of known shape.
func (e em) zeros(d dtype.DType, shape ...int) *ir.Value { return e.full(d, 0, shape...) }
func (e em) full(d dtype.DType, v float64, shape ...int) *ir.Value {
	return e.Op("full", e.Ints(shape...), e.Float(v), e.DType(d))
}

// eye is the identity matrix.
func (e em) eye(n int, d dtype.DType) *ir.Value {
	i := e.Op("iota", e.Int(n), e.DType(dtype.I64))
	return cast(e.Builder, e.eq(e.reshape(i, n, 1), e.reshape(i, 1, n)), d)
}

// intTensor is a literal i64 tensor.
func (e em) intTensor(shape []int, v []int) *ir.Value {
	a := ir.NewArray(dtype.I64, shape...)
	for i, x := range v {
		a.SetInt(i, int64(x))
	}
	return e.Const(a)
}

// floatTensor is a literal tensor of a float dtype.
func (e em) floatTensor(d dtype.DType, shape []int, v []float64) *ir.Value {
	return e.Const(ir.FromFloats(d, shape, v))
}

// needFloat stops unless every operand is a floating-point tensor.
func (e em) needFloat(name string, xs ...*ir.Value) {
	for _, x := range xs {
		if d := e.NeedDType(x); !d.IsFloat() {
			e.Failf("%q not implemented for '%s': expected a floating point dtype, got %s; convert the tensor with .float()", name, typeName(d), d.Torch())
		}
	}
}

// needSame stops unless the dtypes are equal.
func (e em) needSame(xs ...*ir.Value) {
	for _, x := range xs[1:] {
		if want, got := e.NeedDType(xs[0]), e.NeedDType(x); want != got {
			e.Failf("expected scalar type %s but found %s: the tensors must have the same dtype", typeName(want), typeName(got))
		}
	}
}

// lowest is the smallest value of a dtype: minus infinity for floats.
func lowest(d dtype.DType) ir.Datum {
	switch d {
	case dtype.I8:
		return int64(math.MinInt8)
	case dtype.I16:
		return int64(math.MinInt16)
	case dtype.I32:
		return int64(math.MinInt32)
	case dtype.I64:
		return int64(math.MinInt64)
	case dtype.U8:
		return int64(0)
	case dtype.Bool:
		return false
	}
	return math.Inf(-1)
}

// span is lo, lo+1, …, hi-1.
func span(lo, hi int) []int {
	out := make([]int, 0, max(0, hi-lo))
	for i := lo; i < hi; i++ {
		out = append(out, i)
	}
	return out
}

// catInts joins int slices into a new one.
func catInts(parts ...[]int) []int {
	out := []int{}
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// isConst reports whether v is the constant number f.
func isConst(v *ir.Value, f float64) bool {
	d, ok := v.Const()
	if !ok {
		return false
	}
	switch c := d.(type) {
	case int64:
		return float64(c) == f
	case float64:
		return c == f
	case bool:
		return c == (f == 1) && (f == 0 || f == 1)
	}
	return false
}

// expand1 adapts an expansion with one result.
func expand1(f func(e em, a []*ir.Value) *ir.Value) expansion {
	return func(b *ir.Builder, a []*ir.Value) []*ir.Value { return one(f(em{b}, a)) }
}
