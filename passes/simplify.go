package passes

import (
	"context"
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// foldMost bounds the elements of tensors in constant folding.
const foldMost = 4096

// fold evaluates a node on literals with the reference evaluator. Nodes that fail are left to fail when they are reached.
func fold(n *ir.Node, args []*ir.Value) (out []ir.Datum, ok bool) {
	switch n.Op.Class {
	case ir.Host:
		if n.Op.Effect == ir.Ordered {
			return nil, false
		}
	case ir.Elementwise, ir.Reduce, ir.Move, ir.View:
	default:
		return nil, false
	}
	if n.Op == ir.OpConst || n.Op.Name == "detach" {
		return nil, false
	}
	ds := make([]ir.Datum, len(args))
	for i, a := range args {
		if ds[i], ok = a.Const(); !ok || tooLarge(ds[i]) {
			return nil, false
		}
	}
	g := ir.NewFunc("fold")
	b := ir.NewBuilder(g)
	vs := make([]*ir.Value, len(ds))
	for i, d := range ds {
		vs[i] = b.Const(d)
	}
	types := make([]ir.Type, len(n.Results))
	b.Return(b.Node(n.Op, n.Attrs, nil, types, vs...).Results...)
	defer func() {
		if recover() != nil { // operands of the wrong kind
			out, ok = nil, false
		}
	}()
	out, err := (&ir.Evaluator{}).Run(context.Background(), g)
	if err != nil {
		return nil, false
	}
	for i, d := range out {
		if tooLarge(d) {
			return nil, false
		}
		if a, ok := d.(*ir.Array); ok {
			out[i] = a.Contiguous()
		}
	}
	return out, true
}

func tooLarge(d ir.Datum) bool {
	switch v := d.(type) {
	case *ir.Array:
		return v.Len() > foldMost
	case ir.List:
		return v.Len() > foldMost
	case string:
		return len(v) > foldMost
	}
	return false
}

// rewrite gives a simpler value for what a node computes from args, or nil. It must be exact to the last bit.
type rewrite func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value

// listLen is the length of a list, where it is known: also of one that a loop with a known number of trips appends to in every trip.
func (s *specialiser) listLen(v *ir.Value) (int, bool) {
	more := 0
	for {
		if es, ok := s.elems(v); ok {
			return len(es) + more, true
		}
		switch {
		case v.Def == nil:
			return 0, false
		case v.Def.Op.Name == "list_append":
			more++
			v = v.Def.Args[0]
		case v.Def.Op == ir.OpFor:
			trip, known := constInt(v.Def.Args[0])
			per, grows := appendsPerTrip(v)
			if !known || !grows {
				return 0, false
			}
			more += max(trip, 0) * per
			v = v.Def.Args[v.Index+1]
		default:
			return 0, false
		}
	}
}

// appendsPerTrip is how often every trip of a for appends to the list that is its result v, if it does nothing else to it.
func appendsPerTrip(v *ir.Value) (n int, ok bool) {
	body := v.Def.Blocks[0]
	y := body.Nodes[len(body.Nodes)-1].Args[v.Index]
	for ; y.Def != nil && y.Def.Op.Name == "list_append"; n++ {
		y = y.Def.Args[0]
	}
	return n, y == body.Params[v.Index+1]
}

// simplify applies the rewrites of an op.
func (s *specialiser) simplify(n *ir.Node, args []*ir.Value) *ir.Value {
	if len(n.Results) != 1 {
		return nil
	}
	for _, r := range rewrites[n.Op.Name] {
		if v := r(s, n, args); v != nil {
			return v
		}
	}
	return nil
}

var rewrites map[string][]rewrite

func init() {
	rewrites = map[string][]rewrite{
		// what types tell
		"shape": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if !a[0].Type.Static() {
				return nil
			}
			return s.constant(ir.Ints(a[0].Type.Shape()...))
		}},
		"size": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			d, ok := constInt(a[1])
			if !ok || !a[0].Type.Ranked {
				return nil
			}
			k, err := ir.WrapDim(d, len(a[0].Type.Dims))
			if err != nil || k >= len(a[0].Type.Dims) || !a[0].Type.Dims[k].Known() {
				return nil
			}
			return s.constant(int64(a[0].Type.Dims[k].N))
		}},
		"rank": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if !a[0].Type.Ranked {
				return nil
			}
			return s.constant(int64(len(a[0].Type.Dims)))
		}},
		"numel": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if !a[0].Type.Static() {
				return nil
			}
			return s.constant(int64(a[0].Type.NumElems()))
		}},
		"dtype_of": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if a[0].Type.DType == dtype.Invalid {
				return nil
			}
			return s.constant(a[0].Type.DType)
		}},
		"is_none": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			switch a[0].Type.Kind {
			case ir.KAny, ir.KOptional:
				return nil
			}
			return s.constant(a[0].Type.Kind == ir.KNone)
		}},
		"unwrap": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			switch a[0].Type.Kind {
			case ir.KAny, ir.KOptional, ir.KNone:
				return nil
			}
			return a[0]
		}},
		// containers of known structure
		"list_get":  {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value { return elemOf(a[0], ir.OpList, a[1]) }},
		"tuple_get": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value { return elemOf(a[0], ir.OpTuple, a[1]) }},
		"list_len": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if k, ok := s.listLen(a[0]); ok {
				return s.constant(int64(k))
			}
			return nil
		}},
		"list_append": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			es, ok := s.elems(a[0])
			if !ok || len(es) >= 256 {
				return nil
			}
			return s.emitOp(ir.OpList, append(append([]*ir.Value{}, es...), a[1]))
		}},
		"list_concat": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			x, ok1 := s.elems(a[0])
			y, ok2 := s.elems(a[1])
			if !ok1 || !ok2 || len(x)+len(y) > 256 {
				return nil
			}
			return s.emitOp(ir.OpList, append(append([]*ir.Value{}, x...), y...))
		}},
		"list_slice": {sliceKnown},
		"list_reverse": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			es, ok := s.elems(a[0])
			if !ok {
				return nil
			}
			out := make([]*ir.Value, len(es))
			for i, e := range es {
				out[len(es)-1-i] = e
			}
			return s.emitOp(ir.OpList, out)
		}},
		"list_set": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			es, ok := s.elems(a[0])
			i, known := constInt(a[1])
			if !ok || !known || i < -len(es) || i >= len(es) || len(es) > 256 {
				return nil
			}
			out := append([]*ir.Value{}, es...)
			out[(i+len(es))%len(es)] = a[2]
			return s.emitOp(ir.OpList, out)
		}},
		"list_onehot": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			k, ok1 := constInt(a[0])
			i, ok2 := constInt(a[1])
			if !ok1 || !ok2 || k > 256 || i < -k || i >= k {
				return nil
			}
			out := make([]*ir.Value, k)
			for j := range out {
				out[j] = s.constant(nil)
			}
			out[(i+k)%k] = a[2]
			return s.emitOp(ir.OpList, out)
		}},
		"list_of_tuple": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if a[0].Def == nil || a[0].Def.Op != ir.OpTuple {
				return nil
			}
			return s.emitOp(ir.OpList, a[0].Def.Args)
		}},
		"check_len": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			es, ok := s.elems(a[0])
			k, known := constInt(a[1])
			if ok && known && len(es) == k {
				return a[0]
			}
			return nil
		}},
		"py_select": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			d, ok := a[0].Const()
			if c, isBool := d.(bool); ok && isBool {
				if c {
					return a[1]
				}
				return a[2]
			}
			return nil
		}},
		"item":       {itemOfNumber(func(ir.Type) bool { return true })},
		"item_int":   {itemOfNumber(func(t ir.Type) bool { return t.Kind == ir.KInt })},
		"item_float": {itemOfNumber(func(t ir.Type) bool { return t.Kind == ir.KFloat })},
		"item_bool":  {itemOfNumber(func(t ir.Type) bool { return t.Kind == ir.KBool })},
		// cotangents
		"or_zeros": {zerosForNone},
		"ct_fill":  {zerosForNone},
		"ct_shell": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			switch a[0].Type.Kind {
			case ir.KTensor, ir.KList, ir.KTuple, ir.KDict:
				return a[0]
			}
			return nil
		}},
		"ct_add": {addCotangents},
		"ct_ones": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if a[0].Type.NumElems() != 1 || !a[0].Type.DType.IsFloat() {
				return nil
			}
			return s.full(a[0].Type, 1)
		}},
		// tensors
		"convert": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if d, ok := a[1].Const(); ok && d == ir.Datum(a[0].Type.DType) {
				return a[0]
			}
			return nil
		}},
		"broadcast": {sameShape, func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if from := definedBy(a[0], "broadcast"); from != nil {
				return s.emit("broadcast", from.Args[0], a[1])
			}
			if from := definedBy(a[0], "full"); from != nil {
				return s.emit("full", a[1], from.Args[1], from.Args[2])
			}
			return nil
		}},
		"reshape": {sameShape, func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if from := definedBy(a[0], "reshape"); from != nil {
				return s.emit("reshape", from.Args[0], a[1])
			}
			if from := definedBy(a[0], "full"); from != nil {
				return s.emit("full", a[1], from.Args[1], from.Args[2])
			}
			return nil
		}},
		"permute": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			p, ok := constInts(a[1])
			if !ok {
				return nil
			}
			if from := definedBy(a[0], "permute"); from != nil {
				if q, ok := constInts(from.Args[1]); ok && len(p) == len(q) {
					both := make([]int, len(p))
					for i, d := range p {
						if d < 0 || d >= len(q) {
							return nil
						}
						both[i] = q[d]
					}
					return s.emit("permute", from.Args[0], s.constant(ir.Ints(both...)))
				}
			}
			for i, d := range p {
				if i != d {
					return nil
				}
			}
			if a[0].Type.Rank() == len(p) {
				return a[0]
			}
			return nil
		}},
		"slice": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			dim, ok0 := constInt(a[1])
			start, ok1 := constInt(a[2])
			stop, ok2 := constInt(a[3])
			step, ok3 := constInt(a[4])
			if ok0 && ok1 && ok2 && ok3 && a[0].Type.Ranked && dim >= 0 && dim < len(a[0].Type.Dims) && start == 0 && step == 1 && stop == a[0].Type.Dims[dim].N {
				return a[0]
			}
			return nil
		}},
		"neg": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if from := definedBy(a[0], "neg"); from != nil {
				return from.Args[0]
			}
			return nil
		}},
		"mul": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if isFull(a[1], 1) {
				return a[0]
			}
			if isFull(a[0], 1) {
				return a[1]
			}
			return nil
		}},
		"div": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if isFull(a[1], 1) && a[0].Type.DType.IsFloat() {
				return a[0]
			}
			return nil
		}},
		"sub": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if isFull(a[1], 0) && !isFull(a[1], math.Copysign(0, -1)) {
				return a[0]
			}
			return nil
		}},
		"add": {func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
			if isFull(a[1], math.Copysign(0, -1)) {
				return a[0]
			}
			if isFull(a[0], math.Copysign(0, -1)) {
				return a[1]
			}
			if a[0].Type.DType.IsInt() {
				if isFull(a[1], 0) {
					return a[0]
				}
				if isFull(a[0], 0) {
					return a[1]
				}
			}
			return nil
		}},
	}
}

