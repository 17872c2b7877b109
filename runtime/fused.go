//go:build !nollvm

package runtime

import (
	"fmt"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// fusedProg is a scalar program and the values that it reads.
type fusedProg struct {
	prog   *scalar.Prog
	inputs []*ir.Value
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
