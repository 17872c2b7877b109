package aten

import (
	"fmt"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Pooling. Maxima go dim by dim: the largest of every window along the last dim, then of those along the one before, and so on, so
// that of equal elements the first one (in row-major order) gets the gradient, as in PyTorch.
//
// With return_indices=True front ends call the function of the same name with _with_indices.

func init() {
	for n := 1; n <= 3; n++ {
		k := fmt.Sprintf("int[%d]", n)
		maxParams := fmt.Sprintf("(Tensor input, %s kernel_size, %s? stride=None, %s padding=0, %s dilation=1, bool ceil_mode=False, bool return_indices=False)", k, k, k, k)
		name := fmt.Sprintf("max_pool%dd", n)
		maxPool := func(e em, a []*ir.Value, indices bool) []*ir.Value {
			c := e.poolCall(name, n, a[0], a[1], a[2], a[3], a[5])
			c.dilation = e.repeated(a[4], n, "dilation")
			return e.maxPool(c, indices)
		}
		def(NN|Torch, name+maxParams+" -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
			e.noIndices(name, a[6])
			return maxPool(e, a, false)[0]
		}))
		def(NN|Torch, name+"_with_indices"+maxParams+" -> (Tensor, Tensor)", func(b *ir.Builder, a []*ir.Value) []*ir.Value {
			return maxPool(em{b}, a, true)
		})
		override := ""
		if n > 1 {
			override = ", int? divisor_override=None"
		}
		def(NN|Torch, fmt.Sprintf("avg_pool%dd(Tensor input, %s kernel_size, %s? stride=None, %s padding=0, bool ceil_mode=False, bool count_include_pad=True%s) -> Tensor", n, k, k, k, override),
			expand1(func(e em, a []*ir.Value) *ir.Value {
				c := e.poolCall(fmt.Sprintf("avg_pool%dd", n), n, a[0], a[1], a[2], a[3], a[4])
				divisor := 0
				if n > 1 && !isNone(a[6]) {
					if divisor = constInt(e.Builder, a[6]); divisor == 0 {
						e.Failf("divisor must be not zero")
					}
				}
				return e.avgPool(c, constBool(e.Builder, a[5]), divisor)
			}))
		def(NN|Torch, fmt.Sprintf("adaptive_avg_pool%dd(Tensor input, %s output_size) -> Tensor", n, k), expand1(func(e em, a []*ir.Value) *ir.Value {
			return e.adaptiveAvg(fmt.Sprintf("adaptive_avg_pool%dd", n), n, a[0], a[1])
		}))
		adaptiveName := fmt.Sprintf("adaptive_max_pool%dd", n)
		adaptiveParams := fmt.Sprintf("(Tensor input, %s output_size, bool return_indices=False)", k)
		def(NN|Torch, adaptiveName+adaptiveParams+" -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
			e.noIndices(adaptiveName, a[2])
			return e.adaptiveMax(adaptiveName, n, a[0], a[1], false)[0]
		}))
		def(NN|Torch, adaptiveName+"_with_indices"+adaptiveParams+" -> (Tensor, Tensor)", func(b *ir.Builder, a []*ir.Value) []*ir.Value {
			return em{b}.adaptiveMax(adaptiveName, n, a[0], a[1], true)
		})
		def(NN, fmt.Sprintf("max_unpool%dd(Tensor input, Tensor indices, %s kernel_size, %s? stride=None, %s padding=0, int[]? output_size=None) -> Tensor", n, k, k, k),
			expand1(func(e em, a []*ir.Value) *ir.Value { return e.maxUnpool(n, a) }))
	}
	for n := 1; n <= 2; n++ {
		k := fmt.Sprintf("int[%d]", n)
		def(NN, fmt.Sprintf("lp_pool%dd(Tensor input, float norm_type, %s kernel_size, %s? stride=None, bool ceil_mode=False) -> Tensor", n, k, k),
			expand1(func(e em, a []*ir.Value) *ir.Value {
				c := e.poolCall("lp_pool", n, e.pow(a[0], a[1]), a[2], a[3], e.Int(0), a[4])
				mean := e.avgPool(c, true, 0)
				total := e.mulF(e.mul(e.Op("sign", mean), e.Op("relu", e.abs(mean))), float64(product(c.kernel)))
				return e.pow(total, e.Float(1/constFloat(e.Builder, a[1])))
			}))
	}
}

// noIndices stops where indices were asked for from the form that has no such result.
func (e em) noIndices(name string, v *ir.Value) {
	if constBool(e.Builder, v) {
		e.Failf("%s with return_indices=True gives two results: call %s_with_indices", name, name)
	}
}

