package aten

import (
	"fmt"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Fractional max pooling (Graham, arXiv:1412.6071): windows of one size that start at pseudo-random places.

func init() {
	for n := 2; n <= 3; n++ {
		name := fmt.Sprintf("fractional_max_pool%dd", n)
		params := fmt.Sprintf("(Tensor input, int[%d] kernel_size, int[%d]? output_size=None, float[]? output_ratio=None, bool return_indices=False, Tensor? _random_samples=None)", n, n)
		def(NN, name+params+" -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value { return e.fractionalMaxPool(name, n, a)[0] }), isRandom)
		def(NN, name+"_with_indices"+params+" -> (Tensor, Tensor)", func(b *ir.Builder, a []*ir.Value) []*ir.Value {
			return em{b}.fractionalMaxPool(name, n, a)
		}, isRandom)
	}
}

// fractionalMaxPool gives the maxima of the windows of x [N, C, spatial…] (or without N) and their places in the plane.
func (e em) fractionalMaxPool(name string, n int, a []*ir.Value) []*ir.Value {
	x, unbatched := e.poolOperand(name, n, a[0])
	kernel := e.repeated(a[1], n, "kernel_size")
	s := e.NeedShape(x)
	size := s[2:]
	out := e.fractionalSize(name, n, size, a[2], a[3])
	for i, k := range kernel {
		if k < 1 || out[i] < 1 || out[i]+k-1 > size[i] {
			e.Failf("%s: pool size %v and output size %v do not fit an input of size %v: output + pool - 1 must not be larger than the input", name, kernel, out, s)
		}
	}
	samples := a[5]
	if isNone(samples) {
		samples = e.uniform(e.NeedDType(x), []int{s[0], s[1], n}, a[6])
	}
	if got := e.NeedShape(samples); !sameInts(got, []int{s[0], s[1], n}) {
		e.Failf("%s: expected _random_samples of shape %v, got %v", name, []int{s[0], s[1], n}, got)
	}
	// the place of every element of every window in its plane, [N, C, out…, kernel…]
	var place *ir.Value
	for i := range n {
		sample := e.slice(samples, 2, n-1-i, n-i) // the last dim's comes first
		at := e.insert(e.fractionalStarts(sample, size[i], out[i], kernel[i]), 3)
		at = e.add(at, e.Op("iota", e.Int(kernel[i]), e.DType(dtype.I64))) // [N, C, out, kernel]
		shape := append(append([]int{}, s[:2]...), ones(2*n)...)
		shape[2+i], shape[2+n+i] = out[i], kernel[i]
		at = e.reshape(at, shape...)
		if place == nil {
			place = at
			continue
		}
		place = e.add(e.mul(place, e.Int(size[i])), at)
	}
	planes := []int{s[0], s[1], product(out) * product(kernel)}
	flat := e.reshape(x, s[0], s[1], product(size))
	windows := []int{s[0], s[1], product(out), product(kernel)}
	values := e.reshape(e.Op("gather", flat, e.Int(2), e.reshape(place, planes...)), windows...)
	best := e.Op("argmax", values, e.Int(3), e.Bool(true))
	shape := catInts(s[:2], out)
	results := []*ir.Value{e.Op("gather", values, e.Int(3), best), e.Op("gather", e.reshape(place, windows...), e.Int(3), best)}
	for i, r := range results {
		results[i] = e.dropBatch(e.reshape(r, shape...), unbatched)
	}
	return results
}

// fractionalSize reads the size of the output, which is given as such or as parts of the input's.
func (e em) fractionalSize(name string, n int, size []int, sizeArg, ratioArg *ir.Value) []int {
	switch {
	case isNone(sizeArg) == isNone(ratioArg):
		e.Failf("%s requires specifying either an output_size or an output_ratio", name)
	case !isNone(sizeArg):
		return e.repeated(sizeArg, n, "output_size")
	}
	l, ok := e.NeedConst(ratioArg).(ir.List)
	if !ok || l.Len() != n {
		e.Failf("%s: output_ratio must have %d elements", name, n)
	}
	out := make([]int, n)
	for i, r := range l.Elems() {
		f, _ := r.(float64)
		if !(f > 0 && f < 1) {
			e.Failf("%s: output_ratio must be between 0 and 1, got %v", name, r)
		}
		out[i] = int(float64(size[i]) * f)
	}
	return out
}

// fractionalStarts are the starts of the windows along one dim, [N, C, out], from samples [N, C, 1].
func (e em) fractionalStarts(sample *ir.Value, size, out, kernel int) *ir.Value {
	end := e.Int(size - kernel)
	s := e.NeedShape(sample)
	last := broadcastTo(e.Builder, e.Op("scalar_tensor", end, e.DType(dtype.I64)), s)
	if out == 1 {
		return last
	}
	sample = e.detach(sample)
	alpha := float64(size-kernel) / float64(out-1)
	whole := func(v *ir.Value) *ir.Value { return cast(e.Builder, e.mulF(v, alpha), dtype.I64) }
	step := cast(e.Builder, e.Op("iota", e.Int(out-1), e.DType(dtype.I64)), e.NeedDType(sample))
	return e.concat(2, e.sub(whole(e.add(sample, step)), whole(sample)), last)
}
