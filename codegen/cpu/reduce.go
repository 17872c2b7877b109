package cpu

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/gtc-project/gtc/codegen/kernel"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
	"github.com/gtc-project/gtc/runtime/arena"
	"github.com/gtc-project/gtc/runtime/jit"
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
	cost    float64   // estimated nanoseconds per element
	kernels lazyFuncs // by reduceVariant
	last    atomic.Pointer[lastReduction]
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
	family := b.reduceFamilies.get(string(op)+" "+p.Key(), func() *reduceKernels { return &reduceKernels{cost: progCost(p) + 0.05} })
	r, had := b.reduces.LoadOrStore(key, family)
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

// reducePlan is a reduction of operands of certain layouts, reduced to loops.
type reducePlan struct {
	layouts              // of ins and out
	ins      int         // how many operands there are
	shift    []int       // of ins and out: where the loops begin, in elements from element 0
	kept     kernel.Nest // over ins and out
	reduced  kernel.Nest // over ins
	lastDim  bool        // the contract's L is 16
	outDType dtype.DType
}

// Run reduces the program's result on ins over dims into out, which has the shape of ins without these dims, or with size 1 there.
// ctx is polled between units of work. Faults of the program, and a maximum of nothing, are errors.
func (r *Reduction) Run(ctx context.Context, out *ir.Array, ins []*ir.Array, dims []int) error {
	ops := append(append(make([]*ir.Array, 0, len(ins)+1), ins...), out)
	last := r.last.Load()
	if last == nil || !slices.Equal(last.dims, dims) || !last.Fits(ops...) {
		l, err := r.Launch(dims, ops...)
		if err != nil {
			return err
		}
		last = &lastReduction{l, slices.Clone(dims)}
		r.last.Store(last)
	}
	return last.Run(ctx, ops...)
}

// lastReduction is a launch and the dims that it is for.
type lastReduction struct {
	Launch
	dims []int
}

// Launch prepares Run for operands that are laid out like these, inputs before output.
func (r *Reduction) Launch(dims []int, ops ...*ir.Array) (Launch, error) {
	k := len(r.prog.In)
	if len(ops) != k+1 {
		return nil, fmt.Errorf("cpu: a reduction of %d operands has one result, got %d arrays", k, len(ops))
	}
	p, err := r.plan(ops[k], ops[:k], dims)
	if err != nil {
		return nil, err
	}
	if ops[k].Len() == 0 {
		return &grid{layouts: p.layouts}, nil
	}
	if p.reduced.Len() == 0 && r.op.needsElements() {
		return nil, fmt.Errorf("cpu: %s of no elements is undefined: shape %v over dims %v", r.op, ops[0].Shape, dims)
	}
	if !p.lastDim {
		return r.columns(p)
	}
	if n := len(p.reduced); n > 1 && p.reduced[n-1].Size%ir.ReduceLanes != 0 {
		return r.throughTemporary(p)
	}
	if r.splittable(p) {
		return r.inBlocks(p)
	}
	return r.rows(p)
}