// pool is one pooling over the last n dims of x, which has a batch and a channel dim before them.
type pool struct {
	name                          string
	n                             int
	x                             *ir.Value
	unbatched                     bool
	kernel, stride, pad, dilation []int
	ceil                          bool
	out                           []int // numbers of windows, after sizes
}

// poolCall reads the arguments that all poolings share.
func (e em) poolCall(name string, n int, x, kernel, stride, padding, ceil *ir.Value) pool {
	c := pool{name: name, n: n, x: x, kernel: e.repeated(kernel, n, "kernel_size"), pad: make([]int, n), dilation: ones(n)}
	c.stride = c.kernel
	if s, ok := optInts(e.Builder, stride); ok && len(s) > 0 {
		c.stride = e.repeated(stride, n, "stride")
	}
	c.pad = e.repeated(padding, n, "padding")
	c.ceil = constBool(e.Builder, ceil)
	c.x, c.unbatched = e.poolOperand(name, n, x)
	return c
}

// poolOperand gives x with a batch dim.
func (e em) poolOperand(name string, n int, x *ir.Value) (*ir.Value, bool) {
	e.needFloat(name, x)
	s := e.NeedShape(x)
	if channel := len(s) - n - 1; channel >= 0 && s[channel] == 0 && !strings.HasPrefix(name, "adaptive_avg_pool") {
		e.Failf("%s: Expected input to have non-zero size for non-batch dimensions, but input has sizes %v with dimension %d being empty", name, s, channel)
	}
	switch len(s) {
	case n + 2:
		return x, false
	case n + 1:
		return e.insert(x, 0), true
	default:
		e.Failf("%s: Expected %dD (unbatched) or %dD (batched) input, but got input of size: %v", name, n+1, n+2, s)
	}
	return nil, false
}

// dropBatch removes the batch dim that the operand did not have.
func (e em) dropBatch(x *ir.Value, unbatched bool) *ir.Value {
	if unbatched {
		return e.reshape(x, e.NeedShape(x)[1:]...)
	}
	return x
}

// poolSizes computes the numbers of windows; with ceil a last window may hang over, but must start inside the input or its
// left padding.
func (e em) poolSizes(c *pool) {
	s := e.NeedShape(c.x)[2:]
	c.out = make([]int, c.n)
	for i, size := range s {
		k, st, p, d := c.kernel[i], c.stride[i], c.pad[i], c.dilation[i]
		switch {
		case k <= 0:
			e.Failf("%s: kernel size should be greater than zero, but got %v", c.name, c.kernel)
		case st <= 0:
			e.Failf("%s: stride should not be zero or negative, but got %v", c.name, c.stride)
		case d <= 0:
			e.Failf("%s: dilation should be greater than zero, but got %v", c.name, c.dilation)
		case p < 0:
			e.Failf("%s: pad must be non-negative, but got pad: %d", c.name, p)
		case p > k/2:
			e.Failf("%s: pad should be at most half of kernel size, but got pad=%d and kernel_size=%d", c.name, p, k)
		}
		room := size + 2*p - d*(k-1) - 1
		if c.ceil {
			room += st - 1
		}
		if room < 0 {
			c.out[i] = 0
		} else if c.out[i] = room/st + 1; c.ceil && (c.out[i]-1)*st >= size+p {
			c.out[i]--
		}
		if c.out[i] <= 0 {
			e.Failf("%s: Given input size: %v. Calculated output size: %v. Output size is too small for kernel size %v", c.name, s, c.out[:i+1], c.kernel)
		}
	}
}

// hi is the padding after dim i: as much as the last window needs (negative where less than the input is needed).
func (c *pool) hi(i, size int) int {
	return (c.out[i]-1)*c.stride[i] + c.dilation[i]*(c.kernel[i]-1) + 1 - size - c.pad[i]
}

// longestChain bounds the window sizes whose elements are compared one by one.
const longestChain = 16

func (e em) maxPool(c pool, indices bool) []*ir.Value {
	e.poolSizes(&c)
	d := e.NeedDType(c.x)
	size := append([]int{}, e.NeedShape(c.x)[2:]...)
	hi := make([]int, c.n)
	for i := range hi {
		hi[i] = c.hi(i, size[i])
	}
	v := e.padDims(c.x, c.pad, hi, lowest(d))
	var flat *ir.Value // row-major position in the input of the elements chosen so far
	for i := c.n - 1; i >= 0; i-- {
		step := product(size[i+1:]) // between neighbours along this dim
		if c.kernel[i] > longestChain {
			v, flat = e.maxAlongRow(c, i, v, flat, indices, step)
		} else {
			v, flat = e.maxAlongChain(c, i, v, flat, indices, step)
		}
	}
	out := []*ir.Value{e.dropBatch(v, c.unbatched)}
	if indices {
		out = append(out, e.dropBatch(flat, c.unbatched))
	}
	return out
}

