//go:build !nollvm

package runtime

import (
	"context"

	"github.com/gtc-project/gtc/codegen/cpu"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// A function is made ready to run in three steps: flatten writes its nodes down as jobs over numbered slots, planMemory finds out which slots
// share memory that is laid out beforehand, and emit turns jobs into steps.

// kind is how a job is done.
type kind uint8

const (
	jobHost    kind = iota // by the node's reference evaluation
	jobView                // the same, and the result is a view of the first operand
	jobKernel              // by a kernel that is found when the operands are there
	jobMap                 // by a kernel over one scalar program
	jobReduce              // by a reduction kernel
	jobDot                 // by a matrix product
	jobMove                // by copies into parts of the result
	jobGather              // by a gather kernel
	jobChain               // by several kernels, row after row
	jobGeneric             // by an expansion for the operands that are there
	jobIf
	jobWhile
	jobFor
)

// job is one piece of work of a function.
type job struct {
	kind    kind
	node    *ir.Node
	args    []int // slots
	results []int
	prog    *scalar.Prog // of jobMap and jobReduce: what is computed of args
	dims    []int        // of jobReduce; of a jobGather that is a gather, its one dim
	shape   []int        // of jobReduce: the result with the reduced dims removed, or kept with size 1
	parts   []part       // of jobMove
	members []*job       // of jobChain: maps and reductions, and views between them
	blocks  []*region
	in      *region
	begin   int // the job's place in the order of execution
	end     int // and that of the last job in its blocks
}

// region is a block as jobs.
type region struct {
	params []int
	jobs   []*job
	yields []int
	owner  *job // nil for the body
}

// flattener writes a function down.
type flattener struct {
	slots int
	of    map[*ir.Value]int
	types []ir.Type
	home  []*region // where a slot gets its value
	def   []*job    // which job gives it; nil for parameters and constants
	known map[int]ir.Datum
	clock int
	lists map[*ir.Value]bool // lists that are needed as such, and not only for what they hold
}

func flatten(f *ir.Func) (*flattener, *region, error) {
	z := &flattener{of: make(map[*ir.Value]int, f.NumValues()), known: map[int]ir.Datum{}, lists: map[*ir.Value]bool{}}
	f.Body.Walk(func(n *ir.Node) {
		for i, a := range n.Args {
			if a.Def != nil && a.Def.Op == ir.OpList && !(i == 0 && isConcat(n)) {
				z.lists[a] = true
			}
		}
	})
	body, err := z.block(f.Body, nil)
	return z, body, err
}

func (z *flattener) slot(v *ir.Value, r *region, by *job) int {
	i := z.slots
	z.slots++
	z.of[v] = i
	z.types, z.home, z.def = append(z.types, v.Type), append(z.home, r), append(z.def, by)
	return i
}

func (z *flattener) slotsOf(vs []*ir.Value) []int {
	out := make([]int, len(vs))
	for i, v := range vs {
		out[i] = z.of[v]
	}
	return out
}

func (z *flattener) block(b *ir.Block, owner *job) (*region, error) {
	r := &region{owner: owner}
	for _, p := range b.Params {
		r.params = append(r.params, z.slot(p, r, nil))
	}
	for _, n := range b.Nodes {
		var err error
		switch {
		case n.Op.Class == ir.Terminator:
			r.yields = z.slotsOf(n.Args)
		case n.Op == ir.OpFused:
			err = z.fused(r, n)
		default:
			err = z.node(r, n)
		}
		if err != nil {
			return nil, err
		}
	}
	z.chain(r)
	return r, nil
}

// add appends a job whose results are the values vs.
func (z *flattener) add(r *region, j *job, vs []*ir.Value) {
	j.in, j.begin = r, z.clock
	z.clock++
	j.end = j.begin
	for _, v := range vs {
		j.results = append(j.results, z.slot(v, r, j))
	}
	r.jobs = append(r.jobs, j)
}

func (z *flattener) node(r *region, n *ir.Node) error {
	if n.Op == ir.OpConst {
		z.known[z.slot(n.Results[0], r, nil)] = n.Attrs.Value
		return nil
	}
	if n.Op == ir.OpList && !z.lists[n.Results[0]] && len(n.Args) > 0 {
		return nil // concat takes what it holds
	}
	if isConcat(n) {
		z.concat(r, n)
		return nil
	}
	j := &job{node: n, args: z.slotsOf(n.Args)}
	if z.evaluate(r, j) {
		return nil
	}
	switch n.Op.Class {
	case ir.View:
		j.kind = jobView
	case ir.Generic:
		j.kind = jobGeneric
	case ir.Elementwise:
		j.kind = jobKernel
		if p, ok := elementwiseProg(n); ok {
			j.kind, j.prog, j.args = jobMap, p, j.args[:len(p.In)]
		}
	case ir.Reduce:
		j.kind = jobKernel
		if p := n.Args[0].Type; p.IsTensor() && p.DType != dtype.Invalid {
			z.reduce(j, n, cpu.Identity(p.DType), j.args[:1])
		}
	case ir.Contract:
		j.kind = jobKernel
		if z.isDot(n) {
			j.kind = jobDot
		}
	case ir.Move:
		z.move(j)
	case ir.Control:
		return z.control(r, j)
	}
	z.add(r, j, n.Results)
	return nil
}

// evaluate computes a pure host or view node of known operands once and for all. Large results are not kept.
func (z *flattener) evaluate(r *region, j *job) bool {
	n := j.node
	small := n.Op.Class == ir.Generate && n.Results[0].Type.Static() && (n.Op.Name == "full" || n.Op.Name == "scalar_tensor" || n.Results[0].Type.NumElems() <= maxKnown)
	if n.Op.Eval == nil || n.Op.Effect == ir.Ordered || n.Op.Class != ir.Host && n.Op.Class != ir.View && !small {
		return false
	}
	args := make([]ir.Datum, len(j.args))
	for i, a := range j.args {
		d, ok := z.known[a]
		if !ok {
			return false
		}
		args[i] = d
	}
	if n.Op.Name == "reshape" && !args[0].(*ir.Array).IsContiguous() {
		return false
	}
	out, err := (&ir.Evaluator{}).EvalNode(context.Background(), n, args)
	if err != nil {
		return false // it fails when it runs, if it does
	}
	for i, v := range n.Results {
		z.known[z.slot(v, r, nil)] = out[i]
	}
	return true
}

// maxKnown bounds the elements of generated tensors that are made once and kept.
const maxKnown = 1 << 12

// elementwiseProg is the program of a single node, where the dtypes of its operands are known.
func elementwiseProg(n *ir.Node) (*scalar.Prog, bool) {
	var to dtype.DType
	args := n.Args
	if n.Op == opConvert {
		d, ok := args[1].Const()
		if !ok {
			return nil, false
		}
		to, args = d.(dtype.DType), args[:1]
	}
	dts := make([]dtype.DType, len(args))
	for i, a := range args {
		if !a.Type.IsTensor() || a.Type.DType == dtype.Invalid {
			return nil, false
		}
		dts[i] = a.Type.DType
	}
	p, err := ir.ElementwiseProg(n.Op, to, dts...)
	return p, err == nil && len(p.In) == len(args)
}

// reduce makes j a reduction of what p gives on args, if everything that matters is known beforehand.
func (z *flattener) reduce(j *job, n *ir.Node, p *scalar.Prog, args []int) {
	in, out := n.Args[0].Type, n.Results[0].Type
	if !in.Static() || !out.Static() || in.NumElems() == 0 {
		return
	}
	if n.Op == opSumTo {
		if in.DType == dtype.Bool {
			return
		}
		if j.dims = sumToDims(in.Shape(), out.Shape()); len(j.dims) == 0 {
			j.kind = jobView // of the operand: it gives it as it is
			return
		}
	} else {
		d, ok := z.known[z.of[n.Args[1]]]
		if !ok {
			return
		}
		var err error
		if j.dims, err = dimsOf(d); err != nil {
			return
		}
	}
	if d, err := cpu.ReduceOp(n.Op.Name).Result(p.Out[0].DType); err != nil || d != out.DType {
		return
	}
	j.kind, j.prog, j.args = jobReduce, p, args
	j.shape = out.Shape()
	if len(j.shape) != in.Rank() {
		j.shape = reducedShape(in.Shape(), j.dims, false)
	}
}

// isDot reports whether a contraction is of floats, with sizes known beforehand.
func (z *flattener) isDot(n *ir.Node) bool {
	x, y := n.Args[0].Type, n.Args[1].Type
	_, nb := z.known[z.of[n.Args[2]]].(int64)
	_, nc := z.known[z.of[n.Args[3]]].(int64)
	return nb && nc && x.Static() && y.Static() && n.Results[0].Type.Static() && x.IsFloatTensor() && x.DType == y.DType
}

func (z *flattener) control(r *region, j *job) error {
	n := j.node
	j.kind = map[*ir.Op]kind{ir.OpIf: jobIf, ir.OpWhile: jobWhile, ir.OpFor: jobFor}[n.Op]
	j.in, j.begin = r, z.clock
	z.clock++
	for _, b := range n.Blocks {
		nested, err := z.block(b, j)
		if err != nil {
			return err
		}
		j.blocks = append(j.blocks, nested)
	}
	j.end = z.clock
	z.clock++
	for _, v := range n.Results {
		j.results = append(j.results, z.slot(v, r, j))
	}
	r.jobs = append(r.jobs, j)
	return nil
}

// fused writes a group down: its views and constants, one map for all elementwise results, and its reductions.
func (z *flattener) fused(r *region, n *ir.Node) error {
	blk := n.Blocks[0]
	for i, p := range blk.Params {
		z.of[p] = z.of[n.Args[i]]
	}
	computed := map[*ir.Value]bool{}
	var reductions []*ir.Node
	var yields []*ir.Value
	for _, m := range blk.Nodes {
		switch m.Op.Class {
		case ir.Elementwise:
			computed[m.Results[0]] = true
		case ir.Reduce:
			reductions = append(reductions, m)
			computed[m.Results[0]] = true
		case ir.Terminator:
			yields = m.Args
		default:
			if err := z.node(r, m); err != nil {
				return err
			}
		}
	}
	var stored []*ir.Value
	for _, v := range yields {
		if computed[v] && v.Def.Op.Class == ir.Elementwise {
			stored = append(stored, v)
		}
	}
	if len(stored) > 0 {
		p, err := fusedProgram(blk, stored)
		if err != nil {
			return err
		}
		z.add(r, &job{kind: jobMap, node: n, prog: p.prog, args: z.slotsOf(p.inputs)}, stored)
	}
	for _, m := range reductions {
		if err := z.fusedReduction(r, n, m, blk); err != nil {
			return err
		}
	}
	for i, v := range yields {
		z.of[n.Results[i]] = z.of[v]
	}
	return nil
}

func (z *flattener) fusedReduction(r *region, n, m *ir.Node, blk *ir.Block) error {
	p, err := fusedProgram(blk, m.Args[:1])
	if err != nil {
		return err
	}
	j := &job{kind: jobKernel, node: m}
	z.reduce(j, m, p.prog, z.slotsOf(p.inputs))
	if j.kind != jobReduce { // what is reduced goes through memory
		x := m.Args[0]
		z.add(r, &job{kind: jobMap, node: n, prog: p.prog, args: z.slotsOf(p.inputs)}, []*ir.Value{x})
		j.args = z.slotsOf(m.Args)
	}
	z.add(r, j, m.Results)
	return nil
}
