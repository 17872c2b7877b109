package aten

import (
	"fmt"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Convolutions: pad, sliding windows, dot. A transposed convolution is dot, then the overlap-add of windows (fold).

func init() {
	for n := 1; n <= 3; n++ {
		k := fmt.Sprintf("int[%d]", n)
		name := fmt.Sprintf("conv%dd", n)
		def(NN|Torch, fmt.Sprintf("%s(Tensor input, Tensor weight, Tensor? bias=None, %s stride=1, %s padding=0, %s dilation=1, int groups=1) -> Tensor", name, k, k, k),
			expand1(func(e em, a []*ir.Value) *ir.Value {
				pad := e.repeated(a[4], n, "padding")
				return e.conv(convCall{name: name, n: n, x: a[0], w: a[1], bias: a[2], stride: e.repeated(a[3], n, "stride"), lo: pad, hi: pad,
					dilation: e.repeated(a[5], n, "dilation"), groups: constInt(e.Builder, a[6])})
			}))
		def(NN|Torch, fmt.Sprintf("%s.padding(Tensor input, Tensor weight, Tensor? bias=None, %s stride=1, str padding='valid', %s dilation=1, int groups=1) -> Tensor", name, k, k),
			expand1(func(e em, a []*ir.Value) *ir.Value { return e.convNamedPadding(name, n, a) }))
		def(NN|Torch, fmt.Sprintf("conv_transpose%dd(Tensor input, Tensor weight, Tensor? bias=None, %s stride=1, %s padding=0, %s output_padding=0, int groups=1, %s dilation=1) -> Tensor", n, k, k, k, k),
			expand1(func(e em, a []*ir.Value) *ir.Value {
				pad := e.repeated(a[4], n, "padding")
				c := convCall{name: fmt.Sprintf("conv_transpose%dd", n), n: n, x: a[0], w: a[1], bias: a[2], stride: e.repeated(a[3], n, "stride"), lo: pad, hi: pad,
					dilation: e.repeated(a[7], n, "dilation"), groups: constInt(e.Builder, a[6])}
				return e.convTranspose(c, e.repeated(a[5], n, "output_padding"))
			}))
	}
	def(Torch, "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			n := rank(e.Builder, a[1]) - 2
			pad := e.repeated(a[4], n, "padding")
			c := convCall{name: "convolution", n: n, x: a[0], w: a[1], bias: a[2], stride: e.repeated(a[3], n, "stride"), lo: pad, hi: pad,
				dilation: e.repeated(a[5], n, "dilation"), groups: constInt(e.Builder, a[8])}
			if constBool(e.Builder, a[6]) {
				return e.convTranspose(c, e.repeated(a[7], n, "output_padding"))
			}
			return e.conv(c)
		}))
	def(NN, "unfold.im2col(Tensor input, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value { return e.im2col(a) }))
	def(NN, "fold(Tensor input, int[2] output_size, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value { return e.col2im(a) }))
}

// convCall is one convolution over n spatial dims: x [N, C, spatial...] or without N, w [O, C/groups, kernel...] (transposed:
// [C, O/groups, kernel...]), bias [O] or None.
type convCall struct {
	name             string
	n                int
	x, w, bias       *ir.Value
	stride, dilation []int
	lo, hi           []int // padding on both sides
	groups           int
}

// repeated reads n ints; one stands for n equal ones.
func (e em) repeated(v *ir.Value, n int, what string) []int {
	s := constInts(e.Builder, v)
	if len(s) == 1 && n > 1 {
		out := make([]int, n)
		for i := range out {
			out[i] = s[0]
		}
		return out
	}
	if len(s) != n {
		e.Failf("expected %s to be a single integer value or a list of %d values to match the convolution dimensions, but got %s=%v", what, n, what, s)
	}
	return s
}

func (e em) convNamedPadding(name string, n int, a []*ir.Value) *ir.Value {
	c := convCall{name: name, n: n, x: a[0], w: a[1], bias: a[2], stride: e.repeated(a[3], n, "stride"), lo: make([]int, n), hi: make([]int, n),
		dilation: e.repeated(a[5], n, "dilation"), groups: constInt(e.Builder, a[6])}
	switch mode := constStr(e.Builder, a[4]); mode {
	case "valid":
	case "same":
		kernel := e.NeedShape(c.w)
		for i := range n {
			if c.stride[i] != 1 {
				e.Failf("padding='same' is not supported for strided convolutions, got stride %v", c.stride)
			}
			total := c.dilation[i] * (kernel[min(i+2, len(kernel)-1)] - 1)
			c.lo[i] = total / 2
			c.hi[i] = total - c.lo[i]
		}
	default:
		e.Failf("Invalid padding string: %q: expected 'same' or 'valid'", mode)
	}
	return e.conv(c)
}

// check reports what is wrong with a call; it gives the operand with a batch dim and says whether it had one.
func (e em) checkConv(c *convCall, transposed bool) (batched bool) {
	sw, sx := e.NeedShape(c.w), e.NeedShape(c.x)
	if len(sw) != c.n+2 {
		e.Failf("expected %dD weight for %s, but got weight of size: %v", c.n+2, c.name, sw)
	}
	if len(sx) != c.n+1 && len(sx) != c.n+2 {
		e.Failf("Expected %dD (unbatched) or %dD (batched) input to %s, but got input of size: %v", c.n+1, c.n+2, c.name, sx)
	}
	if dx, dw := e.NeedDType(c.x), e.NeedDType(c.w); dx != dw {
		e.Failf("Input type (%s) and weight type (%s) should be the same", dx.Torch(), dw.Torch())
	}
	// as in PyTorch, integers are convolved too: of every width, but transposed those of 64 bits only
	if d := e.NeedDType(c.x); d == dtype.Bool || transposed && d != dtype.I64 {
		e.needFloat(c.name, c.x)
	}
	if batched = len(sx) == c.n+2; !batched {
		c.x = e.insert(c.x, 0)
		sx = e.NeedShape(c.x)
	}
	for i := range c.n {
		switch {
		case c.stride[i] <= 0:
			e.Failf("non-positive stride is not supported, got %v", c.stride)
		case c.dilation[i] <= 0:
			e.Failf("dilation should be greater than zero, got %v", c.dilation)
		case c.lo[i] < 0:
			e.Failf("negative padding is not supported, got %v", c.lo)
		}
	}
	if c.groups <= 0 {
		e.Failf("non-positive groups is not supported, got %d", c.groups)
	}
	e.checkConvChannels(c, sx, sw, transposed)
	return batched
}

func (e em) checkConvChannels(c *convCall, sx, sw []int, transposed bool) {
	want, outputs := sw[1]*c.groups, sw[0]
	if transposed {
		want, outputs = sw[0], sw[1]*c.groups
	}
	if sw[0]%c.groups != 0 {
		e.Failf("Given groups=%d, expected weight to be divisible by %d at dimension 0, but got weight of size %v instead", c.groups, c.groups, sw)
	}
	if sw[0] == 0 {
		e.Failf("Given groups=%d, expected weight to be at least 1 at dimension 0, but got weight of size %v instead", c.groups, sw)
	}
	if sx[1] != want {
		e.Failf("Given groups=%d, weight of size %v, expected input%v to have %d channels, but got %d channels instead", c.groups, sw, sx, want, sx[1])
	}
	if isNone(c.bias) {
		return
	}
	if sb := e.NeedShape(c.bias); !sameInts(sb, []int{outputs}) {
		e.Failf("Given weight of size %v, expected bias to be 1-dimensional with %d elements, but got bias of size %v instead", sw, outputs, sb)
	}
	e.needSame(c.x, c.bias)
}

// conv is the convolution (cross-correlation) of c.
func (e em) conv(c convCall) *ir.Value {
	batched := e.checkConv(&c, false)
	n, g := c.n, c.groups
	sw := e.NeedShape(c.w)
	x := e.padDims(c.x, c.lo, c.hi, e.zeroOf(c.x))
	sx := e.NeedShape(x)
	out := e.windowCounts(sx[2:], sw[2:], c.stride, c.dilation)
	if sw[1] == 1 && g > 1 && product(sw[2:]) <= longestDepthwise {
		return e.convResult(e.depthwise(x, out, c), c, batched)
	}
	// windows: [N, groups, C, out..., kernel...] -> [groups, N, out..., C, kernel...]
	x = e.reshape(x, catInts([]int{sx[0], g, sw[1]}, sx[2:])...)
	x = e.windows(x, sw[2:], c.stride, c.dilation)
	x = e.permute(x, catInts([]int{1, 0}, span(3, 3+n), []int{2}, span(3+n, 3+2*n))...)
	w := e.reshape(c.w, catInts([]int{g, sw[0] / g}, sw[1:])...)
	// [groups, O, N, out...] -> [N, groups, O, out...]
	nb := 1
	if g == 1 {
		nb = 0
		x, w = e.reshape(x, e.NeedShape(x)[1:]...), c.w
	}
	y := e.dot(w, x, nb, 1+n)
	y = e.permute(y, catInts([]int{nb + 1}, span(0, nb+1), span(nb+2, nb+2+n))...)
	y = e.reshape(y, catInts([]int{sx[0], sw[0]}, out)...)
	return e.convResult(y, c, batched)
}

// longestDepthwise bounds the kernel sizes of depthwise convolutions that are written out.
const longestDepthwise = 32

// depthwise is a convolution with one input channel per group, of the padded x: the sum over the kernel's elements of a strided
// slice times a weight, which fuses; a contraction would have too little to contract.
func (e em) depthwise(x *ir.Value, out []int, c convCall) *ir.Value {
	d := e.NeedDType(x)
	sx, sw := e.NeedShape(x), e.NeedShape(c.w)
	wide := e.wide(x)
	x = e.reshape(wide, catInts([]int{sx[0], sx[1], 1}, sx[2:])...)
	w := e.reshape(cast(e.Builder, c.w, e.NeedDType(wide)), sx[1], sw[0]/sx[1], product(sw[2:]))
	var sum *ir.Value
	for k := range product(sw[2:]) {
		part, rest := x, k
		for i := c.n - 1; i >= 0; i-- {
			start := rest % sw[2+i] * c.dilation[i]
			part = sliceDim(e.Builder, part, 3+i, start, start+(out[i]-1)*c.stride[i]+1, c.stride[i])
			rest /= sw[2+i]
		}
		weight := e.reshape(e.slice(w, 2, k, k+1), catInts([]int{sx[1], sw[0] / sx[1]}, ones(c.n))...)
		if term := e.mul(part, weight); sum == nil {
			sum = term
		} else {
			sum = e.add(sum, term)
		}
	}
	return cast(e.Builder, e.reshape(sum, catInts([]int{sx[0], sw[0]}, out)...), d)
}

// convResult adds the bias and drops the batch dim that the operand did not have.
func (e em) convResult(y *ir.Value, c convCall, batched bool) *ir.Value {
	if !isNone(c.bias) {
		y = e.add(y, e.reshape(c.bias, catInts(e.NeedShape(c.bias), ones(c.n))...))
	}
	if !batched {
		y = e.reshape(y, e.NeedShape(y)[1:]...)
	}
	return y
}

func (e em) convTranspose(c convCall, outputPadding []int) *ir.Value {
	batched := e.checkConv(&c, true)
	n, g := c.n, c.groups
	sx, sw := e.NeedShape(c.x), e.NeedShape(c.w)
	full, size := make([]int, n), make([]int, n)
	for i := range n {
		if op := outputPadding[i]; op < 0 || op >= c.stride[i] && op >= c.dilation[i] {
			e.Failf("output padding must be smaller than either stride or dilation, but got output_padding: %v stride: %v dilation: %v", outputPadding, c.stride, c.dilation)
		}
		full[i] = (sx[2+i]-1)*c.stride[i] + c.dilation[i]*(sw[2+i]-1) + 1
		size[i] = full[i] - 2*c.lo[i] + outputPadding[i]
		if size[i] <= 0 {
			e.Failf("Given input size per channel: %v. Calculated output size per channel: %v. Output size is too small", sx[2:], size)
		}
	}
	// x: [N, groups, C, in...] -> [groups, N, in..., C]; w: [groups, C, O, kernel...] -> [groups, O, kernel..., C]
	x := e.reshape(c.x, catInts([]int{sx[0], g, sx[1] / g}, sx[2:])...)
	x = e.permute(x, catInts([]int{1, 0}, span(3, 3+n), []int{2})...)
	w := e.reshape(c.w, catInts([]int{g, sw[0] / g}, sw[1:])...)
	w = e.permute(w, catInts([]int{0}, span(2, 3+n), []int{1})...)
	// columns: [groups, N, in..., O, kernel...] -> [N, groups, O, in..., kernel...]
	y := e.dot(x, w, 1, 1)
	y = e.permute(y, catInts([]int{1, 0, 2 + n}, span(2, 2+n), span(3+n, 3+2*n))...)
	y = e.reshape(y, catInts([]int{sx[0], g * sw[1]}, sx[2:], sw[2:])...)
	y = e.Op("fold", y, e.Ints(full...), e.Ints(c.stride...), e.Ints(c.dilation...))
	y = e.padDims(y, make([]int, n), outputPadding, e.zeroOf(y))
	for i := range n {
		y = e.slice(y, 2+i, c.lo[i], c.lo[i]+size[i])
	}
	return e.convResult(y, c, batched)
}

// windowCounts are the numbers of windows along each dim.
func (e em) windowCounts(size, kernel, stride, dilation []int) []int {
	out := make([]int, len(size))
	for i := range size {
		if stride[i] <= 0 || dilation[i] <= 0 {
			e.Failf("stride and dilation should be greater than zero, but got stride %v and dilation %v", stride, dilation)
		}
		reach := dilation[i]*(kernel[i]-1) + 1
		if kernel[i] <= 0 || size[i] < reach {
			e.Failf("Calculated padded input size per channel: %v. Kernel size: %v with dilation %v. Kernel size can't be greater than actual input size", size, kernel, dilation)
		}
		out[i] = (size[i]-reach)/stride[i] + 1
	}
	return out
}

// windows makes the sliding windows of the last dims: [A..., size...] -> [A..., count..., kernel...].
func (e em) windows(x *ir.Value, kernel, stride, dilation []int) *ir.Value {
	if sameInts(kernel, stride) && sameInts(dilation, ones(len(kernel))) {
		return e.tiles(x, kernel)
	}
	return e.Op("windows", x, e.Ints(kernel...), e.Ints(stride...), e.Ints(dilation...))
}

// tiles are windows that do not overlap: a reshape, whose gradient is one too.
func (e em) tiles(x *ir.Value, kernel []int) *ir.Value {
	s := e.NeedShape(x)
	first := len(s) - len(kernel)
	shape := append([]int{}, s[:first]...)
	outer, inner := span(0, first), []int{}
	for i, k := range kernel {
		n := s[first+i] / k
		x = e.slice(x, first+i, 0, n*k)
		outer, inner = append(outer, len(shape)), append(inner, len(shape)+1)
		shape = append(shape, n, k)
	}
	return e.permute(e.reshape(x, shape...), catInts(outer, inner)...)
}

// padDims pads the last dims with a constant; negative amounts cut.
func (e em) padDims(x *ir.Value, lo, hi []int, value ir.Datum) *ir.Value {
	s := e.NeedShape(x)
	first := len(s) - len(lo)
	plo, phi, any := make([]int, len(s)), make([]int, len(s)), false
	for i := range lo {
		d := first + i
		start, stop := max(0, -lo[i]), s[d]-max(0, -hi[i])
		if size := s[d] + lo[i] + hi[i]; size < 0 || start > stop {
			e.Failf("padding %d and %d of dimension %d of size %d gives a negative size", lo[i], hi[i], d, s[d])
		}
		x = e.slice(x, d, start, stop)
		plo[d], phi[d] = max(0, lo[i]), max(0, hi[i])
		any = any || plo[d] > 0 || phi[d] > 0
	}
	if !any {
		return x
	}
	return e.Op("pad", x, e.Ints(plo...), e.Ints(phi...), e.Const(value))
}

// zeroOf is zero as a number of the kind that fits x.
func (e em) zeroOf(x *ir.Value) ir.Datum { return numberFor(e.NeedDType(x), 0) }

// numberFor is f as a float, int or bool, whichever fits the dtype.
func numberFor(d dtype.DType, f float64) ir.Datum {
	switch {
	case d.IsFloat():
		return f
	case d == dtype.Bool:
		return f != 0
	}
	return int64(f)
}

// im2col is F.unfold: [N, C, H, W] -> [N, C*kh*kw, windows].
func (e em) im2col(a []*ir.Value) *ir.Value {
	x := a[0]
	kernel, dilation := e.repeated(a[1], 2, "kernel_size"), e.repeated(a[2], 2, "dilation")
	pad, stride := e.repeated(a[3], 2, "padding"), e.repeated(a[4], 2, "stride")
	batched := rank(e.Builder, x) == 4
	if !batched {
		if rank(e.Builder, x) != 3 {
			e.Failf("Expected 3D or 4D (batch mode) tensor for unfold, but got shape %v", e.NeedShape(x))
		}
		x = e.insert(x, 0)
	}
	if pad[0] < 0 || pad[1] < 0 {
		e.Failf("unfold: padding should be non-negative, but got %v", pad)
	}
	x = e.padDims(x, pad, pad, e.zeroOf(x))
	s := e.NeedShape(x)
	out := e.windowCounts(s[2:], kernel, stride, dilation)
	x = e.windows(x, kernel, stride, dilation)
	x = e.permute(x, 0, 1, 4, 5, 2, 3)
	x = e.reshape(x, s[0], s[1]*product(kernel), product(out))
	if !batched {
		x = e.reshape(x, e.NeedShape(x)[1:]...)
	}
	return x
}

// col2im is F.fold: [N, C*kh*kw, windows] -> [N, C, H, W], overlapping windows added.
func (e em) col2im(a []*ir.Value) *ir.Value {
	x := a[0]
	size, kernel := e.repeated(a[1], 2, "output_size"), e.repeated(a[2], 2, "kernel_size")
	dilation, pad, stride := e.repeated(a[3], 2, "dilation"), e.repeated(a[4], 2, "padding"), e.repeated(a[5], 2, "stride")
	batched := rank(e.Builder, x) == 3
	if !batched {
		if rank(e.Builder, x) != 2 {
			e.Failf("Expected 2D or 3D (batch mode) tensor for fold, but got shape %v", e.NeedShape(x))
		}
		x = e.insert(x, 0)
	}
	s := e.NeedShape(x)
	padded := []int{size[0] + 2*pad[0], size[1] + 2*pad[1]}
	out := e.windowCounts(padded, kernel, stride, dilation)
	if k := product(kernel); k == 0 || s[1]%k != 0 {
		e.Failf("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=%d and kernel_size=%v.", s[1], kernel)
	}
	if s[2] != product(out) {
		e.Failf("Given output_size=%v, kernel_size=%v, dilation=%v, padding=%v, stride=%v, expected size of input's dimension 2 to match the calculated number of sliding blocks %v = %d, but got input.size(2)=%d.",
			size, kernel, dilation, pad, stride, out, product(out), s[2])
	}
	x = e.reshape(x, s[0], s[1]/product(kernel), kernel[0], kernel[1], out[0], out[1])
	x = e.permute(x, 0, 1, 4, 5, 2, 3)
	x = e.Op("fold", x, e.Ints(padded...), e.Ints(stride...), e.Ints(dilation...))
	x = e.padDims(x, []int{-pad[0], -pad[1]}, []int{-pad[0], -pad[1]}, e.zeroOf(x))
	if !batched {
		x = e.reshape(x, e.NeedShape(x)[1:]...)
	}
	return x
}
