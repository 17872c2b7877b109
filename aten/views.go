package aten

import (
	"fmt"

	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Views of a part of a tensor, and for each the function that writes into that part: select and select_scatter, ….

func init() {
	indexedViews()
	diagonals()
	triangles()
	strided()
}

func indexedViews() {
	def(Method|Torch, "select.int(Tensor self, int dim, int index) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		if dim, i, ok := laterSelection(b, args[0], args[1], args[2]); ok {
			return one(selectLater(b, args[0], dim, i))
		}
		dim, i := selection(b, args[0], args[1], args[2])
		return one(selectAt(b, args[0], dim, i))
	}, isView)
	def(Method|Torch, "select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x := args[0]
		if dim, i, ok := laterSelection(b, x, args[2], args[3]); ok {
			return one(overwriteLater(b, x, args[1], dim, i))
		}
		dim, i := selection(b, x, args[2], args[3])
		src := sameShape(b, "select_scatter", cast(b, args[1], dt(b, x)), remove(shapeOf(b, x), dim))
		return one(overwrite(b, x, unsqueeze(b, src, dim), dim, i, i+1, 1))
	})
	def(Hidden, "slice.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		dim, lo, hi, step := sliceBounds(b, args[0], args[1:])
		return one(sliceDim(b, args[0], dim, lo, hi, step))
	}, isView)
	def(Method|Torch, "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			x := args[0]
			dim, lo, hi, step := sliceBounds(b, x, args[2:])
			shape := replace(shapeOf(b, x), dim, (hi-lo+step-1)/step)
			return one(overwrite(b, x, sameShape(b, "slice_scatter", cast(b, args[1], dt(b, x)), shape), dim, lo, hi, step))
		})
	def(Method|Torch, "narrow(Tensor self, int dim, int start, int length) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x := args[0]
		dim, n := splitDim(b, x, args[1])
		start, length := constInt(b, args[2]), constInt(b, args[3])
		if start < -n || start > n {
			b.Failf("Dimension out of range: narrow(): start %d is out of range for dimension %d of size %d", start, dim, n)
		}
		if start < 0 {
			start += n
		}
		if length < 0 || start+length > n {
			b.Failf("start (%d) + length (%d) exceeds dimension size (%d).", start, length, n)
		}
		return one(sliceDim(b, x, dim, start, start+length, 1))
	}, isView)
	def(Method, "unfold(Tensor self, int dimension, int size, int step) -> Tensor", unfold, isView)
}

// sameShape is src, which must have the shape of the part of a tensor that it replaces.
func sameShape(b *ir.Builder, fn string, src *ir.Value, part []int) *ir.Value {
	if got := shapeOf(b, src); !sameInts(got, part) {
		b.Failf("%s: expected src to have a size equal to the slice of self. src size = %v, slice size = %v", fn, got, part)
	}
	return src
}

// selection is a dim and a non-negative index into it.
func selection(b *ir.Builder, x, dimArg, indexArg *ir.Value) (dim, i int) {
	r := rank(b, x)
	if r == 0 {
		b.Failf("select() cannot be applied to a 0-dim tensor.")
	}
	dim, i = wrapDim(b, constInt(b, dimArg), r), constInt(b, indexArg)
	if !x.Type.Dims[dim].Known() {
		b.Fail(ir.ErrNeedsTypes)
	}
	n := x.Type.Dims[dim].N
	if i < -n || i >= n {
		b.Failf("select(): index %d out of range for tensor of size %v at dimension %d", i, x.Type.Shape(), dim)
	}
	if i < 0 {
		i += n
	}
	return dim, i
}

// laterSelection is selection for an index that only the run will show, of a tensor of known shape: its wrapped value.
func laterSelection(b *ir.Builder, x, dimArg, indexArg *ir.Value) (dim int, i *ir.Value, ok bool) {
	if _, known := indexArg.Const(); known || indexArg.Type.Kind != ir.KInt || !x.Type.Static() || rank(b, x) == 0 {
		return 0, nil, false
	}
	dim = wrapDim(b, constInt(b, dimArg), rank(b, x))
	shape := x.Type.Shape()
	what := fmt.Sprintf("tensor of size %v at dimension %d", shape, dim)
	return dim, b.Op("wrap_index", indexArg, b.Int(shape[dim]), b.Str(what)), true
}

