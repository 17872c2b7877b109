package progen

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/internal/eager"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/passes"
	"github.com/gtc-project/gtc/runtime"
	"github.com/gtc-project/gtc/script"
	"github.com/gtc-project/gtc/tensor"
)

var (
	programs = flag.Int("programs", 60, "so many programs are made and compared")
	first    = flag.Uint64("first", 1, "the seed of the first program")
	show     = flag.Bool("show", false, "print the programs")
)

// Random programs give the same on the reference evaluator, call by call and compiled, as machine code with any number of threads, and op by
// op on the tape; so do their gradients.
func TestPrograms(t *testing.T) {
	n := *programs
	if testing.Short() {
		n = min(n, 10)
	}
	c := newComparer()
	failed := 0
	for i := range n {
		seed := *first + uint64(i)
		p := Generate(seed)
		if *show {
			t.Logf("seed %d\n%s", seed, p.Source)
		}
		if err := c.compare(p, seed); err != nil {
			t.Errorf("seed %d: %v\n# %s\n%s", seed, err, describe(p.Args), p.Source)
			if failed++; failed >= 20 {
				break
			}
		}
	}
	t.Logf("%d programs, %d of them raised an error (the same everywhere); first errors: %s", n, c.refused, strings.Join(c.errors, " | "))
	require.Less(t, c.refused, n/4+2, "most programs must run")
}

// Programs that were computed wrongly once.
func TestKeptPrograms(t *testing.T) {
	files, err := filepath.Glob("testdata/*.py")
	require.NoError(t, err)
	c := newComparer()
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			require.NoError(t, err)
			p := &Program{Source: string(src), Inexact: strings.Contains(string(src), "# inexact")}
			head, _, _ := strings.Cut(p.Source, "\n")
			g := &gen{Rand: newRand(uint64(len(src)))}
			for _, a := range strings.Fields(strings.TrimPrefix(head, "#")) {
				if strings.HasPrefix(a, "tensor") {
					typ, err := ir.ParseType(a)
					require.NoError(t, err)
					p.Args = append(p.Args, g.array(&variable{shape: typ.Shape(), dtype: typ.DType}))
					continue
				}
				d, err := ir.ParseDatum(a)
				require.NoError(t, err)
				p.Args = append(p.Args, d)
			}
			require.NoError(t, c.compare(p, 1))
		})
	}
}

// describe writes arguments as the first line of a kept program.
func describe(args []ir.Datum) string {
	var out []string
	for _, a := range args {
		if t, ok := a.(*ir.Array); ok {
			out = append(out, t.Type().String())
		} else {
			out = append(out, ir.FormatDatum(a))
		}
	}
	return strings.Join(out, " ")
}

// comparer runs programs in all ways.
type comparer struct {
	interp  *runtime.Engine
	cpu     []*runtime.Engine // none without LLVM
	refused int
	errors  []string
}

func newComparer() *comparer {
	c := &comparer{}
	c.interp, _ = runtime.New(runtime.Options{Target: runtime.Interp})
	for _, threads := range []int{1, 2, 3, 7} {
		if e, err := runtime.New(runtime.Options{Target: runtime.CPU, Threads: threads}); err == nil {
			c.cpu = append(c.cpu, e)
		}
	}
	return c
}

// outcome is what one way of running gives.
type outcome struct {
	way     string
	results []ir.Datum
	grads   []ir.Datum // nil where the way has none
	err     error
}

