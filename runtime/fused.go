//go:build !nollvm

package runtime

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// fusedPlan is how a fused node runs: first the views and constants of its operands, which compute nothing; then one scalar program for all elementwise
// results, and one per reduction, whose program computes what is reduced on the fly.
type fusedPlan struct {
	params []*ir.Value
	fixed  []fixedValue // what depends on nothing: computed once
	setup  []*ir.Node   // the other view, generate and host nodes, in order
	main   *fusedProg   // nil where nothing elementwise is yielded
	reduce []fusedReduction
	yields []yieldFrom
	first  int // the least id of a value in the block
	values int // bounds the ids, counted from first
}

// fusedProg is a scalar program and the values that it reads.
type fusedProg struct {
	prog   *scalar.Prog
	inputs []*ir.Value
}

type fusedReduction struct {
	node *ir.Node
	prog *fusedProg
}

type fixedValue struct {
	id int
	d  ir.Datum
}

// yieldFrom says where one result of the node comes from: an output of main, a reduction, or a value of setup.
type yieldFrom struct {
	output, reduction int // -1 where it does not
	value             *ir.Value
}

// planFused sorts the nodes of a group. Nothing but yields may follow a reduction.
func planFused(n *ir.Node) (*fusedPlan, error) {
	blk := n.Blocks[0]
	p := &fusedPlan{params: blk.Params}
	computed := map[*ir.Value]bool{}
	reduced := map[*ir.Value]int{}
	var stored []*ir.Value
	p.bounds(blk)
	for _, node := range blk.Nodes {
		switch node.Op.Class {
		case ir.Elementwise:
			computed[node.Results[0]] = true
		case ir.Reduce:
			prog, err := fusedProgram(blk, node.Args[:1])
			if err != nil {
				return nil, err
			}
			reduced[node.Results[0]] = len(p.reduce)
			p.reduce = append(p.reduce, fusedReduction{node, prog})
		case ir.Terminator:
			for _, v := range node.Args {
				y := yieldFrom{output: -1, reduction: -1, value: v}
				if i, ok := reduced[v]; ok {
					y.reduction = i
				} else if computed[v] {
					y.output = len(stored)
					stored = append(stored, v)
				}
				p.yields = append(p.yields, y)
			}
		default:
			for _, a := range node.Args {
				if _, ok := reduced[a]; ok || computed[a] {
					return nil, fmt.Errorf("fused group: %s of a computed value", node.Op.Name)
				}
			}
			if !p.fix(node) {
				p.setup = append(p.setup, node)
			}
		}
	}
	if len(stored) == 0 {
		return p, nil
	}
	var err error
	p.main, err = fusedProgram(blk, stored)
	return p, err
}

// fix computes a node whose operands are all fixed.
func (p *fusedPlan) fix(node *ir.Node) bool {
	args := make([]ir.Datum, len(node.Args))
	for i, a := range node.Args {
		k := slices.IndexFunc(p.fixed, func(f fixedValue) bool { return f.id == a.ID })
		if k < 0 {
			return false
		}
		args[i] = p.fixed[k].d
	}
	out, err := node.Op.Eval(&ir.EvalCall{Node: node, Args: args, Ctx: context.Background()})
	if err != nil {
		return false // it fails when it runs
	}
	for i, r := range node.Results {
		p.fixed = append(p.fixed, fixedValue{r.ID, out[i]})
	}
	return true
}

// bounds finds the ids of the values in the block, which stand close together.
func (p *fusedPlan) bounds(blk *ir.Block) {
	p.first = math.MaxInt
	last := -1
	note := func(vs []*ir.Value) {
		for _, v := range vs {
			p.first, last = min(p.first, v.ID), max(last, v.ID)
		}
	}
	note(blk.Params)
	for _, node := range blk.Nodes {
		note(node.Results)
	}
	p.values = max(0, last-p.first+1)
}

// fusedProgram is the program whose outputs are the given values: the elementwise nodes that they need, in order.
func fusedProgram(blk *ir.Block, outputs []*ir.Value) (*fusedProg, error) {
	needed := map[*ir.Value]bool{}
	for _, v := range outputs {
		needed[v] = true
	}
	for i := len(blk.Nodes) - 1; i >= 0; i-- {
		if node := blk.Nodes[i]; node.Op.Class == ir.Elementwise && needed[node.Results[0]] {
			for _, a := range node.Args {
				needed[a] = true
			}
		}
	}
	p := &fusedProg{}
	b := scalar.NewBuilder()
	lanes := map[*ir.Value]scalar.Value{}
	lane := func(v *ir.Value) (scalar.Value, error) {
		s, ok := lanes[v]
		if !ok {
			if v.Type.DType == dtype.Invalid {
				return s, fmt.Errorf("fused group: an operand of unknown dtype")
			}
			s = b.Input(v.Type.DType)
			lanes[v] = s
			p.inputs = append(p.inputs, v)
		}
		return s, nil
	}
	if err := programInputs(blk, needed, outputs, lane); err != nil {
		return nil, err
	}
	for _, node := range blk.Nodes {
		if node.Op.Class != ir.Elementwise || !needed[node.Results[0]] {
			continue
		}
		s, err := scalarNode(b, node, lane)
		if err != nil {
			return nil, err
		}
		lanes[node.Results[0]] = s
	}
	for _, v := range outputs {
		s, err := lane(v)
		if err != nil {
			return nil, err
		}
		b.Output(s)
	}
	p.prog = b.Finish()
	if len(p.inputs) == 0 {
		return nil, fmt.Errorf("fused group: a program without operands")
	}
	return p, nil
}

