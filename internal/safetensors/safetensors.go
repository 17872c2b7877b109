// Package safetensors reads and writes the .safetensors format: a length, a JSON header, and the tensors' bytes back to back.
//
// The header is checked completely before any tensor is read: every byte of the data must belong to exactly one tensor, whose dtype and
// shape take exactly that many bytes. Tensors are read one by one when asked for.
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/gtc-project/gtc/internal/atomicfile"
	"github.com/gtc-project/gtc/internal/raw"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// maxHeader is the format's own bound on the header's length.
const maxHeader = 100_000_000

// codes maps the format's dtype names to ours. Types that PyTorch 1.13 lacks are absent.
var codes = map[string]dtype.DType{
	"BOOL": dtype.Bool, "U8": dtype.U8, "I8": dtype.I8, "I16": dtype.I16, "I32": dtype.I32, "I64": dtype.I64,
	"F16": dtype.F16, "BF16": dtype.BF16, "F32": dtype.F32, "F64": dtype.F64,
}

// Named is an array with its name.
type Named struct {
	Name string
	*ir.Array
}

// Tensor describes one tensor of a file.
type Tensor struct {
	DType dtype.DType
	Shape []int
	begin int64 // within the data
	bytes int
}

// File is an open file, or a part of one.
type File struct {
	Metadata map[string]string // the header's __metadata__, nil where absent
	path     string
	names    []string
	tensors  map[string]Tensor
	data     io.ReaderAt
	base     int64
	closer   io.Closer
}

// Open opens a file and checks its header. Errors name the file, the tensor and the reason.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open weights: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: it is not a regular file", path)
	}
	var s *File
	if err == nil {
		s, err = NewFile(f, info.Size(), path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s.closer = f
	return s, nil
}

// NewFile reads the header from r, which holds size bytes; name stands for it in messages.
func NewFile(r io.ReaderAt, size int64, name string) (*File, error) {
	f := &File{path: name, data: r, tensors: map[string]Tensor{}}
	header, err := readHeader(r, size)
	if err == nil {
		f.base = 8 + int64(len(header))
		err = f.parse(header)
	}
	if err == nil {
		err = f.checkLayout(size - f.base)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: not a valid safetensors file: %w", name, err)
	}
	return f, nil
}

func readHeader(r io.ReaderAt, size int64) ([]byte, error) {
	if size < 8 {
		return nil, fmt.Errorf("it has %d bytes, fewer than the 8 of the header's length", size)
	}
	var length [8]byte
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n > uint64(size-8):
		return nil, fmt.Errorf("the header's length is %d, but only %d bytes follow; the file may be cut off", n, size-8)
	case n > maxHeader:
		return nil, fmt.Errorf("the header's length is %d, more than the format's limit of %d", n, maxHeader)
	}
	header := make([]byte, n)
	if _, err := r.ReadAt(header, 8); err != nil && !(err == io.EOF && n == 0) {
		return nil, err
	}
	if !utf8.Valid(header) {
		return nil, errors.New("the header is not UTF-8 text")
	}
	return header, nil
}

// parse reads the header object. It goes by tokens, because a decoder into maps would hide duplicate names.
func (f *File) parse(header []byte) error {
	dec := json.NewDecoder(bytes.NewReader(header))
	dec.UseNumber()
	err := object(dec, func(name string) (err error) {
		if name == "__metadata__" {
			if err := dec.Decode(&f.Metadata); err != nil {
				return fmt.Errorf("__metadata__ is no map of strings: %w", err)
			}
			return nil
		}
		f.names = append(f.names, name)
		f.tensors[name], err = parseTensor(dec)
		return err
	})
	if err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("header: something other than spaces follows the object")
	}
	return nil
}

// object reads a JSON object and calls field for each key, which must read the value. A key that appears twice is an error.
func object(dec *json.Decoder, field func(key string) error) error {
	if t, err := dec.Token(); err != nil {
		return fmt.Errorf("no JSON object: %w", eof(err))
	} else if t != json.Delim('{') {
		return fmt.Errorf("no JSON object, but %v", t)
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return eof(err)
		}
		key := t.(string) // the decoder allows nothing else here
		if seen[key] {
			return fmt.Errorf("%s appears twice", quote(key))
		}
		seen[key] = true
		if err := field(key); err != nil {
			return fmt.Errorf("%s: %w", quote(key), eof(err))
		}
	}
	_, err := dec.Token()
	return eof(err)
}

