package aten

import (
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Padding, resizing and sampling of images.

func init() {
	def(NN, "pad(Tensor input, int[] pad, str mode='constant', Scalar? value=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		value := a[3]
		if isNone(value) {
			value = e.Float(0)
		}
		return e.pad(a[0], constInts(e.Builder, a[1]), constStr(e.Builder, a[2]), value)
	}))
	def(Torch, "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.pad(a[0], constInts(e.Builder, a[1]), "constant", a[2])
	}))
	for _, scale := range []struct{ suffix, kind string }{{"", "float?"}, {".list", "float[]?"}} {
		def(NN, "interpolate"+scale.suffix+"(Tensor input, int[1]? size=None, "+scale.kind+" scale_factor=None, str mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
			expand1(func(e em, a []*ir.Value) *ir.Value {
				if constBool(e.Builder, a[6]) {
					e.Failf("interpolate: antialias=True is not supported")
				}
				return e.interpolate(a[0], a[1], a[2], constStr(e.Builder, a[3]), a[4], a[5])
			}))
		def(NN, "upsample"+scale.suffix+"(Tensor input, int[1]? size=None, "+scale.kind+" scale_factor=None, str mode='nearest', bool? align_corners=None) -> Tensor",
			expand1(func(e em, a []*ir.Value) *ir.Value {
				return e.interpolate(a[0], a[1], a[2], constStr(e.Builder, a[3]), a[4], e.None())
			}))
		def(NN, "upsample_nearest"+scale.suffix+"(Tensor input, int[1]? size=None, "+scale.kind+" scale_factor=None) -> Tensor",
			expand1(func(e em, a []*ir.Value) *ir.Value {
				return e.interpolate(a[0], a[1], a[2], "nearest", e.None(), e.None())
			}))
		def(NN, "upsample_bilinear"+scale.suffix+"(Tensor input, int[1]? size=None, "+scale.kind+" scale_factor=None) -> Tensor",
			expand1(func(e em, a []*ir.Value) *ir.Value {
				return e.interpolate(a[0], a[1], a[2], "bilinear", e.Bool(true), e.None())
			}))
	}
	def(NN, "grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool? align_corners=None) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			return e.gridSample(a[0], a[1], constStr(e.Builder, a[2]), constStr(e.Builder, a[3]), e.optBool(a[4]))
		}))
	def(Torch, "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			modes, paddings := []string{"bilinear", "nearest", "bicubic"}, []string{"zeros", "border", "reflection"}
			mode, padding := constInt(e.Builder, a[2]), constInt(e.Builder, a[3])
			if mode < 0 || mode > 2 || padding < 0 || padding > 2 {
				e.Failf("grid_sampler: expected modes from 0 to 2, got interpolation_mode %d and padding_mode %d", mode, padding)
			}
			return e.gridSample(a[0], a[1], modes[mode], paddings[padding], constBool(e.Builder, a[4]))
		}))
	alias(Torch, "grid_sampler_2d", "grid_sampler")
	alias(Torch, "grid_sampler_3d", "grid_sampler")
	def(NN, "affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.affineGrid(a[0], constInts(e.Builder, a[1]), e.optBool(a[2]))
	}))
}

// optBool reads a flag that may be None, which means false.
func (e em) optBool(v *ir.Value) bool { return !isNone(v) && constBool(e.Builder, v) }

// pad is F.pad: amounts before and after the last dim, then the one before it, and so on; negative amounts cut.
func (e em) pad(x *ir.Value, amounts []int, mode string, value *ir.Value) *ir.Value {
	s := e.NeedShape(x)
	n := len(amounts) / 2
	if len(amounts)%2 != 0 {
		e.Failf("Padding length must be divisible by 2, got %d values", len(amounts))
	}
	if n > len(s) {
		e.Failf("Padding length too large: padding %v for an input with %d dimensions", amounts, len(s))
	}
	lo, hi := make([]int, n), make([]int, n)
	for i := range n {
		lo[n-1-i], hi[n-1-i] = amounts[2*i], amounts[2*i+1]
	}
	if mode == "constant" {
		return e.padValue(x, lo, hi, value)
	}
	if n == 0 || n > 3 || len(s) != n+1 && len(s) != n+2 {
		e.Failf("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now: padding %v does not fit an input of shape %v", amounts, s)
	}
	switch mode {
	case "reflect", "replicate":
	case "circular":
		if len(s) != n+2 {
			e.Failf("Invalid padding size: circular padding %v of an input of shape %v, which must have %d dimensions", amounts, s, n+2)
		}
	default:
		e.Failf("Unrecognised padding mode %s: expected constant, reflect, replicate or circular", mode)
	}
	for i := range n {
		d := len(s) - n + i
		if lo[i] == 0 && hi[i] == 0 {
			continue
		}
		index := e.padIndex(mode, s[d], lo[i], hi[i], d)
		x = e.pick(x, d, e.intTensor([]int{len(index)}, index))
	}
	return x
}

