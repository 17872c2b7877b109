package aten

import (
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Vector and matrix norms, distances, and the normalisation layers' functions.

func init() {
	vectorNorms()
	normalisations()
}

func vectorNorms() {
	norm := func(e em, a []*ir.Value) *ir.Value {
		x := e.normOperand(a[0], a[4])
		return e.vectorNorm(x, constFloat(e.Builder, a[1]), reduceDims(e.Builder, x, a[2]), constBool(e.Builder, a[3]))
	}
	def(Torch, "frobenius_norm(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.vectorNorm(a[0], 2, reduceDims(e.Builder, a[0], a[1]), constBool(e.Builder, a[2]))
	}))
	def(Linalg, "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", expand1(norm))
	alias(Linalg, "vector_norm", "linalg_vector_norm")
	matrix := func(e em, a []*ir.Value) *ir.Value {
		return e.matrixNorm(e.normOperand(a[0], a[4]), a[1], constInts(e.Builder, a[2]), constBool(e.Builder, a[3]))
	}
	def(Linalg, "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", expand1(matrix))
	def(Linalg, "linalg_matrix_norm.str(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", expand1(matrix))
	alias(Linalg, "matrix_norm", "linalg_matrix_norm")
	def(Linalg, "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", expand1(linalgNorm))
	def(Linalg, "linalg_norm.str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", expand1(linalgNorm))
	alias(Linalg, "norm", "linalg_norm")

	def(Method|Torch, "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		x, r := a[0], rank(e.Builder, a[0])
		if r < 2 {
			e.Failf("renorm: input needs at least 2 dimensions, got %d dimensions", r)
		}
		p := constFloat(e.Builder, a[1])
		if p <= 0 {
			e.Failf("renorm: non-positive-norm not supported, got p=%g", p)
		}
		if most, known := a[3].Const(); known && constFloat(e.Builder, a[3]) < 0 {
			e.Failf("renorm: expected maxnorm to be >= 0 but got %v", most)
		}
		d := wrapDim(e.Builder, constInt(e.Builder, a[2]), r)
		n := e.vectorNorm(x, p, others(r, []int{d}), true)
		scale := e.div(a[3], e.addF(n, 1e-7))
		return e.mul(x, e.where(e.gt(n, a[3]), scale, e.Float(1)))
	}))
	def(NN, "normalize(Tensor input, float p=2.0, int dim=1, float eps=1e-12) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		x := a[0]
		e.needFloat("norm", x)
		d := wrapDim(e.Builder, constInt(e.Builder, a[2]), rank(e.Builder, x))
		return e.div(x, e.clampMin(e.vectorNorm(x, constFloat(e.Builder, a[1]), e.dimList(x, d), true), constFloat(e.Builder, a[3])))
	}))
	def(NN|Torch, "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.cosineSimilarity(a[0], a[1], constInt(e.Builder, a[2]), constFloat(e.Builder, a[3]))
	}))
	def(NN|Torch, "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor", expand1(func(e em, a []*ir.Value) *ir.Value {
		return e.pairwiseDistance(a[0], a[1], constFloat(e.Builder, a[2]), constFloat(e.Builder, a[3]), constBool(e.Builder, a[4]))
	}))
}

// dimList is the list of one dim, empty for a 0-d tensor.
func (e em) dimList(x *ir.Value, d int) []int {
	if rank(e.Builder, x) == 0 {
		return []int{}
	}
	return []int{d}
}

// normOperand applies the dtype argument of a norm and rejects integers.
func (e em) normOperand(x, dt *ir.Value) *ir.Value {
	if !isNone(dt) {
		x = cast(e.Builder, x, constDType(e.Builder, dt))
	}
	if d := e.NeedDType(x); !d.IsFloat() {
		e.Failf("linalg.norm: Expected a floating point or complex tensor as input. Got %s", typeName(d))
	}
	return x
}

// vectorNorm is the p-norm over dims (sorted). Its gradient at zero is zero.
func (e em) vectorNorm(x *ir.Value, p float64, dims []int, keep bool) *ir.Value {
	if d := e.NeedDType(x); !d.IsFloat() {
		e.Failf("linalg.vector_norm: Expected a floating point or complex tensor as input. Got %s", typeName(d))
	}
	return vectorNorm(e.Builder, x, p, dims, keep)
}

