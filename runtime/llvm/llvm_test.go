package llvm

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const addText = `define void @add(float* %p) {
  %x = load float, float* %p
  %y = fadd float %x, 1.0
  %z = fadd float %x, 1.0
  %s = fadd float %y, %z
  store float %s, float* %p
  ret void
}
`

// load opens the usual library, or skips.
func load(t *testing.T) *LLVM {
	l, err := Load()
	if err != nil {
		t.Skip(err)
	}
	return l
}

func TestOpenErrorsSayWhatToDo(t *testing.T) {
	_, err := Open(Options{Path: "none"})
	require.ErrorContains(t, err, "--target=interp")
	_, err = Open(Options{Path: "/nonexistent/libLLVM-77.so"})
	require.Error(t, err)
	if strings.Contains(err.Error(), "nollvm") {
		return // this build never looks for a library
	}
	require.ErrorContains(t, err, "/nonexistent/libLLVM-77.so")
	require.ErrorContains(t, err, "apt-get install libllvm19")
}

func TestHost(t *testing.T) {
	l := load(t)
	require.GreaterOrEqual(t, l.Version().Major, 14)
	h := l.Host()
	require.NotEmpty(t, h.Triple)
	require.NotEmpty(t, h.CPU)
	require.False(t, h.HasFeature("no-such-feature"))
	t.Logf("%s: LLVM %v, %s %s", l.Path(), l.Version(), h.Triple, h.CPU)
}

func TestCompileOutputs(t *testing.T) {
	l := load(t)
	passes := Passes(l.Version())
	ir, err := l.Compile(addText, l.Host(), passes, IR)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(ir), "fadd"), "early-cse merges the equal additions:\n%s", ir)
	asm, err := l.Compile(addText, l.Host(), passes, Assembly)
	require.NoError(t, err)
	require.Contains(t, string(asm), "add:")
	obj, err := l.Compile(addText, l.Host(), passes, Object)
	require.NoError(t, err)
	require.Equal(t, "\x7fELF", string(obj[:4]))
}

func TestCompileErrors(t *testing.T) {
	l := load(t)
	for _, c := range []struct{ name, text, triple, passes, want string }{
		{"syntax", "define void @f() { nonsense }", "", "", "cannot parse"},
		{"type", "define i32 @f(i64 %x) { ret i32 %x }", "", "", "cannot parse"},
		{"verifier", "define void @f() { br label %a\na:\n %x = phi i32 [0, %a]\n ret void }", "", "", "not valid"},
		{"pass name", addText, "", "no-such-pass", "no-such-pass"},
		{"triple", addText, "pdp11-dec-none", "", "pdp11"},
		{"inline asm", "define void @f() { call void asm \"no_such_instruction\", \"\"()\n ret void }", "", "", "instruction"},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := l.Host()
			if c.triple != "" {
				target.Triple = c.triple
			}
			_, err := l.Compile(c.text, target, c.passes, Object)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestCompileIsConcurrent(t *testing.T) {
	l := load(t)
	want, err := l.Compile(addText, l.Host(), Passes(l.Version()), Object)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := l.Compile(addText, l.Host(), Passes(l.Version()), Object)
			if err != nil || string(got) != string(want) {
				t.Errorf("differs: %v", err)
			}
		})
	}
	wg.Wait()
}

func TestPTX(t *testing.T) {
	l := load(t)
	if l.Version().Major < 19 {
		_, err := l.Compile(addText, NVPTX("sm_80", "ptx70"), "", Assembly)
		require.ErrorContains(t, err, "LLVM 19")
		return
	}
	ptx, err := l.Compile(addText, NVPTX("sm_80", "ptx70"), Passes(l.Version()), Assembly)
	require.NoError(t, err)
	require.Contains(t, string(ptx), ".version 7.0")
	require.Contains(t, string(ptx), ".target sm_80")
}

// LLVM 14 is the oldest version that works; its object code must come out as well.
func TestLLVM14(t *testing.T) {
	l, err := Open(Options{Path: "libLLVM-14.so.1"})
	if err != nil {
		t.Skip(err)
	}
	require.Equal(t, 14, l.Version().Major)
	obj, err := l.Compile(addText, l.Host(), Passes(l.Version()), Object)
	require.NoError(t, err)
	require.NotEmpty(t, obj)
	_, err = l.Compile(addText, NVPTX("sm_80", "ptx70"), "", Assembly)
	require.ErrorContains(t, err, "PTX needs LLVM 19")
}

// What LLVM cannot lower ends the process, but with a message that says whose fault it is.
func TestFatalErrorIsExplained(t *testing.T) {
	const env = "GTC_LLVM_TEST_FATAL"
	if os.Getenv(env) != "" {
		l, err := Load()
		if err != nil {
			t.Skip(err)
		}
		_, _ = l.Compile("declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\ndefine i32 @f() {\n %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n ret i32 %x }", l.Host(), "", Object)
		return
	}
	load(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestFatalErrorIsExplained$")
	cmd.Env = append(os.Environ(), env+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Contains(t, string(out), "LLVM cannot go on")
}

func BenchmarkCompile(b *testing.B) {
	l, err := Load()
	if err != nil {
		b.Skip(err)
	}
	for b.Loop() {
		if _, err := l.Compile(addText, l.Host(), Passes(l.Version()), Object); err != nil {
			b.Fatal(err)
		}
	}
}
