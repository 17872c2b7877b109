package cpu

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/gtc-project/gtc/codegen/kernel"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
	"github.com/gtc-project/gtc/runtime/jit"
	"github.com/gtc-project/gtc/runtime/pool"
)

// Reduction applies a scalar program with one result at every index and reduces that over some dims, in the order that package ir
// defines.
type Reduction struct {
	*reduceKernels
	backend *Backend
	op      ReduceOp
	prog    *scalar.Prog
}

// reduceKernels is what is known of a reduction; see mapKernels.
type reduceKernels struct {
	cost    float64  // estimated nanoseconds per element
	kernels sync.Map // reduceVariant -> *lazyFunc
}

type reduceKey struct {
	op   ReduceOp
	prog weak.Pointer[scalar.Prog]
}

// Reduce gives the kernel family of a reduction op after a program, whose one output is what is reduced. Calls with the same op and
// program share it, for as long as the program lives.
func (b *Backend) Reduce(op ReduceOp, p *scalar.Prog) (*Reduction, error) {
	key := reduceKey{op, weak.Make(p)}
	if r, ok := b.reduces.Load(key); ok {
		return &Reduction{r.(*reduceKernels), b, op, p}, nil
	}
	if len(p.Out) != 1 || len(p.In) == 0 {
		return nil, fmt.Errorf("cpu: a reduction's program needs operands and exactly one result, it has %d and %d", len(p.In), len(p.Out))
	}
	if _, err := op.Result(p.Out[0].DType); err != nil {
		return nil, err
	}
	r, had := b.reduces.LoadOrStore(key, &reduceKernels{cost: progCost(p) + 0.05})
	if !had {
		runtime.AddCleanup(p, func(key reduceKey) { b.reduces.Delete(key) }, key)
	}
	return &Reduction{r.(*reduceKernels), b, op, p}, nil
}

var identities sync.Map // dtype.DType -> *scalar.Prog

// Identity is the program that gives its operand of dtype d: the prologue of a plain reduction.
func Identity(d dtype.DType) *scalar.Prog {
	if p, ok := identities.Load(d); ok {
		return p.(*scalar.Prog)
	}
	sb := scalar.NewBuilder()
	sb.Output(sb.Input(d))
	p, _ := identities.LoadOrStore(d, sb.Finish())
	return p.(*scalar.Prog)
}

// reducePlan is a reduction of actual operands, reduced to loops.
type reducePlan struct {
	ins      []*ir.Array
	out      *ir.Array
	kept     kernel.Nest // over ins and out
	reduced  kernel.Nest // over ins
	lastDim  bool        // the contract's L is 16
	outDType dtype.DType
}

// Run reduces the program's result on ins over dims into out, which has the shape of ins without these dims, or with size 1 there.
// ctx is polled between units of work. Faults of the program, and a maximum of nothing, are errors.
func (r *Reduction) Run(ctx context.Context, out *ir.Array, ins []*ir.Array, dims []int) error {
	p, err := r.plan(out, ins, dims)
	if err != nil || out.Len() == 0 {
		return err
	}
	if p.reduced.Len() == 0 && r.op.needsElements() {
		return fmt.Errorf("cpu: %s of no elements is undefined: shape %v over dims %v", r.op, ins[0].Shape, dims)
	}
	defer runtime.KeepAlive(ins)
	defer runtime.KeepAlive(out)
	if !p.lastDim {
		return r.columns(ctx, p)
	}
	if n := len(p.reduced); n > 1 && p.reduced[n-1].Size%ir.ReduceLanes != 0 {
		return r.throughTemporary(ctx, p)
	}
	if r.splittable(p) {
		return r.inBlocks(ctx, p)
	}
	return r.rows(ctx, p)
}