// matrixNorm is a norm of the matrices that two dims span.
func (e em) matrixNorm(x, ord *ir.Value, dims []int, keep bool) *ir.Value {
	r := rank(e.Builder, x)
	if len(dims) != 2 || r < 2 {
		e.Failf("linalg.matrix_norm: dim must be a 2-tuple and the tensor at least 2-dimensional. Got dims %v and %d dimensions", dims, r)
	}
	dims = wrapDims(e.Builder, dims, r)
	both := []int{min(dims[0], dims[1]), max(dims[0], dims[1])}
	if kind := spectralKind(e, ord); kind != "" {
		out := e.spectral(e.permute(x, catInts(others(r, both), dims)...), kind)
		if keep {
			out = e.insert(out, both...)
		}
		return out
	}
	if s, ok := e.NeedConst(ord).(string); ok {
		if s != "fro" {
			e.Failf("linalg.matrix_norm: Order %s not supported: use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf", s)
		}
		return e.vectorNorm(x, 2, both, keep)
	}
	p := constFloat(e.Builder, ord)
	over, along := dims[0], dims[1] // sums of columns
	if math.IsInf(p, 0) {
		over, along = along, over
	} else if math.Abs(p) != 1 {
		e.Failf("linalg.matrix_norm: Order %g not supported: use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf", p)
	}
	op := "amax"
	if p < 0 {
		op = "amin"
	}
	out := e.Op(op, e.sum(e.abs(x), true, over), e.Ints(along), e.Bool(true))
	if keep {
		return out
	}
	s := e.NeedShape(out)
	return e.reshape(out, remove(remove(s, both[1]), both[0])...)
}

// spectralKind names the norms by singular values: 2, -2 and nuc; all others are the empty string.
func spectralKind(e em, ord *ir.Value) string {
	switch {
	case isConst(ord, 2):
		return "2"
	case isConst(ord, -2):
		return "-2"
	}
	if s, ok := e.NeedConst(ord).(string); ok && s == "nuc" {
		return s
	}
	return ""
}

func linalgNorm(e em, a []*ir.Value) *ir.Value {
	x, ord, keep := e.normOperand(a[0], a[4]), a[1], constBool(e.Builder, a[3])
	dims, given := optInts(e.Builder, a[2])
	r := rank(e.Builder, x)
	switch {
	case isNone(ord):
		return e.vectorNorm(x, 2, reduceDims(e.Builder, x, a[2]), keep)
	case given && len(dims) == 2 || !given && r == 2:
		if !given {
			dims = []int{0, 1}
		}
		return e.matrixNorm(x, ord, dims, keep)
	case given && len(dims) == 1 || !given && r == 1:
		return e.vectorNorm(x, constFloat(e.Builder, ord), reduceDims(e.Builder, x, a[2]), keep)
	}
	e.Failf("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD", r)
	return nil
}

// clampMin is the larger of x and lo; NaN stays.
func (e em) clampMin(x *ir.Value, lo float64) *ir.Value {
	return e.where(e.lt(x, e.Float(lo)), e.Float(lo), x)
}

func (e em) cosineSimilarity(x, y *ir.Value, dim int, eps float64) *ir.Value {
	d := floatOf(promote(e.Builder, x, y))
	xy := broadcast(e.Builder, cast(e.Builder, x, d), cast(e.Builder, y, d))
	k := e.dimList(xy[0], wrapDim(e.Builder, dim, rank(e.Builder, xy[0])))
	unit := func(v *ir.Value) *ir.Value {
		return e.div(v, e.clampMin(e.vectorNorm(v, 2, k, true), eps))
	}
	return e.sum(e.mul(unit(xy[0]), unit(xy[1])), false, k...)
}

func (e em) pairwiseDistance(x, y *ir.Value, p, eps float64, keep bool) *ir.Value {
	diff := e.addF(e.sub(x, y), eps)
	return e.vectorNorm(diff, p, e.dimList(diff, rank(e.Builder, diff)-1), keep)
}

func normalisations() {
	batchNorm := func(e em, x, mean, variance, w, b, training, momentum, eps *ir.Value) []*ir.Value {
		return e.batchNorm(bnCall{x: x, mean: mean, variance: variance, w: w, b: b, training: constBool(e.Builder, training),
			momentum: momentum, eps: constFloat(e.Builder, eps)})
	}
	def(NN, "batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			return batchNorm(e, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7])[0]
		}))
	def(Torch, "batch_norm.torch(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled=True) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			return batchNorm(e, a[0], a[3], a[4], a[1], a[2], a[5], a[6], a[7])[0]
		}))
	// batch_norm_stats is batch_norm with its effect as values: the output and the new running statistics (as they were where
	// training is false, None where they are None). Front ends emit it and write the statistics back.
	def(Hidden, "batch_norm_stats(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05) -> (Tensor, Tensor?, Tensor?)",
		func(b *ir.Builder, a []*ir.Value) []*ir.Value {
			return batchNorm(em{b}, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7])
		})
	def(NN, "instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value { return e.instanceNorm(a)[0] }))
	def(Torch, "instance_norm.torch(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled=True) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			return e.instanceNorm([]*ir.Value{a[0], a[3], a[4], a[1], a[2], a[5], a[6], a[7]})[0]
		}))
	// instance_norm_stats is to instance_norm what batch_norm_stats is to batch_norm.
	def(Hidden, "instance_norm_stats(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> (Tensor, Tensor?, Tensor?)",
		func(b *ir.Builder, a []*ir.Value) []*ir.Value { return em{b}.instanceNorm(a) })
	def(NN|Torch, "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			return e.layerNorm(a[0], constInts(e.Builder, a[1]), a[2], a[3], constFloat(e.Builder, a[4]))
		}))
	def(NN|Torch, "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			return e.groupNorm(a[0], constInt(e.Builder, a[1]), a[2], a[3], constFloat(e.Builder, a[4]))
		}))
	def(NN, "local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value { return e.localResponseNorm(a) }))
}

