//go:build !nollvm

package runtime

import (
	"context"

	"github.com/gtc-project/gtc/codegen/cpu"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// reduce runs a reduction node on its operand; ok is false where the reference evaluation has to.
func (k *cpuKernels) reduce(ctx context.Context, n *ir.Node, args []ir.Datum) ([]ir.Datum, bool, error) {
	x := args[0].(*ir.Array)
	if n.Op == opSumTo {
		return k.sumTo(ctx, x, args[1])
	}
	return k.reduceProg(ctx, n, cpu.Identity(x.DType), []*ir.Array{x}, args[1:])
}

// reduceProg reduces what a scalar program with one result gives on ins. rest are the node's operands after the first: dims (or one dim) and keepdim.
func (k *cpuKernels) reduceProg(ctx context.Context, n *ir.Node, p *scalar.Prog, ins []*ir.Array, rest []ir.Datum) ([]ir.Datum, bool, error) {
	op := cpu.ReduceOp(n.Op.Name)
	dims, err := dimsOf(rest[0])
	if err != nil {
		return nil, false, err
	}
	shape := ins[0].Shape
	for _, d := range dims {
		if shape[d] == 0 {
			return nil, false, nil // identities and errors are the reference evaluation's
		}
	}
	d, err := op.Result(p.Out[0].DType)
	if err != nil {
		return nil, false, nil
	}
	r, err := k.backend.Reduce(op, p)
	if err != nil {
		return nil, false, err
	}
	out, err := k.newArray(d, reducedShape(shape, dims, true))
	if err != nil {
		return nil, false, err
	}
	if err := r.Run(ctx, out, ins, dims); err != nil {
		return nil, false, err
	}
	if keep, _ := rest[1].(bool); !keep {
		s := reducedShape(shape, dims, false)
		out = out.View(s, ir.ContiguousStrides(s), 0)
	}
	return []ir.Datum{out}, true, nil
}

func dimsOf(d ir.Datum) ([]int, error) {
	if i, ok := d.(int64); ok {
		return []int{int(i)}, nil
	}
	return ir.AsInts(d)
}

func reducedShape(shape, dims []int, keep bool) []int {
	gone := make([]bool, len(shape))
	for _, d := range dims {
		gone[d] = true
	}
	out := make([]int, 0, len(shape))
	for i, n := range shape {
		switch {
		case !gone[i]:
			out = append(out, n)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

var opSumTo = ir.LookupOp("sum_to")

// sumToDims are the dims of shape that broadcasting from sizes has added or repeated.
func sumToDims(shape, sizes []int) (dims []int) {
	lead := len(shape) - len(sizes)
	for i, n := range shape {
		if i < lead || sizes[i-lead] == 1 && n != 1 {
			dims = append(dims, i)
		}
	}
	return dims
}

// sumTo sums x over the dims that broadcasting from shape has added or repeated.
func (k *cpuKernels) sumTo(ctx context.Context, x *ir.Array, shape ir.Datum) ([]ir.Datum, bool, error) {
	sizes, err := ir.AsInts(shape)
	if err != nil || x.DType == dtype.Bool || x.Len() == 0 {
		return nil, false, nil // the reference evaluation's
	}
	dims := sumToDims(x.Shape, sizes)
	if len(dims) == 0 {
		return []ir.Datum{x}, true, nil
	}
	r, err := k.backend.Reduce(cpu.Sum, cpu.Identity(x.DType))
	if err != nil {
		return nil, false, err
	}
	out, err := k.newArray(x.DType, reducedShape(x.Shape, dims, true))
	if err != nil {
		return nil, false, err
	}
	if err := r.Run(ctx, out, []*ir.Array{x}, dims); err != nil {
		return nil, false, err
	}
	return []ir.Datum{out.View(sizes, ir.ContiguousStrides(sizes), 0)}, true, nil
}

// dot runs a contraction of floats; integers are left to the reference evaluation.
func (k *cpuKernels) dot(ctx context.Context, args []ir.Datum) ([]ir.Datum, bool, error) {
	x, y := args[0].(*ir.Array), args[1].(*ir.Array)
	nb, nc := int(args[2].(int64)), int(args[3].(int64))
	if !x.DType.IsFloat() || x.DType != y.DType || len(x.Shape) < nb+nc || len(y.Shape) < nb+nc {
		return nil, false, nil
	}
	shape := append([]int{}, x.Shape[:len(x.Shape)-nc]...)
	shape = append(shape, y.Shape[nb:len(y.Shape)-nc]...)
	out, err := k.newArray(x.DType, shape)
	if err != nil {
		return nil, false, err
	}
	d, err := k.backend.Dot(out, x, y, nb, nc)
	if err != nil {
		return nil, false, err
	}
	if err := d.Run(ctx, x, y, out); err != nil {
		return nil, false, err
	}
	return []ir.Datum{out}, true, nil
}
