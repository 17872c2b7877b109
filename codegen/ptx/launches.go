package ptx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/codegen/kernel"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// arguments collects a launch's arguments in the order of the kernel's parameters.
type arguments []Arg

func (a *arguments) address(x *ir.Array) {
	*a = append(*a, Arg{Buffer: x.Owner.(*Buffer), Offset: x.Offset * x.DType.Size()})
}

func (a *arguments) numbers(ns ...int) {
	for _, n := range ns {
		*a = append(*a, Arg{Number: int64(n)})
	}
}

func (a *arguments) mayFault(p *scalar.Prog) {
	if p.MayFault() {
		*a = append(*a, Arg{Fault: true})
	}
}

// launch appends a launch with one thread per unit of work, as far as the grid goes.
func (p *planner) launch(f *function, threads int, args arguments) {
	if len(args) > maxParams {
		panic(fmt.Sprintf("BUG: ptx: kernel %s has %d parameters", f.name, len(args)))
	}
	p.Fault = p.Fault || f.fault
	grid := min((threads+blockSize-1)/blockSize, maxBlocks)
	p.Launches = append(p.Launches, Launch{Kernel: f.name, Grid: grid, Block: blockSize, Args: args})
}

// strides are those of operand k along a nest's axes.
func strides(n kernel.Nest, k int) []int {
	out := make([]int, len(n))
	for i, a := range n {
		out[i] = a.Strides[k]
	}
	return out
}

func sizes(n kernel.Nest) []int {
	out := make([]int, len(n))
	for i, a := range n {
		out[i] = a.Size
	}
	return out
}

// accessOf says how operand k walks a nest.
func accessOf(n kernel.Nest, k int) access {
	zero, full, run := true, true, 1
	for i := len(n) - 1; i >= 0; i-- {
		zero = zero && n[i].Strides[k] == 0
		full = full && n[i].Strides[k] == run
		run *= n[i].Size
	}
	switch {
	case full:
		return packed
	case zero:
		return repeated
	}
	return strided
}

// elementwise launches a program over arrays of one shape.
func (p *planner) elementwise(hint string, prog *scalar.Prog, ins, outs []*ir.Array) {
	all := append(append([]*ir.Array{}, ins...), outs...)
	if outs[0].Len() == 0 {
		return
	}
	each := make([][]int, len(all))
	for k, a := range all {
		each[k] = a.Strides
	}
	nest := kernel.NewNest(outs[0].Shape, each...).Collapse()
	modes, rank := make([]access, len(all)), 0
	var args arguments
	for k, a := range all {
		modes[k] = accessOf(nest, k)
		if a.Owner == (indexOwner{}) {
			modes[k] = index
		} else {
			args.address(a)
		}
		if modes[k] == strided || modes[k] == index {
			rank = len(nest)
		}
	}
	args.mayFault(prog)
	moving := 0
	for _, mode := range modes {
		if mode == strided || mode == index {
			moving++
		}
	}
	if len(args)+1+rank+moving*(1+rank) > maxParams { // very many axes: packed operands need none
		for k, a := range ins {
			ins[k] = p.packed(a)
		}
		p.elementwise(hint, prog, ins, outs)
		return
	}
	args.numbers(nest.Len())
	args.numbers(sizes(nest)[:rank]...)
	for k, a := range all {
		if modes[k] == index {
			args.numbers(a.Offset)
		}
		if modes[k] == index || modes[k] == strided {
			args.numbers(strides(nest, k)...)
		}
	}
	f := p.m.elementwiseKernel(hint, prog, modes[:len(ins)], modes[len(ins):], rank)
	p.launch(f, nest.Len(), args)
}

// maxOperands bounds the arrays of one kernel, so that its parameters fit where there are no more than 10 axes.
const maxOperands = 40

// materialise computes those of vals that wait in the group, in one launch per shape.
func (p *planner) materialise(hint string, vals []*ir.Value) {
	type batch struct {
		shape []int
		vals  []*ir.Value
	}
	var batches []*batch
	seen := map[*ir.Value]bool{}
	for _, v := range vals {
		if p.lazy[v] == nil || seen[v] {
			continue
		}
		seen[v] = true
		shape := v.Type.Shape()
		var b *batch
		for _, c := range batches {
			if fmt.Sprint(c.shape) == fmt.Sprint(shape) {
				b = c
			}
		}
		if b == nil {
			b = &batch{shape: shape}
			batches = append(batches, b)
		}
		b.vals = append(b.vals, v)
	}
	for _, b := range batches {
		p.store(hint, b.shape, b.vals)
	}
}

// store computes values of one shape: in one launch, or in several where it would have too many operands.
func (p *planner) store(hint string, shape []int, vals []*ir.Value) {
	prog, ins, ok := p.program(vals)
	if !ok {
		return
	}
	if n := len(vals); n > 1 && len(ins)+n > maxOperands {
		p.store(hint, shape, vals[:n/2])
		p.store(hint, shape, vals[n/2:])
		return
	}
	outs := make([]*ir.Array, len(vals))
	for i, v := range vals {
		outs[i] = p.temp(v.Type.DType, shape)
	}
	p.elementwise(p.hint(hint, vals[0]), prog, ins, outs)
	for i, v := range vals {
		p.vals[v] = outs[i]
		delete(p.lazy, v)
	}
}

