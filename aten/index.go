package aten

import (
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Reading and writing elements at places that tensors of indices or masks name.

func init() {
	advancedIndexing()
	alongOneDim()
	gathers()
	scatters()
	masks()
}

func advancedIndexing() {
	def(Torch|Hidden, "index(Tensor self, Tensor?[] indices) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return index(b, args[0], listElems(b, args[1]))
	})
	def(Method|Torch, "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return indexPut(b, args[0], listElems(b, args[1]), args[2], args[3])
		})
}

// rows is a tensor arranged for indexing: the indexed dims, merged, are dim 0 of data, and index chooses among them.
type rows struct {
	data  *ir.Value
	index *ir.Value // i64, of any rank, normalised
	order []int     // the permutation that brought the indexed dims of the tensor to the front
	shape []int     // the tensor's shape after that permutation
	at    int       // the place of the index's dims in the result
	taken int       // how many dims were merged
}

// isMask reports whether an index is a mask rather than a tensor of positions.
func isMask(b *ir.Builder, i *ir.Value) bool {
	d := dt(b, i)
	if d != dtype.I64 && d != dtype.Bool && d != dtype.U8 {
		b.Failf("tensors used as indices must be long, byte or bool tensors, got %s", typeName(d))
	}
	return d != dtype.I64
}

// checkMask stops unless a mask's shape is that of the dims from d on which it indexes.
func checkMask(b *ir.Builder, x, mask *ir.Value, d, at int) {
	xs, ms := shapeOf(b, x), shapeOf(b, mask)
	if d+len(ms) > len(xs) || !sameInts(xs[d:d+len(ms)], ms) {
		b.Failf("IndexError: The shape of the mask %v at index %d does not match the shape of the indexed tensor %v at index %d", ms, at, xs, at)
	}
}

// hasMask reports whether one of the indices is a mask.
func hasMask(b *ir.Builder, indices []*ir.Value) bool {
	for _, i := range indices {
		if !isNone(i) && isMask(b, i) {
			return true
		}
	}
	return false
}

// withoutMasks replaces each mask by the positions of its true elements, one index per dim of the mask; their number is known only
// at run time.
func withoutMasks(b *ir.Builder, x *ir.Value, indices []*ir.Value) []*ir.Value {
	var out []*ir.Value
	for at, i := range indices {
		if isNone(i) || !isMask(b, i) {
			out = append(out, i)
			continue
		}
		checkMask(b, x, i, len(out), at)
		out = append(out, positions(b, i)...)
	}
	return out
}

// positions are the indices of the true elements of a mask, one i64 vector per dim.
func positions(b *ir.Builder, mask *ir.Value) []*ir.Value {
	where := b.Op("nonzero", cast(b, mask, dtype.Bool))
	out := make([]*ir.Value, rank(b, mask))
	for d := range out {
		out[d] = squeezeDim(b, b.Op("slice", where, b.Int(1), b.Int(d), b.Int(d+1), b.Int(1)), 1)
	}
	return out
}

func index(b *ir.Builder, x *ir.Value, indices []*ir.Value) []*ir.Value {
	if hasMask(b, indices) {
		if at, ok := onlyIndex(indices); ok && rank(b, indices[at]) > 0 {
			return one(indexMask(b, x, indices[at], at))
		}
		x, indices = scalarMasks(b, x, indices)
		indices = withoutMasks(b, x, indices)
	}
	if t, unknown := unknownIndex(b, x, indices); unknown {
		return later(b, "index", []ir.Type{t}, x, b.List(indices...))
	}
	r := rowsFor(b, x, indices)
	if r == nil {
		return one(x)
	}
	out := b.Op("take", r.data, r.index)
	return one(permute(b, out, r.resultOrder(rank(b, r.index), rank(b, out))))
}

// scalarMasks turns 0-d masks, which add a dim, into masks of shape [1] over a new dim of size 1.
func scalarMasks(b *ir.Builder, x *ir.Value, indices []*ir.Value) (*ir.Value, []*ir.Value) {
	out := append([]*ir.Value{}, indices...)
	d := 0
	for i, v := range out {
		switch {
		case isNone(v) || !isMask(b, v):
			d++
		case rank(b, v) == 0:
			if d > rank(b, x) {
				b.Failf("too many indices for tensor of dimension %d", rank(b, x))
			}
			out[i] = reshape(b, v, []int{1})
			x = unsqueeze(b, x, d)
			d++
		default:
			d += rank(b, v)
		}
	}
	return x, out
}

