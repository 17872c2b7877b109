package driver

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/gtc-project/gtc/ir"
)

// Timing is what Bench measures. Times are in milliseconds, sizes in bytes.
type Timing struct {
	CompileMS    float64 `json:"compile_ms"` // reading, lowering, expanding, compiling
	FirstMS      float64 `json:"first_ms"`   // the first call
	MedianMS     float64 `json:"median_ms"`
	MinMS        float64 `json:"min_ms"`
	P99MS        float64 `json:"p99_ms"`
	Runs         int     `json:"runs"`
	PeakBytes    int64   `json:"peak_bytes"`    // the largest resident size of the process, less what it had before the model was loaded
	PlannedBytes int64   `json:"planned_bytes"` // what one run takes as a whole for intermediate results; 0 on the reference evaluator
	RSSBytes     int64   `json:"rss_bytes"`     // the largest resident size of the process
}

// Bench times what Run computes. Calls are repeated for at least minTime.
func Bench(ctx context.Context, path string, o *Options, minTime time.Duration) (*Timing, error) {
	before := peakRSS()
	start := time.Now()
	m, bound, e, err := open(path, o, false)
	if err != nil {
		return nil, err
	}
	call, err := m.Prepare(ctx, e, bound, o)
	if err != nil {
		return nil, err
	}
	if err := call.checkBudget(); err != nil {
		return nil, err
	}
	t := &Timing{CompileMS: ms(time.Since(start))}
	start = time.Now()
	last, err := call.Execute(ctx)
	if err != nil {
		return nil, err
	}
	t.FirstMS = ms(time.Since(start))
	if t.PlannedBytes, err = call.plannedBytes(); err != nil {
		return nil, err
	}
	runtime.GC()
	var times []float64
	for begin := time.Now(); len(times) == 0 || time.Since(begin) < minTime; {
		for _, r := range last { // as a caller does that is done with them
			ir.Release(r.Array)
		}
		start := time.Now()
		if last, err = call.Execute(ctx); err != nil {
			return nil, err
		}
		times = append(times, ms(time.Since(start)))
	}
	slices.Sort(times)
	t.Runs = len(times)
	t.MinMS = times[0]
	t.MedianMS = times[len(times)/2]
	t.P99MS = times[min(len(times)-1, len(times)*99/100)]
	t.RSSBytes = peakRSS()
	t.PeakBytes = max(t.RSSBytes-before, 0)
	return t, nil
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// peakRSS is the largest resident size of this process so far, or 0 where the system does not tell.
func peakRSS() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kb, _ := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
			return kb << 10
		}
	}
	return 0
}
