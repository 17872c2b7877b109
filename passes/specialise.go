package passes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/ir"
)

// Signature is a key, not for reading, of what Specialise assumes of arguments: dtypes and shapes of tensors, structure of containers, and the values of ints,
// bools, strings, dtypes and None. Floats stay run-time values.
func Signature(args []ir.Datum) string {
	key := make([]byte, 0, 256)
	for _, a := range args {
		key = appendArg(key, a)
	}
	return string(key)
}

func appendArg(key []byte, d ir.Datum) []byte {
	all := func(tag byte, ds []ir.Datum) {
		key = binary.AppendUvarint(append(key, tag), uint64(len(ds)))
		for _, e := range ds {
			key = appendArg(key, e)
		}
	}
	switch d := d.(type) {
	case float64:
		return append(key, tagKindFloat)
	case ir.List:
		all(tagList, d.Elems())
	case ir.Tuple:
		all(tagTuple, d)
	case *ir.Dict:
		all(tagDict, d.Keys)
		all(tagDict, d.Values)
	default:
		return appendDatum(key, d)
	}
	return key
}

// Specialise gives f for arguments of one Signature: types are inferred throughout, scalar computations on known values are done,
// branches on known conditions resolved, and generic calls expanded into primitive ops where operand types are known. Calls that
// cannot be expanded, because types stay unknown or because the call is wrong and must fail when it is reached, stay generic.
// Parameters stay the same in number and order. f is not changed.
func Specialise(f *ir.Func, args []ir.Datum) (*ir.Func, error) {
	return specialiseArgs(f, args, nil)
}

func specialiseArgs(f *ir.Func, args []ir.Datum, fuel *Fuel) (*ir.Func, error) {
	if len(args) != len(f.Body.Params) {
		return nil, fmt.Errorf("%s takes %d arguments, got %d", f.Name, len(f.Body.Params), len(args))
	}
	return specialise(f, fuel, func(s *specialiser, f *ir.Func, i int) { bindParam(s, f, i, args[i]) })
}

// SpecialiseTypes is Specialise for argument types instead of arguments: no values are known. Types must be at least as precise as
// those of the parameters; nil entries, or a nil slice, keep these.
func SpecialiseTypes(f *ir.Func, types []*ir.Type) (*ir.Func, error) {
	return specialise(f, nil, keepParam(types))
}

// keepParam takes over parameters, with the types that are given.
func keepParam(types []*ir.Type) func(s *specialiser, f *ir.Func, i int) {
	return func(s *specialiser, f *ir.Func, i int) {
		p := f.Body.Params[i]
		t := p.Type
		if i < len(types) && types[i] != nil {
			t = *types[i]
		}
		s.env[p] = s.f.Param(f.ParamNames[i], t)
	}
}

// bindParam takes over parameter i for an actual argument.
func bindParam(s *specialiser, f *ir.Func, i int, arg ir.Datum) {
	p := f.Body.Params[i]
	q := s.f.Param(f.ParamNames[i], argType(p.Type, arg))
	s.env[p] = s.bind(q, arg)
}

// work says what a walk does.
type work struct {
	expand  bool // generic calls
	rewrite bool // single nodes, by the rewrites
	fold    bool // ops on literals
	flow    bool // known branches and loops
	share   bool // equal nodes
	fuel    *Fuel
}

func specialise(f *ir.Func, fuel *Fuel, param func(s *specialiser, f *ir.Func, i int)) (*ir.Func, error) {
	g, err := rebuild(f, work{expand: true, rewrite: true, fold: true, flow: true, share: true, fuel: fuel}, param)
	if err != nil {
		return nil, err
	}
	hoist(g.Body, fuel)
	g.Sweep(keeps)
	return g.Clone(), nil
}

// rebuild makes a function anew, node by node.
func rebuild(f *ir.Func, w work, param func(s *specialiser, f *ir.Func, i int)) (*ir.Func, error) {
	s := &specialiser{work: w, f: ir.NewFunc(f.Name), env: map[*ir.Value]*ir.Value{}, gradients: map[string]*ir.Func{}, budget: 100_000 + 50*countNodes(f.Body)}
	s.b = ir.NewBuilder(s.f)
	s.push()
	err := ir.Try(func() {
		for i := range f.Body.Params {
			param(s, f, i)
		}
		s.nodes(f.Body.Nodes)
		s.b.Return(s.vals(f.Returns())...)
	})
	return s.f, err
}

