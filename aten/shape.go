package aten

import (
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Functions that arrange elements anew: other shapes, joined and split tensors, repetitions. Views of part of a tensor are in views.go.

func init() {
	reshapes()
	transposes()
	expansions()
	joins()
	splits()
	repetitions()
	reversals()
	copies()
}

// fitShape replaces a -1 in shape by what the number of elements demands.
func fitShape(b *ir.Builder, n int, shape []int) []int {
	out := append([]int{}, shape...)
	free, known := -1, 1
	for i, s := range out {
		switch {
		case s >= 0:
			known *= s
		case s != -1:
			b.Failf("invalid shape dimension %d", s)
		case free >= 0:
			b.Failf("only one dimension can be inferred, but the shape is %v", shape)
		default:
			free = i
		}
	}
	if free >= 0 && known > 0 && n%known == 0 {
		out[free] = n / known
		return out
	}
	if free >= 0 && known == 0 && n == 0 {
		b.Failf("cannot reshape tensor of 0 elements into shape %v because the unspecified dimension size -1 can be any value and is ambiguous", shape)
	}
	if free >= 0 || known != n {
		b.Failf("shape '%v' is invalid for input of size %d", shape, n)
	}
	return out
}

func reshapes() {
	toShape := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(asShape(b, args[0], fitShape(b, numel(b, args[0]), constInts(b, args[1]))))
	}
	def(Method|Torch, "reshape(Tensor self, int[] shape) -> Tensor", toShape, mayView)
	def(Method, "view(Tensor self, int[] size) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		shape := fitShape(b, numel(b, args[0]), constInts(b, args[1]))
		needViewable(b, args[0], shape)
		return one(asShape(b, args[0], shape))
	}, isView)
	def(Method, "view.dtype(Tensor self, ScalarType dtype) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		d := constDType(b, args[1])
		if d == dt(b, args[0]) {
			return args[:1]
		}
		return one(b.Op("bitcast", args[0], b.DType(d)))
	}, isView)
	asOther := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(asShape(b, args[0], fitShape(b, numel(b, args[0]), shapeOf(b, args[1]))))
	}
	def(Method, "view_as(Tensor self, Tensor other) -> Tensor", asOther, isView)
	def(Method, "reshape_as(Tensor self, Tensor other) -> Tensor", asOther, mayView)
	def(Method|Torch, "flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor", flatten, mayView)
	def(Method|Torch, "ravel(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(asShape(b, args[0], []int{numel(b, args[0])}))
	}, mayView)
	def(Method, "unflatten(Tensor self, int dim, int[] sizes) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		shape := shapeOf(b, args[0])
		dim := wrapDim(b, constInt(b, args[1]), len(shape))
		sizes := constInts(b, args[2])
		if len(sizes) == 0 || len(shape) == 0 {
			b.Failf("unflatten: sizes must be non-empty and the tensor must have dimensions")
		}
		sizes = fitShape(b, shape[dim], sizes)
		return one(asShape(b, args[0], append(append(append([]int{}, shape[:dim]...), sizes...), shape[dim+1:]...)))
	}, isView)
	alias(Torch, "unflatten", "unflatten")
	def(Method|Torch, "squeeze(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		shape := []int{}
		for _, n := range shapeOf(b, args[0]) {
			if n != 1 {
				shape = append(shape, n)
			}
		}
		return one(asShape(b, args[0], shape))
	}, isView)
	def(Method|Torch, "squeeze.dim(Tensor self, int dim) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, r := args[0], rank(b, args[0])
		d := wrapDim(b, constInt(b, args[1]), r)
		if r > 0 && !x.Type.Dims[d].Known() {
			b.Fail(ir.ErrNeedsTypes)
		}
		if r == 0 || x.Type.Dims[d].N != 1 {
			return one(x)
		}
		return one(squeezeDim(b, x, d))
	}, isView)
	def(Method|Torch, "unsqueeze(Tensor self, int dim) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(unsqueeze(b, args[0], wrapDim(b, constInt(b, args[1]), rank(b, args[0])+1)))
	}, isView)
	for i, name := range []string{"atleast_1d", "atleast_2d", "atleast_3d"} {
		def(Torch, name+"(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return one(atLeast(b, args[0], i+1))
		}, isView)
		def(Torch, name+".Sequence(Tensor[] tensors) -> Tensor[]", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return one(b.List(atLeastAll(b, listElems(b, args[0]), i+1)...))
		})
	}
}

// asShape is reshape as a user asked for it: it stands for a contiguous tensor, see strideOrder.
func asShape(b *ir.Builder, x *ir.Value, shape []int) *ir.Value {
	if _, moved := strideOrder(x); !moved {
		return reshape(b, x, shape)
	}
	return b.Op("reshape", x, b.Ints(shape...))
}