// onlyIndex is the place of the only index that is not None.
func onlyIndex(indices []*ir.Value) (at int, ok bool) {
	at = -1
	for i, v := range indices {
		if isNone(v) {
			continue
		}
		if at >= 0 {
			return 0, false
		}
		at = i
	}
	return at, at >= 0
}

// isOnlyMask reports whether the only index is a mask: assigning one number through it is masked_fill, which converts the number.
func isOnlyMask(b *ir.Builder, indices []*ir.Value) bool {
	at, ok := onlyIndex(indices)
	return ok && isMask(b, indices[at])
}

// indexMask gives the rows where a mask is true; the mask covers the dims from at on.
func indexMask(b *ir.Builder, x, mask *ir.Value, at int) *ir.Value {
	checkMask(b, x, mask, at, at)
	shape, k := shapeOf(b, x), rank(b, mask)
	n := numel(b, mask)
	merged := append(append(append([]int{}, shape[:at]...), n), shape[at+k:]...)
	flat := moveDim(b, reshape(b, x, merged), at, 0)
	where := positions(b, reshape(b, mask, []int{n}))[0]
	return moveDim(b, b.Op("take", flat, where), 0, at)
}

// unknownIndex says whether a size that indexing must know is not known, and the result's type as far as it is.
func unknownIndex(b *ir.Builder, x *ir.Value, indices []*ir.Value) (t ir.Type, unknown bool) {
	unknown = !x.Type.Static()
	most, indexed := 0, 0
	for _, i := range indices {
		if isNone(i) {
			continue
		}
		indexed++
		most = max(most, rank(b, i))
		unknown = unknown || !i.Type.Static()
	}
	dims := make([]ir.Dim, max(0, rank(b, x)-indexed+most))
	for i := range dims {
		dims[i] = ir.Unknown
	}
	return ir.TensorDims(dt(b, x), dims), unknown
}

// rowsFor arranges x for integer indices; nil where all are None.
func rowsFor(b *ir.Builder, x *ir.Value, indices []*ir.Value) *rows {
	shape := shapeOf(b, x)
	if len(indices) > len(shape) {
		b.Failf("too many indices for tensor of dimension %d", len(shape))
	}
	var taken, kept []int
	var idx []*ir.Value
	for d := range shape {
		if d >= len(indices) || isNone(indices[d]) {
			kept = append(kept, d)
			continue
		}
		taken = append(taken, d)
		idx = append(idx, indices[d])
	}
	if len(taken) == 0 {
		return nil
	}
	for i, v := range idx {
		idx[i] = wrapIndex(b, cast(b, v, dtype.I64), shape[taken[i]])
	}
	idx = broadcastIndices(b, idx)
	r := &rows{order: append(append([]int{}, taken...), kept...), taken: len(taken)}
	if taken[len(taken)-1]-taken[0] == len(taken)-1 { // adjacent: the result's dims replace them
		r.at = taken[0]
	}
	for _, d := range r.order {
		r.shape = append(r.shape, shape[d])
	}
	n := product(r.shape[:len(taken)])
	r.data = reshape(b, permute(b, x, r.order), append([]int{n}, r.shape[len(taken):]...))
	r.index = idx[0]
	if len(idx) > 1 {
		r.index = linearIndex(b, idx, r.shape)
	}
	return r
}

func broadcastIndices(b *ir.Builder, idx []*ir.Value) []*ir.Value {
	shapes := make([][]int, len(idx))
	for i, v := range idx {
		shapes[i] = shapeOf(b, v)
	}
	for i := range shapes[1:] {
		if !broadcastable(shapes[0], shapes[i+1]) {
			b.Failf("IndexError: shape mismatch: indexing tensors could not be broadcast together with shapes %v", shapes)
		}
	}
	return broadcast(b, idx...)
}

func broadcastable(s, t []int) bool {
	for i, j := len(s)-1, len(t)-1; i >= 0 && j >= 0; i, j = i-1, j-1 {
		if s[i] != t[j] && s[i] != 1 && t[j] != 1 {
			return false
		}
	}
	return true
}

// wrapIndex makes negative indices count from the end.
func wrapIndex(b *ir.Builder, i *ir.Value, size int) *ir.Value {
	return apply(b, "where", apply(b, "lt", i, 0), apply(b, "add", i, size), i)
}

