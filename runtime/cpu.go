//go:build !nollvm

package runtime

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/gtc-project/gtc/codegen/cpu"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/runtime/arena"
	"github.com/gtc-project/gtc/runtime/llvm"
	"github.com/gtc-project/gtc/runtime/pool"
)

var opConvert = ir.LookupOp("convert")

// cpuKernels runs nodes as machine code.
type cpuKernels struct {
	backend *cpu.Backend
	arena   *arena.Arena // where results live; nil: the Go heap
	plans   sync.Map     // weak.Pointer[ir.Node] of a fused node -> *fusedPlan
}

func newCPU(o Options) (kernels, error) {
	lib, err := llvm.Load()
	if err != nil {
		return nil, fmt.Errorf("the cpu target needs LLVM: %w", err)
	}
	target, err := cpu.Arch(o.Arch, lib.Host())
	if err == nil {
		err = cpu.Runnable(target, lib.Host())
	}
	if err != nil {
		return nil, err
	}
	copts := cpu.Options{LLVM: lib, Target: &target}
	if o.Threads > 0 {
		copts.Pool = pool.New(o.Threads)
	}
	b, err := cpu.New(copts)
	if err != nil {
		return nil, err
	}
	return &cpuKernels{backend: b}, nil
}

// counting gives the kernels for an evaluator that counts buffers: results live in reusable memory.
func (k *cpuKernels) counting() kernels {
	return &cpuKernels{backend: k.backend, arena: arena.Default()}
}

// arenaMin is the size in bytes from which on a result is worth a buffer of its own.
const arenaMin = 4096

// newArray makes a contiguous array with arbitrary contents, for a kernel to fill.
func (k *cpuKernels) newArray(d dtype.DType, shape []int) (*ir.Array, error) {
	n, err := ir.CountElems(shape)
	if err != nil {
		return nil, err
	}
	if k.arena == nil || n < arenaMin/d.Size() || n > ir.MaxBytes/d.Size() {
		return ir.TryNewArray(d, shape)
	}
	buf, err := k.arena.NewBuffer(n * d.Size())
	if err != nil {
		return nil, err
	}
	return &ir.Array{DType: d, Shape: append([]int{}, shape...), Strides: ir.ContiguousStrides(shape), Data: buf.Bytes, Owner: &counted{buf: buf}}, nil
}

// counted is an arena buffer as an ir.Buffer.
type counted struct {
	buf  *arena.Buffer
	refs atomic.Int32
}

func (c *counted) Retain() { c.refs.Add(1) }
func (c *counted) Forget() { c.refs.Add(-1) }
func (c *counted) Release() {
	if c.refs.Add(-1) == 0 {
		c.buf.Free()
	}
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
	out, err := k.newArray(p.Out[0].DType, ins[0].Shape)
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
