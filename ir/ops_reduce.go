package ir

import (
	"cmp"
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Reductions, and the one order in which they combine elements.
//
// The order depends only on the logical shape and on which dims are reduced. Let i count the reduced elements of one output in
// row-major order of the reduced dims. Let L = 16 if the last dim of the operand is among the reduced ones and L = 1 otherwise.
//
//	total = identity
//	for every block of 256·L consecutive i, in order (the last block may be shorter):
//	    lane[k] = identity for k < L
//	    for i in the block, in order: lane[(i - blockStart) % L] = combine(lane[…], x[i])
//	    for h = L/2, L/4, …, 1: lane[k] = combine(lane[k], lane[k+h]) for k < h
//	    total = combine(total, lane[0])
//
// The identity is 0 for sum, 1 for prod, -Inf (or the least integer) for amax, +Inf (or the greatest) for amin. combine(a, x) is
// a+x, a*x, and for amax and amin the scalar programs maximum(a, x) and minimum(a, x): a if a is NaN or a > x (a < x), else x.
// f32 is combined in f32, f64 in f64; halves are widened to f32, combined in f32 and rounded once at the end; integers wrap in
// their own type. There is no contraction of mul and add. Lanes and blocks bound the error growth of long sums (a million equal
// f32 elements: 4e-6 instead of 1e-3), and lanes are what vector code computes anyway; code generators must follow this order bit
// for bit. reduceRow is its definition.

// ReduceLanes and ReduceBlock are the L and the 256 of the order above.
const (
	ReduceLanes = 16
	ReduceBlock = 256
)

// reduceRow combines the elements of one output in the contract's order.
func reduceRow[T number](row []T, lanes int, identity T, combine func(a, x T) T) T {
	total := identity
	var lane [ReduceLanes]T
	for len(row) > 0 {
		block := row[:min(len(row), ReduceBlock*lanes)]
		row = row[len(block):]
		for k := range lane {
			lane[k] = identity
		}
		for i, x := range block {
			k := i & (lanes - 1)
			lane[k] = combine(lane[k], x)
		}
		for h := lanes / 2; h > 0; h /= 2 {
			for k := 0; k < h; k++ {
				lane[k] = combine(lane[k], lane[k+h])
			}
		}
		total = combine(total, lane[0])
	}
	return total
}

// sumRow is reduceRow for sums, without the calls.
func sumRow[T number](row []T, lanes int) T {
	var total T
	for len(row) > 0 {
		block := row[:min(len(row), ReduceBlock*lanes)]
		row = row[len(block):]
		var lane [ReduceLanes]T
		if lanes == 1 {
			var a T
			for _, x := range block {
				a += x
			}
			lane[0] = a
		} else {
			for ; len(block) >= ReduceLanes; block = block[ReduceLanes:] {
				b := block[:ReduceLanes]
				for k := range lane {
					lane[k] += b[k]
				}
			}
			for k, x := range block {
				lane[k] += x
			}
		}
		for h := lanes / 2; h > 0; h /= 2 {
			for k := 0; k < h; k++ {
				lane[k] += lane[k+h]
			}
		}
		total += lane[0]
	}
	return total
}

func isNaN[T number](x T) bool { return x != x }

// reduction says how one op combines elements, for each type that is computed in.
type reduction struct {
	f32 func(row []float32, lanes int) float32
	f64 func(row []float64, lanes int) float64
	i64 func(row []int64, lanes int) int64
}

func combining[T number](identity T, combine func(a, x T) T) func([]T, int) T {
	return func(row []T, lanes int) T { return reduceRow(row, lanes, identity, combine) }
}

func multiply[T number](a, x T) T { return a * x }

func larger[T number](a, x T) T {
	if isNaN(a) || a > x {
		return a
	}
	return x
}

func smaller[T number](a, x T) T {
	if isNaN(a) || a < x {
		return a
	}
	return x
}

var (
	_ = register(&Op{
		Name: "sum", Doc: "The sum of x over dims; x's dtype is kept.",
		Params: []string{"x", "dims", "keepdim"}, Class: Reduce,
		Infer: inferReduce, Eval: evalReduce(reduction{sumRow[float32], sumRow[float64], sumRow[int64]}, false),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			return only(3, 0, b.restoreDims(ct[0], n))
		},
	})
	_ = register(&Op{
		Name: "prod", Doc: "The product of x over dims; x's dtype is kept.",
		Params: []string{"x", "dims", "keepdim"}, Class: Reduce,
		Infer: inferReduce, Eval: evalReduce(reduction{combining(1, multiply[float32]), combining(1, multiply[float64]), combining(1, multiply[int64])}, false),
		Grad: gradProd,
	})
	_ = register(&Op{
		Name: "amax", Doc: "The maximum of x over dims; NaN wins; fails where no elements are reduced.",
		Params: []string{"x", "dims", "keepdim"}, Class: Reduce, Effect: MayFail,
		Infer: inferReduce, Eval: evalReduce(reduction{combining(float32(math.Inf(-1)), larger[float32]), combining(math.Inf(-1), larger[float64]), combining(math.MinInt64, larger[int64])}, true),
		Grad: gradExtreme,
	})
	_ = register(&Op{
		Name: "amin", Doc: "The minimum of x over dims; NaN wins; fails where no elements are reduced.",
		Params: []string{"x", "dims", "keepdim"}, Class: Reduce, Effect: MayFail,
		Infer: inferReduce, Eval: evalReduce(reduction{combining(float32(math.Inf(1)), smaller[float32]), combining(math.Inf(1), smaller[float64]), combining(math.MaxInt64, smaller[int64])}, true),
		Grad: gradExtreme,
	})
	_ = register(&Op{
		Name: "any", Doc: "Whether any element of the bool tensor x is true over dims.",
		Params: []string{"x", "dims", "keepdim"}, Class: Reduce, NoGrad: true,
		Infer: inferReduce, Eval: evalReduce(reduction{i64: combining(0, larger[int64])}, false),
	})
	_ = register(&Op{
		Name: "all", Doc: "Whether all elements of the bool tensor x are true over dims.",
		Params: []string{"x", "dims", "keepdim"}, Class: Reduce, NoGrad: true,
		Infer: inferReduce, Eval: evalReduce(reduction{i64: combining(1, smaller[int64])}, false),
	})
	_ = register(&Op{
		Name: "argmax", Doc: "The i64 index of the maximum of x along dim, the lowest of equal ones; NaN counts as largest; fails where the dim is empty.",
		Params: []string{"x", "dim", "keepdim"}, Class: Reduce, Effect: MayFail, NoGrad: true,
		Infer: inferArg, Eval: evalArg(func(c int) bool { return c > 0 }),
	})
	_ = register(&Op{
		Name: "argmin", Doc: "The i64 index of the minimum of x along dim, the lowest of equal ones; NaN counts as smallest; fails where the dim is empty.",
		Params: []string{"x", "dim", "keepdim"}, Class: Reduce, Effect: MayFail, NoGrad: true,
		Infer: inferArg, Eval: evalArg(func(c int) bool { return c < 0 }),
	})
	_ = register(&Op{
		Name: "sum_to", Doc: "The inverse of broadcast: x summed over the dims that broadcasting from shape to x's shape has added or repeated.",
		Params: []string{"x", "shape"}, Class: Reduce,
		Infer: inferSumTo,
		Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
			x, shape := c.Array(0), out[0].Shape()
			dims := repeatedDims(x.Shape, shape)
			y, err := reduceArray(x, dims, shape, reduction{sumRow[float32], sumRow[float64], sumRow[int64]})
			return []Datum{y}, err
		}),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			return []*Value{b.Op("broadcast", ct[0], b.ShapeOf(n.Args[0])), nil}
		},
	})
)

