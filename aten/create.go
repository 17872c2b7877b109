package aten

import (
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Functions that make tensors, and those that convert between dtypes.

// tensorOptions are the keyword arguments that every function that makes a tensor takes.
const tensorOptions = "*, ScalarType? dtype=None, str? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False"

// likeOptions are those of functions that make a tensor like another.
const likeOptions = tensorOptions + ", MemoryFormat? memory_format=None"

func init() {
	fills()
	ranges()
	literals()
	casts()
}

func sizes(b *ir.Builder, v *ir.Value) []int {
	s := constInts(b, v)
	for _, n := range s {
		if n < 0 {
			b.Failf("Trying to create tensor with negative dimension %d: %v", n, s)
		}
	}
	return s
}

// filled is a tensor whose elements are one number, which may be known only at run time.
func filled(b *ir.Builder, v *ir.Value, d dtype.DType, shape *ir.Value) []*ir.Value {
	return one(b.Op("full", shape, v, b.DType(d)))
}

func fills() {
	for name, v := range map[string]int64{"zeros": 0, "ones": 1, "empty": 0} {
		def(Torch, name+"(int[] size, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return one(fill(b, v, optDType(b, args[1], dtype.F32), sizes(b, args[0])))
		})
		def(Torch, name+"_like(Tensor self, "+likeOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return filled(b, b.Const(v), optDType(b, args[1], dt(b, args[0])), shapeValue(b, args[0]))
		})
		def(Method, "new_"+name+"(Tensor self, int[] size, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return one(fill(b, v, optDType(b, args[2], dt(b, args[0])), sizes(b, args[1])))
		})
	}
	def(Torch, "full(int[] size, Scalar fill_value, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		d := optDType(b, args[2], defaultDType(b, args[1]))
		return filled(b, args[1], d, b.Ints(sizes(b, args[0])...))
	})
	def(Torch, "full_like(Tensor self, Scalar fill_value, "+likeOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return filled(b, args[1], optDType(b, args[2], dt(b, args[0])), shapeValue(b, args[0]))
	})
	def(Method, "new_full(Tensor self, int[] size, Scalar fill_value, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return filled(b, args[2], optDType(b, args[3], dt(b, args[0])), b.Ints(sizes(b, args[1])...))
	})
	def(Torch, "scalar_tensor(Scalar s, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(tensorArg(b, args[0], optDType(b, args[1], dtype.F32)))
	})
	eye := func(b *ir.Builder, n, m int, to *ir.Value) []*ir.Value {
		if n < 0 || m < 0 {
			b.Failf("n and m must be greater or equal to 0, got %d and %d", n, m)
		}
		return one(cast(b, diagonalMask(b, 2, 0, 1, n, m, 0), optDType(b, to, dtype.F32)))
	}
	def(Torch, "eye(int n, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return eye(b, constInt(b, args[0]), constInt(b, args[0]), args[1])
	})
	def(Torch, "eye.m(int n, int m, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return eye(b, constInt(b, args[0]), constInt(b, args[1]), args[2])
	})
}

// defaultDType is the dtype that a number becomes where none is asked for.
func defaultDType(b *ir.Builder, v *ir.Value) dtype.DType {
	if d := operandOf(b, v).DType; !d.IsFloat() || v.Type.IsTensor() {
		return d
	}
	return dtype.F32
}

func ranges() {
	def(Torch, "arange(Scalar end, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(arange(b, b.Int(0), args[0], b.Int(1), args[1]))
	})
	def(Torch, "arange.start(Scalar start, Scalar end, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(arange(b, args[0], args[1], b.Int(1), args[2]))
	})
	def(Torch, "arange.start_step(Scalar start, Scalar end, Scalar step=1, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(arange(b, args[0], args[1], args[2], args[3]))
	})
	def(Torch, "range(Scalar start, Scalar end, Scalar step=1, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		start, end, step := constFloat(b, args[0]), constFloat(b, args[1]), constFloat(b, args[2])
		checkRange(b, start, end, step)
		n := int(math.Floor((end-start)/step)) + 1
		return one(progression(b, start, step, n, optDType(b, args[3], dtype.F32)))
	})
	def(Torch, "linspace(Scalar start, Scalar end, int steps, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(linspace(b, args[0], args[1], args[2], optDType(b, args[3], dtype.F32)))
	})
	def(Torch, "logspace(Scalar start, Scalar end, int steps, float base=10.0, "+tensorOptions+") -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		d := optDType(b, args[4], dtype.F32)
		exponents := linspace(b, args[0], args[1], args[2], dtype.F64)
		return one(cast(b, apply(b, "pow", constFloat(b, args[3]), exponents), d))
	})
}