func (r *Reduction) plan(out *ir.Array, ins []*ir.Array, dims []int) (*reducePlan, error) {
	if len(ins) != len(r.prog.In) {
		return nil, fmt.Errorf("cpu: the program takes %d operands, got %d", len(r.prog.In), len(ins))
	}
	shape := ins[0].Shape
	isReduced := make([]bool, len(shape))
	for _, d := range dims {
		if d < 0 || d >= len(shape) || isReduced[d] {
			return nil, fmt.Errorf("cpu: reduction dims %v do not fit shape %v", dims, shape)
		}
		isReduced[d] = true
	}
	want, _ := r.op.Result(r.prog.Out[0].DType)
	if out.DType != want {
		return nil, fmt.Errorf("cpu: the result is %s, want %s", out.DType, want)
	}
	p := &reducePlan{ins: ins, out: out, outDType: want, lastDim: len(shape) > 0 && isReduced[len(shape)-1]}
	keep := len(out.Shape) == len(shape)
	var keptShape, redShape, outStrides []int
	keptStrides, redStrides := make([][]int, len(ins)), make([][]int, len(ins))
	o := 0
	for d, n := range shape {
		if isReduced[d] {
			redShape = append(redShape, n)
			if keep {
				o++
			}
		} else {
			if o >= len(out.Shape) || out.Shape[o] != n {
				return nil, fmt.Errorf("cpu: a result of shape %v does not fit operands of shape %v reduced over %v", out.Shape, shape, dims)
			}
			keptShape = append(keptShape, n)
			outStrides = append(outStrides, out.Strides[o])
			o++
		}
		for i, a := range ins {
			if len(a.Strides) != len(shape) {
				return nil, fmt.Errorf("cpu: operand shapes %v and %v differ", shape, a.Shape)
			}
			if isReduced[d] {
				redStrides[i] = append(redStrides[i], a.Strides[d])
			} else {
				keptStrides[i] = append(keptStrides[i], a.Strides[d])
			}
		}
	}
	for i, a := range ins {
		if !sameShape(a.Shape, shape) || a.DType != r.prog.In[i].DType {
			return nil, fmt.Errorf("cpu: operand %d is %s%v, want %s%v", i, a.DType, a.Shape, r.prog.In[i].DType, shape)
		}
		if err := inBounds(a); err != nil {
			return nil, err
		}
	}
	if err := inBounds(out); err != nil {
		return nil, err
	}
	if o != len(out.Shape) {
		return nil, fmt.Errorf("cpu: a result of shape %v does not fit operands of shape %v reduced over %v", out.Shape, shape, dims)
	}
	p.kept = kernel.NewNest(keptShape, append(keptStrides, outStrides)...).Collapse()
	p.reduced = kernel.NewNest(redShape, redStrides...).Collapse()
	if len(p.kept) > maxAxes+1 || len(p.reduced) > maxAxes+1 {
		return nil, fmt.Errorf("cpu: operands need more than %d nested loops; make them contiguous first", maxAxes)
	}
	return p, nil
}

// last takes the innermost axis off a nest; an empty one has an axis of size 1.
func last(n kernel.Nest, operands int) (outer kernel.Nest, inner kernel.Axis) {
	if len(n) == 0 {
		return nil, kernel.Axis{Size: 1, Strides: ones(operands)}
	}
	return n[:len(n)-1], n[len(n)-1]
}

// reduceVariant selects a kernel.
type reduceVariant struct {
	byColumn bool
	access   string
	out      dtype.DType
}

func (r *Reduction) variant(v reduceVariant, inner []int) (jit.Func, error) {
	l, ok := r.kernels.Load(v)
	if !ok {
		l, _ = r.kernels.LoadOrStore(v, &lazyFunc{})
	}
	lf := l.(*lazyFunc)
	lf.once.Do(func() {
		text := ""
		if v.byColumn {
			text = r.columnText(inner, v.out)
		} else {
			text = r.rowText(inner, v.out)
		}
		lf.fn, lf.err = r.backend.compile(text, reduceName)
	})
	return lf.fn, lf.err
}

// sizesOf lists the element sizes of the program's inputs and of the result.
func (r *Reduction) sizesOf(out dtype.DType) []int {
	sizes := make([]int, 0, len(r.prog.In)+1)
	for _, p := range r.prog.In {
		sizes = append(sizes, p.DType.Size())
	}
	return append(sizes, out.Size())
}

