package driver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/internal/driver"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
	"github.com/gtc-project/gtc/runtime"
)

// bitsThreads are the numbers of threads of the cpu target that are compared.
var bitsThreads = []int{1, 2, 5}

// TestBits runs conformance cases, and gradients of them, on the cpu target with different numbers of threads and on the reference
// evaluator, fused, unfused and call by call. Bits must never depend on the number of threads; where no contraction takes part they
// must not depend on the rest either. A sample of the cases is run; all of them with GTC_TEST_ALL=1 in the environment.
func TestBits(t *testing.T) {
	if testing.Short() {
		t.Skip("the conformance cases take a while")
	}
	interp, err := runtime.New(runtime.Options{Target: runtime.Interp})
	require.NoError(t, err)
	var cpus []*runtime.Engine
	for _, n := range bitsThreads {
		e, err := runtime.New(runtime.Options{Target: runtime.CPU, Threads: n})
		if err != nil {
			t.Skip(err)
		}
		cpus = append(cpus, e)
	}
	ran, exact := 0, 0
	for _, name := range findCases(t) {
		if os.Getenv("GTC_TEST_ALL") == "" && !sampled(name, 16) {
			continue
		}
		if name == "pitfalls/I04_index_beyond_int32_in_expanded_view" {
			continue // its gradient is too large for memory
		}
		b, err := loadForBits(name)
		if err != nil {
			continue // a case that must be refused
		}
		b.interp, b.cpus = interp, cpus
		for _, what := range b.functions() {
			isExact, err := b.compare(what)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if ran++; isExact {
				exact++
			}
		}
	}
	t.Logf("%d functions and gradients compared, %d of them without a contraction", ran, exact)
	require.NotZero(t, exact)
}

// sampled draws one name in n.
func sampled(name string, n uint32) bool {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()%n == 0
}

// bitsCase is a case that runs, with the ways to run it.
type bitsCase struct {
	f      *ir.Func
	args   []ir.Datum
	want   []ir.Datum // the results, call by call
	interp *runtime.Engine
	cpus   []*runtime.Engine
}

func loadForBits(name string) (*bitsCase, error) {
	dir := filepath.Join(goldenCases, filepath.FromSlash(name))
	o := driver.Options{Inputs: filepath.Join(dir, "in.npz"), Entry: "forward"}
	var meta caseMeta
	data, err := os.ReadFile(filepath.Join(dir, "meta.json"))
	if err == nil {
		err = json.Unmarshal(data, &meta)
	}
	if err != nil {
		return nil, err
	}
	o.Grad = meta.Grad // the file then holds cotangents too
	m, err := driver.Load(filepath.Join(dir, "model.py"), &o)
	if err != nil {
		return nil, err
	}
	bound, err := driver.Arguments(m.Params, &o)
	if err != nil {
		return nil, err
	}
	b := &bitsCase{f: m.Func, args: bound.Args}
	for _, w := range m.Weights {
		b.args = append(b.args, w.Array)
	}
	ev := &ir.Evaluator{Resolve: passes.NewResolver().Resolve, Out: &bytes.Buffer{}}
	b.want, err = ev.Run(context.Background(), b.f, b.args...)
	return b, err
}

// functions are nil, for the case's function itself, and its gradient's options where it has one.
func (b *bitsCase) functions() []*autograd.Options {
	o := &autograd.Options{Cotangents: make([]bool, len(b.want))}
	for i, d := range b.want {
		a, ok := d.(*ir.Array)
		o.Cotangents[i] = ok && a.DType.IsFloat()
	}
	for i, d := range b.args {
		if a, ok := d.(*ir.Array); ok && a.DType.IsFloat() {
			o.Wrt = append(o.Wrt, i)
		}
	}
	if _, err := passes.Compile(b.f, b.args, o, passes.Options{}); err != nil || len(o.Wrt) == 0 || !slices.Contains(o.Cotangents, true) {
		return []*autograd.Options{nil}
	}
	return []*autograd.Options{nil, o}
}