func (r *Reduction) plan(out *ir.Array, ins []*ir.Array, dims []int) (*reducePlan, error) {
	if len(ins) >= maxOperands {
		return nil, fmt.Errorf("cpu: a reduction of %d operands, at most %d are possible", len(ins), maxOperands-1)
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
	p := &reducePlan{layouts: layoutsOf(append(ins[:len(ins):len(ins)], out)), ins: len(ins), shift: make([]int, len(ins)+1), outDType: want,
		lastDim: len(shape) > 0 && isReduced[len(shape)-1]}
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
	return r.kernels.get(v, func() (jit.Func, error) {
		if v.byColumn {
			return r.backend.compile(r.columnText(inner, v.out), reduceName)
		}
		return r.backend.compile(r.rowText(inner, v.out), reduceName)
	})
}

// sizesOf lists the element sizes of the program's inputs and of the result.
func (r *Reduction) sizesOf(out dtype.DType) []int {
	sizes := make([]int, 0, len(r.prog.In)+1)
	for _, p := range r.prog.In {
		sizes = append(sizes, p.DType.Size())
	}
	return append(sizes, out.Size())
}

// rows is a reduction over the last dim: whole outputs are shared out.
func (r *Reduction) rows(p *reducePlan) (*grid, error) {
	k := p.ins
	redOuter, inner := last(p.reduced, k)
	f, err := r.variant(reduceVariant{access: classes(inner), out: p.outDType}, inner.Strides)
	if err != nil {
		return nil, err
	}
	if len(p.kept) > maxAxes {
		return nil, fmt.Errorf("cpu: operands need more than %d nested loops; make them contiguous first", maxAxes)
	}
	rows := p.kept.Len()
	sizes := r.sizesOf(p.outDType)
	g := grid{layouts: p.layouts, fn: f, pool: r.backend.pool, words: rowWords(k), ptr: redPtrs, fault: redFault, outs: 1}
	cut := func(_, per int) *grid {
		g := g
		g.units = (rows + per - 1) / per
		g.fill = rowsFill(p, redOuter, inner, sizes, per)
		return g.ready()
	}
	g.rows = &rowwise{outer: p.kept, sizes: sizes, cut: cut}
	return cut(rows, max(1, perUnit(r.cost, rows*p.reduced.Len(), r.backend.pool.Size())/max(p.reduced.Len(), 1))), nil
}

// rowsFill writes the arguments of units of so many outputs.
func rowsFill(p *reducePlan, redOuter kernel.Nest, inner kernel.Axis, sizes []int, per int) func(u int, args []int64) {
	k, rows := p.ins, p.kept.Len()
	return func(u int, args []int64) {
		args[redRows] = int64(min(per, rows-u*per))
		args[redLen] = int64(inner.Size)
		args[redOuterLen] = int64(redOuter.Len())
		ptrs := args[redPtrs:]
		packNest(args[rowReduced(k):], redOuter, sizes[:k], 0, ptrs)
		packNest(args[rowKept(k):], p.kept, sizes, u*per, ptrs)
		for i, s := range p.shift {
			ptrs[i] += int64(s * sizes[i])
		}
		for i, s := range inner.Strides {
			args[redPtrs+k+1+i] = int64(s * sizes[i])
		}
	}
}

// columns is a reduction that keeps the last dim: pieces of it, and the kept dims before it, are shared out.
func (r *Reduction) columns(p *reducePlan) (*grid, error) {
	k := p.ins
	keptOuter, col := last(p.kept, k+1)
	redOuter, inner := last(p.reduced, k)
	f, err := r.variant(reduceVariant{byColumn: true, access: classes(col), out: p.outDType}, col.Strides)
	if err != nil {
		return nil, err
	}
	rows, depth := keptOuter.Len(), max(p.reduced.Len(), 1)
	want := max(1, perUnit(r.cost, rows*col.Size*depth, r.backend.pool.Size())/depth)
	pieces, piece := kernel.Chunks(col.Size, want, 64)
	per := max(1, want/max(col.Size, 1))
	if pieces > 1 {
		per = 1
	}
	sizes := r.sizesOf(p.outDType)
	g := &grid{layouts: p.layouts, fn: f, pool: r.backend.pool, units: (rows + per - 1) / per * pieces, words: columnWords(k), ptr: redPtrs, fault: redFault, outs: 1}
	g.fill = func(u int, args []int64) {
		row, from := u/pieces*per, u%pieces*piece
		args[redRows] = int64(min(per, rows-row))
		args[redLen] = int64(inner.Size)
		args[redOuterLen] = int64(redOuter.Len())
		args[redCols] = int64(min(piece, col.Size-from))
		ptrs := args[redPtrs:]
		packNest(args[columnReduced(k):], redOuter, sizes[:k], 0, ptrs)
		packNest(args[columnKept(k):], keptOuter, sizes, row, ptrs)
		for i := range k + 1 {
			step := int64(col.Strides[i] * sizes[i])
			ptrs[i] += int64(p.shift[i]*sizes[i]) + int64(from)*step
			args[redPtrs+k+1+i] = step
		}
		for i, s := range inner.Strides {
			args[redPtrs+2*(k+1)+i] = int64(s * sizes[i])
		}
	}
	return g.ready(), nil
}

// detour is a reduction in two steps: a kernel writes to temporary memory, and another reads that.
type detour struct {
	layouts
	first, second Launch
	views         []view // of the operands, for the first kernel; the temporary array follows them
	temp          layout
	out           view // of the result, for the second kernel
}

// view is another shape and strides for an operand.
type view struct{ shape, strides []int }

// Run is part of Launch.
func (l *detour) Run(ctx context.Context, ops ...*ir.Array) error {
	mem, temp, err := temporary(l.temp.dtype, l.temp.shape)
	if err != nil {
		return err
	}
	defer mem.Free()
	k := len(l.views)
	ins := make([]*ir.Array, k, k+1)
	for i, v := range l.views {
		ins[i] = ops[i].View(v.shape, v.strides, ops[i].Offset)
	}
	if err := l.first.Run(ctx, append(ins, temp)...); err != nil {
		return err
	}
	return l.second.Run(ctx, temp, ops[k].View(l.out.shape, l.out.strides, ops[k].Offset))
}

// temporary is an array for the duration of one run.
func temporary(d dtype.DType, shape []int) (*arena.Buffer, *ir.Array, error) {
	n, err := ir.CountElems(shape)
	if err != nil {
		return nil, nil, err
	}
	mem, err := arena.Default().NewBuffer(n * d.Size())
	if err != nil {
		return nil, nil, err
	}
	return mem, &ir.Array{DType: d, Shape: shape, Strides: ir.ContiguousStrides(shape), Data: mem.Bytes, Owner: mem}, nil
}

// throughTemporary first writes the program's result to memory with the reduced dims last and contiguous: several of them whose
// lanes would wrap around otherwise.
func (r *Reduction) throughTemporary(p *reducePlan) (Launch, error) {
	k := p.ins
	l := &detour{layouts: p.layouts, views: make([]view, k), temp: layout{dtype: r.prog.Out[0].DType}}
	var dims []int
	for _, a := range p.kept {
		l.temp.shape = append(l.temp.shape, a.Size)
		l.out.shape, l.out.strides = append(l.out.shape, a.Size), append(l.out.strides, a.Strides[k])
		for i := range l.views {
			l.views[i].strides = append(l.views[i].strides, a.Strides[i])
		}
	}
	for _, a := range p.reduced {
		dims = append(dims, len(l.temp.shape))
		l.temp.shape = append(l.temp.shape, a.Size)
		for i := range l.views {
			l.views[i].strides = append(l.views[i].strides, a.Strides[i])
		}
	}
	like := func(d dtype.DType, v view) *ir.Array { return &ir.Array{DType: d, Shape: v.shape, Strides: v.strides} }
	var ops []*ir.Array
	for i := range l.views {
		l.views[i].shape = l.temp.shape
		ops = append(ops, like(p.layouts[i].dtype, l.views[i]))
	}
	temp := like(l.temp.dtype, view{l.temp.shape, ir.ContiguousStrides(l.temp.shape)})
	var err error
	if l.first, err = r.backend.Elementwise(r.prog).Launch(append(ops, temp)...); err != nil {
		return nil, err
	}
	plain, err := r.backend.Reduce(r.op, Identity(l.temp.dtype))
	if err != nil {
		return nil, err
	}
	l.second, err = plain.Launch(dims, temp, like(p.outDType, l.out))
	return l, err
}

// blockLen is the number of elements after which the contract starts a new block.
const blockLen = ir.ReduceBlock * ir.ReduceLanes

// splittable: few long rows, whose blocks are worth sharing out.
func (r *Reduction) splittable(p *reducePlan) bool {
	return len(p.reduced) == 1 && p.reduced[0].Size > blockLen && p.kept.Len() < 2*r.backend.pool.Size() &&
		!r.op.isArg() && p.outDType.IsFloat() && r.backend.pool.Size() > 1
}

// blocks is a reduction of few long rows: each block of each row on its own, and then the blocks in order, as the contract does.
type blocks struct {
	layouts
	op         ReduceOp
	acc        dtype.DType
	kept       kernel.Nest // over the operands and the result
	rows, each int         // rows, and blocks of each
	full, rest *grid       // rest: the last block where it is shorter; may be nil
}

func (r *Reduction) inBlocks(p *reducePlan) (Launch, error) {
	k, n := p.ins, p.reduced[0].Size
	l := &blocks{layouts: p.layouts, op: r.op, acc: scalar.RegType(p.outDType), kept: p.kept, rows: p.kept.Len(), each: (n + blockLen - 1) / blockLen}
	partial := layoutsOf([]*ir.Array{{DType: l.acc, Shape: []int{l.rows, l.each}, Strides: []int{l.each, 1}}})
	at := func(from, count, size int) *reducePlan {
		q := &reducePlan{layouts: append(p.layouts[:k:k], partial...), ins: k, shift: make([]int, k+1), lastDim: true, outDType: l.acc}
		for _, a := range p.kept {
			q.kept = append(q.kept, kernel.Axis{Size: a.Size, Strides: slices.Clone(a.Strides)})
		}
		stride := l.each
		for d := len(q.kept) - 1; d >= 0; d-- {
			q.kept[d].Strides[k] = stride
			stride *= q.kept[d].Size
		}
		block := kernel.Axis{Size: count, Strides: ones(k + 1)}
		for i := range k {
			step := p.reduced[0].Strides[i]
			block.Strides[i] = blockLen * step
			q.shift[i] = from * blockLen * step
		}
		q.shift[k] = from
		q.kept = append(q.kept, block)
		q.reduced = kernel.Nest{{Size: size, Strides: p.reduced[0].Strides}}
		return q
	}
	var err error
	full := n / blockLen
	if l.full, err = r.rows(at(0, full, blockLen)); err != nil || full == l.each {
		return l, err
	}
	l.rest, err = r.rows(at(full, 1, n-full*blockLen))
	return l, err
}

// Run is part of Launch.
func (l *blocks) Run(ctx context.Context, ops ...*ir.Array) error {
	mem, partial, err := temporary(l.acc, []int{l.rows, l.each})
	if err != nil {
		return err
	}
	defer mem.Free()
	var addr [maxOperands]int64
	if err := l.addresses(ops, addr[:]); err != nil {
		return err
	}
	k := len(ops) - 1
	sub := append(ops[:k:k], partial)
	if err := l.full.Run(ctx, sub...); err != nil {
		return err
	}
	if l.rest != nil {
		if err := l.rest.Run(ctx, sub...); err != nil {
			return err
		}
	}
	out := ops[k].View(nil, nil, ops[k].Offset)
	for row := range l.rows {
		off, rest := ops[k].Offset, row
		for d := len(l.kept) - 1; d >= 0; d-- {
			off += rest % l.kept[d].Size * l.kept[d].Strides[k]
			rest /= l.kept[d].Size
		}
		total := partial.Float(row * l.each)
		for i := 1; i < l.each; i++ {
			total = l.op.combineFloats(l.acc, total, partial.Float(row*l.each+i))
		}
		out.SetFloat(off, total)
	}
	return nil
}

// combineFloats is one step of the reduction in dtype acc.
func (op ReduceOp) combineFloats(acc dtype.DType, a, x float64) float64 {
	switch {
	case op == Sum && acc == dtype.F32:
		return float64(float32(a) + float32(x))
	case op == Sum:
		return a + x
	case op == Prod && acc == dtype.F32:
		return float64(float32(a) * float32(x))
	case op == Prod:
		return a * x
	case x != x, op == Amax && x > a, op == Amin && x < a:
		return x
	}
	return a
}
