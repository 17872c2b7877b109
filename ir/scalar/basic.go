package scalar

import (
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
)

// This file holds the operations that are a few instructions each: arithmetic, comparison, logic, bits, integer division.

var _ = register(
	Op{"neg", 1, Numbers, false, unaryForm((*Builder).Neg), "-x; integers wrap."},
	Op{"abs", 1, Numbers, false, unaryForm((*Builder).Abs), "|x|; the minimal integer stays."},
	Op{"sign", 1, Any, false, signForm, "-1, 0 or 1; 0 for NaN; bool stays."},
	Op{"floor", 1, Numbers, false, roundingForm((*Builder).Floor), "The largest integer not above x."},
	Op{"ceil", 1, Numbers, false, roundingForm((*Builder).Ceil), "The smallest integer not below x."},
	Op{"trunc", 1, Numbers, false, roundingForm((*Builder).Trunc), "x rounded towards zero."},
	Op{"round", 1, Numbers, false, roundingForm((*Builder).RoundEven), "The nearest integer, ties to even."},
	Op{"sqrt", 1, Floats, false, unaryForm((*Builder).Sqrt), "The square root; NaN below zero, -0 for -0."},
	Op{"rsqrt", 1, Floats, false, rsqrtForm, "1/sqrt(x); infinite at 0."},
	Op{"reciprocal", 1, Floats, false, reciprocalForm, "1/x."},
	Op{"relu", 1, Numbers, false, reluForm, "x where x > 0, else 0; NaN stays."},
	Op{"isnan", 1, Any, true, isnanForm, "Whether x is NaN."},
	Op{"isinf", 1, Any, true, isinfForm, "Whether x is infinite."},
	Op{"isfinite", 1, Any, true, isfiniteForm, "Whether x is neither NaN nor infinite."},
	Op{"signbit", 1, Any, true, signbitForm, "Whether the sign bit is set: -0 and NaN with a sign included."},
	Op{"logical_not", 1, Any, true, logicalNotForm, "Whether x is zero."},
	Op{"bitwise_not", 1, Bits, false, unaryForm((*Builder).Not), "All bits inverted; for bool the negation."},

	Op{"add", 2, Any, false, addForm, "x + y; integers wrap; for bool or."},
	Op{"sub", 2, Numbers, false, binaryForm((*Builder).Sub), "x - y; integers wrap."},
	Op{"mul", 2, Any, false, mulForm, "x * y; integers wrap; for bool and."},
	Op{"div", 2, Floats, false, binaryForm((*Builder).Div), "x / y by IEEE 754."},
	Op{"floor_div", 2, Numbers, false, floorDivForm, "Python's x // y; an integer y = 0 is a fault."},
	Op{"trunc_div", 2, Numbers, false, truncDivForm, "x / y rounded towards zero; an integer y = 0 is a fault."},
	Op{"remainder", 2, Numbers, false, remainderForm, "Python's x % y, with the sign of y; an integer y = 0 is a fault."},
	Op{"fmod", 2, Numbers, false, fmodForm, "C's remainder, with the sign of x; an integer y = 0 is a fault."},
	Op{"maximum", 2, Any, false, maximumForm, "The larger; NaN if either is NaN."},
	Op{"minimum", 2, Any, false, minimumForm, "The smaller; NaN if either is NaN."},
	Op{"fmax", 2, Any, false, fmaxForm, "The larger; the other one if one is NaN."},
	Op{"fmin", 2, Any, false, fminForm, "The smaller; the other one if one is NaN."},
	Op{"copysign", 2, Floats, false, copysignForm, "|x| with the sign bit of y."},
	Op{"nextafter", 2, Wides, false, nextafterForm, "The next representable value from x towards y."},

	Op{"eq", 2, Any, true, compareForm((*Builder).EQ), "x == y; false for NaN."},
	Op{"ne", 2, Any, true, compareForm((*Builder).NE), "x != y; true for NaN."},
	Op{"lt", 2, Any, true, compareForm((*Builder).LT), "x < y; false for NaN."},
	Op{"le", 2, Any, true, compareForm((*Builder).LE), "x <= y; false for NaN."},
	Op{"gt", 2, Any, true, compareForm((*Builder).GT), "x > y; false for NaN."},
	Op{"ge", 2, Any, true, compareForm((*Builder).GE), "x >= y; false for NaN."},
	Op{"logical_and", 2, Any, true, logicalForm((*Builder).And), "x != 0 and y != 0."},
	Op{"logical_or", 2, Any, true, logicalForm((*Builder).Or), "x != 0 or y != 0."},
	Op{"logical_xor", 2, Any, true, logicalForm((*Builder).Xor), "Whether exactly one is not zero."},
	Op{"bitwise_and", 2, Bits, false, binaryForm((*Builder).And), "The bits set in both."},
	Op{"bitwise_or", 2, Bits, false, binaryForm((*Builder).Or), "The bits set in either."},
	Op{"bitwise_xor", 2, Bits, false, binaryForm((*Builder).Xor), "The bits set in exactly one."},
	Op{"shl", 2, Ints, false, shlForm, "x << y; 0 for y negative or not below the width."},
	Op{"shr", 2, Ints, false, shrForm, "x >> y, arithmetic; every bit the sign for y negative or not below the width."},
	Op{"gcd", 2, Ints, false, gcdForm, "The greatest common divisor of |x| and |y|; gcd(0, 0) = 0."},
	Op{"lcm", 2, Ints, false, lcmForm, "The least common multiple of |x| and |y|; 0 if either is 0; wraps."},

	Op{"where", 3, Any, false, whereForm, "y where the condition x holds, else z."},
	Op{"lerp", 3, Floats, false, lerpForm, "x + z*(y - x), computed from the nearer end."},
)

