package aten

import (
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// What front ends need besides the functions that users name: the functional forms of writes (fill for fill_, copy for copy_), and
// questions about a tensor that give numbers.

func init() {
	functionalWrites()
	questions()
}

func functionalWrites() {
	base := Method | Hidden
	fillWith := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, v := args[0], args[1]
		if v.Type.IsTensor() && rank(b, v) != 0 {
			b.Failf("fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.", rank(b, v))
		}
		v = tensorArg(b, v, dt(b, x))
		if rank(b, x) == 0 {
			return one(v)
		}
		return one(b.Op("broadcast", v, shapeValue(b, x)))
	}
	def(base|Torch, "fill.Scalar(Tensor self, Scalar value) -> Tensor", fillWith)
	def(base|Torch, "fill.Tensor(Tensor self, Tensor value) -> Tensor", fillWith)
	def(base, "zero(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(fillLike(b, 0, args[0]))
	})
	def(base, "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, src := args[0], cast(b, args[1], dt(b, args[0]))
		return one(expandSource(b, src, shapeOf(b, x)))
	})
	def(base, "fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x := args[0]
		shape := shapeOf(b, x)
		if len(shape) < 2 {
			b.Failf("dimensions must larger than 1")
		}
		mask := diagonalMask(b, len(shape), 0, 1, shape[0], shape[1], 0)
		if constBool(b, args[2]) && len(shape) == 2 { // the diagonal starts anew below a tall matrix's end
			flat := reshape(b, counting(b, product(shape), dtype.I64), shape)
			mask = apply(b, "eq", apply(b, "remainder", flat, shape[1]+1), 0)
		}
		for d := 2; d < len(shape); d++ {
			if shape[d] != shape[0] || shape[1] != shape[0] {
				b.Failf("all dimensions of input must be of equal length, got %v", shape)
			}
			mask = b.Op("logical_and", broadcast(b, mask, diagonalMask(b, len(shape), 0, d, shape[0], shape[d], 0))...)
		}
		return one(b.Op("where", broadcast(b, mask, tensorArg(b, args[1], dt(b, x)), x)...))
	})
}

// expandSource broadcasts src to the shape of the tensor that it is copied into.
func expandSource(b *ir.Builder, src *ir.Value, shape []int) *ir.Value {
	if have := shapeOf(b, src); !fits(have, shape) {
		b.Failf("The size of the source tensor %v must match, or broadcast to, the size of the destination tensor %v", have, shape)
	}
	return broadcastTo(b, src, shape)
}

func questions() {
	host := func(schema, op string) {
		def(Method|Torch, schema, func(b *ir.Builder, args []*ir.Value) []*ir.Value { return one(b.Op(op, args...)) })
	}
	host("numel(Tensor self) -> int", "numel")
	host("size.int(Tensor self, int dim) -> int", "size")
	host("size(Tensor self) -> int[]", "shape")
	host("dim(Tensor self) -> int", "rank")
	host("item(Tensor self) -> Scalar", "item")
	alias(Method, "ndimension", "dim")
	alias(Method, "nelement", "numel")
	def(Method|Torch, "is_floating_point(Tensor self) -> bool", asks(func(d dtype.DType) bool { return d.IsFloat() }))
	def(Method|Torch, "is_complex(Tensor self) -> bool", asks(func(dtype.DType) bool { return false }))
	def(Method|Torch, "is_signed(Tensor self) -> bool", asks(func(d dtype.DType) bool { return d != dtype.U8 && d != dtype.Bool }))
	def(Method|Torch, "is_same_size(Tensor self, Tensor other) -> bool", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(b.Bool(sameInts(shapeOf(b, args[0]), shapeOf(b, args[1]))))
	})
	def(Method|Torch, "is_nonzero(Tensor self) -> bool", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(b.Op("item_bool", args[0]))
	})
	def(Method, "element_size(Tensor self) -> int", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(b.Int(dt(b, args[0]).Size()))
	})
}

// asks is the expansion of a question about a tensor's dtype.
func asks(f func(d dtype.DType) bool) expansion {
	return func(b *ir.Builder, args []*ir.Value) []*ir.Value { return one(b.Bool(f(dt(b, args[0])))) }
}