func (c *comparer) compare(p *Program, seed uint64) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	file, err := script.Parse("program.py", []byte(p.Source))
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	f, _, err := file.Lower("forward", nil)
	if err != nil && strings.Contains(err.Error(), "cannot be tracked") { // a write that needs a clone
		c.refused++
		return nil
	}
	if err != nil {
		return fmt.Errorf("lower: %w", err)
	}
	ref := guard("call by call", func(o *outcome) {
		ev := &ir.Evaluator{Resolve: passes.NewResolver().Resolve, RNG: ir.RNG{Seed: seed}}
		o.results, o.err = ev.Run(ctx, f, p.Args...)
	})
	if ref.err != nil {
		return c.allFail(ctx, f, p, ref.err)
	}
	var seeds []ir.Datum
	g := &gen{Rand: newRand(seed)}
	given := make([]bool, len(ref.results))
	for i, d := range ref.results {
		if ct := g.cotangent(d); ct != nil {
			given[i], seeds = true, append(seeds, ct)
		}
	}
	var wrt []int
	for i, a := range p.Args {
		if t, ok := a.(*ir.Array); ok && t.DType.IsFloat() {
			wrt = append(wrt, i)
		}
	}
	compiled, err := passes.Compile(f, p.Args, &autograd.Options{Wrt: wrt, Cotangents: given}, passes.Options{Verify: true})
	if err != nil {
		return fmt.Errorf("compile with gradient: %w", err)
	}
	plain, err := passes.Compile(f, p.Args, nil, passes.Options{Verify: true})
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	full := func(way string, e *runtime.Engine) outcome {
		return guard(way, func(o *outcome) {
			r := e.Runner()
			r.RNG.Seed = seed
			var all []ir.Datum
			if all, o.err = r.Run(ctx, compiled, append(slices.Clone(p.Args), seeds...)...); o.err == nil {
				o.results, o.grads = all[:len(ref.results)], all[len(ref.results):]
			}
		})
	}
	opt := full("compiled, evaluated", c.interp)
	ways := []outcome{opt}
	if len(c.cpu) > 0 {
		e := c.cpu[int(seed)%len(c.cpu)]
		ways = append(ways, full("cpu with gradient", e), guard("cpu", func(o *outcome) {
			r := e.Runner()
			r.RNG.Seed = seed
			o.results, o.err = r.Run(ctx, plain, p.Args...)
		}))
	}
	tape := c.tape(ctx, f, p, seed, seeds, wrt)
	if tape.err == nil || !strings.Contains(tape.err.Error(), "in place") {
		ways = append(ways, tape)
	}
	for _, w := range ways {
		if w.err != nil {
			return fmt.Errorf("%s: %w", w.way, w.err)
		}
		if err := same(ref.results, w.results, tolerance(p.Args, p.Inexact)); err != nil {
			return fmt.Errorf("%s: results differ from call by call: %w", w.way, err)
		}
		if w.grads != nil {
			if err := same(opt.grads, w.grads, tolerance(p.Args, p.Inexact || w.way == "eager")); err != nil {
				return fmt.Errorf("%s: gradients differ from compiled, evaluated: %w", w.way, err)
			}
		}
	}
	return nil
}

// allFail demands that a program which fails in one way fails in all.
func (c *comparer) allFail(ctx context.Context, f *ir.Func, p *Program, why error) error {
	c.refused++
	if len(c.errors) < 5 {
		c.errors = append(c.errors, why.Error())
	}
	for _, e := range append([]*runtime.Engine{c.interp}, c.cpu...) {
		o := guard(e.String(), func(o *outcome) { o.results, o.err = e.Run(ctx, f, p.Args...) })
		if o.err == nil {
			return fmt.Errorf("%s computes what fails call by call: %w", o.way, why)
		}
	}
	return nil
}

// tape runs op by op through package tensor.
func (c *comparer) tape(ctx context.Context, f *ir.Func, p *Program, seed uint64, seeds []ir.Datum, wrt []int) outcome {
	return guard("eager", func(o *outcome) {
		scope := tensor.NewScope(c.interp).WithGenerator(tensor.NewGenerator(seed))
		r := eager.Prepare(f).NewRun(scope)
		var leaves []*tensor.Tensor
		for i, a := range p.Args {
			if t, ok := a.(*ir.Array); ok {
				x := tensor.FromArray(t).With(scope)
				if slices.Contains(wrt, i) {
					x = x.RequiresGrad()
					leaves = append(leaves, x)
				}
				r.Bind(t, x)
			}
		}
		if o.results, o.err = r.Do(ctx, p.Args); o.err != nil {
			return
		}
		var outs []*tensor.Tensor
		var cts []*ir.Array
		for _, d := range leavesOf(o.results) {
			if a, ok := d.(*ir.Array); ok && a.DType.IsFloat() {
				outs = append(outs, r.Tensor(a))
			}
		}
		for _, d := range leavesOf(seeds) {
			if a, ok := d.(*ir.Array); ok {
				cts = append(cts, a)
			}
		}
		var grads []*tensor.Tensor
		if grads, o.err = eager.Grads(outs, cts, leaves); o.err != nil {
			return
		}
		o.grads = []ir.Datum{}
		for i, g := range grads {
			if g == nil {
				a := p.Args[wrt[i]].(*ir.Array)
				o.grads = append(o.grads, ir.NewArray(a.DType, a.Shape...))
				continue
			}
			if o.err = g.Err(); o.err != nil {
				return
			}
			o.grads = append(o.grads, g.Array())
		}
	})
}

