package pool

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryUnitRunsOnce(t *testing.T) {
	for _, size := range []int{1, 2, 3, 8} {
		p := New(size)
		require.Equal(t, size, p.Size())
		for _, units := range []int{0, 1, 2, 7, 1000} {
			seen := make([]atomic.Int32, units)
			err := p.Run(t.Context(), units, func(w *Worker, unit int) {
				if w.ID < 0 || w.ID >= size {
					t.Errorf("worker %d of %d", w.ID, size)
				}
				seen[unit].Add(1)
			})
			require.NoError(t, err)
			for i := range seen {
				require.Equal(t, int32(1), seen[i].Load(), "unit %d of %d on %d workers", i, units, size)
			}
		}
		p.Close()
	}
}

// What a unit writes is visible after Run, for warm workers and for sleeping ones.
func TestResultsAreVisible(t *testing.T) {
	p := New(4)
	defer p.Close()
	out := make([]int, 100)
	for round := range 200 {
		require.NoError(t, p.Run(t.Context(), len(out), func(_ *Worker, u int) { out[u] = round + u }))
		for u, v := range out {
			require.Equal(t, round+u, v)
		}
		if round%50 == 0 {
			time.Sleep(time.Millisecond) // lets the workers fall asleep
		}
	}
}

func TestPanicBecomesError(t *testing.T) {
	p := New(2)
	defer p.Close()
	cause := errors.New("out of range")
	for _, v := range []any{cause, "out of range"} {
		var after atomic.Int32
		err := p.Run(t.Context(), 100000, func(_ *Worker, u int) {
			if u == 3 {
				panic(v)
			}
			if u > 10 {
				time.Sleep(10 * time.Microsecond) // so that the panicking worker gets its turn on a busy machine
			}
			after.Add(1)
		})
		require.ErrorContains(t, err, "unit 3 of 100000 failed: out of range")
		require.Less(t, after.Load(), int32(99999), "the rest is not run")
	}
	require.NoError(t, p.Run(t.Context(), 10, func(*Worker, int) {}), "the pool lives on")
	require.ErrorIs(t, p.Run(t.Context(), 1, func(*Worker, int) { panic(cause) }), cause)
}

func TestCancellation(t *testing.T) {
	p := New(2)
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var ran atomic.Int32
	err := p.Run(ctx, 1000000, func(_ *Worker, u int) {
		if ran.Add(1) == 10 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, ran.Load(), int32(1000000))
	require.ErrorIs(t, p.Run(ctx, 1, func(*Worker, int) { t.Error("ran") }), context.Canceled)
}

// A context that ends after the last unit was taken does not spoil a complete result.
func TestCancelledAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, New(1).Run(ctx, 3, func(_ *Worker, u int) {
		if u == 2 {
			cancel()
		}
	}))
}

func TestConcurrentAndNestedRuns(t *testing.T) {
	p := New(3)
	defer p.Close()
	var wg sync.WaitGroup
	var total atomic.Int64
	for range 4 {
		wg.Go(func() {
			for range 50 {
				err := p.Run(context.Background(), 5, func(*Worker, int) {
					if err := p.Run(context.Background(), 3, func(*Worker, int) { total.Add(1) }); err != nil {
						t.Error(err)
					}
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(4*50*5*3), total.Load())
}

func TestOneProcessorRunsInline(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := New(4)
	require.NoError(t, p.Run(t.Context(), 10, func(w *Worker, _ int) {
		if w.ID != 0 {
			t.Error("not inline")
		}
	}))
}

func BenchmarkLaunch(b *testing.B) {
	p := New(2)
	defer p.Close()
	for b.Loop() {
		_ = p.Run(b.Context(), 2, func(*Worker, int) {})
	}
}