// selectLater is selectAt for such an index.
func selectLater(b *ir.Builder, x *ir.Value, dim int, i *ir.Value) *ir.Value {
	t := ir.TensorOf(dt(b, x), replace(shapeOf(b, x), dim, 1)...)
	end := b.Op("py_add", i, b.Int(1))
	part := b.Node(ir.LookupOp("slice"), ir.Attrs{}, nil, []ir.Type{t}, x, b.Int(dim), i, end, b.Int(1)).Results[0]
	return squeezeDim(b, part, dim)
}

// overwriteLater is x with src, broadcast, at such an index of dim.
func overwriteLater(b *ir.Builder, x, src *ir.Value, dim int, i *ir.Value) *ir.Value {
	shape := shapeOf(b, x)
	src = broadcastTo(b, cast(b, src, dt(b, x)), remove(shape, dim))
	line := replace(ones(len(shape)), dim, shape[dim])
	places := broadcastTo(b, reshape(b, counting(b, shape[dim], dtype.I64), line), shape)
	at := broadcastTo(b, b.Op("scalar_tensor", i, b.DType(dtype.I64)), shape)
	return b.Op("where", b.Op("eq", places, at), broadcastTo(b, unsqueeze(b, src, dim), shape), x)
}

// selectAt is index i of dim, which is dropped.
func selectAt(b *ir.Builder, x *ir.Value, dim, i int) *ir.Value {
	return squeezeDim(b, sliceDim(b, x, dim, i, i+1, 1), dim)
}

// sliceBounds are the operands dim, start, end and step of a slice, as Python's rules make them: 0 <= lo <= hi <= size.
func sliceBounds(b *ir.Builder, x *ir.Value, args []*ir.Value) (dim, lo, hi, step int) {
	r := rank(b, x)
	if r == 0 {
		b.Failf("slice() cannot be applied to a 0-dim tensor.")
	}
	dim = wrapDim(b, constInt(b, args[0]), r)
	step = optInt(b, args[3], 1)
	if step <= 0 {
		b.Failf("slice step must be positive, got %d", step)
	}
	if !x.Type.Dims[dim].Known() {
		b.Fail(ir.ErrNeedsTypes)
	}
	n := x.Type.Dims[dim].N
	lo, hi = clampIndex(optInt(b, args[1], 0), n), clampIndex(optInt(b, args[2], n), n)
	return dim, lo, max(lo, hi), step
}

// overwrite is x with src at the indices lo, lo+step, … below hi of dim; src has the shape of that part.
func overwrite(b *ir.Builder, x, src *ir.Value, dim, lo, hi, step int) *ir.Value {
	n := shapeOf(b, x)[dim]
	if lo >= hi {
		return x
	}
	if step == 1 {
		var pieces []*ir.Value
		if lo > 0 {
			pieces = append(pieces, sliceDim(b, x, dim, 0, lo, 1))
		}
		pieces = append(pieces, src)
		if hi < n {
			pieces = append(pieces, sliceDim(b, x, dim, hi, n, 1))
		}
		return concat(b, dim, pieces...)
	}
	inside := make([]bool, n)
	for i := lo; i < hi; i += step {
		inside[i] = true
	}
	shape := ones(rank(b, x))
	shape[dim] = n
	mask := ir.NewArray(dtype.Bool, shape...)
	for i, in := range inside {
		if in {
			mask.SetInt(i, 1)
		}
	}
	spread := spreadOut(b, src, dim, lo, step, n)
	return b.Op("where", broadcast(b, b.Const(mask), spread, x)...)
}

// spreadOut places src at the indices lo, lo+step, … of a dim of size n, with zeros elsewhere.
func spreadOut(b *ir.Builder, src *ir.Value, dim, lo, step, n int) *ir.Value {
	return b.Op("unslice", src, b.Int(dim), b.Int(lo), b.Int(step), b.Int(n))
}

// unfold is the view of all windows of a dim; the window becomes the last dim.
func unfold(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x := args[0]
	shape := shapeOf(b, x)
	dim, size, step := wrapDim(b, constInt(b, args[1]), len(shape)), constInt(b, args[2]), constInt(b, args[3])
	if len(shape) == 0 {
		x, shape = reshape(b, x, []int{1}), []int{1}
	}
	switch {
	case size < 0 || size > shape[dim]:
		b.Failf("maximum size for tensor at dimension %d is %d but size is %d", dim, shape[dim], size)
	case step <= 0:
		b.Failf("step is %d but must be > 0", step)
	}
	last := len(shape) - 1
	if size == 0 {
		return one(fill(b, zeroOf(dt(b, x)), dt(b, x), append(replace(shape, dim, shape[dim]/step+1), 0)))
	}
	w := b.Op("windows", moveDim(b, x, dim, last), b.Ints(size), b.Ints(step), b.Ints(1))
	return one(moveDim(b, w, last, dim))
}

