package jit

import (
	"runtime"
	"sync"
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

var (
	freeMu     sync.Mutex
	freeStacks []*Stack
)

// GetStack takes an idle stack or makes one.
func GetStack() (*Stack, error) {
	freeMu.Lock()
	if n := len(freeStacks); n > 0 {
		s := freeStacks[n-1]
		freeStacks = freeStacks[:n-1]
		freeMu.Unlock()
		return s, nil
	}
	freeMu.Unlock()
	return NewStack()
}

// PutStack gives a stack back for reuse.
func PutStack(s *Stack) {
	freeMu.Lock()
	defer freeMu.Unlock()
	if len(freeStacks) < 4*runtime.GOMAXPROCS(0) {
		freeStacks = append(freeStacks, s)
	}
}
