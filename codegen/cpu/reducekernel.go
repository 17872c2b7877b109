package cpu

import (
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/gtc-project/gtc/codegen/kernel"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// The arguments of a reduction kernel with k inputs:
//
//	word 0: rows, the number of outputs (of rows of outputs, by column); 1: length of the innermost reduced axis; 2: fault code,
//	set by the kernel; 3: number of index tuples of the other reduced axes; 4: number of columns
//	then k+1 pointers, inputs before output
//	by row:    k byte strides along the reduced axis
//	by column: k+1 byte strides along the columns, k along the reduced axis
//	then a nest of the kept axes over k+1 operands, and one of the outer reduced axes over k
const (
	reduceName  = "reduce"
	redRows     = 0
	redLen      = 1
	redFault    = 2
	redOuterLen = 3
	redCols     = 4
	redPtrs     = 5
)

func rowKept(k int) int       { return redPtrs + 2*k + 1 }
func rowReduced(k int) int    { return rowKept(k) + nestWords(k+1) }
func rowWords(k int) int      { return rowReduced(k) + nestWords(k) }
func columnKept(k int) int    { return redPtrs + 2*(k+1) + k }
func columnReduced(k int) int { return columnKept(k) + nestWords(k+1) }
func columnWords(k int) int   { return columnReduced(k) + nestWords(k) }

// width is the number of lanes of a value.
func width(v value.Value) int {
	if t, ok := v.Type().(*types.VectorType); ok {
		return int(t.Len)
	}
	return 1
}

// reduceCode is a reduction kernel under construction.
type reduceCode struct {
	*lanes
	reducer
	out     dtype.DType
	args    value.Value
	n       value.Value // length of the innermost reduced axis
	outer   value.Value // index tuples of the other reduced axes
	kept    *nestCode
	reduced *nestCode
}

func (r *Reduction) newCode(out dtype.DType, w, keptBase, reducedBase int) (*module, *reduceCode) {
	mod := newModule()
	f, args := mod.kernelFunc(reduceName)
	c := &reduceCode{out: out, args: args}
	c.lanes = &lanes{fn: f, prog: r.prog, w: w, fault: f.newVar(ci(0))}
	c.reducer = reducer{r.op, scalar.RegType(r.prog.Out[0].DType)}
	c.n, c.outer = f.word(args, redLen), f.word(args, redOuterLen)
	c.kept = &nestCode{fn: f, args: args, base: keptBase}
	c.reduced = &nestCode{fn: f, args: args, base: reducedBase}
	for i := range len(r.prog.In) + 1 {
		p := f.b.NewIntToPtr(f.word(args, redPtrs+i), bytePtr)
		c.kept.ptrs = append(c.kept.ptrs, f.newVar(p))
		if i < len(r.prog.In) {
			c.reduced.ptrs = append(c.reduced.ptrs, f.newVar(p))
		}
	}
	return mod, c
}

// finish stores the fault code and ends the kernel.
func (c *reduceCode) finish(mod *module) string {
	c.b.NewStore(c.fault.get(), c.b.NewGetElementPtr(i64, c.args, ci(redFault)))
	c.done(nil)
	return mod.text()
}

// putResult stores w outputs at a pointer of the given step.
func (c *reduceCode) putResult(s state, p value.Value, access kernel.Access, stride value.Value) {
	v := s[len(s)-1]
	l := &lanes{fn: c.fn, w: width(v)}
	l.storeLanes(operand{dtype: c.out, access: access, base: p, stride: stride}, ci(0), v)
}

// segments walks the reduced elements of one output in the contract's order: for every run of elements within one block it calls
// run(i, count), where i is the index along the innermost axis; after each block, flush.
func (c *reduceCode) segments(block int, run func(i, count value.Value), flush func()) {
	left := c.newVar(ci(block))
	c.loop(ci(0), c.outer, ci(1), func(value.Value) {
		c.while(ci(0), func(i value.Value) value.Value { return c.less(i, c.n) }, func(i value.Value) value.Value {
			count := c.min(c.sub(c.n, i), left.get())
			run(i, count)
			left.set(c.sub(left.get(), count))
			c.when(c.b.NewICmp(enum.IPredEQ, left.get(), ci(0)), func() {
				flush()
				left.set(ci(block))
			}, nil)
			return c.add(i, count)
		})
		c.reduced.advance()
	})
	c.when(c.b.NewICmp(enum.IPredNE, left.get(), ci(block)), flush, nil)
}

// rowText is the kernel for reductions over the last dim: 16 lanes along the reduced axis.
func (r *Reduction) rowText(strides []int, out dtype.DType) string {
	k := len(r.prog.In)
	const w = ir.ReduceLanes
	mod, c := r.newCode(out, w, rowKept(k), rowReduced(k))
	ops := make([]operand, k)
	for i := range ops {
		ops[i] = operand{dtype: r.prog.In[i].DType, access: kernel.AccessOf(strides[i])}
		if ops[i].access == kernel.Strided {
			ops[i].stride = c.word(c.args, redPtrs+k+1+i)
		}
	}
	spare := newSpare(c.fn, ops, w)
	acc, total := c.newState(c.identity(w)), c.newState(c.identity(1))
	c.loop(ci(0), c.word(c.args, redRows), ci(1), func(value.Value) {
		acc.set(c.identity(w))
		total.set(c.identity(1))
		for i := range ops {
			c.reduced.ptrs[i].set(c.kept.ptrs[i].get())
		}
		c.segments(blockLen, func(i, count value.Value) {
			for j := range ops {
				ops[j].base = c.reduced.ptrs[j].get()
			}
			c.rowSegment(ops, acc, i, count, spare)
		}, func() {
			total.set(c.merge(c.fn, total.get(), c.tree(c.fn, acc.get(), w)))
			acc.set(c.identity(w))
		})
		c.putResult(total.get(), c.kept.ptrs[k].get(), kernel.Unit, nil)
		c.kept.advance()
	})
	return c.finish(mod)
}

// rowSegment takes count elements from i on into the lanes; only the last segment of a row may end within a vector.
func (c *reduceCode) rowSegment(ops []operand, acc stateVar, i, count value.Value, s spare) {
	end := c.add(i, count)
	step := ci(c.w)
	value16 := func(ops []operand, at value.Value) value.Value {
		in := make([]value.Value, len(ops))
		for k, o := range ops {
			in[k] = c.loadLanes(o, at)
		}
		return c.run(in)[0]
	}
	index := func(i value.Value) value.Value { return c.add(c.spread(i, c.w), laneNumbers(i64, c.w)) }
	rest := c.while(i, func(i value.Value) value.Value { return c.lessEqual(c.add(i, step), end) }, func(i value.Value) value.Value {
		acc.set(c.update(c.fn, acc.get(), value16(ops, i), index(i)))
		return c.add(i, step)
	})
	left := c.sub(end, rest)
	c.when(c.less(ci(0), left), func() {
		c.fillSpare(ops, rest, left, s)
		near := make([]operand, len(ops))
		for k, o := range ops {
			near[k] = o
			if s[k] != nil {
				near[k] = operand{dtype: o.dtype, access: kernel.Unit, base: s[k]}
			}
		}
		old := acc.get()
		next := c.update(c.fn, old, value16(near, ci(0)), index(rest))
		valid := c.b.NewICmp(enum.IPredSLT, laneNumbers(i64, c.w), c.spread(left, c.w))
		for k := range next {
			next[k] = c.b.NewSelect(valid, next[k], old[k])
		}
		acc.set(next)
	}, nil)
}

// maxStrips is how many vectors of columns a kernel with a short program reduces side by side.
const maxStrips = 8

// columnText is the kernel for reductions that keep the last dim: a vector holds neighbouring outputs, each reduced in sequence.
func (r *Reduction) columnText(strides []int, out dtype.DType) string {
	k := len(r.prog.In)
	w := r.backend.lanesFor(r.prog)
	mod, c := r.newCode(out, w, columnKept(k), columnReduced(k))
	ops := make([]operand, k+1)
	for i := range ops {
		ops[i] = operand{dtype: out, access: kernel.AccessOf(strides[i])}
		if i < k {
			ops[i].dtype = r.prog.In[i].DType
		}
		if ops[i].access == kernel.Strided {
			ops[i].stride = c.word(c.args, redPtrs+k+1+i)
		}
	}
	depth := make([]value.Value, k)
	for i := range depth {
		depth[i] = c.word(c.args, redPtrs+2*(k+1)+i)
	}
	cols := c.word(c.args, redCols)
	strips := maxStrips
	if len(r.prog.Code) > shortCode || r.op.isArg() {
		strips = 1
	}
	many := c.newColumns(strips, w)
	one := many
	if strips > 1 {
		one = c.newColumns(1, w)
	}
	single := c.newColumns(1, 1)
	c.loop(ci(0), c.word(c.args, redRows), ci(1), func(value.Value) {
		from := c.while(ci(0), func(j value.Value) value.Value { return c.lessEqual(c.add(j, ci(strips*w)), cols) }, func(j value.Value) value.Value {
			c.columns(many, ops, depth, j)
			return c.add(j, ci(strips*w))
		})
		c.when(c.less(cols, ci(w)), func() {
			c.loop(from, cols, ci(1), func(j value.Value) { c.columns(single, ops, depth, j) })
		}, func() {
			// the last vector starts early enough to end at the last column: some outputs are computed twice, alike
			c.loop(from, cols, ci(w), func(j value.Value) { c.columns(one, ops, depth, c.min(j, c.sub(cols, ci(w)))) })
		})
		c.kept.advance()
	})
	return c.finish(mod)
}

// columnsCode is the state of strips vectors of w columns each.
type columnsCode struct {
	w          int
	acc, total []stateVar
}

func (c *reduceCode) newColumns(strips, w int) columnsCode {
	cc := columnsCode{w: w}
	for range strips {
		cc.acc = append(cc.acc, c.newState(c.identity(w)))
		cc.total = append(cc.total, c.newState(c.identity(w)))
	}
	return cc
}

// columns reduces the columns from j on.
func (c *reduceCode) columns(cc columnsCode, ops []operand, depth []value.Value, j value.Value) {
	k := len(depth)
	l := &lanes{fn: c.fn, prog: c.prog, w: cc.w, fault: c.fault}
	for s := range cc.acc {
		cc.acc[s].set(c.identity(cc.w))
		cc.total[s].set(c.identity(cc.w))
	}
	for i, o := range ops[:k] {
		o.base = c.kept.ptrs[i].get()
		c.reduced.ptrs[i].set(c.fn.element(o, j))
	}
	c.segments(ir.ReduceBlock, func(i, count value.Value) {
		end := c.add(i, count)
		c.while(i, func(i value.Value) value.Value { return c.less(i, end) }, func(i value.Value) value.Value {
			index := c.spread(i, cc.w)
			for s := range cc.acc {
				in := make([]value.Value, k)
				for q, o := range ops[:k] {
					o.base = c.at(c.reduced.ptrs[q].get(), c.mul(i, depth[q]))
					in[q] = l.loadLanes(o, ci(s*cc.w))
				}
				cc.acc[s].set(c.update(c.fn, cc.acc[s].get(), l.run(in)[0], index))
			}
			return c.add(i, ci(1))
		})
	}, func() {
		for s := range cc.acc {
			cc.total[s].set(c.merge(c.fn, cc.total[s].get(), cc.acc[s].get()))
			cc.acc[s].set(c.identity(cc.w))
		}
	})
	o := ops[k]
	o.base = c.kept.ptrs[k].get()
	for s := range cc.total {
		c.putResult(cc.total[s].get(), c.fn.element(o, c.add(j, ci(s*cc.w))), o.access, o.stride)
	}
}
