package scalar

import (
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
)

type integer interface {
	uint8 | int8 | int16 | int32 | int64
}

type float interface{ float32 | float64 }

type number interface{ integer | float }

// step makes the loop of one instruction. Each loop stores its result to memory after a single operation, so the Go compiler
// cannot fuse a multiplication with an addition.
func (f *Frame) step(c *Instr, self int) func(n int) {
	var a [3]any
	for k, r := range c.Args[:c.Op.Arity()] {
		a[k] = f.regs[r]
	}
	d := f.regs[self]
	var s func(n int)
	switch c.Op {
	case Fault:
		return f.faultStep(a[0].([]bool), FaultCode(c.Imm))
	case Select:
		s = selectStep(d, a)
	case EQ, NE, LT, LE, GT, GE:
		s = compareStep(c.Op, d.([]bool), a)
	case Bitcast:
		s = bitcastStep(d, a[0])
	case Convert:
		s = convertStep(d, a[0])
	case Table:
		s = tableStep(d, a[0], f.prog.Tables[c.Imm])
	default:
		switch d := d.(type) {
		case []bool:
			s = boolStep(c.Op, d, a)
		case []uint8:
			s = intStep(c.Op, d, a)
		case []int8:
			s = intStep(c.Op, d, a)
		case []int16:
			s = intStep(c.Op, d, a)
		case []int32:
			s = int32Step(c.Op, d, a)
		case []int64:
			s = int64Step(c.Op, d, a)
		case []float32:
			s = float32Step(c.Op, d, a)
		case []float64:
			s = floatStep(c.Op, d, a)
		}
	}
	if s == nil {
		panic("BUG: scalar: no loop for " + c.Op.String() + " " + c.Type.String())
	}
	return s
}

func (f *Frame) faultStep(cond []bool, code FaultCode) func(n int) {
	return func(n int) {
		for _, c := range cond[:n] {
			if c && f.fault == NoFault {
				f.fault = code
			}
		}
	}
}

// unary applies op to each lane; op is inlined only for closures known at compile time, so hot instructions have own loops.
func unary[D, T any](d []D, x []T, op func(T) D) func(n int) {
	return func(n int) {
		d, x := d[:n], x[:n]
		for i, v := range x {
			d[i] = op(v)
		}
	}
}

func binary2[D, T any](d []D, x, y []T, op func(x, y T) D) func(n int) {
	return func(n int) {
		d, x, y := d[:n], x[:n], y[:n]
		for i, v := range x {
			d[i] = op(v, y[i])
		}
	}
}

// arithStep has the instructions that all numbers share.
func arithStep[T number](op Opcode, d, x, y []T) func(n int) {
	switch op {
	case Add:
		return func(n int) {
			d, x, y := d[:n], x[:n], y[:n]
			for i := range d {
				d[i] = x[i] + y[i]
			}
		}
	case Sub:
		return func(n int) {
			d, x, y := d[:n], x[:n], y[:n]
			for i := range d {
				d[i] = x[i] - y[i]
			}
		}
	case Mul:
		return func(n int) {
			d, x, y := d[:n], x[:n], y[:n]
			for i := range d {
				d[i] = x[i] * y[i]
			}
		}
	case Div:
		return func(n int) {
			d, x, y := d[:n], x[:n], y[:n]
			for i := range d {
				d[i] = x[i] / y[i]
			}
		}
	}
	return nil
}

func operands[T any](a [3]any) (x, y []T) {
	x, _ = a[0].([]T)
	y, _ = a[1].([]T)
	return x, y
}

func boolStep(op Opcode, d []bool, a [3]any) func(n int) {
	x, y := operands[bool](a)
	switch op {
	case And:
		return binary2(d, x, y, func(x, y bool) bool { return x && y })
	case Or:
		return binary2(d, x, y, func(x, y bool) bool { return x || y })
	case Xor:
		return binary2(d, x, y, func(x, y bool) bool { return x != y })
	case Not:
		return unary(d, x, func(x bool) bool { return !x })
	}
	return nil
}

func intStep[T integer](op Opcode, d []T, a [3]any) func(n int) {
	x, y := operands[T](a)
	switch op {
	case Rem:
		return binary2(d, x, y, func(x, y T) T { return x % y })
	case Neg:
		return unary(d, x, func(x T) T { return -x })
	case Abs:
		return unary(d, x, func(x T) T {
			if x < 0 {
				return -x
			}
			return x
		})
	case And:
		return binary2(d, x, y, func(x, y T) T { return x & y })
	case Or:
		return binary2(d, x, y, func(x, y T) T { return x | y })
	case Xor:
		return binary2(d, x, y, func(x, y T) T { return x ^ y })
	case Not:
		return unary(d, x, func(x T) T { return ^x })
	case Shl:
		return binary2(d, x, y, func(x, y T) T { return x << uint(y) })
	case Shr:
		return binary2(d, x, y, func(x, y T) T { return x >> uint(y) })
	}
	return arithStep(op, d, x, y)
}

