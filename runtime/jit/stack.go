package jit

import (
	"runtime"
	"unsafe"
)

// StackSize is what a kernel may use, in bytes. Below it lies a page that may not be touched.
const StackSize = 256 << 10

// Stack is memory for the frames of machine code.
type Stack struct{ top uintptr }

// NewStack maps a stack. It is given back when it is no longer reachable.
func NewStack() (*Stack, error) {
	mem, err := mapStack(StackSize)
	if err != nil {
		return nil, err
	}
	s := &Stack{top: uintptr(unsafe.Pointer(&mem[0])) + uintptr(len(mem))}
	runtime.AddCleanup(s, unmapPages, mem)
	return s, nil
}