// linearIndex combines one index per dim. Each passes through a table of its dim's size, so that one that is out of range is
// reported rather than taken for another row.
func linearIndex(b *ir.Builder, idx []*ir.Value, shape []int) *ir.Value {
	var sum *ir.Value
	for k, i := range idx {
		checked := b.Op("take", counting(b, shape[k], dtype.I64), i)
		if sum == nil {
			sum = checked
			continue
		}
		sum = b.Op("add", apply(b, "mul", sum, shape[k]), checked)
	}
	return sum
}

// resultOrder puts the dims of the index, which come first in what take gives, where the result has them.
func (r *rows) resultOrder(indexRank, resultRank int) []int {
	order := make([]int, 0, resultRank)
	for i := range r.at {
		order = append(order, indexRank+i)
	}
	order = append(order, seq(indexRank)...)
	for i := indexRank + r.at; i < resultRank; i++ {
		order = append(order, i)
	}
	return order
}

func inverse(order []int) []int {
	out := make([]int, len(order))
	for i, d := range order {
		out[d] = i
	}
	return out
}

func indexPut(b *ir.Builder, x *ir.Value, indices []*ir.Value, values, accumulate *ir.Value) []*ir.Value {
	add := constBool(b, accumulate)
	if dv, dx := dt(b, values), dt(b, x); dv != dx && !(rank(b, values) == 0 && isOnlyMask(b, indices)) {
		b.Failf("Index put requires the source and destination dtypes match, got %s for the destination and %s for the source.", typeName(dx), typeName(dv))
	}
	values = cast(b, values, dt(b, x))
	if hasMask(b, indices) {
		if at, ok := onlyIndex(indices); ok && isSingle(values) && rank(b, indices[at]) > 0 {
			return one(putOneValue(b, x, indices[at], at, values, add))
		}
		y, vectors := scalarMasks(b, x, indices)
		indices = withoutMasks(b, y, vectors)
		if y != x { // 0-d masks
			out := indexPut(b, y, indices, values, accumulate)[0]
			return one(b.Op("reshape", out, b.Ints(shapeOf(b, x)...)))
		}
	}
	if _, unknown := unknownIndex(b, x, indices); unknown || !values.Type.Static() {
		return later(b, "index_put", []ir.Type{x.Type}, x, b.List(indices...), values, accumulate)
	}
	r := rowsFor(b, x, indices)
	if r == nil {
		r = rowsFor(b, unsqueeze(b, x, 0), []*ir.Value{fill(b, 0, dtype.I64, nil)})
	}
	part := append(append([]int{}, shapeOf(b, r.index)...), r.shape[r.taken:]...)
	order := r.resultOrder(rank(b, r.index), len(part))
	target := make([]int, len(part))
	for i, o := range order {
		target[i] = part[o]
	}
	if vs := shapeOf(b, values); len(vs) > len(target) || !fits(vs, target) {
		b.Failf("shape mismatch: value tensor of shape %v cannot be broadcast to indexing result of shape %v", vs, target)
	}
	src := permute(b, broadcastTo(b, values, target), inverse(order))
	out := b.Op("put", r.data, r.index, src, b.Bool(add))
	if len(r.order) > rank(b, x) { // no index at all: the dim added above goes
		return one(reshape(b, out, shapeOf(b, x)))
	}
	return one(permute(b, reshape(b, out, r.shape), inverse(r.order)))
}

// fits reports whether shape s broadcasts to t.
func fits(s, t []int) bool {
	return len(s) <= len(t) && broadcastable(s, t) && sameInts(broadcastMax(s, t), t)
}

func broadcastMax(s, t []int) []int {
	out := append([]int{}, t...)
	for i := range s {
		if k := len(t) - len(s) + i; s[i] != 1 {
			out[k] = s[i]
		}
	}
	return out
}

// putOneValue writes or adds one value where a mask is true; the mask covers the dims from at on.
func putOneValue(b *ir.Builder, x, mask *ir.Value, at int, value *ir.Value, add bool) *ir.Value {
	checkMask(b, x, mask, at, at)
	shape, k := shapeOf(b, x), rank(b, mask)
	aligned := append([]int{}, shapeOf(b, mask)...)
	aligned = append(aligned, ones(len(shape)-at-k)...)
	m := broadcastTo(b, reshape(b, cast(b, mask, dtype.Bool), aligned), shape)
	v := broadcastTo(b, reshape(b, value, nil), shape)
	if add {
		v = b.Op("add", x, v)
	}
	return b.Op("where", m, v, x)
}