func diagonals() {
	def(Method|Torch, "diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		d1, d2 := twoDims(b, rank(b, args[0]), args[2], args[3])
		return one(diagonal(b, args[0], constInt(b, args[1]), d1, d2))
	}, isView)
	def(Linalg, "linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		d1, d2 := twoDims(b, rank(b, args[0]), args[2], args[3])
		return one(diagonal(b, args[0], constInt(b, args[1]), d1, d2))
	}, isView)
	alias(Linalg, "diagonal", "linalg_diagonal")
	def(Method|Torch, "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			x, offset := args[0], constInt(b, args[2])
			d1, d2 := twoDims(b, rank(b, x), args[3], args[4])
			part := shapeOf(b, diagonal(b, x, offset, d1, d2))
			src := sameShape(b, "diagonal_scatter", cast(b, args[1], dt(b, x)), part)
			shape := shapeOf(b, x)
			placed := onDiagonal(b, src, offset, d1, d2, shape[d1], shape[d2])
			return one(b.Op("where", broadcast(b, diagonalMask(b, len(shape), d1, d2, shape[d1], shape[d2], offset), placed, x)...))
		})
	def(Method|Torch, "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		d1, d2 := twoDims(b, rank(b, args[0])+1, args[2], args[3])
		return one(diagEmbed(b, args[0], constInt(b, args[1]), d1, d2))
	})
	def(Method|Torch, "diag(Tensor self, int diagonal=0) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		switch k := constInt(b, args[1]); rank(b, args[0]) {
		case 1:
			return one(diagEmbed(b, args[0], k, 0, 1))
		case 2:
			return one(diagonal(b, args[0], k, 0, 1))
		}
		b.Failf("diag(): Supports 1D or 2D tensors. Got %dD", rank(b, args[0]))
		return nil
	})
	def(Method|Torch, "diagflat(Tensor self, int offset=0) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(diagEmbed(b, reshape(b, args[0], []int{numel(b, args[0])}), constInt(b, args[1]), 0, 1))
	})
	def(Method|Torch, "trace(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		if rank(b, args[0]) != 2 {
			b.Failf("trace: expected a matrix, but got tensor with dim %d", rank(b, args[0]))
		}
		return one(total(b, "sum", diagonal(b, args[0], 0, 0, 1), []int{0}, false, b.None()))
	})
}

// twoDims are two different dims.
func twoDims(b *ir.Builder, r int, a1, a2 *ir.Value) (d1, d2 int) {
	d1, d2 = wrapDim(b, constInt(b, a1), r), wrapDim(b, constInt(b, a2), r)
	if d1 == d2 {
		b.Failf("diagonal dimensions cannot be identical %d, %d", constInt(b, a1), constInt(b, a2))
	}
	return d1, d2
}

func diagonal(b *ir.Builder, x *ir.Value, offset, d1, d2 int) *ir.Value {
	return b.Op("diagonal", x, b.Int(offset), b.Int(d1), b.Int(d2))
}

func diagEmbed(b *ir.Builder, x *ir.Value, offset, d1, d2 int) *ir.Value {
	shape := shapeOf(b, x)
	n := shape[len(shape)-1] + max(offset, -offset)
	placed := onDiagonal(b, x, offset, d1, d2, n, n)
	return apply(b, "where", diagonalMask(b, len(shape)+1, d1, d2, n, n, offset), placed, b.Const(zeroArray(dt(b, x))))
}

func zeroArray(d dtype.DType) *ir.Array { return ir.NewArray(d) }

// onDiagonal gives a tensor with dims d1 and d2 of sizes n1 and n2 whose diagonal is the last dim of src; elsewhere it repeats
// some elements of src.
func onDiagonal(b *ir.Builder, src *ir.Value, offset, d1, d2, n1, n2 int) *ir.Value {
	shape := shapeOf(b, src)
	last := len(shape) - 1
	lo := max(-offset, 0) // element k is in row lo+k, and is repeated along the row
	hi := n1 - lo - shape[last]
	pads := make([]int, last+1)
	src = b.Op("pad", src, b.Ints(replace(pads, last, lo)...), b.Ints(replace(pads, last, hi)...), b.Const(zeroOf(dt(b, src))))
	row := d1 // its place before d2 is inserted
	if d1 > d2 {
		row--
	}
	src = unsqueeze(b, moveDim(b, src, last, row), d2)
	return broadcastTo(b, src, replace(shapeOf(b, src), d2, n2))
}

