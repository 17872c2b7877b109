package ir

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/gtc-project/gtc/ir/dtype"
)

// The ops that move elements without changing them, and their gradients' counterparts, which add where elements meet.

var (
	_ = register(&Op{
		Name: "concat", Doc: "The tensors of a list one after another along dim; the other dims are equal.",
		Params: []string{"tensors", "dim"}, Class: Move,
		Infer: inferConcat, Eval: checked(evalConcat), Grad: gradConcat,
	})
	_ = register(&Op{
		Name: "split_like", Doc: "The inverse of concat: x cut along dim into tensors of the shapes of those in the list like.",
		Params: []string{"x", "like", "dim"}, Class: Move,
		Infer: inferSplitLike, Eval: checked(evalSplitLike),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			return []*Value{b.Op("concat", ct[0], n.Args[2]), nil, nil}
		},
	})
	_ = register(&Op{
		Name: "pad", Doc: "x with lo[i] elements of value before and hi[i] after it along every dim i.",
		Params: []string{"x", "lo", "hi", "value"}, Class: Move,
		Infer: inferPad, Eval: checked(evalPad), Grad: gradPad,
	})
	_ = register(&Op{
		Name: "unslice", Doc: "Zeros of the given size along dim with x written at start, start+step, …; the inverse of slice.",
		Params: []string{"x", "dim", "start", "step", "size"}, Class: Move,
		Infer: inferUnslice,
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
			x, dim := c.Array(0), c.Int(1)
			y, err := tensorOf(out[0])
			if err != nil {
				return nil, err
			}
			strides := append([]int{}, y.Strides...)
			strides[dim] *= c.Int(3)
			assign(y.View(x.Shape, strides, c.Int(2)*y.Strides[dim]), x)
			return one(y)
		}),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			b.NeedRank(n.Args[0])
			dim := b.constInt(n.Args[1])
			span := b.mulInt(b.SizeOf(n.Args[0], dim), n.Args[3])
			stop := b.minInt(b.addInt(n.Args[2], span), n.Args[4])
			return only(5, 0, b.Op("slice", ct[0], n.Args[1], n.Args[2], stop, n.Args[3]))
		},
	})
	_ = register(&Op{
		Name: "fold", Doc: "The sum of overlapping windows, the inverse of windows: x[A…,OH,OW,KH,KW] -> [A…,H,W] of the given sizes; every element adds its windows in row-major order of (KH,KW).",
		Params: []string{"x", "sizes", "strides", "dilations"}, Class: Move,
		Infer: inferFold, Eval: checked(evalFold),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			x := n.Args[0]
			r, k := b.NeedRank(x), len(b.constDims(n.Args[2]))
			return only(4, 0, b.Op("windows", ct[0], b.sizesOf(x, iotaInts(r)[r-k:]...), n.Args[2], n.Args[3]))
		},
	})
	_ = register(&Op{
		Name: "undiagonal", Doc: "Zeros of the given shape with x on the diagonal; the inverse of diagonal.",
		Params: []string{"x", "offset", "dim1", "dim2", "shape"}, Class: Move,
		Infer: inferUndiagonal,
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
			y, err := tensorOf(out[0])
			if err != nil {
				return nil, err
			}
			assign(diagonalView(y, c.Array(0).Shape, c.Int(1), c.Int(2), c.Int(3)), c.Array(0))
			return one(y)
		}),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			return only(5, 0, b.Op("diagonal", ct[0], n.Args[1], n.Args[2], n.Args[3]))
		},
	})
	_ = register(&Op{
		Name: "gather", Doc: "torch.gather: the result has index's shape, its element at [i…] is x at [i…] with index[i…] in place of the index along dim.",
		Params: []string{"x", "dim", "index"}, Class: Move, Effect: MayFail,
		Infer: inferGather, Eval: checked(evalGather),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			return only(3, 0, b.Op("scatter_reduce", b.fullLike(n.Args[0], 0), n.Args[1], n.Args[2], ct[0], b.Str("add"), b.Bool(true)))
		},
	})
	_ = register(&Op{
		Name: "scatter", Doc: "torch.scatter: x with src[i…] written at [i…] with index[i…] in place of the index along dim; the last of equal indices in row-major order wins.",
		Params: []string{"x", "dim", "index", "src"}, Class: Move, Effect: MayFail,
		Infer: inferScatter, Eval: checked(evalScatter),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			dim, index := n.Args[1], n.Args[2]
			return []*Value{b.Op("scatter", ct[0], dim, index, b.fullLike(n.Args[3], 0)), nil, nil, b.Op("gather", ct[0], dim, index)}
		},
	})
	_ = register(&Op{
		Name: "scatter_reduce", Doc: "Like scatter, but elements that meet are combined by mode add, mul, amax or amin, in row-major order of index; with include_self x's own element takes part.",
		Params: []string{"x", "dim", "index", "src", "mode", "include_self"}, Class: Move, Effect: MayFail,
		Infer: inferScatter, Eval: checked(evalScatterReduce), Grad: gradScatterReduce,
	})
	_ = register(&Op{
		Name: "take", Doc: "Rows of x: index of any shape with values in 0…n-1, x[n, rest…] -> [index shape…, rest…].",
		Params: []string{"x", "index"}, Class: Move, Effect: MayFail,
		Infer: inferTake, Eval: checked(evalTake),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			return []*Value{b.Op("put", b.fullLike(n.Args[0], 0), n.Args[1], ct[0], b.Bool(true)), nil}
		},
	})
	_ = register(&Op{
		Name: "put", Doc: "x with rows replaced by those of src, or with accumulate added to: index of any shape, x[n, rest…], src [index shape…, rest…]; rows are handled in row-major order of index.",
		Params: []string{"x", "index", "src", "accumulate"}, Class: Move, Effect: MayFail,
		Infer: inferPut, Eval: checked(evalPut),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			gx := ct[0]
			if !b.constBool(n.Args[3]) {
				gx = b.Op("put", ct[0], n.Args[1], b.fullLike(n.Args[2], 0), b.Bool(false))
			}
			return []*Value{gx, nil, b.Op("take", ct[0], n.Args[1]), nil}
		},
	})
	_ = register(&Op{
		Name: "sort", Doc: "x sorted along dim and the i64 indices of the sorted elements; NaN is greatest, equal elements keep their order (whether stable is asked for or not).",
		Params: []string{"x", "dim", "descending", "stable"}, Class: Move,
		Infer: inferSort, Eval: checked(evalSort),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			if ct[0] == nil {
				return make([]*Value, 4)
			}
			// every index occurs once, so scatter inverts the gather that sorting is
			return only(4, 0, b.Op("scatter", b.fullLike(n.Args[0], 0), n.Args[1], n.Results[1], ct[0]))
		},
	})
	_ = register(&Op{
		Name: "nonzero", Doc: "The indices of the elements that are not zero, in row-major order: i64[n, rank], n known only at run time.",
		Params: []string{"x"}, Class: Move, NoGrad: true,
		Infer: func(c *Call) ([]Type, error) {
			if err := c.need(1); err != nil {
				return nil, err
			}
			x, err := c.tensor(0)
			return []Type{TensorOf(dtype.I64, -1, x.Rank())}, err
		},
		Eval: func(c *EvalCall) ([]Datum, error) {
			if _, err := actualTypes(c); err != nil {
				return nil, err
			}
			return one(nonzero(c.Array(0)))
		},
	})
)

