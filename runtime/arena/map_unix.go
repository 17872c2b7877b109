//go:build linux || darwin

package arena

import (
	"syscall"
	"unsafe"
)

// mapMemory maps n bytes, from a huge-page boundary when they fill at least one huge page.
func mapMemory(n int) ([]byte, error) {
	const prot, flags = syscall.PROT_READ | syscall.PROT_WRITE, syscall.MAP_ANON | syscall.MAP_PRIVATE
	if n < hugePage {
		p, err := mmap(n, prot, flags)
		if err != nil {
			return nil, err
		}
		return unsafe.Slice((*byte)(p), n), nil
	}
	p, err := mmap(n+hugePage, prot, flags)
	if err != nil {
		return nil, err
	}
	all := unsafe.Slice((*byte)(p), n+hugePage)
	lead := int(-uintptr(p) & (hugePage - 1))
	unmap(all[:lead])
	end := lead + (n+pageSize-1)&^(pageSize-1)
	unmap(all[min(end, len(all)):])
	mem := all[lead : lead+n : lead+n]
	adviseHuge(mem)
	return mem, nil
}

const pageSize = 16 << 10 // a multiple of every page size of the systems above

// mmap is the bare system call: syscall.Mmap would remember each mapping and refuse to unmap parts.
func mmap(n int, prot, flags uintptr) (unsafe.Pointer, error) {
	p, _, errno := syscall.Syscall6(syscall.SYS_MMAP, 0, uintptr(n), prot, flags, ^uintptr(0), 0)
	if errno != 0 {
		return nil, errno
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&p)), nil
}

func unmap(b []byte) {
	if len(b) > 0 {
		_, _, _ = syscall.Syscall(syscall.SYS_MUNMAP, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0)
	}
}

func unmapMemory(b []byte) { unmap(b) }
