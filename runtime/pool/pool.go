// Package pool runs units of compiled work on persistent worker threads.
//
// Launching costs well under a microsecond while the workers are warm: each is locked to an OS thread and spins for some tens of
// microseconds on a mailbox of its own before it sleeps. The caller takes part as worker 0, and takes back work from workers that
// have not woken up by the time everything is done. A unit should stay below about a millisecond, because the garbage collector
// cannot stop machine code and cancellation is looked for between units.
package pool

import (
	"context"
	"fmt"
	"runtime"
	godebug "runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gtc-project/gtc/internal/debug"
	"github.com/gtc-project/gtc/runtime/jit"
)

// spin is how long an idle worker looks for work before it sleeps.
const spin = 30 * time.Microsecond

// Worker is what a unit runs on.
type Worker struct {
	ID    int // 0 for the caller, below Pool.Size
	stack *jit.Stack
	args  []int64
	mem   []byte
}

// Scratch is memory of n bytes of arbitrary content, aligned to 64, the same at every call.
func (w *Worker) Scratch(n int) unsafe.Pointer {
	if len(w.mem) < n+63 {
		w.mem = make([]byte, n+63)
	}
	p := unsafe.Pointer(&w.mem[0])
	return unsafe.Add(p, -uintptr(p)&63)
}

// Args is memory for the arguments of Call: n words of arbitrary content, the same at every call.
func (w *Worker) Args(n int) []int64 {
	if len(w.args) < n {
		w.args = make([]int64, max(n, 256))
	}
	return w.args[:n]
}

// Call runs machine code on the worker's own stack. See jit.Call for what args must be.
func (w *Worker) Call(f jit.Func, args unsafe.Pointer) {
	if w.stack == nil {
		s, err := jit.NewStack()
		if err != nil {
			panic(err) // no memory for a stack: Run turns it into an error
		}
		w.stack = s
	}
	jit.Call(f, args, w.stack)
}

// Pool is a set of workers. It is safe for concurrent use: when it is busy, a second caller runs its units alone.
type Pool struct {
	busy   sync.Mutex
	others []*thread // workers 1, 2, …; started at first use
	start  sync.Once
}

// thread is a worker with an OS thread of its own.
type thread struct {
	Worker
	mail   atomic.Pointer[job] // what to do next; taken by CompareAndSwap to nil by the worker, or back by the caller
	asleep atomic.Bool
	wake   chan struct{}
	stop   atomic.Bool
}

// Task is what Do runs.
type Task interface {
	// Unit does unit u of the work on worker w.
	Unit(w *Worker, u int)
}

// taskFunc is a function as a Task.
type taskFunc func(*Worker, int)

func (f taskFunc) Unit(w *Worker, u int) { f(w, u) }

// job is one Do. Jobs are used again.
type job struct {
	units   int64
	next    atomic.Int64 // the first unit that nobody has taken
	task    Task
	done    <-chan struct{}
	running atomic.Int64 // workers that took part and have not finished
	idle    chan struct{}
	mu      sync.Mutex
	err     error // the first one
}

// New makes a pool of n workers, the caller included; n <= 0 means GOMAXPROCS.
func New(n int) *Pool {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	p := &Pool{others: make([]*thread, n-1)}
	for i := range p.others {
		p.others[i] = &thread{Worker: Worker{ID: i + 1}, wake: make(chan struct{}, 1)}
	}
	return p
}

// Default is the process's pool, with as many workers as GOMAXPROCS says at first use.
var Default = sync.OnceValue(func() *Pool { return New(0) })

// Size is the number of workers, the caller included.
func (p *Pool) Size() int { return len(p.others) + 1 }

// Close ends the worker threads. No Run may be in progress or follow.
func (p *Pool) Close() {
	for _, t := range p.others {
		t.stop.Store(true)
		t.rouse()
	}
}

// Run calls f(worker, unit) for every unit in [0, units); see Do.
func (p *Pool) Run(ctx context.Context, units int, f func(w *Worker, unit int)) error {
	return p.Do(ctx, units, taskFunc(f))
}

