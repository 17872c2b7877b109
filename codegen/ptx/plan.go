package ptx

import (
	"context"
	"fmt"
	"slices"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// planner walks a function. Values are host data, or arrays without memory: *ir.Array with nil Data, whose Owner says what holds the elements:
// a *Buffer; an *ir.Array of no dims, the one value of all elements; or indexOwner, where an element's value is its offset. So the
// view ops' own evaluation does for them.
type planner struct {
	*Program
	m     *module
	fname string
	vals  map[*ir.Value]ir.Datum
	temps int

	// Elementwise nodes of a fused group wait here until something needs their values.
	lazy  map[*ir.Value]*ir.Node
	order []*ir.Node

	unsupported []string
}

type indexOwner struct{}

func (p *planner) newBuffer(k BufferKind, name string, d dtype.DType, shape []int) *ir.Array {
	a := &ir.Array{DType: d, Shape: slices.Clone(shape), Strides: ir.ContiguousStrides(shape)}
	b := &Buffer{Kind: k, Name: name, DType: d, Elems: a.Len()}
	p.Buffers = append(p.Buffers, b)
	a.Owner = b
	return a
}

// temp makes an array for results.
func (p *planner) temp(d dtype.DType, shape []int) *ir.Array {
	p.temps++
	return p.newBuffer(Temp, fmt.Sprintf("$%d", p.temps-1), d, shape)
}

// literal is an array all of whose elements are v, converted to d.
func literal(d dtype.DType, shape []int, v ir.Datum) *ir.Array {
	return &ir.Array{DType: d, Shape: slices.Clone(shape), Strides: make([]int, len(shape)), Owner: ir.Scalar(d, v)}
}

// block plans the nodes of a block.
func (p *planner) block(nodes []*ir.Node) {
	for _, n := range nodes {
		if n.Op.Class == ir.Terminator {
			return
		}
		if n.Op == ir.OpFused {
			p.fused(n)
			continue
		}
		p.node(n)
		if n.Op.Class == ir.Elementwise {
			p.datum(n.Results[0])
		}
	}
}

// fused plans a group: its elementwise nodes are computed where they are reduced, stored or viewed, together where shapes agree.
func (p *planner) fused(n *ir.Node) {
	b := n.Blocks[0]
	for i, v := range b.Params {
		if d, ok := p.datum(n.Args[i]); ok {
			p.vals[v] = d
		}
	}
	for _, m := range b.Nodes {
		if m.Op.Class != ir.Terminator {
			p.node(m)
			continue
		}
		p.materialise(n.Attrs.Callee, m.Args)
		for i, v := range m.Args {
			if d, ok := p.datum(v); ok {
				p.vals[n.Results[i]] = d
			}
		}
	}
	p.lazy, p.order = map[*ir.Value]*ir.Node{}, nil
}

// reject notes an operation that has no kernel. Its tensors get memory all the same, so that the rest of the function can be looked at.
func (p *planner) reject(n *ir.Node, why string) {
	at := n.Pos.String()
	if at == "" {
		at = "in " + p.fname
	}
	name := n.Op.Name
	if n.Attrs.Callee != "" {
		name += " " + n.Attrs.Callee
	}
	text := fmt.Sprintf("%s: %s", at, name)
	for i, a := range n.Args {
		if a.Type.IsTensor() {
			text += " of " + n.Args[i].Type.String()
			break
		}
	}
	if why != "" {
		text += ": " + why
	}
	p.complain(text)
	for _, r := range n.Results {
		if r.Type.Static() {
			p.vals[r] = p.temp(r.Type.DType, r.Type.Shape())
		}
	}
}

// datum gives what is known of a value, computing it first where it waits in a group; ok is false for values that depend on host
// parameters or on rejected nodes.
func (p *planner) datum(v *ir.Value) (d ir.Datum, ok bool) {
	if p.lazy[v] != nil {
		p.materialise("", []*ir.Value{v})
	}
	d, ok = p.vals[v]
	return d, ok
}

func (p *planner) node(n *ir.Node) {
	if n.Op.Class == ir.Generic {
		p.reject(n, "its operands' types are only known at run time")
		return
	}
	for _, r := range n.Results {
		if r.Type.IsTensor() && !r.Type.Static() {
			p.reject(n, "its result "+r.Type.String()+" has sizes that are only known at run time")
			return
		}
	}
	if n.Op.Class == ir.Elementwise {
		p.lazy[n.Results[0]] = n
		p.order = append(p.order, n)
		return
	}
	if n.Op.Class == ir.Reduce {
		p.reduce(n)
		return
	}
	args := make([]ir.Datum, len(n.Args))
	for i, a := range n.Args {
		d, ok := p.datum(a)
		if !ok {
			p.unknown(n, a)
			return
		}
		args[i] = d
	}
	if why, ok := p.apply(n, args); !ok {
		p.reject(n, why)
	}
}

// unknown handles a node with an operand that is not known: a message of its own only where the reason is not in the list already.
func (p *planner) unknown(n *ir.Node, a *ir.Value) {
	switch {
	case n.Op.Class == ir.Control:
		p.reject(n, "")
	case n.Op.Class == ir.Host && len(n.Results) > 0 && !n.Results[0].Type.IsTensor() && n.Op.Effect == ir.Pure:
		// its result is not known either, which matters only if a kernel needs it
	case len(p.unsupported) > 0 && a.Type.IsTensor():
	default:
		p.reject(n, "it depends on a number that is only known at run time")
	}
}

// apply handles a node whose operands are known and that is neither elementwise nor a reduction.
func (p *planner) apply(n *ir.Node, args []ir.Datum) (why string, ok bool) {
	switch n.Op.Class {
	case ir.Host:
		return p.host(n, args)
	case ir.View:
		return p.eval(n, p.viewable(n, args))
	case ir.Generate:
		return "", p.generate(n, args)
	case ir.Contract:
		return "", p.dot(n, args)
	case ir.Move:
		return "", p.move(n, args)
	}
	return "", false
}

// eval lets the op's own evaluation compute a result without touching elements.
func (p *planner) eval(n *ir.Node, args []ir.Datum) (why string, ok bool) {
	out, err := (&ir.Evaluator{}).EvalNode(context.Background(), n, args)
	if err != nil {
		return err.Error(), false
	}
	for i, r := range n.Results {
		p.vals[r] = out[i]
	}
	return "", true
}

// descriptive are the host ops that look only at shapes, dtypes and containers, so that they work on arrays without memory.
var descriptive = map[string]bool{"shape": true, "rank": true, "numel": true, "dtype_of": true, "list": true, "tuple": true, "list_get": true,
	"tuple_get": true, "list_len": true, "list_of_tuple": true, "is_none": true, "unwrap": true, "list_append": true, "list_concat": true}

func (p *planner) host(n *ir.Node, args []ir.Datum) (why string, ok bool) {
	if n.Op == ir.OpConst {
		return p.constant(n)
	}
	if n.Op.Effect == ir.Ordered || n.Op.Eval == nil {
		return "", false
	}
	if slices.ContainsFunc(args, holdsArray) && !descriptive[n.Op.Name] {
		return "it reads a tensor on the host", false
	}
	return p.eval(n, args)
}

func holdsArray(d ir.Datum) bool {
	switch d := d.(type) {
	case *ir.Array, *ir.Dict:
		return true
	case ir.List:
		return slices.ContainsFunc(d.Elems(), holdsArray)
	case ir.Tuple:
		return slices.ContainsFunc(d, holdsArray)
	}
	return false
}

// maxConstant bounds the bytes of one constant array, as text is a poor store for large ones.
const maxConstant = 1 << 20

func (p *planner) constant(n *ir.Node) (why string, ok bool) {
	v := n.Attrs.Value
	a, isArray := v.(*ir.Array)
	if !isArray {
		if holdsArray(v) {
			return "a constant container of tensors", false
		}
		p.vals[n.Results[0]] = v
		return "", true
	}
	if a.Len() == 1 {
		p.vals[n.Results[0]] = &ir.Array{DType: a.DType, Shape: a.Shape, Strides: make([]int, len(a.Shape)), Owner: a.View(nil, nil, a.Offset)}
		return "", true
	}
	c := a.Contiguous()
	if len(c.Bytes()) > maxConstant {
		return fmt.Sprintf("a constant of %d bytes is too large for PTX text; pass it as a parameter", len(c.Bytes())), false
	}
	name := p.m.data("constant", c.Bytes())
	p.vals[n.Results[0]] = p.newBuffer(Constant, name, a.DType, a.Shape)
	return "", true
}

// viewable makes sure that reshape finds a view: where the strides leave none, the operand is copied.
func (p *planner) viewable(n *ir.Node, args []ir.Datum) []ir.Datum {
	x, isArray := args[0].(*ir.Array)
	if n.Op.Name != "reshape" || !isArray || len(n.Results) != 1 {
		return args
	}
	if _, ok := ir.ViewStrides(x.Shape, x.Strides, n.Results[0].Type.Shape()); !ok {
		args = slices.Clone(args)
		args[0] = p.packed(x)
	}
	return args
}

// packed is a itself where it is contiguous memory, and a copy otherwise.
func (p *planner) packed(a *ir.Array) *ir.Array {
	if _, ok := a.Owner.(*Buffer); ok && a.IsContiguous() {
		return a
	}
	out := p.temp(a.DType, a.Shape)
	p.assign("copy", out, a)
	return out
}

// inMemory is a itself unless it is a literal or an index, which are written out.
func (p *planner) inMemory(a *ir.Array) *ir.Array {
	if _, ok := a.Owner.(*Buffer); ok {
		return a
	}
	return p.packed(a)
}

func (p *planner) generate(n *ir.Node, args []ir.Datum) bool {
	r := n.Results[0]
	d, shape := r.Type.DType, r.Type.Shape()
	switch n.Op.Name {
	case "full":
		p.vals[r] = literal(d, shape, args[1])
	case "scalar_tensor":
		p.vals[r] = literal(d, shape, args[0])
	case "iota":
		x := &ir.Array{DType: dtype.I64, Shape: shape, Strides: []int{1}, Owner: indexOwner{}}
		if d == dtype.I64 {
			p.vals[r] = x
			return true
		}
		out := p.temp(d, shape)
		p.elementwise("iota_"+d.String(), scalar.ConvertProgram(dtype.I64, d), []*ir.Array{x}, []*ir.Array{out})
		p.vals[r] = out
	default:
		return false
	}
	return true
}

// assign copies src to dst, of one shape.
func (p *planner) assign(hint string, dst, src *ir.Array) {
	b := scalar.NewBuilder()
	var ins []*ir.Array
	if v, ok := src.Owner.(*ir.Array); ok {
		b.Output(literalValue(b, src.DType, v))
		hint = "fill"
	} else {
		b.Output(b.Input(src.DType))
		ins = []*ir.Array{src}
	}
	p.elementwise(hint+"_"+src.DType.String(), b.Finish(), ins, []*ir.Array{dst})
}

// move plans the data movements that are copies into parts of their result.
func (p *planner) move(n *ir.Node, args []ir.Datum) bool {
	r := n.Results[0]
	view := func(f func(y *ir.Array) (part *ir.Array)) func(fill ir.Datum, src *ir.Array) {
		return func(fill ir.Datum, src *ir.Array) {
			y := p.temp(r.Type.DType, r.Type.Shape())
			p.assign("fill", y, literal(y.DType, y.Shape, fill))
			p.assign("copy", f(y), src)
			p.vals[r] = y
		}
	}
	switch n.Op.Name {
	case "pad":
		x, lo := args[0].(*ir.Array), ints(args[1])
		for _, k := range append(ints(args[2]), lo...) {
			if k < 0 {
				return false
			}
		}
		view(func(y *ir.Array) *ir.Array {
			at := 0
			for i, k := range lo {
				at += k * y.Strides[i]
			}
			return y.View(x.Shape, y.Strides, at)
		})(args[3], x)
	case "unslice":
		x, dim := args[0].(*ir.Array), int(args[1].(int64))
		view(func(y *ir.Array) *ir.Array {
			strides := slices.Clone(y.Strides)
			strides[dim] *= int(args[3].(int64))
			return y.View(x.Shape, strides, int(args[2].(int64))*y.Strides[dim])
		})(int64(0), x)
	case "concat":
		dim := int(args[1].(int64))
		y, at := p.temp(r.Type.DType, r.Type.Shape()), 0
		for _, d := range args[0].(ir.List).Elems() {
			x := d.(*ir.Array)
			p.assign("copy", y.View(x.Shape, y.Strides, at*y.Strides[dim]), x)
			at += x.Shape[dim]
		}
		p.vals[r] = y
	default:
		return false
	}
	return true
}

func ints(d ir.Datum) []int {
	v, err := ir.AsInts(d)
	if err != nil {
		panic("BUG: ptx: " + err.Error())
	}
	return slices.Clone(v)
}

// result notes what the function returns; lists and tuples are flattened depth-first.
func (p *planner) result(d ir.Datum) {
	switch d := d.(type) {
	case *ir.Array:
		p.Results = append(p.Results, p.inMemory(d))
	case ir.List:
		for _, e := range d.Elems() {
			p.result(e)
		}
	case ir.Tuple:
		for _, e := range d {
			p.result(e)
		}
	default:
		if holdsArray(d) {
			p.complain(fmt.Sprintf("in %s: a dict is a result: return its tensors one by one", p.fname))
			return
		}
		p.Results = append(p.Results, d)
	}
}

// complain adds a line to the error, once.
func (p *planner) complain(line string) {
	if !slices.Contains(p.unsupported, line) {
		p.unsupported = append(p.unsupported, line)
	}
}
