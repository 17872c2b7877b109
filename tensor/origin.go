package tensor

import "sync/atomic"

// A trace must know of a tensor that it captures whether it was made, written to, or drawn at random while the trace ran, but outside of it: then
// its value is no constant. So each storage keeps when these happened, by a clock that counts writes and draws.

var clock atomic.Uint64

// origin says when a storage came into being, when it was written to last, and when the random numbers that its value depends on were drawn; 0 is never.
type origin struct {
	created uint64
	written atomic.Uint64
	drawn   atomic.Uint64
}

func (o *origin) write(drawn uint64) {
	o.written.Store(clock.Add(1))
	if drawn > o.drawn.Load() {
		o.drawn.Store(drawn)
	}
}

// Clock gives the time now, for Since; it is another one at each call.
func Clock() uint64 { return clock.Add(1) }

// Since tells what happened to t's storage outside of traces since a time of Clock.
func (t *Tensor) Since(time uint64) (made, written, drawn bool) {
	if t.err != nil {
		return false, false, false
	}
	o := &t.store.origin
	return o.created >= time, o.written.Load() > time, o.drawn.Load() > time
}

// markDrawn says of results when the random numbers in them were drawn: now, or when those of the operands were.
func markDrawn(random bool, args, results []any) {
	var drawn uint64
	if random {
		drawn = clock.Add(1)
	} else {
		eachTensor(args, func(t *Tensor) { drawn = max(drawn, t.store.origin.drawn.Load()) })
	}
	if drawn == 0 {
		return
	}
	eachTensor(results, func(t *Tensor) {
		if drawn > t.store.origin.drawn.Load() {
			t.store.origin.drawn.Store(drawn)
		}
	})
}

// Recorded is a call that made tensors outside of a trace while one ran: a function that makes a constant of sizes, or draws random numbers, on no tensor of
// the trace. The trace records it where it meets such a tensor.
type Recorded struct {
	Op      Op
	Args    []any // as Tracer.Record takes them
	Results []any
}

var tracing atomic.Int64

// Tracing says that a trace starts (1) or ends (-1).
func Tracing(n int64) { tracing.Add(n) }

// Call is how t was made, where that is known: see Recorded.
func (t *Tensor) Call() *Recorded { return t.call }

func keepCall(op Op, args, results []any) {
	if tracing.Load() == 0 {
		return
	}
	c := &Recorded{Op: op, Args: saved(args), Results: results}
	eachTensor(results, func(t *Tensor) { t.call = c })
}
