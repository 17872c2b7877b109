package pkgfile_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/internal/pkgfile"
	"github.com/gtc-project/gtc/internal/safetensors"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

func TestWriteReadsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gtc")
	w := ir.FromFloats(dtype.F32, []int{2}, []float64{1, 2})
	m := pkgfile.Manifest{Producer: "gtc", Source: "net.py", Entry: "forward"}
	require.NoError(t, pkgfile.Write(path, m, "func forward", []safetensors.Named{{Name: "fc.bias", Array: w}}))
	p, err := pkgfile.Open(path)
	require.NoError(t, err)
	defer p.Close()
	m.Version = pkgfile.Version
	require.Equal(t, m, p.Manifest)
	require.Equal(t, "func forward", p.Module)
	got, err := p.Weights.Read("fc.bias")
	require.NoError(t, err)
	require.Equal(t, w.Floats(), got.Floats())

	require.NoError(t, pkgfile.Write(path, m, "func forward", nil))
	q, err := pkgfile.Open(path)
	require.NoError(t, err)
	defer q.Close()
	require.Nil(t, q.Weights)
}

// deflated makes a package whose members are compressed, as a general zip tool would.
func deflated(t *testing.T, members ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		m, err := z.Create(members[i])
		require.NoError(t, err)
		_, err = m.Write([]byte(members[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}

func open(data []byte) (*pkgfile.Package, error) {
	return pkgfile.New(bytes.NewReader(data), int64(len(data)), "m.gtc")
}

func TestErrors(t *testing.T) {
	_, err := open(deflated(t, "manifest.json", `{"version":1,"entry":"f"}`, "model.gtir", "x"))
	require.NoError(t, err)
	for want, members := range map[string][]string{
		"manifest.json is missing":      {"model.gtir", "x"},
		"model.gtir is missing":         {"manifest.json", `{"version":1}`},
		"version 2 is not supported":    {"manifest.json", `{"version":2}`},
		"invalid character":             {"manifest.json", "{" + "x"},
		"model.gtir is not UTF-8":       {"manifest.json", `{"version":1}`, "model.gtir", "\xff"},
		"not a valid safetensors":       {"manifest.json", `{"version":1}`, "model.gtir", "x", "weights.safetensors", "?"},
		"climbs out":                    {"../manifest.json", ""},
		"more than the 1048576 allowed": {"manifest.json", strings.Repeat(" ", 1<<21)},
	} {
		_, err := open(deflated(t, members...))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "m.gtc")
	}
}

// TestHostileFiles reads hostile packages: a clean error each; the one with hostile IR text is left to the IR's parser.
func TestHostileFiles(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/hostile/gtc/*.gtc")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		p, err := pkgfile.Open(path)
		if filepath.Base(path) == "ir_parens.gtc" && err == nil {
			require.NoError(t, p.Close())
			continue
		}
		require.Error(t, err, path)
		require.Less(t, len(err.Error()), 400, path)
	}
}

// FuzzOpen checks that no bytes make the reader panic.
func FuzzOpen(f *testing.F) {
	paths, _ := filepath.Glob("../../testdata/hostile/gtc/*.gtc")
	for _, p := range paths {
		data, err := os.ReadFile(p)
		require.NoError(f, err)
		f.Add(data)
	}
	var b bytes.Buffer
	require.NoError(f, pkgfile.Encode(&b, pkgfile.Manifest{Entry: "f"}, "text", []safetensors.Named{{Name: "w", Array: ir.NewArray(dtype.F32, 2)}}))
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := open(data)
		if err != nil || p.Weights == nil {
			return
		}
		for _, n := range p.Weights.Names() {
			_, err := p.Weights.Read(n)
			require.NoError(t, err)
		}
	})
}
