package data_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/data"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// indices is a Load whose batch is the sample numbers themselves.
func indices(_ context.Context, index []int) ([]int, error) { return slices.Clone(index), nil }

func collect(t *testing.T, l *data.Loader[[]int], epoch int) [][]int {
	t.Helper()
	var out [][]int
	for b, err := range l.Epoch(t.Context(), epoch) {
		require.NoError(t, err)
		out = append(out, b)
	}
	require.Len(t, out, l.Batches())
	return out
}

func TestBatchesInOrder(t *testing.T) {
	for _, prefetch := range []int{-1, 0, 1, 5} {
		l := &data.Loader[[]int]{Len: 7, BatchSize: 3, Prefetch: prefetch, Load: indices}
		require.Equal(t, [][]int{{0, 1, 2}, {3, 4, 5}, {6}}, collect(t, l, 0))
		l.DropLast = true
		require.Equal(t, [][]int{{0, 1, 2}, {3, 4, 5}}, collect(t, l, 0))
		l.Len = 0
		require.Empty(t, collect(t, l, 0))
	}
}

// TestShuffleDependsOnSeedAndEpochOnly: every sample comes once, orders repeat, and prefetching changes nothing. The literal order keeps
// it the same from one release to the next.
func TestShuffleDependsOnSeedAndEpochOnly(t *testing.T) {
	l := &data.Loader[[]int]{Len: 100, BatchSize: 8, Shuffle: true, Seed: 7, Load: indices}
	first := slices.Concat(collect(t, l, 0)...)
	require.Equal(t, first, slices.Concat(collect(t, l, 0)...))
	require.NotEqual(t, first, slices.Concat(collect(t, l, 1)...))
	l.Prefetch = -1
	require.Equal(t, first, slices.Concat(collect(t, l, 0)...))
	sorted := slices.Sorted(slices.Values(first))
	for i, v := range sorted {
		require.Equal(t, i, v)
	}
	ten := &data.Loader[[]int]{Len: 10, BatchSize: 10, Shuffle: true, Seed: 1, Load: indices}
	require.Equal(t, []int{7, 6, 1, 3, 2, 4, 8, 9, 0, 5}, collect(t, ten, 0)[0])
}

// TestBoundedAndOrderedPrefetch: batches that finish out of order are delivered in order, and no more than Prefetch are ahead.
func TestBoundedAndOrderedPrefetch(t *testing.T) {
	const depth = 3
	var started, consumed atomic.Int64
	l := &data.Loader[int]{Len: 40, BatchSize: 1, Prefetch: depth, Load: func(_ context.Context, index []int) (int, error) {
		ahead := started.Add(1) - consumed.Load()
		if ahead > depth+1 { // the one in the consumer's hands is not ahead
			return 0, fmt.Errorf("%d batches ahead", ahead)
		}
		time.Sleep(time.Duration(index[0]*7%3) * time.Millisecond)
		return index[0], nil
	}}
	want := 0
	for b, err := range l.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		require.Equal(t, want, b)
		want++
		consumed.Add(1)
	}
	require.Equal(t, 40, want)
}

func TestErrorEndsTheEpoch(t *testing.T) {
	bad := errors.New("bad sample")
	l := &data.Loader[int]{Len: 10, BatchSize: 1, Load: func(_ context.Context, index []int) (int, error) {
		if index[0] == 3 {
			return 0, bad
		}
		return index[0], nil
	}}
	var got []int
	var last error
	for b, err := range l.Epoch(t.Context(), 0) {
		if last = err; err == nil {
			got = append(got, b)
		}
	}
	require.Equal(t, []int{0, 1, 2}, got)
	require.ErrorIs(t, last, bad)
}

func TestAPanicOfLoadIsAnError(t *testing.T) {
	for _, prefetch := range []int{-1, 3} {
		l := &data.Loader[int]{Len: 3, BatchSize: 1, Prefetch: prefetch, Load: func(_ context.Context, index []int) (int, error) {
			return []int{5}[index[0]], nil
		}}
		var last error
		for _, err := range l.Epoch(t.Context(), 0) {
			last = err
		}
		require.ErrorContains(t, last, "batch 1 panicked")
	}
}

