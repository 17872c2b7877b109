package arena

import (
	"syscall"
	"unsafe"
)

// adviseHuge asks for huge pages; a system without them ignores it.
func adviseHuge(b []byte) {
	const madvHugepage = 14
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), madvHugepage)
}
