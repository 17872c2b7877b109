package scalar

import (
	"fmt"
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Value is a value in a program under construction: a register and its logical dtype.
type Value struct {
	reg Reg
	dt  dtype.DType
}

// DType is the logical dtype: a BF16 value lives in an F32 register.
func (v Value) DType() dtype.DType { return v.dt }

// Reg is the register that holds v.
func (v Value) Reg() Reg { return v.reg }

// Builder writes a program. Its methods check types and panic with a "BUG:" message on a mistake, as the forms that call
// them are part of gtc. Equal constants and equal instructions are made only once. Inputs must all come first.
type Builder struct {
	prog *Prog
	seen map[Instr]Reg
}

// NewBuilder starts an empty program.
func NewBuilder() *Builder {
	return &Builder{prog: &Prog{}, seen: make(map[Instr]Reg)}
}

// Input adds an input of dtype d (f16 and bf16 inputs are F32 registers).
func (b *Builder) Input(d dtype.DType) Value {
	if len(b.prog.Code) > 0 {
		panic("BUG: scalar: input after code")
	}
	r := Reg(len(b.prog.In))
	b.prog.In = append(b.prog.In, Port{Reg: r, DType: d})
	return Value{r, d}
}

// Output adds an output.
func (b *Builder) Output(v Value) { b.prog.Out = append(b.prog.Out, Port{Reg: v.reg, DType: v.dt}) }

// Finish drops instructions that no output or Fault needs and returns the program. The builder must not be used again.
func (b *Builder) Finish() *Prog {
	p := b.prog
	b.prog = nil
	removeDead(p)
	return p
}

func removeDead(p *Prog) {
	n := len(p.In)
	live := make([]bool, p.NumRegs())
	for _, o := range p.Out {
		live[o.Reg] = true
	}
	for i := len(p.Code) - 1; i >= 0; i-- {
		c := &p.Code[i]
		if c.Op == Fault {
			live[n+i] = true
		}
		if live[n+i] {
			for _, a := range c.Args[:c.Op.Arity()] {
				live[a] = true
			}
		}
	}
	to := make([]Reg, p.NumRegs())
	for i := range p.In {
		to[i] = Reg(i)
	}
	code := p.Code[:0]
	for i, c := range p.Code {
		if !live[n+i] {
			continue
		}
		for k := range c.Args[:c.Op.Arity()] {
			c.Args[k] = to[c.Args[k]]
		}
		to[n+i] = Reg(n + len(code))
		code = append(code, c)
	}
	p.Code = code
	for i := range p.Out {
		p.Out[i].Reg = to[p.Out[i].Reg]
	}
}

func (b *Builder) emit(op Opcode, t dtype.DType, imm uint64, args ...Value) Value {
	c := Instr{Op: op, Type: t, Args: [3]Reg{NoReg, NoReg, NoReg}, Imm: imm}
	var at [3]dtype.DType
	for i, a := range args {
		c.Args[i] = a.reg
		at[i] = a.dt
	}
	if len(args) != op.Arity() || !wellTyped(op, t, at) {
		panic(fmt.Sprintf("BUG: scalar: %s %s of %v", op, t, at[:len(args)]))
	}
	if r, ok := b.seen[c]; ok {
		return Value{r, t}
	}
	r := Reg(b.prog.NumRegs())
	b.prog.Code = append(b.prog.Code, c)
	b.seen[c] = r
	return Value{r, t}
}

// Bits is the constant of register type t with the given bits.
func (b *Builder) Bits(t dtype.DType, bits uint64) Value {
	if s := t.Size(); s < 8 {
		bits &= 1<<(8*s) - 1
	}
	return b.emit(Const, t, bits)
}

// F is the constant v rounded to F32 or F64; for a half dtype, the F32 value rounded to it.
func (b *Builder) F(t dtype.DType, v float64) Value {
	switch t {
	case dtype.F32:
		return b.Bits(t, uint64(math.Float32bits(float32(v))))
	case dtype.F64:
		return b.Bits(t, math.Float64bits(v))
	case dtype.F16:
		return Value{b.F(dtype.F32, float64(dtype.F16ToF32(dtype.F32ToF16(float32(v))))).reg, t}
	case dtype.BF16:
		return Value{b.F(dtype.F32, float64(dtype.BF16ToF32(dtype.F32ToBF16(float32(v))))).reg, t}
	}
	panic("BUG: scalar: float constant of type " + t.String())
}

// I is the constant v of an integer type (wrapped to it), of Bool (v != 0), or of a float type.
func (b *Builder) I(t dtype.DType, v int64) Value {
	switch {
	case t == dtype.Bool:
		if v != 0 {
			v = 1
		}
	case t.IsFloat():
		return b.F(t, float64(v))
	}
	return b.Bits(t, uint64(v))
}

// Arithmetic on two operands of one type; see the opcodes of the same names.

func (b *Builder) Add(x, y Value) Value  { return b.emit(Add, x.dt, 0, x, y) }
func (b *Builder) Sub(x, y Value) Value  { return b.emit(Sub, x.dt, 0, x, y) }
func (b *Builder) Mul(x, y Value) Value  { return b.emit(Mul, x.dt, 0, x, y) }
func (b *Builder) Div(x, y Value) Value  { return b.emit(Div, x.dt, 0, x, y) }
func (b *Builder) Rem(x, y Value) Value  { return b.emit(Rem, x.dt, 0, x, y) }
func (b *Builder) FRem(x, y Value) Value { return b.emit(FRem, x.dt, 0, x, y) }
func (b *Builder) Gcd(x, y Value) Value  { return b.emit(Gcd, x.dt, 0, x, y) }
func (b *Builder) And(x, y Value) Value  { return b.emit(And, x.dt, 0, x, y) }
func (b *Builder) Or(x, y Value) Value   { return b.emit(Or, x.dt, 0, x, y) }
func (b *Builder) Xor(x, y Value) Value  { return b.emit(Xor, x.dt, 0, x, y) }
func (b *Builder) Shl(x, y Value) Value  { return b.emit(Shl, x.dt, 0, x, y) }
func (b *Builder) Shr(x, y Value) Value  { return b.emit(Shr, x.dt, 0, x, y) }
func (b *Builder) LShr(x, y Value) Value { return b.emit(LShr, x.dt, 0, x, y) }

// Operations on one operand; see the opcodes of the same names.

func (b *Builder) Neg(x Value) Value       { return b.emit(Neg, x.dt, 0, x) }
func (b *Builder) Abs(x Value) Value       { return b.emit(Abs, x.dt, 0, x) }
func (b *Builder) Sqrt(x Value) Value      { return b.emit(Sqrt, x.dt, 0, x) }
func (b *Builder) Floor(x Value) Value     { return b.emit(Floor, x.dt, 0, x) }
func (b *Builder) Ceil(x Value) Value      { return b.emit(Ceil, x.dt, 0, x) }
func (b *Builder) Trunc(x Value) Value     { return b.emit(Trunc, x.dt, 0, x) }
func (b *Builder) RoundEven(x Value) Value { return b.emit(RoundEven, x.dt, 0, x) }
func (b *Builder) Not(x Value) Value       { return b.emit(Not, x.dt, 0, x) }

// Comparisons give Bool; see the opcodes for NaN.

func (b *Builder) EQ(x, y Value) Value { return b.emit(EQ, dtype.Bool, 0, x, y) }
func (b *Builder) NE(x, y Value) Value { return b.emit(NE, dtype.Bool, 0, x, y) }
func (b *Builder) LT(x, y Value) Value { return b.emit(LT, dtype.Bool, 0, x, y) }
func (b *Builder) LE(x, y Value) Value { return b.emit(LE, dtype.Bool, 0, x, y) }
func (b *Builder) GT(x, y Value) Value { return b.emit(GT, dtype.Bool, 0, x, y) }
func (b *Builder) GE(x, y Value) Value { return b.emit(GE, dtype.Bool, 0, x, y) }

// Select is c ? x : y, for x and y of one dtype (half dtypes included).
func (b *Builder) Select(c, x, y Value) Value {
	if x.dt != y.dt {
		panic(fmt.Sprintf("BUG: scalar: select of %s and %s", x.dt, y.dt))
	}
	d, t := x.dt, RegType(x.dt)
	x.dt, y.dt = t, t
	return Value{b.emit(Select, t, 0, c, x, y).reg, d}
}

// Bitcast reinterprets the bits of x as type t of the same size.
func (b *Builder) Bitcast(t dtype.DType, x Value) Value { return b.emit(Bitcast, t, 0, x) }

// Table reads vals[i & (len(vals)-1)], where vals holds bits of type t and its length is a power of two.
func (b *Builder) Table(t dtype.DType, vals []uint64, i Value) Value {
	id := -1
	for k, have := range b.prog.Tables {
		if &have[0] == &vals[0] && len(have) == len(vals) {
			id = k
		}
	}
	if id < 0 {
		id = len(b.prog.Tables)
		b.prog.Tables = append(b.prog.Tables, vals)
	}
	return b.emit(Table, t, uint64(id), i)
}

// Fault makes the execution fail with the given code where cond is true.
func (b *Builder) Fault(cond Value, code FaultCode) { b.emit(Fault, dtype.Bool, uint64(code), cond) }

// Convert gives x as dtype d, any to any, half dtypes included. To Bool: x != 0 (NaN is true). Float to int: towards zero;
// NaN and what I64 or I32 cannot hold give the minimum; smaller ints take the low bits of the conversion to I32. F64 to a
// half rounds to F32 first, as PyTorch does.
func (b *Builder) Convert(d dtype.DType, x Value) Value {
	if x.dt == d {
		return x
	}
	switch {
	case x.dt.IsHalf():
		return b.Convert(d, Value{x.reg, dtype.F32})
	case d.IsHalf():
		return b.roundHalf(d, b.Convert(dtype.F32, x))
	case d == dtype.Bool:
		return b.NE(x, b.I(x.dt, 0))
	case isFloatReg(x.dt) && d.IsInt() && d.Size() < 4:
		x = b.Convert(dtype.I32, x)
	}
	return b.emit(Convert, d, 0, x)
}

func (b *Builder) roundHalf(d dtype.DType, x Value) Value {
	op := RoundF16
	if d == dtype.BF16 {
		op = RoundBF16
	}
	return Value{b.emit(op, dtype.F32, 0, x).reg, d}
}