// starts are the positions of the windows along dim i, times step, shaped to lie along that dim.
func (c *pool) starts(e em, i, step int) *ir.Value {
	v, shape := make([]int, c.out[i]), ones(c.n+2)
	for o := range v {
		v[o] = (o*c.stride[i] - c.pad[i]) * step
	}
	shape[2+i] = c.out[i]
	return e.intTensor(shape, v)
}

// nth takes element k of every window along dim i of the padded input.
func (c *pool) nth(e em, x *ir.Value, i, k int) *ir.Value {
	start := k * c.dilation[i]
	return sliceDim(e.Builder, x, 2+i, start, start+(c.out[i]-1)*c.stride[i]+1, c.stride[i])
}

// maxAlongChain compares the elements of a window one after the other, each the first, second, … element of all windows: strided
// slices, which fuse. A later element wins where it is greater, or NaN.
func (e em) maxAlongChain(c pool, i int, v, flat *ir.Value, indices bool, step int) (_, _ *ir.Value) {
	var best, at *ir.Value
	for k := range c.kernel[i] {
		x := c.nth(e, v, i, k)
		var pos *ir.Value
		if indices {
			pos = e.add(c.starts(e, i, step), e.Int(k*c.dilation[i]*step))
			if flat != nil {
				pos = e.add(c.nth(e, flat, i, k), pos)
			}
		}
		if k == 0 {
			best, at = x, pos
			continue
		}
		greater := e.Op("logical_or", e.gt(x, best), e.Op("isnan", x))
		best = e.where(greater, x, best)
		if indices {
			at = e.where(greater, pos, at)
		}
	}
	if indices {
		at = broadcastTo(e.Builder, at, e.NeedShape(best))
	}
	return best, at
}

// maxAlongRow is maxAlongChain for long windows, by argmax and gather.
func (e em) maxAlongRow(c pool, i int, v, flat *ir.Value, indices bool, step int) (_, _ *ir.Value) {
	windowed := func(x *ir.Value) *ir.Value {
		return e.windows(e.moveLast(x, 2+i), c.kernel[i:i+1], c.stride[i:i+1], c.dilation[i:i+1])
	}
	w := windowed(v)
	best := e.detach(e.Op("argmax", w, e.Int(c.n+2), e.Bool(true)))
	out := e.chosen(w, best, 2+i)
	if !indices {
		return out, nil
	}
	pos := e.add(e.mul(e.back(best, 2+i), e.Int(c.dilation[i]*step)), c.starts(e, i, step))
	if flat != nil {
		pos = e.add(pos, e.chosen(windowed(flat), best, 2+i))
	}
	return out, pos
}

// chosen takes the element best[…,0] from the last dim of w [..., out, window] and puts out back at dim d.
func (e em) chosen(w, best *ir.Value, d int) *ir.Value {
	return e.back(e.Op("gather", w, e.Int(rank(e.Builder, w)-1), best), d)
}

// back drops the last dim, of size 1, and moves the one before it to d.
func (e em) back(x *ir.Value, d int) *ir.Value {
	s := e.NeedShape(x)
	x = e.reshape(x, s[:len(s)-1]...)
	r := len(s) - 1
	return e.permute(x, catInts(span(0, d), []int{r - 1}, span(d, r-1))...)
}

// avgPool divides the sum of every window by a divisor of the caller, or by the number of its elements: those in the input, or
// those in the padded input.
func (e em) avgPool(c pool, includePad bool, divisor int) *ir.Value {
	e.poolSizes(&c)
	d := e.NeedDType(c.x)
	size := e.NeedShape(c.x)[2:]
	hi := make([]int, c.n)
	counts := []float64{1}
	for i := range c.n {
		hi[i] = c.hi(i, size[i])
		var next []float64
		for _, outer := range counts {
			for j := range c.out[i] {
				start := j*c.stride[i] - c.pad[i]
				stop := min(start+c.kernel[i], size[i]+c.pad[i])
				if !includePad {
					start, stop = max(start, 0), min(stop, size[i])
				}
				next = append(next, outer*float64(stop-start))
			}
		}
		counts = next
	}
	x := e.padDims(c.x, c.pad, hi, e.zeroOf(c.x))
	x = e.windowSums(x, c)
	if divisor != 0 {
		x = e.divF(x, float64(divisor))
	} else {
		x = e.divCounts(x, d, c.out, counts)
	}
	return e.dropBatch(x, c.unbatched)
}

