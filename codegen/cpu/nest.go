package cpu

import (
	"fmt"
	"unsafe"

	llir "github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/gtc-project/gtc/codegen/kernel"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// Every kernel takes one pointer to a flat array of i64, its arguments. A loop nest in it occupies:
//
//	rank, then maxAxes times the size, maxAxes times the current index, then for each axis one byte stride per operand
//
// axis 0 being the innermost. The index part is scratch space that the kernel works in.

// maxAxes bounds the outer axes of a collapsed nest.
const maxAxes = 8

// nestWords is how many words a nest over k operands takes.
func nestWords(k int) int { return 1 + 2*maxAxes + maxAxes*k }

// packNest writes the axes (outermost first) into args and sets the indices to those of linear position start. It moves the pointers of
// the operands, which have elements of the given sizes, there.
func packNest(args []int64, axes kernel.Nest, sizes []int, start int, ptrs []int64) {
	k := len(sizes)
	args[0] = int64(len(axes))
	for d := range axes {
		a := axes[len(axes)-1-d]
		idx := start % max(a.Size, 1)
		start /= max(a.Size, 1)
		args[1+d] = int64(a.Size)
		args[1+maxAxes+d] = int64(idx)
		for i, s := range a.Strides[:k] {
			args[1+2*maxAxes+d*k+i] = int64(s * sizes[i])
			ptrs[i] += int64(idx * s * sizes[i])
		}
	}
}

// nestCode is a nest in a kernel under construction.
type nestCode struct {
	*fn
	args value.Value // i64*, the kernel's arguments
	base int         // the nest's first word
	ptrs []variable  // of bytes; moved by advance
}

func (f *fn) word(args value.Value, i int) value.Value {
	return f.b.NewLoad(i64, f.b.NewGetElementPtr(i64, args, ci(i)))
}

func (n *nestCode) slot(i value.Value) value.Value {
	return n.b.NewGetElementPtr(i64, n.args, n.add(ci(n.base), i))
}

// advance moves the pointers to the next index tuple in row-major order; after the last one they are back at the first.
func (n *nestCode) advance() {
	rank := n.word(n.args, n.base)
	k := len(n.ptrs)
	head, step, carry, out := n.block("axis"), n.block("step"), n.block("carry"), n.block("next")
	pre := n.b
	pre.NewBr(head)
	d := head.NewPhi(llir.NewIncoming(ci(0), pre))
	head.NewCondBr(head.NewICmp(enum.IPredSLT, d, rank), step, out)

	n.b = step
	idx := n.add(n.b.NewLoad(i64, n.slot(n.add(d, ci(1+maxAxes)))), ci(1))
	size := n.b.NewLoad(i64, n.slot(n.add(d, ci(1))))
	first := n.add(ci(1+2*maxAxes), n.mul(d, ci(k)))
	strides := make([]value.Value, k)
	for i, p := range n.ptrs {
		strides[i] = n.b.NewLoad(i64, n.slot(n.add(first, ci(i))))
		p.set(n.at(p.get(), strides[i]))
	}
	done := n.b.NewICmp(enum.IPredSGE, idx, size)
	idx2 := n.b.NewSelect(done, ci(0), idx)
	n.b.NewStore(idx2, n.slot(n.add(d, ci(1+maxAxes))))
	n.b.NewCondBr(done, carry, out)

	n.b = carry
	for i, p := range n.ptrs {
		p.set(n.at(p.get(), n.sub(ci(0), n.mul(size, strides[i]))))
	}
	next := n.add(d, ci(1))
	d.Incs = append(d.Incs, llir.NewIncoming(next, n.b))
	n.b.NewBr(head)
	n.b = out
}

// operand is one array as a kernel's innermost loop sees it.
type operand struct {
	dtype  dtype.DType
	access kernel.Access
	base   value.Value // byte pointer to element 0 of the loop
	stride value.Value // bytes per step; nil unless Strided
}

// step is the operand's distance between neighbours, in bytes.
func (o operand) step() value.Value {
	switch o.access {
	case kernel.Unit:
		return ci(o.dtype.Size())
	case kernel.Repeat:
		return ci(0)
	}
	return o.stride
}

// element points at element i.
func (f *fn) element(o operand, i value.Value) value.Value {
	if o.access == kernel.Repeat {
		return o.base
	}
	return f.at(o.base, f.mul(i, o.step()))
}

// loadLanes reads w elements from i on and gives the register value.
func (l *lanes) loadLanes(o operand, i value.Value) value.Value {
	mt, size := memType(o.dtype), o.dtype.Size()
	p := l.element(o, i)
	switch {
	case o.access == kernel.Repeat:
		return l.fromMem(o.dtype, l.spread(l.load(mt, p, size), l.w))
	case o.access == kernel.Unit || l.w == 1:
		return l.fromMem(o.dtype, l.load(wide(mt, l.w), p, size))
	}
	return l.fromMem(o.dtype, l.perLane(mt, l.w, func(k int) value.Value {
		v := l.load(mt, p, size)
		if k < l.w-1 {
			p = l.at(p, o.stride)
		}
		return v
	}))
}

// storeLanes writes w elements from i on.
func (l *lanes) storeLanes(o operand, i, v value.Value) {
	m, size := l.toMem(o.dtype, v), o.dtype.Size()
	p := l.element(o, i)
	if o.access == kernel.Unit || l.w == 1 {
		l.store(m, p, size)
		return
	}
	for k := range l.w {
		l.store(l.lane(m, l.w, k), p, size)
		if k < l.w-1 {
			p = l.at(p, o.stride)
		}
	}
}

// kernelFunc starts a kernel: a function of one pointer to words.
func (m *module) kernelFunc(name string) (f *fn, args value.Value) {
	p := llir.NewParam("args", types.NewPointer(i64))
	return m.newFunc(name, types.Void, p), p
}

// pointer is the address of an array's element 0. See layouts.addresses for the check that goes before.
func pointer(a *ir.Array) int64 {
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(a.Data)))) + int64(a.Offset*a.DType.Size())
}

// faultError is the error for a fault code that a kernel left in its arguments.
func faultError(code int64) error {
	switch code {
	case 0:
		return nil
	case gatherFault:
		return ErrIndex
	}
	return fmt.Errorf("%v", scalar.FaultCode(code))
}
