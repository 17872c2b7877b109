package ir

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Array is a strided view of bytes: what a tensor value is at run time. Several arrays may share Data. An array that has
// become an IR value is never written to again; only the op that makes a result writes into it.
type Array struct {
	DType   dtype.DType
	Shape   []int
	Strides []int  // in elements; 0 repeats, negative steps backwards
	Offset  int    // in elements, of the element with all indices zero
	Data    []byte // little endian
	Owner   any    // keeps Data alive where the garbage collector does not own it
}

// MaxElems bounds the number of elements of one array, so that sizes never overflow.
const MaxElems = 1 << 40

// CountElems multiplies sizes; it fails on negative sizes and on more than MaxElems elements.
func CountElems(shape []int) (int, error) {
	n := 1
	for _, s := range shape {
		if s < 0 {
			return 0, fmt.Errorf("negative size %d in shape %v: sizes must be non-negative", s, shape)
		}
	}
	for _, s := range shape {
		if s == 0 {
			return 0, nil
		}
	}
	for _, s := range shape {
		if n > MaxElems/s {
			return 0, fmt.Errorf("shape %v has too many elements", shape)
		}
		n *= s
	}
	return n, nil
}

// MaxBytes bounds one allocation of NewArray.
const MaxBytes = 1 << 36

// NewArray makes a zeroed contiguous array; sizes must have been checked (see TryNewArray for those that come from outside).
func NewArray(d dtype.DType, shape ...int) *Array {
	a, err := TryNewArray(d, shape)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return a
}

// TryNewArray makes a zeroed contiguous array, or fails where sizes are negative or too large.
func TryNewArray(d dtype.DType, shape []int) (*Array, error) {
	n, err := CountElems(shape)
	if err != nil {
		return nil, err
	}
	if n > MaxBytes/d.Size() {
		return nil, fmt.Errorf("a %s tensor of shape %v needs %d bytes, more than the limit of %d for one tensor", d, shape, n*d.Size(), MaxBytes)
	}
	return &Array{DType: d, Shape: append([]int{}, shape...), Strides: ContiguousStrides(shape), Data: make([]byte, n*d.Size())}, nil
}

// ContiguousStrides are the element strides of a row-major array.
func ContiguousStrides(shape []int) []int {
	st := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		st[i] = n
		if shape[i] > 1 {
			n *= shape[i]
		}
	}
	return st
}

// Len is the number of elements.
func (a *Array) Len() int {
	n := 1
	for _, s := range a.Shape {
		n *= s
	}
	return n
}

// Type is the static type of the value.
func (a *Array) Type() Type { return TensorOf(a.DType, a.Shape...) }

// IsContiguous reports whether the elements lie one after another in row-major order.
func (a *Array) IsContiguous() bool {
	n := 1
	for i := len(a.Shape) - 1; i >= 0; i-- {
		if a.Shape[i] == 0 {
			return true
		}
		if a.Shape[i] != 1 && a.Strides[i] != n {
			return false
		}
		n *= a.Shape[i]
	}
	return true
}

// Contiguous gives a itself where it is contiguous, and a packed copy otherwise.
func (a *Array) Contiguous() *Array {
	if a.IsContiguous() {
		return a
	}
	return a.Copy()
}

// Bytes is the memory of a contiguous array.
func (a *Array) Bytes() []byte {
	if !a.IsContiguous() {
		panic("BUG: Bytes of a strided array")
	}
	sz := a.DType.Size()
	return a.Data[a.Offset*sz : (a.Offset+a.Len())*sz]
}

// Copy makes a packed copy.
func (a *Array) Copy() *Array {
	out := NewArray(a.DType, a.Shape...)
	if a.IsContiguous() {
		copy(out.Data, a.Bytes())
		return out
	}
	sz := a.DType.Size()
	i := 0
	a.EachRow(func(off, n, stride int) {
		moveRow(sz, out.Data, i, 1, a.Data, off, stride, n)
		i += n
	})
	return out
}

