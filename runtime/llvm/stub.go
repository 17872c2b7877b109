//go:build nollvm || !((linux && (amd64 || arm64)) || darwin)

package llvm

import "errors"

// LLVM is a loaded library. In this build there is none.
type LLVM struct{}

var errStub = errors.New("llvm: this binary was built without LLVM (build tag nollvm, or a system whose libraries cannot be loaded at run time); rebuild without the tag, or use the reference evaluator (--target=interp)")

// Load always fails in this build.
func Load() (*LLVM, error) { return nil, errStub }

// Open always fails in this build.
func Open(Options) (*LLVM, error) { return nil, errStub }

// Version is zero in this build.
func (l *LLVM) Version() Version { return Version{} }

// Path is empty in this build.
func (l *LLVM) Path() string { return "" }

// Host is empty in this build.
func (l *LLVM) Host() Target { return Target{} }

// Compile always fails in this build.
func (l *LLVM) Compile(string, Target, string, Output) ([]byte, error) { return nil, errStub }
