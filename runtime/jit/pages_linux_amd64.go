package jit

import (
	"fmt"
	"syscall"
	"unsafe"
)

// Supported reports whether this platform can run machine code made by gtc.
const Supported = true

func mapPages(size uint64) ([]byte, error) {
	mem, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("jit: no memory for %d bytes of code: %w", size, err)
	}
	return mem, nil
}

func unmapPages(mem []byte) { _ = syscall.Munmap(mem) }

// mapStack maps size usable bytes above one guard page.
func mapStack(size uint64) ([]byte, error) {
	mem, err := mapPages(size + pageSize)
	if err != nil {
		return nil, err
	}
	if err := syscall.Mprotect(mem[:pageSize], syscall.PROT_NONE); err != nil {
		unmapPages(mem)
		return nil, fmt.Errorf("jit: guard page: %w", err)
	}
	return mem, nil
}

// protect takes away write access from code and constants.
func protect(mem []byte, segs [numSegments]span) error {
	for seg, prot := range map[segment]int{segCode: syscall.PROT_READ | syscall.PROT_EXEC, segConst: syscall.PROT_READ} {
		s := segs[seg]
		if s.start == s.end {
			continue
		}
		if err := syscall.Mprotect(mem[s.start:s.end], prot); err != nil {
			return fmt.Errorf("jit: the system does not allow code to be made at run time: %w", err)
		}
	}
	return nil
}

// call runs fn(args) with the stack pointer at stack. It is written without noescape on purpose: args must be on the heap, where
// it does not move.
func call(fn uintptr, args unsafe.Pointer, stack uintptr)
