//go:build !(linux && amd64)

package jit

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Supported reports whether this platform can run machine code made by gtc.
const Supported = false

var errUnsupported = fmt.Errorf("jit: the CPU target is not supported on %s/%s; use the reference evaluator (--target=interp)", runtime.GOOS, runtime.GOARCH)

func mapPages(uint64) ([]byte, error) { return nil, errUnsupported }

func mapStack(uint64) ([]byte, error) { return nil, errUnsupported }

func unmapPages([]byte) {}

func protect([]byte, [numSegments]span) error { return errUnsupported }

func call(uintptr, unsafe.Pointer, uintptr) {
	panic("BUG: no code can have been loaded on this platform")
}