// userPermute is a permute that the user asked for. Its dims are written as a list node, by which strideOrder tells it from the
// permutes of other expansions, whose results PyTorch would give contiguous.
func userPermute(b *ir.Builder, x *ir.Value, dims []int) *ir.Value {
	if sameInts(dims, seq(len(dims))) {
		return x
	}
	elems := make([]*ir.Value, len(dims))
	for i, d := range dims {
		elems[i] = b.Int(d)
	}
	return b.Op("permute", x, b.List(elems...))
}

// strideOrder follows user permutes back to a tensor that is taken for contiguous: dim i of x is dim order[i] of that.
func strideOrder(x *ir.Value) (order []int, moved bool) {
	order = seq(x.Type.Rank())
	for x.Def != nil && x.Def.Op.Name == "permute" && x.Def.Args[1].Def != nil && x.Def.Args[1].Def.Op == ir.OpList {
		d, ok := x.Def.Args[1].Const()
		if !ok {
			break
		}
		dims, err := ir.AsInts(d)
		if err != nil {
			break
		}
		for i, o := range order {
			order[i] = dims[o]
		}
		moved = true
		x = x.Def.Args[0]
	}
	return order, moved
}

// needViewable stops where view would have to copy, as PyTorch does: where dims that become one are not adjacent in memory.
func needViewable(b *ir.Builder, x *ir.Value, shape []int) {
	order, moved := strideOrder(x)
	if !moved {
		return
	}
	sizes := shapeOf(b, x)
	base := make([]int, len(sizes))
	for i, o := range order {
		base[o] = sizes[i]
	}
	strides := make([]int, len(sizes))
	for i, o := range order {
		strides[i] = product(base[o+1:])
	}
	if product(sizes) > 0 && !viewable(sizes, strides, shape) {
		b.Failf("view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead, or .contiguous().view(...).")
	}
}

// viewable reports whether shape, of as many elements, splits and joins only dims that are adjacent in memory.
func viewable(sizes, strides, shape []int) bool {
	v := len(shape) - 1
	for i := len(sizes) - 1; i >= 0; {
		n := 1
		for inner := -1; i >= 0; i-- { // a run of adjacent dims
			if sizes[i] == 1 {
				continue
			}
			if inner >= 0 && strides[i] != sizes[inner]*strides[inner] {
				break
			}
			n *= sizes[i]
			inner = i
		}
		for ; v >= 0 && (n > 1 || shape[v] == 1); v-- {
			if n%shape[v] != 0 {
				return false
			}
			n /= shape[v]
		}
		if n != 1 {
			return false
		}
	}
	return true
}

func flatten(b *ir.Builder, args []*ir.Value) []*ir.Value {
	shape := shapeOf(b, args[0])
	if len(shape) == 0 {
		wrapDim(b, constInt(b, args[1]), 0)
		wrapDim(b, constInt(b, args[2]), 0)
		return one(asShape(b, args[0], []int{1}))
	}
	from, to := wrapDim(b, constInt(b, args[1]), len(shape)), wrapDim(b, constInt(b, args[2]), len(shape))
	if from > to {
		b.Failf("flatten() has invalid args: start_dim cannot come after end_dim")
	}
	out := append([]int{}, shape[:from]...)
	out = append(out, product(shape[from:to+1]))
	return one(asShape(b, args[0], append(out, shape[to+1:]...)))
}

// atLeast adds dims of size 1 until x has n: for 3, a vector becomes [1, n, 1] and a matrix [m, n, 1].
func atLeast(b *ir.Builder, x *ir.Value, n int) *ir.Value {
	s := shapeOf(b, x)
	switch {
	case len(s) >= n:
		return x
	case len(s) == 0:
		return asShape(b, x, ones(n))
	case n == 2:
		return asShape(b, x, []int{1, s[0]})
	case len(s) == 1:
		return asShape(b, x, []int{1, s[0], 1})
	}
	return asShape(b, x, []int{s[0], s[1], 1})
}

func atLeastAll(b *ir.Builder, xs []*ir.Value, n int) []*ir.Value {
	out := make([]*ir.Value, len(xs))
	for i, x := range xs {
		out[i] = atLeast(b, x, n)
	}
	return out
}