// listTypes are the types of the elements of list operand i; exact is false where their number is not known (then one type, that
// of every element, is given).
func (c *Call) listTypes(i int) (types []Type, exact bool, err error) {
	if i >= len(c.Args) {
		return nil, false, c.Errorf("operand %s is missing: expected %d operands", c.param(i), len(c.Op.Params))
	}
	switch t := c.Args[i]; {
	case t.Kind != KList && t.Kind != KAny:
		return nil, false, c.Errorf("expected a list of tensors for %s, got %s", c.param(i), t)
	case i < len(c.Vals) && c.Vals[i].Def != nil && c.Vals[i].Def.Op == OpList:
		types, exact = valueTypes(c.Vals[i].Def.Args), true
	default:
		if d, ok := c.Const(i); ok {
			l, isList := d.(List)
			if !isList {
				return nil, false, c.Errorf("expected a list of tensors for %s, got %s", c.param(i), TypeOf(d))
			}
			for _, e := range l.Elems() {
				types = append(types, TypeOf(e))
			}
			exact = true
		} else if t.Kind == KList {
			types = []Type{t.Elems[0]}
		} else {
			types = []Type{AnyTensor}
		}
	}
	for k, t := range types {
		if t.Kind == KAny {
			types[k] = AnyTensor
		} else if t.Kind != KTensor {
			return nil, false, c.Errorf("expected a list of tensors for %s, element %d is %s", c.param(i), k, t)
		}
	}
	return types, exact, nil
}