func countNodes(b *ir.Block) int {
	n := 0
	b.Walk(func(*ir.Node) { n++ })
	return n
}

// argType is the type of a parameter for an actual argument.
func argType(declared ir.Type, d ir.Datum) ir.Type {
	switch v := d.(type) {
	case *ir.Array:
		return v.Type()
	case ir.List:
		if v.Len() > 0 {
			return ir.TypeOf(d)
		}
		return declared
	case *ir.Dict:
		if len(v.Keys) > 0 {
			return ir.TypeOf(d)
		}
		return declared
	case nil:
		return declared
	}
	return ir.TypeOf(d)
}

// specialiser rebuilds a function node by node.
type specialiser struct {
	work
	f   *ir.Func
	b   *ir.Builder
	env map[*ir.Value]*ir.Value // what has become of a value of the old function
	// seen finds nodes that were built before, by what they compute; one map per open block.
	seen      []map[string][]*ir.Value
	gradients map[string]*ir.Func // what vjp nodes stand for, by callee and operand types
	depth     int                 // of expansions within expansions
	budget    int                 // nodes that may still be built before loops stay loops and calls stay calls
}

// maxDepth bounds expansions within expansions.
const maxDepth = 12

func (s *specialiser) push() { s.seen = append(s.seen, map[string][]*ir.Value{}) }
func (s *specialiser) pop()  { s.seen = s.seen[:len(s.seen)-1] }

// val is what has become of v. A value that is not in env belongs to the new function already.
func (s *specialiser) val(v *ir.Value) *ir.Value {
	if w, ok := s.env[v]; ok {
		return w
	}
	return v
}

func (s *specialiser) vals(vs []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		out[i] = s.val(v)
	}
	return out
}

func (s *specialiser) set(old, new []*ir.Value) {
	for i, v := range old {
		s.env[v] = new[i]
		if w := new[i]; w.Name == "" && w != v {
			w.Name = v.Name
		}
	}
}

// bind gives the value of parameter q for an argument: literals for what Signature fixes.
func (s *specialiser) bind(q *ir.Value, d ir.Datum) *ir.Value {
	switch v := d.(type) {
	case *ir.Array, float64, *ir.Dict:
		return q
	case ir.List:
		return s.bindElems(q, v.Elems(), "list_get", ir.OpList)
	case ir.Tuple:
		return s.bindElems(q, v, "tuple_get", ir.OpTuple)
	}
	return s.b.Const(d)
}

func (s *specialiser) bindElems(q *ir.Value, ds []ir.Datum, get string, op *ir.Op) *ir.Value {
	if len(ds) > 4096 {
		return q
	}
	elems := make([]*ir.Value, len(ds))
	for i, d := range ds {
		e := s.b.Node(ir.LookupOp(get), ir.Attrs{}, nil, []ir.Type{argType(ir.Any, d)}, q, s.b.Int(i)).Results[0]
		elems[i] = s.bind(e, d)
	}
	return s.b.EmitOp(op, ir.Attrs{}, elems...)[0]
}

// nodes rebuilds nodes, leaving out terminators.
func (s *specialiser) nodes(ns []*ir.Node) {
	for _, n := range ns {
		if n.Op.Class != ir.Terminator {
			s.node(n)
		}
	}
}

func (s *specialiser) node(n *ir.Node) {
	s.budget--
	if !n.Pos.IsZero() {
		s.b.Pos = n.Pos
	}
	switch n.Op {
	case ir.OpIf:
		s.branch(n)
	case ir.OpFor:
		s.loop(n)
	case ir.OpWhile:
		s.while(n)
	case ir.OpFused:
		blk := n.Blocks[0]
		s.set(blk.Params, s.vals(n.Args))
		s.nodes(blk.Nodes)
		s.set(n.Results, s.vals(blk.Terminator().Args))
	case ir.OpAten:
		s.call(n)
	case ir.OpVjp:
		s.vjp(n)
	case ir.OpGrad: // has no meaning of its own: autograd.ExpandGradNodes replaces it
		s.keep(n, s.vals(n.Args))
	default:
		s.set(n.Results, s.op(n, s.vals(n.Args)))
	}
}

