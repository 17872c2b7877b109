// Package dtype names the element types of tensors and states PyTorch's rules for combining them.
package dtype

import (
	"fmt"
	"math"
)

// DType is the element type of a tensor. The zero value, Invalid, stands for "not known yet".
type DType uint8

// The element types, in the order in which promotion prefers them within a category.
const (
	Invalid DType = iota
	Bool
	U8
	I8
	I16
	I32
	I64
	F16
	BF16
	F32
	F64
	numDTypes
)

// All lists every valid dtype.
var All = []DType{Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64}

var infos = [numDTypes]struct {
	name, torch string
	size        int
}{
	Invalid: {"?", "?", 0},
	Bool:    {"bool", "torch.bool", 1},
	U8:      {"u8", "torch.uint8", 1},
	I8:      {"i8", "torch.int8", 1},
	I16:     {"i16", "torch.int16", 2},
	I32:     {"i32", "torch.int32", 4},
	I64:     {"i64", "torch.int64", 8},
	F16:     {"f16", "torch.float16", 2},
	BF16:    {"bf16", "torch.bfloat16", 2},
	F32:     {"f32", "torch.float32", 4},
	F64:     {"f64", "torch.float64", 8},
}

// String gives the name used in IR text: "f32", "i64", ….
func (d DType) String() string {
	if d >= numDTypes {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return infos[d].name
}

// Torch gives PyTorch's name: "torch.float32", ….
func (d DType) Torch() string {
	if d >= numDTypes {
		return d.String()
	}
	return infos[d].torch
}

// Size is the number of bytes of one element.
func (d DType) Size() int { return infos[d].size }

// IsFloat reports whether d is one of f16, bf16, f32, f64.
func (d DType) IsFloat() bool { return d >= F16 && d <= F64 }

// IsHalf reports whether d is f16 or bf16.
func (d DType) IsHalf() bool { return d == F16 || d == BF16 }

// IsInt reports whether d is an integer type; bool is not one.
func (d DType) IsInt() bool { return d >= U8 && d <= I64 }

// Parse finds a dtype by its name in IR text.
func Parse(s string) (DType, bool) {
	for _, d := range All {
		if infos[d].name == s {
			return d, true
		}
	}
	return Invalid, false
}

// ParseTorch finds a dtype by PyTorch's attribute name without the "torch." prefix: "float32", "float", "long", ….
func ParseTorch(s string) (DType, bool) {
	switch s {
	case "float":
		return F32, true
	case "double":
		return F64, true
	case "half":
		return F16, true
	case "int":
		return I32, true
	case "long":
		return I64, true
	case "short":
		return I16, true
	}
	for _, d := range All {
		if infos[d].torch == "torch."+s {
			return d, true
		}
	}
	return Invalid, false
}

// Category orders the kinds of number that promotion distinguishes: bool < integer < float.
type Category uint8

// The categories of PyTorch's promotion rule.
const (
	CatBool Category = iota
	CatInt
	CatFloat
)

// Category says which kind of number d holds.
func (d DType) Category() Category {
	switch {
	case d.IsFloat():
		return CatFloat
	case d.IsInt():
		return CatInt
	}
	return CatBool
}

// Promote is torch.promote_types: the smallest dtype that both convert to.
func Promote(a, b DType) DType {
	if a == b || b == Invalid {
		return a
	}
	if a == Invalid {
		return b
	}
	if a > b {
		a, b = b, a
	}
	switch {
	case a == F16 && b == BF16:
		return F32
	case a == U8 && b == I8:
		return I16
	}
	return b
}

// Operand is what promotion needs to know of one argument.
type Operand struct {
	DType   DType
	ZeroDim bool // a 0-d tensor
	Wrapped bool // a Python number: DType is I64, F64 or Bool
}

// ResultType is torch.result_type: tensors with dimensions decide, then 0-d tensors, then Python numbers; a lower class takes part
// only when its category is higher. Python floats become the default dtype f32.
func ResultType(ops ...Operand) DType {
	var dim, zero, num DType
	for _, o := range ops {
		switch {
		case o.Wrapped:
			d := o.DType
			if d.IsFloat() {
				d = F32
			}
			num = Promote(num, d)
		case o.ZeroDim:
			zero = Promote(zero, o.DType)
		default:
			dim = Promote(dim, o.DType)
		}
	}
	combine := func(hi, lo DType) DType {
		if hi == Invalid {
			return lo
		}
		if lo != Invalid && lo.Category() > hi.Category() {
			return Promote(hi, lo)
		}
		return hi
	}
	return combine(combine(dim, zero), num)
}

// F16ToF32 widens an IEEE binary16 value given by its bits.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 0x1f
	man := uint32(h & 0x3ff)
	switch exp {
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	case 0:
		f := float32(man) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// F32ToF16 rounds to the nearest binary16 value, ties to even; it keeps infinities and quiet NaNs.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	a := b & 0x7fffffff
	switch {
	case a > 0x7f800000:
		return sign | 0x7e00
	case a >= 0x477ff000: // rounds to 2^16 or more
		return sign | 0x7c00
	case a < 0x38800000: // below the smallest normal 2^-14: the unit is 2^-24
		// adding 0.5 places the unit at the last bit of a float32, which then rounds to nearest even
		r := math.Float32bits(math.Float32frombits(a) + 0.5)
		return sign | uint16(r-0x3f000000)
	}
	a += 0xfff + (a>>13)&1
	return sign | uint16((a-0x38000000)>>13)
}

// BF16ToF32 widens a bfloat16 value given by its bits.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to the nearest bfloat16 value, ties to even; NaN stays a quiet NaN.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16)&0x8000 | 0x7fc0
	}
	return uint16((b + 0x7fff + (b>>16)&1) >> 16)
}