func inferConcat(c *Call) ([]Type, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	types, exact, err := c.listTypes(0)
	if err != nil {
		return nil, err
	}
	if len(types) == 0 {
		return nil, c.Errorf("expected a non-empty list of tensors")
	}
	d, err := c.sameDType(types...)
	if err != nil {
		return nil, err
	}
	out := Type{Kind: KTensor, DType: d}
	dim, known, err := c.dimArg(1, types[0])
	if err != nil {
		return nil, err
	}
	for i, t := range types {
		switch {
		case !t.Ranked:
			return t1(out.unranked())
		case i == 0:
			out = out.withDims(append([]Dim{}, t.Dims...))
			continue
		case len(t.Dims) != len(out.Dims):
			return nil, c.Errorf("expected tensors with the same number of dimensions, got shapes %s and %s", shapeString(types[0]), shapeString(t))
		case !known:
			continue
		}
		for k, s := range t.Dims {
			switch {
			case k == dim && (!s.Known() || !out.Dims[k].Known()):
				out.Dims[k] = Unknown
			case k == dim:
				out.Dims[k] = Dim{N: out.Dims[k].N + s.N}
			case dimsDiffer(s, out.Dims[k]):
				return nil, c.Errorf("sizes of tensors must match except in dimension %d: expected size %d but got size %d for tensor number %d in the list, shapes %s and %s",
					dim, out.Dims[k].N, s.N, i, shapeString(types[0]), shapeString(t))
			default:
				out.Dims[k] = meetDim(out.Dims[k], s)
			}
		}
	}
	switch {
	case !known:
		out.Dims = unknownDims(len(out.Dims))
	case !exact:
		out.Dims[dim] = Unknown
	}
	return t1(out)
}

// arrays are the elements of list operand i.
func (c *EvalCall) arrays(i int) []*Array {
	l := c.Args[i].(List)
	out := make([]*Array, l.Len())
	for k, e := range l.Elems() {
		out[k] = e.(*Array)
	}
	return out
}

func evalConcat(c *EvalCall, out []Type) ([]Datum, error) {
	y, err := tensorOf(out[0])
	if err != nil {
		return nil, err
	}
	dim, at := c.Int(1), 0
	for _, x := range c.arrays(0) {
		assign(y.View(x.Shape, y.Strides, at*y.Strides[dim]), x)
		at += x.Shape[dim]
	}
	return one(y)
}

func gradConcat(b *Builder, n *Node, ct []*Value) []*Value {
	list, dim := n.Args[0], n.Args[1]
	if list.Def == nil || list.Def.Op != OpList {
		return []*Value{b.Op("split_like", ct[0], list, dim), nil}
	}
	d := b.constInt(dim)
	at := b.Int(0)
	parts := make([]*Value, len(list.Def.Args))
	for i, x := range list.Def.Args {
		b.NeedRank(x)
		end := b.addInt(at, b.SizeOf(x, d))
		parts[i] = b.Op("slice", ct[0], dim, at, end, b.Int(1))
		at = end
	}
	return []*Value{b.List(parts...), nil}
}

func inferSplitLike(c *Call) ([]Type, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	types, _, err := c.listTypes(1)
	if err != nil {
		return nil, err
	}
	if _, _, err := c.dimArg(2, x); err != nil {
		return nil, err
	}
	return t1(ListOf(joinTypes(types).withDType(x.DType)))
}

func evalSplitLike(c *EvalCall, out []Type) ([]Datum, error) {
	x, dim, at := c.Array(0), c.Int(2), 0
	var parts []Datum
	for _, l := range c.arrays(1) {
		if len(l.Shape) != len(x.Shape) || at+l.Shape[dim] > x.Shape[dim] {
			return nil, fmt.Errorf("a tensor of shape %v cannot be split along dimension %d into the shapes of the list: sizes do not match", x.Shape, dim)
		}
		shape := append([]int{}, x.Shape...)
		shape[dim] = l.Shape[dim]
		parts = append(parts, x.View(shape, x.Strides, x.Offset+at*x.Strides[dim]))
		at += l.Shape[dim]
	}
	return one(NewList(parts...))
}

func inferPad(c *Call) ([]Type, error) {
	if err := c.need(4); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	if _, _, err := c.scalarArg(3, KInt, KFloat, KBool); err != nil {
		return nil, err
	}
	l, k, err := c.windowArgs(1, 2)
	if err != nil {
		return nil, err
	}
	switch {
	case k < 0:
		if x.Ranked {
			x = x.withDims(unknownDims(len(x.Dims)))
		}
		return t1(x)
	case !x.Ranked:
		return t1(x.withDims(unknownDims(k)))
	case len(x.Dims) != k:
		return nil, c.Errorf("expected padding for the %d dimensions of shape %s, got %d entries", len(x.Dims), dimsString(x.Dims), k)
	}
	dims := make([]Dim, k)
	for i, d := range x.Dims {
		lo, hi := l[0][i], l[1][i]
		switch {
		case lo.N == 0 && hi.N == 0:
			dims[i] = d
		case d.Known() && lo.Known() && hi.Known():
			dims[i] = Dim{N: satAdd(satAdd(d.N, lo.N), hi.N)}
		default:
			dims[i] = Unknown
		}
	}
	return t1(x.withDims(dims))
}