func checkRange(b *ir.Builder, start, end, step float64) {
	switch {
	case step == 0:
		b.Failf("step must be nonzero")
	case math.IsNaN(start+end) || math.IsInf(start, 0) || math.IsInf(end, 0):
		b.Failf("unsupported range: %v -> %v", start, end)
	case step > 0 && end < start || step < 0 && end > start:
		b.Failf("upper bound and larger bound inconsistent with step sign: range from %v to %v by %v", start, end, step)
	case math.Abs((end-start)/step) > ir.MaxElems:
		b.Failf("invalid size, possible overflow: range from %v to %v by %v", start, end, step)
	}
}

func arange(b *ir.Builder, start, end, step, to *ir.Value) *ir.Value {
	d := dtype.I64
	for _, v := range []*ir.Value{start, end, step} {
		if operandOf(b, v).DType.IsFloat() {
			d = dtype.F32
		}
	}
	d = optDType(b, to, d)
	lo, hi, by := constFloat(b, start), constFloat(b, end), constFloat(b, step)
	checkRange(b, lo, hi, by)
	if d.IsInt() { // bounds are converted first
		lo, hi, by = math.Trunc(lo), math.Trunc(hi), math.Trunc(by)
		checkRange(b, lo, hi, by)
	}
	return progression(b, lo, by, int(math.Ceil((hi-lo)/by)), d)
}

// progression is start, start+step, … with n elements, computed in f64 for floats.
func progression(b *ir.Builder, start, step float64, n int, d dtype.DType) *ir.Value {
	work := dtype.F64
	if !d.IsFloat() {
		work = dtype.I64
	}
	x := counting(b, n, work)
	if step != 1 {
		x = b.Op("mul", x, fill(b, step, work, []int{n}))
	}
	if start != 0 {
		x = b.Op("add", x, fill(b, start, work, []int{n}))
	}
	return cast(b, x, d)
}

// linspace counts from the nearer end, so that both ends are exact.
func linspace(b *ir.Builder, startArg, endArg, stepsArg *ir.Value, d dtype.DType) *ir.Value {
	start, end, n := constFloat(b, startArg), constFloat(b, endArg), constInt(b, stepsArg)
	if n < 0 {
		b.Failf("number of steps must be non-negative, got %d", n)
	}
	if n <= 1 {
		return fill(b, start, d, []int{n})
	}
	step := (end - start) / float64(n-1)
	i := counting(b, n, dtype.F64)
	up := apply(b, "add", apply(b, "mul", i, step), start)
	down := apply(b, "sub", end, apply(b, "mul", apply(b, "sub", float64(n-1), i), step))
	return cast(b, b.Op("where", apply(b, "lt", i, float64(n/2)), up, down), d)
}

// literals are tensors written out in a program.
func literals() {
	def(Hidden|Torch, "tensor(any data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(b.Op("detach", tensorFrom(b, args[0], args[1])))
	})
	def(Hidden|Torch, "as_tensor(any data, *, ScalarType? dtype=None, Device? device=None) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(tensorFrom(b, args[0], args[1]))
	}, mayView)
}

// tensorFrom makes a tensor of a number, a tensor, or nested lists of numbers.
func tensorFrom(b *ir.Builder, v, to *ir.Value) *ir.Value {
	switch v.Type.Kind {
	case ir.KTensor:
		return cast(b, v, optDType(b, to, dt(b, v)))
	case ir.KInt, ir.KFloat, ir.KBool:
		return tensorArg(b, v, optDType(b, to, defaultDType(b, v)))
	}
	if d, ok := v.Const(); ok {
		return literal(b, d, to)
	}
	elems := listElems(b, v)
	parts := make([]*ir.Value, len(elems))
	d := dtype.Invalid
	for i, e := range elems {
		parts[i] = tensorFrom(b, e, to)
		d = dtype.Promote(d, dt(b, parts[i]))
	}
	for i, p := range parts {
		parts[i] = cast(b, p, d)
		if !sameInts(shapeOf(b, p), shapeOf(b, parts[0])) {
			b.Failf("expected sequence of equal lengths: elements 0 and %d have shapes %v and %v", i, shapeOf(b, parts[0]), shapeOf(b, p))
		}
	}
	return stack(b, parts, 0)
}