func int32Step(op Opcode, d []int32, a [3]any) func(n int) {
	if op == LShr {
		x, y := operands[int32](a)
		return binary2(d, x, y, func(x, y int32) int32 { return int32(uint32(x) >> uint(y)) })
	}
	return intStep(op, d, a)
}

func int64Step(op Opcode, d []int64, a [3]any) func(n int) {
	x, y := operands[int64](a)
	switch op {
	case LShr:
		return binary2(d, x, y, func(x, y int64) int64 { return int64(uint64(x) >> uint(y)) })
	case Gcd:
		return binary2(d, x, y, gcd)
	}
	return intStep(op, d, a)
}

func gcd(x, y int64) int64 {
	a, b := magnitude(x), magnitude(y)
	for b != 0 {
		a, b = b, a%b
	}
	return int64(a)
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

func float32Step(op Opcode, d []float32, a [3]any) func(n int) {
	switch x, _ := operands[float32](a); op {
	case RoundF16:
		return unary(d, x, func(x float32) float32 { return dtype.F16ToF32(dtype.F32ToF16(x)) })
	case RoundBF16:
		return unary(d, x, func(x float32) float32 { return dtype.BF16ToF32(dtype.F32ToBF16(x)) })
	}
	return floatStep(op, d, a)
}

// floatStep computes through float64 where that is exact or, for Sqrt of a float32, correctly rounded all the same.
func floatStep[T float](op Opcode, d []T, a [3]any) func(n int) {
	x, y := operands[T](a)
	switch op {
	case Neg:
		return unary(d, x, func(x T) T { return -x })
	case Abs:
		return unary(d, x, func(x T) T { return T(math.Abs(float64(x))) })
	case Sqrt:
		return unary(d, x, func(x T) T { return T(math.Sqrt(float64(x))) })
	case Floor:
		return unary(d, x, func(x T) T { return T(math.Floor(float64(x))) })
	case Ceil:
		return unary(d, x, func(x T) T { return T(math.Ceil(float64(x))) })
	case Trunc:
		return unary(d, x, func(x T) T { return T(math.Trunc(float64(x))) })
	case RoundEven:
		return unary(d, x, func(x T) T { return T(math.RoundToEven(float64(x))) })
	case FRem:
		return binary2(d, x, y, func(x, y T) T { return T(math.Mod(float64(x), float64(y))) })
	}
	return arithStep(op, d, x, y)
}

func selectStep(d any, a [3]any) func(n int) {
	switch d := d.(type) {
	case []bool:
		return selectLoop(d, a)
	case []uint8:
		return selectLoop(d, a)
	case []int8:
		return selectLoop(d, a)
	case []int16:
		return selectLoop(d, a)
	case []int32:
		return selectLoop(d, a)
	case []int64:
		return selectLoop(d, a)
	case []float32:
		return selectLoop(d, a)
	case []float64:
		return selectLoop(d, a)
	}
	return nil
}

func selectLoop[T any](d []T, a [3]any) func(n int) {
	c, x, y := a[0].([]bool), a[1].([]T), a[2].([]T)
	return func(n int) {
		d, c, x, y := d[:n], c[:n], x[:n], y[:n]
		for i := range d {
			v := y[i]
			if c[i] {
				v = x[i]
			}
			d[i] = v
		}
	}
}

func compareStep(op Opcode, d []bool, a [3]any) func(n int) {
	switch x := a[0].(type) {
	case []bool:
		return equalLoop(op, d, x, a[1].([]bool))
	case []uint8:
		return compareLoop(op, d, x, a[1].([]uint8))
	case []int8:
		return compareLoop(op, d, x, a[1].([]int8))
	case []int16:
		return compareLoop(op, d, x, a[1].([]int16))
	case []int32:
		return compareLoop(op, d, x, a[1].([]int32))
	case []int64:
		return compareLoop(op, d, x, a[1].([]int64))
	case []float32:
		return compareLoop(op, d, x, a[1].([]float32))
	case []float64:
		return compareLoop(op, d, x, a[1].([]float64))
	}
	return nil
}

func equalLoop[T comparable](op Opcode, d []bool, x, y []T) func(n int) {
	want := op == EQ
	return func(n int) {
		d, x, y := d[:n], x[:n], y[:n]
		for i := range d {
			d[i] = (x[i] == y[i]) == want
		}
	}
}

func compareLoop[T number](op Opcode, d []bool, x, y []T) func(n int) {
	switch op {
	case GT:
		return compareLoop(LT, d, y, x)
	case GE:
		return compareLoop(LE, d, y, x)
	case LT:
		return func(n int) {
			d, x, y := d[:n], x[:n], y[:n]
			for i := range d {
				d[i] = x[i] < y[i]
			}
		}
	case LE:
		return func(n int) {
			d, x, y := d[:n], x[:n], y[:n]
			for i := range d {
				d[i] = x[i] <= y[i]
			}
		}
	}
	return equalLoop(op, d, x, y)
}

func bitcastStep(d, a any) func(n int) {
	switch d := d.(type) {
	case []int32:
		return unary(d, a.([]float32), func(x float32) int32 { return int32(math.Float32bits(x)) })
	case []float32:
		return unary(d, a.([]int32), func(x int32) float32 { return math.Float32frombits(uint32(x)) })
	case []int64:
		return unary(d, a.([]float64), func(x float64) int64 { return int64(math.Float64bits(x)) })
	case []float64:
		return unary(d, a.([]int64), func(x int64) float64 { return math.Float64frombits(uint64(x)) })
	}
	return nil
}

func convertStep(d, a any) func(n int) {
	switch x := a.(type) {
	case []bool:
		u := make([]uint8, Lanes)
		to := convertNumber(d, u)
		return func(n int) {
			for i, v := range x[:n] {
				u[i] = b2u(v)
			}
			to(n)
		}
	case []uint8:
		return convertNumber(d, x)
	case []int8:
		return convertNumber(d, x)
	case []int16:
		return convertNumber(d, x)
	case []int32:
		return convertNumber(d, x)
	case []int64:
		return convertNumber(d, x)
	case []float32:
		return convertFloat(d, x)
	case []float64:
		return convertFloat(d, x)
	}
	return nil
}

func convertNumber[T number](d any, x []T) func(n int) {
	switch d := d.(type) {
	case []uint8:
		return unary(d, x, func(x T) uint8 { return uint8(x) })
	case []int8:
		return unary(d, x, func(x T) int8 { return int8(x) })
	case []int16:
		return unary(d, x, func(x T) int16 { return int16(x) })
	case []int32:
		return unary(d, x, func(x T) int32 { return int32(x) })
	case []int64:
		return unary(d, x, func(x T) int64 { return int64(x) })
	case []float32:
		return unary(d, x, func(x T) float32 { return float32(x) })
	case []float64:
		return unary(d, x, func(x T) float64 { return float64(x) })
	}
	return nil
}

// convertFloat keeps Go's platform-dependent conversions of unrepresentable values out.
func convertFloat[T float](d any, x []T) func(n int) {
	switch d := d.(type) {
	case []int32:
		return unary(d, x, func(x T) int32 {
			if v := float64(x); v > math.MinInt32-1 && v < -math.MinInt32 {
				return int32(v)
			}
			return math.MinInt32
		})
	case []int64:
		return unary(d, x, func(x T) int64 {
			if v := float64(x); v >= math.MinInt64 && v < -math.MinInt64 {
				return int64(v)
			}
			return math.MinInt64
		})
	}
	return convertNumber(d, x)
}

func tableStep(d, index any, bits []uint64) func(n int) {
	switch d := d.(type) {
	case []int32:
		return tableLoop(d, index, bits, func(b uint64) int32 { return int32(b) })
	case []int64:
		return tableLoop(d, index, bits, func(b uint64) int64 { return int64(b) })
	case []float32:
		return tableLoop(d, index, bits, func(b uint64) float32 { return math.Float32frombits(uint32(b)) })
	case []float64:
		return tableLoop(d, index, bits, math.Float64frombits)
	}
	return nil
}

func tableLoop[T any](d []T, index any, bits []uint64, from func(uint64) T) func(n int) {
	vals := make([]T, len(bits))
	for i, b := range bits {
		vals[i] = from(b)
	}
	mask := len(vals) - 1
	if i32, ok := index.([]int32); ok {
		return unary(d, i32, func(i int32) T { return vals[int(i)&mask] })
	}
	return unary(d, index.([]int64), func(i int64) T { return vals[int(i)&mask] })
}