// reduceDims is the shape that is left of dims.
func reduceDims(x []Dim, dims []int, keep bool) []Dim {
	reduced := make([]bool, len(x))
	for _, d := range dims {
		reduced[d] = true
	}
	out := make([]Dim, 0, len(x))
	for i, d := range x {
		switch {
		case !reduced[i]:
			out = append(out, d)
		case keep:
			out = append(out, Dim{N: 1})
		}
	}
	return out
}

func inferReduce(c *Call) ([]Type, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	isBool := c.Op.Name == "any" || c.Op.Name == "all"
	switch {
	case isBool && x.DType == dtype.Invalid:
		x.DType = dtype.Bool
	case isBool && x.DType != dtype.Bool:
		return nil, c.Errorf("expected a bool tensor, got %s", x)
	case x.DType == dtype.Bool && (c.Op.Name == "sum" || c.Op.Name == "prod"):
		return nil, c.Errorf("expected a tensor of numbers, got %s: convert it first", x)
	}
	dims, known, err := c.dimsArg(1, x)
	if err != nil {
		return nil, err
	}
	keep, keepKnown, err := c.boolArg(2)
	if err != nil {
		return nil, err
	}
	if known && x.Ranked && (c.Op.Name == "amax" || c.Op.Name == "amin") {
		for _, d := range dims {
			if x.Dims[d].N == 0 {
				return nil, c.Errorf("expected reduction dimension %d to have non-zero size: the maximum or minimum of an empty tensor of shape %s is undefined", d, dimsString(x.Dims))
			}
		}
	}
	switch {
	case !x.Ranked:
		return t1(x)
	case known && (keepKnown || len(dims) == 0):
		return t1(x.withDims(reduceDims(x.Dims, dims, keep)))
	case keepKnown && keep:
		return t1(x.withDims(unknownDims(len(x.Dims))))
	}
	return t1(x.unranked())
}

