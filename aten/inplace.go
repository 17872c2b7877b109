package aten

import (
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// What front ends emit to turn in-place writes into values.

func init() {
	// write_result is what x holds after x.op_(…), where result is x.op(…): of x's dtype and shape, or an error.
	def(Hidden, "write_result(Tensor self, Tensor result) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, r := args[0], args[1]
		if category(dt(b, r)) > category(dt(b, x)) {
			b.Failf("result type %s can't be cast to the desired output type %s", typeName(dt(b, r)), typeName(dt(b, x)))
		}
		if want, got := shapeOf(b, x), shapeOf(b, r); !sameInts(want, got) {
			b.Failf("output with shape %v doesn't match the broadcast shape %v", want, got)
		}
		return one(cast(b, r, dt(b, x)))
	})
	// write_index numbers the elements of x; the numbers go through the same views as x to tell where a view's elements are.
	def(Hidden, "write_index(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		shape := shapeOf(b, args[0])
		return one(reshape(b, counting(b, product(shape), dtype.I64), shape))
	})
	// write_at is x with the elements that index numbers replaced by those of src; the last of several for one element wins. With checked,
	// an index that repeats elements along a dim is refused.
	def(Hidden, "write_at(Tensor self, Tensor index, Tensor src, bool checked=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x := args[0]
		n := numel(b, args[1])
		if constBool(b, args[3]) {
			args[1] = b.Op("no_overlap", args[1])
		}
		flat := reshape(b, x, []int{numel(b, x)})
		src := reshape(b, cast(b, args[2], dt(b, x)), []int{n})
		out := Lookup("scatter.src").Expand(b, []*ir.Value{flat, b.Int(0), reshape(b, args[1], []int{n}), src})
		return one(reshape(b, out[0], shapeOf(b, x)))
	})
}

// category orders dtypes as in-place casts see them: bool, integers, floats.
func category(d dtype.DType) int {
	switch {
	case d == dtype.Bool:
		return 0
	case d.IsInt():
		return 1
	}
	return 2
}
