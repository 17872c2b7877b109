package driver

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
)

// Tolerance says when two results count as equal: |a-b| <= Abs + Rel*|b|.
type Tolerance struct{ Rel, Abs float64 }

// Bisection is what Bisect finds.
type Bisection struct {
	Rewrites  int    `json:"rewrites"`                  // that compiling makes in all
	Number    int    `json:"number,omitempty"`          // of the first rewrite that changes a result, from 1; 0 where none does
	Rewrite   string `json:"rewrite,omitempty"`         // that rewrite: pass, kind, op and place in the source
	Target    bool   `json:"target,omitempty"`          // results differ before any rewrite: the target's kernels compute something else
	Change    string `json:"change,omitempty"`          // which result differs first, and by how much
	Checked   int    `json:"checked"`                   // how often the model was run
	Results   int    `json:"results"`                   // that were compared
	Reference string `json:"reference_error,omitempty"` // the reference evaluation fails, so that results are compared with this error
}

// Bisect looks for the first rewrite that changes a result of a call. The reference is the function as the front end gave it, with calls expanded and
// nothing else, on the reference evaluator.
func Bisect(ctx context.Context, path string, o *Options, names []string, tol Tolerance) (*Bisection, error) {
	m, bound, e, err := open(path, o, true)
	if err != nil {
		return nil, err
	}
	b := &bisector{m: m, o: o, args: m.arguments(bound), names: names, tol: tol, found: &Bisection{}}
	if o.Grad && len(bound.Cotangents) > 0 {
		if err := b.differentiate(ctx, e, bound); err != nil {
			return nil, err
		}
	}
	plain := passes.NewResolver()
	plain.Plain = true
	f, err := b.compile(&passes.Fuel{})
	if err != nil {
		return nil, err
	}
	b.want, b.wantErr = b.run(ctx, &ir.Evaluator{Resolve: plain.Resolve, RNG: ir.RNG{Seed: b.o.Seed}, Out: io.Discard}, f)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.wantErr != nil {
		b.found.Reference = firstLine(b.wantErr.Error())
	}
	b.found.Results = len(b.want)
	return b.found, b.search(ctx, e)
}

type bisector struct {
	m       *Model
	o       *Options
	args    []ir.Datum
	grad    *autograd.Options
	cts     []ir.Datum
	names   []string
	tol     Tolerance
	want    []*ir.Array
	wantErr error
	found   *Bisection
}

// differentiate makes the gradient part of what is compared.
func (b *bisector) differentiate(ctx context.Context, e *engine, bound *Bound) error {
	c, err := b.m.Prepare(ctx, e, bound, b.o)
	if err != nil {
		return err
	}
	b.grad, b.cts = c.grad.program.grad, c.grad.cts
	return nil
}

func (b *bisector) compile(fuel *passes.Fuel) (*ir.Func, error) {
	return passes.Compile(b.m.Func, b.args, b.grad, passes.Options{Passes: b.names, Fuel: fuel, Verify: true})
}

// runner is what runs the function: the reference evaluator, or an engine.
type runner interface {
	Run(ctx context.Context, f *ir.Func, args ...ir.Datum) ([]ir.Datum, error)
}

func (b *bisector) run(ctx context.Context, r runner, f *ir.Func) ([]*ir.Array, error) {
	b.found.Checked++
	out, err := r.Run(ctx, f, slices.Concat(b.args, b.cts)...)
	if err != nil {
		return nil, err
	}
	return Flatten(out...)
}

// search halves the number of rewrites.
func (b *bisector) search(ctx context.Context, e *engine) error {
	all := &passes.Fuel{Limit: math.MaxInt}
	change, err := b.try(ctx, e, all)
	b.found.Rewrites = all.Used
	if err != nil || change == "" {
		return err
	}
	b.found.Change = change
	if change, err = b.try(ctx, e, &passes.Fuel{}); err != nil || change != "" {
		b.found.Target, b.found.Change = true, change
		return err
	}
	b.found.Number = 1 + sort.Search(all.Used-1, func(i int) bool {
		if err != nil {
			return true
		}
		change := ""
		change, err = b.try(ctx, e, &passes.Fuel{Limit: i + 1})
		return change != ""
	})
	if err != nil {
		return err
	}
	last := &passes.Fuel{Limit: b.found.Number}
	b.found.Change, err = b.try(ctx, e, last)
	b.found.Rewrite = last.Last
	return err
}

// try says how the results after so many rewrites differ from the reference; "" where they do not.
func (b *bisector) try(ctx context.Context, e *engine, fuel *passes.Fuel) (string, error) {
	f, err := b.compile(fuel)
	if err != nil {
		return "it does not compile: " + firstLine(err.Error()), ctx.Err()
	}
	r := e.Runner()
	r.RNG, r.Out = ir.RNG{Seed: b.o.Seed}, io.Discard
	got, err := b.run(ctx, r, f)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	switch {
	case err != nil && b.wantErr != nil:
		return "", nil
	case err != nil:
		return "it fails: " + firstLine(err.Error()), nil
	case b.wantErr != nil:
		return "it gives results, but the reference fails", nil
	}
	return difference(got, b.want, b.tol), nil
}

// difference words the first result that differs; "" where none does.
func difference(got, want []*ir.Array, tol Tolerance) string {
	if len(got) != len(want) {
		return fmt.Sprintf("there are %d results instead of %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) {
			return fmt.Sprintf("result %d is %s instead of %s", i, g.Type(), w.Type())
		}
		worst, at := 0.0, -1
		gs, ws := g.Contiguous().Floats(), w.Contiguous().Floats()
		for k, x := range ws {
			d := math.Abs(gs[k] - x)
			same := gs[k] == x || math.IsNaN(gs[k]) && math.IsNaN(x) || d <= tol.Abs+tol.Rel*math.Abs(x) && !math.IsInf(x, 0)
			if !same && (at < 0 || d > worst) {
				worst, at = d, k
			}
		}
		if at >= 0 {
			return fmt.Sprintf("result %d differs at element %d: %v instead of %v", i, at, gs[at], ws[at])
		}
	}
	return ""
}

// String words what was found.
func (f *Bisection) String() string {
	var sb strings.Builder
	if f.Reference != "" {
		fmt.Fprintf(&sb, "the reference evaluation fails: %s\n", f.Reference)
	}
	switch {
	case f.Target:
		fmt.Fprintf(&sb, "results differ before any rewrite, so the target's kernels are at fault: %s\n", f.Change)
	case f.Number > 0:
		fmt.Fprintf(&sb, "rewrite %d of %d changes a result\n%s\n%s\n", f.Number, f.Rewrites, f.Rewrite, f.Change)
	default:
		fmt.Fprintf(&sb, "no difference: %d rewrites leave all %d results as they are\n", f.Rewrites, f.Results)
	}
	return sb.String()
}
