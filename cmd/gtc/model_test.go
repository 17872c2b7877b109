package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

const squareModel = `import torch
from torch import Tensor


def forward(x: Tensor, k: int = 2) -> Tensor:
    y = x
    for i in range(k):
        y = y * x
    return y
`

// model writes the script above and its inputs, and gives their paths.
func model(t *testing.T) (script, inputs string) {
	dir := t.TempDir()
	script, inputs = filepath.Join(dir, "m.py"), filepath.Join(dir, "in.npz")
	require.NoError(t, os.WriteFile(script, []byte(squareModel), 0o644))
	two := ir.FromFloats(dtype.F32, []int{2}, []float64{2, 3})
	one := ir.FromFloats(dtype.F32, []int{2}, []float64{1, 1})
	require.NoError(t, npz.Write(inputs, []npz.Named{{Name: "x", Array: two}, {Name: "cotangent.0", Array: one}, {Name: "v.x", Array: one}}))
	return script, inputs
}

// TestRunOnEveryTarget: x^3, its gradient 3x^2 and its second derivative 6x, the same on every target.
func TestRunOnEveryTarget(t *testing.T) {
	script, inputs := model(t)
	for _, target := range []string{"--target=interp", "--target=cpu", "--eager"} {
		out := filepath.Join(t.TempDir(), "out.npz")
		code, _, stderr := gtc(t, "run", script, "--inputs", inputs, "--outputs", out, "--grad", target)
		if strings.Contains(stderr, "libLLVM") {
			continue // not installed here
		}
		require.Equal(t, exitOK, code, stderr)
		f, err := npz.Open(out)
		require.NoError(t, err)
		for name, want := range map[string]string{"out.0": "f32[2]{8.0,27.0}", "grad.x": "f32[2]{12.0,27.0}", "grad2.x": "f32[2]{12.0,18.0}"} {
			a, err := f.Read(name)
			require.NoError(t, err)
			require.Equal(t, want, a.String(), "%s %s", target, name)
		}
		require.NoError(t, f.Close())
	}
}

// TestPackagesAndTextRunLikeTheScript: a package keeps parameter defaults; IR text has none.
func TestPackagesAndTextRunLikeTheScript(t *testing.T) {
	script, inputs := model(t)
	dir := t.TempDir()
	pkg, text := filepath.Join(dir, "m.gtc"), filepath.Join(dir, "m.gtir")
	for _, args := range [][]string{{"compile", script, "-o", pkg}, {"compile", script, "-o", text}} {
		code, _, stderr := gtc(t, args...)
		require.Equal(t, exitOK, code, stderr)
	}
	code, want, _ := gtc(t, "run", script, "--inputs", inputs, "--target=interp")
	require.Equal(t, exitOK, code)
	require.Equal(t, "out.0 = f32[2]{8.0,27.0}\n", want)
	code, got, stderr := gtc(t, "run", pkg, "--inputs", inputs, "--target=interp")
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, want, got)

	code, _, stderr = gtc(t, "run", text, "--inputs", inputs, "--target=interp")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `missing argument "k"`)
	code, printed, _ := gtc(t, "fmt", text)
	require.Equal(t, exitOK, code)
	onDisk, err := os.ReadFile(text)
	require.NoError(t, err)
	require.Equal(t, string(onDisk), printed, "what compile writes is formatted")
	code, optimised, stderr := gtc(t, "opt", text)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, optimised, "func @forward")
	code, _, stderr = gtc(t, "opt", text, "--passes", "nope")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `no pass "nope"`)
}

func TestInfoBenchAndDot(t *testing.T) {
	script, inputs := model(t)
	code, stdout, stderr := gtc(t, "info", script, "--json")
	require.Equal(t, exitOK, code, stderr)
	var info map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &info))
	require.Equal(t, []any{"x: Tensor", "k: int = 2"}, info["params"])
	require.Empty(t, info["unsupported"])

	code, stdout, stderr = gtc(t, "bench", script, "--inputs", inputs, "--target=interp", "--grad", "--min-time=1ms", "--json")
	require.Equal(t, exitOK, code, stderr)
	var timing map[string]float64
	require.NoError(t, json.Unmarshal([]byte(stdout), &timing))
	require.Positive(t, timing["median_ms"])
	require.GreaterOrEqual(t, timing["runs"], 1.0)

	code, stdout, stderr = gtc(t, "dot", script, "--input", "x=f32[2]")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "digraph")
}

// TestInfoListsAllThatIsNotSupported: not only the first, and also in code that forward does not reach.
func TestInfoListsAllThatIsNotSupported(t *testing.T) {
	script := filepath.Join(t.TempDir(), "m.py")
	text := "import torch\nimport torch.nn.functional as F\n\n\ndef forward(x):\n    return torch.sin(%s(x))\n\n\ndef other(x):\n    return F.nope(x)\n"
	require.NoError(t, os.WriteFile(script, []byte(strings.Replace(text, "%s", "torch.frobnicate", 1)), 0o644))
	code, _, stderr := gtc(t, "info", script)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "m.py:6:22: 'torch.frobnicate' is unknown or not supported\n")
	require.Contains(t, stderr, "m.py:10:12: 'torch.nn.functional.nope' is unknown or not supported\n")
	require.NoError(t, os.WriteFile(script, []byte(strings.Replace(text, "%s", "torch.cos", 1)), 0o644))
	code, stdout, stderr := gtc(t, "info", script)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "m.py:10:12: 'torch.nn.functional.nope'")
}

// TestErrorsPointAtTheSource: file, line and column, and a caret, for errors found when compiling; the line for those when running.
func TestErrorsPointAtTheSource(t *testing.T) {
	script := filepath.Join(t.TempDir(), "m.py")
	require.NoError(t, os.WriteFile(script, []byte("def forward(x):\n    return x + nope\n"), 0o644))
	code, _, stderr := gtc(t, "run", script, "--input", "x=f32[2]")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "m.py:2:16: error:")
	require.Contains(t, stderr, "^")
	require.NoError(t, os.WriteFile(script, []byte("import torch\ndef forward(x):\n    return torch.mm(x, x)\n"), 0o644))
	code, _, stderr = gtc(t, "run", script, "--input", "x=f32[2,3]", "--target=interp")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "m.py:3")
}

// TestModulesTakeWeights: from a file, at random, and not at all.
func TestModulesTakeWeights(t *testing.T) {
	const good = "../../testdata/hostile/good/"
	run := func(args ...string) (int, string, string) {
		return gtc(t, append([]string{"run", good + "module.py", "--entry", "Net", "--inputs", good + "in.npz", "--target=interp"}, args...)...)
	}
	code, _, stderr := run("--weights", good+"good.safetensors")
	require.Equal(t, exitOK, code, stderr)
	code, first, _ := run("--weights", "random:1")
	require.Equal(t, exitOK, code)
	_, again, _ := run("--weights", "random:1")
	require.Equal(t, first, again)
	code, _, stderr = run()
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "--weights FILE")
}