// rows runs a reduction over the last dim: whole outputs are shared out.
func (r *Reduction) rows(ctx context.Context, p *reducePlan) error {
	k := len(p.ins)
	redOuter, inner := last(p.reduced, k)
	f, err := r.variant(reduceVariant{access: classes(inner), out: p.outDType}, inner.Strides)
	if err != nil {
		return err
	}
	if len(p.kept) > maxAxes {
		return fmt.Errorf("cpu: operands need more than %d nested loops; make them contiguous first", maxAxes)
	}
	rows := p.kept.Len()
	per := max(1, perUnit(r.cost, rows*p.reduced.Len(), r.backend.pool.Size())/max(p.reduced.Len(), 1))
	sizes := r.sizesOf(p.outDType)
	var fault atomic.Int64
	err = r.backend.pool.Run(ctx, (rows+per-1)/per, func(w *pool.Worker, u int) {
		args := make([]int64, rowWords(k))
		args[redRows] = int64(min(per, rows-u*per))
		args[redLen] = int64(inner.Size)
		args[redOuterLen] = int64(redOuter.Len())
		offsets := packNest(args[rowKept(k):], p.kept, sizes, u*per)
		packNest(args[rowReduced(k):], redOuter, sizes[:k], 0)
		for i, a := range append(p.ins[:k:k], p.out) {
			args[redPtrs+i] = pointer(a) + offsets[i]
		}
		for i, s := range inner.Strides {
			args[redPtrs+k+1+i] = int64(s * sizes[i])
		}
		w.Call(f, unsafe.Pointer(&args[0]))
		if args[redFault] != 0 {
			fault.CompareAndSwap(0, args[redFault])
		}
	})
	if err != nil {
		return err
	}
	return faultError(fault.Load())
}

// columns runs a reduction that keeps the last dim: pieces of it, and the kept dims before it, are shared out.
func (r *Reduction) columns(ctx context.Context, p *reducePlan) error {
	k := len(p.ins)
	keptOuter, col := last(p.kept, k+1)
	redOuter, inner := last(p.reduced, k)
	f, err := r.variant(reduceVariant{byColumn: true, access: classes(col), out: p.outDType}, col.Strides)
	if err != nil {
		return err
	}
	rows, depth := keptOuter.Len(), max(p.reduced.Len(), 1)
	want := max(1, perUnit(r.cost, rows*col.Size*depth, r.backend.pool.Size())/depth)
	pieces, piece := kernel.Chunks(col.Size, want, 64)
	per := max(1, want/max(col.Size, 1))
	if pieces > 1 {
		per = 1
	}
	sizes := r.sizesOf(p.outDType)
	var fault atomic.Int64
	err = r.backend.pool.Run(ctx, (rows+per-1)/per*pieces, func(w *pool.Worker, u int) {
		row, from := u/pieces*per, u%pieces*piece
		args := make([]int64, columnWords(k))
		args[redRows] = int64(min(per, rows-row))
		args[redLen] = int64(inner.Size)
		args[redOuterLen] = int64(redOuter.Len())
		args[redCols] = int64(min(piece, col.Size-from))
		offsets := packNest(args[columnKept(k):], keptOuter, sizes, row)
		packNest(args[columnReduced(k):], redOuter, sizes[:k], 0)
		for i, a := range append(p.ins[:k:k], p.out) {
			step := int64(col.Strides[i] * sizes[i])
			args[redPtrs+i] = pointer(a) + offsets[i] + int64(from)*step
			args[redPtrs+k+1+i] = step
		}
		for i, s := range inner.Strides {
			args[redPtrs+2*(k+1)+i] = int64(s * sizes[i])
		}
		w.Call(f, unsafe.Pointer(&args[0]))
		if args[redFault] != 0 {
			fault.CompareAndSwap(0, args[redFault])
		}
	})
	if err != nil {
		return err
	}
	return faultError(fault.Load())
}