// alongOneDim are functions with a vector of indices into one dim.
func alongOneDim() {
	def(Method|Torch, "index_select(Tensor self, int dim, Tensor index) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, dim, i := rowIndex(b, "index_select", args[0], args[1], args[2])
		out := moveDim(b, b.Op("take", moveDim(b, x, dim, 0), i), 0, dim)
		if rank(b, args[0]) == 0 {
			if n := numel(b, i); n != 1 {
				b.Failf("index_select(): Index to scalar can have only 1 value, got %d value(s)", n)
			}
			out = reshape(b, out, nil)
		}
		return one(out)
	})
	def(Method|Torch, "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		d := sameDType(b, "index_add(): self and source", args[0], args[3])
		needIndex(b, "index_add", args[2], dtype.I64, dtype.I32)
		return one(putRows(b, "index_add", args[0], args[1], args[2], timesAlpha(b, args[3], args[4], d), true))
	})
	def(Method|Torch, "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		sameDType(b, "index_copy(): self and source", args[0], args[3])
		needIndex(b, "index_copy", args[2], dtype.I64)
		return one(putRows(b, "index_copy", args[0], args[1], args[2], args[3], false))
	})
	fillRows := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x := args[0]
		if args[3].Type.IsTensor() && rank(b, args[3]) != 0 {
			b.Failf("index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).", rank(b, args[3]))
		}
		needIndex(b, "index_fill", args[2], dtype.I64)
		y, dim, i := rowIndex(b, "index_fill", x, args[1], args[2])
		// a mask, not a write of rows: a row that the index names twice is filled once, and counts once in the gradient of the value
		no := b.Op("full", b.Ints(shapeOf(b, y)[dim]), b.Bool(false), b.DType(dtype.Bool))
		filled := b.Op("put", no, wrapIndex(b, i, shapeOf(b, y)[dim]), b.Op("full", b.Ints(numel(b, i)), b.Bool(true), b.DType(dtype.Bool)), b.Bool(false))
		out := em{b}.where(along1(b, filled, dim, rank(b, y)), tensorArg(b, args[3], dt(b, x)), y)
		return one(reshape(b, out, shapeOf(b, x)))
	}
	def(Method|Torch, "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", fillRows)
	def(Method|Torch, "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", fillRows)
	def(Method|Torch, "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			needIndex(b, "index_reduce", args[2], dtype.I64, dtype.I32)
			x, dim, i := rowIndex(b, "index_reduce", args[0], args[1], args[2])
			src := args[3]
			if mode := constStr(b, args[4]); mode == "sum" {
				b.Failf("index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got sum: use index_add")
			}
			full := broadcastTo(b, along1(b, i, dim, rank(b, x)), shapeOf(b, src))
			return one(scatterReduce(b, x, dim, full, src, constStr(b, args[4]), constBool(b, args[5])))
		})
}

// along1 gives a vector the rank r, along dim.
func along1(b *ir.Builder, v *ir.Value, dim, r int) *ir.Value {
	return reshape(b, v, replace(ones(r), dim, numel(b, v)))
}

// rowIndex is a tensor, a dim and a vector of i64 indices; a 0-d tensor becomes one of shape [1].
func rowIndex(b *ir.Builder, fn string, x, dimArg, i *ir.Value) (*ir.Value, int, *ir.Value) {
	dim := wrapDim(b, constInt(b, dimArg), rank(b, x))
	needIndex(b, fn, i, dtype.I64, dtype.I32)
	if rank(b, i) > 1 {
		b.Failf("%s(): Index is supposed to be a vector, got shape %v", fn, i.Type.Shape())
	}
	if rank(b, i) == 0 {
		i = reshape(b, i, []int{1})
	}
	if rank(b, x) == 0 {
		x = reshape(b, x, []int{1})
	}
	return x, dim, cast(b, i, dtype.I64)
}

// needIndex stops unless an index tensor has one of the dtypes that a function takes.
func needIndex(b *ir.Builder, fn string, i *ir.Value, allowed ...dtype.DType) {
	d := dt(b, i)
	names := make([]string, len(allowed))
	for k, a := range allowed {
		if a == d {
			return
		}
		names[k] = typeName(a)
	}
	b.Failf("%s(): Expected a tensor of dtype %s for index, but got %s", fn, strings.Join(names, " or "), typeName(d))
}