func constInt(v *ir.Value) (int, bool) {
	d, ok := v.Const()
	i, isInt := d.(int64)
	return int(i), ok && isInt
}

func constInts(v *ir.Value) ([]int, bool) {
	d, ok := v.Const()
	if !ok {
		return nil, false
	}
	is, err := ir.AsInts(d)
	return is, err == nil
}

func definedBy(v *ir.Value, op string) *ir.Node {
	if v.Def == nil || v.Def.Op.Name != op {
		return nil
	}
	return v.Def
}

// isFull reports whether every element of v is the number x; zeros are told apart by sign.
func isFull(v *ir.Value, x float64) bool {
	n := definedBy(v, "full")
	if n == nil {
		if n = definedBy(v, "broadcast"); n != nil {
			return isFull(n.Args[0], x)
		}
		if n = definedBy(v, "scalar_tensor"); n == nil {
			return false
		}
		d, _ := n.Args[0].Const()
		return equals(d, x)
	}
	d, _ := n.Args[1].Const()
	return equals(d, x)
}

func equals(d ir.Datum, x float64) bool {
	switch v := d.(type) {
	case float64:
		return v == x && math.Signbit(v) == math.Signbit(x)
	case int64:
		return float64(v) == x && !(x == 0 && math.Signbit(x))
	}
	return false
}