// diagonalMask is true where the index in dim d2 is that in d1 plus offset; it broadcasts against tensors of rank r.
func diagonalMask(b *ir.Builder, r, d1, d2, n1, n2, offset int) *ir.Value {
	return b.Op("eq", broadcast(b, along(b, r, d2, n2, 0), along(b, r, d1, n1, offset))...)
}

// along is start, start+1, … along dim d of a tensor of rank r whose other sizes are 1.
func along(b *ir.Builder, r, d, n, start int) *ir.Value {
	x := reshape(b, counting(b, n, dtype.I64), replace(ones(r), d, n))
	if start == 0 {
		return x
	}
	return apply(b, "add", x, start)
}

func triangles() {
	for name, keep := range map[string]string{"tril": "le", "triu": "ge"} {
		def(Method|Torch, name+"(Tensor self, int diagonal=0) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			x := args[0]
			shape := shapeOf(b, x)
			r := len(shape)
			if r < 2 {
				b.Failf("%s: input tensor must have at least 2 dimensions", name)
			}
			mask := b.Op(keep, broadcast(b, along(b, 2, 1, shape[r-1], 0), along(b, 2, 0, shape[r-2], constInt(b, args[1])))...)
			return one(b.Op("where", broadcast(b, mask, x, b.Const(zeroArray(dt(b, x))))...))
		})
		def(Torch, name+"_indices(int row, int col, int offset=0, *, ScalarType? dtype=i64, str? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
			func(b *ir.Builder, args []*ir.Value) []*ir.Value {
				return one(triangleIndices(b, name == "tril", constInt(b, args[0]), constInt(b, args[1]), constInt(b, args[2]), optDType(b, args[3], dtype.I64)))
			})
	}
}

func triangleIndices(b *ir.Builder, lower bool, rows, cols, offset int, d dtype.DType) *ir.Value {
	if rows < 0 || cols < 0 {
		b.Failf("row and col must be non-negative, got %d and %d", rows, cols)
	}
	needFew(b, rows, "rows")
	needFew(b, cols, "columns")
	needFew(b, rows*cols, "elements")
	var is, js []float64
	for i := range rows {
		for j := range cols {
			if in := j-i <= offset; lower && in || !lower && j-i >= offset {
				is, js = append(is, float64(i)), append(js, float64(j))
			}
		}
	}
	return b.Const(ir.FromFloats(d, []int{2, len(is)}, append(is, js...)))
}

func strided() {
	def(Method|Torch, "as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, n := args[0], numel(b, args[0])
		return one(b.Op("take", reshape(b, x, []int{n}), stridedIndex(b, n, args[1], args[2], args[3])))
	}, isView)
	def(Method|Torch, "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
		func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			x, n := args[0], numel(b, args[0])
			index := stridedIndex(b, n, args[2], args[3], args[4])
			src := broadcastTo(b, cast(b, args[1], dt(b, x)), shapeOf(b, index))
			return one(reshape(b, b.Op("put", reshape(b, x, []int{n}), index, src, b.Bool(false)), shapeOf(b, x)))
		})
}

// stridedIndex is the tensor of element positions that sizes and strides describe within n elements.
func stridedIndex(b *ir.Builder, n int, sizeArg, strideArg, offsetArg *ir.Value) *ir.Value {
	sizes, strides, offset := constInts(b, sizeArg), constInts(b, strideArg), optInt(b, offsetArg, 0)
	if len(sizes) != len(strides) {
		b.Failf("mismatch in length of strides and shape: %v and %v", strides, sizes)
	}
	last := offset
	for d, s := range sizes {
		if s < 0 || strides[d] < 0 {
			b.Failf("as_strided: negative sizes and strides are not supported, got sizes %v and strides %v", sizes, strides)
		}
		if s > 0 && last < math.MaxInt32 {
			last += (s - 1) * strides[d]
		}
	}
	if product(sizes) > 0 && (offset < 0 || last >= n) {
		b.Failf("setStorage: sizes %v, strides %v, storage offset %d are out of bounds for a tensor of %d elements", sizes, strides, offset, n)
	}
	index := fill(b, offset, dtype.I64, ones(len(sizes)))
	for d, s := range sizes {
		index = apply(b, "add", index, apply(b, "mul", along(b, len(sizes), d, s, 0), strides[d]))
	}
	return broadcastTo(b, index, sizes)
}