func evalPad(c *EvalCall, out []Type) ([]Datum, error) {
	x, lo := c.Array(0), c.Ints(1)
	y, err := tensorOf(out[0])
	if err != nil {
		return nil, err
	}
	fill(y, c.Args[3])
	at := 0
	for i, n := range lo {
		at += n * y.Strides[i]
	}
	assign(y.View(x.Shape, y.Strides, at), x)
	return one(y)
}

func gradPad(b *Builder, n *Node, ct []*Value) []*Value {
	g := ct[0]
	x, lo, hi := n.Args[0], n.Args[1], n.Args[2]
	for i := 0; i < b.NeedRank(x); i++ {
		l := b.elem(lo, i)
		if p, q, ok := constInts(l, b.elem(hi, i)); ok && p == 0 && q == 0 {
			continue
		}
		g = b.Op("slice", g, b.Int(i), l, b.addInt(l, b.SizeOf(x, i)), b.Int(1))
	}
	return only(4, 0, g)
}

func inferUnslice(c *Call) ([]Type, error) {
	if err := c.need(5); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	dim, dimKnown, err := c.dimArg(1, x)
	if err != nil {
		return nil, err
	}
	var v [3]int
	known := true
	for i := range v {
		n, k, err := c.intArg(2 + i)
		if err != nil {
			return nil, err
		}
		v[i], known = n, known && k
	}
	if known && (v[0] < 0 || v[1] < 1 || v[2] < 0) {
		return nil, c.Errorf("expected start >= 0, step >= 1 and size >= 0, got start %d, step %d, size %d", v[0], v[1], v[2])
	}
	if !x.Ranked {
		return t1(x)
	}
	if !dimKnown {
		return t1(x.withDims(unknownDims(len(x.Dims))))
	}
	dims := append([]Dim{}, x.Dims...)
	dims[dim] = Unknown
	if size, ok, _ := c.intArg(4); ok && size >= 0 {
		dims[dim] = Dim{N: size}
	} else if len(c.Vals) == 5 {
		dims[dim] = sizeValue(c.Vals[4])
	}
	if n := x.Dims[dim]; known && n.N > 0 && satAdd(v[0], satMul(n.N-1, v[1])) >= v[2] {
		return nil, c.Errorf("%d elements from %d by %d are out of range for dimension %d of size %d", n.N, v[0], v[1], dim, v[2])
	}
	return t1(x.withDims(dims))
}

func inferFold(c *Call) ([]Type, error) {
	if err := c.need(4); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	if x.DType == dtype.Bool {
		return nil, c.Errorf("expected a tensor of numbers, got %s", x)
	}
	l, k, err := c.windowArgs(1, 2, 3)
	if err != nil || k < 0 || !x.Ranked {
		return []Type{x.unranked()}, err
	}
	lead := len(x.Dims) - 2*k
	if lead < 0 {
		return nil, c.Errorf("expected a tensor with at least %d dimensions, got shape %s", 2*k, dimsString(x.Dims))
	}
	dims := append([]Dim{}, x.Dims[:lead]...)
	for i := 0; i < k; i++ {
		size, st, dil := l[0][i], l[1][i], l[2][i]
		o, win := x.Dims[lead+i], x.Dims[lead+k+i]
		if st.N == 0 || dil.N == 0 || win.N == 0 {
			return nil, c.Errorf("expected positive window sizes, strides and dilations, got windows %s, %s, %s", dimsString(x.Dims[lead+k:]), dimsString(l[1]), dimsString(l[2]))
		}
		if size.Known() && st.Known() && dil.Known() && o.Known() && win.Known() {
			span := satAdd(satMul(win.N-1, dil.N), 1)
			if span > size.N || (size.N-span)/st.N+1 != o.N {
				return nil, c.Errorf("%d windows of size %d, stride %d, dilation %d do not match the expected size %d at dimension %d of shape %s", o.N, win.N, st.N, dil.N, size.N, lead+i, dimsString(x.Dims))
			}
		}
		dims = append(dims, size)
	}
	return t1(x.withDims(dims))
}

func evalFold(c *EvalCall, out []Type) ([]Datum, error) {
	switch x := c.Array(0); {
	case x.DType == dtype.F64:
		return fold[float64](c, out[0])
	case x.DType.IsFloat():
		return fold[float32](c, out[0])
	}
	return fold[int64](c, out[0])
}

