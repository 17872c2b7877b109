package cpu

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/llir/llvm/ir/value"

	"github.com/gtc-project/gtc/codegen/kernel"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/scalar"
	"github.com/gtc-project/gtc/runtime/jit"
)

// Map applies a scalar program at every index of its operands.
type Map struct {
	*mapKernels
	backend *Backend
	prog    *scalar.Prog
}

// mapKernels is what is known of a program. It does not refer to the program, so that it can go when that does.
type mapKernels struct {
	cost    float64     // estimated nanoseconds per element
	sizes   []int       // bytes per element of inputs and outputs
	unit    kernel.Axis // of contiguous operands; its Size is not used
	kernels lazyFuncs   // by access classes
	last    atomic.Pointer[grid]
}

// lazyFuncs are functions that are compiled at first use, once per key.
type lazyFuncs struct{ of sync.Map } // key -> *lazyFunc

type lazyFunc struct {
	once sync.Once
	fn   jit.Func
	err  error
}

func (l *lazyFuncs) get(key any, compile func() (jit.Func, error)) (jit.Func, error) {
	v, ok := l.of.Load(key)
	if !ok {
		v, _ = l.of.LoadOrStore(key, &lazyFunc{})
	}
	f := v.(*lazyFunc)
	f.once.Do(func() { f.fn, f.err = compile() })
	return f.fn, f.err
}

// Elementwise gives the kernel family of a program; equal programs share it, for as long as one of them lives. Code is made at the first
// Run per access class.
func (b *Backend) Elementwise(p *scalar.Prog) *Map {
	key := weak.Make(p)
	if m, ok := b.maps.Load(key); ok {
		return &Map{m.(*mapKernels), b, p}
	}
	m := b.mapFamilies.get(p.Key(), func() *mapKernels {
		m := &mapKernels{cost: progCost(p)}
		for i := range len(p.In) + len(p.Out) {
			m.sizes = append(m.sizes, portOf(p, i).DType.Size())
		}
		m.unit.Strides = ones(len(m.sizes))
		return m
	})
	shared, had := b.maps.LoadOrStore(key, m)
	if !had {
		runtime.AddCleanup(p, func(key weak.Pointer[scalar.Prog]) { b.maps.Delete(key) }, key)
	}
	return &Map{shared.(*mapKernels), b, p}
}

// families keeps what equal programs share, as long as somebody uses it.
type families[T any] struct {
	mu sync.Mutex
	of map[string]weak.Pointer[T]
}

func (f *families[T]) get(key string, make func() *T) *T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.of[key].Value(); t != nil {
		return t
	}
	if f.of == nil {
		f.of = map[string]weak.Pointer[T]{}
	}
	t := make()
	f.of[key] = weak.Make(t)
	runtime.AddCleanup(t, f.forget, key)
	return t
}

func (f *families[T]) forget(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[key].Value() == nil {
		delete(f.of, key)
	}
}

// progCost estimates nanoseconds per element: memory traffic from a shared cache, plus arithmetic in vectors of eight.
func progCost(p *scalar.Prog) float64 {
	bytes := 0
	for _, port := range p.In {
		bytes += port.DType.Size()
	}
	for _, port := range p.Out {
		bytes += port.DType.Size()
	}
	c := 0.03*float64(bytes) + 0.05*float64(len(p.Code))
	for i := range p.Code {
		switch op := p.Code[i].Op; {
		case op == scalar.FRem || op == scalar.Gcd:
			c += 20
		case (op == scalar.Div || op == scalar.Rem) && p.Code[i].Type.IsInt():
			c += 4
		case op == scalar.Table:
			c++
		}
	}
	return c
}

// Work is cut into units of about unitTime; less than inlineTime in all is not shared between threads.
const (
	unitTime   = 100e3 // ns
	inlineTime = 15e3
)

// perUnit is the number of elements of the given cost in one unit.
func perUnit(cost float64, total, workers int) int {
	if cost*float64(total) < inlineTime {
		return total
	}
	n := int(unitTime / cost)
	return max(min(n, (total+2*workers-1)/(2*workers)), 1024)
}