// windowSums adds the elements of every window: small windows by adding strided slices, which fuse.
func (e em) windowSums(x *ir.Value, c pool) *ir.Value {
	long := product(c.out) == 1
	for _, k := range c.kernel {
		long = long || k > longestChain
	}
	if long {
		x = e.windows(x, c.kernel, c.stride, c.dilation)
		return e.sum(x, false, span(2+c.n, 2+2*c.n)...)
	}
	for i := c.n - 1; i >= 0; i-- {
		var sum *ir.Value
		for k := range c.kernel[i] {
			if t := c.nth(e, x, i, k); sum == nil {
				sum = t
			} else {
				sum = e.add(sum, t)
			}
		}
		x = sum
	}
	return x
}

// divCounts divides the last dims by numbers of elements: one number where all are equal.
func (e em) divCounts(x *ir.Value, d dtype.DType, shape []int, counts []float64) *ir.Value {
	if len(counts) == 0 {
		return x
	}
	for _, n := range counts {
		if n != counts[0] {
			return e.div(x, e.floatTensor(d, shape, counts))
		}
	}
	return e.divF(x, counts[0])
}

// adaptiveBins are the limits of the bins that adaptive pooling cuts size into: they cover it and differ by at most 1, or 2 where
// they overlap.
func adaptiveBins(size, out int) (starts, stops []int, widest int) {
	for i := range out {
		start, stop := i*size/out, ((i+1)*size+out-1)/out
		starts, stops, widest = append(starts, start), append(stops, stop), max(widest, stop-start)
	}
	return starts, stops, widest
}

// adaptiveSize reads output_size, where None keeps a size.
func (e em) adaptiveSize(v *ir.Value, in []int) []int {
	d := e.NeedConst(v)
	l, ok := d.(ir.List)
	if t, isTuple := d.(ir.Tuple); isTuple {
		l, ok = ir.NewList(t...), true
	}
	if !ok || l.Len() == 1 {
		out := e.repeated(v, len(in), "output_size")
		for _, n := range out {
			if n < 0 {
				e.Failf("adaptive pooling: elements of output_size must be greater than or equal to 0, got %d", n)
			}
			needFew(e.Builder, n, "bins")
		}
		return out
	}
	out := append([]int{}, in...)
	if l.Len() != len(in) {
		e.Failf("adaptive pooling: output_size must have %d elements, got %d", len(in), l.Len())
	}
	for i, el := range l.Elems() {
		if n, ok := el.(int64); ok {
			out[i] = int(n)
			needFew(e.Builder, out[i], "bins")
		}
		if out[i] < 0 {
			e.Failf("adaptive pooling: elements of output_size must be greater than or equal to 0, got %d", out[i])
		}
	}
	return out
}

// bins gathers the bins of dim d into a new last dim: [..., size, ...] -> [..., out, ..., widest]; short bins repeat their last element.
func (e em) bins(x *ir.Value, d int, starts, stops []int, widest int) *ir.Value {
	index := make([]int, 0, len(starts)*widest)
	for i := range starts {
		for j := range widest {
			index = append(index, min(starts[i]+j, stops[i]-1))
		}
	}
	x = e.pick(e.moveLast(x, d), rank(e.Builder, x)-1, e.intTensor([]int{len(index)}, index))
	s := e.NeedShape(x)
	return e.reshape(x, catInts(s[:len(s)-1], []int{len(starts), widest})...)
}

func (e em) adaptiveAvg(name string, n int, x, outputSize *ir.Value) *ir.Value {
	x, unbatched := e.poolOperand(name, n, x)
	size := append([]int{}, e.NeedShape(x)[2:]...)
	out := e.adaptiveSize(outputSize, size)
	e.adaptiveCheck(name, size)
	if divides(out, size) {
		return e.avgPool(equalBins(name, n, x, unbatched, size, out), true, 0)
	}
	d := e.NeedDType(x)
	for i := range n {
		starts, stops, widest := adaptiveBins(size[i], out[i])
		mask, counts := ir.NewArray(dtype.Bool, out[i], widest), make([]float64, out[i])
		for j := range starts {
			counts[j] = float64(stops[j] - starts[j])
			for k := range stops[j] - starts[j] {
				mask.SetInt(j*widest+k, 1)
			}
		}
		x = e.where(e.Const(mask), e.bins(x, 2+i, starts, stops, widest), e.zeros(d))
		x = e.divCounts(e.sum(x, true, n+2), d, []int{out[i], 1}, counts)
		x = e.back(x, 2+i)
	}
	return e.dropBatch(x, unbatched)
}

