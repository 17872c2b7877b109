package arena

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func alloc(t testing.TB, a *Arena, n int) []byte {
	b, err := a.Alloc(n)
	require.NoError(t, err)
	require.Len(t, b, n)
	return b
}

func TestSizeClass(t *testing.T) {
	for _, c := range [][2]int{{0, 64}, {1, 64}, {64, 64}, {65, 128}, {129, 192}, {512, 512}, {513, 640}, {1000, 1024}, {1025, 1280}, {1 << 20, 1 << 20}, {1<<20 + 1, 5 << 18}} {
		require.Equal(t, c[1], sizeClass(c[0]), "%d bytes", c[0])
	}
	for n := 1; n < 1<<22; n += 1 + n/50 {
		c := sizeClass(n)
		require.GreaterOrEqual(t, c, n)
		require.Equal(t, c, sizeClass(c), "a class is its own class")
		require.LessOrEqual(t, c, max(64, n+n/4+64))
	}
}

// Blocks are aligned, disjoint and keep their contents while others come and go.
func TestBlocksAreDisjoint(t *testing.T) {
	a := New(0)
	r := rand.New(rand.NewPCG(1, 1))
	type block struct {
		b    []byte
		mark byte
	}
	var blocks []block
	for i := range 3000 {
		if len(blocks) > 50 && r.IntN(2) == 0 {
			k := r.IntN(len(blocks))
			for _, v := range []byte{blocks[k].b[0], blocks[k].b[len(blocks[k].b)-1]} {
				require.Equal(t, blocks[k].mark, v)
			}
			a.Free(blocks[k].b)
			blocks[k] = blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			continue
		}
		n := 1 + r.IntN(1<<(4+r.IntN(18)))
		b := alloc(t, a, n)
		require.Zero(t, uintptr(unsafe.Pointer(&b[0]))%alignment)
		b[0], b[n-1] = byte(i), byte(i)
		blocks = append(blocks, block{b, byte(i)})
	}
	for _, b := range blocks {
		a.Free(b.b)
	}
	require.Zero(t, a.Stats().Live)
}

func TestReuseAndStats(t *testing.T) {
	a := New(0)
	b := alloc(t, a, 3<<20)
	p := &b[0]
	require.Equal(t, Stats{Live: 3 << 20, Peak: 3 << 20, Mapped: 3 << 20}, a.Stats())
	a.Free(b)
	b = alloc(t, a, 3<<20-5)
	require.Same(t, p, &b[0], "the same block serves again")
	a.Free(b)
	a.Trim()
	require.Equal(t, Stats{Peak: 3 << 20}, a.Stats())
	a.ResetPeak()
	require.Equal(t, Stats{}, a.Stats())
	require.Panics(t, func() { a.Free(b) }, "freed twice")
}

func TestZeroed(t *testing.T) {
	a := New(0)
	b := alloc(t, a, 100)
	for i := range b {
		b[i] = 1
	}
	a.Free(b)
	z, err := a.AllocZeroed(100)
	require.NoError(t, err)
	require.Equal(t, make([]byte, 100), z)
}

func TestLimitIsAnError(t *testing.T) {
	a := New(10 << 20)
	b := alloc(t, a, 8<<20)
	_, err := a.Alloc(4 << 20)
	require.ErrorContains(t, err, "out of memory: 4194304 bytes wanted")
	a.Free(b)
	a.Free(alloc(t, a, 4<<20)) // the idle block makes way
	_, err = a.Alloc(-1)
	require.Error(t, err)
}

func TestBuffersFreeThemselves(t *testing.T) {
	a := New(0)
	for range 10 {
		b, err := a.NewBuffer(1 << 20)
		require.NoError(t, err)
		b.Bytes[0] = 1
	}
	require.Eventually(t, func() bool { runtime.GC(); return a.Stats().Live == 0 }, 5*time.Second, time.Millisecond)
	b, err := a.NewBuffer(10)
	require.NoError(t, err)
	b.Free()
	b.Free()
	runtime.GC()
	require.Zero(t, a.Stats().Live)
}

// Unreachable buffers make room before a limit becomes an error.
func TestBuffersUnderALimit(t *testing.T) {
	a := New(8 << 20)
	for range 50 {
		b, err := a.NewBuffer(1 << 20)
		if err != nil { // the cleanup goroutine may be late once
			time.Sleep(10 * time.Millisecond)
			b, err = a.NewBuffer(1 << 20)
		}
		require.NoError(t, err)
		b.Bytes[0] = 1
	}
}

func BenchmarkAllocFree(b *testing.B) {
	a := New(0)
	for b.Loop() {
		m, _ := a.Alloc(1000)
		a.Free(m)
	}
}
