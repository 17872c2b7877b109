// Package llvm compiles LLVM assembly text with a libLLVM that is found and loaded at run time, without cgo.
//
// Text goes in, and object code, assembly (PTX included) or optimised LLVM text comes out; nothing of LLVM's own data structures
// leaves the package. Only C API functions that LLVM 14 and LLVM 19 share are used. With the build tag nollvm, and on systems
// where no shared library can be loaded, Load returns an error and nothing else is linked in.
package llvm

import (
	"fmt"
	"strings"
)

// Target names what machine code is made for.
type Target struct {
	Triple   string // "x86_64-pc-linux-gnu", "nvptx64-nvidia-cuda"
	CPU      string // "znver3", "sm_90"
	Features string // "+avx2,+fma", in LLVM's syntax
}

// HasFeature reports whether the feature list switches name on ("avx2", "fma", "avx512f", …).
func (t Target) HasFeature(name string) bool {
	for f := range strings.SplitSeq(t.Features, ",") {
		if strings.TrimSpace(f) == "+"+name {
			return true
		}
	}
	return false
}

// NVPTX is the CUDA target for one compute capability ("sm_80") and PTX version ("ptx70").
func NVPTX(sm, ptx string) Target {
	return Target{Triple: "nvptx64-nvidia-cuda", CPU: sm, Features: "+" + ptx}
}

// Version is LLVM's version number. LLVM 14 reports no minor and patch number.
type Version struct{ Major, Minor, Patch int }

// String gives "19.1.7", or "14" where only the major number is known.
func (v Version) String() string {
	if v.Minor == 0 && v.Patch == 0 {
		return fmt.Sprint(v.Major)
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Output says what Compile returns.
type Output uint8

// The forms of output.
const (
	Object   Output = iota // a relocatable object file
	Assembly               // assembly text; PTX for an NVPTX target
	IR                     // LLVM text after the passes
)

// Options steer Open.
type Options struct {
	// Path is the shared library to load. "" searches the usual names; "none" refuses, for tests of what happens without LLVM.
	Path string
}

// Passes is the pass pipeline for generated kernels, which hold explicit vectors already: it costs a tenth of O3's compile time
// and loses nothing on them. It has no pass that changes floating-point results.
func Passes(v Version) string {
	combine := "instcombine"
	if v.Major >= 18 {
		combine = "instcombine<no-verify-fixpoint>"
	}
	return "function(sroa,early-cse," + combine + ",simplifycfg,loop-mssa(licm),early-cse)"
}

// installHint ends every error about a missing library.
const installHint = "install LLVM 19 (Debian and Ubuntu: apt-get install libllvm19) or use the reference evaluator (--target=interp)"
