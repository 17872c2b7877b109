package driver

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/codegen/ptx/check"
	"github.com/gtc-project/gtc/runtime/llvm"
)

const ptxScript = `import torch
import torch.nn.functional as F
from torch import Tensor

def forward(x: Tensor, w: Tensor) -> Tensor:
    return torch.softmax(F.gelu(x @ w), 1)

def sorted(x: Tensor) -> Tensor:
    y, i = torch.sort(x, 1)
    return torch.cumsum(y, 0)
`

// emitPTX compiles an entry of ptxScript.
func emitPTX(t *testing.T, o Options) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "net.py")
	require.NoError(t, os.WriteFile(file, []byte(ptxScript), 0o600))
	var out bytes.Buffer
	e := &Emit{Form: "ptx", Stdout: &out}
	if err := e.Check(&o); err != nil {
		return "", err
	}
	err := Compile(t.Context(), file, &o, e)
	return out.String(), err
}

// A script with a signature becomes one PTX module.
func TestEmitPTX(t *testing.T) {
	if l, err := llvm.Load(); err != nil || l.Version().Major < 19 {
		t.Skip("PTX is made by LLVM 19, which is not installed")
	}
	text, err := emitPTX(t, Options{Entry: "forward", Input: []string{"x=f32[4,8]", "w=f32[8,3]"}, Target: TargetCUDA, Arch: "sm_90a"})
	require.NoError(t, err)
	require.NoError(t, check.Check(text))
	require.Contains(t, text, ".target sm_90a")
	text, err = emitPTX(t, Options{Entry: "forward", Input: []string{"x=f32[4,8]", "w=f32[8,3]"}, Grad: true})
	require.NoError(t, err)
	require.NoError(t, check.Check(text))
	require.Contains(t, text, "ct0") // the cotangent is an input
}

// What cannot become PTX is an error that says why.
func TestEmitPTXErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"no signature", Options{Entry: "forward"}, "--emit=ptx needs a signature"},
		{"another target", Options{Entry: "forward", Target: "cpu", Input: []string{"x=f32[4,8]"}}, "--emit=ptx goes with --target=cuda"},
		{"unknown arch", Options{Entry: "forward", Arch: "sm_81", Input: []string{"x=f32[4,8]", "w=f32[8,3]"}}, `--arch "sm_81" is no CUDA architecture`},
		{"symbolic size", Options{Entry: "sorted", Input: []string{"x=f32[N,8]"}}, "machine code needs every size"},
		{"no kernels", Options{Entry: "sorted", Input: []string{"x=f32[4,8]"}}, "net.py:9:12: sort of tensor<f32[4,8]>\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := emitPTX(t, c.o)
			require.ErrorContains(t, err, c.want)
		})
	}
}