// Run computes outs from ins. All operands have one shape; an output may share its memory with an input only if it is the very
// same view. The program's faults are returned as errors, and outs are then unspecified. ctx is polled between units of work.
func (m *Map) Run(ctx context.Context, outs, ins []*ir.Array) error {
	ops := append(append(make([]*ir.Array, 0, len(ins)+len(outs)), ins...), outs...)
	l := m.last.Load()
	if l == nil || !l.Fits(ops...) {
		var err error
		if l, err = m.launch(ops); err != nil {
			return err
		}
		m.last.Store(l)
	}
	return l.Run(ctx, ops...)
}

// Launch prepares Run for operands that are laid out like these, inputs before outputs.
func (m *Map) Launch(ops ...*ir.Array) (Launch, error) { return m.launch(ops) }

func (m *Map) launch(ops []*ir.Array) (*grid, error) {
	if err := m.check(ops); err != nil {
		return nil, err
	}
	g := &grid{layouts: layoutsOf(ops), pool: m.backend.pool, outs: len(m.prog.Out)}
	if ops[0].Len() == 0 {
		return g, nil
	}
	nest, inner := m.plan(ops, len(m.prog.In))
	if len(nest) > maxAxes {
		return nil, fmt.Errorf("cpu: operands need more than %d nested loops; make them contiguous first", maxAxes+1)
	}
	var err error
	g.fn, err = m.kernels.get(classes(inner), func() (jit.Func, error) { return m.backend.compile(m.Text(inner.Strides), mapName) })
	if err != nil {
		return nil, err
	}
	rowsPer, pieces, piece := m.cut(nest, inner)
	fillMap(g, m.sizes, nest, inner, rowsPer, pieces, piece)
	g.rows = mapByRows(*g, m.sizes, nest, inner)
	return g.ready(), nil
}

// mapByRows is how a chain cuts the work. Contiguous operands can be cut into rows of any length.
func mapByRows(g grid, sizes []int, outer kernel.Nest, inner kernel.Axis) *rowwise {
	if outer == nil {
		n := inner.Size
		return &rowwise{outer: kernel.Nest{inner}, sizes: sizes, any: true, cut: func(rows, per int) *grid {
			g, length := g, n/rows
			fillMap(&g, sizes, nil, inner, 1, (rows+per-1)/per, per*length)
			return g.ready()
		}}
	}
	return &rowwise{outer: outer, sizes: sizes, cut: func(_, per int) *grid {
		g := g
		fillMap(&g, sizes, outer, inner, per, 1, inner.Size)
		return g.ready()
	}}
}

// plan gives the loops over the operands.
func (m *Map) plan(ops []*ir.Array, firstOut int) (outer kernel.Nest, inner kernel.Axis) {
	if allContiguous(ops) {
		inner = m.unit
		inner.Size = ops[0].Len()
		return nil, inner
	}
	strides := make([][]int, len(ops))
	for i, a := range ops {
		strides[i] = a.Strides
	}
	outer = kernel.NewNest(ops[0].Shape, strides...)
	outer.SortFor(firstOut)
	return last(outer.Collapse(), len(ops))
}

func allContiguous(ops []*ir.Array) bool {
	for _, a := range ops {
		if !a.IsContiguous() {
			return false
		}
	}
	return true
}

func ones(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = 1
	}
	return s
}

func (m *Map) check(ops []*ir.Array) error {
	k := len(m.prog.In)
	if len(ops) != k+len(m.prog.Out) || len(m.prog.Out) == 0 {
		return fmt.Errorf("cpu: the program takes %d operands and gives %d results, got %d arrays", k, len(m.prog.Out), len(ops))
	}
	if len(ops) > maxOperands {
		return fmt.Errorf("cpu: a program of %d operands and results, at most %d are possible", len(ops), maxOperands)
	}
	for i, a := range ops {
		if i >= k {
			for d, s := range a.Strides {
				if s == 0 && a.Shape[d] > 1 {
					return fmt.Errorf("cpu: result %d has a repeated dim %d", i-k, d)
				}
			}
		}
		if want := portOf(m.prog, i); a.DType != want.DType {
			return fmt.Errorf("cpu: operand %d is %s, the program wants %s", i, a.DType, want.DType)
		}
		if !sameShape(a.Shape, ops[k].Shape) {
			return fmt.Errorf("cpu: operand shapes %v and %v differ", a.Shape, ops[k].Shape)
		}
	}
	return nil
}