// literal makes a constant tensor of nested lists.
func literal(b *ir.Builder, d ir.Datum, to *ir.Value) *ir.Value {
	shape := []int{}
	var leaves []ir.Datum
	flattenLiteral(b, d, 0, &shape, &leaves)
	natural := dtype.Invalid
	for _, x := range leaves {
		natural = dtype.Promote(natural, literalDType(b, x))
	}
	if natural == dtype.Invalid {
		natural = dtype.F32
	}
	a := ir.NewArray(optDType(b, to, natural), shape...)
	for i, x := range leaves {
		switch x := x.(type) {
		case int64:
			a.SetInt(i, x)
		case float64:
			a.SetFloat(i, x)
		case bool:
			if x {
				a.SetInt(i, 1)
			}
		case *ir.Array:
			a.SetFloat(i, x.Float(x.Offset))
		}
	}
	return b.Const(a)
}

func literalDType(b *ir.Builder, d ir.Datum) dtype.DType {
	switch d := d.(type) {
	case int64:
		return dtype.I64
	case float64:
		return dtype.F32
	case bool:
		return dtype.Bool
	case *ir.Array:
		return d.DType
	}
	b.Failf("a tensor can be made of numbers only, got %s", ir.TypeOf(d))
	return dtype.Invalid
}

// flattenLiteral collects the leaves of nested lists, which must all have the lengths in shape.
func flattenLiteral(b *ir.Builder, d ir.Datum, depth int, shape *[]int, leaves *[]ir.Datum) {
	l, isList := d.(ir.List)
	if t, ok := d.(ir.Tuple); ok {
		l, isList = ir.NewList(t...), true
	}
	if !isList {
		if depth != len(*shape) {
			b.Failf("expected sequence of length %d at dim %d (got a number)", (*shape)[depth], depth)
		}
		*leaves = append(*leaves, d)
		return
	}
	if depth == len(*shape) {
		if len(*leaves) > 0 {
			b.Failf("a number and a list stand next to each other at dim %d", depth)
		}
		*shape = append(*shape, l.Len())
	} else if n := (*shape)[depth]; n != l.Len() {
		b.Failf("expected sequence of length %d at dim %d (got %d)", n, depth, l.Len())
	}
	for _, e := range l.Elems() {
		flattenLiteral(b, e, depth+1, shape, leaves)
	}
}

func casts() {
	to := func(b *ir.Builder, x, d *ir.Value) []*ir.Value { return one(cast(b, x, optDType(b, d, dt(b, x)))) }
	const copying = ", bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor"
	def(Method, "to.dtype(Tensor self, ScalarType dtype"+copying, func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return to(b, args[0], args[1])
	}, mayView)
	def(Method, "to.other(Tensor self, Tensor other"+copying, func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(cast(b, args[0], dt(b, args[1])))
	}, mayView)
	def(Method, "to.device(Tensor self, Device? device=None, ScalarType? dtype=None"+copying, func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return to(b, args[0], args[2])
	}, mayView)
	def(Method, "type_as(Tensor self, Tensor other) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(cast(b, args[0], dt(b, args[1])))
	}, mayView)
	def(Method, "type(Tensor self, ScalarType dtype, bool non_blocking=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return to(b, args[0], args[1])
	}, mayView)
	for name, d := range map[string]dtype.DType{
		"float": dtype.F32, "double": dtype.F64, "half": dtype.F16, "bfloat16": dtype.BF16, "long": dtype.I64, "int": dtype.I32,
		"short": dtype.I16, "char": dtype.I8, "byte": dtype.U8, "bool": dtype.Bool,
	} {
		def(Method, name+"(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return one(cast(b, args[0], d))
		}, mayView)
	}
	for _, name := range []string{"cpu", "pin_memory"} {
		def(Method, name+"(Tensor self) -> Tensor", first, mayView)
	}
	def(Torch, "result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType", resultType)
	def(Torch, "result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType", resultType)
	def(Torch, "result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType", resultType)
	def(Torch, "can_cast(ScalarType from, ScalarType to) -> bool", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(b.Bool(category(constDType(b, args[0])) <= category(constDType(b, args[1]))))
	})
	def(Torch, "promote_types(ScalarType type1, ScalarType type2) -> ScalarType", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(b.DType(dtype.Promote(constDType(b, args[0]), constDType(b, args[1]))))
	})
}

func resultType(b *ir.Builder, args []*ir.Value) []*ir.Value {
	return one(b.DType(promote(b, args...)))
}