func transposes() {
	def(Method|Torch, "permute(Tensor self, int[] dims) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		r := rank(b, args[0])
		dims := constInts(b, args[1])
		if len(dims) != r {
			b.Failf("permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = %d is not equal to len(dims) = %d", r, len(dims))
		}
		for i, d := range dims {
			for _, e := range dims[:i] {
				if wrapDim(b, d, r) == wrapDim(b, e, r) {
					b.Failf("permute(): duplicate dims are not allowed, dim %d is repeated in %v", d, dims)
				}
			}
		}
		return one(userPermute(b, args[0], wrapDims(b, dims, r)))
	}, isView)
	swap := func(b *ir.Builder, x *ir.Value, i, j int) []*ir.Value {
		r := rank(b, x)
		i, j = wrapDim(b, i, r), wrapDim(b, j, r)
		dims := seq(r)
		if r > 0 {
			dims[i], dims[j] = dims[j], dims[i]
		}
		return one(userPermute(b, x, dims))
	}
	for _, schema := range []string{"transpose.int(Tensor self, int dim0, int dim1)", "swapaxes(Tensor self, int axis0, int axis1)", "swapdims(Tensor self, int dim0, int dim1)"} {
		def(Method|Torch, schema+" -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return swap(b, args[0], constInt(b, args[1]), constInt(b, args[2]))
		}, isView)
	}
	def(Method|Torch, "t(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		switch r := rank(b, args[0]); {
		case r > 2:
			b.Failf("t() expects a tensor with <= 2 dimensions, but self is %dD", r)
		case r < 2:
			return args
		}
		return swap(b, args[0], 0, 1)
	}, isView)
	def(Method, "numpy_T(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		r := rank(b, args[0])
		dims := make([]int, r)
		for i := range dims {
			dims[i] = r - 1 - i
		}
		return one(userPermute(b, args[0], dims))
	}, isView)
	for _, name := range []string{"mT", "mH", "adjoint"} {
		def(Method, name+"(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			r := rank(b, args[0])
			if r == 0 {
				return args
			}
			if r < 2 {
				b.Failf("tensor.%s is only supported on matrices or batches of matrices. Got %d-D tensor.", name, r)
			}
			return swap(b, args[0], -2, -1)
		}, isView)
	}
	alias(Torch, "adjoint", "adjoint")
	def(Method, "matrix_H(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		r := rank(b, args[0])
		if r == 0 {
			return args
		}
		if r != 2 {
			b.Failf("tensor.H is only supported on matrices (2-D tensors). Got %d-D tensor.", r)
		}
		return swap(b, args[0], 0, 1)
	}, isView)
	alias(Method, "T", "numpy_T")
	alias(Method, "H", "matrix_H")
	for _, name := range []string{"movedim", "moveaxis"} {
		def(Method|Torch, name+".int(Tensor self, int source, int destination) -> Tensor", movedim, isView)
		def(Method|Torch, name+".intlist(Tensor self, int[] source, int[] destination) -> Tensor", movedim, isView)
	}
}

func movedim(b *ir.Builder, args []*ir.Value) []*ir.Value {
	r := rank(b, args[0])
	from, to := wrapDims(b, constInts(b, args[1]), r), wrapDims(b, constInts(b, args[2]), r)
	if len(from) != len(to) {
		b.Failf("movedim: Invalid source or destination dims: source (%v dims) should contain the same number of dims as destination (%v dims)", from, to)
	}
	if r == 0 {
		return args[:1]
	}
	dims := make([]int, r)
	for i := range dims {
		dims[i] = -1
	}
	for i, d := range to {
		dims[d] = from[i]
	}
	next := 0
	for i, d := range dims {
		if d >= 0 {
			continue
		}
		for contains(from, next) {
			next++
		}
		dims[i] = next
		next++
	}
	return one(userPermute(b, args[0], dims))
}

func expansions() {
	def(Method, "expand(Tensor self, int[] size, *, bool implicit=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(expandTo(b, args[0], constInts(b, args[1])))
	}, isView)
	def(Method, "expand_as(Tensor self, Tensor other) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(expandTo(b, args[0], shapeOf(b, args[1])))
	}, isView)
	def(Method|Torch, "broadcast_to(Tensor self, int[] size) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(expandTo(b, args[0], constInts(b, args[1])))
	}, isView)
	def(Torch, "broadcast_tensors(Tensor[] tensors) -> Tensor[]", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		xs := listElems(b, args[0])
		if len(xs) == 0 {
			b.Failf("broadcast_tensors expects a non-empty list of tensors")
		}
		return one(b.List(broadcast(b, xs...)...))
	}, isView)
	for _, schema := range []string{"meshgrid(Tensor[] tensors) -> Tensor[]", "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]"} {
		def(Torch, schema, meshgrid)
	}
	def(Torch, "cartesian_prod(Tensor[] tensors) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		xs := listElems(meshOperand(b, args[0]), args[0])
		for _, x := range xs {
			if r := rank(b, x); r != 1 {
				b.Failf("cartesian_prod: Expect a 1D vector, but got shape %v", shapeOf(b, x))
			}
		}
		if len(xs) == 1 {
			return one(xs[0])
		}
		cols := grids(b, xs)
		for i, g := range cols {
			cols[i] = reshape(b, g, []int{numel(b, g), 1})
		}
		return one(concat(b, 1, cols...))
	})
}

func meshOperand(b *ir.Builder, list *ir.Value) *ir.Builder {
	for _, x := range listElems(b, list) {
		if r := rank(b, x); r > 1 {
			b.Failf("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of shape %v", x.Type.Shape())
		}
		if d, first := dt(b, x), dt(b, listElems(b, list)[0]); d != first {
			b.Failf("torch.meshgrid expects all tensors to have the same dtype, got %s and %s", typeName(first), typeName(d))
		}
	}
	return b
}

