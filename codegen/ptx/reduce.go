package ptx

import (
	"fmt"
	"math"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// reduceSpec is what a reduction kernel is specialised for.
type reduceSpec struct {
	op    string // sum, prod, amax, amin, any, all, argmax, argmin
	lanes int    // 1 or ir.ReduceLanes
	prog  *scalar.Prog
	ins   []access // strided or index
	outer int      // axes of the kept dims
	inner int      // axes of the reduced dims
}

// reduceKernel combines, for each of rows outputs, n values of a program, in the order that package ir states: ir.ReduceLanes threads
// per output, each with its lane of the order, or one thread where the order has one lane.
//
// Parameters: addresses of inputs (none for access index), of the output, the fault word, rows, n, the sizes of the outer and then of the inner axes,
// and per input, for access index its first value, then its strides along the outer and then along the inner axes.
func (m *module) reduceKernel(hint string, s reduceSpec) *function {
	var layout strings.Builder
	for _, a := range s.ins {
		layout.WriteString(a.letter())
	}
	key := fmt.Sprintf("reduce %s %d %s %d %d %s", s.op, s.lanes, &layout, s.outer, s.inner, progKey(s.prog))
	return m.function(key, hint, func(name string) *function {
		r := &reducer{entry: m.newEntry(), spec: s}
		r.write()
		return r.finish(name)
	})
}

// reducer writes one reduction kernel.
type reducer struct {
	*entry
	spec         reduceSpec
	bases        []string
	inner        []string
	innerStrides [][]string
	offsets      []string // per input, of the row's first element
}

func (r *reducer) write() {
	s := r.spec
	r.bases = make([]string, len(s.ins))
	for k, a := range s.ins {
		if a != index {
			r.bases[k] = r.address(operandName(k, len(s.ins)))
		}
	}
	out := r.address("out0")
	r.mayFault(s.prog)
	rows, n := r.number("rows"), r.number("n")
	outer := r.numbers("outer", s.outer)
	r.inner = r.numbers("inner", s.inner)
	outerStrides := make([][]string, len(s.ins))
	r.innerStrides = make([][]string, len(s.ins))
	firsts := make([]string, len(s.ins))
	for k, a := range s.ins {
		in := operandName(k, len(s.ins))
		if a == index {
			firsts[k] = r.number(in + "_first")
		}
		outerStrides[k] = r.numbers(in+"_outer", s.outer)
		r.innerStrides[k] = r.numbers(in+"_inner", s.inner)
	}
	id, count := r.thread()
	lane := ""
	if s.lanes > 1 {
		lane = r.val("and i64 %s, %d", id, s.lanes-1)
		id = r.val("udiv i64 %s, %d", id, s.lanes)
		count = r.val("udiv i64 %s, %d", count, s.lanes)
	}
	r.loop(id, rows, count, nil, func(row string, _ []string) []string {
		r.offsets = r.unravel(row, outer, outerStrides)
		for k, first := range firsts {
			if first != "" {
				r.offsets[k] = r.val("add i64 %s, %s", r.offsets[k], first)
			}
		}
		switch {
		case s.op == "argmax" || s.op == "argmin":
			r.store(dtype.I64, r.arg(n), out, row)
		case s.lanes == 1:
			r.store(s.prog.Out[0].DType, r.row(n, "0"), out, row)
		default:
			total := r.row(n, lane)
			r.when(r.val("icmp eq i64 %s, 0", lane), func() { r.store(s.prog.Out[0].DType, total, out, row) })
		}
		return nil
	})
}

// value is the program's output at index i of the reduced dims.
func (r *reducer) value(i string) string {
	offsets := r.unravel(i, r.inner, r.innerStrides)
	vals := make([]string, len(r.bases))
	for k, a := range r.spec.ins {
		at := r.val("add i64 %s, %s", r.offsets[k], offsets[k])
		vals[k] = r.element(r.spec.prog.In[k].DType, a, r.bases[k], at)
	}
	return r.run(r.spec.prog, vals)[0]
}

// row combines n elements; lane is this thread's lane. The result is only valid in lane 0.
func (r *reducer) row(n, lane string) string {
	d := r.spec.prog.Out[0].DType
	t, identity := regType(d), r.identity(d)
	step := fmt.Sprint(r.spec.lanes)
	block := fmt.Sprint(ir.ReduceBlock * r.spec.lanes)
	total := r.loop("0", n, block, [][2]string{{t, identity}}, func(start string, total []string) []string {
		end := r.call(r.m, "i64", "llvm.umin.i64", "i64 "+r.val("add i64 %s, %s", start, block), "i64 "+n)
		first := r.val("add i64 %s, %s", start, lane)
		acc := r.loop(first, end, step, [][2]string{{t, identity}}, func(i string, acc []string) []string {
			return []string{r.combine(d, acc[0], r.value(i))}
		})[0]
		for h := r.spec.lanes / 2; h > 0; h /= 2 {
			acc = r.combine(d, acc, r.shuffleDown(t, acc, h))
		}
		return []string{r.combine(d, total[0], acc)}
	})
	return total[0]
}

// shuffleDown is the value of the thread h lanes further on, within groups of ir.ReduceLanes threads.
func (r *reducer) shuffleDown(t, v string, h int) string {
	id := r.call(r.m, "i32", "llvm.nvvm.read.ptx.sreg.tid.x")
	group := r.val("and i32 %s, 16", id)
	mask := r.val("shl i32 65535, %s", group)
	const clamp = (32-ir.ReduceLanes)<<8 | 31
	move := func(word string) string {
		return r.call(r.m, "i32", "llvm.nvvm.shfl.sync.down.i32", "i32 "+mask, "i32 "+word, fmt.Sprintf("i32 %d", h), fmt.Sprintf("i32 %d", clamp))
	}
	i := intLike(t)
	if i != t {
		v = r.val("bitcast %s %s to %s", t, v, i)
	}
	switch {
	case i == "i32":
		v = move(v)
	case i == "i64":
		low := move(r.val("trunc i64 %s to i32", v))
		high := move(r.val("trunc i64 %s to i32", r.val("lshr i64 %s, 32", v)))
		high = r.val("shl i64 %s, 32", r.val("zext i32 %s to i64", high))
		v = r.val("or i64 %s, %s", high, r.val("zext i32 %s to i64", low))
	default:
		v = r.val("trunc i32 %s to %s", move(r.val("zext %s %s to i32", i, v)), i)
	}
	if i != t {
		v = r.val("bitcast %s %s to %s", i, v, t)
	}
	return v
}

// identity is what every lane starts with.
func (r *reducer) identity(d dtype.DType) string {
	t := regType(d)
	bits := bitsOf(t)
	least, greatest := uint64(1)<<(bits-1), uint64(1)<<(bits-1)-1
	if d == dtype.U8 || d == dtype.Bool {
		least, greatest = 0, 1<<bits-1
	}
	float := d.IsFloat()
	switch r.spec.op {
	case "sum", "any":
		return constant(t, 0)
	case "prod":
		if float {
			return floatConst(t, 1)
		}
		return constant(t, 1)
	case "all":
		return constant(t, 1)
	case "amax":
		if float {
			return floatConst(t, math.Inf(-1))
		}
		return constant(t, least)
	case "amin":
		if float {
			return floatConst(t, math.Inf(1))
		}
		return constant(t, greatest)
	}
	panic("BUG: ptx: no identity of " + r.spec.op)
}

// combine adds x to the accumulator a.
func (r *reducer) combine(d dtype.DType, a, x string) string {
	t := regType(d)
	prefix := ""
	if d.IsFloat() {
		prefix = "f"
	}
	switch r.spec.op {
	case "sum":
		return r.val("%sadd %s %s, %s", prefix, t, a, x)
	case "prod":
		return r.val("%smul %s %s, %s", prefix, t, a, x)
	case "any":
		return r.val("or %s %s, %s", t, a, x)
	case "all":
		return r.val("and %s %s, %s", t, a, x)
	}
	op := scalar.GT
	if r.spec.op == "amin" {
		op = scalar.LT
	}
	keep := r.compare(predicates[op][kindOf(d)], d, a, x)
	if d.IsFloat() {
		keep = r.val("or i1 %s, %s", keep, r.val("fcmp uno %s %s, %s", t, a, a))
	}
	return r.choose(keep, t, a, x)
}

// arg is the index of the extreme element, the first of equal ones; a NaN is the extreme.
func (r *reducer) arg(n string) string {
	d := r.spec.prog.Out[0].DType
	t := regType(d)
	op := scalar.GT
	if r.spec.op == "argmin" {
		op = scalar.LT
	}
	start := r.value("0")
	best := r.loop("1", n, "1", [][2]string{{"i64", "0"}, {t, start}}, func(i string, c []string) []string {
		x := r.value(i)
		better := r.compare(predicates[op][kindOf(d)], d, x, c[1])
		if d.IsFloat() {
			better = r.val("or i1 %s, %s", better, r.val("fcmp uno %s %s, %s", t, x, x))
			better = r.val("and i1 %s, %s", better, r.val("fcmp ord %s %s, %s", t, c[1], c[1]))
		}
		return []string{r.choose(better, "i64", i, c[0]), r.choose(better, t, x, c[1])}
	})
	return best[0]
}