func (e em) adaptiveCheck(name string, size []int) {
	for _, s := range size {
		if s == 0 {
			e.Failf("%s: Expected input to have non-zero size for non-batch dimensions, but input has sizes %v", name, size)
		}
	}
}

// equalBins is the pooling that an adaptive pooling is where every output size divides its input size.
func equalBins(name string, n int, x *ir.Value, unbatched bool, size, out []int) pool {
	kernel := make([]int, n)
	for i := range kernel {
		kernel[i] = size[i] / out[i]
	}
	return pool{name: name, n: n, x: x, unbatched: unbatched, kernel: kernel, stride: kernel, pad: make([]int, n), dilation: ones(n)}
}

// divides reports whether every out divides its size.
func divides(out, size []int) bool {
	for i := range out {
		if out[i] == 0 || size[i]%out[i] != 0 {
			return false
		}
	}
	return true
}

func (e em) adaptiveMax(name string, n int, x, outputSize *ir.Value, indices bool) []*ir.Value {
	x, unbatched := e.poolOperand(name, n, x)
	size := append([]int{}, e.NeedShape(x)[2:]...)
	out := e.adaptiveSize(outputSize, size)
	e.adaptiveCheck(name, size)
	if divides(out, size) {
		return e.maxPool(equalBins(name, n, x, unbatched, size, out), indices)
	}
	if product(out) == 0 { // no bin to take a maximum of
		empty := catInts(e.NeedShape(x)[:2], out)
		res := []*ir.Value{e.dropBatch(e.zeros(e.NeedDType(x), empty...), unbatched)}
		if indices {
			res = append(res, e.dropBatch(e.zeros(dtype.I64, empty...), unbatched))
		}
		return res
	}
	var flat *ir.Value
	for i := n - 1; i >= 0; i-- {
		starts, stops, widest := adaptiveBins(size[i], out[i])
		w := e.bins(x, 2+i, starts, stops, widest)
		best := e.detach(e.Op("argmax", w, e.Int(n+2), e.Bool(true)))
		x = e.chosen(w, best, 2+i)
		if !indices {
			continue
		}
		pos := e.add(best, e.intTensor([]int{out[i], 1}, starts))
		pos = e.mul(e.back(pos, 2+i), e.Int(product(size[i+1:])))
		if flat != nil {
			pos = e.add(pos, e.chosen(e.bins(flat, 2+i, starts, stops, widest), best, 2+i))
		}
		flat = pos
	}
	res := []*ir.Value{e.dropBatch(x, unbatched)}
	if indices {
		res = append(res, e.dropBatch(flat, unbatched))
	}
	return res
}

// maxUnpool writes the elements of x at the row-major positions that a max pooling gave, into zeros.
func (e em) maxUnpool(n int, a []*ir.Value) *ir.Value {
	name := fmt.Sprintf("max_unpool%dd", n)
	c := e.poolCall(name, n, a[0], a[2], a[3], a[4], e.Bool(false))
	s := e.NeedShape(c.x)
	size := make([]int, n)
	for i := range size {
		size[i] = (s[2+i]-1)*c.stride[i] - 2*c.pad[i] + c.kernel[i]
	}
	if o, ok := optInts(e.Builder, a[5]); ok {
		if len(o) < n {
			e.Failf("%s: output_size should have %d or %d elements, but it has length %d", name, n, n+2, len(o))
		}
		for i, want := range o[len(o)-n:] {
			if st := c.stride[i]; want <= size[i]-st || want >= size[i]+st {
				e.Failf("%s: invalid output_size %v (dim %d must be between %d and %d)", name, o, i, size[i]-st, size[i]+st)
			}
		}
		size = o[len(o)-n:]
	}
	index := a[1]
	if c.unbatched {
		index = e.insert(index, 0)
	}
	if !sameInts(e.NeedShape(index), s) {
		e.Failf("%s: Expected shape of indices to be same as that of the input tensor (%v) but got indices tensor with shape: %v", name, s, e.NeedShape(index))
	}
	flat := []int{s[0], s[1], product(s[2:])}
	zeros := e.full(e.NeedDType(c.x), 0, s[0], s[1], product(size))
	out := e.Op("scatter", zeros, e.Int(2), e.reshape(index, flat...), e.reshape(c.x, flat...))
	return e.dropBatch(e.reshape(out, catInts(s[:2], size)...), c.unbatched)
}