func sameShape(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// classes is how each operand moves along the inner axis, as text.
func classes(inner kernel.Axis) string {
	var sb strings.Builder
	for _, s := range inner.Strides {
		sb.WriteString(kernel.AccessOf(s).String())
	}
	return sb.String()
}

// The arguments of a map kernel with k operands:
//
//	word 0: number of rows; 1: elements per row; 2: fault code, set by the kernel
//	then k pointers to the first element, k byte strides along a row, and a nest of the outer axes
const (
	mapName    = "map"
	mapRows    = 0
	mapLen     = 1
	mapFault   = 2
	mapPtrs    = 3
	maxUnroll  = 4
	shortCode  = 8  // instructions of a program that is unrolled maxUnroll times
	mediumCode = 24 // and of one that is unrolled twice
)

// cut divides the work into units: ranges of rows, or pieces of single rows where these are long.
func (m *Map) cut(outer kernel.Nest, inner kernel.Axis) (rowsPer, pieces, piece int) {
	if outer.Len() > 1 && inner.Size > 2*tileCols && closeAcross(outer, inner) {
		pieces, piece = kernel.Chunks(inner.Size, tileCols, 8)
		return tileRows, pieces, piece
	}
	return m.backend.cutRows(m.cost, outer.Len(), inner.Size)
}

// cutRows divides rows of n elements, of the given cost, into units: so many rows each, or pieces of one row.
func (b *Backend) cutRows(cost float64, rows, n int) (rowsPer, pieces, piece int) {
	want := perUnit(cost, rows*n, b.pool.Size())
	pieces, piece = kernel.Chunks(n, want, 64)
	if pieces > 1 {
		return 1, pieces, piece
	}
	return max(1, want/max(n, 1)), pieces, piece
}

// fillMap says what the units of a grid are.
func fillMap(g *grid, sizes []int, outer kernel.Nest, inner kernel.Axis, rowsPer, pieces, piece int) {
	rows := outer.Len()
	k := len(sizes)
	g.units = (rows + rowsPer - 1) / rowsPer * pieces
	g.words = mapPtrs + 2*k + 1 // the rank of an empty nest
	if len(outer) > 0 {
		g.words = mapPtrs + 2*k + nestWords(k)
	}
	g.ptr, g.fault = mapPtrs, mapFault
	g.fill = func(u int, args []int64) {
		row, from := u/pieces*rowsPer, u%pieces*piece
		args[mapRows] = int64(min(rowsPer, rows-row))
		args[mapLen] = int64(min(piece, inner.Size-from))
		packNest(args[mapPtrs+2*k:], outer, sizes, row, args[mapPtrs:])
		for i := range k {
			step := int64(inner.Strides[i] * sizes[i])
			args[mapPtrs+i] += int64(from) * step
			args[mapPtrs+k+i] = step
		}
	}
}

// Operands that step far along the inner axis but little along the next one, transposed ones, are walked in tiles of so many
// elements along these axes: each cache line is then used up while it is near. Few columns, since lines a power of two apart share
// few places in the cache.
const (
	tileCols = 16
	tileRows = 256
)

// closeAcross reports whether some operand has its neighbours along the innermost outer axis.
func closeAcross(outer kernel.Nest, inner kernel.Axis) bool {
	next := outer[len(outer)-1]
	for k, s := range inner.Strides {
		if near := next.Strides[k]; (near == 1 || near == -1) && (s > 8 || s < -8) {
			return true
		}
	}
	return false
}

// Text is the kernel's LLVM text for operands, inputs before outputs, with these inner strides in elements.
func (m *Map) Text(strides []int) string {
	p := m.prog
	mod := newModule()
	f, args := mod.kernelFunc(mapName)
	k := len(strides)
	w := m.backend.lanesFor(p)
	body := &lanes{fn: f, prog: p, w: w, fault: f.newVar(ci(0))}
	nest := &nestCode{fn: f, args: args, base: mapPtrs + 2*k}
	ops := make([]operand, k)
	for i := range ops {
		ops[i].access = kernel.AccessOf(strides[i])
		ops[i].dtype = portOf(p, i).DType
		if ops[i].access == kernel.Strided {
			ops[i].stride = f.word(args, mapPtrs+k+i)
		}
		nest.ptrs = append(nest.ptrs, f.newVar(f.b.NewIntToPtr(f.word(args, mapPtrs+i), bytePtr)))
	}
	rows, n := f.word(args, mapRows), f.word(args, mapLen)
	spare := newSpare(f, ops, w)
	f.loop(ci(0), rows, ci(1), func(value.Value) {
		for i := range ops {
			ops[i].base = nest.ptrs[i].get()
		}
		body.row(ops, n, spare)
		nest.advance()
	})
	f.b.NewStore(body.fault.get(), f.b.NewGetElementPtr(i64, args, ci(mapFault)))
	f.done(nil)
	return mod.text()
}

func portOf(p *scalar.Prog, i int) scalar.Port {
	if i < len(p.In) {
		return p.In[i]
	}
	return p.Out[i-len(p.In)]
}

// spare is stack memory for one vector of each operand: the last elements of a row pass through it, so that a kernel holds the
// program once and touches no memory beyond its operands.
type spare []value.Value

func newSpare(f *fn, ops []operand, w int) spare {
	s := make(spare, len(ops))
	for i, o := range ops {
		if o.access != kernel.Repeat {
			s[i] = f.scratch(memType(o.dtype), w)
		}
	}
	return s
}

// row applies the program to the n elements of one row.
func (l *lanes) row(ops []operand, n value.Value, s spare) {
	ins := len(l.prog.In)
	repeated := make([]value.Value, ins)
	for i, o := range ops[:ins] {
		if o.access == kernel.Repeat {
			repeated[i] = l.loadLanes(o, ci(0))
		}
	}
	once := func(ops []operand, i value.Value) {
		in := make([]value.Value, ins)
		for k, o := range ops[:ins] {
			if in[k] = repeated[k]; in[k] == nil {
				in[k] = l.loadLanes(o, i)
			}
		}
		for k, v := range l.run(in) {
			l.storeLanes(ops[ins+k], i, v)
		}
	}
	start := value.Value(ci(0))
	if u := unroll(l.prog); u > 1 {
		block := ci(u * l.w)
		start = l.while(start, func(i value.Value) value.Value { return l.lessEqual(l.add(i, block), n) }, func(i value.Value) value.Value {
			for k := range u {
				once(ops, l.add(i, ci(k*l.w)))
			}
			return l.add(i, block)
		})
	}
	step := ci(l.w)
	l.while(start, func(i value.Value) value.Value { return l.less(i, n) }, func(i value.Value) value.Value {
		left := l.sub(n, i)
		full := l.lessEqual(step, left)
		l.when(full, func() {}, func() { l.fillSpare(ops[:ins], i, left, s) })
		near := make([]operand, len(ops))
		for k, o := range ops {
			near[k] = o
			if s[k] == nil {
				continue
			}
			near[k].base = l.b.NewSelect(full, l.element(o, i), s[k])
			if o.access == kernel.Strided {
				near[k].stride = l.b.NewSelect(full, o.stride, ci(o.dtype.Size()))
			}
		}
		once(near, ci(0))
		l.when(full, func() {}, func() { l.drainSpare(ops[ins:], i, left, s[ins:]) })
		return l.add(i, step)
	})
}

func unroll(p *scalar.Prog) int {
	switch {
	case len(p.Code) <= shortCode:
		return maxUnroll
	case len(p.Code) <= mediumCode:
		return 2
	}
	return 1
}

// fillSpare copies the last left elements of each input, from i on, and repeats the very last in the unused lanes, so that these
// raise no faults of their own.
func (l *lanes) fillSpare(ops []operand, i, left value.Value, s spare) {
	last := l.sub(left, ci(1))
	l.loop(ci(0), ci(l.w), ci(1), func(j value.Value) {
		from := l.add(i, l.min(j, last))
		for k, o := range ops {
			if s[k] != nil {
				l.copyElement(l.at(s[k], l.mul(j, ci(o.dtype.Size()))), l.element(o, from), o)
			}
		}
	})
}

// drainSpare copies the first left elements of each output to their places.
func (l *lanes) drainSpare(ops []operand, i, left value.Value, s spare) {
	l.loop(ci(0), left, ci(1), func(j value.Value) {
		for k, o := range ops {
			l.copyElement(l.element(o, l.add(i, j)), l.at(s[k], l.mul(j, ci(o.dtype.Size()))), o)
		}
	})
}

func (f *fn) copyElement(to, from value.Value, o operand) {
	size := o.dtype.Size()
	f.store(f.load(memType(o.dtype), from, size), to, size)
}