// programInputs makes the inputs of a program, in the order of their first use: they come before all code.
func programInputs(blk *ir.Block, needed map[*ir.Value]bool, outputs []*ir.Value, lane func(*ir.Value) (scalar.Value, error)) error {
	computed := map[*ir.Value]bool{}
	read := func(vs []*ir.Value) error {
		for _, v := range vs {
			if !computed[v] {
				if _, err := lane(v); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, node := range blk.Nodes {
		if node.Op.Class != ir.Elementwise || !needed[node.Results[0]] {
			continue
		}
		args := node.Args
		if node.Op == opConvert {
			args = args[:1]
		}
		if err := read(args); err != nil {
			return err
		}
		computed[node.Results[0]] = true
	}
	return read(outputs)
}

func scalarNode(b *scalar.Builder, node *ir.Node, lane func(*ir.Value) (scalar.Value, error)) (scalar.Value, error) {
	var to dtype.DType
	args := node.Args
	if node.Op == opConvert {
		d, ok := args[1].Const()
		if !ok {
			return scalar.Value{}, fmt.Errorf("fused group: a convert to a dtype that is not constant")
		}
		to = d.(dtype.DType)
		args = args[:1]
	}
	ins := make([]scalar.Value, len(args))
	for i, a := range args {
		v, err := lane(a)
		if err != nil {
			return v, err
		}
		ins[i] = v
	}
	return ir.ApplyScalar(b, node.Op, to, ins...)
}

func (p *fusedPlan) run(ctx context.Context, k *cpuKernels, args []ir.Datum) ([]ir.Datum, error) {
	vals := make([]ir.Datum, p.values)
	for i, v := range p.params {
		vals[v.ID-p.first] = args[i]
	}
	for _, f := range p.fixed {
		vals[f.id-p.first] = f.d
	}
	get := func(vs []*ir.Value) []ir.Datum {
		out := make([]ir.Datum, len(vs))
		for i, v := range vs {
			out[i] = vals[v.ID-p.first]
		}
		return out
	}
	for _, n := range p.setup {
		out, err := n.Op.Eval(&ir.EvalCall{Node: n, Args: get(n.Args), Ctx: ctx})
		if err != nil {
			return nil, err
		}
		for i, r := range n.Results {
			vals[r.ID-p.first] = out[i]
		}
	}
	var stored []*ir.Array
	if p.main != nil {
		ins := arrays(get(p.main.inputs))
		for _, o := range p.main.prog.Out {
			a, err := k.newArray(o.DType, ins[0].Shape)
			if err != nil {
				return nil, err
			}
			stored = append(stored, a)
		}
		if err := k.backend.Elementwise(p.main.prog).Run(ctx, stored, ins); err != nil {
			return nil, err
		}
	}
	out := make([]ir.Datum, len(p.yields))
	for i, y := range p.yields {
		switch {
		case y.output >= 0:
			out[i] = stored[y.output]
		case y.reduction >= 0:
			r := p.reduce[y.reduction]
			d, err := k.fusedReduce(ctx, r, arrays(get(r.prog.inputs)), get(r.node.Args[1:]))
			if err != nil {
				return nil, err
			}
			out[i] = d
		default:
			out[i] = vals[y.value.ID-p.first]
		}
	}
	return out, nil
}

// fusedReduce reduces what a program computes; what the compiled reduction leaves to the reference evaluation is computed first.
func (k *cpuKernels) fusedReduce(ctx context.Context, r fusedReduction, ins []*ir.Array, rest []ir.Datum) (ir.Datum, error) {
	d, ok, err := k.reduceProg(ctx, r.node, r.prog.prog, ins, rest)
	if err == nil && !ok {
		var x []*ir.Array
		if x, err = ir.RunProg(r.prog.prog, ins[0].Shape, ins); err != nil {
			return nil, err
		}
		d, err = r.node.Op.Eval(&ir.EvalCall{Node: r.node, Args: append([]ir.Datum{x[0]}, rest...), Ctx: ctx})
	}
	if err != nil {
		return nil, err
	}
	return d[0], nil
}

func arrays(ds []ir.Datum) []*ir.Array {
	out := make([]*ir.Array, len(ds))
	for i, d := range ds {
		out[i] = d.(*ir.Array)
	}
	return out
}
