// Package pth reads the state dicts that torch.save writes: a zip archive with a pickle that names tensors, and a member of raw bytes per storage.
// The pickle is read as data only (package pickle): what is no tensor is refused by name, and nothing runs.
package pth

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/internal/pickle"
	"github.com/gtc-project/gtc/internal/raw"
	"github.com/gtc-project/gtc/internal/safezip"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// maxPickle bounds the pickle, which holds names and shapes only.
const maxPickle = 64 << 20

// File is an open file of weights.
type File struct {
	path    string
	file    io.Closer
	zip     *safezip.Archive
	root    string // of the members' names
	names   []string
	tensors map[string]*tensor
}

// ErrNoPickle says that a zip archive is none of torch.save's.
var ErrNoPickle = errors.New("there is no data.pkl in the archive; weights are written by torch.save(model.state_dict(), …)")

// tensor says where an array lies: elements of a storage.
type tensor struct {
	storage        string
	dtype          dtype.DType
	offset         int
	shape, strides []int
}

// Open opens a file and reads the names and shapes of its tensors. Errors name the file and say what in it is not supported.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open weights: %w", err)
	}
	p, err := open(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p.path = path
	return p, nil
}

func open(f *os.File) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var start [2]byte
	if _, err := f.ReadAt(start[:], 0); err != nil {
		return nil, errors.New("the file is no archive of torch.save")
	}
	if string(start[:]) != "PK" {
		return nil, errors.New("the file is no zip archive: torch.save before PyTorch 1.6 wrote another form; load and save it again with a newer one")
	}
	z, err := safezip.Open(f, info.Size())
	if err != nil {
		return nil, err
	}
	p := &File{file: f, zip: z, tensors: map[string]*tensor{}}
	for _, m := range z.Files {
		if path.Base(m.Name) == "data.pkl" && strings.Count(m.Name, "/") <= 1 {
			p.root = strings.TrimSuffix(m.Name, "data.pkl")
			data, err := safezip.ReadAll(m, maxPickle)
			if err != nil {
				return nil, err
			}
			return p, p.index(data)
		}
	}
	return nil, ErrNoPickle
}

// nested are the keys under which training scripts keep a state dict among other things.
var nested = []string{"state_dict", "model_state_dict", "model"}

// index notes the tensors that the pickle names.
func (p *File) index(data []byte) error {
	v, err := pickle.Decode(data)
	if err != nil {
		return err
	}
	d, ok := v.(*pickle.Dict)
	if !ok {
		return fmt.Errorf("it holds %s, not a state dict; save with torch.save(model.state_dict(), …)", describe(v))
	}
	for i, k := range d.Keys {
		if name, ok := k.(string); ok && slices.Contains(nested, name) {
			if inner, ok := d.Values[i].(*pickle.Dict); ok {
				d = inner
				break
			}
		}
	}
	for i, k := range d.Keys {
		name, ok := k.(string)
		if !ok {
			return errors.New("a key of the state dict is no string")
		}
		t, err := tensorOf(d.Values[i])
		if err != nil {
			return fmt.Errorf("entry %q: %w", name, err)
		}
		if p.tensors[name] != nil {
			return fmt.Errorf("entry %q is there twice", name)
		}
		p.names = append(p.names, name)
		p.tensors[name] = t
	}
	return nil
}

// describe names what a pickled value is.
func describe(v any) string {
	switch v := v.(type) {
	case *pickle.Object:
		if g, ok := v.Func.(pickle.Global); ok {
			return "an object of " + g.Module + "." + g.Name
		}
	case pickle.Global:
		return v.Module + "." + v.Name
	case *pickle.Dict:
		return "a dict"
	case *pickle.List, pickle.Tuple:
		return "a list or tuple"
	case string, int64, float64, bool, nil:
		return fmt.Sprintf("%v", v)
	}
	return "something else"
}

// storages are the dtypes of torch's storage classes.
var storages = map[string]dtype.DType{
	"FloatStorage": dtype.F32, "DoubleStorage": dtype.F64, "HalfStorage": dtype.F16, "BFloat16Storage": dtype.BF16,
	"LongStorage": dtype.I64, "IntStorage": dtype.I32, "ShortStorage": dtype.I16, "CharStorage": dtype.I8, "ByteStorage": dtype.U8, "BoolStorage": dtype.Bool,
}

