package scalar

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Reg numbers a register of a Prog: first the inputs, then one per instruction (a Fault's register is never read).
type Reg int32

// NoReg marks an unused operand.
const NoReg Reg = -1

// Opcode is what an instruction does. T is the instruction's Type, and unless said operands and result are all of type T.
type Opcode uint8

// The instructions. "int" means U8, I8, I16, I32, I64; "float" F32, F64.
const (
	Invalid Opcode = iota

	Const // T any: the value with the bits Imm (low bits; float bits for F32, F64; 0 or 1 for Bool)

	Add // int wraps, float rounds to nearest even
	Sub // int, float
	Mul // int, float
	Div // float IEEE; int truncates. Never has an int divisor 0 or -1: forms replace these by 1 and select another result
	Rem // int remainder with the sign of the dividend; the same promise about the divisor as Div
	Neg // int wraps; float flips the sign bit, NaN included
	Abs // int wraps (U8: the identity); float clears the sign bit

	Sqrt      // float, correctly rounded
	Floor     // float
	Ceil      // float
	Trunc     // float
	RoundEven // float, to the nearest integer, ties to even

	EQ // T is Bool; two operands of one int, float or Bool type. Float: ordered, false if any operand is NaN
	NE // likewise, but true if any operand is NaN
	LT // likewise, ordered; not for Bool operands
	LE
	GT
	GE

	Select // T any: Args[0] (Bool) ? Args[1] : Args[2]; bits are copied, NaN payloads included

	And // int, Bool
	Or
	Xor
	Not // all bits; Bool: the negation

	Shl  // int; Args[1] has type T and is within [0, bits(T))
	Shr  // int; arithmetic for signed T, logical for U8; amount as for Shl
	LShr // I32, I64: logical; amount as for Shl

	Bitcast // T from Args[0] of the same size: I32 <-> F32, I64 <-> F64
	Convert // T from Args[0] of another type, see below

	RoundF16  // F32: to the nearest binary16 value, ties to even, overflow to infinity; subnormal results exact
	RoundBF16 // F32: to the nearest bfloat16 value, ties to even

	Table // T I32, I64, F32, F64: Tables[Imm][Args[0] & (len-1)]; Args[0] is I32 or I64, len a power of two

	FRem // float: C's fmod, exact: x - y*trunc(x/y), sign of x; NaN for y = 0 or x infinite; x for y infinite
	Gcd  // I64: greatest common divisor of the magnitudes; Gcd(x, 0) = |x|, wrapping

	Fault // Args[0] is Bool: where true, execution fails with FaultCode Imm. Defines nothing

	numOpcodes
)

// Convert's cases, by source and destination type:
//
//	Bool, int -> int     zero extension from Bool and U8, sign extension from the others, or truncation
//	Bool, int -> float   rounded to nearest even
//	F32 <-> F64          exact, or rounded to nearest even
//	float -> I32, I64    towards zero; NaN and values outside the destination's range give its minimum, as x86's cvtt
//
// Nothing else occurs: to Bool is NE 0, and float to a smaller int goes through I32 (Builder.Convert does both).

var opcodeNames = [numOpcodes]string{
	"invalid", "const", "add", "sub", "mul", "div", "rem", "neg", "abs", "sqrt", "floor", "ceil", "trunc", "roundeven",
	"eq", "ne", "lt", "le", "gt", "ge", "select", "and", "or", "xor", "not", "shl", "shr", "lshr", "bitcast", "convert",
	"roundf16", "roundbf16", "table", "frem", "gcd", "fault",
}

// String is the opcode's name in printed programs.
func (o Opcode) String() string {
	if o >= numOpcodes {
		return fmt.Sprintf("opcode(%d)", uint8(o))
	}
	return opcodeNames[o]
}

var opcodeArity = [numOpcodes]int{
	Add: 2, Sub: 2, Mul: 2, Div: 2, Rem: 2, Neg: 1, Abs: 1, Sqrt: 1, Floor: 1, Ceil: 1, Trunc: 1, RoundEven: 1,
	EQ: 2, NE: 2, LT: 2, LE: 2, GT: 2, GE: 2, Select: 3, And: 2, Or: 2, Xor: 2, Not: 1, Shl: 2, Shr: 2, LShr: 2,
	Bitcast: 1, Convert: 1, RoundF16: 1, RoundBF16: 1, Table: 1, FRem: 2, Gcd: 2, Fault: 1,
}

// Arity is the number of operands.
func (o Opcode) Arity() int { return opcodeArity[o] }

// FaultCode says why an execution failed.
type FaultCode uint8

// The faults.
const (
	NoFault   FaultCode = iota
	FaultZero           // integer division or remainder by zero
)

// String is the message that users see; it follows PyTorch's wording.
func (f FaultCode) String() string {
	switch f {
	case FaultZero:
		return "ZeroDivisionError: integer division or modulo by zero"
	}
	return "no fault"
}

// Instr is one instruction. Instruction i of a Prog defines register len(In)+i.
type Instr struct {
	Op   Opcode
	Type dtype.DType // of the result; for Fault, Bool
	Args [3]Reg      // the first Op.Arity() count, the others are NoReg
	Imm  uint64      // Const: bits; Table: index into Prog.Tables; Fault: the code
}

// Port is an input or output of a program.
type Port struct {
	Reg Reg
	// DType is the type in memory; the register's type is RegType(DType).
	DType dtype.DType
}

// Prog is a scalar program. It does not change after Builder.Finish and may be shared between goroutines.
type Prog struct {
	In     []Port // registers 0, 1, …
	Code   []Instr
	Out    []Port
	Tables [][]uint64 // element bits, zero-extended

	frames sync.Pool
}

// Key is equal for two programs if and only if they are the same, instruction by instruction.
func (p *Prog) Key() string {
	b := make([]byte, 0, 32+16*len(p.Code))
	ports := func(ps []Port) {
		b = binary.AppendUvarint(b, uint64(len(ps)))
		for _, q := range ps {
			b = append(binary.AppendVarint(b, int64(q.Reg)), byte(q.DType))
		}
	}
	ports(p.In)
	ports(p.Out)
	for i := range p.Code {
		c := &p.Code[i]
		b = append(b, byte(c.Op), byte(c.Type))
		for _, a := range c.Args {
			b = binary.AppendVarint(b, int64(a))
		}
		b = binary.AppendUvarint(b, c.Imm)
	}
	for _, t := range p.Tables {
		b = binary.AppendUvarint(b, uint64(len(t)))
		for _, v := range t {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	return string(b)
}

// RegType is the type of the register that holds a value of dtype d: f16 and bf16 live in F32, the others in their own.
func RegType(d dtype.DType) dtype.DType {
	if d.IsHalf() {
		return dtype.F32
	}
	return d
}

// TypeOf is the type of register r.
func (p *Prog) TypeOf(r Reg) dtype.DType {
	if int(r) < len(p.In) {
		return RegType(p.In[r].DType)
	}
	return p.Code[int(r)-len(p.In)].Type
}

// NumRegs is the number of registers, inputs included.
func (p *Prog) NumRegs() int { return len(p.In) + len(p.Code) }

// MayFault reports whether the program has a Fault instruction.
func (p *Prog) MayFault() bool {
	for i := range p.Code {
		if p.Code[i].Op == Fault {
			return true
		}
	}
	return false
}

// String prints one instruction per line: "%2 = add f32 %0 %1".
func (p *Prog) String() string {
	var s strings.Builder
	for _, in := range p.In {
		fmt.Fprintf(&s, "%%%d = input %s\n", in.Reg, in.DType)
	}
	for i := range p.Code {
		c := &p.Code[i]
		if c.Op == Fault {
			fmt.Fprintf(&s, "fault %%%d %d\n", c.Args[0], c.Imm)
			continue
		}
		fmt.Fprintf(&s, "%%%d = %s %s", len(p.In)+i, c.Op, c.Type)
		if c.Op == Const {
			fmt.Fprintf(&s, " %s", formatBits(c.Type, c.Imm))
		}
		for _, a := range c.Args[:c.Op.Arity()] {
			fmt.Fprintf(&s, " %%%d", a)
		}
		if c.Op == Table {
			fmt.Fprintf(&s, " table%d[%d]", c.Imm, len(p.Tables[c.Imm]))
		}
		s.WriteByte('\n')
	}
	for _, o := range p.Out {
		fmt.Fprintf(&s, "output %s %%%d\n", o.DType, o.Reg)
	}
	return s.String()
}

func formatBits(t dtype.DType, bits uint64) string {
	switch t {
	case dtype.F32:
		return fmt.Sprintf("%g", math.Float32frombits(uint32(bits)))
	case dtype.F64:
		return fmt.Sprintf("%g", math.Float64frombits(bits))
	case dtype.Bool:
		return fmt.Sprint(bits != 0)
	case dtype.U8:
		return fmt.Sprint(uint8(bits))
	case dtype.I8:
		return fmt.Sprint(int8(bits))
	case dtype.I16:
		return fmt.Sprint(int16(bits))
	case dtype.I32:
		return fmt.Sprint(int32(bits))
	}
	return fmt.Sprint(int64(bits))
}

// Verify checks what the documentation of the instructions promises: types, arities, definition before use.
func (p *Prog) Verify() error {
	for i, in := range p.In {
		if in.Reg != Reg(i) || RegType(in.DType).Size() == 0 {
			return fmt.Errorf("scalar: input %d is %%%d of type %s", i, in.Reg, in.DType)
		}
	}
	for i := range p.Code {
		if err := p.verifyInstr(i); err != nil {
			return fmt.Errorf("scalar: instruction %%%d: %w", len(p.In)+i, err)
		}
	}
	for i, o := range p.Out {
		if o.Reg < 0 || int(o.Reg) >= p.NumRegs() || p.TypeOf(o.Reg) != RegType(o.DType) {
			return fmt.Errorf("scalar: output %d is %%%d, not a register of type %s", i, o.Reg, RegType(o.DType))
		}
	}
	return nil
}

func (p *Prog) verifyInstr(i int) error {
	c := &p.Code[i]
	if c.Op == Invalid || c.Op >= numOpcodes {
		return fmt.Errorf("unknown %s", c.Op)
	}
	var at [3]dtype.DType
	for k, a := range c.Args {
		if k >= c.Op.Arity() {
			if a != NoReg {
				return fmt.Errorf("%s has more than %d operands", c.Op, c.Op.Arity())
			}
			continue
		}
		if a < 0 || int(a) >= len(p.In)+i {
			return fmt.Errorf("%s reads %%%d before its definition", c.Op, a)
		}
		if int(a) >= len(p.In) && p.Code[int(a)-len(p.In)].Op == Fault {
			return fmt.Errorf("%s reads a fault", c.Op)
		}
		at[k] = p.TypeOf(a)
	}
	if !wellTyped(c.Op, c.Type, at) {
		return fmt.Errorf("%s %s does not take operands of types %v", c.Op, c.Type, at[:c.Op.Arity()])
	}
	if c.Op == Table {
		if c.Imm >= uint64(len(p.Tables)) || !powerOfTwo(len(p.Tables[c.Imm])) {
			return fmt.Errorf("table %d does not exist or its length is no power of two", c.Imm)
		}
	}
	return nil
}

func powerOfTwo(n int) bool { return n > 0 && n&(n-1) == 0 }

// float: F32, F64 as register types.
func isFloatReg(t dtype.DType) bool { return t == dtype.F32 || t == dtype.F64 }

// wellTyped states the operand and result types of each opcode.
func wellTyped(op Opcode, t dtype.DType, a [3]dtype.DType) bool {
	isInt, isFloat, isBool := t.IsInt(), isFloatReg(t), t == dtype.Bool
	same2 := a[0] == t && a[1] == t
	switch op {
	case Const:
		return isInt || isFloat || isBool
	case Add, Sub, Mul, Div:
		return same2 && (isInt || isFloat)
	case Rem, Shl, Shr:
		return same2 && isInt
	case LShr:
		return same2 && (t == dtype.I32 || t == dtype.I64)
	case Neg, Abs:
		return a[0] == t && (isInt || isFloat)
	case Sqrt, Floor, Ceil, Trunc, RoundEven:
		return a[0] == t && isFloat
	case EQ, NE:
		return isBool && a[0] == a[1] && !a[0].IsHalf()
	case LT, LE, GT, GE:
		return isBool && a[0] == a[1] && (a[0].IsInt() || isFloatReg(a[0]))
	case Select:
		return a[0] == dtype.Bool && a[1] == t && a[2] == t && !t.IsHalf()
	case And, Or, Xor:
		return same2 && (isInt || isBool)
	case Not:
		return a[0] == t && (isInt || isBool)
	case Bitcast:
		return t == dtype.I32 && a[0] == dtype.F32 || t == dtype.F32 && a[0] == dtype.I32 ||
			t == dtype.I64 && a[0] == dtype.F64 || t == dtype.F64 && a[0] == dtype.I64
	case Convert:
		fromInt := a[0].IsInt() || a[0] == dtype.Bool
		switch {
		case a[0] == t:
			return false
		case isInt:
			return fromInt || isFloatReg(a[0]) && (t == dtype.I32 || t == dtype.I64)
		}
		return isFloat && (fromInt || isFloatReg(a[0]))
	case RoundF16, RoundBF16:
		return t == dtype.F32 && a[0] == t
	case Table:
		return (t == dtype.I32 || t == dtype.I64 || isFloat) && (a[0] == dtype.I32 || a[0] == dtype.I64)
	case FRem:
		return same2 && isFloat
	case Gcd:
		return same2 && t == dtype.I64
	case Fault:
		return isBool && a[0] == dtype.Bool
	}
	return false
}