func meshgrid(b *ir.Builder, args []*ir.Value) []*ir.Value {
	xs := append([]*ir.Value{}, listElems(meshOperand(b, args[0]), args[0])...)
	if len(xs) == 0 {
		b.Failf("torch.meshgrid expects a non-empty TensorList")
	}
	mode := "ij"
	if len(args) > 1 {
		mode = constStr(b, args[1])
	}
	if mode != "ij" && mode != "xy" {
		b.Failf("torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: %s", mode)
	}
	swap := mode == "xy" && len(xs) >= 2
	if swap {
		xs[0], xs[1] = xs[1], xs[0]
	}
	out := grids(b, xs)
	if swap {
		out[0], out[1] = out[1], out[0]
	}
	return one(b.List(out...))
}

// grids repeats each vector along the dims of the others.
func grids(b *ir.Builder, xs []*ir.Value) []*ir.Value {
	shape := make([]int, len(xs))
	for i, x := range xs {
		shape[i] = numel(b, x)
	}
	out := make([]*ir.Value, len(xs))
	for i, x := range xs {
		aligned := ones(len(xs))
		aligned[i] = shape[i]
		out[i] = broadcastTo(b, reshape(b, x, aligned), shape)
	}
	return out
}

// expandTo is broadcastTo for a shape in which -1 keeps a size.
func expandTo(b *ir.Builder, x *ir.Value, size []int) *ir.Value {
	have := shapeOf(b, x)
	lead := len(size) - len(have)
	if lead < 0 {
		b.Failf("expand: the number of sizes provided (%d) must be greater or equal to the number of dimensions in the tensor (%d)", len(size), len(have))
	}
	out := append([]int{}, size...)
	for i, n := range size {
		switch {
		case n < -1 || n == -1 && i < lead:
			b.Failf("The expanded size of the tensor (%d) isn't allowed in a leading, non-existing dimension %d", n, i)
		case n == -1:
			out[i] = have[i-lead]
		case i >= lead && have[i-lead] != n && have[i-lead] != 1:
			b.Failf("The expanded size of the tensor (%d) must match the existing size (%d) at non-singleton dimension %d.  Target sizes: %v.  Tensor sizes: %v", n, have[i-lead], i, size, have)
		}
	}
	return broadcastTo(b, x, out)
}

func joins() {
	for _, name := range []string{"cat", "concat", "concatenate"} {
		def(Torch, name+"(Tensor[] tensors, int dim=0) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			if t, ok := grownList(args[0]); ok && t.Rank() > 0 {
				return one(catList(b, args[0], t, constInt(b, args[1])))
			}
			return one(cat(b, listElems(b, args[0]), constInt(b, args[1])))
		})
	}
	def(Torch, "stack(Tensor[] tensors, int dim=0) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		if t, ok := grownList(args[0]); ok && t.Rank() > 0 {
			return one(stackList(b, args[0], t, constInt(b, args[1])))
		}
		return one(stack(b, listElems(b, args[0]), constInt(b, args[1])))
	})
	for _, v := range []struct {
		name      string
		rank, dim int
	}{{"vstack", 2, 0}, {"row_stack", 2, 0}, {"dstack", 3, 2}} {
		def(Torch, v.name+"(Tensor[] tensors) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return one(cat(b, atLeastAll(b, listElems(b, args[0]), v.rank), v.dim))
		})
	}
	def(Torch, "hstack(Tensor[] tensors) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		xs := atLeastAll(b, listElems(b, args[0]), 1)
		if len(xs) > 0 && rank(b, xs[0]) == 1 {
			return one(cat(b, xs, 0))
		}
		return one(cat(b, xs, 1))
	})
	def(Torch, "column_stack(Tensor[] tensors) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		xs := append([]*ir.Value{}, listElems(b, args[0])...)
		for i, x := range xs {
			if rank(b, x) <= 1 {
				xs[i] = reshape(b, x, []int{numel(b, x), 1})
			}
		}
		return one(cat(b, xs, 1))
	})
	def(Torch, "block_diag(Tensor[] tensors) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		xs := atLeastAll(b, listElems(b, args[0]), 2)
		rows, cols, d := 0, 0, dtype.Invalid
		for _, x := range xs {
			s := shapeOf(b, x)
			if len(s) != 2 {
				b.Failf("torch.block_diag: Input tensors must have 2 or fewer dimensions, got shape %v", s)
			}
			rows, cols, d = rows+s[0], cols+s[1], dtype.Promote(d, dt(b, x))
		}
		r, c := 0, 0
		blocks := make([]*ir.Value, len(xs))
		for i, x := range xs {
			s := shapeOf(b, x)
			blocks[i] = b.Op("pad", cast(b, x, d), b.Ints(0, c), b.Ints(0, cols-c-s[1]), b.Const(zeroOf(d)))
			r, c = r+s[0], c+s[1]
		}
		return one(cat(b, blocks, 0))
	})
}

