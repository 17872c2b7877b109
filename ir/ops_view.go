package ir

// The ops that make another view of their operand's memory. They compute nothing; only reshape copies, where the operand's strides
// leave no other way.

var (
	_ = register(&Op{
		Name: "broadcast", Doc: "The view of x with the given shape: sizes align from the last dim, size-1 and missing dims are repeated.",
		Params: []string{"x", "shape"}, Class: View,
		Infer: inferBroadcast,
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
			return one(broadcastView(c.Array(0), out[0].Shape()))
		}),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			return []*Value{b.sumTo(ct[0], n.Args[0]), nil}
		},
	})
	_ = register(&Op{
		Name: "permute", Doc: "The view of x whose dim i is dim dims[i] of x.",
		Params: []string{"x", "dims"}, Class: View,
		Infer: inferPermute,
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
			return one(permuteView(c.Array(0), c.Ints(1)))
		}),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			return []*Value{b.Op("permute", ct[0], b.Ints(inversePermutation(b.constDims(n.Args[1]))...)), nil}
		},
	})
	_ = register(&Op{
		Name: "reshape", Doc: "The elements of x in row-major order with another shape of as many elements; a view where strides allow it.",
		Params: []string{"x", "shape"}, Class: View,
		Infer: inferReshape,
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
			return one(reshapeView(c.Array(0), out[0].Shape()))
		}),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			return []*Value{b.Op("reshape", ct[0], b.ShapeOf(n.Args[0])), nil}
		},
	})
	_ = register(&Op{
		Name: "slice", Doc: "The view of x with the indices start, start+step, … below stop along dim; 0 <= start <= stop <= size, step >= 1.",
		Params: []string{"x", "dim", "start", "stop", "step"}, Class: View,
		Infer: inferSlice,
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
			x, dim, step := c.Array(0), c.Int(1), c.Int(4)
			strides := append([]int{}, x.Strides...)
			strides[dim] *= step
			return one(x.View(out[0].Shape(), strides, x.Offset+c.Int(2)*x.Strides[dim]))
		}),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			dim := b.constInt(n.Args[1])
			b.NeedRank(n.Args[0])
			return only(5, 0, b.Op("unslice", ct[0], n.Args[1], n.Args[2], n.Args[4], b.SizeOf(n.Args[0], dim)))
		},
	})
	_ = register(&Op{
		Name: "windows", Doc: "The view of all sliding windows over the last k dims: x[A…,H,W] -> [A…,OH,OW,KH,KW] with OH = (H-(KH-1)*dilation-1)/stride+1.",
		Params: []string{"x", "sizes", "strides", "dilations"}, Class: View,
		Infer: inferWindows,
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
			return one(windowsView(c.Array(0), out[0].Shape(), c.Ints(2), c.Ints(3)))
		}),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			x := n.Args[0]
			r := b.NeedRank(x)
			k := len(b.constDims(n.Args[1]))
			return only(4, 0, b.Op("fold", ct[0], b.sizesOf(x, iotaInts(r)[r-k:]...), n.Args[2], n.Args[3]))
		},
	})
	_ = register(&Op{
		Name: "diagonal", Doc: "The view of the diagonal x[…,i,…,i+offset,…] over dim1 and dim2: these two are removed, the diagonal is appended as last dim.",
		Params: []string{"x", "offset", "dim1", "dim2"}, Class: View,
		Infer: inferDiagonal,
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
			return one(diagonalView(c.Array(0), out[0].Shape(), c.Int(1), c.Int(2), c.Int(3)))
		}),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			return only(4, 0, b.Op("undiagonal", ct[0], n.Args[1], n.Args[2], n.Args[3], b.ShapeOf(n.Args[0])))
		},
	})
	_ = register(&Op{
		Name: "flip", Doc: "The view of x with the order of the indices reversed along dims.",
		Params: []string{"x", "dims"}, Class: View,
		Infer: func(c *Call) ([]Type, error) {
			if err := c.need(2); err != nil {
				return nil, err
			}
			x, err := c.tensor(0)
			if err != nil {
				return nil, err
			}
			_, _, err = c.dimsArg(1, x)
			return []Type{x}, err
		},
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
			x := c.Array(0)
			strides, off := append([]int{}, x.Strides...), x.Offset
			for _, d := range c.Ints(1) {
				if x.Shape[d] > 0 {
					off += (x.Shape[d] - 1) * x.Strides[d]
				}
				strides[d] = -strides[d]
			}
			return one(x.View(append([]int{}, x.Shape...), strides, off))
		}),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			return []*Value{b.Op("flip", ct[0], n.Args[1]), nil}
		},
	})
)

