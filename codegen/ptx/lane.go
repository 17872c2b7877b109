package ptx

import (
	"fmt"

	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// lane translates scalar programs for one element, instruction by instruction. LLVM's NVPTX back end makes correctly rounded PTX of all of
// this; what it would turn into inexact or unspecified instructions is written in integers instead (the sign operations on floats, since
// neg and abs of PTX leave the sign of a NaN open).
type lane struct {
	*writer
	m     *module
	fault string // the fault word's address; "" where the program cannot fail
}

// run writes p for the given register values and gives its outputs.
func (l *lane) run(p *scalar.Prog, in []string) []string {
	regs := make([]string, p.NumRegs())
	copy(regs, in)
	for i := range p.Code {
		c := &p.Code[i]
		var a [3]string
		for k, r := range c.Args[:c.Op.Arity()] {
			a[k] = regs[r]
		}
		from := c.Type
		if c.Op.Arity() > 0 {
			from = p.TypeOf(c.Args[0])
		}
		regs[len(p.In)+i] = l.instr(p, c, from, a)
	}
	out := make([]string, len(p.Out))
	for i, o := range p.Out {
		out[i] = regs[o.Reg]
	}
	return out
}

// simple holds the instructions that are one LLVM instruction on operands of the result's type, for floats, signed and unsigned types.
var simple = map[scalar.Opcode][3]string{
	scalar.Add:  {"fadd", "add", "add"},
	scalar.Sub:  {"fsub", "sub", "sub"},
	scalar.Mul:  {"fmul", "mul", "mul"},
	scalar.Div:  {"fdiv", "sdiv", "udiv"},
	scalar.Rem:  {"", "srem", "urem"},
	scalar.And:  {"", "and", "and"},
	scalar.Or:   {"", "or", "or"},
	scalar.Xor:  {"", "xor", "xor"},
	scalar.Shl:  {"", "shl", "shl"},
	scalar.Shr:  {"", "ashr", "lshr"},
	scalar.LShr: {"", "lshr", "lshr"},
}

// predicates are the comparisons of floats, signed and unsigned types.
var predicates = map[scalar.Opcode][3]string{
	scalar.EQ: {"oeq", "eq", "eq"},
	scalar.NE: {"une", "ne", "ne"},
	scalar.LT: {"olt", "slt", "ult"},
	scalar.LE: {"ole", "sle", "ule"},
	scalar.GT: {"ogt", "sgt", "ugt"},
	scalar.GE: {"oge", "sge", "uge"},
}

// kindOf is the column of the tables above for a register type.
func kindOf(d dtype.DType) int {
	switch {
	case d.IsFloat():
		return 0
	case d == dtype.U8 || d == dtype.Bool:
		return 2
	}
	return 1
}

func (l *lane) instr(p *scalar.Prog, c *scalar.Instr, from dtype.DType, a [3]string) string {
	t := regType(c.Type)
	if op, ok := simple[c.Op]; ok {
		return l.val("%s %s %s, %s", op[kindOf(c.Type)], t, a[0], a[1])
	}
	if pred, ok := predicates[c.Op]; ok {
		return l.compare(pred[kindOf(from)], from, a[0], a[1])
	}
	switch c.Op {
	case scalar.Const:
		return constant(t, c.Imm)
	case scalar.Neg:
		return l.neg(c.Type, a[0])
	case scalar.Abs:
		return l.abs(c.Type, a[0])
	case scalar.Sqrt, scalar.Floor, scalar.Ceil, scalar.Trunc, scalar.RoundEven:
		return l.call(l.m, t, fmt.Sprintf("llvm.%s.f%d", c.Op, bitsOf(t)), t+" "+a[0])
	case scalar.Select:
		return l.choose(a[0], t, a[1], a[2])
	case scalar.Not:
		return l.val("xor %s %s, %s", t, a[0], constant(t, ^uint64(0)))
	case scalar.Bitcast:
		return l.val("bitcast %s %s to %s", regType(from), a[0], t)
	case scalar.Convert:
		return l.convert(c.Type, from, a[0])
	case scalar.RoundF16:
		return l.widen(dtype.F16, l.narrow(dtype.F16, a[0]))
	case scalar.RoundBF16:
		return l.widen(dtype.BF16, l.narrow(dtype.BF16, a[0]))
	case scalar.Table:
		return l.table(t, p.Tables[c.Imm], regType(from), a[0])
	case scalar.FRem:
		return l.frem(c.Type, a[0], a[1])
	case scalar.Gcd:
		return l.gcd(a[0], a[1])
	case scalar.Fault:
		l.raise(a[0], c.Imm)
		return ""
	}
	panic("BUG: ptx: no translation of " + c.Op.String())
}

func (l *lane) choose(cond, t, x, y string) string {
	return l.val("select i1 %s, %s %s, %s %s", cond, t, x, t, y)
}

func (l *lane) compare(pred string, of dtype.DType, x, y string) string {
	if of.IsFloat() {
		return l.val("fcmp %s %s %s, %s", pred, regType(of), x, y)
	}
	return l.val("icmp %s %s %s, %s", pred, regType(of), x, y)
}

// intLike is the integer type of a float type's width.
func intLike(t string) string { return fmt.Sprintf("i%d", bitsOf(t)) }

// mask applies an integer operation to the bits of a float. As LLVM knows that this is a sign operation and would make it one again, it
// is written in PTX.
func (l *lane) mask(op, t, x string, bits uint64) string {
	i, class := intLike(t), "r"
	if t == "double" {
		class = "l"
	}
	v := l.val("bitcast %s %s to %s", t, x, i)
	v = l.val(`call %s asm "%s.b%d $0, $1, %s;", "=%s,%s"(%s %s)`, i, op, bitsOf(t), constant(i, bits), class, class, i, v)
	return l.val("bitcast %s %s to %s", i, v, t)
}

func (l *lane) neg(d dtype.DType, x string) string {
	t := regType(d)
	if d.IsFloat() {
		return l.mask("xor", t, x, 1<<(bitsOf(t)-1))
	}
	return l.val("sub %s 0, %s", t, x)
}

func (l *lane) abs(d dtype.DType, x string) string {
	t := regType(d)
	switch {
	case d.IsFloat():
		return l.mask("and", t, x, 1<<(bitsOf(t)-1)-1)
	case d == dtype.U8:
		return x
	}
	return l.choose(l.val("icmp slt %s %s, 0", t, x), t, l.val("sub %s 0, %s", t, x), x)
}

// convert follows the cases listed at scalar.Convert.
func (l *lane) convert(to, from dtype.DType, x string) string {
	t, f := regType(to), regType(from)
	op := ""
	switch {
	case from.IsFloat() && to == dtype.F64:
		op = "fpext"
	case from.IsFloat() && to.IsFloat():
		op = "fptrunc"
	case from.IsFloat():
		return l.floatToInt(to, from, x)
	case to.IsFloat() && kindOf(from) == 2:
		op = "uitofp"
	case to.IsFloat():
		op = "sitofp"
	case t == f:
		return x
	case bitsOf(t) < bitsOf(f):
		op = "trunc"
	case kindOf(from) == 2:
		op = "zext"
	default:
		op = "sext"
	}
	return l.val("%s %s %s to %s", op, f, x, t)
}

// floatToInt gives the minimum for NaN and for what the integer type cannot hold, where PTX would saturate.
func (l *lane) floatToInt(to, from dtype.DType, x string) string {
	t, f := regType(to), regType(from)
	limit := 0x1p63
	if to == dtype.I32 {
		limit = 0x1p31
	}
	// Truncation comes first, so that the bounds are exact for every fraction.
	whole := l.call(l.m, f, fmt.Sprintf("llvm.trunc.f%d", bitsOf(f)), f+" "+x)
	low := l.val("fcmp oge %s %s, %s", f, whole, floatConst(f, -limit))
	high := l.val("fcmp olt %s %s, %s", f, whole, floatConst(f, limit))
	fits := l.val("and i1 %s, %s", low, high)
	return l.choose(fits, t, l.val("fptosi %s %s to %s", f, whole, t), constant(t, 1<<(bitsOf(t)-1)))
}

// table reads a table in constant memory.
func (l *lane) table(t string, vals []uint64, indexType, index string) string {
	ref := l.m.table(t, vals)
	i := l.val("and %s %s, %d", indexType, index, len(vals)-1)
	if indexType != "i64" {
		i = l.val("zext %s %s to i64", indexType, i)
	}
	p := l.val("getelementptr %s, ptr addrspace(%d) @%s, i64 %s", t, ref.space, ref.name, i)
	return l.val("load %s, ptr addrspace(%d) %s", t, ref.space, p)
}

// raise stores the fault code where cond holds; the largest code wins, whatever the order.
func (l *lane) raise(cond string, code uint64) {
	l.when(cond, func() {
		l.val("atomicrmw umax ptr addrspace(1) %s, i32 %d monotonic", l.fault, code)
	})
}

// load reads an element; offset counts elements.
func (l *lane) load(d dtype.DType, base, offset string) string {
	t := memType(d)
	p := l.val("getelementptr %s, ptr addrspace(1) %s, i64 %s", t, base, offset)
	v := l.val("load %s, ptr addrspace(1) %s", t, p)
	switch {
	case d == dtype.Bool:
		return l.val("icmp ne i8 %s, 0", v)
	case d.IsHalf():
		return l.widen(d, v)
	}
	return v
}

// store writes an element; halves are rounded.
func (l *lane) store(d dtype.DType, v, base, offset string) {
	t := memType(d)
	switch {
	case d == dtype.Bool:
		v = l.val("zext i1 %s to i8", v)
	case d.IsHalf():
		v = l.narrow(d, v)
	}
	p := l.val("getelementptr %s, ptr addrspace(1) %s, i64 %s", t, base, offset)
	l.do("store %s %s, ptr addrspace(1) %s", t, v, p)
}