// zeroOf is the number 0 of the kind that a dtype's elements have.
func zeroOf(d dtype.DType) ir.Datum {
	switch {
	case d.IsFloat():
		return 0.0
	case d == dtype.Bool:
		return false
	}
	return int64(0)
}

// cat joins tensors along dim after promotion. Tensors of shape [0] are skipped, whatever the others' rank.
func cat(b *ir.Builder, xs []*ir.Value, dim int) *ir.Value {
	if len(xs) == 0 {
		b.Failf("torch.cat(): expected a non-empty list of Tensors")
	}
	d := promote(b, xs...)
	var parts []*ir.Value
	for i, x := range xs {
		if rank(b, x) == 0 {
			b.Failf("zero-dimensional tensor (at position %d) cannot be concatenated", i)
		}
		if rank(b, x) > 1 || x.Type.Dims[0].N != 0 {
			parts = append(parts, cast(b, x, d))
		}
	}
	if len(parts) == 0 {
		return cast(b, xs[0], d)
	}
	r := rank(b, parts[0])
	dim = wrapDim(b, dim, r)
	for i, x := range parts[1:] {
		if rank(b, x) != r {
			b.Failf("Tensors must have same number of dimensions: got %d and %d", r, rank(b, x))
		}
		for k, n := range x.Type.Shape() {
			if want := parts[0].Type.Dims[k].N; k != dim && n >= 0 && want >= 0 && n != want {
				b.Failf("Sizes of tensors must match except in dimension %d. Expected size %d but got size %d for tensor number %d in the list.", dim, want, n, i+1)
			}
		}
	}
	return concat(b, dim, parts...)
}

// grownList reports whether v is a list of tensors of one known type whose length is not known, such as a loop makes.
func grownList(v *ir.Value) (elem ir.Type, ok bool) {
	if _, known := v.Const(); known || v.Type.Kind != ir.KList || v.Def != nil && v.Def.Op == ir.OpList {
		return elem, false
	}
	elem = v.Type.Elems[0]
	return elem, elem.IsTensor() && elem.Static()
}

// catList is cat for a grownList.
func catList(b *ir.Builder, list *ir.Value, elem ir.Type, dim int) *ir.Value {
	dim = wrapDim(b, dim, elem.Rank())
	sizes := make([]*ir.Value, elem.Rank())
	for i, n := range elem.Shape() {
		sizes[i] = b.Int(n)
	}
	sizes[dim] = b.Op("py_mul", b.Op("list_len", list), sizes[dim])
	return b.Op("reshape", b.Op("concat", list, b.Int(dim)), b.List(sizes...))
}

// stackList is stack for a grownList of tensors with dims.
func stackList(b *ir.Builder, list *ir.Value, elem ir.Type, dim int) *ir.Value {
	r := elem.Rank()
	dim = wrapDim(b, dim, r+1)
	sizes := []*ir.Value{b.Op("list_len", list)}
	for _, n := range elem.Shape() {
		sizes = append(sizes, b.Int(n))
	}
	y := b.Op("reshape", b.Op("concat", list, b.Int(0)), b.List(sizes...))
	if dim == 0 {
		return y
	}
	var order []int
	for i := 1; i <= r; i++ {
		if len(order) == dim {
			order = append(order, 0)
		}
		order = append(order, i)
	}
	if dim == r {
		order = append(order, 0)
	}
	return b.Op("permute", y, b.Ints(order...))
}

func stack(b *ir.Builder, xs []*ir.Value, dim int) *ir.Value {
	if len(xs) == 0 {
		b.Failf("stack expects a non-empty TensorList")
	}
	dim = wrapDim(b, dim, rank(b, xs[0])+1)
	parts := make([]*ir.Value, len(xs))
	for i, x := range xs {
		if x.Type.Static() && xs[0].Type.Static() && !sameInts(shapeOf(b, x), shapeOf(b, xs[0])) {
			b.Failf("stack expects each tensor to be equal size, but got %v at entry 0 and %v at entry %d", shapeOf(b, xs[0]), shapeOf(b, x), i)
		}
		parts[i] = unsqueeze(b, x, dim)
	}
	return cat(b, parts, dim)
}