func evalReduce(r reduction, nonEmpty bool) func(c *EvalCall) ([]Datum, error) {
	return checked(func(c *EvalCall, out []Type) ([]Datum, error) {
		y, err := reduceArray(c.Array(0), c.Ints(1), out[0].Shape(), r)
		return []Datum{y}, err
	})
}

// rowsOf sees x with the dims last: rows outputs of n elements each.
func rowsOf(x *Array, dims []int) (perm *Array, rows, n int) {
	reduced := make([]bool, len(x.Shape))
	for _, d := range dims {
		reduced[d] = true
	}
	var order, last []int
	rows, n = 1, 1
	for i, s := range x.Shape {
		if reduced[i] {
			last = append(last, i)
			n *= s
		} else {
			order = append(order, i)
			rows *= s
		}
	}
	return permuteView(x, append(order, last...)), rows, n
}

// reduceArray reduces x over dims into an array of the given shape.
func reduceArray(x *Array, dims []int, shape []int, r reduction) (*Array, error) {
	out, err := TryNewArray(x.DType, shape)
	if err != nil {
		return nil, err
	}
	p, rows, n := rowsOf(x, dims)
	lanes := 1
	for _, d := range dims {
		if d == len(x.Shape)-1 {
			lanes = ReduceLanes
		}
	}
	switch {
	case x.DType == dtype.F64:
		reduceRows(out, p, rows, n, lanes, r.f64)
	case x.DType.IsFloat():
		reduceRows(out, p, rows, n, lanes, r.f32)
	default:
		reduceRows(out, p, rows, n, lanes, r.i64)
	}
	return out, nil
}

func reduceRows[T number](out, p *Array, rows, n, lanes int, f func([]T, int) T) {
	data := load[T](p)
	res := make([]T, rows)
	for i := range res {
		res[i] = f(data[i*n:(i+1)*n], lanes)
	}
	store(out, res)
}

func inferArg(c *Call) ([]Type, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	dim, known, err := c.dimArg(1, x)
	if err != nil {
		return nil, err
	}
	keep, keepKnown, err := c.boolArg(2)
	if err != nil {
		return nil, err
	}
	out := x.withDType(dtype.I64)
	switch {
	case !x.Ranked:
		return t1(out)
	case len(x.Dims) == 0:
		return nil, c.Errorf("expected a tensor with at least 1 dimension, got shape []")
	case known && x.Dims[dim].N == 0:
		return nil, c.Errorf("expected reduction dimension %d to have non-zero size: shape %s is empty", dim, dimsString(x.Dims))
	case known && keepKnown:
		return t1(out.withDims(reduceDims(x.Dims, []int{dim}, keep)))
	case keepKnown && keep:
		return t1(out.withDims(unknownDims(len(x.Dims))))
	case keepKnown:
		return t1(out.withDims(unknownDims(len(x.Dims) - 1)))
	}
	return t1(out.unranked())
}