// sameDType stops unless two tensors have one dtype, which it gives.
func sameDType(b *ir.Builder, what string, x, y *ir.Value) dtype.DType {
	dx, dy := dt(b, x), dt(b, y)
	if dx != dy {
		b.Failf("%s expected to have the same dtype, but got %s and %s", what, typeName(dx), typeName(dy))
	}
	return dx
}

// putRows writes or adds src at the indices i of a dim.
func putRows(b *ir.Builder, fn string, x, dimArg, i, src *ir.Value, add bool) *ir.Value {
	y, dim, i := rowIndex(b, fn, x, dimArg, i)
	want := replace(shapeOf(b, y), dim, numel(b, i))
	if rank(b, src) == 0 && product(want) == 1 {
		src = reshape(b, src, want)
	}
	if got := shapeOf(b, src); !sameInts(got, want) {
		b.Failf("%s(): Source/destination tensor must have same slice shapes: expected a source of shape %v for dimension %d and %d indices, got %v", fn, want, dim, numel(b, i), got)
	}
	out := b.Op("put", moveDim(b, y, dim, 0), i, moveDim(b, src, dim, 0), b.Bool(add))
	return reshape(b, moveDim(b, out, 0, dim), shapeOf(b, x))
}

func gathers() {
	def(Method|Torch, "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, dim, i := elementIndex(b, "gather", args[0], args[1], args[2])
		out := b.Op("gather", x, b.Int(dim), i)
		return one(reshape(b, out, shapeOf(b, args[2])))
	})
	def(Method|Torch, "take(Tensor self, Tensor index) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		n := numel(b, args[0])
		needIndex(b, "take", args[1], dtype.I64)
		return one(b.Op("take", reshape(b, args[0], []int{n}), wrapIndex(b, args[1], n)))
	})
	def(Method|Torch, "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		n := numel(b, args[0])
		sameDType(b, "put_(): self and source", args[0], args[2])
		i, src := args[1], args[2]
		needIndex(b, "put_", i, dtype.I64)
		if numel(b, i) != numel(b, src) {
			b.Failf("put_(): Expected source and index to have the same number of elements, but got source.numel() = %d, index.numel() = %d", numel(b, src), numel(b, i))
		}
		out := b.Op("put", reshape(b, args[0], []int{n}), wrapIndex(b, i, n), reshape(b, src, shapeOf(b, i)), b.Bool(constBool(b, args[3])))
		return one(reshape(b, out, shapeOf(b, args[0])))
	})
	def(Method|Torch, "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, i := args[0], args[1]
		if isNone(args[2]) {
			return one(b.Op("take", reshape(b, x, []int{numel(b, x)}), reshape(b, i, []int{numel(b, i)})))
		}
		if rank(b, x) != rank(b, i) {
			b.Failf("torch.take_along_dim(): input and indices should have the same number of dimensions, but got %d dimensions for input, and %d dimensions for indices", rank(b, x), rank(b, i))
		}
		dim := wrapDim(b, constInt(b, args[2]), rank(b, x))
		if rank(b, x) == 0 {
			x, i = reshape(b, x, []int{1}), reshape(b, i, []int{1})
			return one(reshape(b, b.Op("gather", x, b.Int(0), i), nil))
		}
		xs, is := shapeOf(b, x), shapeOf(b, i)
		both := broadcastShape(b, replace(xs, dim, 1), replace(is, dim, 1))
		x, i = broadcastTo(b, x, replace(both, dim, xs[dim])), broadcastTo(b, i, replace(both, dim, is[dim]))
		return one(b.Op("gather", x, b.Int(dim), i))
	})
}

// elementIndex is a tensor, a dim and an i64 index tensor of the same rank; 0-d tensors become vectors.
func elementIndex(b *ir.Builder, fn string, x, dimArg, i *ir.Value) (*ir.Value, int, *ir.Value) {
	dim := wrapDim(b, constInt(b, dimArg), rank(b, x))
	if d := dt(b, i); d != dtype.I64 {
		b.Failf("%s(): Expected dtype int64 for index, got %s", fn, typeName(d))
	}
	if rank(b, x) == 0 {
		x = reshape(b, x, []int{1})
	}
	if rank(b, i) == 0 {
		i = reshape(b, i, []int{1})
	}
	xs, is := shapeOf(b, x), shapeOf(b, i)
	if len(xs) != len(is) {
		b.Failf("Index tensor must have the same number of dimensions as input tensor: %s() got shapes %v and %v", fn, is, xs)
	}
	if product(is) > 0 {
		for d := range xs {
			if d != dim && is[d] > xs[d] {
				b.Failf("Size does not match at dimension %d expected index %v to be smaller than self %v apart from dimension %d", d, is, xs, dim)
			}
		}
	}
	return x, dim, i
}