func splits() {
	sized := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		dim, n := splitDim(b, args[0], args[2])
		return one(b.List(parts(b, args[0], dim, evenSizes(b, n, constInt(b, args[1])))...))
	}
	listed := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		dim, n := splitDim(b, args[0], args[2])
		sizes := constInts(b, args[1])
		sum := 0
		for _, s := range sizes {
			if s < 0 {
				b.Failf("split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=%v", sizes)
			}
			sum += s
		}
		if sum != n {
			b.Failf("split_with_sizes expects split_sizes to sum exactly to %d (input tensor's size at dimension %d), but got split_sizes=%v", n, dim, sizes)
		}
		return one(b.List(parts(b, args[0], dim, sizes)...))
	}
	def(Method|Hidden, "split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]", sized, isView)
	def(Method|Hidden, "split.sizes(Tensor self, int[] split_size, int dim=0) -> Tensor[]", listed, isView)
	def(Torch, "split.torch(Tensor tensor, int split_size_or_sections, int dim=0) -> Tensor[]", sized, isView)
	def(Torch, "split.torch_sizes(Tensor tensor, int[] split_size_or_sections, int dim=0) -> Tensor[]", listed, isView)
	def(Method|Torch, "split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", listed, isView)
	for _, name := range []string{"chunk", "unsafe_chunk"} {
		def(Method|Torch, name+"(Tensor self, int chunks, int dim=0) -> Tensor[]", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			dim, n := splitDim(b, args[0], args[2])
			chunks := constInt(b, args[1])
			if chunks <= 0 {
				b.Failf("chunk expects `chunks` to be greater than 0, got: %d", chunks)
			}
			if n == 0 {
				needFew(b, chunks, "chunks")
			}
			size := (n + chunks - 1) / chunks
			if size == 0 { // as many empty chunks as asked for
				return one(b.List(parts(b, args[0], dim, make([]int, chunks))...))
			}
			return one(b.List(parts(b, args[0], dim, evenSizes(b, n, size))...))
		}, isView)
	}
	sections := func(dim int) expansion {
		return func(b *ir.Builder, args []*ir.Value) []*ir.Value { return tensorSplit(b, args, dim) }
	}
	for _, v := range []struct {
		where       Where
		suffix      string
		self, count string
	}{{Method, "", "self", ""}, {Torch, "_torch", "input", "indices_or_"}} {
		indices := "indices"
		if v.count != "" {
			indices = "indices_or_sections"
		}
		def(v.where, "tensor_split.sections"+v.suffix+"(Tensor "+v.self+", int "+v.count+"sections, int dim=0) -> Tensor[]", sections(-1), isView)
		def(v.where, "tensor_split.indices"+v.suffix+"(Tensor "+v.self+", int[] "+indices+", int dim=0) -> Tensor[]", sections(-1), isView)
	}
	for i, name := range []string{"vsplit", "hsplit", "dsplit"} {
		def(Method|Torch, name+".int(Tensor self, int sections) -> Tensor[]", sections(i), isView)
		def(Method|Torch, name+".array(Tensor self, int[] indices) -> Tensor[]", sections(i), isView)
	}
	def(Method|Torch, "unbind(Tensor self, int dim=0) -> Tensor[]", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		dim, n := splitDim(b, args[0], args[1])
		out := make([]*ir.Value, n)
		for i := range out {
			out[i] = selectAt(b, args[0], dim, i)
		}
		return one(b.List(out...))
	}, isView)
}

// splitDim is a dim and its size.
func splitDim(b *ir.Builder, x, dim *ir.Value) (d, size int) {
	r := rank(b, x)
	d = wrapDim(b, constInt(b, dim), r)
	if r == 0 {
		b.Failf("split, chunk and unbind expect at least a 1-dimensional tensor, got a 0-d tensor")
	}
	if !x.Type.Dims[d].Known() {
		b.Fail(ir.ErrNeedsTypes)
	}
	return d, x.Type.Dims[d].N
}

// evenSizes are pieces of one size, the last one smaller where n is not a multiple; a single empty piece for n = 0.
func evenSizes(b *ir.Builder, n, size int) []int {
	if size < 0 {
		b.Failf("split expects split_size be non-negative, but got split_size=%d", size)
	}
	if size == 0 && n != 0 {
		b.Failf("split: split_size can only be 0 if dimension size is 0, but got dimension size of %d", n)
	}
	if n == 0 {
		return []int{0}
	}
	var sizes []int
	for ; n > 0; n -= size {
		sizes = append(sizes, min(size, n))
	}
	return sizes
}

// parts cuts x along dim into pieces.
func parts(b *ir.Builder, x *ir.Value, dim int, sizes []int) []*ir.Value {
	out := make([]*ir.Value, len(sizes))
	at := 0
	for i, n := range sizes {
		out[i] = sliceDim(b, x, dim, at, at+n, 1)
		at += n
	}
	return out
}

