package pth

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRead: every dtype, views of shared storages, parameters; the state dict lies in a training script's checkpoint.
func TestRead(t *testing.T) {
	f, err := Open("testdata/mixed.pth")
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, []string{"transposed", "part", "f16", "bf16", "f64", "ints", "flag", "parameter", "empty"}, f.Names())
	for name, want := range map[string]string{
		"transposed": "f32[4,3]{0.0,4.0,8.0,1.0,5.0,9.0,2.0,6.0,10.0,3.0,7.0,11.0}",
		"part":       "f32[2,4]{4.0,5.0,6.0,7.0,8.0,9.0,10.0,11.0}",
		"bf16":       "bf16[3,4]{0.0,1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0,10.0,11.0}",
		"ints":       "i64[3]{0,1,2}",
		"flag":       "bool[]{1}",
		"empty":      "f32[0,3]{}",
	} {
		a, err := f.Read(name)
		require.NoError(t, err, name)
		require.Equal(t, want, a.String(), name)
	}
	for _, name := range f.Names() {
		_, err := f.Read(name)
		require.NoError(t, err, name)
	}
	_, err = f.Read("nope")
	require.ErrorContains(t, err, `no entry "nope"`)
}

// write makes an archive with one storage of 8 bytes and the given pickle.
func write(t *testing.T, pickle string) string {
	path := filepath.Join(t.TempDir(), "w.pth")
	out, err := os.Create(path)
	require.NoError(t, err)
	defer out.Close()
	z := zip.NewWriter(out)
	for name, data := range map[string]string{"w/data.pkl": pickle, "w/data/0": "\x00\x00\x80?\x00\x00\x00@"} {
		m, err := z.Create(name)
		require.NoError(t, err)
		_, err = m.Write([]byte(data))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return path
}

// entry is the pickle of {"a": tensor} with the given offset, size and stride of a vector.
func entry(class string, offset, size, stride byte) string {
	return "\x80\x02}X\x01\x00\x00\x00actorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n" + class + "\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ" +
		"K" + string(offset) + "K" + string(size) + "\x85K" + string(stride) + "\x85\x89}tRs."
}

func TestHandMadeArchive(t *testing.T) {
	f, err := Open(write(t, entry("FloatStorage", 0, 2, 1)))
	require.NoError(t, err)
	defer f.Close()
	shape, ok := f.Shape("a")
	require.True(t, ok)
	require.Equal(t, []int{2}, shape)
	_, ok = f.Shape("b")
	require.False(t, ok)
	a, err := f.Read("a")
	require.NoError(t, err)
	require.Equal(t, "f32[2]{1.0,2.0}", a.String())
}

// TestHugeOffset: an offset so large that adding the tensor's reach overflows.
func TestHugeOffset(t *testing.T) {
	small := "K\x00K\x02\x85K\x01\x85"
	huge := "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\x02\x85K\x01\x85"
	f, err := Open(write(t, strings.Replace(entry("FloatStorage", 0, 2, 1), small, huge, 1)))
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Read("a")
	require.ErrorContains(t, err, "reaches beyond its storage")
}

// TestRefused: what is no state dict, and what would run code, is named; tensors stay within their storage.
func TestRefused(t *testing.T) {
	for pickle, want := range map[string]string{
		"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.":                     "it holds an object of posix.system, not a state dict",
		"\x80\x02}X\x01\x00\x00\x00acposix\nsystem\nX\x02\x00\x00\x00ls\x85Rs.": `entry "a": an object of posix.system is no plain tensor`,
		"\x80\x02}X\x01\x00\x00\x00aK\x01s.":                                    `entry "a": 1 is no tensor`,
		"\x80\x02}":                                                             "damaged",
		"\x80\x02R.":                                                            "an operand is missing",
		entry("Frob", 0, 2, 1):                                                  "a storage of type torch.Frob is not supported",
	} {
		_, err := Open(write(t, pickle))
		require.ErrorContains(t, err, want)
	}
	for _, pickle := range []string{entry("FloatStorage", 1, 2, 1), entry("FloatStorage", 0, 2, 2), entry("FloatStorage", 0, 100, 0), entry("DoubleStorage", 0, 2, 1)} {
		f, err := Open(write(t, pickle))
		require.NoError(t, err)
		_, err = f.Read("a")
		require.ErrorContains(t, err, `entry "a": the tensor`)
		require.NoError(t, f.Close())
	}
	old := filepath.Join(t.TempDir(), "old.pth")
	require.NoError(t, os.WriteFile(old, []byte("\x80\x02\x8a\nl\xfc"), 0o600))
	_, err := Open(old)
	require.ErrorContains(t, err, "torch.save before PyTorch 1.6")
}