func scatters() {
	values := func(f func(b *ir.Builder, x *ir.Value, dim int, i, src *ir.Value) *ir.Value) func(b *ir.Builder, fn string, args []*ir.Value) []*ir.Value {
		return func(b *ir.Builder, fn string, args []*ir.Value) []*ir.Value {
			x, dim, i := elementIndex(b, fn, args[0], args[1], args[2])
			src := args[3]
			if src.Type.IsTensor() {
				sameDType(b, fn+"(): self and src", x, src)
				src = cutTo(b, fn, src, shapeOf(b, i))
			} else {
				src = broadcastTo(b, tensorArg(b, src, dt(b, x)), shapeOf(b, i))
			}
			return one(reshape(b, f(b, x, dim, i, src), shapeOf(b, args[0])))
		}
	}
	plain := values(func(b *ir.Builder, x *ir.Value, dim int, i, src *ir.Value) *ir.Value {
		return b.Op("scatter", x, b.Int(dim), i, src)
	})
	scatter := func(b *ir.Builder, args []*ir.Value) []*ir.Value { return plain(b, "scatter", args) }
	def(Method|Torch, "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", scatter)
	def(Method|Torch, "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", scatter)
	reducing := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		mode := constStr(b, args[4])
		if mode != "add" && mode != "multiply" {
			b.Failf("reduce argument must be either add or multiply, got %s", mode)
		}
		mode = map[string]string{"add": "sum", "multiply": "prod"}[mode]
		return values(func(b *ir.Builder, x *ir.Value, dim int, i, src *ir.Value) *ir.Value {
			return scatterReduce(b, x, dim, i, src, mode, true)
		})(b, "scatter", args)
	}
	def(Method|Torch, "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor", reducing)
	def(Method|Torch, "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor", reducing)
	adding := values(func(b *ir.Builder, x *ir.Value, dim int, i, src *ir.Value) *ir.Value {
		return scatterReduce(b, x, dim, i, src, "sum", true)
	})
	def(Method|Torch, "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return adding(b, "scatter_add", args)
	})
	def(Method|Torch, "scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return values(func(b *ir.Builder, x *ir.Value, dim int, i, src *ir.Value) *ir.Value {
				return scatterReduce(b, x, dim, i, src, constStr(b, args[4]), constBool(b, args[5]))
			})(b, "scatter_reduce", args)
		})
}

// cutTo is the part of src that an index of the given shape uses.
func cutTo(b *ir.Builder, fn string, src *ir.Value, shape []int) *ir.Value {
	if rank(b, src) == 0 {
		src = reshape(b, src, []int{1})
	}
	have := shapeOf(b, src)
	if product(shape) == 0 {
		return reshape(b, sliceDim(b, reshape(b, src, []int{product(have)}), 0, 0, 0, 1), shape)
	}
	if len(have) != len(shape) {
		b.Failf("Index tensor must have the same number of dimensions as src tensor: %s() got shapes %v and %v", fn, shape, have)
	}
	for d, n := range shape {
		if n > have[d] {
			b.Failf("Expected index %v to be smaller than src %v in every dimension", shape, have)
		}
		src = sliceDim(b, src, d, 0, n, 1)
	}
	return src
}

// scatterReduce combines elements of src into x by sum, prod, mean, amax or amin.
func scatterReduce(b *ir.Builder, x *ir.Value, dim int, i, src *ir.Value, mode string, includeSelf bool) *ir.Value {
	prims := map[string]string{"sum": "add", "prod": "mul", "amax": "amax", "amin": "amin", "mean": "add"}
	prim, ok := prims[mode]
	if !ok {
		b.Failf("reduce argument must be either sum, prod, mean, amax or amin, got %s", mode)
	}
	out := b.Op("scatter_reduce", x, b.Int(dim), i, src, b.Str(prim), b.Bool(includeSelf))
	if mode != "mean" {
		return out
	}
	start := 1
	if !includeSelf {
		start = 0
	}
	n := b.Op("scatter_reduce", fillLike(b, start, x), b.Int(dim), i, fillLike(b, 1, src), b.Str("add"), b.Bool(true))
	n = apply(b, "maximum", n, 1)
	if dt(b, x).IsFloat() {
		return b.Op("div", out, n)
	}
	return b.Op("floor_div", out, n)
}