// tensorSplit cuts at indices, or into a number of nearly equal sections; axis is 0, 1 or 2 for vsplit, hsplit and dsplit, and -1
// where the dim is the third operand.
func tensorSplit(b *ir.Builder, args []*ir.Value, axis int) []*ir.Value {
	x := args[0]
	dimArg := b.Int(axis)
	if axis < 0 {
		dimArg = args[2]
	} else {
		r := rank(b, x)
		if axis == 1 && r == 1 {
			dimArg = b.Int(0)
		} else if r < max(axis+1, 2) && axis != 1 || r == 0 {
			b.Failf("%csplit requires a tensor with at least %d dimensions, but got a tensor with %d dimensions!", "vhd"[axis], max(axis+1, 2), r)
		}
	}
	dim, n := splitDim(b, x, dimArg)
	var cuts []int
	if args[1].Type.Kind == ir.KInt {
		k := constInt(b, args[1])
		if k <= 0 {
			b.Failf("number of sections must be larger than 0, got %d", k)
		}
		if axis >= 0 && n%k != 0 {
			b.Failf("%csplit attempted to split along dimension %d, but the size of the dimension %d is not divisible by the split_size %d!", "vhd"[axis], dim, n, k)
		}
		needFew(b, k, "sections")
		for i := 1; i < k; i++ {
			cuts = append(cuts, i*(n/k)+min(i, n%k))
		}
	} else {
		cuts = constInts(b, args[1])
	}
	out := make([]*ir.Value, len(cuts)+1)
	at := 0
	for i, c := range append(append([]int{}, cuts...), n) {
		lo, hi := clampIndex(at, n), clampIndex(c, n)
		out[i] = sliceDim(b, x, dim, lo, max(lo, hi), 1)
		at = c
	}
	return one(b.List(out...))
}

// clampIndex makes a slice bound, which may be negative, an index from 0 to n.
func clampIndex(i, n int) int {
	if i < 0 {
		i += n
	}
	return min(max(i, 0), n)
}

func repetitions() {
	repeat := func(b *ir.Builder, x *ir.Value, repeats []int) []*ir.Value {
		shape := shapeOf(b, x)
		if len(repeats) < len(shape) {
			b.Failf("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: %v for shape %v", repeats, shape)
		}
		shape = append(ones(len(repeats)-len(shape)), shape...)
		var single, full, out []int
		for i, n := range shape {
			if repeats[i] < 0 {
				b.Failf("Trying to create tensor with negative dimension %d: repeats %v", repeats[i], repeats)
			}
			single = append(single, 1, n)
			full = append(full, repeats[i], n)
			out = append(out, repeats[i]*n)
		}
		return one(reshape(b, broadcastTo(b, reshape(b, x, single), full), append([]int{}, out...)))
	}
	def(Method, "repeat(Tensor self, int[] repeats) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return repeat(b, args[0], constInts(b, args[1]))
	})
	def(Method|Torch, "tile(Tensor self, int[] dims) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		repeats := constInts(b, args[1])
		if missing := rank(b, args[0]) - len(repeats); missing > 0 {
			repeats = append(ones(missing), repeats...)
		}
		return repeat(b, args[0], repeats)
	})
	def(Method|Torch, "repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor", repeatEach)
	def(Method|Torch, "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor", repeatByCounts)
	def(Torch, "repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(countedIndices(b, args[0]))
	})
	def(Hidden, "repeat_index(Tensor ends, int total) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		at := unsqueeze(b, counting(b, constInt(b, args[1]), dtype.I64), 1)
		before := cast(b, apply(b, "le", args[0], at), dtype.I64)
		return one(reduce(b, "sum", before, []int{1}, false))
	})
}

// alongDim is x and a non-negative dim; without a dim, x flattened and 0.
func alongDim(b *ir.Builder, x, dim *ir.Value) (*ir.Value, int) {
	if isNone(dim) {
		return reshape(b, x, []int{numel(b, x)}), 0
	}
	if rank(b, x) == 0 {
		b.Failf("Dimension specified as %d but tensor has no dimensions", constInt(b, dim))
	}
	return x, wrapDim(b, constInt(b, dim), rank(b, x))
}

func repeatEach(b *ir.Builder, args []*ir.Value) []*ir.Value {
	n := constInt(b, args[1])
	if n < 0 {
		b.Failf("repeats can not be negative, got %d", n)
	}
	x, dim := alongDim(b, args[0], args[2])
	shape := shapeOf(b, x)
	wide := broadcastTo(b, unsqueeze(b, x, dim+1), insert(shape, dim+1, n))
	return one(reshape(b, wide, replace(shape, dim, shape[dim]*n)))
}

// repeatByCounts repeats each element as often as a tensor says, which decides the size of the result at run time.
func repeatByCounts(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, dim := alongDim(b, args[0], args[2])
	repeats := args[1]
	n := shapeOf(b, x)[dim]
	switch {
	case rank(b, repeats) > 1:
		b.Failf("repeat_interleave only accept 1D vector as repeat, got shape %v", shapeOf(b, repeats))
	case numel(b, repeats) == 1:
		repeats = broadcastTo(b, reshape(b, repeats, []int{1}), []int{n})
	case numel(b, repeats) != n:
		b.Failf("repeats must have the same size as input along dim: %d repeats for a size of %d", numel(b, repeats), n)
	}
	if want, ok := args[3].Const(); ok && want != nil {
		total := b.Op("item_int", reduce(b, "sum", cast(b, repeats, dtype.I64), []int{0}, false))
		b.Emit("assert", b.Op("py_eq", total, args[3]), b.Str("repeat_interleave: allocated size does not match required size: the repeats do not add up to output_size"))
	}
	t := ir.TensorDims(dt(b, x), replaceDim(x.Type.Dims, dim, ir.Unknown))
	return later(b, "index_select", []ir.Type{t}, x, b.Int(dim), countedIndices(b, repeats))
}