// fold adds window by window: for every offset in the window, in row-major order, all positions. Halves add in f32 and round once.
func fold[T number](c *EvalCall, t Type) ([]Datum, error) {
	x, strides, dilations := c.Array(0), c.Ints(2), c.Ints(3)
	y, err := tensorOf(t)
	if err != nil {
		return nil, err
	}
	k := len(strides)
	lead := len(x.Shape) - 2*k
	// the windows of the result, with the window dims first: the order in which elements are added
	order := append(iotaInts(2 * k)[k:], iotaInts(k)...)
	acc := make([]T, y.Len())
	win := permuteTail(windowsView(y, x.Shape, strides, dilations), lead, order)
	src := permuteTail(x, lead, order)
	ds, ss := rowStride(win), rowStride(src)
	if sums, ok := any(acc).([]float32); ok && x.DType == dtype.F32 {
		eachRow([]*Array{win, src}, func(off []int, n int) { addRow(sums, off[0], ds, x.Data, off[1], ss, n) })
	} else {
		vals := load[T](src)
		at := 0
		win.EachRow(func(off, n, _ int) {
			for _, v := range vals[at : at+n] {
				acc[off] += v
				off += ds
			}
			at += n
		})
	}
	store(y, acc)
	return one(y)
}

// addRow adds n f32 elements of a strided row to a strided row of sums.
func addRow(sums []float32, d, ds int, src []byte, s, ss, n int) {
	if ds == 1 {
		row := sums[d : d+n]
		for i := range row {
			row[i] += math.Float32frombits(binary.LittleEndian.Uint32(src[s*4:]))
			s += ss
		}
		return
	}
	for ; n > 0; n-- {
		sums[d] += math.Float32frombits(binary.LittleEndian.Uint32(src[s*4:]))
		d, s = d+ds, s+ss
	}
}

// permuteTail permutes the dims from lead on.
func permuteTail(a *Array, lead int, order []int) *Array {
	dims := iotaInts(lead)
	for _, d := range order {
		dims = append(dims, lead+d)
	}
	return permuteView(a, dims)
}

func inferUndiagonal(c *Call) ([]Type, error) {
	if err := c.need(5); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	sizes, known, err := c.listArg(4)
	if err != nil {
		return nil, err
	}
	off, offKnown, err := c.intArg(1)
	if err != nil {
		return nil, err
	}
	out := x.unranked()
	if known {
		out = x.withDims(sizes)
	}
	d1, known1, err := c.dimArg(2, out)
	if err != nil {
		return nil, err
	}
	d2, known2, err := c.dimArg(3, out)
	if err != nil {
		return nil, err
	}
	if known1 && known2 && d1 == d2 {
		return nil, c.Errorf("diagonal dimensions cannot be identical, got %d and %d", d1, d2)
	}
	if !known || !x.Ranked || !known1 || !known2 || !offKnown {
		return t1(out)
	}
	var want []Dim
	for i, d := range sizes {
		if i != d1 && i != d2 {
			want = append(want, d)
		}
	}
	n := Unknown
	if sizes[d1].Known() && sizes[d2].Known() {
		n = Dim{N: diagonalLen(sizes[d1].N, sizes[d2].N, off)}
	}
	want = append(want, n)
	if !shapesFit(want, x.Dims) {
		return nil, c.Errorf("expected a diagonal of shape %s for shape %s, got shape %s", dimsString(want), dimsString(sizes), dimsString(x.Dims))
	}
	return t1(out)
}

// shapesFit reports whether two shapes may be the same.
func shapesFit(a, b []Dim) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if dimsDiffer(a[i], b[i]) {
			return false
		}
	}
	return true
}

// indexArg is operand i as a tensor of i64 indices.
func (c *Call) indexArg(i int) (Type, error) {
	t, err := c.tensor(i)
	if err == nil && t.DType != dtype.Invalid && t.DType != dtype.I64 {
		return t, c.Errorf("expected an i64 tensor for %s, got %s", c.param(i), t)
	}
	return t, err
}

// checkIndexed checks that index fits a tensor x along all dims but dim.
func (c *Call) checkIndexed(x, index Type, dim int, known bool) error {
	if !x.Ranked || !index.Ranked {
		return nil
	}
	if len(x.Dims) != len(index.Dims) {
		return c.Errorf("index must have as many dimensions as the tensor: got shapes %s and %s", dimsString(index.Dims), dimsString(x.Dims))
	}
	if len(x.Dims) == 0 {
		return c.Errorf("expected tensors with at least 1 dimension, got shape []")
	}
	if !known {
		return nil
	}
	for i, d := range index.Dims {
		if i != dim && d.Known() && x.Dims[i].Known() && d.N > x.Dims[i].N {
			return c.Errorf("size %d of index is out of range at dimension %d: expected index %s to be no larger than tensor %s apart from dimension %d",
				d.N, i, dimsString(index.Dims), dimsString(x.Dims), dim)
		}
	}
	return nil
}

func inferGather(c *Call) ([]Type, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	index, err := c.indexArg(2)
	if err != nil {
		return nil, err
	}
	dim, known, err := c.dimArg(1, x)
	if err != nil {
		return nil, err
	}
	if err := c.checkIndexed(x, index, dim, known); err != nil {
		return nil, err
	}
	if !index.Ranked && x.Ranked {
		return t1(x.withDims(unknownDims(len(x.Dims))))
	}
	return t1(index.withDType(x.DType))
}