// EachRow calls f for each innermost row in row-major order: offset of its first element, number of elements, stride.
func (a *Array) EachRow(f func(off, n, stride int)) {
	r := len(a.Shape)
	if a.Len() == 0 {
		return
	}
	if r == 0 {
		f(a.Offset, 1, 1)
		return
	}
	idx := make([]int, r-1)
	off := a.Offset
	for {
		f(off, a.Shape[r-1], a.Strides[r-1])
		d := r - 2
		for ; d >= 0; d-- {
			idx[d]++
			off += a.Strides[d]
			if idx[d] < a.Shape[d] {
				break
			}
			off -= idx[d] * a.Strides[d]
			idx[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// View makes another view of the same data.
func (a *Array) View(shape, strides []int, offset int) *Array {
	return &Array{DType: a.DType, Shape: shape, Strides: strides, Offset: offset, Data: a.Data, Owner: a.Owner}
}

// Float reads the element at an element offset as a float64 (integers and bools too).
func (a *Array) Float(off int) float64 {
	switch a.DType {
	case dtype.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(a.Data[off*4:])))
	case dtype.F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(a.Data[off*8:]))
	case dtype.F16:
		return float64(dtype.F16ToF32(binary.LittleEndian.Uint16(a.Data[off*2:])))
	case dtype.BF16:
		return float64(dtype.BF16ToF32(binary.LittleEndian.Uint16(a.Data[off*2:])))
	}
	return float64(a.Int(off))
}

// Int reads the element at an element offset as an int64; floats are truncated.
func (a *Array) Int(off int) int64 {
	switch a.DType {
	case dtype.Bool, dtype.U8:
		return int64(a.Data[off])
	case dtype.I8:
		return int64(int8(a.Data[off]))
	case dtype.I16:
		return int64(int16(binary.LittleEndian.Uint16(a.Data[off*2:])))
	case dtype.I32:
		return int64(int32(binary.LittleEndian.Uint32(a.Data[off*4:])))
	case dtype.I64:
		return int64(binary.LittleEndian.Uint64(a.Data[off*8:]))
	}
	return int64(a.Float(off))
}

// SetFloat writes f, converted to the dtype, at an element offset.
func (a *Array) SetFloat(off int, f float64) {
	switch a.DType {
	case dtype.F32:
		binary.LittleEndian.PutUint32(a.Data[off*4:], math.Float32bits(float32(f)))
	case dtype.F64:
		binary.LittleEndian.PutUint64(a.Data[off*8:], math.Float64bits(f))
	case dtype.F16:
		binary.LittleEndian.PutUint16(a.Data[off*2:], dtype.F32ToF16(float32(f)))
	case dtype.BF16:
		binary.LittleEndian.PutUint16(a.Data[off*2:], dtype.F32ToBF16(float32(f)))
	case dtype.Bool:
		a.SetInt(off, b2i(f != 0))
	default:
		a.SetInt(off, int64(f))
	}
}

// SetInt writes i, converted to the dtype, at an element offset.
func (a *Array) SetInt(off int, i int64) {
	switch a.DType {
	case dtype.Bool:
		a.Data[off] = byte(b2i(i != 0))
	case dtype.U8, dtype.I8:
		a.Data[off] = byte(i)
	case dtype.I16:
		binary.LittleEndian.PutUint16(a.Data[off*2:], uint16(i))
	case dtype.I32:
		binary.LittleEndian.PutUint32(a.Data[off*4:], uint32(i))
	case dtype.I64:
		binary.LittleEndian.PutUint64(a.Data[off*8:], uint64(i))
	default:
		a.SetFloat(off, float64(i))
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Scalar makes a 0-d array from an int64, float64 or bool.
func Scalar(d dtype.DType, v Datum) *Array {
	a := NewArray(d)
	switch v := v.(type) {
	case int64:
		a.SetInt(0, v)
	case float64:
		a.SetFloat(0, v)
	case bool:
		a.SetInt(0, b2i(v))
	default:
		panic(fmt.Sprintf("BUG: Scalar of %T", v))
	}
	return a
}

// FromFloats makes a contiguous array of any dtype from numbers.
func FromFloats(d dtype.DType, shape []int, v []float64) *Array {
	a := NewArray(d, shape...)
	for i, x := range v {
		a.SetFloat(i, x)
	}
	return a
}

// Floats reads all elements in row-major order.
func (a *Array) Floats() []float64 {
	out := make([]float64, 0, a.Len())
	a.EachRow(func(off, n, stride int) {
		for k := 0; k < n; k++ {
			out = append(out, a.Float(off+k*stride))
		}
	})
	return out
}

// Ints reads all elements in row-major order.
func (a *Array) Ints() []int64 {
	out := make([]int64, 0, a.Len())
	a.EachRow(func(off, n, stride int) {
		for k := 0; k < n; k++ {
			out = append(out, a.Int(off+k*stride))
		}
	})
	return out
}

// String is the form of a constant in IR text: f32[2,2]{1,2,3,4}.
func (a *Array) String() string {
	var sb strings.Builder
	dims := make([]string, len(a.Shape))
	for i, s := range a.Shape {
		dims[i] = strconv.Itoa(s)
	}
	fmt.Fprintf(&sb, "%s[%s]{", a.DType, strings.Join(dims, ","))
	first := true
	a.EachRow(func(off, n, stride int) {
		for k := 0; k < n; k++ {
			if !first {
				sb.WriteByte(',')
			}
			first = false
			if a.DType.IsFloat() {
				bits := 64
				if a.DType != dtype.F64 {
					bits = 32
				}
				sb.WriteString(formatFloat(a.Float(off+k*stride), bits))
			} else {
				sb.WriteString(strconv.FormatInt(a.Int(off+k*stride), 10))
			}
		}
	})
	sb.WriteByte('}')
	return sb.String()
}

func formatFloat(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	s := strconv.FormatFloat(f, 'g', -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}
