package trace

import (
	"context"
	"fmt"
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/runtime"
	"github.com/gtc-project/gtc/tensor"
)

// Check runs the program and the function on inputs and compares the results: they must agree within rtol and atol, NaN equal to NaN; so must what they
// write to the inputs. Both draw the same random numbers, and what they do to captured tensors and weights is undone.
func (p *Program) Check(fn Func, e *runtime.Engine, rtol, atol float64, inputs ...*tensor.Tensor) error {
	restore := p.keepState()
	defer restore()
	var rng ir.RNG
	scope := tensor.NewScope(e)
	must(scope.Generator().With(func(g *ir.RNG) error { rng = *g; return nil }))
	clones, copies := cloneInputs(inputs), cloneInputs(inputs)
	arrays := make([]*ir.Array, len(inputs))
	for i, x := range clones {
		arrays[i] = copies[i].Array()
		if inputs[i].NeedsGrad() {
			x = x.RequiresGrad().Clone()
		}
		clones[i] = x.With(scope)
	}
	want, err := call(fn, append([]*tensor.Tensor{}, clones...))
	start := rng
	must(scope.Generator().With(func(g *ir.RNG) error { *g = start; return nil }))
	if err != nil {
		return fmt.Errorf("the function itself fails: %w", err)
	}
	restore()
	got, err := p.runFrom(context.Background(), e, &rng, arrays)
	if err != nil {
		return fmt.Errorf("the traced function fails where the eager one does not: %w", err)
	}
	if len(got) != len(want) {
		return fmt.Errorf("the traced function gives %d results, the eager one %d", len(got), len(want))
	}
	for i, w := range want {
		if err := differ(fmt.Sprintf("result %d", i), w.Array(), got[i], rtol, atol); err != nil {
			return fmt.Errorf("%w%s", err, p.origin(i))
		}
	}
	for i, x := range clones {
		if err := differ("what is written to input "+p.Inputs[i], x.Array(), arrays[i], rtol, atol); err != nil {
			return err
		}
	}
	return nil
}

// keepState gives a function that puts weights and captured tensors back as they are now.
func (p *Program) keepState() (restore func()) {
	var undo []func()
	for _, k := range p.Updates {
		if k < len(p.Inputs) {
			continue
		}
		c := p.caps
		w := p.Weights[p.Func.ParamNames[k]]
		old := w.Copy()
		undo = append(undo, func() { tensor.FromArray(w).CopyFrom(tensor.FromArray(old)) })
		if i := k - len(p.Inputs); i < len(c) && !c[i].made {
			t, now := tensor.NoGrad(c[i].t.With(nil)), c[i].t.Array().Copy()
			undo = append(undo, func() { t.CopyFrom(tensor.FromArray(now)) })
		}
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

// origin says which operation gives a result.
func (p *Program) origin(i int) string {
	n := p.Func.Returns()[i].Def
	if n == nil {
		return ""
	}
	return fmt.Sprintf(" (it is computed by %s at %s)", describe(n), n.Pos)
}

func differ(what string, w *ir.Array, d ir.Datum, rtol, atol float64) error {
	g, ok := d.(*ir.Array)
	if !ok || fmt.Sprint(g.Shape) != fmt.Sprint(w.Shape) || g.DType != w.DType {
		return fmt.Errorf("%s is %s in the traced function, eagerly it is %s", what, ir.TypeOf(d), ir.TypeOf(w))
	}
	if !w.DType.IsFloat() {
		a, b := w.Ints(), g.Ints()
		for k := range a {
			if a[k] != b[k] {
				return fmt.Errorf("%s, element %d: the traced function gives %d, the eager one %d: it depends on something that the trace does not see", what, k, b[k], a[k])
			}
		}
		return nil
	}
	wf, gf := w.Floats(), g.Floats()
	for k := range wf {
		if wf[k] != gf[k] && !(math.IsNaN(wf[k]) && math.IsNaN(gf[k])) && !(math.Abs(wf[k]-gf[k]) <= atol+rtol*math.Abs(wf[k])) {
			return fmt.Errorf("%s, element %d: the traced function gives %g, the eager one %g: it depends on something that the trace does not see", what, k, gf[k], wf[k])
		}
	}
	return nil
}