func unaryForm(op func(b *Builder, x Value) Value) Form {
	return func(b *Builder, _ dtype.DType, a ...Value) Value { return op(b, a[0]) }
}

func binaryForm(op func(b *Builder, x, y Value) Value) Form {
	return func(b *Builder, _ dtype.DType, a ...Value) Value { return op(b, a[0], a[1]) }
}

// roundingForm leaves integers alone.
func roundingForm(op func(b *Builder, x Value) Value) Form {
	return func(b *Builder, dt dtype.DType, a ...Value) Value {
		if dt.IsInt() {
			return a[0]
		}
		return op(b, a[0])
	}
}

func signForm(b *Builder, dt dtype.DType, a ...Value) Value {
	if dt == dtype.Bool {
		return a[0]
	}
	zero, one := b.I(dt, 0), b.I(dt, 1)
	pos := b.Select(b.GT(a[0], zero), one, zero)
	if dt == dtype.U8 {
		return pos
	}
	return b.Select(b.LT(a[0], zero), b.I(dt, -1), pos)
}

func rsqrtForm(b *Builder, dt dtype.DType, a ...Value) Value {
	return b.Div(b.F(dt, 1), b.Sqrt(a[0]))
}

func reciprocalForm(b *Builder, dt dtype.DType, a ...Value) Value {
	return b.Div(b.F(dt, 1), a[0])
}

func reluForm(b *Builder, dt dtype.DType, a ...Value) Value {
	zero := b.I(dt, 0)
	return b.Select(b.LE(a[0], zero), zero, a[0])
}

func isnanForm(b *Builder, dt dtype.DType, a ...Value) Value {
	if !dt.IsFloat() {
		return b.I(dtype.Bool, 0)
	}
	return b.NE(a[0], a[0])
}

func isinfForm(b *Builder, dt dtype.DType, a ...Value) Value {
	if !dt.IsFloat() {
		return b.I(dtype.Bool, 0)
	}
	return b.EQ(b.Abs(a[0]), b.F(dt, math.Inf(1)))
}

func isfiniteForm(b *Builder, dt dtype.DType, a ...Value) Value {
	if !dt.IsFloat() {
		return b.I(dtype.Bool, 1)
	}
	return b.LT(b.Abs(a[0]), b.F(dt, math.Inf(1)))
}

func signbitForm(b *Builder, dt dtype.DType, a ...Value) Value {
	switch {
	case dt == dtype.Bool:
		return b.I(dt, 0)
	case dt.IsInt():
		return b.LT(a[0], b.I(dt, 0))
	}
	return b.signBit(a[0])
}

// bitsType is the integer type as wide as the float type t.
func bitsType(t dtype.DType) dtype.DType {
	if t == dtype.F32 {
		return dtype.I32
	}
	return dtype.I64
}

// signBit is the sign bit of a float as a Bool.
func (b *Builder) signBit(x Value) Value {
	t := bitsType(x.dt)
	return b.LT(b.Bitcast(t, x), b.I(t, 0))
}

func logicalNotForm(b *Builder, dt dtype.DType, a ...Value) Value {
	if dt == dtype.Bool {
		return b.Not(a[0])
	}
	return b.EQ(a[0], b.I(dt, 0))
}

func addForm(b *Builder, dt dtype.DType, a ...Value) Value {
	if dt == dtype.Bool {
		return b.Or(a[0], a[1])
	}
	return b.Add(a[0], a[1])
}

