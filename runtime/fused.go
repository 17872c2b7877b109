//go:build !nollvm

package runtime

import (
	"context"
	"fmt"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// fusedPlan is how a fused node runs: first the views and constants of its operands, which compute nothing; then one scalar program over all
// elements, whose results are stored or reduced.
type fusedPlan struct {
	setup  []*ir.Node  // view, generate and host nodes, in order
	inputs []*ir.Value // what the program reads: parameters and results of setup
	prog   *scalar.Prog
	reduce []reduction // reductions of program outputs
	yields []yieldFrom
	params []*ir.Value
	values int // bounds the ids of the values in the block
}

type reduction struct {
	node   *ir.Node
	output int // of prog
}

// yieldFrom says where one result of the node comes from: a program output, a reduction, or a value of setup.
type yieldFrom struct {
	output, reduction int // -1 where it does not
	value             *ir.Value
}

// planFused sorts the nodes of a group. Elementwise nodes become the scalar program; nothing but yields and reductions may follow them.
func planFused(n *ir.Node) (*fusedPlan, error) {
	blk := n.Blocks[0]
	p := &fusedPlan{params: blk.Params}
	b := scalar.NewBuilder()
	lanes := map[*ir.Value]scalar.Value{} // values computed by the program
	outputs := map[*ir.Value]int{}
	reduced := map[*ir.Value]int{}
	input := func(v *ir.Value) (scalar.Value, error) {
		if s, ok := lanes[v]; ok {
			return s, nil
		}
		if v.Type.DType == dtype.Invalid {
			return scalar.Value{}, fmt.Errorf("fused operand of unknown dtype")
		}
		s := b.Input(v.Type.DType)
		lanes[v] = s
		p.inputs = append(p.inputs, v)
		return s, nil
	}
	computed := map[*ir.Value]bool{}
	output := func(v *ir.Value) (int, error) {
		if i, ok := outputs[v]; ok {
			return i, nil
		}
		s, err := input(v)
		if err != nil {
			return 0, err
		}
		i := len(outputs)
		outputs[v] = i
		b.Output(s)
		return i, nil
	}
	for _, node := range blk.Nodes {
		for _, r := range node.Results {
			p.values = max(p.values, r.ID+1)
		}
		switch node.Op.Class {
		case ir.Elementwise:
			if err := appendScalar(b, node, lanes, input); err != nil {
				return nil, err
			}
			computed[node.Results[0]] = true
		case ir.Reduce:
			i, err := output(node.Args[0])
			if err != nil {
				return nil, err
			}
			reduced[node.Results[0]] = len(p.reduce)
			p.reduce = append(p.reduce, reduction{node, i})
		case ir.Terminator:
			for _, v := range node.Args {
				y := yieldFrom{output: -1, reduction: -1, value: v}
				if i, ok := reduced[v]; ok {
					y.reduction = i
				} else if computed[v] {
					i, err := output(v)
					if err != nil {
						return nil, err
					}
					y.output = i
				}
				p.yields = append(p.yields, y)
			}
		default:
			for _, a := range node.Args {
				if computed[a] {
					return nil, fmt.Errorf("fused group: %s of a computed value", node.Op.Name)
				}
			}
			p.setup = append(p.setup, node)
		}
	}
	for _, v := range blk.Params {
		p.values = max(p.values, v.ID+1)
	}
	p.prog = b.Finish()
	return p, nil
}

func appendScalar(b *scalar.Builder, node *ir.Node, lanes map[*ir.Value]scalar.Value, input func(*ir.Value) (scalar.Value, error)) error {
	var to dtype.DType
	args := node.Args
	if node.Op == opConvert {
		d, ok := args[1].Const()
		if !ok {
			return fmt.Errorf("fused convert to a dtype that is not constant")
		}
		to = d.(dtype.DType)
		args = args[:1]
	}
	ins := make([]scalar.Value, len(args))
	for i, a := range args {
		v, err := input(a)
		if err != nil {
			return err
		}
		ins[i] = v
	}
	v, err := ir.ApplyScalar(b, node.Op, to, ins...)
	if err != nil {
		return err
	}
	lanes[node.Results[0]] = v
	return nil
}

func (p *fusedPlan) run(ctx context.Context, k *cpuKernels, args []ir.Datum) ([]ir.Datum, error) {
	vals := make([]ir.Datum, p.values)
	for i, v := range p.params {
		vals[v.ID] = args[i]
	}
	for _, n := range p.setup {
		in := make([]ir.Datum, len(n.Args))
		for i, a := range n.Args {
			in[i] = vals[a.ID]
		}
		out, err := n.Op.Eval(&ir.EvalCall{Node: n, Args: in, Ctx: ctx})
		if err != nil {
			return nil, err
		}
		for i, r := range n.Results {
			vals[r.ID] = out[i]
		}
	}
	results, err := p.compute(ctx, k, vals)
	if err != nil {
		return nil, err
	}
	out := make([]ir.Datum, len(p.yields))
	for i, y := range p.yields {
		switch {
		case y.output >= 0:
			out[i] = results[y.output]
		case y.reduction >= 0:
			r := p.reduce[y.reduction]
			in := []ir.Datum{results[r.output]}
			for _, a := range r.node.Args[1:] {
				in = append(in, vals[a.ID])
			}
			d, ok, err := k.reduce(ctx, r.node, in)
			if err == nil && !ok {
				d, err = r.node.Op.Eval(&ir.EvalCall{Node: r.node, Args: in, Ctx: ctx})
			}
			if err != nil {
				return nil, err
			}
			out[i] = d[0]
		default:
			out[i] = vals[y.value.ID]
		}
	}
	return out, nil
}

// compute runs the scalar program.
func (p *fusedPlan) compute(ctx context.Context, k *cpuKernels, vals []ir.Datum) ([]*ir.Array, error) {
	if len(p.prog.Out) == 0 {
		return nil, nil
	}
	ins := make([]*ir.Array, len(p.inputs))
	for i, v := range p.inputs {
		ins[i] = vals[v.ID].(*ir.Array)
	}
	outs := make([]*ir.Array, len(p.prog.Out))
	for i, o := range p.prog.Out {
		a, err := ir.TryNewArray(o.DType, ins[0].Shape)
		if err != nil {
			return nil, err
		}
		outs[i] = a
	}
	return outs, k.backend.Elementwise(p.prog).Run(ctx, outs, ins)
}
