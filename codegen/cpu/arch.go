package cpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/runtime/llvm"
)

// archs are the microarchitecture levels of the x86-64 ABI for which code can be made, with the features that each adds to the one before.
// The first level has no SSE4.1, which generated code needs.
var archs = []struct {
	name     string
	features []string
}{
	{"x86-64-v2", []string{"cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"}},
	{"x86-64-v3", []string{"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}},
	{"x86-64-v4", []string{"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
}

// Arch is the target for an architecture's name: native (or "") for the host itself, or a level of x86-64. Others are errors that list those known.
func Arch(name string, host llvm.Target) (llvm.Target, error) {
	if name == "" || name == "native" {
		return host, nil
	}
	t := llvm.Target{Triple: "x86_64-unknown-linux-gnu", CPU: name}
	var features []string
	for _, a := range archs {
		for _, f := range a.features {
			features = append(features, "+"+f)
		}
		if a.name == name {
			t.Features = strings.Join(features, ",")
			return t, nil
		}
	}
	switch {
	case strings.HasPrefix(name, "sm_"):
		return t, fmt.Errorf("--arch %s is an architecture of CUDA; it goes with --target=cuda or --emit=ptx", name)
	case name == "aarch64" || name == "arm64":
		return t, fmt.Errorf("--arch %s: machine code for 64-bit Arm is not available in this version; the architectures are %s", name, archNames())
	}
	return t, fmt.Errorf("--arch %q is not known; the architectures are %s", name, archNames())
}

func archNames() string {
	names := []string{"native"}
	for _, a := range archs {
		names = append(names, a.name)
	}
	return strings.Join(names, ", ")
}

// missing lists the features of t that the host lacks.
func missing(t, host llvm.Target) []string {
	var out []string
	for f := range strings.SplitSeq(t.Features, ",") {
		if name, ok := strings.CutPrefix(f, "+"); ok && !host.HasFeature(name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Runnable says why the host cannot run code for t; nil where it can.
func Runnable(t, host llvm.Target) error {
	if m := missing(t, host); t != host && len(m) > 0 {
		return fmt.Errorf("this machine's CPU (%s) cannot run code for --arch %s: it lacks %s", host.CPU, t.CPU, strings.Join(m, ", "))
	}
	return nil
}
