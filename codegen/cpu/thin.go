package cpu

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/value"

	"github.com/gtc-project/gtc/codegen/kernel"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/runtime/pool"
)

// A product with few rows on one side, such as a layer applied to one sample, is bound by reading the other side once: packing that
// would double the traffic. Thin kernels stream it. Every element of the result is summed in thinLanes lanes, k modulo thinLanes, by
// multiply-add, and the lanes are then added pairwise, k with k+4, then 2, then 1.
const (
	thinRows  = 8 // at most so many rows on the thin side
	thinLanes = 8
	thinTile  = 8 // sums at a time: that many rows of the thick side, or half of them for two rows of the thin side
)

// thin reports whether a product takes this way; it depends on the shape alone.
func (c *Dot) thin() bool {
	return min(c.a.n, c.b.n) <= thinRows && c.depth >= 2*thinLanes
}

// The arguments of both thin kernels.
const (
	thinName   = "thin"
	thinCount  = 0 // rows of the thick side
	thinFew    = 1 // rows of the thin side
	thinK      = 2
	thinSmall  = 3 // the thin side, contiguous
	thinThick  = 4 // the thick side, or one packed panel of it
	thinTable  = 5 // byte offsets of the thick side's rows; not used for a panel
	thinOut    = 6
	thinStepN  = 7 // bytes from one result to that of the next thick row
	thinStepM  = 8 // and of the next thin row
	thinPanelK = 9 // thinPanelText: bytes from one k to the next
	thinWords  = 10
)

// sides gives the side with few rows and the other one, and the places of these among the operands.
func (c *Dot) sides() (thin, thick *side, few int) {
	if c.a.n > c.b.n {
		return &c.b, &c.a, 1
	}
	return &c.a, &c.b, 0
}

// prepareThin compiles what runThin needs.
func (c *Dot) prepareThin(x, y *ir.Array) (err error) {
	thin, thick, few := c.sides()
	pair := min(thin.n, 2)
	key, text := gemmKey{thinName, thick.dtype, -pair}, func() string { return thinText(c.backend, thick.dtype, c.compute, pair) }
	if !thick.unitK {
		key, text = gemmKey{thinName, c.compute, thick.panel}, func() string { return thinPanelText(c.backend, c.compute) }
	}
	if c.thick, err = c.backend.shared(key, thinName, text); err != nil {
		return err
	}
	small := []*ir.Array{x, y}[few]
	if small.DType == c.compute && small.IsContiguous() {
		return nil
	}
	to := &ir.Array{DType: c.compute, Shape: small.Shape, Strides: ir.ContiguousStrides(small.Shape)}
	c.small, err = c.backend.Elementwise(conversion(small.DType, c.compute)).Launch(small, to)
	return err
}

// runThin computes all products of the batch.
func (c *Dot) runThin(ctx context.Context, addr [3]int64, ops []*ir.Array) error {
	thin, thick, few := c.sides()
	size := c.compute.Size()
	stepN, stepM := size, c.b.n*size // of the result along thick and thin rows
	if few == 1 {
		stepN, stepM = stepM, stepN
	}
	if c.small != nil {
		mem, small, err := temporary(c.compute, ops[few].Shape)
		if err != nil {
			return err
		}
		defer mem.Free()
		if err := c.small.Run(ctx, ops[few], small); err != nil {
			return err
		}
		addr[few] = pointer(small)
	}
	cost := float64(c.depth) * (0.2 + 0.05*float64(thin.n))
	want := perUnit(cost, c.batch*thick.n, c.backend.pool.Size())
	want = max(min(want, c.batch*thick.n), 1)
	pieces, piece := kernel.Chunks(thick.n, want, thick.panel)
	per := max(1, want/thick.n)
	if pieces > 1 {
		per = 1
	}
	s := newScratch(c.backend.pool.Size(), thick.panel*c.depth*size)
	defer s.free()
	return c.backend.pool.Run(ctx, (c.batch+per-1)/per*pieces, func(w *pool.Worker, u int) {
		row := u % pieces * piece
		count := min(piece, thick.n-row)
		table := thick.rowTable(row, count)
		for i := u / pieces * per; i < min((u/pieces+1)*per, c.batch); i++ {
			args := w.Args(thinWords + packWords)
			args[thinCount], args[thinFew], args[thinK] = int64(count), int64(thin.n), int64(c.depth)
			args[thinSmall] = addr[few] + int64(i*thin.n*c.depth*size)
			args[thinThick] = addr[1-few] + thick.bases[i]
			args[thinTable] = address(&table[0])
			args[thinOut] = addr[2] + int64(i*thin.n*thick.n*size) + int64(row*stepN)
			args[thinStepN], args[thinStepM] = int64(stepN), int64(stepM)
			if thick.unitK {
				w.Call(c.thick, unsafe.Pointer(&args[0]))
				continue
			}
			mem := s.of(w)
			args[thinThick] = address(&mem[0])
			args[thinPanelK] = int64(thick.panel * size)
			for r := 0; r < count; r += thick.panel {
				n := min(thick.panel, count-r)
				thick.packPanels(w, args[thinWords:], addr[1-few]+thick.bases[i], table[r:], n, 0, c.depth, &mem[0])
				args[thinCount] = int64(n)
				w.Call(c.thick, unsafe.Pointer(&args[0]))
				args[thinOut] += int64(n * stepN)
			}
		}
		runtime.KeepAlive(table)
	})
}

