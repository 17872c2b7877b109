package ptx

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/codegen/ptx/check"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// An operation that LLVM cannot lower ends the process, so everything is lowered in a process of its own, which says what it is at.

const lowerDir = "GTC_TEST_PTX_DIR"

// reductions are the reductions with the dtypes that they take.
var reductions = map[string]func(d dtype.DType) bool{
	"sum": notBool, "prod": notBool, "amax": notBool, "amin": notBool, "argmax": always, "argmin": always, "any": onlyBool, "all": onlyBool,
}

func always(dtype.DType) bool     { return true }
func notBool(d dtype.DType) bool  { return d != dtype.Bool }
func onlyBool(d dtype.DType) bool { return d == dtype.Bool }

// lowerCase is one module with every kernel of a family; kernels counts them.
type lowerCase struct {
	name string
	fill func(m *module) (kernels int)
}

func identity(d dtype.DType) *scalar.Prog {
	b := scalar.NewBuilder()
	b.Output(b.Input(d))
	return b.Finish()
}

func accesses(n int, a access) []access {
	out := make([]access, n)
	for i := range out {
		out[i] = a
	}
	return out
}

func lowerCases() []lowerCase {
	var cases []lowerCase
	for _, name := range scalar.Names() {
		cases = append(cases, lowerCase{"op_" + name, func(m *module) (kernels int) {
			for _, d := range dtype.All {
				p, err := scalar.Program(name, d)
				if err != nil {
					continue // not defined for this dtype
				}
				m.elementwiseKernel(name+"_"+d.String(), p, accesses(len(p.In), packed), []access{packed}, 0)
				kernels++
			}
			return kernels
		}})
	}
	for _, from := range dtype.All {
		cases = append(cases, lowerCase{"convert_" + from.String(), func(m *module) (kernels int) {
			for _, to := range dtype.All {
				p := scalar.ConvertProgram(from, to)
				m.elementwiseKernel("convert_"+from.String()+"_"+to.String(), p, []access{strided}, []access{packed}, 2)
				kernels++
			}
			return kernels
		}})
	}
	for _, name := range []string{"sum", "prod", "amax", "amin", "argmax", "argmin", "any", "all"} {
		cases = append(cases, lowerCase{"reduce_" + name, func(m *module) (kernels int) {
			for _, d := range dtype.All {
				if !reductions[name](d) {
					continue
				}
				for _, lanes := range []int{1, 16} {
					if lanes > 1 && strings.HasPrefix(name, "arg") {
						continue
					}
					m.reduceKernel(fmt.Sprintf("%s_%s_%d", name, d, lanes), reduceSpec{op: name, lanes: lanes, prog: identity(d), ins: []access{strided}, outer: 2, inner: 1})
					kernels++
				}
			}
			return kernels
		}})
	}
	return append(cases, lowerCase{"matmul", func(m *module) (kernels int) {
		for _, d := range dtype.All {
			if d != dtype.Bool {
				m.matmulKernel(d)
				kernels++
			}
		}
		return kernels
	}})
}

// TestLowerChild is the process that lowers; alone it does nothing.
func TestLowerChild(t *testing.T) {
	dir := os.Getenv(lowerDir)
	if dir == "" {
		t.Skip("only runs as part of TestEveryKernelIsAccepted")
	}
	for _, arch := range []string{"sm_50", "sm_90a"} {
		tgt, err := target(arch)
		require.NoError(t, err)
		for i, c := range lowerCases() {
			if arch != "sm_50" && i%8 != 0 {
				continue // what differs between archs is little; a sample does
			}
			name := c.name + "." + arch
			require.NoError(t, os.WriteFile(filepath.Join(dir, "current"), []byte(name), 0o600))
			m := newModule()
			c.fill(m)
			text, err := assemble(m.text(), tgt)
			require.NoError(t, err, name)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name+".ptx"), []byte(text), 0o600))
		}
	}
}

// madeDir is the folder that lowered made, for removal.
var madeDir string

// lowered is the folder with what the child made, once per test process.
var lowered = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "gtc-ptx"); err != nil {
		return "", err
	}
	madeDir = dir
	child := exec.Command(os.Args[0], "-test.run=^TestLowerChild$")
	child.Env = append(os.Environ(), lowerDir+"="+dir)
	if out, err := child.CombinedOutput(); err != nil {
		current, _ := os.ReadFile(filepath.Join(dir, "current"))
		return dir, fmt.Errorf("while lowering %s: %w\n%s", current, err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if madeDir != "" {
		_ = os.RemoveAll(madeDir)
	}
	os.Exit(code)
}

// loweredText is one module's PTX; "" where the arch is not in the sample.
func loweredText(t *testing.T, name string) string {
	t.Helper()
	needLLVM(t)
	dir, err := lowered()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, name+".ptx"))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	return string(text)
}

// Every op on every dtype, every conversion, reduction and matrix product becomes PTX that the checker accepts.
func TestEveryKernelIsAccepted(t *testing.T) {
	needLLVM(t)
	kernels := 0
	for _, c := range lowerCases() {
		want := c.fill(newModule())
		kernels += want
		for _, arch := range []string{"sm_50", "sm_90a"} {
			name := c.name + "." + arch
			text := loweredText(t, name)
			if text == "" && arch != "sm_50" {
				continue
			}
			m, err := check.Parse(text)
			require.NoError(t, err, name)
			require.NoError(t, m.Verify(), name)
			require.Len(t, m.Entries, want, name)
			require.Equal(t, arch, m.Target)
		}
	}
	t.Logf("%d kernels lowered and accepted", kernels)
}