// compare compares the ways of running the function, or its gradient. exact says that no contraction takes part.
func (b *bitsCase) compare(grad *autograd.Options) (exact bool, err error) {
	fused, err := passes.Compile(b.f, b.args, grad, passes.Options{})
	if err != nil {
		return false, err
	}
	unfused, err := passes.Compile(b.f, b.args, grad, passes.Options{Passes: []string{"expand-grad", "specialise"}})
	if err != nil {
		return false, err
	}
	args, what := slices.Clone(b.args), "function"
	if grad != nil {
		args, what = append(args, b.cotangents(grad)...), "gradient"
	}
	exact = true
	unfused.Body.Walk(func(n *ir.Node) { exact = exact && n.Op.Class != ir.Contract && n.Op.Class != ir.Generic })
	want := runForBits(b.cpus[0], fused, args)
	check := func(way string, e *runtime.Engine, f *ir.Func, want bitsOutcome) {
		if why := want.differs(runForBits(e, f, args)); why != "" && err == nil {
			err = fmt.Errorf("%s: fused on 1 thread and %s: %s", what, way, why)
		}
	}
	for i, e := range b.cpus[1:] {
		check(fmt.Sprintf("fused on %d threads", bitsThreads[i+1]), e, fused, want)
	}
	if !exact { // what is not fused may still differ from what is, but not with the threads
		loose := runForBits(b.cpus[0], unfused, args)
		check("unfused on several threads", b.cpus[len(b.cpus)-1], unfused, loose)
		return exact, err
	}
	check("unfused", b.cpus[0], unfused, want)
	check("fused on the evaluator", b.interp, fused, want)
	if grad == nil {
		check("call by call on the evaluator", b.interp, b.f, want)
	}
	return exact, err
}

// cotangents are numbers of different sizes and signs.
func (b *bitsCase) cotangents(grad *autograd.Options) []ir.Datum {
	var out []ir.Datum
	for i, given := range grad.Cotangents {
		if !given {
			continue
		}
		like := b.want[i].(*ir.Array)
		ct := ir.NewArray(like.DType, like.Shape...)
		for j := range ct.Len() {
			ct.SetFloat(j, math.Sin(float64(j+1)))
		}
		out = append(out, ct)
	}
	return out
}

type bitsOutcome struct {
	arrays []*ir.Array
	err    error
}

func runForBits(e *runtime.Engine, f *ir.Func, args []ir.Datum) (o bitsOutcome) {
	r := e.Runner()
	r.RNG, r.Out = ir.RNG{Seed: 1}, &bytes.Buffer{}
	out, err := r.Run(context.Background(), f, args...)
	if err == nil {
		o.arrays, err = driver.Flatten(out...)
	}
	o.err = err
	return o
}

// differs says where the outcomes differ, or "". NaNs are equal.
func (o bitsOutcome) differs(other bitsOutcome) string {
	if o.err != nil || other.err != nil {
		if o.err == nil || other.err == nil {
			return fmt.Sprintf("one fails: %v, %v", o.err, other.err)
		}
		return ""
	}
	if len(o.arrays) != len(other.arrays) {
		return fmt.Sprintf("%d and %d results", len(o.arrays), len(other.arrays))
	}
	for i, a := range o.arrays {
		b := other.arrays[i]
		switch {
		case !a.Type().Equal(b.Type()):
			return fmt.Sprintf("result %d is %s and %s", i, a.Type(), b.Type())
		case !a.DType.IsFloat():
			if !slices.Equal(a.Ints(), b.Ints()) {
				return fmt.Sprintf("result %d: %v and %v", i, a, b)
			}
		default:
			y := b.Floats()
			for j, x := range a.Floats() {
				if math.Float64bits(x) != math.Float64bits(y[j]) && !(math.IsNaN(x) && math.IsNaN(y[j])) {
					return fmt.Sprintf("element %d of result %d is %v and %v", j, i, x, y[j])
				}
			}
		}
	}
	return ""
}
