//go:build !nollvm

package runtime

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"weak"

	"github.com/gtc-project/gtc/codegen/cpu"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/runtime/pool"
)

var opConvert = ir.LookupOp("convert")

// cpuKernels runs nodes as machine code.
type cpuKernels struct {
	backend *cpu.Backend
	plans   sync.Map // weak.Pointer[ir.Node] of a fused node -> *fusedPlan
}

func newCPU(o Options) (kernels, error) {
	copts := cpu.Options{}
	if o.Threads > 0 {
		copts.Pool = pool.New(o.Threads)
	}
	b, err := cpu.New(copts)
	if err != nil {
		return nil, fmt.Errorf("the cpu target needs LLVM: %w", err)
	}
	return &cpuKernels{backend: b}, nil
}

// Kernel runs n if it is of a kind that is compiled.
func (k *cpuKernels) Kernel(ctx context.Context, n *ir.Node, args []ir.Datum) ([]ir.Datum, bool, error) {
	switch {
	case n.Op == ir.OpFused:
		out, err := k.fused(ctx, n, args)
		return out, true, err
	case n.Op.Class == ir.Elementwise:
		out, err := k.elementwise(ctx, n, args)
		return out, true, err
	case n.Op.Class == ir.Reduce:
		return k.reduce(ctx, n, args)
	case n.Op.Class == ir.Contract:
		return k.dot(ctx, args)
	}
	return nil, false, nil
}

func (k *cpuKernels) elementwise(ctx context.Context, n *ir.Node, args []ir.Datum) ([]ir.Datum, error) {
	var to dtype.DType
	if n.Op == opConvert {
		to = args[1].(dtype.DType)
		args = args[:1]
	}
	ins := make([]*ir.Array, len(args))
	dts := make([]dtype.DType, len(args))
	for i, a := range args {
		ins[i] = a.(*ir.Array)
		dts[i] = ins[i].DType
	}
	p, err := ir.ElementwiseProg(n.Op, to, dts...)
	if err != nil {
		return nil, err
	}
	out, err := ir.TryNewArray(p.Out[0].DType, ins[0].Shape)
	if err != nil {
		return nil, err
	}
	if err := k.backend.Elementwise(p).Run(ctx, []*ir.Array{out}, ins); err != nil {
		return nil, err
	}
	return []ir.Datum{out}, nil
}

// fused runs a group by its plan, which is made at the node's first run and dropped with the node.
func (k *cpuKernels) fused(ctx context.Context, n *ir.Node, args []ir.Datum) ([]ir.Datum, error) {
	key := weak.Make(n)
	p, ok := k.plans.Load(key)
	if !ok {
		plan, err := planFused(n)
		if err != nil {
			return nil, err
		}
		p, ok = k.plans.LoadOrStore(key, plan)
		if !ok {
			runtime.AddCleanup(n, func(key weak.Pointer[ir.Node]) { k.plans.Delete(key) }, key)
		}
	}
	return p.(*fusedPlan).run(ctx, k, args)
}