// thinCode is a thin kernel under construction.
type thinCode struct {
	*fn
	shape                     gemmShape
	count, few, k             value.Value
	small, thick, table       value.Value
	out, stepN, stepM, panelK value.Value
}

func newThin(b *Backend, compute dtype.DType) (*module, *thinCode) {
	mod := newModule()
	f, args := mod.kernelFunc(thinName)
	w := func(i int) value.Value { return f.word(args, i) }
	ptr := func(i int) value.Value { return f.b.NewIntToPtr(w(i), bytePtr) }
	return mod, &thinCode{fn: f, shape: b.gemmShape(compute), count: w(thinCount), few: w(thinFew), k: w(thinK), small: ptr(thinSmall),
		thick: ptr(thinThick), table: ptr(thinTable), out: ptr(thinOut), stepN: w(thinStepN), stepM: w(thinStepM), panelK: w(thinPanelK)}
}

// thinText is the kernel for a thick side that is contiguous along k: vectors run along k. It takes pair rows of the thin side at a time; where one is
// missing, the last is computed again.
func thinText(b *Backend, mem, compute dtype.DType, pair int) string {
	mod, c := newThin(b, compute)
	size, msize := compute.Size(), mem.Size()
	l := &lanes{fn: c.fn, w: thinLanes}
	one := &lanes{fn: c.fn, w: 1}
	vt := wide(regType(compute), thinLanes)
	tile := thinTile / pair
	acc := make([][]variable, tile)
	for i := range acc {
		for range pair {
			acc[i] = append(acc[i], c.newVar(constant.NewZeroInitializer(vt)))
		}
	}
	each := func(f func(i, s int)) {
		for i := range tile {
			for s := range pair {
				f(i, s)
			}
		}
	}
	spill := c.scratch(regType(compute), thinTile*thinLanes)
	spilled := func(i, s int) value.Value { return c.at(spill, ci((i*pair+s)*thinLanes*size)) }
	most := c.b.NewAnd(c.k, ci(-thinLanes))
	c.loop(ci(0), c.count, ci(tile), func(j value.Value) {
		row, to := make([]value.Value, tile), make([]value.Value, tile)
		for i := range row {
			r := c.min(c.add(j, ci(i)), c.sub(c.count, ci(1))) // past the end the last row is computed again
			row[i] = c.at(c.thick, c.load(i64, c.at(c.table, c.mul(r, ci(8))), 8))
			to[i] = c.at(c.out, c.mul(r, c.stepN))
		}
		c.loop(ci(0), c.few, ci(pair), func(s0 value.Value) {
			x, step := make([]value.Value, pair), make([]value.Value, pair)
			for s := range x {
				r := c.min(c.add(s0, ci(s)), c.sub(c.few, ci(1)))
				x[s] = c.at(c.small, c.mul(c.mul(r, c.k), ci(size)))
				step[s] = c.mul(r, c.stepM)
			}
			each(func(i, s int) { acc[i][s].set(constant.NewZeroInitializer(vt)) })
			c.loop(ci(0), most, ci(thinLanes), func(k value.Value) {
				v := make([]value.Value, pair)
				for s := range v {
					v[s] = c.load(vt, c.at(x[s], c.mul(k, ci(size))), size)
				}
				for i := range tile {
					y := l.fromMem(mem, c.load(wide(memType(mem), thinLanes), c.at(row[i], c.mul(k, ci(msize))), msize))
					for s := range pair {
						acc[i][s].set(c.mulAdd(c.shape, v[s], y, acc[i][s].get()))
					}
				}
			})
			c.when(c.less(most, c.k), func() {
				each(func(i, s int) { c.store(acc[i][s].get(), spilled(i, s), size) })
				c.loop(most, c.k, ci(1), func(k value.Value) {
					lane := c.mul(c.sub(k, most), ci(size))
					each(func(i, s int) {
						v := c.load(regType(compute), c.at(x[s], c.mul(k, ci(size))), size)
						y := one.fromMem(mem, c.load(memType(mem), c.at(row[i], c.mul(k, ci(msize))), msize))
						p := c.at(spilled(i, s), lane)
						c.store(c.mulAdd(c.shape, v, y, c.load(regType(compute), p, size)), p, size)
					})
				})
				each(func(i, s int) { acc[i][s].set(c.load(vt, spilled(i, s), size)) })
			}, nil)
			add := reducer{Sum, compute}
			each(func(i, s int) {
				sum := add.tree(c.fn, state{acc[i][s].get()}, thinLanes)
				c.store(sum[0], c.at(to[i], step[s]), size)
			})
		})
	})
	c.done(nil)
	return mod.text()
}

