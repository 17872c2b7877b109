package tensor

import (
	"errors"
	"fmt"
	"math"
)

// GradCheck compares the gradients of f with central finite differences at inputs: every element of the inputs that require a gradient is varied, and the
// results are weighted by fixed pseudo-random numbers. These inputs must be f64; f must not change them. The error names the first element that is off by more than
// 1e-5, relative to 1 + its magnitude.
func GradCheck(f func(in []*Tensor) []*Tensor, inputs []*Tensor) error {
	wrt := differentiable(inputs)
	if len(wrt) == 0 {
		return errors.New("tensor.GradCheck: no input requires a gradient; it needs f64 inputs that do")
	}
	for i, x := range wrt {
		if x.DType() != F64 {
			return fmt.Errorf("tensor.GradCheck: input %d is %s: finite differences need f64", i, x.DType())
		}
	}
	loss := func() *Tensor {
		sum := Full(F64, 0.0)
		for i, y := range f(inputs) {
			if y.err == nil && !y.arr.DType.IsFloat() {
				continue
			}
			sum = sum.Add(y.Mul(weightsLike(y, i)).Sum())
		}
		return sum
	}
	grads, err := Grad(loss(), wrt, AllowUnused())
	if err != nil {
		return err
	}
	const h = 1e-5
	for i, x := range wrt {
		g := make([]float64, x.NumElems())
		if grads[i] != nil {
			g = grads[i].arr.Floats()
		}
		for e, off := range offsets(x) {
			old := x.arr.Float(off)
			var at [2]float64
			for k, dx := range []float64{h, -h} {
				x.arr.SetFloat(off, old+dx)
				if at[k], err = loss().Item(); err != nil {
					break
				}
			}
			x.arr.SetFloat(off, old)
			if err != nil {
				return err
			}
			if want := (at[0] - at[1]) / (2 * h); !(math.Abs(want-g[e]) <= 1e-5*(1+math.Abs(want))) {
				return fmt.Errorf("tensor.GradCheck: input %d, element %d: the gradient is %g, finite differences give %g", i, e, g[e], want)
			}
		}
	}
	return nil
}

// GradGradCheck is GradCheck for the gradient of f.
func GradGradCheck(f func(in []*Tensor) []*Tensor, inputs []*Tensor) error {
	return GradCheck(func(in []*Tensor) []*Tensor {
		var outs, cts []*Tensor
		for i, y := range f(in) {
			if y.err != nil {
				return []*Tensor{y}
			}
			if y.NeedsGrad() {
				outs, cts = append(outs, y), append(cts, weightsLike(y, i))
			}
		}
		gs, err := Grads(outs, differentiable(in), CreateGraph(), AllowUnused(), Cotangent(cts...))
		if err != nil {
			return []*Tensor{failed(err)}
		}
		var out []*Tensor
		for _, g := range gs {
			if g != nil {
				out = append(out, g)
			}
		}
		return out
	}, inputs)
}

func differentiable(ts []*Tensor) []*Tensor {
	var out []*Tensor
	for _, t := range ts {
		if t.NeedsGrad() {
			out = append(out, t)
		}
	}
	return out
}

// weightsLike are fixed numbers in t's shape.
func weightsLike(t *Tensor, seed int) *Tensor {
	if t.err != nil {
		return t
	}
	w := Zeros(t.arr.DType, t.arr.Shape...)
	for e := range w.arr.Len() {
		w.arr.SetFloat(e, math.Sin(float64(3*e+7*seed+1)))
	}
	return w
}

// offsets are the places of t's elements in its memory, in row-major order.
func offsets(t *Tensor) []int {
	var out []int
	t.arr.EachRow(func(off, n, stride int) {
		for k := range n {
			out = append(out, off+k*stride)
		}
	})
	return out
}
