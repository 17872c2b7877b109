package tensor

import (
	"fmt"
	"unsafe"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// DType is the element type of a tensor.
type DType = dtype.DType

// The element types.
const (
	Bool = dtype.Bool
	U8   = dtype.U8
	I8   = dtype.I8
	I16  = dtype.I16
	I32  = dtype.I32
	I64  = dtype.I64
	F16  = dtype.F16
	BF16 = dtype.BF16
	F32  = dtype.F32
	F64  = dtype.F64
)

// Tensor is a handle on a view of a storage. It is not safe to write to a storage while another goroutine uses it; reading is, and so are operations that
// share operands, and Backward of results that share leaves.
type Tensor struct {
	arr      *ir.Array
	store    *storage
	views    *views // nil in handles whose history is fixed
	version  uint64 // of views when hist was current
	scope    *Scope
	hist     *value    // how the value was computed; nil for a constant
	leaf     *leaf     // set on tensors that RequiresGrad was called on
	leafView bool      // a view of such a tensor
	call     *Recorded // while a trace runs somewhere: how the tensor was made outside of it
	err      error
}

func failed(err error) *Tensor { return &Tensor{err: err} }

// Err is the error that the tensor holds instead of a value, or nil.
func (t *Tensor) Err() error { return t.err }

// FromArray makes a tensor of an IR array, sharing its memory.
func FromArray(a *ir.Array) *Tensor {
	t := &Tensor{arr: a}
	t.own()
	return t
}

// Array is the value as an IR array that shares the tensor's memory; it is nil for a tensor that holds an error.
func (t *Tensor) Array() *ir.Array { return t.arr }

// Element is a Go type that a tensor's elements may have. float16 and bfloat16 elements have no Go type: convert them to F32 first.
type Element interface {
	~bool | ~uint8 | ~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64
}

func dtypeOf[T Element]() DType {
	var z T
	switch any(z).(type) {
	case bool:
		return Bool
	case uint8:
		return U8
	case int8:
		return I8
	case int16:
		return I16
	case int32:
		return I32
	case int64:
		return I64
	case float32:
		return F32
	}
	return F64
}

// FromSlice makes a tensor of the given shape over a slice, sharing its memory: no copy, and writes to either are seen by both. Without a shape it has one
// dimension. The slice must have as many elements as the shape.
func FromSlice[T Element](data []T, shape ...int) (*Tensor, error) {
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	n, err := ir.CountElems(shape)
	if err != nil {
		return nil, fmt.Errorf("tensor.FromSlice: %w", err)
	}
	if n != len(data) {
		return nil, fmt.Errorf("tensor.FromSlice: shape %v has %d elements, the slice has %d", shape, n, len(data))
	}
	d := dtypeOf[T]()
	var b []byte
	if n > 0 {
		b = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), n*d.Size())
	}
	return FromArray(&ir.Array{DType: d, Shape: append([]int{}, shape...), Strides: ir.ContiguousStrides(shape), Data: b, Owner: data}), nil
}

// Data is the tensor's memory as a slice, without a copy where the tensor is contiguous, else packed into a new one. T must be the Go type of the dtype.
func Data[T Element](t *Tensor) ([]T, error) {
	if t.err != nil {
		return nil, t.err
	}
	if d := dtypeOf[T](); d != t.arr.DType {
		return nil, fmt.Errorf("tensor.Data: the tensor is %s, not %s: convert it with To first", t.arr.DType, d)
	}
	if tr := t.scope.Tracer(); tr != nil {
		if err := tr.Read(t, "Data", nil); err != nil {
			return nil, err
		}
	}
	a := t.arr.Contiguous()
	if a.Len() == 0 {
		return []T{}, nil
	}
	b := a.Bytes()
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), a.Len()), nil
}

// Floats reads all elements as float64, in row-major order.
func (t *Tensor) Floats() ([]float64, error) {
	if err := t.read("Data", nil); err != nil {
		return nil, err
	}
	return t.arr.Floats(), nil
}

// Ints reads all elements as int64, in row-major order; floats are truncated.
func (t *Tensor) Ints() ([]int64, error) {
	if err := t.read("Data", nil); err != nil {
		return nil, err
	}
	return t.arr.Ints(), nil
}

// read checks that the tensor holds a value and tells the tracer that it is read.
func (t *Tensor) read(what string, v any) error {
	if t.err != nil {
		return t.err
	}
	if tr := t.scope.Tracer(); tr != nil {
		return tr.Read(t, what, v)
	}
	return nil
}

func (t *Tensor) item(what string) (ir.Datum, error) {
	if t.err != nil {
		return nil, t.err
	}
	d, err := ir.Item(t.arr)
	if err != nil {
		return nil, fmt.Errorf("tensor.%s: %w", what, err)
	}
	return d, t.read(what, d)
}

// Item reads the only element as a float64.
func (t *Tensor) Item() (float64, error) {
	d, err := t.item("Float")
	return toFloat(d), err
}

// Int reads the only element as an int64; a float is truncated. In a trace it is a guard.
func (t *Tensor) Int() (int64, error) {
	d, err := t.item("Int")
	switch v := d.(type) {
	case int64:
		return v, err
	case bool:
		if v {
			return 1, err
		}
		return 0, err
	}
	return int64(toFloat(d)), err
}

// Bool reads the only element as a truth value. In a trace it is a guard.
func (t *Tensor) Bool() (bool, error) {
	d, err := t.item("Bool")
	return toFloat(d) != 0, err
}

func toFloat(d ir.Datum) float64 {
	switch v := d.(type) {
	case float64:
		return v
	case int64:
		return float64(v)
	case bool:
		if v {
			return 1
		}
	}
	return 0
}

// DType is the element type; dtype.Invalid for a tensor that holds an error.
func (t *Tensor) DType() DType {
	if t.arr == nil {
		return dtype.Invalid
	}
	return t.arr.DType
}

// sizeRead tells a tracer that Go code reads sizes.
func (t *Tensor) sizeRead() {
	if t.scope != nil && t.scope.tracer != nil {
		t.scope.tracer.ReadSize(t)
	}
}

// Shape is a copy of the sizes; nil for a tensor that holds an error.
func (t *Tensor) Shape() []int {
	if t.arr == nil {
		return nil
	}
	t.sizeRead()
	return append([]int{}, t.arr.Shape...)
}

// Strides is a copy of the strides, in elements.
func (t *Tensor) Strides() []int {
	if t.arr == nil {
		return nil
	}
	return append([]int{}, t.arr.Strides...)
}

// Dim is the number of dimensions.
func (t *Tensor) Dim() int {
	if t.arr == nil {
		return 0
	}
	return len(t.arr.Shape)
}

// Size is the size of one dimension, which may be negative to count from the end; 0 where there is no such dimension.
func (t *Tensor) Size(dim int) int {
	if t.arr == nil {
		return 0
	}
	d, err := ir.WrapDim(dim, len(t.arr.Shape))
	if err != nil || d >= len(t.arr.Shape) {
		return 0
	}
	t.sizeRead()
	return t.arr.Shape[d]
}

// NumElems is the number of elements.
func (t *Tensor) NumElems() int {
	if t.arr == nil {
		return 0
	}
	t.sizeRead()
	return t.arr.Len()
}

// IsContiguous reports whether the elements lie in row-major order without gaps.
func (t *Tensor) IsContiguous() bool { return t.arr != nil && t.arr.IsContiguous() }
