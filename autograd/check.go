package autograd

import (
	"fmt"
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Runner runs a function, for example (*ir.Evaluator).Run with a context.
type Runner func(f *ir.Func, args ...ir.Datum) ([]ir.Datum, error)

// Check compares the gradient of f with central finite differences at args: every float64 tensor in the arguments, containers
// included, is varied element by element, with f's results weighted by fixed pseudo-random cotangents. order 2 checks the
// gradient of the gradient too. It fails with the first element that is off by more than tol, relative to 1 + its magnitude.
func Check(run Runner, f *ir.Func, order int, tol float64, args ...ir.Datum) error {
	var wrt []int
	for i, a := range args {
		if len(leaves(a)) > 0 {
			wrt = append(wrt, i)
		}
	}
	f = f.Clone()
	if err := ExpandGradNodes(f); err != nil {
		return err
	}
	out, err := run(f, args...)
	if err != nil {
		return err
	}
	has := make([]bool, len(out))
	var cts []ir.Datum
	for i, o := range out {
		if len(leaves(o)) > 0 {
			has[i] = true
			cts = append(cts, weights(o, i))
		}
	}
	g, err := Grad(f, wrt, has)
	if err != nil {
		return err
	}
	if errs := ir.Verify(g); len(errs) > 0 {
		return fmt.Errorf("the gradient function is malformed: %w\n%s", errs[0], g)
	}
	gargs := append(append([]ir.Datum{}, args...), cts...)
	got, err := run(g, gargs...)
	if err != nil {
		return fmt.Errorf("running the gradient: %w\n%s", err, g)
	}
	if err := compareGrads(run, f, has, cts, wrt, got[len(out):], args, tol); err != nil {
		return err
	}
	if order > 1 {
		if err := Check(run, g, order-1, tol*10, gargs...); err != nil {
			return fmt.Errorf("order %d: %w", order, err)
		}
	}
	return nil
}

func compareGrads(run Runner, f *ir.Func, has []bool, cts []ir.Datum, wrt []int, grads, args []ir.Datum, tol float64) error {
	loss := func() (float64, error) {
		out, err := run(f, args...)
		if err != nil {
			return 0, err
		}
		sum, k := 0.0, 0
		for i, o := range out {
			if !has[i] {
				continue
			}
			ws := leaves(cts[k])
			k++
			for j, x := range leaves(o) {
				w, v := ws[j].Floats(), x.Floats()
				for e := range v {
					sum += v[e] * w[e]
				}
			}
		}
		return sum, nil
	}
	const h = 1e-5
	for k, w := range wrt {
		gs := leaves(grads[k])
		if len(gs) != len(leaves(args[w])) {
			return fmt.Errorf("the gradient of argument %d is %s for %s", w, ir.TypeOf(grads[k]), ir.TypeOf(args[w]))
		}
		orig := args[w]
		for l, x := range leaves(orig) {
			for e := 0; e < x.Len(); e++ {
				var at [2]float64
				for s, dx := range []float64{h, -h} {
					leaf := -1
					args[w] = mapLeaves(orig, func(a *ir.Array) ir.Datum {
						a = a.Copy()
						if leaf++; leaf == l {
							a.SetFloat(e, a.Float(e)+dx)
						}
						return a
					})
					v, err := loss()
					if err != nil {
						return err
					}
					at[s] = v
				}
				args[w] = orig
				want, got := (at[0]-at[1])/(2*h), gs[l].Floats()[e]
				if !(math.Abs(want-got) <= tol*(1+math.Abs(want))) {
					return fmt.Errorf("argument %d, tensor %d, element %d: the gradient is %g, finite differences give %g", w, l, e, got, want)
				}
			}
		}
	}
	return nil
}

// leaves are the float64 tensors of a value, in order.
func leaves(d ir.Datum) []*ir.Array {
	var out []*ir.Array
	mapLeaves(d, func(a *ir.Array) ir.Datum { out = append(out, a); return a })
	return out
}

// mapLeaves replaces every float64 tensor of a value.
func mapLeaves(d ir.Datum, f func(*ir.Array) ir.Datum) ir.Datum {
	all := func(ds []ir.Datum) []ir.Datum {
		out := make([]ir.Datum, len(ds))
		for i, e := range ds {
			out[i] = mapLeaves(e, f)
		}
		return out
	}
	switch d := d.(type) {
	case *ir.Array:
		if d.DType == dtype.F64 {
			return f(d)
		}
	case ir.List:
		return ir.NewList(all(d.Elems())...)
	case ir.Tuple:
		return ir.Tuple(all(d))
	case *ir.Dict:
		return ir.NewDict(d.Keys, all(d.Values))
	}
	return d
}

// weights are cotangents for a result: every tensor filled with fixed numbers, everything else None.
func weights(d ir.Datum, seed int) ir.Datum {
	switch v := d.(type) {
	case *ir.Array:
		if v.DType != dtype.F64 {
			return nil
		}
		out := ir.NewArray(v.DType, v.Shape...)
		for e := 0; e < out.Len(); e++ {
			out.SetFloat(e, math.Sin(float64(3*e+7*seed+1)))
		}
		return out
	case ir.List:
		out := make([]ir.Datum, v.Len())
		for i, e := range v.Elems() {
			out[i] = weights(e, seed+i)
		}
		return ir.NewList(out...)
	case ir.Tuple:
		out := make(ir.Tuple, len(v))
		for i, e := range v {
			out[i] = weights(e, seed+i)
		}
		return out
	case *ir.Dict:
		out := make([]ir.Datum, len(v.Values))
		for i, e := range v.Values {
			out[i] = weights(e, seed+i)
		}
		return ir.NewDict(v.Keys, out)
	}
	return nil
}
