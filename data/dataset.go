package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/ir"
)

// Field is an array with its name. Its first dimension counts samples.
type Field struct {
	Name string
	*ir.Array
}

// Dataset holds fields with the same number of samples.
type Dataset struct {
	fields []Field
	n      int
}

// Batch holds some samples of every field of a dataset, in the dataset's order of fields; each is a new array of shape [samples, …].
type Batch []Field

// Field gives a field's array by name, or nil.
func (b Batch) Field(name string) *ir.Array {
	for _, f := range b {
		if f.Name == name {
			return f.Array
		}
	}
	return nil
}

// New makes a dataset. It fails where fields have no dimension, different numbers of samples or equal names.
func New(fields ...Field) (*Dataset, error) {
	if len(fields) == 0 {
		return nil, errors.New("data: a dataset needs at least one field")
	}
	d := &Dataset{}
	for i, f := range fields {
		if len(f.Shape) == 0 {
			return nil, fmt.Errorf("data: field %q has no dimension; the first one counts samples", f.Name)
		}
		if i == 0 {
			d.n = f.Shape[0]
		}
		if f.Shape[0] != d.n {
			return nil, fmt.Errorf("data: field %q has %d samples, but field %q has %d", f.Name, f.Shape[0], fields[0].Name, d.n)
		}
		if Batch(d.fields).Field(f.Name) != nil {
			return nil, fmt.Errorf("data: two fields are named %q", f.Name)
		}
		d.fields = append(d.fields, Field{f.Name, f.Contiguous()})
	}
	return d, nil
}

// ReadNpz makes a dataset of arrays of a .npz file: those named, or all.
func ReadNpz(path string, names ...string) (*Dataset, error) {
	f, err := npz.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if len(names) == 0 {
		names = f.Names()
	}
	var fields []Field
	for _, name := range names {
		a, err := f.Read(name)
		if err != nil {
			return nil, err
		}
		fields = append(fields, Field{name, a})
	}
	return New(fields...)
}

// Len is the number of samples.
func (d *Dataset) Len() int { return d.n }

// Fields lists the fields with all samples. The caller must not change them.
func (d *Dataset) Fields() []Field { return d.fields }

// Field gives a field with all samples by name, or nil.
func (d *Dataset) Field(name string) *ir.Array { return Batch(d.fields).Field(name) }

// Load copies the samples with the given numbers, in that order. It has the form that Loader wants.
func (d *Dataset) Load(_ context.Context, index []int) (Batch, error) {
	batch := make(Batch, len(d.fields))
	for i, f := range d.fields {
		a, err := take(f.Array, index)
		if err != nil {
			return nil, fmt.Errorf("data: field %q: %w", f.Name, err)
		}
		batch[i] = Field{f.Name, a}
	}
	return batch, nil
}

// take gathers rows of a contiguous array along dim 0.
func take(a *ir.Array, index []int) (*ir.Array, error) {
	shape := append([]int{len(index)}, a.Shape[1:]...)
	out, err := ir.TryNewArray(a.DType, shape)
	if err != nil {
		return nil, err
	}
	src := a.Bytes()
	row := 0
	if a.Shape[0] > 0 {
		row = len(src) / a.Shape[0]
	}
	for k, i := range index {
		if i < 0 || i >= a.Shape[0] {
			return nil, fmt.Errorf("sample %d is out of range: there are %d", i, a.Shape[0])
		}
		copy(out.Data[k*row:(k+1)*row], src[i*row:(i+1)*row])
	}
	return out, nil
}