// padValue pads the last dims with a number that may be known only at run time.
func (e em) padValue(x *ir.Value, lo, hi []int, value *ir.Value) *ir.Value {
	d := e.NeedDType(x)
	if _, ok := value.Const(); ok {
		var v ir.Datum = numberFor(d, constFloat(e.Builder, value))
		if i, isInt := e.NeedConst(value).(int64); isInt && d.IsInt() {
			v = i
		}
		return e.padDims(x, lo, hi, v)
	}
	s := e.NeedShape(x)
	inside := e.padDims(e.full(dtype.Bool, 1, s...), lo, hi, false)
	return e.where(inside, e.padDims(x, lo, hi, e.zeroOf(x)), tensorArg(e.Builder, value, d))
}

// padIndex lists the source indices of a padded dim.
func (e em) padIndex(mode string, size, lo, hi, dim int) []int {
	if size+lo+hi <= 0 {
		e.Failf("The input size %d, plus negative padding %d and %d resulted in a non-positive output size at dimension %d", size, lo, hi, dim)
	}
	var source func(i int) int
	switch mode {
	case "reflect":
		if lo >= size || hi >= size {
			e.Failf("Padding size should be less than the corresponding input dimension, but got: padding (%d, %d) at dimension %d of size %d", lo, hi, dim, size)
		}
		source = func(i int) int {
			if i < 0 {
				i = -i
			}
			if i >= size {
				i = 2*(size-1) - i
			}
			return i
		}
	case "replicate":
		if size == 0 {
			e.Failf("Expected a non-empty dimension %d for replicate padding", dim)
		}
		source = func(i int) int { return min(max(i, 0), size-1) }
	case "circular":
		if lo > size || hi > size {
			e.Failf("Padding value causes wrapping around more than once: padding (%d, %d) at dimension %d of size %d", lo, hi, dim, size)
		}
		from := max(-lo, 0) // what negative amounts cut off does not come back at the other side
		kept := size - from + min(hi, 0)
		if kept <= 0 {
			e.Failf("negative padding %d and %d leaves nothing of dimension %d of size %d", lo, hi, dim, size)
		}
		source = func(i int) int { return from + (i-from+size*kept)%kept }
	}
	var index []int
	for i := -lo; i < size+hi; i++ {
		index = append(index, source(i))
	}
	return index
}

// axis is one resized dim.
type axis struct {
	dim, in, out int
	scale        float64 // of the source per step of the output, as given; 0 where sizes were given
}

