package ptx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/runtime/llvm"
)

// DefaultArch is what is compiled for where nobody says otherwise: the oldest GPUs in common use for this work run it, and all newer ones.
const DefaultArch = "sm_80"

// archs lists the architectures that LLVM 19 knows, with the first version of PTX that has them (PTX ISA manual, release notes).
var archs = []struct {
	name    string
	version int // 10 times the PTX version
}{
	{"sm_50", 40}, {"sm_52", 41}, {"sm_53", 42}, {"sm_60", 50}, {"sm_61", 50}, {"sm_62", 50}, {"sm_70", 60}, {"sm_72", 61},
	{"sm_75", 63}, {"sm_80", 70}, {"sm_86", 71}, {"sm_87", 74}, {"sm_89", 78}, {"sm_90", 78}, {"sm_90a", 80},
}

// minVersion is the first PTX version with shfl.sync, which the reductions use.
const minVersion = 60

// Archs are the names of the architectures that can be compiled for, oldest first.
func Archs() []string {
	names := make([]string, len(archs))
	for i, a := range archs {
		names[i] = a.name
	}
	return names
}

// target is LLVM's target for an architecture; "" is DefaultArch. An unknown one is an error that lists those known.
func target(arch string) (llvm.Target, error) {
	if arch == "" {
		arch = DefaultArch
	}
	for _, a := range archs {
		if a.name == arch {
			return llvm.NVPTX(arch, fmt.Sprintf("ptx%d", max(a.version, minVersion))), nil
		}
	}
	names := Archs()
	slices.Reverse(names)
	return llvm.Target{}, fmt.Errorf("--arch %q is no CUDA architecture that is known here; the architectures are %s", arch, strings.Join(names, ", "))
}