func inferBroadcast(c *Call) ([]Type, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	sizes, known, err := c.listArg(1)
	if err != nil || !known {
		return []Type{x.unranked()}, err
	}
	if !x.Ranked {
		return t1(x.withDims(sizes))
	}
	lead := len(sizes) - len(x.Dims)
	if lead < 0 {
		return nil, c.Errorf("a tensor of shape %s cannot be broadcast to shape %s with fewer dimensions", dimsString(x.Dims), dimsString(sizes))
	}
	dims := append([]Dim{}, sizes...)
	for i, d := range x.Dims {
		if d.N == 1 {
			continue
		}
		if dimsDiffer(d, sizes[lead+i]) {
			return nil, c.Errorf("a tensor of shape %s cannot be broadcast to shape %s: the size %d does not match the expected size %d at dimension %d",
				dimsString(x.Dims), dimsString(sizes), d.N, sizes[lead+i].N, lead+i)
		}
		if d.Known() {
			dims[lead+i] = d
		}
	}
	return t1(x.withDims(dims))
}

func broadcastView(x *Array, shape []int) *Array {
	lead := len(shape) - len(x.Shape)
	strides := make([]int, len(shape))
	for i, n := range x.Shape {
		if n == shape[lead+i] {
			strides[lead+i] = x.Strides[i]
		}
	}
	return x.View(append([]int{}, shape...), strides, x.Offset)
}

func inferPermute(c *Call) ([]Type, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	dims, known, err := c.dimsArg(1, x)
	if err != nil {
		return nil, err
	}
	switch {
	case !known && !x.Ranked:
		return t1(x.unranked())
	case !known:
		return t1(x.withDims(unknownDims(len(x.Dims))))
	case !x.Ranked:
		return t1(x.withDims(unknownDims(len(dims))))
	case len(dims) != len(x.Dims):
		return nil, c.Errorf("expected %d dimensions for a tensor of shape %s, got %v", len(x.Dims), dimsString(x.Dims), dims)
	}
	out := make([]Dim, len(dims))
	for i, d := range dims {
		out[i] = x.Dims[d]
	}
	return t1(x.withDims(out))
}

func permuteView(x *Array, dims []int) *Array {
	shape, strides := make([]int, len(dims)), make([]int, len(dims))
	for i, d := range dims {
		shape[i], strides[i] = x.Shape[d], x.Strides[d]
	}
	return x.View(shape, strides, x.Offset)
}

func inversePermutation(p []int) []int {
	inv := make([]int, len(p))
	for i, d := range p {
		inv[d] = i
	}
	return inv
}

func inferReshape(c *Call) ([]Type, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	sizes, known, err := c.listArg(1)
	if err != nil || !known {
		return []Type{x.unranked()}, err
	}
	dims := append([]Dim{}, sizes...)
	have, haveOK := knownElems(x)
	want, unknown := 1, -1
	for i, d := range dims {
		switch {
		case d.Known() && d.N > 0 && want > MaxElems/d.N:
			return nil, c.Errorf("shape %s has too many elements", dimsString(dims))
		case d.Known():
			want *= d.N
		case unknown >= 0:
			haveOK = false
		default:
			unknown = i
		}
	}
	if !haveOK {
		return t1(x.withDims(dims))
	}
	if unknown < 0 && want != have || unknown >= 0 && (want == 0 && have != 0 || want > 0 && have%want != 0) {
		return nil, c.Errorf("shape %s is invalid for a tensor of shape %s with %d elements", dimsString(dims), shapeString(x), have)
	}
	if unknown >= 0 && want > 0 {
		dims[unknown] = Dim{N: have / want}
	}
	return t1(x.withDims(dims))
}

