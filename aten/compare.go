package aten

import (
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Comparisons, logic and bits.

func init() {
	for _, c := range []struct{ name, long string }{
		{"eq", ""}, {"ne", "not_equal"}, {"lt", "less"}, {"le", "less_equal"}, {"gt", "greater"}, {"ge", "greater_equal"},
	} {
		arith(Method|Torch, c.name, primitive(c.name))
		def(Torch, c.name+".Scalar_Tensor(Scalar self, Tensor other) -> Tensor", primitive(c.name)) // torch.lt(2, x)
		if c.long != "" {
			alias(Method|Torch, c.long, c.name)
		}
	}
	for _, op := range []string{"logical_and", "logical_or", "logical_xor"} {
		def(Method|Torch, op+"(Tensor self, Tensor other) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return one(b.Op(op, operands(b, dtype.Bool, args...)...))
		})
	}
	unary(Method|Torch, "logical_not", func(b *ir.Builder, x *ir.Value) *ir.Value { return b.Op("logical_not", x) })
	bits()
	classes()
	equality()
}

func bits() {
	for _, op := range []string{"bitwise_and", "bitwise_or", "bitwise_xor"} {
		f := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			d := needBits(b, op, promote(b, args...))
			return one(b.Op(op, operands(b, d, args...)...))
		}
		arith(Method|Torch, op, f)
		def(Torch, op+".Scalar_Tensor(Scalar self, Tensor other) -> Tensor", f)
	}
	alias(Hidden|Method, "__and__", "bitwise_and")
	alias(Hidden|Method, "__or__", "bitwise_or")
	alias(Hidden|Method, "__xor__", "bitwise_xor")
	unary(Method|Torch, "bitwise_not", func(b *ir.Builder, x *ir.Value) *ir.Value {
		needBits(b, "bitwise_not", dt(b, x))
		return b.Op("bitwise_not", x)
	})
	for op, prim := range map[string]string{"bitwise_left_shift": "shl", "bitwise_right_shift": "shr"} {
		f := shift(op, prim)
		arith(Method|Torch, op, f)
		def(Torch, op+".Scalar_Tensor(Scalar self, Tensor other) -> Tensor", f)
	}
	alias(Hidden|Method, "__lshift__", "bitwise_left_shift")
	alias(Hidden|Method, "__rshift__", "bitwise_right_shift")
}

func needBits(b *ir.Builder, op string, d dtype.DType) dtype.DType {
	if d.IsFloat() {
		b.Failf("\"%s_cpu\" not implemented for '%s': expected integers or bool", op, typeName(d))
	}
	return d
}

func shift(op, prim string) expansion {
	return func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		d := needBits(b, op, promote(b, args...))
		if d == dtype.Bool {
			b.Failf("\"%s_cpu\" not implemented for 'Bool'", op)
		}
		return one(b.Op(prim, operands(b, d, args...)...))
	}
}

// classes tell what sort of number an element is.
func classes() {
	for _, op := range []string{"isnan", "isinf", "isfinite", "signbit"} {
		unary(Method|Torch, op, func(b *ir.Builder, x *ir.Value) *ir.Value { return b.Op(op, x) })
	}
	for name, inf := range map[string]float64{"isposinf": math.Inf(1), "isneginf": math.Inf(-1)} {
		unary(Method|Torch, name, func(b *ir.Builder, x *ir.Value) *ir.Value {
			return apply(b, "eq", cast(b, x, floatOf(dt(b, x))), inf)
		})
	}
	unary(Method|Torch, "isreal", func(b *ir.Builder, x *ir.Value) *ir.Value {
		return fill(b, true, dtype.Bool, shapeOf(b, x))
	})
}

func equality() {
	def(Method|Torch, "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor", isclose)
	def(Method|Torch, "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value { return one(isTrue(b, isclose(b, args)[0])) })
	def(Method|Torch, "equal(Tensor self, Tensor other) -> bool", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, y := args[0], args[1]
		if !sameInts(shapeOf(b, x), shapeOf(b, y)) {
			return one(b.Bool(false))
		}
		if dx, dy := dt(b, x), dt(b, y); dx != dy {
			b.Failf("Expected object of scalar type %s but got scalar type %s for argument 'other'", typeName(dx), typeName(dy))
		}
		return one(isTrue(b, b.Op("eq", x, y)))
	})
}

// isTrue is the bool value that says whether all elements of a bool tensor are true.
func isTrue(b *ir.Builder, x *ir.Value) *ir.Value {
	return b.Op("item", reduce(b, "all", x, allDims(b, x), false))
}

// isclose is |self - other| <= atol + rtol*|other|, equal infinities included.
func isclose(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, y := args[0], args[1]
	d := dt(b, x)
	if dy := dt(b, y); d != dy {
		b.Failf("%s did not match %s", typeName(d), typeName(dy))
	}
	rtol, atol := constFloat(b, args[2]), constFloat(b, args[3])
	if rtol < 0 || atol < 0 {
		b.Failf("rtol and atol must be greater than or equal to zero, but got %v and %v", rtol, atol)
	}
	xy := broadcast(b, x, y)
	x, y = xy[0], xy[1]
	close := b.Op("eq", x, y)
	if d.IsFloat() && constBool(b, args[4]) {
		close = b.Op("logical_or", close, b.Op("logical_and", b.Op("isnan", x), b.Op("isnan", y)))
	}
	if rtol == 0 && atol == 0 {
		return one(close)
	}
	fx, fy := cast(b, x, floatOf(d)), cast(b, y, floatOf(d))
	allowed := apply(b, "add", b.Op("abs", apply(b, "mul", fy, rtol)), atol)
	diff := b.Op("abs", b.Op("sub", fx, fy))
	near := b.Op("logical_and", b.Op("isfinite", diff), b.Op("le", diff, allowed))
	return one(b.Op("logical_or", close, near))
}