func mulForm(b *Builder, dt dtype.DType, a ...Value) Value {
	if dt == dtype.Bool {
		return b.And(a[0], a[1])
	}
	return b.Mul(a[0], a[1])
}

// intDivisor makes y safe for Div and Rem: zero is a fault, and 0 and -1 become 1. isMinusOne is where y was -1 (never for U8).
func (b *Builder) intDivisor(y Value) (safe, isMinusOne Value) {
	t := y.dt
	one := b.I(t, 1)
	isZero := b.EQ(y, b.I(t, 0))
	b.Fault(isZero, FaultZero)
	if t == dtype.U8 {
		return b.Select(isZero, one, y), b.I(dtype.Bool, 0)
	}
	isMinusOne = b.EQ(y, b.I(t, -1))
	return b.Select(b.Or(isZero, isMinusOne), one, y), isMinusOne
}

func (b *Builder) intTruncDiv(x, y Value) Value {
	safe, minus := b.intDivisor(y)
	return b.Select(minus, b.Neg(x), b.Div(x, safe))
}

// intRem needs no case for -1: x rem 1 = x rem -1 = 0.
func (b *Builder) intRem(x, y Value) Value {
	safe, _ := b.intDivisor(y)
	return b.Rem(x, safe)
}

func floorDivForm(b *Builder, dt dtype.DType, a ...Value) Value {
	x, y := a[0], a[1]
	zero := b.I(dt, 0)
	switch {
	case dt == dtype.U8:
		return b.intTruncDiv(x, y)
	case dt.IsInt():
		inexact := b.NE(b.intRem(x, y), zero)
		down := b.And(inexact, b.NE(b.LT(x, zero), b.LT(y, zero)))
		q := b.intTruncDiv(x, y)
		return b.Select(down, b.Sub(q, b.I(dt, 1)), q)
	}
	// Python's algorithm: the remainder is exact, so q is within an ulp of an integer and is rounded to it.
	mod := b.FRem(x, y)
	q := b.Div(b.Sub(x, mod), y)
	down := b.And(b.NE(mod, zero), b.NE(b.LT(y, zero), b.LT(mod, zero)))
	q = b.Select(down, b.Sub(q, b.F(dt, 1)), q)
	f := b.Floor(q)
	f = b.Select(b.GT(b.Sub(q, f), b.F(dt, 0.5)), b.Add(f, b.F(dt, 1)), f)
	plain := b.Div(x, y)
	f = b.Select(b.NE(q, zero), f, b.copysign(zero, plain))
	return b.Select(b.EQ(y, zero), plain, f)
}

func truncDivForm(b *Builder, dt dtype.DType, a ...Value) Value {
	if dt.IsInt() {
		return b.intTruncDiv(a[0], a[1])
	}
	return b.Trunc(b.Div(a[0], a[1]))
}

func remainderForm(b *Builder, dt dtype.DType, a ...Value) Value {
	x, y := a[0], a[1]
	var mod Value
	if dt.IsInt() {
		mod = b.intRem(x, y)
	} else {
		mod = b.FRem(x, y)
	}
	if dt == dtype.U8 {
		return mod
	}
	zero := b.I(dt, 0)
	other := b.And(b.NE(mod, zero), b.NE(b.LT(mod, zero), b.LT(y, zero)))
	return b.Select(other, b.Add(mod, y), mod)
}

func fmodForm(b *Builder, dt dtype.DType, a ...Value) Value {
	if dt.IsInt() {
		return b.intRem(a[0], a[1])
	}
	return b.FRem(a[0], a[1])
}

func maximumForm(b *Builder, dt dtype.DType, a ...Value) Value {
	switch {
	case dt == dtype.Bool:
		return b.Or(a[0], a[1])
	case dt.IsInt():
		return b.Select(b.GT(a[0], a[1]), a[0], a[1])
	}
	return b.Select(b.NE(a[0], a[0]), a[0], b.Select(b.GT(a[0], a[1]), a[0], a[1]))
}

func minimumForm(b *Builder, dt dtype.DType, a ...Value) Value {
	switch {
	case dt == dtype.Bool:
		return b.And(a[0], a[1])
	case dt.IsInt():
		return b.Select(b.LT(a[0], a[1]), a[0], a[1])
	}
	return b.Select(b.NE(a[0], a[0]), a[0], b.Select(b.LT(a[0], a[1]), a[0], a[1]))
}

func fmaxForm(b *Builder, dt dtype.DType, a ...Value) Value {
	if !dt.IsFloat() {
		return maximumForm(b, dt, a...)
	}
	return b.Select(b.NE(a[1], a[1]), a[0], b.Select(b.GT(a[0], a[1]), a[0], a[1]))
}

