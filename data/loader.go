package data

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"math/rand/v2"
	"runtime/debug"
	"sync"
)

// Loader goes over the samples 0 to Len-1 in batches. B is whatever a batch is to the caller: arrays, tensors, a struct.
// The zero value of every optional field is a sensible default. A Loader is not changed by use; several epochs may run at once.
type Loader[B any] struct {
	Len       int    // number of samples
	BatchSize int    // samples per batch, at least 1
	Shuffle   bool   // visit the samples in an order drawn from Seed and the epoch's number; else in their own order
	Seed      uint64 // equal seeds give equal orders, on every machine
	DropLast  bool   // leave out a last batch with fewer than BatchSize samples
	Prefetch  int    // batches made ahead, concurrently; 0 means 2, negative means none

	// Load makes the batch of the given samples. It is called from several goroutines at once unless Prefetch is negative, and
	// should return early when ctx ends. It must not keep index. For random choices see Seed.
	Load func(ctx context.Context, index []int) (B, error)
}

// Batches is the number of batches of an epoch.
func (l *Loader[B]) Batches() int {
	if l.BatchSize < 1 || l.Len < 0 {
		return 0
	}
	if l.DropLast {
		return l.Len / l.BatchSize
	}
	return (l.Len + l.BatchSize - 1) / l.BatchSize
}

// Epoch gives the batches of one epoch, in an order that depends only on Seed and epoch. It ends after the first error, which is
// ctx's own when ctx ends. When the loop over it is left, by break too, no goroutine of it runs any more.
func (l *Loader[B]) Epoch(ctx context.Context, epoch int) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		var none B
		switch {
		case l.BatchSize < 1:
			yield(none, fmt.Errorf("data: BatchSize is %d; it must be at least 1", l.BatchSize))
			return
		case l.Len < 0:
			yield(none, fmt.Errorf("data: Len is %d; it must not be negative", l.Len))
			return
		case l.Load == nil:
			yield(none, errors.New("data: Load is nil; give the function that makes a batch"))
			return
		}
		order := l.order(epoch)
		if l.Prefetch < 0 {
			l.sequential(ctx, epoch, order, yield)
			return
		}
		l.ahead(ctx, epoch, order, yield)
	}
}

// order lists the samples in the order of the epoch.
func (l *Loader[B]) order(epoch int) []int {
	order := make([]int, l.Len)
	for i := range order {
		order[i] = i
	}
	if l.Shuffle {
		// Fisher and Yates's shuffle, written out: the standard library does not promise to keep its own the same.
		rng := rand.NewPCG(l.Seed, uint64(epoch))
		for i := len(order) - 1; i > 0; i-- {
			j, _ := bits.Mul64(rng.Uint64(), uint64(i)+1)
			order[i], order[j] = order[j], order[i]
		}
	}
	return order
}

// batch is the part of order that batch i covers.
func (l *Loader[B]) batch(order []int, i int) []int {
	return order[i*l.BatchSize : min((i+1)*l.BatchSize, len(order))]
}

func (l *Loader[B]) sequential(ctx context.Context, epoch int, order []int, yield func(B, error) bool) {
	for i := range l.Batches() {
		r := l.load(ctx, epoch, i, l.batch(order, i))
		if !yield(r.batch, r.err) || r.err != nil {
			return
		}
	}
}

type result[B any] struct {
	batch B
	err   error
}

// load makes batch i of an epoch. A panic of Load is an error like any other, since in a goroutine it would end the program.
func (l *Loader[B]) load(ctx context.Context, epoch, i int, index []int) (r result[B]) {
	if r.err = ctx.Err(); r.err != nil {
		return r
	}
	defer func() {
		if p := recover(); p != nil {
			r.err = fmt.Errorf("data: loading batch %d panicked: %v\n%s", i, p, debug.Stack())
		}
	}()
	r.batch, r.err = l.Load(context.WithValue(ctx, seedKey{}, batchSeed(l.Seed, epoch, i)), index)
	return r
}

type seedKey struct{}

// Seed is for the random choices (augmentation, say) that Load makes for a batch, from its ctx: it depends on the loader's Seed, the epoch and the batch's number,
// not on which goroutine makes the batch.
func Seed(ctx context.Context) uint64 {
	seed, _ := ctx.Value(seedKey{}).(uint64)
	return seed
}

func batchSeed(seed uint64, epoch, i int) uint64 {
	rng := rand.NewPCG(seed^rand.NewPCG(uint64(epoch), 1).Uint64(), uint64(i))
	return rng.Uint64()
}

// ahead keeps up to Prefetch batches in the making. The queue holds one channel per batch, in order; each gets exactly one result and
// has room for it, so no goroutine ever waits for the consumer except the one that fills the queue, and that one watches ctx.
func (l *Loader[B]) ahead(ctx context.Context, epoch int, order []int, yield func(B, error) bool) {
	depth := l.Prefetch
	if depth == 0 {
		depth = 2
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	// depth-1 batches wait in the queue and one is in the hands of the filling goroutine.
	queue := make(chan chan result[B], depth-1)
	running.Go(func() {
		defer close(queue)
		for i := range l.Batches() {
			out := make(chan result[B], 1)
			index := l.batch(order, i)
			running.Go(func() { out <- l.load(ctx, epoch, i, index) })
			select {
			case queue <- out:
			case <-ctx.Done():
				return
			}
		}
	})
	for out := range queue {
		r := <-out
		if !yield(r.batch, r.err) || r.err != nil {
			return
		}
	}
	// The queue closes early only when ctx has ended.
	if err := ctx.Err(); err != nil {
		var none B
		yield(none, err)
	}
}
