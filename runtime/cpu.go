//go:build !nollvm

package runtime

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gtc-project/gtc/codegen/cpu"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/passes"
	"github.com/gtc-project/gtc/runtime/arena"
	"github.com/gtc-project/gtc/runtime/llvm"
	"github.com/gtc-project/gtc/runtime/pool"
)

var opConvert = ir.LookupOp("convert")

// cpuKernels runs nodes as machine code.
type cpuKernels struct {
	backend *cpu.Backend
	arena   *arena.Arena // where results live; nil: the Go heap
}

func newCPU(o Options, r *passes.Resolver) (eager, whole runner, err error) {
	lib, err := llvm.Load()
	if err != nil {
		return nil, nil, fmt.Errorf("the cpu target needs LLVM: %w", err)
	}
	target, err := cpu.Arch(o.Arch, lib.Host())
	if err == nil {
		err = cpu.Runnable(target, lib.Host())
	}
	if err != nil {
		return nil, nil, err
	}
	copts := cpu.Options{LLVM: lib, Target: &target}
	if o.Threads > 0 {
		copts.Pool = pool.New(o.Threads)
	}
	b, err := cpu.New(copts)
	if err != nil {
		return nil, nil, err
	}
	eager = &machine{kernels: &cpuKernels{backend: b}, resolve: r.Resolve}
	whole = &machine{kernels: &cpuKernels{backend: b, arena: arena.Default()}, resolve: r.Resolve}
	return eager, whole, nil
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

// counted is the memory of an array whose holders are counted: slots, and callers.
type counted struct {
	refs  atomic.Int32
	buf   *arena.Buffer // nil: the memory is the Go heap's
	home  *cell         // where the array goes when nobody holds it; nil: the memory is given back
	array *ir.Array
}

func (c *counted) Retain() { c.refs.Add(1) }
func (c *counted) Release() {
	switch {
	case c.refs.Add(-1) != 0:
	case c.home != nil:
		c.home.free = append(c.home.free, c.array)
	default:
		c.discard()
	}
}

func (c *counted) discard() {
	if c.buf != nil {
		c.buf.Free()
	}
}

// Kernel runs n if it is of a kind that is compiled.
func (k *cpuKernels) Kernel(ctx context.Context, n *ir.Node, args []ir.Datum) ([]ir.Datum, bool, error) {
	switch {
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

// contiguous gives a packed copy of a caller's array, which it releases.
func (k *cpuKernels) contiguous(ctx context.Context, a *ir.Array) (*ir.Array, error) {
	out, err := k.newArray(a.DType, a.Shape)
	if err != nil {
		return nil, err
	}
	if err := k.backend.Elementwise(cpu.Identity(a.DType)).Run(ctx, []*ir.Array{out}, []*ir.Array{a}); err != nil {
		return nil, err
	}
	retain(out)
	ir.Release(a)
	return out, nil
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
