// Package npz reads and writes NumPy's .npy and .npz files.
//
// Opening an archive reads only its directory; an array's elements are read when it is asked for, after its header was checked against
// the bytes that are really there. So a hostile file costs no more than an honest one of its size. Nothing is ever unpickled.
package npz

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gtc-project/gtc/internal/atomicfile"
	"github.com/gtc-project/gtc/internal/raw"
	"github.com/gtc-project/gtc/internal/safezip"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// File is an open .npz archive.
type File struct {
	path    string
	names   []string
	zip     *safezip.Archive
	closers []io.Closer
}

// Open opens a .npz archive. Errors name the file, the member, the reason and a remedy.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open arrays: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err == nil {
		var z *File
		if z, err = NewFile(f, info.Size(), path); err == nil {
			z.closers = append(z.closers, f)
			return z, nil
		}
		f.Close()
		return nil, err
	}
	f.Close()
	return nil, fmt.Errorf("%s: %w", path, err)
}

// NewFile opens an archive of size bytes; name stands for it in messages.
func NewFile(r io.ReaderAt, size int64, name string) (*File, error) {
	var start [6]byte
	if n, _ := r.ReadAt(start[:], 0); n == 6 && string(start[:]) == magic {
		return nil, fmt.Errorf("%s: this is a single .npy array, but a .npz archive of named arrays is needed; save it with numpy.savez(path, name=array)", name)
	}
	z, err := safezip.Open(r, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := &File{path: name, zip: z}
	for _, m := range z.Files {
		if strings.HasSuffix(m.Name, "/") {
			continue
		}
		array, ok := strings.CutSuffix(m.Name, ".npy")
		if !ok {
			return nil, fmt.Errorf("%s: member %q is no array (its name does not end in .npy); write the file with numpy.savez", name, short(m.Name))
		}
		f.names = append(f.names, array)
	}
	if len(z.Files) == 0 && size > emptyZip {
		return nil, fmt.Errorf("%s: the archive has no members, but %d bytes; it is damaged", name, size)
	}
	return f, nil
}

// emptyZip is the size of a zip archive without members: only its end record.
const emptyZip = 22

// Close releases the file; arrays that were read stay valid.
func (f *File) Close() error {
	var errs []error
	for _, c := range f.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Names lists the arrays in file order. The caller must not change it.
func (f *File) Names() []string { return f.names }

// Has reports whether the archive holds the array.
func (f *File) Has(name string) bool { return f.zip.Lookup(name+".npy") != nil }

// Info gives an array's dtype and shape without reading its elements.
func (f *File) Info(name string) (dtype.DType, []int, error) {
	h, r, err := f.open(name)
	if err != nil {
		return dtype.Invalid, nil, err
	}
	return h.dtype, h.shape, r.Close()
}

// Read reads one array, whatever the order and byte order it is stored in.
func (f *File) Read(name string) (*ir.Array, error) {
	h, r, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	a, err := readElements(r, h)
	if err != nil {
		return nil, f.fail(name, err)
	}
	return a, nil
}

func (f *File) open(name string) (*header, io.ReadCloser, error) {
	m := f.zip.Lookup(name + ".npy")
	if m == nil {
		return nil, nil, fmt.Errorf("%s: no array %q; it holds %s", f.path, short(name), list(f.names))
	}
	r, err := m.Open()
	if err != nil {
		return nil, nil, f.fail(name, err)
	}
	h, err := readHeader(r, int64(m.UncompressedSize64))
	if err != nil {
		r.Close()
		return nil, nil, f.fail(name, err)
	}
	return h, r, nil
}

func (f *File) fail(name string, err error) error {
	return fmt.Errorf("%s: array %q: %w", f.path, short(name), err)
}

// list shows the first few names.
func list(names []string) string {
	const most = 20
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}

// ReadNpy reads a file that holds one array.
func ReadNpy(path string) (*ir.Array, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open an array: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is not a regular file", path)
	}
	a, err := DecodeNpy(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// DecodeNpy reads one array from r, which holds size bytes.
func DecodeNpy(r io.Reader, size int64) (*ir.Array, error) {
	b := bufio.NewReader(r)
	h, err := readHeader(b, size)
	if err != nil {
		return nil, err
	}
	return readElements(b, h)
}

// Named is an array with the name it has in an archive.
type Named struct {
	Name string
	*ir.Array
}

// Write puts the arrays into a .npz file, in order and uncompressed, atomically: a failure leaves the file that was there. The bytes
// depend only on the arrays. bfloat16 and duplicate names are errors.
func Write(path string, arrays []Named) error {
	return atomicfile.Write(path, func(w io.Writer) error { return Encode(w, arrays) })
}

// Encode writes a .npz archive to w.
func Encode(w io.Writer, arrays []Named) error {
	seen := make(map[string]bool, len(arrays))
	z := zip.NewWriter(w)
	for _, a := range arrays {
		if seen[a.Name] {
			return fmt.Errorf("array %q is given twice", a.Name)
		}
		seen[a.Name] = true
		m, err := z.CreateHeader(&zip.FileHeader{Name: a.Name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if err := EncodeNpy(m, a.Array); err != nil {
			return fmt.Errorf("array %q: %w", a.Name, err)
		}
	}
	return z.Close()
}

// EncodeNpy writes one array in .npy format.
func EncodeNpy(w io.Writer, a *ir.Array) error {
	h, err := encodeHeader(a)
	if err != nil {
		return err
	}
	if _, err := w.Write(h); err != nil {
		return err
	}
	_, err = w.Write(raw.Bytes(a))
	return err
}

// WriteNpy puts one array into a .npy file, atomically.
func WriteNpy(path string, a *ir.Array) error {
	return atomicfile.Write(path, func(w io.Writer) error { return EncodeNpy(w, a) })
}