func knownElems(t Type) (n int, ok bool) {
	if !t.Ranked {
		return 0, false
	}
	n = 1
	for _, d := range t.Dims {
		if !d.Known() {
			return 0, false
		}
		n *= d.N
	}
	return n, true
}

// reshapeView gives a view of x where one exists and a packed copy otherwise.
func reshapeView(x *Array, shape []int) *Array {
	shape = append([]int{}, shape...)
	if strides, ok := viewStrides(x.Shape, x.Strides, shape); ok {
		return x.View(shape, strides, x.Offset)
	}
	y := x.Contiguous()
	return y.View(shape, ContiguousStrides(shape), y.Offset)
}

// ViewStrides are the strides with which memory of a shape and strides is seen in another shape of as many elements; ok is false where
// no strides do that.
func ViewStrides(shape, strides, want []int) (st []int, ok bool) {
	return viewStrides(shape, strides, want)
}

// viewStrides are the strides with which memory of a shape and strides is seen in another shape, if there are any: every run of
// dims of the old shape that is contiguous in itself can be split anew.
func viewStrides(shape, strides, want []int) ([]int, bool) {
	for _, n := range shape {
		if n == 0 {
			return ContiguousStrides(want), true
		}
	}
	out := ContiguousStrides(want)
	i := len(want) - 1
	for d := len(shape) - 1; d >= 0; {
		base, size := strides[d], shape[d]
		for d--; d >= 0 && (shape[d] == 1 || size == 1 || strides[d] == base*size); d-- {
			if size == 1 {
				base = strides[d]
			}
			size *= shape[d]
		}
		part := 1
		for ; i >= 0 && (part < size || want[i] == 1); i-- {
			out[i] = base * part
			part *= want[i]
		}
		if part != size {
			return nil, false
		}
	}
	for ; i >= 0; i-- {
		if want[i] != 1 {
			return nil, false
		}
	}
	return out, true
}

func inferSlice(c *Call) ([]Type, error) {
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
	bounds := true
	for i := range v {
		n, known, err := c.intArg(2 + i)
		if err != nil {
			return nil, err
		}
		v[i], bounds = n, bounds && known
	}
	if bounds && (v[0] < 0 || v[1] < v[0] || v[2] < 1) {
		return nil, c.Errorf("expected 0 <= start <= stop and step >= 1, got start %d, stop %d, step %d", v[0], v[1], v[2])
	}
	if !x.Ranked {
		return t1(x)
	}
	dims := append([]Dim{}, x.Dims...)
	switch {
	case !dimKnown:
		return t1(x.withDims(unknownDims(len(dims))))
	case !bounds:
		dims[dim] = Unknown
		return t1(x.withDims(dims))
	case x.Dims[dim].Known() && v[1] > x.Dims[dim].N:
		return nil, c.Errorf("stop %d is out of range for dimension %d of size %d", v[1], dim, x.Dims[dim].N)
	}
	dims[dim] = Dim{N: (v[1] - v[0] + v[2] - 1) / v[2]}
	return t1(x.withDims(dims))
}

// windowArgs reads sizes (operand i), strides and dilations of windows and fold; k is -1 where their number is not known.
func (c *Call) windowArgs(i int, names ...int) (lists [][]Dim, k int, err error) {
	k = -1
	for _, p := range append([]int{i}, names...) {
		l, known, err := c.listArg(p)
		if err != nil {
			return nil, 0, err
		}
		if !known {
			lists = append(lists, nil)
			continue
		}
		if k >= 0 && len(l) != k {
			return nil, 0, c.Errorf("expected %d entries for %s, got %s", k, c.param(p), dimsString(l))
		}
		k = len(l)
		lists = append(lists, l)
	}
	for j := range lists {
		if lists[j] == nil && k >= 0 {
			lists[j] = unknownDims(k)
		}
	}
	return lists, k, nil
}

// windowCount is the number of positions of a window along one dim.
func windowCount(size, window, stride, dilation int) int {
	return (size-(window-1)*dilation-1)/stride + 1
}

