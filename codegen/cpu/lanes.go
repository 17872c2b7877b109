package cpu

import (
	"fmt"
	"strings"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// lanes translates a scalar program for w elements at a time. Everything is exact or correctly rounded by IEEE 754, and no
// instruction carries a fast-math flag, so the results are the interpreter's bit for bit.
type lanes struct {
	*fn
	prog  *scalar.Prog
	w     int
	fault variable // i64: the first fault code seen, or 0

	regs  []value.Value
	halfs map[value.Value]value.Value // rounded f32 value -> its half bits
}

// run emits the program for the given inputs (register values) and returns the outputs.
func (l *lanes) run(in []value.Value) []value.Value {
	l.regs = make([]value.Value, l.prog.NumRegs())
	l.halfs = map[value.Value]value.Value{}
	copy(l.regs, in)
	for i := range l.prog.Code {
		c := &l.prog.Code[i]
		if v := l.instr(c); v != nil {
			l.regs[len(l.prog.In)+i] = v
		}
	}
	out := make([]value.Value, len(l.prog.Out))
	for i, o := range l.prog.Out {
		out[i] = l.regs[o.Reg]
	}
	return out
}

func (l *lanes) typ(d dtype.DType) types.Type { return wide(regType(d), l.w) }

// k is a constant in every lane.
func (l *lanes) k(d dtype.DType, bits uint64) value.Value { return splat(regType(d), l.w, bits) }

// fk is a float constant in every lane.
func (l *lanes) fk(d dtype.DType, v float64) value.Value {
	return &raw{l.typ(d), l.splatText(regType(d), v)}
}

func (l *lanes) splatText(t types.Type, v float64) string {
	return splat(t, l.w, floatBits(t, v)).Ident()
}

func (l *lanes) instr(c *scalar.Instr) value.Value {
	var a [3]value.Value
	for i, r := range c.Args[:c.Op.Arity()] {
		a[i] = l.regs[r]
	}
	t := c.Type
	isFloat := t.IsFloat()
	b := l.b
	switch c.Op {
	case scalar.Const:
		return l.k(t, c.Imm)
	case scalar.Add:
		if isFloat {
			return b.NewFAdd(a[0], a[1])
		}
		return b.NewAdd(a[0], a[1])
	case scalar.Sub:
		if isFloat {
			return b.NewFSub(a[0], a[1])
		}
		return b.NewSub(a[0], a[1])
	case scalar.Mul:
		if isFloat {
			return b.NewFMul(a[0], a[1])
		}
		return b.NewMul(a[0], a[1])
	case scalar.Div:
		switch {
		case isFloat:
			return b.NewFDiv(a[0], a[1])
		case t == dtype.U8:
			return b.NewUDiv(a[0], a[1])
		}
		return b.NewSDiv(a[0], a[1])
	case scalar.Rem:
		if t == dtype.U8 {
			return b.NewURem(a[0], a[1])
		}
		return b.NewSRem(a[0], a[1])
	case scalar.Neg:
		if isFloat {
			return b.NewFNeg(a[0])
		}
		return b.NewSub(l.k(t, 0), a[0])
	case scalar.Abs:
		return l.abs(t, a[0])
	case scalar.Sqrt:
		return l.mathOp("sqrt", a[0])
	case scalar.Floor, scalar.Ceil, scalar.Trunc, scalar.RoundEven:
		return l.mathOp(c.Op.String(), a[0])
	case scalar.EQ, scalar.NE, scalar.LT, scalar.LE, scalar.GT, scalar.GE:
		return l.compare(c.Op, l.prog.TypeOf(c.Args[0]), a[0], a[1])
	case scalar.Select:
		return b.NewSelect(a[0], a[1], a[2])
	case scalar.And:
		return b.NewAnd(a[0], a[1])
	case scalar.Or:
		return b.NewOr(a[0], a[1])
	case scalar.Xor:
		return b.NewXor(a[0], a[1])
	case scalar.Not:
		return b.NewXor(a[0], l.k(t, ^uint64(0)))
	case scalar.Shl:
		return b.NewShl(a[0], a[1])
	case scalar.Shr:
		if t == dtype.U8 {
			return b.NewLShr(a[0], a[1])
		}
		return b.NewAShr(a[0], a[1])
	case scalar.LShr:
		return b.NewLShr(a[0], a[1])
	case scalar.Bitcast:
		return b.NewBitCast(a[0], l.typ(t))
	case scalar.Convert:
		return l.convert(t, l.prog.TypeOf(c.Args[0]), a[0])
	case scalar.RoundF16, scalar.RoundBF16:
		d := dtype.F16
		if c.Op == scalar.RoundBF16 {
			d = dtype.BF16
		}
		h := l.narrow(d, a[0])
		v := l.widen(d, h)
		l.halfs[v] = h
		return v
	case scalar.Table:
		return l.table(t, int(c.Imm), a[0])
	case scalar.FRem:
		name := "gtc.frem." + suffix(regType(t))
		return l.perLane(regType(t), l.w, func(k int) value.Value {
			return l.helper(name, regType(t), l.lane(a[0], l.w, k), l.lane(a[1], l.w, k))
		})
	case scalar.Gcd:
		return l.perLane(i64, l.w, func(k int) value.Value {
			return l.helper("gtc.gcd", i64, l.lane(a[0], l.w, k), l.lane(a[1], l.w, k))
		})
	case scalar.Fault:
		l.raise(a[0], c.Imm)
		return nil
	}
	panic("BUG: cpu: no translation of " + c.Op.String())
}

func (l *lanes) abs(t dtype.DType, x value.Value) value.Value {
	switch {
	case t.IsFloat():
		return l.mathOp("fabs", x)
	case t == dtype.U8:
		return x
	}
	zero := l.k(t, 0)
	return l.b.NewSelect(l.b.NewICmp(enum.IPredSLT, x, zero), l.b.NewSub(zero, x), x)
}

var floatPreds = map[scalar.Opcode]enum.FPred{scalar.EQ: enum.FPredOEQ, scalar.NE: enum.FPredUNE, scalar.LT: enum.FPredOLT,
	scalar.LE: enum.FPredOLE, scalar.GT: enum.FPredOGT, scalar.GE: enum.FPredOGE}

var signedPreds = map[scalar.Opcode]enum.IPred{scalar.EQ: enum.IPredEQ, scalar.NE: enum.IPredNE, scalar.LT: enum.IPredSLT,
	scalar.LE: enum.IPredSLE, scalar.GT: enum.IPredSGT, scalar.GE: enum.IPredSGE}

var unsignedPreds = map[scalar.Opcode]enum.IPred{scalar.EQ: enum.IPredEQ, scalar.NE: enum.IPredNE, scalar.LT: enum.IPredULT,
	scalar.LE: enum.IPredULE, scalar.GT: enum.IPredUGT, scalar.GE: enum.IPredUGE}

func (l *lanes) compare(op scalar.Opcode, of dtype.DType, x, y value.Value) value.Value {
	switch {
	case of.IsFloat():
		return l.b.NewFCmp(floatPreds[op], x, y)
	case of == dtype.U8 || of == dtype.Bool:
		return l.b.NewICmp(unsignedPreds[op], x, y)
	}
	return l.b.NewICmp(signedPreds[op], x, y)
}

// convert follows the cases listed at scalar.Convert.
func (l *lanes) convert(to, from dtype.DType, x value.Value) value.Value {
	typ := l.typ(to)
	unsigned := from == dtype.Bool || from == dtype.U8
	switch {
	case from.IsFloat() && to.IsFloat():
		if to == dtype.F64 {
			return l.b.NewFPExt(x, typ)
		}
		return l.b.NewFPTrunc(x, typ)
	case from.IsFloat():
		return l.floatToInt(to, from, x)
	case to.IsFloat() && unsigned:
		return l.b.NewUIToFP(x, typ)
	case to.IsFloat():
		return l.b.NewSIToFP(x, typ)
	}
	bits := func(d dtype.DType) int {
		if d == dtype.Bool {
			return 1
		}
		return 8 * d.Size()
	}
	switch {
	case bits(to) < bits(from):
		return l.b.NewTrunc(x, typ)
	case bits(to) == bits(from):
		return x
	case unsigned:
		return l.b.NewZExt(x, typ)
	}
	return l.b.NewSExt(x, typ)
}

// floatToInt gives the minimum for what the integer type cannot hold; fptosi alone would leave that undefined.
func (l *lanes) floatToInt(to, from dtype.DType, x value.Value) value.Value {
	low, pred, high := -0x1p63, enum.FPredOGE, 0x1p63
	if to == dtype.I32 {
		low, high = -0x1p31, 0x1p31
		if from == dtype.F64 {
			low, pred = -0x1p31-1, enum.FPredOGT // fractions between -2^31-1 and -2^31 truncate to the minimum anyway
		}
	}
	fits := l.b.NewAnd(l.b.NewFCmp(pred, x, l.fk(from, low)), l.b.NewFCmp(enum.FPredOLT, x, l.fk(from, high)))
	return l.b.NewSelect(fits, l.b.NewFPToSI(x, l.typ(to)), l.k(to, 1<<(8*to.Size()-1)))
}

// table reads a constant table lane by lane; on the CPUs at hand a gather instruction is not faster.
func (l *lanes) table(t dtype.DType, id int, index value.Value) value.Value {
	elem := regType(t)
	vals := l.prog.Tables[id]
	name := fmt.Sprintf("table%d", id)
	array := types.NewArray(uint64(len(vals)), elem)
	var global *ir.Global
	for _, g := range l.m.Globals {
		if g.Name() == name {
			global = g
		}
	}
	if global == nil {
		parts := make([]string, len(vals))
		for i, v := range vals {
			parts[i] = elem.String() + " " + constBits(elem, v)
		}
		global = l.m.NewGlobalDef(name, &raw{array, "[" + strings.Join(parts, ", ") + "]"})
		global.Linkage, global.Immutable, global.Align = enum.LinkagePrivate, true, 64
	}
	it := index.Type()
	lane := it
	if v, ok := it.(*types.VectorType); ok {
		lane = v.ElemType
	}
	masked := l.b.NewAnd(index, splat(lane, l.w, uint64(len(vals)-1)))
	return l.perLane(elem, l.w, func(k int) value.Value {
		i := l.lane(masked, l.w, k)
		if lane != i64 {
			i = l.b.NewZExt(i, i64)
		}
		return l.b.NewLoad(elem, l.b.NewGetElementPtr(array, global, ci(0), i))
	})
}

// raise records a fault if cond holds in any lane and none was recorded before.
func (l *lanes) raise(cond value.Value, code uint64) {
	if l.w > 1 {
		it := types.NewInt(uint64(l.w))
		cond = l.b.NewICmp(enum.IPredNE, l.b.NewBitCast(cond, it), constant.NewInt(it, 0))
	}
	old := l.fault.get()
	first := l.b.NewICmp(enum.IPredEQ, old, ci(0))
	l.fault.set(l.b.NewSelect(l.b.NewAnd(cond, first), ci(int(code)), old))
}

// fromMem turns an element as it lies in memory into a register value.
func (l *lanes) fromMem(d dtype.DType, v value.Value) value.Value {
	switch {
	case d == dtype.Bool:
		return l.b.NewICmp(enum.IPredNE, v, splat(i8, l.w, 0))
	case d.IsHalf():
		return l.widen(d, v)
	}
	return v
}

// toMem is the inverse of fromMem; halves are rounded.
func (l *lanes) toMem(d dtype.DType, v value.Value) value.Value {
	switch {
	case d == dtype.Bool:
		return l.b.NewZExt(v, wide(i8, l.w))
	case d.IsHalf():
		if h, ok := l.halfs[v]; ok {
			return h
		}
		return l.narrow(d, v)
	}
	return v
}