// indexError is what every out-of-range index is reported as.
func indexError(i int64, dim, size int) error {
	return fmt.Errorf("index %d is out of range for dimension %d of size %d", i, dim, size)
}

// indexed is x seen in the shape of index, standing still along dim.
func indexed(x, index *Array, dim int) *Array {
	strides := append([]int{}, x.Strides...)
	strides[dim] = 0
	return x.View(index.Shape, strides, x.Offset)
}

func evalGather(c *EvalCall, out []Type) ([]Datum, error) {
	x, dim, index := c.Array(0), c.Int(1), c.Array(2)
	y, err := tensorOf(out[0])
	if err != nil {
		return nil, err
	}
	size, along := x.Shape[dim], x.Strides[dim]
	src := indexed(x, index, dim)
	ss, is := rowStride(src), rowStride(index)
	width := x.DType.Size()
	at := 0
	eachRow([]*Array{src, index}, func(off []int, n int) {
		for k := 0; k < n && err == nil; k++ {
			i := index.Int(off[1] + k*is)
			if i < 0 || i >= int64(size) {
				err = indexError(i, dim, size)
				return
			}
			moveRow(width, y.Data, at, 0, x.Data, off[0]+k*ss+int(i)*along, 0, 1)
			at++
		}
	})
	return []Datum{y}, err
}

func inferScatter(c *Call) ([]Type, error) {
	n := 4
	if c.Op.Name == "scatter_reduce" {
		n = 6
	}
	if err := c.need(n); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	index, err := c.indexArg(2)
	if err != nil {
		return nil, err
	}
	src, err := c.tensor(3)
	if err != nil {
		return nil, err
	}
	d, err := c.sameDType(x, src)
	if err != nil {
		return nil, err
	}
	dim, known, err := c.dimArg(1, x)
	if err != nil {
		return nil, err
	}
	if err := c.checkIndexed(x, index, dim, known); err != nil {
		return nil, err
	}
	if index.Ranked && src.Ranked && !shapesFit(index.Dims, src.Dims) {
		return nil, c.Errorf("expected src of the shape %s of index, got shape %s", dimsString(index.Dims), dimsString(src.Dims))
	}
	if n == 6 {
		mode, known, err := c.scalarArg(4, KString)
		if err != nil {
			return nil, err
		}
		if known && mode != "add" && mode != "mul" && mode != "amax" && mode != "amin" {
			return nil, c.Errorf("expected mode add, mul, amax or amin, got %q", mode)
		}
		if _, _, err := c.boolArg(5); err != nil {
			return nil, err
		}
	}
	return t1(x.withDType(d))
}

// eachIndexed calls f for every element of index in row-major order with the element offsets that it selects in dst, and its own
// position; dst is contiguous.
func eachIndexed(dst *Array, dim int, index *Array, f func(to, k int)) error {
	var err error
	size, along := dst.Shape[dim], dst.Strides[dim]
	view := indexed(dst, index, dim)
	vs, is := rowStride(view), rowStride(index)
	at := 0
	eachRow([]*Array{view, index}, func(off []int, n int) {
		for k := 0; k < n && err == nil; k++ {
			i := index.Int(off[1] + k*is)
			if i < 0 || i >= int64(size) {
				err = indexError(i, dim, size)
				return
			}
			f(off[0]+k*vs+int(i)*along, at)
			at++
		}
	})
	return err
}

func evalScatter(c *EvalCall, out []Type) ([]Datum, error) {
	y, src := c.Array(0).Copy(), c.Array(3).Contiguous()
	width := y.DType.Size()
	err := eachIndexed(y, c.Int(1), c.Array(2), func(to, k int) {
		moveRow(width, y.Data, to, 0, src.Data, src.Offset+k, 0, 1)
	})
	return []Datum{y}, err
}

func evalScatterReduce(c *EvalCall, out []Type) ([]Datum, error) {
	switch x := c.Array(0); {
	case x.DType == dtype.F64:
		return scatterReduce[float64](c)
	case x.DType.IsFloat():
		return scatterReduce[float32](c)
	}
	return scatterReduce[int64](c)
}

// scatterReduce combines in the working type: halves in f32, rounded once at the end.
func scatterReduce[T number](c *EvalCall) ([]Datum, error) {
	y := c.Array(0).Copy()
	acc, src := load[T](y), load[T](c.Array(3))
	var combine func(a, x T) T
	switch mode := c.Args[4].(string); mode {
	case "add":
		combine = func(a, x T) T { return a + x }
	case "mul":
		combine = multiply[T]
	case "amax":
		combine = larger[T]
	case "amin":
		combine = smaller[T]
	default:
		return nil, fmt.Errorf("expected mode add, mul, amax or amin, got %q", mode)
	}
	var started []bool // whether an element has taken its first value; nil where x's own count
	if !c.Bool(5) {
		started = make([]bool, len(acc))
	}
	err := eachIndexed(y, c.Int(1), c.Array(2), func(to, k int) {
		if started != nil && !started[to] {
			started[to] = true
			acc[to] = src[k]
			return
		}
		acc[to] = combine(acc[to], src[k])
	})
	store(y, acc)
	return []Datum{y}, err
}

