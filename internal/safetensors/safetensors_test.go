package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/internal/raw"
	"github.com/gtc-project/gtc/internal/safetensors"
	"github.com/gtc-project/gtc/ir/dtype"
)

func bytesOf(t *testing.T, path string) []byte {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// open reads every tensor of a file given as bytes.
func open(data []byte) ([]safetensors.Named, error) {
	f, err := safetensors.NewFile(bytes.NewReader(data), int64(len(data)), "w.safetensors")
	if err != nil {
		return nil, err
	}
	var all []safetensors.Named
	for _, n := range f.Names() {
		a, err := f.Read(n)
		if err != nil {
			return nil, err
		}
		all = append(all, safetensors.Named{Name: n, Array: a})
	}
	return all, nil
}

func TestReadsTheGoodFile(t *testing.T) {
	f, err := safetensors.Open("../../testdata/hostile/good/good.safetensors")
	require.NoError(t, err)
	defer f.Close()
	require.ElementsMatch(t, []string{"fc.weight", "fc.bias"}, f.Names())
	info, ok := f.Info("fc.weight")
	require.True(t, ok)
	require.Equal(t, dtype.F32, info.DType)
	require.Equal(t, []int{2, 2}, info.Shape)
	a, err := f.Read("fc.bias")
	require.NoError(t, err)
	require.Len(t, a.Data, 8)
	_, err = f.Read("fc.gain")
	require.ErrorContains(t, err, `no tensor "fc.gain"`)
}

func TestWriteReadsBackEveryDType(t *testing.T) {
	var in []safetensors.Named
	for i, d := range dtype.All {
		data := bytes.Repeat([]byte{1}, 6*d.Size())
		in = append(in, safetensors.Named{Name: d.String(), Array: raw.Array(d, []int{2, 3}, data)})
		if i == 3 {
			in = append(in, safetensors.Named{Name: "empty", Array: raw.Array(d, []int{0, 5}, []byte{})})
		}
	}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	require.NoError(t, safetensors.Write(path, in, map[string]string{"format": "pt"}))
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, map[string]string{"format": "pt"}, f.Metadata)
	for i, n := range f.Names() {
		a, err := f.Read(n)
		require.NoError(t, err)
		require.Equal(t, in[i].Name, n)
		require.Equal(t, in[i].Array, a)
	}
	require.NoError(t, safetensors.Write(path, nil, nil))
	all, err := open(bytesOf(t, path))
	require.NoError(t, err)
	require.Empty(t, all)
}

// TestErrors shows the messages for headers written by hand.
func TestErrors(t *testing.T) {
	for header, want := range map[string]string{
		`{"w":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}}`:                      `"w": dtype "F33" is not supported`,
		`{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`:                      "takes 8 bytes, but data_offsets give 4",
		`{"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`:                     `"-1" is not an integer`,
		`{"w":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`:                      "end before they begin",
		`{"w":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}}`:          `"shape" appears twice`,
		`{"w":{"shape":[1],"data_offsets":[0,4]}}`:                                    "dtype is missing",
		`{"w":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}`:                       "belong to no tensor",
		`{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`:                       "2 bytes follow the last tensor",
		`{"w":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}`:                       "behind the end of the file",
		`{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"w":1}`:                 `"w" appears twice`,
		`{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}} x`:                     "follows the object",
		`{"w":{"dtype":"U8","shape":[2147483648,4294967296,4],"data_offsets":[0,0]}}`: "too many elements",
		`[]`: "no JSON object",
		``:   "no JSON object",
	} {
		data := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
		data = append(append(data, header...), 0, 0, 0, 0)
		_, err := open(data)
		require.ErrorContains(t, err, want, header)
		require.ErrorContains(t, err, "w.safetensors")
	}
}

func TestHostileFiles(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/hostile/safetensors/*")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, p := range paths {
		_, err := open(bytesOf(t, p))
		require.Error(t, err, p)
		require.Less(t, len(err.Error()), 300, p)
	}
}

// FuzzOpen checks that no bytes make the reader panic, and that what it accepts survives a round trip.
func FuzzOpen(f *testing.F) {
	for _, pattern := range []string{"../../testdata/hostile/safetensors/*", "../../testdata/hostile/good/*.safetensors"} {
		paths, _ := filepath.Glob(pattern)
		for _, p := range paths {
			data, err := os.ReadFile(p)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := open(data)
		if err != nil {
			return
		}
		for _, a := range all {
			if a.Name == "__metadata__" {
				return
			}
		}
		var w bytes.Buffer
		require.NoError(t, safetensors.Encode(&w, all, nil))
		back, err := open(w.Bytes())
		require.NoError(t, err)
		require.Equal(t, all, back)
	})
}