// Do runs every unit of t in [0, units), in any order and on several workers at once, and returns when all have finished. A panic in
// t, or the end of ctx, stops further units and is returned as an error. Do itself does not allocate.
func (p *Pool) Do(ctx context.Context, units int, t Task) error {
	if units <= 0 {
		return ctx.Err()
	}
	if units == 1 {
		return runOne(ctx, t)
	}
	j := jobs.Get().(*job)
	j.units, j.task, j.done = int64(units), t, ctx.Done()
	j.next.Store(0)
	helpers := min(units, p.Size()) - 1
	if helpers > 0 {
		helpers = min(helpers, runtime.GOMAXPROCS(0)-1)
	}
	if helpers > 0 && p.busy.TryLock() {
		defer p.busy.Unlock()
		p.share(j, helpers)
	} else {
		j.runAlone()
	}
	err := j.result(ctx)
	j.task, j.done, j.err = nil, nil, nil // nobody else holds j any more
	jobs.Put(j)
	return err
}

var jobs = sync.Pool{New: func() any { return &job{idle: make(chan struct{}, 1)} }}

// callers are workers for goroutines that run units on their own.
var callers = sync.Pool{New: func() any { return new(Worker) }}

// runOne runs a single unit on the caller.
func runOne(ctx context.Context, t Task) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := callers.Get().(*Worker)
	defer func() {
		if r := recover(); r != nil {
			err = unitError(r, 0, 1)
		}
		callers.Put(w)
	}()
	t.Unit(w, 0)
	return nil
}

// unitError is the error for a panic in a unit.
func unitError(r any, unit, units int64) error {
	err, ok := r.(error)
	if !ok {
		err = fmt.Errorf("%v", r)
	}
	err = fmt.Errorf("pool: unit %d of %d failed: %w", unit, units, err)
	if debug.On("stack") {
		err = fmt.Errorf("%w\n%s", err, godebug.Stack())
	}
	return err
}

// result is the job's error, or the context's when units were left undone.
func (j *job) result(ctx context.Context) error {
	if j.err == nil && j.next.Load() >= stopped {
		return ctx.Err()
	}
	return j.err
}

// stopped in job.next says that units were left undone; it exceeds every number of units.
const stopped = 1 << 62

// runAlone runs the job's units on a worker of the moment.
func (j *job) runAlone() {
	w := callers.Get().(*Worker)
	j.work(w)
	callers.Put(w)
}

// share runs the job with the help of the first n threads.
func (p *Pool) share(j *job, n int) {
	p.start.Do(func() {
		for _, t := range p.others {
			go t.loop()
		}
	})
	j.running.Store(int64(n) + 1)
	for _, t := range p.others[:n] {
		t.mail.Store(j)
		if t.asleep.Load() {
			t.rouse()
		}
	}
	j.runAlone()
	finished := int64(1)
	for _, t := range p.others[:n] {
		if t.mail.CompareAndSwap(j, nil) {
			finished++ // it never woke up
		}
	}
	if j.running.Add(-finished) == 0 {
		return
	}
	for end := time.Now().Add(spin); time.Now().Before(end); {
		if j.running.Load() == 0 {
			break
		}
	}
	<-j.idle
}

// work takes units until there are none.
func (j *job) work(w *Worker) {
	unit := int64(-1)
	defer func() {
		if r := recover(); r != nil {
			j.mu.Lock()
			if j.err == nil {
				j.err = unitError(r, unit, j.units)
			}
			j.mu.Unlock()
			j.next.Store(stopped)
		}
	}()
	for {
		if j.done != nil {
			select {
			case <-j.done:
				if j.next.Load() < j.units {
					j.next.Store(stopped)
				}
				return
			default:
			}
		}
		unit = j.next.Add(1) - 1
		if unit >= j.units {
			return
		}
		j.task.Unit(w, int(unit))
	}
}

func (t *thread) rouse() {
	select {
	case t.wake <- struct{}{}:
	default: // it has a wake-up call waiting
	}
}

// loop is a worker's life.
func (t *thread) loop() {
	runtime.LockOSThread()
	for {
		j := t.await()
		if j == nil {
			return
		}
		j.work(&t.Worker)
		if j.running.Add(-1) == 0 {
			j.idle <- struct{}{}
		}
	}
}

// await returns the next job, or nil at the end of the pool.
func (t *thread) await() *job {
	for {
		end := time.Now().Add(spin)
		for time.Now().Before(end) {
			for range 32 {
				if j := t.take(); j != nil {
					return j
				}
			}
		}
		t.asleep.Store(true)
		if j := t.take(); j != nil { // posted before asleep was visible
			t.asleep.Store(false)
			return j
		}
		<-t.wake
		t.asleep.Store(false)
		if t.stop.Load() {
			return nil
		}
	}
}

func (t *thread) take() *job {
	if j := t.mail.Load(); j != nil && t.mail.CompareAndSwap(j, nil) {
		return j
	}
	return nil
}