// hint names a kernel after its group, or after the op and the dtype.
func (p *planner) hint(group string, v *ir.Value) string {
	if group != "" {
		return group
	}
	name := p.lazy[v].Op.Name
	if a := p.lazy[v].Args[0].Type.DType; a != dtype.Invalid {
		name += "_" + a.String()
	}
	return name
}

// program is the scalar program of waiting values: the nodes that they need, with everything that is in memory as inputs.
// Where the inputs would be too many, a value halfway is computed first. ok is false where something that they need was rejected.
func (p *planner) program(outs []*ir.Value) (prog *scalar.Prog, ins []*ir.Array, ok bool) {
	needed := map[*ir.Node]bool{}
	stack := append([]*ir.Value{}, outs...)
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if n := p.lazy[v]; n != nil && !needed[n] {
			needed[n] = true
			stack = append(stack, operands(n)...)
		}
	}
	b := scalar.NewBuilder()
	vals := map[*ir.Value]scalar.Value{}
	literals := map[*ir.Value]*ir.Array{}
	input := func(v *ir.Value) bool {
		if _, known := vals[v]; known || p.lazy[v] != nil || literals[v] != nil {
			return true
		}
		a, isArray := p.vals[v].(*ir.Array)
		if !isArray {
			return false
		}
		if lit, isLiteral := a.Owner.(*ir.Array); isLiteral {
			literals[v] = lit
			return true
		}
		vals[v] = b.Input(a.DType)
		ins = append(ins, a)
		return true
	}
	for _, n := range p.order { // all inputs come before any code
		if !needed[n] {
			continue
		}
		for _, a := range operands(n) {
			if !input(a) {
				return nil, nil, false
			}
		}
	}
	for _, v := range outs {
		if !input(v) {
			return nil, nil, false
		}
	}
	if mid := p.halfway(needed, outs); mid != nil && len(ins) > maxOperands {
		p.materialise("", []*ir.Value{mid})
		return p.program(outs)
	}
	value := func(v *ir.Value) scalar.Value {
		if s, known := vals[v]; known {
			return s
		}
		vals[v] = literalValue(b, v.Type.DType, literals[v])
		return vals[v]
	}
	for _, n := range p.order {
		if !needed[n] {
			continue
		}
		var to dtype.DType
		if n.Op.Name == "convert" {
			d, _ := p.vals[n.Args[1]].(dtype.DType)
			if to = d; to == dtype.Invalid {
				return nil, nil, false
			}
		}
		args := make([]scalar.Value, 0, 3)
		for _, a := range operands(n) {
			args = append(args, value(a))
		}
		v, err := ir.ApplyScalar(b, n.Op, to, args...)
		if err != nil {
			p.reject(n, err.Error())
			return nil, nil, false
		}
		vals[n.Results[0]] = v
	}
	for _, v := range outs {
		b.Output(value(v))
	}
	return b.Finish(), ins, true
}

// halfway is a value in the middle of those that outs need, and nil where they need none but themselves.
func (p *planner) halfway(needed map[*ir.Node]bool, outs []*ir.Value) *ir.Value {
	var inner []*ir.Value
	for _, n := range p.order {
		if v := n.Results[0]; needed[n] && !slices.Contains(outs, v) {
			inner = append(inner, v)
		}
	}
	if len(inner) == 0 {
		return nil
	}
	return inner[len(inner)/2]
}

// operands are the tensor operands of an elementwise node.
func operands(n *ir.Node) []*ir.Value {
	if n.Op.Name == "convert" {
		return n.Args[:1]
	}
	return n.Args
}

// literalValue is a constant of a program.
func literalValue(b *scalar.Builder, d dtype.DType, v *ir.Array) scalar.Value {
	if d.IsFloat() {
		return b.F(d, v.Float(v.Offset))
	}
	return b.I(d, v.Int(v.Offset))
}