// op builds one node of an op without blocks, or finds a simpler way to the same results.
func (s *specialiser) op(n *ir.Node, args []*ir.Value) []*ir.Value {
	if s.rewrite {
		if r := s.simplify(n, args); r != nil && s.fuel.Take("rewrite", n) {
			return []*ir.Value{r}
		}
	}
	if s.fold {
		if ds, ok := fold(n, args); ok && s.fuel.Take("fold", n) {
			out := make([]*ir.Value, len(ds))
			for i, d := range ds {
				out[i] = s.constant(d)
			}
			return out
		}
	}
	types := make([]ir.Type, len(args))
	for i, a := range args {
		types[i] = a.Type
	}
	results, err := n.Op.Infer(&ir.Call{Op: n.Op, Args: types, Vals: args, Attrs: n.Attrs})
	if err != nil || len(results) != len(n.Results) { // wrong operands: it fails when it is reached
		results = make([]ir.Type, len(n.Results))
		for i, r := range n.Results {
			results[i] = r.Type
		}
	} else {
		for i, r := range n.Results {
			results[i] = refine(results[i], r.Type)
		}
	}
	return s.build(n.Op, n.Attrs, results, args)
}

// refine combines an inferred type with one that was known before.
func refine(inferred, known ir.Type) ir.Type {
	if inferred.Accepts(known) {
		return known
	}
	if inferred.Kind == ir.KTensor && known.Kind == ir.KTensor {
		if inferred.DType == 0 {
			inferred.DType = known.DType
		}
		if !inferred.Ranked && known.Ranked {
			inferred.Ranked, inferred.Dims = true, known.Dims
		}
	}
	return inferred
}

func (s *specialiser) constant(d ir.Datum) *ir.Value {
	if l, ok := d.(ir.List); ok {
		d = l.Frozen()
	}
	return s.build(ir.OpConst, ir.Attrs{Value: d}, []ir.Type{ir.TypeOf(d)}, nil)[0]
}

// build appends a node unless the same was built before.
func (s *specialiser) build(op *ir.Op, attrs ir.Attrs, results []ir.Type, args []*ir.Value) []*ir.Value {
	key := ""
	if s.share {
		key = nodeKey(op, attrs, args)
	}
	if key != "" {
		for i := len(s.seen) - 1; i >= 0; i-- {
			if rs, ok := s.seen[i][key]; ok && s.fuel.Take("share", rs[0].Def) {
				return rs
			}
		}
	}
	rs := s.b.Node(op, attrs, nil, results, args...).Results
	if key != "" {
		s.seen[len(s.seen)-1][key] = rs
	}
	return rs
}

// emit is build for an op that infers its own types, with the simplifications.
func (s *specialiser) emit(name string, args ...*ir.Value) *ir.Value {
	op := ir.LookupOp(name)
	n := &ir.Node{Op: op, Args: args, Results: []*ir.Value{{Type: ir.Any}}}
	return s.op(n, args)[0]
}

// nodeKey says what a node computes; empty for nodes that must not be shared.
func nodeKey(op *ir.Op, attrs ir.Attrs, args []*ir.Value) string {
	if op.Effect == ir.Ordered {
		return ""
	}
	var sb strings.Builder
	sb.WriteString(op.Name)
	switch op {
	case ir.OpConst:
		if a, ok := attrs.Value.(*ir.Array); ok && a.Len() > 64 {
			return ""
		}
		sb.WriteByte(' ')
		sb.WriteString(ir.FormatDatum(attrs.Value))
		return sb.String()
	case ir.OpAten, ir.OpVjp:
		fmt.Fprintf(&sb, " %s/%d/%d", attrs.Callee, attrs.Order, attrs.Count)
	}
	for _, a := range args {
		fmt.Fprintf(&sb, " %d", a.ID)
	}
	return sb.String()
}

// call expands a generic call, or keeps it.
func (s *specialiser) call(n *ir.Node) {
	args := s.vals(n.Args)
	fn := aten.Lookup(n.Attrs.Callee)
	if !s.expand || fn == nil || len(args) != len(fn.Params) || s.depth >= maxDepth || s.budget <= 0 || anyUncertain(args) {
		s.keep(n, args)
		return
	}
	scratch := &ir.Block{}
	old := s.b.Block
	s.b.Block = scratch
	var outs []*ir.Value
	err := ir.Try(func() { outs = fn.Expand(s.b, args) })
	s.b.Block = old
	if err != nil || len(outs) != len(n.Results) || calls(scratch, n.Attrs.Callee) {
		s.keep(n, args)
		return
	}
	s.depth++
	s.nodes(scratch.Nodes)
	s.depth--
	s.set(n.Results, s.vals(outs))
}

