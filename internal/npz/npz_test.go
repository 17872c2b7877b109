package npz_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// TestReadsWhatNumPyWrites reads an archive written by NumPy (testdata/make.py): every dtype, both byte orders, Fortran order, 0-d, empty.
func TestReadsWhatNumPyWrites(t *testing.T) {
	f, err := npz.Open("testdata/numpy.npz")
	require.NoError(t, err)
	defer f.Close()
	sixes := map[string]dtype.DType{"u1": dtype.U8, "i1": dtype.I8, "i2": dtype.I16, "i4": dtype.I32, "i8": dtype.I64, "f2": dtype.F16, "f4": dtype.F32, "f8": dtype.F64}
	for code, d := range sixes {
		for _, name := range []string{code, "big_" + code} {
			if !f.Has(name) {
				continue // one byte has no byte order
			}
			a, err := f.Read(name)
			require.NoError(t, err)
			require.Equal(t, d, a.DType, name)
			require.Equal(t, []int{2, 3}, a.Shape, name)
			require.Equal(t, []float64{0, 1, 2, 3, 4, 5}, a.Floats(), name)
		}
	}
	a, err := f.Read("fortran")
	require.NoError(t, err)
	require.Equal(t, []int{2, 3, 4}, a.Shape)
	for i, v := range a.Floats() {
		require.EqualValues(t, i, v)
	}
	a, err = f.Read("scalar")
	require.NoError(t, err)
	require.Empty(t, a.Shape)
	require.Equal(t, []float64{2.5}, a.Floats())
	a, err = f.Read("bool")
	require.NoError(t, err)
	require.Equal(t, dtype.Bool, a.DType)
	require.Equal(t, []byte{1, 0, 1, 0, 1, 0}, a.Data)
	d, shape, err := f.Info("empty")
	require.NoError(t, err)
	require.Equal(t, dtype.F32, d)
	require.Equal(t, []int{0, 3}, shape)
	a, err = f.Read("empty")
	require.NoError(t, err)
	require.Empty(t, a.Data)
}

func floats(shape []int, v ...float64) *ir.Array { return ir.FromFloats(dtype.F32, shape, v) }

func TestWriteReadsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npz")
	in := []npz.Named{
		{Name: "out.0", Array: floats([]int{2, 1}, 1, -2)},
		{Name: "grad.x", Array: floats([]int{}, 3)},
		{Name: "none", Array: floats([]int{0, 7})},
		{Name: "flag", Array: ir.FromFloats(dtype.Bool, []int{2}, []float64{0, 1})},
	}
	require.NoError(t, npz.Write(path, in))
	f, err := npz.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, []string{"out.0", "grad.x", "none", "flag"}, f.Names())
	for _, want := range in {
		got, err := f.Read(want.Name)
		require.NoError(t, err)
		require.Equal(t, want.DType, got.DType)
		require.Equal(t, want.Shape, got.Shape)
		require.Equal(t, want.Floats(), got.Floats())
	}
}

func TestWriteRefuses(t *testing.T) {
	var w bytes.Buffer
	bf := ir.NewArray(dtype.BF16, 1)
	require.ErrorContains(t, npz.Encode(&w, []npz.Named{{Name: "out.0", Array: bf}}), ".float()")
	twice := []npz.Named{{Name: "a", Array: floats([]int{}, 1)}, {Name: "a", Array: floats([]int{}, 1)}}
	require.ErrorContains(t, npz.Encode(&w, twice), "twice")
}

