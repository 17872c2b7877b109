// Package arena hands out memory for tensors from outside the garbage-collected heap.
//
// First touch of fresh pages costs more than most arithmetic on them, so freed blocks are kept and reused, on huge pages where the
// system has them. Blocks are aligned to 64 bytes and come in size classes, four per power of two. Free is explicit; a Buffer frees
// itself when it becomes unreachable.
package arena

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"unsafe"
)

// Sizes, in bytes.
const (
	alignment = 64
	minBlock  = 64
	chunkSize = 4 << 20   // small blocks are cut from chunks
	maxSmall  = 512 << 10 // larger blocks are mapped one by one
	hugePage  = 2 << 20
	minGC     = 512 << 20 // below this much live memory nothing forces a garbage collection
)

// Stats describes an arena, in bytes.
type Stats struct {
	Live   int64 // in blocks handed out and not freed, rounded up to their size classes
	Peak   int64 // the greatest Live since New or ResetPeak
	Mapped int64 // taken from the system
}

// Arena is a source of memory. It is safe for concurrent use.
type Arena struct {
	mu     sync.Mutex
	free   map[int][]unsafe.Pointer // size class -> blocks
	live   map[unsafe.Pointer]int   // block -> size class
	chunk  []byte                   // what is left of the newest chunk
	stats  Stats
	limit  int64 // 0: no limit
	nextGC int64
}

// New makes an arena. limit bounds the bytes it takes from the system; 0 means no bound.
func New(limit int64) *Arena {
	return &Arena{free: map[int][]unsafe.Pointer{}, live: map[unsafe.Pointer]int{}, limit: limit, nextGC: minGC}
}

// Default is the process's arena.
var Default = sync.OnceValue(func() *Arena { return New(0) })

// sizeClass rounds n up to a multiple of a quarter of the power of two below it, at least minBlock.
func sizeClass(n int) int {
	if n <= minBlock {
		return minBlock
	}
	step := max(alignment, 1<<(bits.Len(uint(n-1))-3))
	return (n + step - 1) &^ (step - 1)
}

// Alloc returns n bytes with arbitrary contents, aligned to 64 bytes. Its capacity is the block's; it must be given back with Free.
func (a *Arena) Alloc(n int) ([]byte, error) {
	if n < 0 || n > 1<<46 {
		return nil, fmt.Errorf("arena: cannot allocate %d bytes", n)
	}
	class := sizeClass(n)
	a.mu.Lock()
	defer a.mu.Unlock()
	p, err := a.take(class)
	if err != nil {
		return nil, err
	}
	a.live[p] = class
	a.stats.Live += int64(class)
	a.stats.Peak = max(a.stats.Peak, a.stats.Live)
	return unsafe.Slice((*byte)(p), class)[:n], nil
}

// AllocZeroed is Alloc with all bytes zero.
func (a *Arena) AllocZeroed(n int) ([]byte, error) {
	b, err := a.Alloc(n)
	clear(b)
	return b, err
}

// take finds a block of the class; a.mu is held.
func (a *Arena) take(class int) (unsafe.Pointer, error) {
	if f := a.free[class]; len(f) > 0 {
		a.free[class] = f[:len(f)-1]
		return f[len(f)-1], nil
	}
	if class > maxSmall {
		mem, err := a.system(class)
		if err != nil {
			return nil, err
		}
		return unsafe.Pointer(&mem[0]), nil
	}
	if len(a.chunk) < class {
		a.keepRest()
		mem, err := a.system(chunkSize)
		if err != nil {
			return nil, err
		}
		a.chunk = mem
	}
	p := unsafe.Pointer(&a.chunk[0])
	a.chunk = a.chunk[class:]
	return p, nil
}

// keepRest puts the rest of the newest chunk on the free lists.
func (a *Arena) keepRest() {
	for len(a.chunk) >= minBlock {
		n := min(len(a.chunk), maxSmall)
		for sizeClass(n) > n {
			n -= alignment
		}
		a.free[n] = append(a.free[n], unsafe.Pointer(&a.chunk[0]))
		a.chunk = a.chunk[n:]
	}
}

// system maps fresh memory, after giving idle large blocks back if the limit asks for it.
func (a *Arena) system(n int) ([]byte, error) {
	if a.limit > 0 && a.stats.Mapped+int64(n) > a.limit {
		a.trim()
		if a.stats.Mapped+int64(n) > a.limit {
			return nil, fmt.Errorf("arena: out of memory: %d bytes wanted, %d of at most %d are in use", n, a.stats.Live, a.limit)
		}
	}
	mem, err := mapMemory(n)
	if err != nil {
		a.trim()
		if mem, err = mapMemory(n); err != nil {
			return nil, fmt.Errorf("arena: the system has no %d bytes (%d are in use): %w", n, a.stats.Live, err)
		}
	}
	a.stats.Mapped += int64(n)
	return mem, nil
}

// Free gives a block back. b must start where Alloc's result did; its length does not matter.
func (a *Arena) Free(b []byte) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	a.mu.Lock()
	defer a.mu.Unlock()
	class, ok := a.live[p]
	if !ok {
		panic("BUG: arena: Free of a block that is not live: freed twice, or from another arena")
	}
	delete(a.live, p)
	a.stats.Live -= int64(class)
	a.free[class] = append(a.free[class], p)
}

// Trim gives the idle large blocks back to the system.
func (a *Arena) Trim() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trim()
}

func (a *Arena) trim() {
	for class, blocks := range a.free {
		if class <= maxSmall {
			continue
		}
		for _, p := range blocks {
			unmapMemory(unsafe.Slice((*byte)(p), class))
			a.stats.Mapped -= int64(class)
		}
		delete(a.free, class)
	}
}

// Stats gives the arena's figures.
func (a *Arena) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// ResetPeak sets Peak to Live.
func (a *Arena) ResetPeak() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.Peak = a.stats.Live
}

// Buffer is a block owned by a Go object. It frees itself when it is no longer reachable; whoever works on Bytes keeps the Buffer
// alive meanwhile.
type Buffer struct {
	Bytes   []byte
	arena   *Arena
	cleanup runtime.Cleanup
}

// NewBuffer allocates n bytes with arbitrary contents. The garbage collector does not see how large buffers are, so when live memory
// has doubled since the last time, NewBuffer runs it.
func (a *Arena) NewBuffer(n int) (*Buffer, error) {
	a.collect(n)
	mem, err := a.Alloc(n)
	if err != nil {
		runtime.GC() // unreachable buffers may hold what is missing
		yield()
		if mem, err = a.Alloc(n); err != nil {
			return nil, err
		}
	}
	b := &Buffer{Bytes: mem, arena: a}
	b.cleanup = runtime.AddCleanup(b, func(mem []byte) { a.Free(mem) }, mem)
	return b, nil
}

// Free gives the memory back now. It is harmless to call it again.
func (b *Buffer) Free() {
	if b.Bytes == nil {
		return
	}
	b.cleanup.Stop()
	b.arena.Free(b.Bytes)
	b.Bytes = nil
}

// collect runs the garbage collector when n more bytes would pass the threshold.
func (a *Arena) collect(n int) {
	a.mu.Lock()
	due := a.stats.Live+int64(n) > a.nextGC
	a.mu.Unlock()
	if !due {
		return
	}
	runtime.GC()
	yield()
	a.mu.Lock()
	a.nextGC = max(minGC, 2*(a.stats.Live+int64(n)))
	a.mu.Unlock()
}

// yield lets the goroutine that runs cleanups proceed.
func yield() {
	for range 4 {
		runtime.Gosched()
	}
}