func evalArg(better func(order int) bool) func(c *EvalCall) ([]Datum, error) {
	return checked(func(c *EvalCall, types []Type) ([]Datum, error) {
		x := c.Array(0)
		out, err := tensorOf(types[0])
		if err != nil {
			return nil, err
		}
		p, rows, n := rowsOf(x, []int{c.Int(1)})
		switch {
		case x.DType == dtype.F64:
			argRows(out, load[float64](p), rows, n, better)
		case x.DType.IsFloat():
			argRows(out, load[float32](p), rows, n, better)
		default:
			argRows(out, load[int64](p), rows, n, better)
		}
		return one(out)
	})
}

func argRows[T number](out *Array, data []T, rows, n int, better func(order int) bool) {
	for r := 0; r < rows; r++ {
		row := data[r*n : (r+1)*n]
		best := 0
		for i, x := range row {
			if isNaN(row[best]) {
				break
			}
			if isNaN(x) || better(cmp.Compare(x, row[best])) && x != row[best] {
				best = i
			}
		}
		out.SetInt(r, int64(best))
	}
}

func inferSumTo(c *Call) ([]Type, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	if x.DType == dtype.Bool {
		return nil, c.Errorf("expected a tensor of numbers, got %s", x)
	}
	sizes, known, err := c.listArg(1)
	if err != nil || !known {
		return []Type{x.unranked()}, err
	}
	if x.Ranked {
		lead := len(x.Dims) - len(sizes)
		if lead < 0 {
			return nil, c.Errorf("shape %s has more dimensions than the tensor of shape %s", dimsString(sizes), dimsString(x.Dims))
		}
		for i, d := range sizes {
			if d.N != 1 && dimsDiffer(d, x.Dims[lead+i]) {
				return nil, c.Errorf("shape %s cannot be broadcast to the tensor's shape %s", dimsString(sizes), dimsString(x.Dims))
			}
		}
	}
	return t1(x.withDims(sizes))
}

// repeatedDims are the dims of big that broadcasting from small has added or repeated.
func repeatedDims(big, small []int) []int {
	lead := len(big) - len(small)
	var dims []int
	for i, n := range big {
		if i < lead || small[i-lead] == 1 && n != 1 {
			dims = append(dims, i)
		}
	}
	return dims
}

// sumTo undoes the broadcast of like to g's shape: by sum and reshape where sizes are known, by sum_to otherwise.
func (b *Builder) sumTo(g, like *Value) *Value {
	gt, lt := g.Type, like.Type
	if !gt.Ranked || !lt.Ranked {
		return b.Op("sum_to", g, b.ShapeOf(like))
	}
	lead := len(gt.Dims) - len(lt.Dims)
	var dims []int
	inner := false // some of like's own dims are repeated
	for i, d := range gt.Dims {
		if i < lead {
			dims = append(dims, i)
			continue
		}
		s := lt.Dims[i-lead]
		switch {
		case s.N == 1 && d.N != 1:
			dims, inner = append(dims, i), true
		case !s.Known() && d.N != 1 && (s != d || s.Sym == ""):
			return b.Op("sum_to", g, b.ShapeOf(like)) // may or may not be 1
		}
	}
	if len(dims) == 0 {
		return g
	}
	s := b.Op("sum", g, b.Ints(dims...), b.Bool(false))
	if inner {
		s = b.Op("reshape", s, b.ShapeOf(like))
	}
	return s
}

// keptShape is the shape of reduction n's result with keepdim.
func (b *Builder) keptShape(n *Node) *Value {
	x := n.Args[0]
	sizes := iotaInts(b.NeedRank(x))
	for _, d := range b.constDims(n.Args[1]) {
		sizes[d] = -1
	}
	return b.sizesOf(x, sizes...)
}