// leavesOf flattens tuples.
func leavesOf(ds []ir.Datum) []ir.Datum {
	var out []ir.Datum
	for _, d := range ds {
		if t, ok := d.(ir.Tuple); ok {
			out = append(out, leavesOf(t)...)
		} else {
			out = append(out, d)
		}
	}
	return out
}

// guard turns panics into errors.
func guard(way string, run func(o *outcome)) (o outcome) {
	o.way = way
	defer func() {
		if r := recover(); r != nil {
			o.err = fmt.Errorf("panic: %v", r)
		}
	}()
	run(&o)
	return o
}

// cotangent is random, of d's structure.
func (g *gen) cotangent(d ir.Datum) ir.Datum {
	switch d := d.(type) {
	case ir.Tuple:
		out := make(ir.Tuple, len(d))
		for i, e := range d {
			out[i] = g.cotangent(e)
		}
		return out
	case *ir.Array:
		if d.DType.IsFloat() {
			return g.array(&variable{shape: d.Shape, dtype: d.DType})
		}
	}
	return nil
}

// tolerance is none where bits must agree, else that of the narrowest dtype that takes part, relative to a tensor's largest value.
func tolerance(args []ir.Datum, inexact bool) float64 {
	if !inexact {
		return 0
	}
	tol := 5e-4
	for _, a := range args {
		if t, ok := a.(*ir.Array); ok && t.DType == dtype.F16 {
			tol = 5e-2
		}
	}
	return tol
}

// same compares tensors: their bits, or within a tolerance where that is not 0.
func same(want, got []ir.Datum, tol float64) error {
	want, got = leavesOf(want), leavesOf(got)
	if len(want) != len(got) {
		return fmt.Errorf("%d values instead of %d", len(got), len(want))
	}
	for i := range want {
		x, ok := want[i].(*ir.Array)
		y, ok2 := got[i].(*ir.Array)
		if !ok || !ok2 {
			if ok != ok2 || ir.FormatDatum(want[i]) != ir.FormatDatum(got[i]) {
				return fmt.Errorf("value %d: %s instead of %s", i, ir.FormatDatum(got[i]), ir.FormatDatum(want[i]))
			}
			continue
		}
		if x.DType != y.DType || !slices.Equal(x.Shape, y.Shape) {
			return fmt.Errorf("value %d: %s instead of %s", i, y.Type(), x.Type())
		}
		if !x.DType.IsFloat() {
			if !slices.Equal(x.Ints(), y.Ints()) {
				return fmt.Errorf("value %d: %v instead of %v", i, y.Ints(), x.Ints())
			}
			continue
		}
		if err := sameFloats(x.Floats(), y.Floats(), tol); err != nil {
			return fmt.Errorf("value %d, %s, %w", i, x.Type(), err)
		}
	}
	return nil
}

func sameFloats(x, y []float64, tol float64) error {
	scale := 1.0
	for _, v := range x {
		if a := math.Abs(v); !math.IsInf(v, 0) && a > scale {
			scale = a
		}
	}
	for j, v := range x {
		w := y[j]
		switch {
		case math.IsNaN(v) && math.IsNaN(w) || math.Float64bits(v) == math.Float64bits(w):
		case tol > 0 && !finite(v) && !finite(w): // sums in another order meet Inf and NaN otherwise
		case tol > 0 && (v == w || math.Abs(v-w) <= tol*scale):
		default:
			return fmt.Errorf("element %d: %v instead of %v", j, w, v)
		}
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