// thinPanelText is the kernel for one packed panel of any thick side: vectors run along its rows, with a sum for each lane of k.
func thinPanelText(b *Backend, compute dtype.DType) string {
	mod, c := newThin(b, compute)
	size, w := compute.Size(), c.shape.lanes
	vt := wide(regType(compute), w)
	var acc [thinLanes]variable
	for i := range acc {
		acc[i] = c.newVar(constant.NewZeroInitializer(vt))
	}
	most := c.b.NewAnd(c.k, ci(-thinLanes))
	result := c.scratch(regType(compute), w)
	c.loop(ci(0), c.few, ci(1), func(s value.Value) {
		x := c.at(c.small, c.mul(c.mul(s, c.k), ci(size)))
		c.loop(ci(0), c.count, ci(w), func(j value.Value) {
			panel := c.at(c.thick, c.mul(j, ci(size)))
			step := func(lane int, k value.Value) {
				v := c.spread(c.load(regType(compute), c.at(x, c.mul(k, ci(size))), size), w)
				y := c.load(vt, c.at(panel, c.mul(k, c.panelK)), size)
				acc[lane].set(c.mulAdd(c.shape, v, y, acc[lane].get()))
			}
			for i := range acc {
				acc[i].set(constant.NewZeroInitializer(vt))
			}
			c.loop(ci(0), most, ci(thinLanes), func(k value.Value) {
				for i := range acc {
					step(i, c.add(k, ci(i)))
				}
			})
			for i := range thinLanes - 1 {
				k := c.add(most, ci(i))
				c.when(c.less(k, c.k), func() { step(i, k) }, nil)
			}
			sums := make([]value.Value, thinLanes)
			for i := range acc {
				sums[i] = acc[i].get()
			}
			for h := thinLanes / 2; h > 0; h /= 2 {
				for i := range h {
					sums[i] = c.b.NewFAdd(sums[i], sums[i+h])
				}
			}
			c.store(sums[0], result, size)
			c.loop(ci(0), c.min(ci(w), c.sub(c.count, j)), ci(1), func(i value.Value) {
				to := c.at(c.at(c.out, c.mul(c.add(j, i), c.stepN)), c.mul(s, c.stepM))
				c.store(c.load(regType(compute), c.at(result, c.mul(i, ci(size))), size), to, size)
			})
		})
	})
	c.done(nil)
	return mod.text()
}