func gradScatterReduce(b *Builder, n *Node, ct []*Value) []*Value {
	x, dim, index, src, g := n.Args[0], n.Args[1], n.Args[2], n.Args[3], ct[0]
	mode, include := b.NeedConst(n.Args[4]).(string), b.constBool(n.Args[5])
	own := func(v *Value) *Value { // without include_self, x's elements count only where nothing is scattered
		if include {
			return v
		}
		return b.Op("scatter", v, dim, index, b.fullLike(src, 0))
	}
	gather := func(v *Value) *Value { return b.Op("gather", v, dim, index) }
	out := make([]*Value, 6)
	y := n.Results[0]
	switch mode {
	case "add":
		out[0], out[3] = own(g), gather(g)
	case "mul":
		// The product of the others is the product divided by the element; for the only zero of a product, the product with one in
		// its place. Where several are zero it is zero.
		zero := func(v *Value) *Value { return b.Op("eq", v, b.fullLike(v, 0)) }
		count := func(v *Value) *Value { return b.Op("convert", v, b.DType(dtype.F32)) }
		zeros := b.Op("scatter_reduce", own(count(zero(x))), dim, index, count(zero(src)), b.Str("add"), b.Bool(true))
		sole := b.Op("eq", zeros, b.fullLike(zeros, 1))
		fill := func(mask, v *Value) *Value { return b.Op("where", mask, b.fullLike(v, 1), v) }
		soleX, soleSrc := b.Op("logical_and", zero(x), sole), b.Op("logical_and", zero(src), gather(sole))
		rest := b.Op("scatter_reduce", fill(soleX, x), dim, index, fill(soleSrc, src), n.Args[4], n.Args[5])
		gy, grest := b.Op("mul", g, y), b.Op("mul", g, rest)
		out[0] = own(b.Op("where", soleX, grest, b.Op("div", gy, fill(zero(x), x))))
		out[3] = b.Op("where", soleSrc, gather(grest), b.Op("div", gather(gy), fill(zero(src), src)))
	default:
		d := b.DType(b.NeedDType(x))
		// as torch does, an element of x that equals the result has a share counted even without include_self
		mine := b.Op("convert", b.Op("eq", x, y), d)
		theirs := b.Op("convert", b.Op("eq", src, gather(y)), d)
		count := b.Op("scatter_reduce", mine, dim, index, theirs, b.Str("add"), b.Bool(true))
		share := b.Op("div", g, count)
		out[0], out[3] = own(b.Op("mul", share, mine)), b.Op("mul", gather(share), theirs)
	}
	return out
}

func inferTake(c *Call) ([]Type, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	index, err := c.indexArg(1)
	if err != nil {
		return nil, err
	}
	if x.Ranked && len(x.Dims) == 0 {
		return nil, c.Errorf("expected a tensor with at least 1 dimension, got shape []")
	}
	if !x.Ranked || !index.Ranked {
		return t1(x.unranked())
	}
	return t1(x.withDims(append(append([]Dim{}, index.Dims...), x.Dims[1:]...)))
}

func evalTake(c *EvalCall, out []Type) ([]Datum, error) {
	x, index := c.Array(0).Contiguous(), c.Array(1).Ints()
	y, err := tensorOf(out[0])
	if err != nil {
		return nil, err
	}
	rowLen := 1
	for _, n := range x.Shape[1:] {
		rowLen *= n
	}
	size := x.DType.Size() * rowLen
	src := x.Data[x.Offset*x.DType.Size():]
	for k, i := range index {
		if i < 0 || i >= int64(x.Shape[0]) {
			return nil, indexError(i, 0, x.Shape[0])
		}
		copy(y.Data[k*size:(k+1)*size], src[int(i)*size:])
	}
	return one(y)
}

func inferPut(c *Call) ([]Type, error) {
	if err := c.need(4); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	index, err := c.indexArg(1)
	if err != nil {
		return nil, err
	}
	src, err := c.tensor(2)
	if err != nil {
		return nil, err
	}
	if _, _, err := c.boolArg(3); err != nil {
		return nil, err
	}
	d, err := c.sameDType(x, src)
	if err != nil {
		return nil, err
	}
	if x.Ranked && len(x.Dims) == 0 {
		return nil, c.Errorf("expected a tensor with at least 1 dimension, got shape []")
	}
	if x.Ranked && index.Ranked && src.Ranked {
		want := append(append([]Dim{}, index.Dims...), x.Dims[1:]...)
		if !shapesFit(want, src.Dims) {
			return nil, c.Errorf("expected src of shape %s, got shape %s", dimsString(want), dimsString(src.Dims))
		}
	}
	return t1(x.withDType(d))
}