var interpolateModes = map[string]int{"nearest": 0, "nearest-exact": 0, "area": 0, "linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}

func (e em) interpolate(x, size, scale *ir.Value, mode string, align, recompute *ir.Value) *ir.Value {
	s := e.NeedShape(x)
	n := len(s) - 2
	want, known := interpolateModes[mode]
	switch {
	case !known:
		e.Failf("Input Error: Only 3D, 4D and 5D input Tensors supported with the modes nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got %s)", mode)
	case n < 1 || n > 3:
		e.Failf("Input Error: Only 3D, 4D and 5D input Tensors supported (got %dD)", len(s))
	case want != 0 && want != n:
		e.Failf("Got %dD input, but %s mode needs %dD input", len(s), mode, want+2)
	case want == 0 && !isNone(align):
		e.Failf("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
	}
	if d := e.NeedDType(x); !d.IsFloat() && !(want == 0 && mode != "area" && d == dtype.U8) {
		e.Failf("%q not implemented for '%s': expected a floating point dtype", "interpolate_"+mode, typeName(d))
	}
	axes := e.resizedAxes(s[2:], size, scale, !isNone(recompute) && constBool(e.Builder, recompute))
	for i, ax := range axes {
		if ax.in <= 0 || ax.out < 0 || ax.out == 0 && mode != "area" {
			e.Failf("Input and output sizes should be greater than 0, but got input %v and output size %d at dimension %d", s[2:], ax.out, i)
		}
	}
	if mode == "area" {
		out := make([]int, n)
		for i, ax := range axes {
			out[i] = ax.out
		}
		return e.adaptiveAvg("adaptive_avg_pool", n, x, e.Ints(out...))
	}
	corners := e.optBool(align)
	for i := len(axes) - 1; i >= 0; i-- {
		switch mode {
		case "nearest", "nearest-exact":
			x = e.resizeNearest(x, axes[i], mode == "nearest-exact")
		case "bicubic":
			x = e.resizeCubic(x, axes[i], corners)
		default:
			x = e.resizeLinear(x, axes[i], corners)
		}
	}
	return x
}

// resizedAxes works out the output sizes and scales.
func (e em) resizedAxes(in []int, size, scale *ir.Value, recompute bool) []axis {
	axes := make([]axis, len(in))
	sizes, hasSize := optInts(e.Builder, size)
	switch {
	case hasSize && !isNone(scale):
		e.Failf("only one of size or scale_factor should be defined")
	case hasSize:
		if recompute {
			e.Failf("recompute_scale_factor is not meaningful with an explicit size.")
		}
		if len(sizes) == 1 && len(in) > 1 && e.isInt(size) {
			sizes = e.repeated(size, len(in), "size")
		}
		if len(sizes) != len(in) {
			e.Failf("Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of %v and output size of %v. Please provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format.", in, sizes)
		}
	case isNone(scale):
		e.Failf("either size or scale_factor should be defined")
	}
	var scales []float64
	if !hasSize {
		scales = e.scaleFactors(scale, len(in))
	}
	for i := range in {
		axes[i] = axis{dim: i + 2, in: in[i]}
		if hasSize {
			axes[i].out = sizes[i]
		} else {
			axes[i].out = int(math.Floor(float64(in[i]) * scales[i]))
			if !recompute {
				axes[i].scale = scales[i]
			}
		}
	}
	return axes
}

// isInt reports whether a constant is one int or a list that may stand for one (a front end may have wrapped it).
func (e em) isInt(v *ir.Value) bool {
	d := e.NeedConst(v)
	if _, ok := d.(int64); ok {
		return true
	}
	l, ok := d.(ir.List)
	return ok && l.Len() == 1
}

func (e em) scaleFactors(v *ir.Value, n int) []float64 {
	var out []float64
	switch d := e.NeedConst(v).(type) {
	case ir.List:
		for _, el := range d.Elems() {
			out = append(out, constFloat(e.Builder, e.Const(el)))
		}
	case ir.Tuple:
		for _, el := range d {
			out = append(out, constFloat(e.Builder, e.Const(el)))
		}
	default:
		f := constFloat(e.Builder, v)
		for range n {
			out = append(out, f)
		}
	}
	if len(out) != n {
		e.Failf("Input and scale_factor must have the same number of spatial dimensions, but got input with %d spatial dimensions and scale_factor of shape %v. Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format.", n, out)
	}
	return out
}

// step is the distance in the source of neighbouring output elements.
func (ax axis) step(alignCorners bool) float64 {
	switch {
	case alignCorners && ax.out > 1:
		return float64(ax.in-1) / float64(ax.out-1)
	case alignCorners:
		return 0
	case ax.scale > 0:
		return 1 / ax.scale
	}
	return float64(ax.in) / float64(ax.out)
}

func (e em) resizeNearest(x *ir.Value, ax axis, exact bool) *ir.Value {
	index := make([]int, ax.out)
	step := float32(ax.step(false))
	regular := ax.out%ax.in == 0
	for i := range index {
		pos := float32(i)
		if exact {
			pos += 0.5
		}
		index[i] = min(int(math.Floor(float64(pos*step))), ax.in-1)
		regular = regular && index[i] == i/(ax.out/ax.in)
	}
	switch {
	case regular && ax.out == ax.in:
		return x
	case regular: // every element is repeated as often: a view, whose gradient is a sum
		s := e.NeedShape(x)
		wide := e.insert(x, ax.dim+1)
		wide = broadcastTo(e.Builder, wide, replace(e.NeedShape(wide), ax.dim+1, ax.out/ax.in))
		return e.reshape(wide, replace(s, ax.dim, ax.out)...)
	}
	return e.pick(x, ax.dim, e.intTensor([]int{ax.out}, index))
}

// along gives constants a shape that lies along one dim of x.
func (e em) along(x *ir.Value, dim int, v []float64) *ir.Value {
	s := ones(rank(e.Builder, x))
	s[dim] = len(v)
	return e.floatTensor(e.NeedDType(x), s, v)
}

func (e em) resizeLinear(x *ir.Value, ax axis, corners bool) *ir.Value {
	step := ax.step(corners)
	if step == 1 && ax.in == ax.out {
		return x
	}
	lo, hi := make([]int, ax.out), make([]int, ax.out)
	wlo, whi := make([]float64, ax.out), make([]float64, ax.out)
	for i := range lo {
		pos := step * float64(i)
		if !corners {
			pos = max(0, step*(float64(i)+0.5)-0.5)
		}
		lo[i] = min(int(pos), ax.in-1)
		hi[i] = min(lo[i]+1, ax.in-1)
		whi[i] = min(max(pos-float64(lo[i]), 0), 1)
		wlo[i] = 1 - whi[i]
	}
	n := []int{ax.out}
	a := e.mul(e.pick(x, ax.dim, e.intTensor(n, lo)), e.along(x, ax.dim, wlo))
	b := e.mul(e.pick(x, ax.dim, e.intTensor(n, hi)), e.along(x, ax.dim, whi))
	return e.add(a, b)
}

// cubicWeights are those of the four taps around a position t in [0, 1) after the second of them (Keys' kernel, A = -3/4).
func cubicWeights(t float64) [4]float64 {
	const a = -0.75
	near := func(x float64) float64 { return ((a+2)*x-(a+3))*x*x + 1 }
	far := func(x float64) float64 { return ((a*x-5*a)*x+8*a)*x - 4*a }
	return [4]float64{far(t + 1), near(t), near(1 - t), far(2 - t)}
}

func (e em) resizeCubic(x *ir.Value, ax axis, corners bool) *ir.Value {
	step := ax.step(corners)
	if step == 1 && ax.in == ax.out {
		return x
	}
	var sum *ir.Value
	for tap := range 4 {
		index, weight := make([]int, ax.out), make([]float64, ax.out)
		for i := range index {
			pos := step * float64(i)
			if !corners {
				pos = step*(float64(i)+0.5) - 0.5
			}
			floor := math.Floor(pos)
			index[i] = min(max(int(floor)-1+tap, 0), ax.in-1)
			weight[i] = cubicWeights(pos - floor)[tap]
		}
		term := e.mul(e.pick(x, ax.dim, e.intTensor([]int{ax.out}, index)), e.along(x, ax.dim, weight))
		if sum == nil {
			sum = term
		} else {
			sum = e.add(sum, term)
		}
	}
	return sum
}

// sampler is one call of grid_sample: x [N, C, size...] as [N, C, elements], positions [N, points].
type sampler struct {
	em
	x       *ir.Value
	size    []int
	padding string
	corners bool
}

// gridSample reads x [N, C, in...] at the positions grid [N, out..., dims], in [-1, 1], the last dim of x first.
func (e em) gridSample(x, grid *ir.Value, mode, padding string, corners bool) *ir.Value {
	e.needFloat("grid_sampler", x, grid)
	e.needSame(x, grid)
	s, sg := e.NeedShape(x), e.NeedShape(grid)
	n := len(s) - 2
	switch {
	case n != 2 && n != 3 || len(sg) != len(s):
		e.Failf("grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes %v and grid with sizes %v", s, sg)
	case s[0] != sg[0]:
		e.Failf("grid_sampler(): expected grid and input to have same batch size, but got input with sizes %v and grid with sizes %v", s, sg)
	case sg[len(sg)-1] != n:
		e.Failf("grid_sampler(): expected grid to have size %d in last dimension, but got grid with sizes %v", n, sg)
	case mode != "bilinear" && mode != "nearest" && (mode != "bicubic" || n != 2):
		e.Failf("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or (for 4D input) 'bicubic', but got: '%s'", mode)
	case padding != "zeros" && padding != "border" && padding != "reflection":
		e.Failf("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '%s'", padding)
	case product(s[2:]) == 0:
		e.Failf("grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes %v", s)
	}
	g := sampler{em: e, x: e.reshape(x, s[0], s[1], product(s[2:])), size: s[2:], padding: padding, corners: corners}
	points := product(sg[1 : len(sg)-1])
	flat := e.reshape(grid, s[0], points, n)
	pos := make([]*ir.Value, n)
	for i := range pos { // the grid's first coordinate belongs to the last dim
		c := e.reshape(e.slice(flat, 2, n-1-i, n-i), s[0], points)
		pos[i] = g.source(c, s[2+i])
	}
	var out *ir.Value
	switch mode {
	case "nearest":
		for i := range pos {
			pos[i] = e.detach(e.Op("round", g.fit(pos[i], i)))
		}
		out = g.at(pos)
	case "bilinear":
		for i := range pos {
			pos[i] = g.fit(pos[i], i)
		}
		out = g.linear(pos)
	default:
		out = g.cubic(pos)
	}
	return e.reshape(out, catInts(s[:2], sg[1:len(sg)-1])...)
}

// source maps [-1, 1] to element positions.
func (g sampler) source(c *ir.Value, size int) *ir.Value {
	if g.corners {
		return g.mulF(g.divF(g.addF(c, 1), 2), float64(size-1))
	}
	return g.divF(g.addF(g.mulF(g.addF(c, 1), float64(size)), -1), 2)
}

// fit brings positions along dim i into the input as the padding mode says.
func (g sampler) fit(p *ir.Value, i int) *ir.Value {
	last := float64(g.size[i] - 1)
	switch g.padding {
	case "reflection":
		lo, span := -0.5, last+1
		if g.corners {
			lo, span = 0, last
		}
		if span == 0 {
			return g.mulF(p, 0)
		}
		p = g.abs(g.addF(p, -lo))
		turns := g.detach(g.Op("floor", g.divF(p, span)))
		rest := g.sub(p, g.mulF(turns, span))
		odd := g.ne(binary(g.Builder, "remainder", turns, g.Float(2)), g.Float(0))
		p = g.addF(g.where(odd, g.sub(g.Float(span), rest), rest), lo)
		return g.hardtanh(p, 0, last)
	case "border":
		return g.hardtanh(p, 0, last)
	}
	return p
}

// at reads x at whole positions; zero outside.
func (g sampler) at(pos []*ir.Value) *ir.Value {
	var inside, flat *ir.Value
	for i, p := range pos {
		in := g.and(g.ge(p, g.Float(0)), g.le(p, g.Float(float64(g.size[i]-1))))
		k := cast(g.Builder, g.where(in, p, g.Float(0)), dtype.I64)
		if i == 0 {
			inside, flat = in, k
			continue
		}
		inside, flat = g.and(inside, in), g.add(g.mul(flat, g.Int(g.size[i])), k)
	}
	s, points := g.NeedShape(g.x), g.NeedShape(flat)[1]
	index := broadcastTo(g.Builder, g.insert(flat, 1), []int{s[0], s[1], points})
	v := g.Op("gather", g.x, g.Int(2), index)
	return g.where(g.insert(inside, 1), v, g.Float(0))
}

// linear weighs the corners around the positions.
func (g sampler) linear(pos []*ir.Value) *ir.Value {
	n := len(pos)
	low, high, wlow, whigh := make([]*ir.Value, n), make([]*ir.Value, n), make([]*ir.Value, n), make([]*ir.Value, n)
	for i, p := range pos {
		low[i] = g.detach(g.Op("floor", p))
		high[i] = g.addF(low[i], 1)
		wlow[i], whigh[i] = g.sub(high[i], p), g.sub(p, low[i])
	}
	var sum *ir.Value
	for corner := range 1 << n {
		at := make([]*ir.Value, n)
		var weight *ir.Value
		for i := range n {
			w := wlow[i]
			if at[i] = low[i]; corner>>(n-1-i)&1 == 1 {
				at[i], w = high[i], whigh[i]
			}
			if weight == nil {
				weight = w
			} else {
				weight = g.mul(weight, w)
			}
		}
		term := g.mul(g.at(at), g.insert(weight, 1))
		if sum == nil {
			sum = term
		} else {
			sum = g.add(sum, term)
		}
	}
	return sum
}

// cubic weighs the 4x4 elements around the positions; the padding mode moves the elements, not the positions.
func (g sampler) cubic(pos []*ir.Value) *ir.Value {
	var base [2]*ir.Value
	var weights [2][4]*ir.Value
	for i, p := range pos {
		base[i] = g.detach(g.Op("floor", p))
		weights[i] = g.cubicTaps(g.sub(p, base[i]))
	}
	var sum *ir.Value
	for y := range 4 {
		var row *ir.Value
		for x := range 4 {
			at := []*ir.Value{g.fit(g.addF(base[0], float64(y-1)), 0), g.fit(g.addF(base[1], float64(x-1)), 1)}
			term := g.mul(g.at(at), g.insert(weights[1][x], 1))
			if row == nil {
				row = term
			} else {
				row = g.add(row, term)
			}
		}
		row = g.mul(row, g.insert(weights[0][y], 1))
		if sum == nil {
			sum = row
		} else {
			sum = g.add(sum, row)
		}
	}
	return sum
}

// cubicTaps is cubicWeights for positions known at run time.
func (g sampler) cubicTaps(t *ir.Value) [4]*ir.Value {
	const a = -0.75
	near := func(x *ir.Value) *ir.Value {
		return g.addF(g.mul(g.mul(g.addF(g.mulF(x, a+2), -(a+3)), x), x), 1)
	}
	far := func(x *ir.Value) *ir.Value {
		return g.addF(g.mul(g.addF(g.mul(g.addF(g.mulF(x, a), -5*a), x), 8*a), x), -4*a)
	}
	one := g.Float(1)
	return [4]*ir.Value{far(g.addF(t, 1)), near(t), near(g.sub(one, t)), far(g.sub(g.Float(2), t))}
}

// affineGrid is the grid of positions that theta [N, 2, 3] (or [N, 3, 4]) maps an output of the given size to.
func (e em) affineGrid(theta *ir.Value, size []int, corners bool) *ir.Value {
	e.needFloat("affine_grid", theta)
	st := e.NeedShape(theta)
	n := len(size) - 2
	if n != 2 && n != 3 {
		e.Failf("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size %v.", size)
	}
	if !sameInts(st, []int{size[0], n, n + 1}) {
		e.Failf("Expected a batch of %dD affine matrices of shape %dx%dx%d for size %v. Got %v.", n, size[0], n, n+1, size, st)
	}
	for _, k := range size {
		if k <= 0 {
			e.Failf("Expected non-zero, positive output size. Got %v", size)
		}
	}
	out := size[2:]
	base := make([]float64, 0, product(out)*(n+1))
	for p := range product(out) {
		coords := make([]float64, n+1)
		coords[n] = 1
		for i, rest := n-1, p; i >= 0; i-- {
			coords[n-1-i] = gridCoordinate(rest%out[i], out[i], corners)
			rest /= out[i]
		}
		base = append(base, coords...)
	}
	grid := e.floatTensor(e.NeedDType(theta), catInts(out, []int{n + 1}), base)
	g := e.dot(grid, theta, 0, 1) // [out..., N, n]
	return e.permute(g, catInts([]int{n}, span(0, n), []int{n + 1})...)
}

// gridCoordinate is element i of size positions that cover [-1, 1]: end to end, or as centres of equal cells.
func gridCoordinate(i, size int, corners bool) float64 {
	switch {
	case size == 1:
		return 0
	case corners:
		return -1 + 2*float64(i)/float64(size-1)
	}
	return (2*float64(i)+1)/float64(size) - 1
}