func inferWindows(c *Call) ([]Type, error) {
	if err := c.need(4); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	l, k, err := c.windowArgs(1, 2, 3)
	if err != nil || k < 0 || !x.Ranked {
		return []Type{x.unranked()}, err
	}
	r := len(x.Dims)
	if r < k {
		return nil, c.Errorf("expected a tensor with at least %d dimensions, got shape %s", k, dimsString(x.Dims))
	}
	dims := append([]Dim{}, x.Dims...)
	for i := 0; i < k; i++ {
		h, win, st, dil := x.Dims[r-k+i], l[0][i], l[1][i], l[2][i]
		if win.N == 0 || st.N == 0 || dil.N == 0 {
			return nil, c.Errorf("expected positive window sizes, strides and dilations, got %s, %s, %s", dimsString(l[0]), dimsString(l[1]), dimsString(l[2]))
		}
		out := Unknown
		if h.Known() && win.Known() && st.Known() && dil.Known() {
			span := satAdd(satMul(win.N-1, dil.N), 1)
			if span > h.N {
				return nil, c.Errorf("kernel size %d (%d with dilation) is larger than the input size %d at dimension %d of shape %s", win.N, span, h.N, r-k+i, dimsString(x.Dims))
			}
			out = Dim{N: (h.N-span)/st.N + 1}
		}
		dims[r-k+i] = out
		dims = append(dims, win)
	}
	return t1(x.withDims(dims))
}

// satMul and satAdd stay within bounds on sizes that come from outside.
func satMul(a, b int) int {
	if a > 0 && b > MaxElems/a {
		return MaxElems
	}
	return a * b
}

func satAdd(a, b int) int { return min(a, MaxElems) + min(b, MaxElems) }

func windowsView(x *Array, shape, strides, dilations []int) *Array {
	k := len(strides)
	lead := len(x.Shape) - k
	st := append([]int{}, x.Strides...)
	for i := 0; i < k; i++ {
		st[lead+i] = x.Strides[lead+i] * strides[i]
		st = append(st, x.Strides[lead+i]*dilations[i])
	}
	return x.View(append([]int{}, shape...), st, x.Offset)
}

func inferDiagonal(c *Call) ([]Type, error) {
	if err := c.need(4); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	off, offKnown, err := c.intArg(1)
	if err != nil {
		return nil, err
	}
	d1, known1, err := c.dimArg(2, x)
	if err != nil {
		return nil, err
	}
	d2, known2, err := c.dimArg(3, x)
	if err != nil {
		return nil, err
	}
	if known1 && known2 && d1 == d2 {
		return nil, c.Errorf("diagonal dimensions cannot be identical, got %d and %d", d1, d2)
	}
	if !x.Ranked {
		return t1(x)
	}
	if len(x.Dims) < 2 {
		return nil, c.Errorf("expected a tensor with at least 2 dimensions, got shape %s", dimsString(x.Dims))
	}
	if !known1 || !known2 {
		return t1(x.withDims(unknownDims(len(x.Dims) - 1)))
	}
	var dims []Dim
	for i, d := range x.Dims {
		if i != d1 && i != d2 {
			dims = append(dims, d)
		}
	}
	n := Unknown
	if offKnown && x.Dims[d1].Known() && x.Dims[d2].Known() {
		n = Dim{N: diagonalLen(x.Dims[d1].N, x.Dims[d2].N, off)}
	}
	return t1(x.withDims(append(dims, n)))
}

func diagonalLen(n1, n2, off int) int {
	if off >= 0 {
		return max(0, min(n1, n2-off))
	}
	return max(0, min(n1+off, n2))
}

func diagonalView(x *Array, shape []int, off, d1, d2 int) *Array {
	var strides []int
	for i, s := range x.Strides {
		if i != d1 && i != d2 {
			strides = append(strides, s)
		}
	}
	strides = append(strides, x.Strides[d1]+x.Strides[d2])
	start := x.Offset
	if shape[len(shape)-1] > 0 { // an empty diagonal may start outside
		if off >= 0 {
			start += off * x.Strides[d2]
		} else {
			start -= off * x.Strides[d1]
		}
	}
	return x.View(append([]int{}, shape...), strides, start)
}