func sameShape(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
	shape, ok := constInts(a[1])
	if !ok || !a[0].Type.Static() || len(shape) != len(a[0].Type.Dims) {
		return nil
	}
	for i, d := range a[0].Type.Dims {
		if d.N != shape[i] {
			return nil
		}
	}
	return a[0]
}

// full is a tensor of a static type with one value everywhere.
func (s *specialiser) full(t ir.Type, x float64) *ir.Value {
	return s.emit("full", s.constant(ir.Ints(t.Shape()...)), s.constant(x), s.constant(t.DType))
}

// emitOp is emit for list and tuple.
func (s *specialiser) emitOp(op *ir.Op, args []*ir.Value) *ir.Value {
	types := make([]ir.Type, len(args))
	for i, a := range args {
		types[i] = a.Type
	}
	ts, err := op.Infer(&ir.Call{Op: op, Args: types, Vals: args})
	if err != nil {
		s.b.Fail(err)
	}
	return s.build(op, ir.Attrs{}, ts, args)[0]
}

// elems are the elements of a list whose structure is known.
func (s *specialiser) elems(v *ir.Value) ([]*ir.Value, bool) {
	if v.Def == nil {
		return nil, false
	}
	if v.Def.Op == ir.OpList {
		return v.Def.Args, true
	}
	d, ok := v.Const()
	l, isList := d.(ir.List)
	if !ok || !isList || l.Len() > 256 {
		return nil, false
	}
	out := make([]*ir.Value, l.Len())
	for i, e := range l.Elems() {
		out[i] = s.constant(e)
	}
	return out, true
}

