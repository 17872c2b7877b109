package gotrace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/trace"
)

const source = `package m

import (
	"errors"

	"github.com/gtc-project/gtc/tensor"
)

func Pair(x, y *tensor.Tensor) (*tensor.Tensor, *tensor.Tensor) { return x.Add(y), x.Mul(y) }

func Checked(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Exp(), nil }

func Panics(x *tensor.Tensor) *tensor.Tensor {
	var s []int
	return x.Mul(s[3])
}

type Net struct{}

func (Net) Forward(x *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{x.Relu()} }

func New() (*Net, error)  { return &Net{}, nil }
func Fails() (*Net, error) { return nil, errors.New("no such file: weights.bin") }

func hidden(x *tensor.Tensor) *tensor.Tensor       { return x }
func Count(x *tensor.Tensor, n int) *tensor.Tensor { return x.Mul(n) }
func Several(x ...*tensor.Tensor) *tensor.Tensor   { return x[0] }
func Number(x *tensor.Tensor) int                  { return 1 }
func Nothing(x *tensor.Tensor)                     {}
func Model() int                                   { return hiddenUse }
func Generic[T any](x *tensor.Tensor) *tensor.Tensor { return x }

var hiddenUse = func() int { hidden(nil); return 0 }()
`

// module makes a user's module that replaces gtc by this source tree, and goes into it.
func module(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	text := strings.Replace(string(mod), "module github.com/gtc-project/gtc", "module example.com/user", 1) +
		"\nrequire github.com/gtc-project/gtc v0.0.0\n\nreplace github.com/gtc-project/gtc => " + root + "\n"
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "internal", "m"), 0o777))
	for name, data := range map[string]string{"go.mod": text, "go.sum": string(sum), "internal/m/m.go": source} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666))
	}
	t.Chdir(dir)
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "")
	return dir
}

func TestSignaturesThatCannotBeTracedSayWhatCan(t *testing.T) {
	module(t)
	for name, want := range map[string][]string{
		"hidden":  {"hidden is not exported"},
		"Nopair":  {"has no function Nopair", "Checked, Count"},
		"Count":   {"parameter n is int", "what can be traced is"},
		"Several": {"variadic", "what can be traced is"},
		"Number":  {"result 0 is int", "what can be traced is"},
		"Nothing": {"no result", "what can be traced is"},
		"Model":   {"no method Forward", "what can be traced is"},
		"Generic": {"generic", "what can be traced is"},
	} {
		_, err := Find(context.Background(), "./internal/m."+name)
		require.Error(t, err, name)
		for _, w := range want {
			require.ErrorContains(t, err, w, name)
		}
	}
	_, err := Find(context.Background(), "./internal/m")
	require.ErrorContains(t, err, "expected a package path, a dot and an exported name")
	require.NoError(t, os.WriteFile("internal/m/bad.go", []byte("package m\n\nvar x int = \"text\"\n"), 0o666))
	_, err = Find(context.Background(), "./internal/m.Pair")
	require.ErrorContains(t, err, "bad.go:3:")
}

func TestFunctionsOfOtherModulesAreTraced(t *testing.T) {
	dir := module(t)
	out := t.TempDir()
	x := ir.FromFloats(dtype.F32, []int{2}, []float64{1, -2})
	inputs := filepath.Join(out, "in.npz")
	require.NoError(t, npz.Write(inputs, []npz.Named{{Name: "x", Array: x}, {Name: "y", Array: x}}))
	trace1 := func(name string) (*trace.Program, error) {
		target, err := Find(context.Background(), "./internal/m."+name)
		require.NoError(t, err)
		c := trace.ToolConfig{Source: name, Inputs: inputs, Output: filepath.Join(out, name+".gtc")}
		if err := target.Run(context.Background(), c); err != nil {
			return nil, err
		}
		return trace.Open(c.Output)
	}
	for name, results := range map[string]int{"Pair": 2, "New": 1} {
		p, err := trace1(name)
		require.NoError(t, err, name)
		require.Len(t, p.Func.Returns(), results, name)
	}
	_, err := trace1("Panics")
	require.ErrorContains(t, err, "m.go:15:")
	require.ErrorContains(t, err, "index out of range")
	_, err = trace1("Fails")
	require.ErrorContains(t, err, "no such file: weights.bin")

	var files []string
	require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, d.Name())
		}
		return err
	}))
	require.ElementsMatch(t, []string{"go.mod", "go.sum", "m.go"}, files, "nothing is written into the module")
}
