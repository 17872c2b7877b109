package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/runtime/llvm"
)

const netModel = `import torch
import torch.nn.functional as F
from torch import Tensor


def forward(x: Tensor, w: Tensor, k: int = 2) -> Tensor:
    h = x
    for i in range(k):
        h = torch.softmax(F.gelu(h @ w), 1) + h
    return h
`

func writeModel(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "net.py")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// TestEmitKernels: every form of the kernels, for this machine and for others; comments say where they come from.
func TestEmitKernels(t *testing.T) {
	if _, err := llvm.Load(); err != nil {
		t.Skip("LLVM is not installed")
	}
	script := writeModel(t, netModel)
	compile := func(args ...string) (int, string, string) {
		return gtc(t, append([]string{"compile", script, "--input", "x=f32[8,16]", "--input", "w=f32[16,16]"}, args...)...)
	}
	code, text, stderr := compile("--emit=llvm")
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `; map_\d+ for fused mul_erf_add_mul at .*net.py:9:27`, text)
	require.Contains(t, text, "define void @thin_")
	code, text, stderr = compile("--emit=asm", "--arch=x86-64-v4", "--grad")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, text, "zmm")
	obj := filepath.Join(t.TempDir(), "net.o")
	code, _, stderr = compile("--arch=x86-64-v2", "-o", obj)
	require.Equal(t, exitOK, code, stderr)
	data, err := os.ReadFile(obj)
	require.NoError(t, err)
	require.Equal(t, "\x7fELF", string(data[:4]))

	for args, want := range map[string]string{
		"--emit=asm --arch=aarch64":                "64-bit Arm is not available",
		"--emit=asm --arch=sm_80":                  "is an architecture of CUDA",
		"--emit=obj --target=cuda -o x.o":          "goes with --target=cpu",
		"--emit=ir --arch=x86-64-v3":               "--arch goes with machine code",
		"--emit=llvm --input x=f32[N,16]":          "machine code needs every size",
		"--emit=so -o x.so":                        "--emit=so is not available yet",
		"--emit=asm --memory-budget=1KiB":          "more than --memory-budget allows (1024)",
		"--emit=ir --passes=nope":                  `there is no pass "nope"`,
		"--emit=ir --passes=cse --print-after=dce": "that pass is not among --passes=cse",
	} {
		code, _, stderr := compile(strings.Fields(args)...)
		require.NotEqual(t, exitOK, code, args)
		require.Contains(t, stderr, want, args)
	}
}

// TestLookingAtPasses: the page has a column per pass that changed something, and the folder a drawing per pass.
func TestLookingAtPasses(t *testing.T) {
	script, dir := writeModel(t, netModel), t.TempDir()
	page := filepath.Join(dir, "passes.html")
	code, text, stderr := gtc(t, "compile", script, "--input", "x=f32[8,16]", "--input", "w=f32[16,16]", "--emit=ir",
		"--html", page, "--dot", filepath.Join(dir, "graphs"), "--time-passes", "--print-after=fuse")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, text, "fused.")
	require.Contains(t, stderr, "// after fuse\nfunc @forward")
	require.Regexp(t, `specialise +\d+\.\d+ +\d+`, stderr)
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "<h2>input</h2>")
	require.Contains(t, string(html), "<h2>fuse (")
	require.FileExists(t, filepath.Join(dir, "graphs", "00-input.dot"))
	require.FileExists(t, filepath.Join(dir, "graphs", "02-fuse.dot"))
}

// TestEmitGo: the generated package compiles in a user's module and gives the model's results.
func TestEmitGo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	script := writeModel(t, "from torch import Tensor\n\n\ndef scale_by(x: Tensor, k: int = 2):\n    return x * k, k + 1\n")
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	mod = append([]byte(strings.Replace(string(mod), "module github.com/gtc-project/gtc", "module example.com/app", 1)),
		"\nrequire github.com/gtc-project/gtc v0.0.0\n\nreplace github.com/gtc-project/gtc => "+root+"\n"...)
	for name, text := range map[string]string{
		"go.mod": string(mod), "go.sum": string(sum),
		"main.go": `package main

import (
	"context"
	"fmt"

	"example.com/app/models"
	"github.com/gtc-project/gtc/tensor"
)

func main() {
	fmt.Println(models.ScaleBy(context.Background(), tensor.Ones(tensor.F32, 2), 3))
}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "models"), 0o755))
	code, _, stderr := gtc(t, "compile", script, "--entry", "scale_by", "--input", "x=f32[N]", "-o", filepath.Join(dir, "models", "scale.go"))
	require.Equal(t, exitOK, code, stderr)
	c := exec.Command("go", "run", "-mod=mod", ".")
	c.Dir = dir
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "tensor([3., 3.]) 4 <nil>\n", string(out))

	code, _, stderr = gtc(t, "compile", script, "--entry", "scale_by", "-o", filepath.Join(dir, "x.go"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "--emit=go needs a signature")
}