func fminForm(b *Builder, dt dtype.DType, a ...Value) Value {
	if !dt.IsFloat() {
		return minimumForm(b, dt, a...)
	}
	return b.Select(b.NE(a[1], a[1]), a[0], b.Select(b.LT(a[0], a[1]), a[0], a[1]))
}

func copysignForm(b *Builder, _ dtype.DType, a ...Value) Value { return b.copysign(a[0], a[1]) }

// copysign is |x| with the sign bit of y.
func (b *Builder) copysign(x, y Value) Value {
	abs := b.Abs(x)
	return b.Select(b.signBit(y), b.Neg(abs), abs)
}

// nextafterForm steps the bits, which order floats of one sign like integers.
func nextafterForm(b *Builder, dt dtype.DType, a ...Value) Value {
	x, y := a[0], a[1]
	t := bitsType(dt)
	zero, one := b.F(dt, 0), b.I(t, 1)
	bits := b.Bitcast(t, x)
	away := b.EQ(b.LT(x, y), b.GT(x, zero))
	next := b.Bitcast(dt, b.Select(away, b.Add(bits, one), b.Sub(bits, one)))
	next = b.Select(b.EQ(x, zero), b.copysign(b.Bitcast(dt, one), y), next)
	next = b.Select(b.EQ(x, y), y, next)
	return b.Select(b.Or(b.NE(x, x), b.NE(y, y)), b.Add(x, y), next)
}

// compareForm orders false before true.
func compareForm(op func(b *Builder, x, y Value) Value) Form {
	return func(b *Builder, dt dtype.DType, a ...Value) Value {
		if dt == dtype.Bool {
			return op(b, b.Convert(dtype.U8, a[0]), b.Convert(dtype.U8, a[1]))
		}
		return op(b, a[0], a[1])
	}
}

func logicalForm(op func(b *Builder, x, y Value) Value) Form {
	return func(b *Builder, _ dtype.DType, a ...Value) Value {
		return op(b, b.Convert(dtype.Bool, a[0]), b.Convert(dtype.Bool, a[1]))
	}
}

// shiftAmount gives y where it lies within [0, bits) and 0 elsewhere, and whether it does.
func (b *Builder) shiftAmount(y Value) (amount, ok Value) {
	t := y.dt
	zero := b.I(t, 0)
	ok = b.LT(y, b.I(t, int64(8*t.Size())))
	if t != dtype.U8 {
		ok = b.And(ok, b.GE(y, zero))
	}
	return b.Select(ok, y, zero), ok
}

func shlForm(b *Builder, dt dtype.DType, a ...Value) Value {
	amount, ok := b.shiftAmount(a[1])
	return b.Select(ok, b.Shl(a[0], amount), b.I(dt, 0))
}

func shrForm(b *Builder, dt dtype.DType, a ...Value) Value {
	amount, ok := b.shiftAmount(a[1])
	fill := b.I(dt, 0)
	if dt != dtype.U8 {
		fill = b.Shr(a[0], b.I(dt, int64(8*dt.Size()-1)))
	}
	return b.Select(ok, b.Shr(a[0], amount), fill)
}

func gcdForm(b *Builder, dt dtype.DType, a ...Value) Value {
	return b.Convert(dt, b.Gcd(b.Convert(dtype.I64, a[0]), b.Convert(dtype.I64, a[1])))
}

func lcmForm(b *Builder, dt dtype.DType, a ...Value) Value {
	g := gcdForm(b, dt, a...)
	isZero := b.EQ(g, b.I(dt, 0))
	safe := b.Select(isZero, b.I(dt, 1), g)
	if dt != dtype.U8 { // gcd(MIN, MIN) = MIN wraps; -1 cannot occur, but Div's promise must be visible
		safe = b.Select(b.EQ(safe, b.I(dt, -1)), b.I(dt, 1), safe)
	}
	return b.Abs(b.Mul(b.Div(a[0], safe), a[1]))
}

func whereForm(b *Builder, _ dtype.DType, a ...Value) Value { return b.Select(a[0], a[1], a[2]) }

func lerpForm(b *Builder, dt dtype.DType, a ...Value) Value {
	x, y, w := a[0], a[1], a[2]
	diff := b.Sub(y, x)
	low := b.Add(x, b.Mul(w, diff))
	high := b.Sub(y, b.Mul(diff, b.Sub(b.F(dt, 1), w)))
	return b.Select(b.LT(b.Abs(w), b.F(dt, 0.5)), low, high)
}