// standardise subtracts the mean over dims and divides by the square root of the (biased) variance plus eps.
func (e em) standardise(x *ir.Value, dims []int, eps float64) (out, mean, variance *ir.Value) {
	mean = e.mean(x, true, dims...)
	centred := e.sub(x, mean)
	variance = e.mean(e.sqr(centred), true, dims...)
	return e.mul(centred, e.Op("rsqrt", e.addF(variance, eps))), mean, variance
}

// affine is x*w + b, w and b along the channels (dim 1) and each possibly None.
func (e em) affine(x, w, b *ir.Value) *ir.Value {
	s := ones(rank(e.Builder, x))
	along := func(name string, v *ir.Value) *ir.Value {
		n := numel(e.Builder, v)
		if c := e.NeedShape(x)[1]; n != c {
			e.Failf("%s should contain %d elements not %d", name, c, n)
		}
		shape := append([]int{}, s...)
		shape[1] = n
		return cast(e.Builder, e.reshape(v, shape...), e.NeedDType(x))
	}
	if !isNone(w) {
		x = e.mul(x, along("weight", w))
	}
	if !isNone(b) {
		x = e.add(x, along("bias", b))
	}
	return x
}

// wide is x in the dtype that statistics are computed in: f32 for halves.
func (e em) wide(x *ir.Value) *ir.Value {
	if e.NeedDType(x).IsHalf() {
		return cast(e.Builder, x, dtype.F32)
	}
	return x
}

type bnCall struct {
	x, mean, variance, w, b *ir.Value
	training                bool
	momentum                *ir.Value
	eps                     float64
}

// batchNorm gives the output and the new running statistics.
func (e em) batchNorm(c bnCall) []*ir.Value {
	e.needFloat("batch_norm", c.x)
	s, d := e.NeedShape(c.x), e.NeedDType(c.x)
	if len(s) < 2 {
		e.Failf("batch_norm: expected at least 2 dimensions (batch and channel), got input of size %v", s)
	}
	x := e.wide(c.x)
	n := 1
	for i, size := range s {
		if i != 1 {
			n *= size
		}
	}
	if !c.training {
		if isNone(c.mean) || isNone(c.variance) {
			e.Failf("Expected running_mean and running_var to be defined when training=False")
		}
		along := ones(len(s))
		along[1] = s[1]
		stat := func(name string, v *ir.Value) *ir.Value {
			if numel(e.Builder, v) != s[1] {
				e.Failf("%s should contain %d elements not %d", name, s[1], numel(e.Builder, v))
			}
			return cast(e.Builder, e.reshape(v, along...), e.NeedDType(x))
		}
		out := e.mul(e.sub(x, stat("running_mean", c.mean)), e.Op("rsqrt", e.addF(stat("running_var", c.variance), c.eps)))
		return []*ir.Value{cast(e.Builder, e.affine(out, c.w, c.b), d), c.mean, c.variance}
	}
	if n == 1 {
		e.Failf("Expected more than 1 value per channel when training, got input size %v", s)
	}
	out, mean, variance := e.standardise(x, others(len(s), []int{1}), c.eps)
	return []*ir.Value{
		cast(e.Builder, e.affine(out, c.w, c.b), d),
		e.running("running_mean", c.mean, mean, 1, c.momentum),
		e.running("running_var", c.variance, variance, float64(n)/float64(n-1), c.momentum),
	}
}