func masks() {
	def(Method|Torch, "masked_select(Tensor self, Tensor mask) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, mask := args[0], boolMask(b, "masked_select", args[1])
		xm := broadcast(b, x, mask)
		n := numel(b, xm[0])
		where := positions(b, reshape(b, xm[1], []int{n}))[0]
		return one(b.Op("take", reshape(b, xm[0], []int{n}), where))
	})
	fillMasked := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, mask, v := args[0], boolMask(b, "masked_fill", args[1]), args[2]
		if v.Type.IsTensor() && rank(b, v) != 0 {
			b.Failf("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).", rank(b, v))
		}
		return one(b.Op("where", broadcast(b, mask, tensorArg(b, v, dt(b, x)), x)...))
	}
	def(Method|Torch, "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", fillMasked)
	def(Method|Torch, "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", fillMasked)
	def(Method|Torch, "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		sameDType(b, "masked_scatter: self and source", args[0], args[2])
		xm := broadcast(b, args[0], boolMask(b, "masked_scatter", args[1]))
		shape := shapeOf(b, xm[0])
		n := product(shape)
		mask := reshape(b, xm[1], []int{n})
		if n == 0 {
			return one(xm[0])
		}
		// where the mask is false the place is 0, that of an element in front of the source's
		at := apply(b, "where", mask, b.Op("cumsum", cast(b, mask, dtype.I64), b.Int(0)), 0)
		src := concat(b, 0, fill(b, zeroOf(dt(b, xm[0])), dt(b, xm[0]), []int{1}), reshape(b, args[2], []int{numel(b, args[2])}))
		picked := reshape(b, b.Op("take", src, at), shape)
		return one(b.Op("where", xm[1], picked, xm[0]))
	})
	nonzero := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		rank(b, args[0])
		return one(b.Op("nonzero", cast(b, args[0], dtype.Bool)))
	}
	def(Method|Torch, "nonzero(Tensor self) -> Tensor", nonzero)
	def(Method|Torch, "argwhere(Tensor self) -> Tensor", nonzero)
	columns := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x := args[0]
		if rank(b, x) == 0 {
			x = reshape(b, x, []int{1})
		}
		return one(b.List(positions(b, x)...))
	}
	def(Method|Torch, "nonzero_numpy(Tensor self) -> Tensor[]", columns)
	def(Method|Torch, "nonzero.as_tuple(Tensor self, *, bool as_tuple) -> Tensor[]", columns)
	def(Torch, "where(Tensor condition) -> Tensor[]", columns)
	def(NN, "one_hot(Tensor self, int num_classes=-1) -> Tensor", oneHot)
}

func boolMask(b *ir.Builder, fn string, m *ir.Value) *ir.Value {
	switch d := dt(b, m); d {
	case dtype.Bool, dtype.U8:
		return cast(b, m, dtype.Bool)
	default:
		b.Failf("%s: expected BoolTensor for mask, got %s", fn, typeName(d))
		return nil
	}
}

// oneHot has as many classes as the largest value demands where num_classes is -1: that is known only at run time.
func oneHot(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, n := args[0], constInt(b, args[1])
	if dt(b, x) != dtype.I64 {
		b.Failf("one_hot is only applicable to index tensor: expected an int64 tensor, got %s", typeName(dt(b, x)))
	}
	shape := shapeOf(b, x)
	if n < 0 {
		if product(shape) == 0 {
			b.Failf("Can not infer total number of classes from empty tensor.")
		}
		classes := b.Op("py_add", b.Op("item_int", reduce(b, "amax", x, allDims(b, x), false)), b.Int(1))
		t := ir.TensorDims(dtype.I64, append(append([]ir.Dim{}, x.Type.Dims...), ir.Unknown))
		return later(b, "one_hot", []ir.Type{t}, x, classes)
	}
	zeros := fill(b, 0, dtype.I64, append(append([]int{}, shape...), n))
	i := unsqueeze(b, x, len(shape))
	return one(b.Op("scatter", zeros, b.Int(len(shape)), i, fillLike(b, 1, i)))
}