func elemOf(v *ir.Value, op *ir.Op, index *ir.Value) *ir.Value {
	i, ok := constInt(index)
	if !ok || v.Def == nil || v.Def.Op != op {
		return nil
	}
	n := len(v.Def.Args)
	if i < -n || i >= n {
		return nil
	}
	return v.Def.Args[(i+n)%n]
}

func sliceKnown(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
	es, ok := s.elems(a[0])
	if !ok {
		return nil
	}
	idx := make([]ir.Datum, len(es))
	for i := range idx {
		idx[i] = int64(i)
	}
	places, ok := fold(n, append([]*ir.Value{s.constant(ir.NewList(idx...))}, a[1:]...))
	if !ok {
		return nil
	}
	var out []*ir.Value
	for _, i := range places[0].(ir.List).Elems() {
		out = append(out, es[i.(int64)])
	}
	return s.emitOp(ir.OpList, out)
}

// itemOfNumber reads back the number of which a 0-d tensor was made, where the dtype holds it exactly.
func itemOfNumber(want func(ir.Type) bool) rewrite {
	return func(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
		from := definedBy(a[0], "scalar_tensor")
		if from == nil {
			return nil
		}
		x, d := from.Args[0], a[0].Type.DType
		exact := x.Type.Kind == ir.KInt && d == dtype.I64 || x.Type.Kind == ir.KFloat && d == dtype.F64 || x.Type.Kind == ir.KBool && d == dtype.Bool
		if !exact || !want(x.Type) {
			return nil
		}
		return x
	}
}

// zerosForNone resolves or_zeros and ct_fill where the types say which it is.
func zerosForNone(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
	switch a[0].Type.Kind {
	case ir.KTensor:
		return a[0]
	case ir.KNone:
		if a[1].Type.Static() && a[1].Type.DType.IsFloat() {
			return s.full(a[1].Type, 0)
		}
	case ir.KList, ir.KTuple:
		if n.Op.Name == "or_zeros" {
			return a[0]
		}
		if x, y := a[0].Def, a[1].Def; x != nil && y != nil && x.Op == y.Op && (x.Op == ir.OpList || x.Op == ir.OpTuple) && len(x.Args) == len(y.Args) {
			out := make([]*ir.Value, len(x.Args))
			for i, e := range x.Args {
				out[i] = s.emit("ct_fill", e, y.Args[i])
			}
			return s.emitOp(x.Op, out)
		}
	}
	return nil
}

// addCotangents resolves ct_add where the structure of both is known.
func addCotangents(s *specialiser, n *ir.Node, a []*ir.Value) *ir.Value {
	x, y := a[0], a[1]
	switch {
	case x.Type.Kind == ir.KNone:
		return y
	case y.Type.Kind == ir.KNone:
		return x
	case x.Type.IsFloatTensor() && y.Type.IsFloatTensor() && x.Type.Ranked && y.Type.Ranked && x.Type.DType == y.Type.DType:
		return s.emit("add", x, y)
	}
	if p, q := x.Def, y.Def; p != nil && q != nil && p.Op == q.Op && (p.Op == ir.OpList || p.Op == ir.OpTuple) && len(p.Args) == len(q.Args) {
		out := make([]*ir.Value, len(p.Args))
		for i, e := range p.Args {
			out[i] = s.emit("ct_add", e, q.Args[i])
		}
		return s.emitOp(p.Op, out)
	}
	return nil
}