func replaceDim(dims []ir.Dim, i int, d ir.Dim) []ir.Dim {
	out := append([]ir.Dim{}, dims...)
	out[i] = d
	return out
}

// countedIndices is 0 repeats[0] times, 1 repeats[1] times, ….
func countedIndices(b *ir.Builder, repeats *ir.Value) *ir.Value {
	if d := dt(b, repeats); rank(b, repeats) != 1 || d != dtype.I64 && d != dtype.I32 {
		b.Failf("repeats has to be a 1-d Long or Int tensor, got %s", repeats.Type)
	}
	if numel(b, repeats) == 0 {
		return fill(b, 0, dtype.I64, []int{0})
	}
	repeats = cast(b, repeats, dtype.I64)
	em{b}.must(em{b}.ge(repeats, b.Int(0)), "repeat_interleave: repeats can not be negative")
	ends := b.Op("cumsum", repeats, b.Int(0))
	total := b.Op("item_int", reduce(b, "sum", repeats, []int{0}, false))
	return later(b, "repeat_index", []ir.Type{ir.TensorOf(dtype.I64, -1)}, ends, total)[0]
}

func reversals() {
	def(Method|Torch, "flip(Tensor self, int[] dims) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(flip(b, args[0], wrapDims(b, constInts(b, args[1]), rank(b, args[0]))...))
	})
	for i, name := range []string{"flipud", "fliplr"} {
		def(Method|Torch, name+"(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			if rank(b, args[0]) <= i {
				b.Failf("Input must be >= %d-d.", i+1)
			}
			return one(flip(b, args[0], i))
		})
	}
	def(Method|Torch, "rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", rot90)
	def(Method|Torch, "roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor", roll)
}

func flip(b *ir.Builder, x *ir.Value, dims ...int) *ir.Value {
	if len(dims) == 0 || rank(b, x) == 0 {
		return x
	}
	return b.Op("flip", x, b.Ints(dims...))
}

func rot90(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, k := args[0], constInt(b, args[1])
	r := rank(b, x)
	plane := constInts(b, args[2])
	if len(plane) != 2 {
		b.Failf("expected total rotation dims == 2, but got dims = %d", len(plane))
	}
	if r < 2 {
		b.Failf("expected total dims >= 2, but got total dims = %d", r)
	}
	plane = wrapDims(b, plane, r)
	swapped := func(y *ir.Value) *ir.Value {
		dims := seq(r)
		dims[plane[0]], dims[plane[1]] = plane[1], plane[0]
		return permute(b, y, dims)
	}
	switch ((k % 4) + 4) % 4 {
	case 1:
		return one(swapped(flip(b, x, plane[1])))
	case 2:
		return one(flip(b, x, plane...))
	case 3:
		return one(swapped(flip(b, x, plane[0])))
	}
	return one(x)
}

func roll(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, shifts, dims := args[0], constInts(b, args[1]), constInts(b, args[2])
	shape := shapeOf(b, x)
	if len(shifts) == 0 {
		b.Failf("roll: shifts must not be empty")
	}
	if len(dims) == 0 && len(shifts) == 1 {
		return one(reshape(b, rollDim(b, reshape(b, x, []int{product(shape)}), 0, shifts[0]), shape))
	}
	if len(dims) != len(shifts) {
		b.Failf("shifts and dimensions must align. shifts: %d, dims:%d", len(shifts), len(dims))
	}
	if len(shape) == 0 {
		b.Failf("Dimension specified as %d but tensor has no dimensions", dims[0])
	}
	if product(shape) == 0 {
		return one(x)
	}
	for i, d := range dims {
		x = rollDim(b, x, wrapDim(b, d, len(shape)), shifts[i])
	}
	return one(x)
}

func rollDim(b *ir.Builder, x *ir.Value, dim, shift int) *ir.Value {
	n := shapeOf(b, x)[dim]
	if n == 0 {
		return x
	}
	at := ((-shift)%n + n) % n
	if at == 0 {
		return x
	}
	return concat(b, dim, sliceDim(b, x, dim, at, n, 1), sliceDim(b, x, dim, 0, at, 1))
}

// copies are functions that change memory only, or cut the gradient.
func copies() {
	whole := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		rank(b, args[0])
		if _, moved := strideOrder(args[0]); moved {
			return one(b.Op("reshape", args[0], b.Ints(shapeOf(b, args[0])...)))
		}
		return args[:1]
	}
	def(Method, "contiguous(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", whole, mayView)
	def(Method|Torch, "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", first)
	def(Method|Torch, "detach(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(b.Op("detach", args[0]))
	}, isView)
	def(Torch|Hidden, "alias(Tensor self) -> Tensor", first, isView)
}