// keptDims puts the dims that reduction n removed back into v with size 1.
func (b *Builder) keptDims(v *Value, n *Node) *Value {
	if b.constBool(n.Args[2]) || len(b.constDims(n.Args[1])) == 0 {
		return v
	}
	return b.Op("reshape", v, b.keptShape(n))
}

// restoreDims broadcasts v, of the shape of reduction n's result, to the shape of its operand.
func (b *Builder) restoreDims(v *Value, n *Node) *Value {
	return b.Op("broadcast", b.keptDims(v, n), b.ShapeOf(n.Args[0]))
}

// gradProd multiplies, for every element, the products of those before and after it, so that zeros do no harm.
func gradProd(b *Builder, n *Node, ct []*Value) []*Value {
	x := n.Args[0]
	r := b.NeedRank(x)
	dims := b.constDims(n.Args[1])
	g := b.restoreDims(ct[0], n)
	if len(dims) == 0 {
		return only(3, 0, g)
	}
	reduced := map[int]bool{}
	for _, d := range dims {
		reduced[d] = true
	}
	var order []int
	for i := 0; i < r; i++ {
		if !reduced[i] {
			order = append(order, i)
		}
	}
	kept := len(order)
	order = append(order, dims...)
	// reduced dims last, seen as one dim of n elements
	p := b.Op("permute", x, b.Ints(order...))
	size := b.Int(1)
	for _, d := range dims {
		size = b.mulInt(size, b.SizeOf(x, d))
	}
	flat := make([]*Value, 0, kept+1)
	for _, d := range order[:kept] {
		flat = append(flat, b.SizeOf(x, d))
	}
	rows := b.Op("reshape", p, b.intList(append(flat, size)))
	others := b.Op("mul", b.exclusiveProd(rows, kept, size, false), b.exclusiveProd(rows, kept, size, true))
	back := b.Op("permute", b.Op("reshape", others, b.ShapeOf(p)), b.Ints(inversePermutation(order)...))
	return only(3, 0, b.Op("mul", g, back))
}

// intList is a list of ints, a constant where all are.
func (b *Builder) intList(vs []*Value) *Value {
	consts := make([]int, len(vs))
	for i, v := range vs {
		d, ok := v.Const()
		if !ok {
			return b.List(vs...)
		}
		consts[i] = int(d.(int64))
	}
	return b.Ints(consts...)
}

// exclusiveProd is, at every index along dim, the product of the elements before it (after it where reverse).
func (b *Builder) exclusiveProd(x *Value, dim int, size *Value, reverse bool) *Value {
	if reverse {
		x = b.Op("flip", x, b.Ints(dim))
	}
	lo := make([]int, b.NeedRank(x))
	hi := make([]int, len(lo))
	lo[dim] = 1
	x = b.Op("pad", x, b.Ints(lo...), b.Ints(hi...), b.Float(1))
	x = b.Op("cumprod", x, b.Int(dim))
	x = b.Op("slice", x, b.Int(dim), b.Int(0), size, b.Int(1))
	if reverse {
		x = b.Op("flip", x, b.Ints(dim))
	}
	return x
}

// gradExtreme shares the cotangent evenly among the elements that equal the extreme one, as torch.amax does. Where a whole tensor is
// reduced to NaN the NaNs share it, as for torch.max; along some dims it then becomes NaN, as for torch.amax.
func gradExtreme(b *Builder, n *Node, ct []*Value) []*Value {
	x := n.Args[0]
	y := b.restoreDims(n.Results[0], n)
	is := b.Op("eq", x, y)
	if x.Type.IsFloatTensor() && len(n.Results[0].Type.Dims) == 0 {
		is = b.Op("logical_or", is, b.Op("logical_and", b.Op("isnan", x), b.Op("isnan", y)))
	}
	mask := b.Op("convert", is, b.DType(b.NeedDType(x)))
	count := b.Op("sum", mask, n.Args[1], b.Bool(true))
	share := b.Op("div", b.keptDims(ct[0], n), count)
	return only(3, 0, b.Op("mul", b.Op("broadcast", share, b.ShapeOf(x)), mask))
}