// anyUncertain reports whether it is open what kind of value an operand is, or whether it is None: an expansion would have to guess.
func anyUncertain(args []*ir.Value) bool {
	for _, a := range args {
		if a.Type.Kind == ir.KAny || a.Type.Kind == ir.KOptional {
			return true
		}
	}
	return false
}

func calls(b *ir.Block, callee string) bool {
	for _, n := range b.Nodes {
		if n.Op == ir.OpAten && n.Attrs.Callee == callee {
			return true
		}
	}
	return false
}

// keep leaves a generic call as it is.
func (s *specialiser) keep(n *ir.Node, args []*ir.Value) {
	types := make([]ir.Type, len(n.Results))
	for i, r := range n.Results {
		types[i] = r.Type
	}
	s.set(n.Results, s.build(n.Op, n.Attrs, types, args))
}

// vjp expands the gradient of a generic call where the types of its operands are known.
func (s *specialiser) vjp(n *ir.Node) {
	args := s.vals(n.Args)
	if !s.expand {
		s.keep(n, args)
		return
	}
	f, cts, err := s.gradient(n, args)
	if err != nil || s.budget <= 0 || s.depth >= maxDepth {
		s.keep(n, args)
		return
	}
	s.depth++
	s.set(f.Body.Params, cts)
	s.nodes(f.Body.Nodes)
	s.depth--
	s.set(n.Results, s.vals(f.Returns()))
}

// gradient is the function behind a vjp node, and what to call it with.
func (s *specialiser) gradient(n *ir.Node, args []*ir.Value) (*ir.Func, []*ir.Value, error) {
	fn := aten.Lookup(n.Attrs.Callee)
	if fn == nil || len(args) < len(fn.Params) {
		return nil, nil, errors.New("unknown call")
	}
	in := append([]*ir.Value{}, args...)
	for i, a := range args[len(fn.Params):] { // cotangents, and the operands of higher orders
		if k := a.Type.Kind; k == ir.KOptional || k == ir.KAny {
			t, err := s.primalType(n, fn, args, i)
			if err != nil {
				return nil, nil, err
			}
			zero := s.emit("full", s.constant(ir.Ints(t.Shape()...)), s.constant(0.0), s.constant(t.DType))
			in[len(fn.Params)+i] = s.emit("or_zeros", a, zero)
		}
	}
	key := typeSignature(n, in)
	if f, ok := s.gradients[key]; ok {
		return f, in, nil
	}
	ops := make([]operand, len(in))
	for i, a := range in {
		ops[i] = operandOf(a)
	}
	f, err := expandCall(fn, n.Attrs.Order, ops, nil)
	if err != nil {
		return nil, nil, err
	}
	if len(f.Returns()) != len(n.Results) {
		return nil, nil, errors.New("another number of results")
	}
	s.gradients[key] = f
	return f, in, nil
}

// primalType is the type of the result that cotangent i of a first-order vjp node belongs to.
func (s *specialiser) primalType(n *ir.Node, fn *aten.Fn, args []*ir.Value, i int) (t ir.Type, err error) {
	if n.Attrs.Order != 1 {
		return t, ir.ErrNeedsTypes
	}
	old := s.b.Block
	s.b.Block = &ir.Block{}
	err = ir.Try(func() {
		if outs := fn.Expand(s.b, args[:len(fn.Params)]); i < len(outs) {
			t = outs[i].Type
		}
	})
	s.b.Block = old
	if err == nil && !(t.Static() && t.DType.IsFloat()) {
		err = ir.ErrNeedsTypes
	}
	return t, err
}

// typeSignature names the types, and where they are literals the values, of a vjp node's operands.
func typeSignature(n *ir.Node, args []*ir.Value) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s/%d", n.Attrs.Callee, n.Attrs.Order)
	var write func(a *ir.Value)
	write = func(a *ir.Value) {
		sb.WriteByte('|')
		if d, ok := a.Const(); ok && !holdsTensor([]ir.Datum{d}) {
			sb.WriteString(ir.FormatDatum(d))
			return
		}
		sb.WriteString(a.Type.String())
		if a.Def != nil && (a.Def.Op == ir.OpList || a.Def.Op == ir.OpTuple) {
			sb.WriteByte('<')
			for _, e := range a.Def.Args {
				write(e)
			}
			sb.WriteByte('>')
		}
	}
	for _, a := range args {
		write(a)
	}
	return sb.String()
}