// throughTemporary first writes the program's result to memory with the reduced dims last and contiguous: several of them whose
// lanes would wrap around otherwise.
func (r *Reduction) throughTemporary(ctx context.Context, p *reducePlan) error {
	k := len(p.ins)
	shape := make([]int, 0, len(p.kept)+len(p.reduced))
	strides := make([][]int, k)
	for _, a := range p.kept {
		shape = append(shape, a.Size)
		for i := range strides {
			strides[i] = append(strides[i], a.Strides[i])
		}
	}
	for _, a := range p.reduced {
		shape = append(shape, a.Size)
		for i := range strides {
			strides[i] = append(strides[i], a.Strides[i])
		}
	}
	views := make([]*ir.Array, k)
	for i, a := range p.ins {
		views[i] = a.View(shape, strides[i], a.Offset)
	}
	temp := ir.NewArray(r.prog.Out[0].DType, shape...)
	if err := r.backend.Elementwise(r.prog).Run(ctx, []*ir.Array{temp}, views); err != nil {
		return err
	}
	plain, err := r.backend.Reduce(r.op, Identity(temp.DType))
	if err != nil {
		return err
	}
	outShape, outStrides := make([]int, len(p.kept)), make([]int, len(p.kept))
	var dims []int
	for i := range shape {
		if i < len(p.kept) {
			outShape[i], outStrides[i] = p.kept[i].Size, p.kept[i].Strides[k]
		} else {
			dims = append(dims, i)
		}
	}
	return plain.Run(ctx, p.out.View(outShape, outStrides, p.out.Offset), []*ir.Array{temp}, dims)
}

// blockLen is the number of elements after which the contract starts a new block.
const blockLen = ir.ReduceBlock * ir.ReduceLanes

// splittable: few long rows, whose blocks are worth sharing out.
func (r *Reduction) splittable(p *reducePlan) bool {
	return len(p.reduced) == 1 && p.reduced[0].Size > blockLen && p.kept.Len() < 2*r.backend.pool.Size() &&
		!r.op.isArg() && p.outDType.IsFloat() && r.backend.pool.Size() > 1
}

// inBlocks reduces each block of each row on its own, and then the blocks in order, as the contract does.
func (r *Reduction) inBlocks(ctx context.Context, p *reducePlan) error {
	acc := scalar.RegType(p.outDType)
	rows, n := p.kept.Len(), p.reduced[0].Size
	full := n / blockLen
	blocks := (n + blockLen - 1) / blockLen
	partial := ir.NewArray(acc, rows, blocks)
	at := func(from, count, size int) *reducePlan {
		q := &reducePlan{out: partial, lastDim: true, outDType: acc}
		for _, a := range p.kept {
			q.kept = append(q.kept, kernel.Axis{Size: a.Size, Strides: append([]int{}, a.Strides...)})
		}
		stride := blocks
		for d := len(q.kept) - 1; d >= 0; d-- {
			q.kept[d].Strides[len(p.ins)] = stride
			stride *= q.kept[d].Size
		}
		block := kernel.Axis{Size: count, Strides: ones(len(p.ins) + 1)}
		for i, a := range p.ins {
			step := p.reduced[0].Strides[i]
			block.Strides[i] = blockLen * step
			q.ins = append(q.ins, a.View(a.Shape, a.Strides, a.Offset+from*blockLen*step))
		}
		q.out = partial.View(partial.Shape, partial.Strides, from)
		q.kept = append(q.kept, block)
		q.reduced = kernel.Nest{{Size: size, Strides: p.reduced[0].Strides}}
		return q
	}
	if err := r.rows(ctx, at(0, full, blockLen)); err != nil {
		return err
	}
	if full < blocks {
		if err := r.rows(ctx, at(full, 1, n-full*blockLen)); err != nil {
			return err
		}
	}
	outs := p.out.View(nil, nil, p.out.Offset)
	for row := range rows {
		off, rest := p.out.Offset, row
		for d := len(p.kept) - 1; d >= 0; d-- {
			off += rest % p.kept[d].Size * p.kept[d].Strides[len(p.ins)]
			rest /= p.kept[d].Size
		}
		total := partial.Float(row * blocks)
		for i := 1; i < blocks; i++ {
			total = r.combineFloats(acc, total, partial.Float(row*blocks+i))
		}
		outs.SetFloat(off, total)
	}
	return nil
}

// combineFloats is one step of the reduction in dtype acc.
func (r *Reduction) combineFloats(acc dtype.DType, a, x float64) float64 {
	switch {
	case r.op == Sum && acc == dtype.F32:
		return float64(float32(a) + float32(x))
	case r.op == Sum:
		return a + x
	case r.op == Prod && acc == dtype.F32:
		return float64(float32(a) * float32(x))
	case r.op == Prod:
		return a * x
	case x != x, r.op == Amax && x > a, r.op == Amin && x < a:
		return x
	}
	return a
}
