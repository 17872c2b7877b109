//go:build !linux && !darwin

package arena

import "unsafe"

// mapMemory takes aligned memory from the Go heap; the arena's tables keep it alive until unmapMemory forgets it.
func mapMemory(n int) ([]byte, error) {
	b := make([]byte, n+alignment)
	lead := int(-uintptr(unsafe.Pointer(&b[0])) & (alignment - 1))
	return b[lead : lead+n : lead+n], nil
}

func unmapMemory([]byte) {}