func evalPut(c *EvalCall, out []Type) ([]Datum, error) {
	x := c.Array(0)
	index := c.Array(1).Ints()
	for _, i := range index {
		if i < 0 || i >= int64(x.Shape[0]) {
			return nil, indexError(i, 0, x.Shape[0])
		}
	}
	y := x.Copy()
	if y.Len() == 0 || len(index) == 0 {
		return one(y)
	}
	rowLen := y.Len() / y.Shape[0]
	if !c.Bool(3) {
		src := c.Array(2).Contiguous().Bytes()
		size := rowLen * y.DType.Size()
		for k, i := range index {
			copy(y.Data[int(i)*size:(int(i)+1)*size], src[k*size:])
		}
		return one(y)
	}
	switch {
	case x.DType == dtype.F64:
		addRows[float64](y, c.Array(2), index, rowLen)
	case x.DType.IsFloat():
		addRows[float32](y, c.Array(2), index, rowLen)
	default:
		addRows[int64](y, c.Array(2), index, rowLen)
	}
	return one(y)
}

// addRows adds rows of src to rows of y one after another; halves add in f32 and are rounded once at the end.
func addRows[T number](y, src *Array, index []int64, rowLen int) {
	acc, rows := load[T](y), load[T](src)
	for k, i := range index {
		to := acc[int(i)*rowLen : (int(i)+1)*rowLen]
		for j, v := range rows[k*rowLen : (k+1)*rowLen] {
			to[j] += v
		}
	}
	store(y, acc)
}

func inferSort(c *Call) ([]Type, error) {
	if err := c.need(4); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	if x.Ranked && len(x.Dims) == 0 {
		return nil, c.Errorf("expected a tensor with at least 1 dimension, got shape []")
	}
	if _, _, err := c.dimArg(1, x); err != nil {
		return nil, err
	}
	for i := 2; i < 4; i++ {
		if _, _, err := c.boolArg(i); err != nil {
			return nil, err
		}
	}
	return []Type{x, x.withDType(dtype.I64)}, nil
}

// sortKey maps an element to an unsigned number of the same order: NaN greatest, -0 equal to 0.
func sortKey(a *Array, off int) uint64 {
	if !a.DType.IsFloat() {
		return uint64(a.Int(off)) ^ 1<<63
	}
	f := a.Float(off)
	if f != f {
		return math.MaxUint64
	}
	if f == 0 {
		return 1 << 63 // -0 too
	}
	bits := math.Float64bits(f)
	if bits>>63 != 0 {
		return ^bits
	}
	return bits | 1<<63
}

func evalSort(c *EvalCall, out []Type) ([]Datum, error) {
	x, dim, descending := c.Array(0), c.Int(1), c.Bool(2)
	vals, err := tensorOf(out[0])
	if err != nil {
		return nil, err
	}
	inds, err := tensorOf(out[1])
	if err != nil {
		return nil, err
	}
	order := append(append(iotaInts(dim), iotaInts(len(x.Shape))[dim+1:]...), dim)
	type item struct {
		key uint64
		i   int
	}
	items := make([]item, x.Shape[dim])
	width := x.DType.Size()
	vs := vals.Strides[dim]
	eachRow([]*Array{permuteView(x, order), permuteView(vals, order)}, func(off []int, n int) {
		xs := x.Strides[dim]
		for k := range items {
			key := sortKey(x, off[0]+k*xs)
			if descending {
				key = ^key
			}
			items[k] = item{key, k}
		}
		slices.SortFunc(items, func(a, b item) int {
			switch {
			case a.key < b.key:
				return -1
			case a.key > b.key:
				return 1
			}
			return a.i - b.i
		})
		for k, it := range items {
			to := off[1] + k*vs
			moveRow(width, vals.Data, to, 0, x.Data, off[0]+it.i*xs, 0, 1)
			binary.LittleEndian.PutUint64(inds.Data[to*8:], uint64(it.i))
		}
	})
	return []Datum{vals, inds}, nil
}

func nonzero(x *Array) *Array {
	var flat []int
	at := 0
	x.EachRow(func(off, n, stride int) {
		for k := 0; k < n; k++ {
			if x.Float(off+k*stride) != 0 {
				flat = append(flat, at)
			}
			at++
		}
	})
	r := len(x.Shape)
	out := NewArray(dtype.I64, len(flat), r)
	for i, p := range flat {
		for d := r - 1; d >= 0; d-- {
			out.SetInt(i*r+d, int64(p%x.Shape[d]))
			p /= x.Shape[d]
		}
	}
	return out
}