// reduce launches a reduction, with the waiting elementwise nodes that its operand needs in front.
func (p *planner) reduce(n *ir.Node) {
	x, r := n.Args[0], n.Results[0]
	prog, ins, ok := p.program([]*ir.Value{x})
	if !ok {
		p.unknown(n, x)
		return
	}
	if len(ins)*(2+x.Type.Rank()) > maxParams/2 { // very many axes
		p.materialise("", []*ir.Value{x})
		prog, ins, _ = p.program([]*ir.Value{x})
	}
	dims, ok := p.reducedDims(n)
	if !ok {
		p.reject(n, "its dims are only known at run time")
		return
	}
	spec := reduceSpec{op: n.Op.Name, lanes: 1, prog: prog}
	switch {
	case spec.op == "sum_to":
		spec.op = "sum"
	case x.Type.DType == dtype.Bool && spec.op == "amax":
		spec.op = "any"
	case x.Type.DType == dtype.Bool && spec.op == "amin":
		spec.op = "all"
	}
	shape := x.Type.Shape()
	reduced := make([]bool, len(shape))
	for _, d := range dims {
		reduced[d] = true
		if d == len(shape)-1 && !strings.HasPrefix(spec.op, "arg") {
			spec.lanes = ir.ReduceLanes
		}
	}
	outer, inner := p.axes(shape, reduced, false, ins), p.axes(shape, reduced, true, ins)
	rows, count := outer.Len(), inner.Len()
	outer, inner = outer.Collapse(), inner.Collapse()
	spec.outer, spec.inner = len(outer), len(inner)
	out := p.temp(r.Type.DType, r.Type.Shape())
	p.vals[r] = out
	if rows == 0 {
		return
	}
	var args arguments
	for _, a := range ins {
		mode := strided
		if a.Owner == (indexOwner{}) {
			mode = index
		} else {
			args.address(a)
		}
		spec.ins = append(spec.ins, mode)
	}
	args.address(out)
	args.mayFault(prog)
	args.numbers(rows, count)
	args.numbers(sizes(outer)...)
	args.numbers(sizes(inner)...)
	for k, a := range ins {
		if spec.ins[k] == index {
			args.numbers(a.Offset)
		}
		args.numbers(strides(outer, k)...)
		args.numbers(strides(inner, k)...)
	}
	f := p.m.reduceKernel(n.Op.Name+"_"+x.Type.DType.String(), spec)
	p.launch(f, rows*spec.lanes, args)
}

// axes is the nest over the reduced or over the other dims.
func (p *planner) axes(shape []int, reduced []bool, want bool, ins []*ir.Array) kernel.Nest {
	var sizes []int
	each := make([][]int, len(ins))
	for d, n := range shape {
		if reduced[d] != want {
			continue
		}
		sizes = append(sizes, n)
		for k, a := range ins {
			each[k] = append(each[k], a.Strides[d])
		}
	}
	return kernel.NewNest(sizes, each...)
}

// reducedDims are the dims that a reduction removes.
func (p *planner) reducedDims(n *ir.Node) ([]int, bool) {
	if n.Op.Name == "sum_to" {
		var dims []int
		big, small := n.Args[0].Type.Shape(), n.Results[0].Type.Shape()
		lead := len(big) - len(small)
		for i, size := range big {
			if i < lead || small[i-lead] == 1 && size != 1 {
				dims = append(dims, i)
			}
		}
		return dims, true
	}
	switch d := p.vals[n.Args[1]].(type) {
	case int64:
		return []int{int(d)}, true
	case ir.List:
		return ints(d), true
	}
	return nil, false
}

// dot launches a matrix product; operands whose dims do not merge into one batch, one free and one contracted axis are packed first.
func (p *planner) dot(n *ir.Node, args []ir.Datum) bool {
	r := n.Results[0]
	nb, nc := int(args[2].(int64)), int(args[3].(int64))
	a, as := p.matrix(args[0].(*ir.Array), nb, nc)
	b, bs := p.matrix(args[1].(*ir.Array), nb, nc)
	out := p.temp(r.Type.DType, r.Type.Shape())
	p.vals[r] = out
	if out.Len() == 0 {
		return true
	}
	var list arguments
	list.address(a)
	list.address(b)
	list.address(out)
	list.numbers(as[0].Size, as[1].Size, bs[1].Size, as[2].Size)
	for _, x := range [][3]kernel.Axis{as, bs} {
		for _, axis := range x {
			list.numbers(axis.Strides[0])
		}
	}
	tiles := func(n int) int { return (n + matmulTile - 1) / matmulTile }
	f := p.m.matmulKernel(out.DType)
	p.launch(f, as[0].Size*tiles(as[1].Size)*tiles(bs[1].Size)*blockSize, list)
	return true
}

// matrix sees an array as batch, free and contracted axes, copying it where that takes it.
func (p *planner) matrix(x *ir.Array, nb, nc int) (*ir.Array, [3]kernel.Axis) {
	x = p.inMemory(x)
	axes, ok := mergeAxes(x, nb, nc)
	if !ok {
		x = p.packed(x)
		if axes, ok = mergeAxes(x, nb, nc); !ok {
			panic("BUG: ptx: a contiguous array that does not merge")
		}
	}
	return x, axes
}

func mergeAxes(x *ir.Array, nb, nc int) (axes [3]kernel.Axis, ok bool) {
	cuts := []int{0, nb, len(x.Shape) - nc, len(x.Shape)}
	for i := range axes {
		shape, st := x.Shape[cuts[i]:cuts[i+1]], x.Strides[cuts[i]:cuts[i+1]]
		n := kernel.NewNest(shape, st)
		size := n.Len()
		n = n.Collapse()
		switch {
		case len(n) == 0 || size == 0:
			axes[i] = kernel.Axis{Size: size, Strides: []int{0}}
		case len(n) == 1:
			axes[i] = n[0]
		default:
			return axes, false
		}
	}
	return axes, true
}