// tensorOf reads torch._utils._rebuild_tensor_v2(storage, offset, size, stride, …), or a parameter of such.
func tensorOf(v any) (*tensor, error) {
	o, ok := v.(*pickle.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no tensor", describe(v))
	}
	switch {
	case o.Func == (pickle.Global{Module: "torch._utils", Name: "_rebuild_parameter"}) && len(o.Args) > 0:
		if inner, ok := o.Args[0].(*pickle.Object); ok && inner.Func != o.Func {
			return tensorOf(inner)
		}
		return nil, errors.New("a parameter holds no tensor")
	case o.Func != (pickle.Global{Module: "torch._utils", Name: "_rebuild_tensor_v2"}) || len(o.Args) < 4:
		return nil, fmt.Errorf("%s is no plain tensor", describe(v))
	}
	t := &tensor{}
	id, _ := o.Args[0].(pickle.Persistent)
	ref, ok := id.ID.(pickle.Tuple)
	if !ok || len(ref) != 5 || ref[0] != any("storage") {
		return nil, errors.New("a tensor has no storage")
	}
	class, _ := ref[1].(pickle.Global)
	if t.dtype, ok = storages[class.Name]; !ok || class.Module != "torch" {
		return nil, fmt.Errorf("a storage of type %s is not supported", describe(ref[1]))
	}
	if t.storage, ok = ref[2].(string); !ok || strings.ContainsAny(t.storage, "/\\") {
		return nil, errors.New("a storage has no name")
	}
	offset, ok := o.Args[1].(int64)
	var ok1, ok2 bool
	t.shape, ok1 = ints(o.Args[2])
	t.strides, ok2 = ints(o.Args[3])
	if !ok || !ok1 || !ok2 || offset < 0 || len(t.shape) != len(t.strides) {
		return nil, errors.New("a tensor's sizes are malformed")
	}
	t.offset = int(offset)
	return t, nil
}

// ints reads a tuple of numbers that are not negative.
func ints(v any) ([]int, bool) {
	tu, ok := v.(pickle.Tuple)
	out := make([]int, len(tu))
	for i, e := range tu {
		n, isInt := e.(int64)
		if !isInt || n < 0 || n > 1<<40 {
			return nil, false
		}
		out[i] = int(n)
	}
	return out, ok
}

// Close releases the file; arrays that were read stay valid.
func (p *File) Close() error { return p.file.Close() }

// Names lists the tensors in file order. The caller must not change it.
func (p *File) Names() []string { return p.names }

// Shape is the shape of a tensor, without reading it; ok is false where there is none of that name.
func (p *File) Shape(name string) (shape []int, ok bool) {
	t := p.tensors[name]
	if t == nil {
		return nil, false
	}
	return t.shape, true
}

// Read reads one tensor.
func (p *File) Read(name string) (*ir.Array, error) {
	t := p.tensors[name]
	if t == nil {
		return nil, fmt.Errorf("%s: there is no entry %q", p.path, name)
	}
	a, err := p.read(t)
	if err != nil {
		return nil, fmt.Errorf("%s: entry %q: %w", p.path, name, err)
	}
	return a, nil
}

func (p *File) read(t *tensor) (*ir.Array, error) {
	n, err := ir.CountElems(t.shape)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return ir.TryNewArray(t.dtype, t.shape)
	}
	m := p.zip.Lookup(p.root + "data/" + t.storage)
	if m == nil {
		return nil, fmt.Errorf("the archive has no storage %s", t.storage)
	}
	size := t.dtype.Size()
	elems := int(m.UncompressedSize64) / size
	if t.offset >= elems {
		return nil, errors.New("the tensor reaches beyond its storage")
	}
	last := t.offset // of the elements that the tensor reaches
	for i, s := range t.shape {
		if t.strides[i] > 0 && s-1 > (elems-1)/t.strides[i] {
			return nil, errors.New("the tensor reaches beyond its storage")
		}
		last += (s - 1) * t.strides[i]
	}
	if last >= elems {
		return nil, errors.New("the tensor reaches beyond its storage")
	}
	if n > elems {
		return nil, errors.New("the tensor is an expanded one, which repeats elements of its storage; save a clone of it")
	}
	span := last + 1 - t.offset // of the storage; other tensors may share the rest
	data, err := safezip.ReadRange(m, int64(t.offset*size), int64(span*size))
	if err != nil {
		return nil, err
	}
	return raw.Array(t.dtype, []int{span}, data).View(t.shape, t.strides, 0).Contiguous(), nil
}