// running moves a statistic (None: none is kept) towards the one just measured, times correction. It has no gradient.
func (e em) running(name string, old, measured *ir.Value, correction float64, momentum *ir.Value) *ir.Value {
	if isNone(old) {
		return old
	}
	s := e.NeedShape(old)
	if product(s) != numel(e.Builder, measured) {
		e.Failf("%s should contain %d elements not %d", name, numel(e.Builder, measured), product(s))
	}
	d := e.NeedDType(old)
	m := cast(e.Builder, e.reshape(e.detach(measured), s...), d)
	if correction != 1 {
		m = e.mulF(m, correction)
	}
	mt := tensorArg(e.Builder, momentum, d)
	keep := e.sub(e.Float(1), mt)
	return e.add(e.mul(e.detach(old), keep), e.mul(m, mt))
}

func (e em) instanceNorm(a []*ir.Value) []*ir.Value {
	x, mean, variance, w, b := a[0], a[1], a[2], a[3], a[4]
	eps := constFloat(e.Builder, a[7])
	e.needFloat("instance_norm", x)
	s, d := e.NeedShape(x), e.NeedDType(x)
	if len(s) < 2 {
		e.Failf("instance_norm: expected at least 2 dimensions (batch and channel), got input of size %v", s)
	}
	if !constBool(e.Builder, a[5]) {
		return e.batchNorm(bnCall{x: x, mean: mean, variance: variance, w: w, b: b, momentum: a[6], eps: eps})
	}
	n := product(s[2:])
	if n == 1 {
		e.Failf("Expected more than 1 spatial element when training, got input size %v", s)
	}
	out, m, v := e.standardise(e.wide(x), span(2, len(s)), eps)
	overBatch := func(t *ir.Value) *ir.Value { return e.mean(t, true, 0) }
	return []*ir.Value{
		cast(e.Builder, e.affine(out, w, b), d),
		e.running("running_mean", mean, overBatch(m), 1, a[6]),
		e.running("running_var", variance, overBatch(v), float64(n)/float64(n-1), a[6]),
	}
}

func (e em) layerNorm(x *ir.Value, shape []int, w, b *ir.Value, eps float64) *ir.Value {
	e.needFloat("layer_norm", x)
	s, d := e.NeedShape(x), e.NeedDType(x)
	if len(shape) == 0 {
		e.Failf("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []")
	}
	if len(s) < len(shape) || !sameInts(s[len(s)-len(shape):], shape) {
		e.Failf("Given normalized_shape=%v, expected input with shape [*, %v], but got input of size%v", shape, shape, s)
	}
	out, _, _ := e.standardise(e.wide(x), span(len(s)-len(shape), len(s)), eps)
	scale := func(name string, v *ir.Value) *ir.Value {
		if sv := e.NeedShape(v); !sameInts(sv, shape) {
			e.Failf("Expected %s to be of same shape as normalized_shape, but got %s of shape %v and normalized_shape = %v", name, name, sv, shape)
		}
		return cast(e.Builder, v, e.NeedDType(out))
	}
	if !isNone(w) {
		out = e.mul(out, scale("weight", w))
	}
	if !isNone(b) {
		out = e.add(out, scale("bias", b))
	}
	return cast(e.Builder, out, d)
}

func (e em) groupNorm(x *ir.Value, groups int, w, b *ir.Value, eps float64) *ir.Value {
	e.needFloat("group_norm", x)
	s, d := e.NeedShape(x), e.NeedDType(x)
	if len(s) < 2 {
		e.Failf("Expected at least 2 dimensions for input tensor but received %d", len(s))
	}
	if groups <= 0 || s[1]%groups != 0 {
		e.Failf("Expected number of channels in input to be divisible by num_groups, but got input of shape %v and num_groups=%d", s, groups)
	}
	rest := s[1] / groups * product(s[2:])
	if s[0]*rest == 1 {
		e.Failf("Expected more than 1 value per channel when training, got input size %v", s)
	}
	out, _, _ := e.standardise(e.reshape(e.wide(x), s[0], groups, rest), []int{2}, eps)
	return cast(e.Builder, e.affine(e.reshape(out, s...), w, b), d)
}

// localResponseNorm divides by a power of the mean square over neighbouring channels.
func (e em) localResponseNorm(a []*ir.Value) *ir.Value {
	x, size := a[0], constInt(e.Builder, a[1])
	s := e.NeedShape(x)
	if len(s) < 3 {
		e.Failf("Expected 3D or higher dimensionality input (got %d dimensions)", len(s))
	}
	sq := e.moveLast(e.sqr(x), 1)
	sq = e.padDims(sq, []int{size / 2}, []int{(size - 1) / 2}, 0.0)
	sq = e.divF(e.sum(e.windows(sq, []int{size}, []int{1}, []int{1}), false, len(s)), float64(size))
	r := len(s)
	sq = e.permute(sq, catInts([]int{0, r - 1}, span(1, r-1))...)
	return e.div(x, e.pow(e.add(e.mul(sq, a[2]), a[4]), a[3]))
}