// TestSeedsOfBatches: they are all different, and the same whoever makes the batch.
func TestSeedsOfBatches(t *testing.T) {
	seeds := func(prefetch, epoch int) (out []uint64) {
		l := &data.Loader[uint64]{Len: 20, BatchSize: 1, Seed: 3, Prefetch: prefetch, Load: func(ctx context.Context, _ []int) (uint64, error) {
			return data.Seed(ctx), nil
		}}
		for s, err := range l.Epoch(t.Context(), epoch) {
			require.NoError(t, err)
			out = append(out, s)
		}
		return out
	}
	require.Equal(t, seeds(-1, 1), seeds(4, 1))
	both := append(seeds(4, 0), seeds(4, 1)...)
	slices.Sort(both)
	require.Len(t, slices.Compact(both), 40)
}

// TestNothingIsLeftRunning: after a break, a cancel or an error no goroutine of the loader remains.
func TestNothingIsLeftRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	block := func(ctx context.Context, index []int) (int, error) {
		if index[0] < 2 {
			return index[0], nil
		}
		<-ctx.Done() // like a slow read that heeds ctx
		return 0, ctx.Err()
	}
	l := &data.Loader[int]{Len: 100, BatchSize: 1, Prefetch: 4, Load: block}
	for range l.Epoch(t.Context(), 0) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for b, err := range l.Epoch(ctx, 0) {
		if last = err; b == 1 {
			cancel()
		}
	}
	require.ErrorIs(t, last, context.Canceled)
	for range 100 { // a goroutine that is done may take a moment to vanish from the count
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

func TestWrongUseIsAnError(t *testing.T) {
	for _, l := range []*data.Loader[[]int]{{Len: 1, Load: indices}, {Len: -1, BatchSize: 1, Load: indices}, {Len: 1, BatchSize: 1}} {
		for _, err := range l.Epoch(t.Context(), 0) {
			require.Error(t, err)
		}
	}
	_, err := data.New()
	require.ErrorContains(t, err, "at least one")
	_, err = data.New(data.Field{Name: "x", Array: ir.NewArray(dtype.F32)})
	require.ErrorContains(t, err, "no dimension")
	_, err = data.New(data.Field{Name: "x", Array: ir.NewArray(dtype.F32, 2)}, data.Field{Name: "y", Array: ir.NewArray(dtype.F32, 3)})
	require.ErrorContains(t, err, "3 samples")
}

func TestMNIST(t *testing.T) {
	d, err := data.MNIST("../testdata/mnist/mnist-test-2k.npz")
	require.NoError(t, err)
	require.Equal(t, 2000, d.Len())
	l := &data.Loader[data.Batch]{Len: d.Len(), BatchSize: 500, Shuffle: true, Load: d.Load}
	var counts [10]int
	var sum, squares float64
	for batch, err := range l.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		require.Equal(t, []int{500, 1, 28, 28}, batch.Field("images").Shape)
		for _, c := range batch.Field("labels").Ints() {
			counts[c]++
		}
		for _, v := range batch.Field("images").Floats() {
			sum += v
			squares += v * v
		}
	}
	for _, c := range counts {
		require.Equal(t, 200, c)
	}
	n := float64(2000 * 28 * 28)
	require.InDelta(t, 0, sum/n, 0.05)
	require.InDelta(t, 1, math.Sqrt(squares/n), 0.05)
}

// ExampleLoader goes over a small dataset in batches of two.
func ExampleLoader() {
	d, err := data.New(data.Field{Name: "x", Array: ir.FromFloats(dtype.F32, []int{3}, []float64{10, 20, 30})})
	if err != nil {
		fmt.Println(err)
		return
	}
	loader := data.Loader[data.Batch]{Len: d.Len(), BatchSize: 2, Load: d.Load}
	for batch, err := range loader.Epoch(context.Background(), 0) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(batch.Field("x"))
	}
	// Output:
	// f32[2]{10.0,20.0}
	// f32[1]{30.0}
}