func eof(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func parseTensor(dec *json.Decoder) (Tensor, error) {
	var t Tensor
	var code *string
	var shape, offsets []int64
	err := object(dec, func(key string) (err error) {
		switch key {
		case "dtype":
			err = dec.Decode(&code)
		case "shape":
			shape, err = integers(dec)
		case "data_offsets":
			offsets, err = integers(dec)
		default:
			err = errors.New("the key is not known")
		}
		return err
	})
	switch {
	case err != nil:
		return t, err
	case code == nil:
		return t, errors.New("dtype is missing")
	case shape == nil:
		return t, errors.New("shape is missing")
	case len(offsets) != 2:
		return t, fmt.Errorf("data_offsets has %d numbers, not 2", len(offsets))
	case offsets[0] > offsets[1]:
		return t, fmt.Errorf("data_offsets %v end before they begin", offsets)
	}
	var ok bool
	if t.DType, ok = codes[*code]; !ok {
		return t, fmt.Errorf("dtype %s is not supported; those that are: BF16, BOOL, F16, F32, F64, I16, I32, I64, I8, U8", quote(*code))
	}
	t.Shape = make([]int, len(shape))
	for i, s := range shape {
		t.Shape[i] = int(s)
	}
	if t.bytes, err = raw.NumBytes(t.DType, t.Shape); err != nil {
		return t, err
	}
	t.begin = offsets[0]
	if have := offsets[1] - offsets[0]; have != int64(t.bytes) {
		return t, fmt.Errorf("shape %v of %s takes %d bytes, but data_offsets give %d", t.Shape, *code, t.bytes, have)
	}
	return t, nil
}

// integers reads a flat JSON list of integers that are not negative.
func integers(dec *json.Decoder) ([]int64, error) {
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return nil, cmp.Or(err, errors.New("it is no list of integers"))
	}
	out := []int64{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		num, ok := t.(json.Number)
		if !ok {
			return nil, errors.New("it is no list of integers")
		}
		v, err := strconv.ParseInt(num.String(), 10, 64)
		if err != nil || v < 0 {
			return nil, fmt.Errorf("%s is not an integer from 0 to 2^63-1", quote(num.String()))
		}
		out = append(out, v)
	}
	_, err := dec.Token()
	return out, err
}

// checkLayout demands that the tensors cover the data without holes or overlaps.
func (f *File) checkLayout(size int64) error {
	order := slices.Clone(f.names)
	slices.SortStableFunc(order, func(a, b string) int {
		x, y := f.tensors[a], f.tensors[b]
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.bytes, y.bytes))
	})
	var at int64
	for _, name := range order {
		t := f.tensors[name]
		switch {
		case t.begin > at:
			return fmt.Errorf("tensor %s: %d bytes before it belong to no tensor", quote(name), t.begin-at)
		case t.begin < at:
			return fmt.Errorf("tensor %s: it overlaps the one before it", quote(name))
		case int64(t.bytes) > size-at:
			return fmt.Errorf("tensor %s: it ends behind the end of the file, which may be cut off", quote(name))
		}
		at += int64(t.bytes)
	}
	if at != size {
		return fmt.Errorf("%d bytes follow the last tensor", size-at)
	}
	return nil
}

// Close releases the file; arrays that were read stay valid.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Names lists the tensors in the header's order. The caller must not change it.
func (f *File) Names() []string { return f.names }

// Info describes a tensor without reading it.
func (f *File) Info(name string) (Tensor, bool) {
	t, ok := f.tensors[name]
	return t, ok
}

// Read reads one tensor.
func (f *File) Read(name string) (*ir.Array, error) {
	t, ok := f.tensors[name]
	if !ok {
		return nil, fmt.Errorf("%s: no tensor %s", f.path, quote(name))
	}
	data := make([]byte, t.bytes)
	if len(data) > 0 {
		if _, err := f.data.ReadAt(data, f.base+t.begin); err != nil {
			return nil, fmt.Errorf("%s: tensor %s: %w", f.path, quote(name), err)
		}
	}
	return raw.Array(t.DType, t.Shape, data), nil
}

// Write puts tensors into a file, atomically: a failure leaves the file that was there. metadata may be nil.
func Write(path string, tensors []Named, metadata map[string]string) error {
	return atomicfile.Write(path, func(w io.Writer) error { return Encode(w, tensors, metadata) })
}

// Encode writes the format to w. The tensors' order in the file is that of the argument; names must be distinct.
func Encode(w io.Writer, tensors []Named, metadata map[string]string) error {
	header, err := encodeHeader(tensors, metadata)
	if err != nil {
		return err
	}
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(header)))
	for _, part := range [][]byte{length[:], header} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	for _, t := range tensors {
		if _, err := w.Write(raw.Bytes(t.Array)); err != nil {
			return err
		}
	}
	return nil
}

func encodeHeader(tensors []Named, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	sep := byte('{')
	field := func(key string, value any) error {
		k, err := json.Marshal(key)
		if err != nil {
			return err
		}
		v, err := json.Marshal(value)
		if err != nil {
			return err
		}
		b.WriteByte(sep)
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
		sep = ','
		return nil
	}
	if len(metadata) > 0 {
		if err := field("__metadata__", metadata); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{"__metadata__": true}
	at := 0
	for _, t := range tensors {
		if seen[t.Name] || !utf8.ValidString(t.Name) {
			return nil, fmt.Errorf("tensor name %s is given twice, reserved or not UTF-8", quote(t.Name))
		}
		seen[t.Name] = true
		n, err := raw.NumBytes(t.DType, t.Shape)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quote(t.Name), err)
		}
		code := ""
		for _, c := range slices.Sorted(maps.Keys(codes)) {
			if codes[c] == t.DType {
				code = c
			}
		}
		if err := field(t.Name, struct {
			DType   string `json:"dtype"`
			Shape   []int  `json:"shape"`
			Offsets [2]int `json:"data_offsets"`
		}{code, append([]int{}, t.Shape...), [2]int{at, at + n}}); err != nil {
			return nil, err
		}
		at += n
	}
	if b.Len() == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 { // so that the data is aligned in a mapped file
		b.WriteByte(' ')
	}
	return b.Bytes(), nil
}

// quote shows a name from the file, shortened.
func quote(name string) string {
	if len(name) > 80 {
		name = name[:80] + "…"
	}
	return strconv.Quote(name)
}
