package cpu

import (
	llir "github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Matrix products follow the scheme of Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008): both
// operands are packed into panels that a microkernel streams through, which keeps a tile of the result in registers. Every element
// of the result is summed in order over blocks of gemmK, each block by one chain of multiply-adds that starts from zero.

// gemmK is the length of a block along the contracted axis; it is part of the order of summation.
const gemmK = 256

// gemmShape is the microkernel's tile for one compute type: rows × cols of the result, in registers.
type gemmShape struct {
	dtype      dtype.DType // F32 or F64
	rows, cols int
	lanes      int // of a vector register
	fma        bool
}

// gemmRows fits 6×2 accumulators, two vectors of b and one of a into 16 registers.
const gemmRows = 6

func (b *Backend) gemmShape(d dtype.DType) gemmShape {
	lanes := b.vector / d.Size()
	return gemmShape{dtype: d, rows: gemmRows, cols: 2 * lanes, lanes: lanes, fma: b.fma}
}

// The arguments of the gemm kernel: a block of rows times a block of columns, over one block of the contracted axis.
const (
	gemmName  = "gemm"
	argM      = 0 // rows of the result
	argN      = 1 // columns of the result
	argK      = 2 // length of the contracted block
	argA      = 3 // packed a: panels of gemmShape.rows rows, k outermost within a panel
	argB      = 4 // packed b: panels of gemmShape.cols columns
	argC      = 5 // result, columns contiguous
	argStride = 6 // bytes from one row of the result to the next
	argAdd    = 7 // 0: store the block's sum; 1: add it to what is there
	gemmWords = 8
)

// gemmText is the kernel's LLVM text.
func gemmText(s gemmShape) string {
	mod := newModule()
	micro := microkernel(mod, s)
	f, args := mod.kernelFunc(gemmName)
	w := func(i int) value.Value { return f.word(args, i) }
	ptr := func(i int) value.Value { return f.b.NewIntToPtr(w(i), bytePtr) }
	size := s.dtype.Size()
	m, n, k, a, b, c, stride, add := w(argM), w(argN), w(argK), ptr(argA), ptr(argB), ptr(argC), w(argStride), w(argAdd)
	tile := f.scratch(regType(s.dtype), s.rows*s.cols)
	kBytes := f.mul(k, ci(size))
	f.loop(ci(0), n, ci(s.cols), func(j value.Value) {
		bp := f.at(b, f.mul(j, kBytes))
		cols := f.min(f.sub(n, j), ci(s.cols))
		f.loop(ci(0), m, ci(s.rows), func(i value.Value) {
			ap := f.at(a, f.mul(i, kBytes))
			rows := f.min(f.sub(m, i), ci(s.rows))
			cp := f.at(f.at(c, f.mul(i, stride)), f.mul(j, ci(size)))
			full := f.b.NewAnd(f.b.NewICmp(enum.IPredEQ, rows, ci(s.rows)), f.b.NewICmp(enum.IPredEQ, cols, ci(s.cols)))
			f.when(full, func() {
				f.b.NewCall(micro, k, ap, bp, cp, stride, add)
			}, func() {
				f.b.NewCall(micro, k, ap, bp, tile, ci(s.cols*size), ci(0))
				f.copyTile(s, tile, cp, stride, rows, cols, add)
			})
		})
	})
	f.done(nil)
	return mod.text()
}

// copyTile stores or adds a partial tile.
func (f *fn) copyTile(s gemmShape, tile, c, stride, rows, cols, add value.Value) {
	t, size := regType(s.dtype), s.dtype.Size()
	f.loop(ci(0), rows, ci(1), func(i value.Value) {
		from, to := f.at(tile, f.mul(i, ci(s.cols*size))), f.at(c, f.mul(i, stride))
		f.loop(ci(0), cols, ci(1), func(j value.Value) {
			off := f.mul(j, ci(size))
			v, p := f.load(t, f.at(from, off), size), f.at(to, off)
			f.when(f.b.NewICmp(enum.IPredEQ, add, ci(0)), func() { f.store(v, p, size) }, func() {
				f.store(f.b.NewFAdd(f.load(t, p, size), v), p, size)
			})
		})
	})
}

// microkernel is a function that computes one full tile from one panel of each operand.
func microkernel(mod *module, s gemmShape) *llir.Func {
	k, a, b := llir.NewParam("k", i64), llir.NewParam("a", bytePtr), llir.NewParam("b", bytePtr)
	c, stride, add := llir.NewParam("c", bytePtr), llir.NewParam("stride", i64), llir.NewParam("add", i64)
	for _, p := range []*llir.Param{a, b, c} {
		p.Attrs = append(p.Attrs, enum.ParamAttrNoAlias)
	}
	f := mod.newFunc("micro", types.Void, k, a, b, c, stride, add)
	f.f.Linkage = enum.LinkageInternal
	f.f.FuncAttrs = append(f.f.FuncAttrs, enum.FuncAttrNoInline)
	t, size := regType(s.dtype), s.dtype.Size()
	vt := wide(t, s.lanes)
	var acc [gemmRows][2]variable
	for i := range acc {
		for j := range acc[i] {
			acc[i][j] = f.newVar(constant.NewZeroInitializer(vt))
		}
	}
	step := func(p value.Value) {
		ap, bp := f.at(a, f.mul(p, ci(s.rows*size))), f.at(b, f.mul(p, ci(s.cols*size)))
		b0, b1 := f.load(vt, bp, size), f.load(vt, f.at(bp, ci(s.lanes*size)), size)
		for i := range acc {
			x := f.spread(f.load(t, f.at(ap, ci(i*size)), size), s.lanes)
			acc[i][0].set(f.mulAdd(s, x, b0, acc[i][0].get()))
			acc[i][1].set(f.mulAdd(s, x, b1, acc[i][1].get()))
		}
	}
	const unrolled = 4
	most := f.b.NewAnd(k, ci(-unrolled))
	f.loop(ci(0), most, ci(unrolled), func(p value.Value) {
		for u := range unrolled {
			step(f.add(p, ci(u)))
		}
	})
	f.loop(most, k, ci(1), step)
	each := func(put func(v, p value.Value)) func() {
		return func() {
			for i := range acc {
				row := f.at(c, f.mul(ci(i), stride))
				put(acc[i][0].get(), row)
				put(acc[i][1].get(), f.at(row, ci(s.lanes*size)))
			}
		}
	}
	f.when(f.b.NewICmp(enum.IPredEQ, add, ci(0)),
		each(func(v, p value.Value) { f.store(v, p, size) }),
		each(func(v, p value.Value) { f.store(f.b.NewFAdd(f.load(vt, p, size), v), p, size) }))
	f.done(nil)
	return f.f
}

// mulAdd is x*y+z, rounded once where the CPU can.
func (f *fn) mulAdd(s gemmShape, x, y, z value.Value) value.Value {
	if s.fma {
		return f.mathOp("fma", x, y, z)
	}
	return f.b.NewFAdd(f.b.NewFMul(x, y), z)
}

// The arguments of the pack kernel: it gathers rows of a strided operand into panels.
const (
	packName     = "pack"
	packPanels   = 0 // number of panels
	packK        = 1 // length of the contracted block
	packFrom     = 2 // the operand
	packRowTable = 3 // byte offset of every row, whole panels of them
	packKTable   = 4 // byte offset of every index of the contracted block
	packTo       = 5 // the panels
	packUnitRows = 6 // so many leading panels have neighbouring rows next to each other in memory
	packUnitK    = 7 // 1: neighbours along the contracted block lie next to each other in memory
	packWords    = 8
)

// packText is the kernel for panels of the given number of rows, from elements of dtype from in memory to compute type to.
func packText(from, to dtype.DType, rows int) string {
	mod := newModule()
	f, args := mod.kernelFunc(packName)
	w := func(i int) value.Value { return f.word(args, i) }
	ptr := func(i int) value.Value { return f.b.NewIntToPtr(w(i), bytePtr) }
	p := &packCode{fn: f, from: from, to: to, rows: rows}
	p.src, p.rowTable, p.kTable, p.k = ptr(packFrom), ptr(packRowTable), ptr(packKTable), w(packK)
	dst, unitRows, unitK := ptr(packTo), w(packUnitRows), w(packUnitK)
	panelBytes := f.mul(p.k, ci(rows*to.Size()))
	f.loop(ci(0), w(packPanels), ci(1), func(i value.Value) {
		to := f.at(dst, f.mul(i, panelBytes))
		f.when(f.less(i, unitRows), func() { p.byVector(i, to) }, func() {
			row := make([]value.Value, rows)
			for r := range row {
				row[r] = p.row(i, r)
			}
			f.when(f.b.NewICmp(enum.IPredNE, unitK, ci(0)), func() {
				p.byElement(row, to, p.byBlock(row, to))
			}, func() {
				p.byGroup(row, to)
			})
		})
	})
	f.done(nil)
	return mod.text()
}

// packCode is a pack kernel under construction.
type packCode struct {
	*fn
	from, to                 dtype.DType
	rows                     int
	src, rowTable, kTable, k value.Value
}

// row is the address of row r of panel i.
func (p *packCode) row(i value.Value, r int) value.Value {
	slot := p.add(p.mul(i, ci(8*p.rows)), ci(8*r))
	return p.at(p.src, p.load(i64, p.at(p.rowTable, slot), 8))
}

func (p *packCode) kOffset(k value.Value) value.Value {
	return p.load(i64, p.at(p.kTable, p.mul(k, ci(8))), 8)
}

// widened loads w neighbouring elements as compute type.
func (p *packCode) widened(w int, at value.Value) value.Value {
	l := &lanes{fn: p.fn, w: w}
	return l.fromMem(p.from, l.load(wide(memType(p.from), w), at, p.from.Size()))
}

// line is where the panel holds index k.
func (p *packCode) line(to, k value.Value) value.Value {
	return p.at(to, p.mul(k, ci(p.rows*p.to.Size())))
}

// byVector copies panels whose rows are neighbours: one vector per k.
func (p *packCode) byVector(i, to value.Value) {
	first := p.row(i, 0)
	p.loop(ci(0), p.k, ci(1), func(k value.Value) {
		p.store(p.widened(p.rows, p.at(first, p.kOffset(k))), p.line(to, k), p.to.Size())
	})
}

// byBlock copies full square blocks of rows that are contiguous along k, and returns how many k it has done.
func (p *packCode) byBlock(row []value.Value, to value.Value) value.Value {
	w := 32 / p.to.Size()
	return p.while(ci(0), func(k value.Value) value.Value { return p.lessEqual(p.add(k, ci(w)), p.k) }, func(k value.Value) value.Value {
		off := p.kOffset(k)
		for r := 0; r < p.rows; r += w {
			block := make([]value.Value, w)
			n := min(w, p.rows-r)
			for i := range block {
				if i < n {
					block[i] = p.widened(w, p.at(row[r+i], off))
				} else {
					block[i] = constant.NewUndef(wide(regType(p.to), w))
				}
			}
			for i, v := range p.transpose(block) {
				if n < w {
					v = p.firstLanes(v, n)
				}
				p.store(v, p.at(p.line(to, p.add(k, ci(i))), ci(r*p.to.Size())), p.to.Size())
			}
		}
		return p.add(k, ci(w))
	})
}

// packGroup is how many rows byGroup looks at together.
const packGroup = 4

// byGroup copies groups of rows that lie next to each other at once, as most are where the rows are the places of an image.
func (p *packCode) byGroup(row []value.Value, to value.Value) {
	near := make([]value.Value, len(row)/packGroup)
	for g := range near {
		for r := 1; r < packGroup; r++ {
			here := p.b.NewICmp(enum.IPredEQ, row[g*packGroup+r], p.at(row[g*packGroup], ci(r*p.from.Size())))
			if near[g] == nil {
				near[g] = here
			} else {
				near[g] = p.b.NewAnd(near[g], here)
			}
		}
	}
	single := func(rows []value.Value, first int, off, line value.Value) {
		for r, base := range rows {
			p.store(p.widened(1, p.at(base, off)), p.at(line, ci((first+r)*p.to.Size())), p.to.Size())
		}
	}
	p.loop(ci(0), p.k, ci(1), func(k value.Value) {
		off, line := p.kOffset(k), p.line(to, k)
		for g, c := range near {
			first := g * packGroup
			p.when(c, func() {
				p.store(p.widened(packGroup, p.at(row[first], off)), p.at(line, ci(first*p.to.Size())), p.to.Size())
			}, func() {
				single(row[first:first+packGroup], first, off, line)
			})
		}
		rest := len(near) * packGroup
		single(row[rest:], rest, off, line)
	})
}

// byElement copies one element at a time from k on.
func (p *packCode) byElement(row []value.Value, to, from value.Value) {
	p.loop(from, p.k, ci(1), func(k value.Value) {
		off, line := p.kOffset(k), p.line(to, k)
		for r, base := range row {
			p.store(p.widened(1, p.at(base, off)), p.at(line, ci(r*p.to.Size())), p.to.Size())
		}
	})
}

func (f *fn) firstLanes(v value.Value, n int) value.Value {
	idx := make([]constant.Constant, n)
	for i := range idx {
		idx[i] = constant.NewInt(i32, int64(i))
	}
	return f.b.NewShuffleVector(v, constant.NewUndef(v.Type()), constant.NewVector(nil, idx...))
}

// transpose turns w vectors of w lanes by exchanging ever larger blocks (Eklundh's method).
func (f *fn) transpose(v []value.Value) []value.Value {
	w := len(v)
	for s := 1; s < w; s *= 2 {
		low, high := make([]constant.Constant, w), make([]constant.Constant, w)
		for j := range w {
			if j&s == 0 {
				low[j], high[j] = constant.NewInt(i32, int64(j)), constant.NewInt(i32, int64(j+s))
			} else {
				low[j], high[j] = constant.NewInt(i32, int64(w+j-s)), constant.NewInt(i32, int64(w+j))
			}
		}
		for i := range v {
			if i&s != 0 {
				continue
			}
			a, b := v[i], v[i+s]
			v[i] = f.b.NewShuffleVector(a, b, constant.NewVector(nil, low...))
			v[i+s] = f.b.NewShuffleVector(a, b, constant.NewVector(nil, high...))
		}
	}
	return v
}