// TestErrorsNameFileMemberReasonAndRemedy shows the messages users meet most.
func TestErrorsNameFileMemberReasonAndRemedy(t *testing.T) {
	for _, c := range []struct {
		header string
		data   int
		want   []string
	}{
		{"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, []string{`in.npz: array "x"`, "pickle", ".astype"}},
		{"{'descr': '<u4', 'fortran_order': False, 'shape': (1,), }", 4, []string{"unsigned", "int64"}},
		{"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8, []string{"complex"}},
		{"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, []string{"structured", "one array per field"}},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, []string{"negative"}},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3), }", 12, []string{"tuple"}},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 8, []string{"takes 12 bytes, but 8 follow"}},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807, 9223372036854775807), }", 4, []string{"takes 0 bytes"}},
		{"{'descr': '<f4', 'fortran_order': False}", 0, []string{"shape", "missing"}},
	} {
		f, err := npz.NewFile(archive(t, npy(c.header, c.data)))
		require.NoError(t, err)
		_, err = f.Read("x")
		for _, w := range c.want {
			require.ErrorContains(t, err, w)
		}
	}
	f, err := npz.NewFile(archive(t, npy("", 0)))
	require.NoError(t, err)
	_, err = f.Read("y")
	require.ErrorContains(t, err, `no array "y"; it holds x`)
}

func npy(header string, data int) []byte {
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return append(append(b, header...), make([]byte, data)...)
}

func archive(t *testing.T, member []byte) (*bytes.Reader, int64, string) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("x.npy")
	require.NoError(t, err)
	_, err = w.Write(member)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return bytes.NewReader(b.Bytes()), int64(b.Len()), "in.npz"
}

// readAll opens an archive and reads every array.
func readAll(path string) error {
	f, err := npz.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, n := range f.Names() {
		if _, err := f.Read(n); err != nil {
			return err
		}
	}
	return nil
}

// TestHostileFiles feeds each hostile file to the reader: every one is an error, shortly worded.
func TestHostileFiles(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/hostile/npz/*.npz")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, p := range paths {
		if filepath.Base(p) == "end_record_only.npz" {
			require.NoError(t, readAll(p)) // a legal archive of no arrays: the caller misses its parameters
			continue
		}
		err := readAll(p)
		require.Error(t, err, p)
		require.Less(t, len(err.Error()), 400+len(p))
		require.Equal(t, 1, strings.Count(err.Error(), filepath.Base(p)), err.Error())
	}
	paths, err = filepath.Glob("../../testdata/hostile/npy/*.npy")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, p := range paths {
		_, err := npz.ReadNpy(p)
		require.Error(t, err, p)
		require.Error(t, readAll(p), p)
	}
	for _, good := range []string{"in.npz", "in_deflated.npz", "good_empty_dim.npz"} {
		require.NoError(t, readAll(filepath.Join("../../testdata/hostile/good", good)))
	}
}

// FuzzOpen checks that no bytes make the reader panic, and that what it accepts is consistent and survives a round trip.
func FuzzOpen(f *testing.F) {
	for _, pattern := range []string{"../../testdata/hostile/npz/*.npz", "../../testdata/hostile/good/*.npz", "testdata/*.npz"} {
		paths, _ := filepath.Glob(pattern)
		for _, p := range paths {
			data, err := os.ReadFile(p)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		z, err := npz.NewFile(bytes.NewReader(data), int64(len(data)), "fuzz")
		if err != nil {
			return
		}
		var all []npz.Named
		for _, n := range z.Names() {
			a, err := z.Read(n)
			if err != nil {
				return
			}
			all = append(all, npz.Named{Name: n, Array: a})
		}
		var w bytes.Buffer
		require.NoError(t, npz.Encode(&w, all))
		back, err := npz.NewFile(bytes.NewReader(w.Bytes()), int64(w.Len()), "back")
		if err != nil {
			return // names that only a lenient zip writer would produce
		}
		for _, a := range all {
			b, err := back.Read(a.Name)
			require.NoError(t, err)
			require.Equal(t, a.Shape, b.Shape)
			require.Equal(t, a.Data, b.Data)
		}
	})
}

// FuzzNpy does the same for a single array, whose header the fuzzer reaches more easily.
func FuzzNpy(f *testing.F) {
	f.Add(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }", 8))
	f.Add(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (), }", 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := npz.DecodeNpy(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		var w bytes.Buffer
		require.NoError(t, npz.EncodeNpy(&w, a))
		b, err := npz.DecodeNpy(&w, int64(w.Len()))
		require.NoError(t, err)
		require.Equal(t, a.Shape, b.Shape)
		require.Equal(t, a.Data, b.Data)
	})
}
