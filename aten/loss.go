package aten

import (
	"fmt"
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Loss functions. reduction is 'none', 'mean' or 'sum'; the deprecated size_average and reduce decide instead where one is given.

// Parameters that most losses end with.
const reductionParams = "bool? size_average=None, bool? reduce=None, str reduction='mean'"

func init() {
	loss := func(schema string, f func(e em, a []*ir.Value) *ir.Value) { def(NN, schema, expand1(f)) }
	num := func(e em, v *ir.Value) float64 { return constFloat(e.Builder, v) }
	flag := func(e em, v *ir.Value) bool { return constBool(e.Builder, v) }

	loss("mse_loss(Tensor input, Tensor target, "+reductionParams+") -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		e.needFloat("mse_loss", e.sub(a[0], a[1]))
		return e.reduced(e.sqr(e.sub(a[0], a[1])), a[2:])
	})
	loss("l1_loss(Tensor input, Tensor target, "+reductionParams+") -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		return e.reduced(e.abs(e.sub(a[0], a[1])), a[2:])
	})
	loss("smooth_l1_loss(Tensor input, Tensor target, "+reductionParams+", float beta=1.0) -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		e.needFloat("smooth_l1_loss", e.sub(a[0], a[1]))
		return e.reduced(e.smoothL1(e.sub(a[0], a[1]), num(e, a[5])), a[2:5])
	})
	loss("huber_loss(Tensor input, Tensor target, str reduction='mean', float delta=1.0) -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		e.needFloat("huber_loss", e.sub(a[0], a[1]))
		return e.reduced(e.huber(e.sub(a[0], a[1]), num(e, a[3])), a[2:3])
	})
	loss("nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str reduction='mean') -> Tensor",
		func(e em, a []*ir.Value) *ir.Value {
			return e.nll(a[0], a[1], a[2], constInt(e.Builder, a[4]), e.reduction(a[3], a[5], a[6]))
		})
	loss("cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str reduction='mean', float label_smoothing=0.0) -> Tensor",
		func(e em, a []*ir.Value) *ir.Value {
			return e.crossEntropy(a[0], a[1], a[2], constInt(e.Builder, a[4]), e.reduction(a[3], a[5], a[6]), num(e, a[7]))
		})
	loss("binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, "+reductionParams+") -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		x, t := a[0], a[1]
		e.sameSizes("binary_cross_entropy", x, t)
		e.needFloat("binary_cross_entropy", x, t)
		sameDType(e.Builder, "binary_cross_entropy: input and target", x, t)
		e.must(e.and(e.ge(x, e.Float(0)), e.le(x, e.Float(1))), "binary_cross_entropy: all elements of input should be between 0 and 1")
		log := func(v *ir.Value) *ir.Value { // at least -100; constant at 0, where the derivative is infinite
			zero := e.eq(v, e.Float(0))
			return e.where(zero, e.Float(-100), e.clampMin(e.log(e.where(zero, e.Float(1), v)), -100))
		}
		l := e.sub(e.mul(e.addF(t, -1), log(e.sub(e.Float(1), x))), e.mul(t, log(x)))
		return e.reduced(e.weighted(l, a[2]), a[3:])
	})
	loss("binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, "+reductionParams+", Tensor? pos_weight=None) -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		x, t := a[0], a[1]
		if !sameInts(e.NeedShape(x), e.NeedShape(t)) {
			e.Failf("Target size (%v) must be the same as input size (%v)", e.NeedShape(t), e.NeedShape(x))
		}
		e.needFloat("binary_cross_entropy_with_logits", x, t)
		soft := e.neg(e.logSigmoid(x)) // log(1+exp(-x))
		if !isNone(a[6]) {
			soft = e.mul(e.addF(e.mul(e.addF(a[6], -1), t), 1), soft)
		}
		l := e.add(e.mul(e.sub(e.Float(1), t), x), soft)
		return e.reduced(e.weighted(l, a[2]), a[3:6])
	})
	loss("kl_div(Tensor input, Tensor target, "+reductionParams+", bool log_target=False) -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		x, t := a[0], a[1]
		var l *ir.Value
		if flag(e, a[5]) {
			l = e.mul(e.exp(t), e.sub(t, x))
		} else {
			l = e.sub(e.Op("xlogy", t, t), e.mul(t, x))
		}
		red := e.reduction(a[2:5]...)
		if red != "batchmean" {
			return e.reduceLoss(l, red)
		}
		s := e.NeedShape(x)
		if len(s) == 0 {
			return l
		}
		return e.divF(e.reduceLoss(l, "sum"), float64(s[0]))
	})
	loss("poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, bool? size_average=None, float eps=1e-08, bool? reduce=None, str reduction='mean') -> Tensor",
		func(e em, a []*ir.Value) *ir.Value {
			x, t := a[0], a[1]
			var l *ir.Value
			if flag(e, a[2]) {
				l = e.sub(e.exp(x), e.mul(t, x))
			} else {
				l = e.sub(x, e.mul(t, e.log(e.add(x, a[5]))))
			}
			if flag(e, a[3]) { // Stirling's approximation of log(target!)
				big := e.gt(t, e.Float(1))
				safe := e.where(big, t, e.Float(1))
				stirling := e.add(e.sub(e.mul(safe, e.log(safe)), safe), e.mulF(e.log(e.mulF(safe, 2*math.Pi)), 0.5))
				l = e.add(l, e.where(big, stirling, e.Float(0)))
			}
			return e.reduceLoss(l, e.reduction(a[4], a[6], a[7]))
		})
	loss("gaussian_nll_loss(Tensor input, Tensor target, Tensor var, bool full=False, float eps=1e-06, str reduction='mean') -> Tensor", gaussianNLL)
	loss("hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, "+reductionParams+") -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		x, t, zero := a[0], a[1], e.Float(0)
		apart := e.where(e.ne(t, e.Int(1)), e.clampMin(e.sub(a[2], x), 0), zero)
		near := e.where(e.ne(t, e.Int(-1)), x, zero)
		return e.reduced(e.add(apart, near), a[3:])
	})
	loss("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, "+reductionParams+") -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		e.sameRanks("margin_ranking_loss", a[:3]...)
		return e.reduced(e.clampMin(e.add(e.mul(e.neg(a[2]), e.sub(a[0], a[1])), a[3]), 0), a[4:])
	})
	loss("soft_margin_loss(Tensor input, Tensor target, "+reductionParams+") -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		return e.reduced(e.Op("log1p", e.exp(e.mul(e.neg(a[1]), a[0]))), a[2:])
	})
	loss("multi_margin_loss(Tensor input, Tensor target, int p=1, float margin=1.0, Tensor? weight=None, "+reductionParams+") -> Tensor", multiMargin)
	loss("multilabel_margin_loss(Tensor input, Tensor target, "+reductionParams+") -> Tensor", multilabelMargin)
	loss("multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, "+reductionParams+") -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		x, t := a[0], a[1]
		if rank(e.Builder, x) == 0 {
			e.Failf("multilabel_soft_margin_loss: expected an input with at least 1 dimension")
		}
		l := e.neg(e.add(e.mul(t, e.logSigmoid(x)), e.mul(e.sub(e.Float(1), t), e.logSigmoid(e.neg(x)))))
		l = e.weighted(l, a[2])
		last := rank(e.Builder, l) - 1
		return e.reduced(e.mean(l, false, last), a[3:])
	})
	loss("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, "+reductionParams+") -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		x, y, t := a[0], a[1], a[2]
		last := rank(e.Builder, x) - 1
		if last < 0 || last > 1 {
			e.Failf("cosine_embedding_loss: 1D or 2D input tensors are expected, got shape %v", e.NeedShape(x))
		}
		if r := rank(e.Builder, t); r != last {
			e.Failf("cosine_embedding_loss: a %dD target expects %dD input tensors, but got inputs of shapes %v and %v", r, r+1, e.NeedShape(x), e.NeedShape(y))
		}
		square := func(v *ir.Value) *ir.Value { return e.addF(e.sum(e.sqr(v), false, last), 1e-12) }
		xy := e.mul(x, y)
		cos := e.div(e.sum(xy, false, last), e.sqrt(e.mul(square(x), square(y))))
		zero := e.Float(0)
		l := e.add(e.where(e.eq(t, e.Int(1)), e.sub(e.Float(1), cos), zero), e.where(e.eq(t, e.Int(-1)), e.clampMin(e.sub(cos, a[3]), 0), zero))
		return e.reduced(l, a[4:])
	})
	loss("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, bool swap=False, "+reductionParams+") -> Tensor",
		func(e em, a []*ir.Value) *ir.Value {
			e.sameRanks("triplet_margin_loss", a[:3]...)
			p, eps := num(e, a[4]), num(e, a[5])
			near, far := e.pairwiseDistance(a[0], a[1], p, eps, false), e.pairwiseDistance(a[0], a[2], p, eps, false)
			if flag(e, a[6]) {
				far = e.mini(far, e.pairwiseDistance(a[1], a[2], p, eps, false))
			}
			return e.reduced(e.clampMin(e.add(e.sub(near, far), a[3]), 0), a[7:])
		})
	loss("ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, str reduction='mean', bool zero_infinity=False) -> Tensor", ctcLoss)
	loss("ctc_loss.list(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, str reduction='mean', bool zero_infinity=False) -> Tensor",
		func(e em, a []*ir.Value) *ir.Value {
			lengths := func(v *ir.Value) *ir.Value {
				l := constInts(e.Builder, v)
				return e.intTensor([]int{len(l)}, l)
			}
			return ctcLoss(e, []*ir.Value{a[0], a[1], lengths(a[2]), lengths(a[3]), a[4], a[5], a[6]})
		})
	alias(Torch, "ctc_loss", "ctc_loss")
	for _, name := range []string{"kl_div", "hinge_embedding_loss", "margin_ranking_loss", "cosine_embedding_loss", "triplet_margin_loss", "binary_cross_entropy_with_logits"} {
		alias(Torch, name, name)
	}
}

// reduction reads (size_average, reduce, reduction), or reduction alone.
func (e em) reduction(a ...*ir.Value) string {
	if len(a) == 3 && !(isNone(a[0]) && isNone(a[1])) {
		average := isNone(a[0]) || constBool(e.Builder, a[0])
		reduce := isNone(a[1]) || constBool(e.Builder, a[1])
		switch {
		case !reduce:
			return "none"
		case average:
			return "mean"
		}
		return "sum"
	}
	return constStr(e.Builder, a[len(a)-1])
}

func (e em) reduced(l *ir.Value, a []*ir.Value) *ir.Value { return e.reduceLoss(l, e.reduction(a...)) }

func (e em) reduceLoss(l *ir.Value, reduction string) *ir.Value {
	all := allDims(e.Builder, l)
	switch reduction {
	case "none":
		return l
	case "sum":
		return e.sum(l, false, all...)
	case "mean":
		e.needFloat("mean", l)
		return e.mean(l, false, all...)
	}
	e.Failf("%s is not a valid value for reduction: expected none, mean or sum", reduction)
	return nil
}

// sameSizes stops unless two tensors have one shape.
func (e em) sameSizes(name string, x, t *ir.Value) {
	if sx, st := e.NeedShape(x), e.NeedShape(t); !sameInts(sx, st) {
		e.Failf("%s: Using a target size (%v) that is different to the input size (%v). Please ensure they have the same size.", name, st, sx)
	}
}

// sameRanks stops unless tensors have equally many dimensions.
func (e em) sameRanks(name string, xs ...*ir.Value) {
	for _, x := range xs[1:] {
		if rank(e.Builder, x) != rank(e.Builder, xs[0]) {
			e.Failf("%s: all input tensors should have the same number of dimensions, but got shapes %v and %v", name, e.NeedShape(xs[0]), e.NeedShape(x))
		}
	}
}

// must fails at run time unless all elements of a bool tensor are true.
func (e em) must(cond *ir.Value, message string) {
	e.Emit("assert", e.Op("item_bool", reduce(e.Builder, "all", cond, allDims(e.Builder, cond), false)), e.Str(message))
}

// weighted multiplies with a weight that may be None.
func (e em) weighted(l, w *ir.Value) *ir.Value {
	if isNone(w) {
		return l
	}
	return e.mul(l, w)
}

func (e em) smoothL1(d *ir.Value, beta float64) *ir.Value {
	if beta < 0 {
		e.Failf("smooth_l1_loss does not support negative values for beta, got %g", beta)
	}
	z := e.abs(d)
	if beta == 0 {
		return z
	}
	return e.where(e.lt(z, e.Float(beta)), e.divF(e.mul(e.mulF(d, 0.5), d), beta), e.addF(z, -0.5*beta))
}

func (e em) huber(d *ir.Value, delta float64) *ir.Value {
	if delta <= 0 {
		e.Failf("huber_loss does not support non-positive values for delta, got %g", delta)
	}
	z := e.abs(d)
	return e.where(e.le(z, e.Float(delta)), e.mul(e.mulF(d, 0.5), d), e.mulF(e.addF(z, -0.5*delta), delta))
}

// classDim is the dim of x that holds the classes: 1, or 0 where there is no batch.
func classDim(rank int) int {
	if rank == 1 {
		return 0
	}
	return 1
}

// checkTarget compares the shapes of scores [N, C, …] (or [C]) and of class indices [N, …] (or 0-d).
func (e em) checkTarget(x, t *ir.Value) (s []int, class int) {
	s = e.NeedShape(x)
	if len(s) == 0 {
		e.Failf("Expected 1 or more dimensions (got 0)")
	}
	class = classDim(len(s))
	st := e.NeedShape(t)
	if d := e.NeedDType(t); d != dtype.I64 && d != dtype.U8 {
		e.Failf("expected scalar type Long but found %s: class indices must be int64", typeName(d))
	}
	if want := remove(s, class); !sameInts(want, st) {
		if len(s) > 1 && len(st) > 0 && s[0] != st[0] {
			e.Failf("Expected input batch_size (%d) to match target batch_size (%d).", s[0], st[0])
		}
		e.Failf("Expected target size %v, got %v", want, st)
	}
	return s, class
}

// classWeight is the weight of every class, one where w is None; it has no gradient.
func (e em) classWeight(w *ir.Value, classes int, d dtype.DType) *ir.Value {
	if isNone(w) {
		return nil
	}
	if s := e.NeedShape(w); !sameInts(s, []int{classes}) {
		e.Failf("weight tensor should be defined either for all %d classes or no classes but got weight tensor of shape: %v", classes, s)
	}
	if got := e.NeedDType(w); got != d {
		e.Failf("expected scalar type %s but found %s", typeName(d), typeName(got))
	}
	return e.detach(w)
}

// nllParts gives for every sample the negative score of its class times its weight, and the weight; both 0 where the target is
// ignored. A target that is no class fails at run time.
func (e em) nllParts(x, target, w *ir.Value, ignore int) (l, weight, ignored *ir.Value) {
	e.needFloat("nll_loss", x)
	s, class := e.checkTarget(x, target)
	d := e.NeedDType(x)
	target = cast(e.Builder, target, dtype.I64)
	ignored = e.eq(target, e.Int(ignore))
	safe := e.where(ignored, e.Int(0), target)
	picked := e.neg(squeezeDim(e.Builder, e.Op("gather", x, e.Int(class), unsqueeze(e.Builder, safe, class)), class))
	if cw := e.classWeight(w, s[class], d); cw != nil {
		weight = e.where(ignored, e.Float(0), e.Op("take", cw, safe))
		picked = e.mul(picked, e.Op("take", cw, safe))
	} else {
		weight = cast(e.Builder, e.Op("logical_not", ignored), d)
	}
	return e.where(ignored, e.Float(0), picked), weight, ignored
}

func (e em) nll(x, target, w *ir.Value, ignore int, reduction string) *ir.Value {
	l, weight, _ := e.nllParts(x, target, w, ignore)
	if reduction != "mean" {
		return e.reduceLoss(l, reduction)
	}
	all := allDims(e.Builder, l)
	return e.div(e.sum(l, false, all...), e.sum(weight, false, all...))
}

func (e em) crossEntropy(x, target, w *ir.Value, ignore int, reduction string, smoothing float64) *ir.Value {
	if smoothing < 0 || smoothing > 1 {
		e.Failf("label_smoothing must be between 0.0 and 1.0. Got: %g", smoothing)
	}
	r := rank(e.Builder, x)
	if r == 0 {
		e.Failf("Expected 1 or more dimensions (got 0)")
	}
	class := classDim(r)
	logp := e.logSoftmax(x, class, e.None())
	if sameInts(e.NeedShape(x), e.NeedShape(target)) && e.NeedDType(target).IsFloat() {
		if ignore >= 0 {
			e.Failf("cross_entropy: ignore_index is not supported for floating point target, got %d", ignore)
		}
		return e.probabilityEntropy(logp, target, w, class, reduction, smoothing)
	}
	if e.NeedDType(target).IsFloat() {
		e.Failf("expected scalar type Long but found %s: class indices must be int64, and class probabilities have the shape of the input, %v, but the target has shape %v",
			typeName(e.NeedDType(target)), e.NeedShape(x), e.NeedShape(target))
	}
	if smoothing == 0 {
		return e.nll(logp, target, w, ignore, reduction)
	}
	l, weight, ignored := e.nllParts(logp, target, w, ignore)
	s := e.NeedShape(x)
	spread, spreadWeight := logp, weight
	if !isNone(w) { // here the class weights have a gradient
		spread = e.mul(logp, e.alongDim(w, class, r))
		spreadWeight = e.where(ignored, e.Float(0), e.Op("take", w, e.where(ignored, e.Int(0), cast(e.Builder, target, dtype.I64))))
	}
	smooth := e.where(ignored, e.Float(0), e.neg(e.sum(spread, false, class)))
	part := smoothing / float64(s[class])
	if reduction != "mean" {
		return e.reduceLoss(e.add(e.mulF(l, 1-smoothing), e.mulF(smooth, part)), reduction)
	}
	mean := func(l, weight *ir.Value) *ir.Value {
		all := allDims(e.Builder, l)
		return e.div(e.sum(l, false, all...), e.sum(weight, false, all...))
	}
	return e.add(e.mulF(mean(l, weight), 1-smoothing), e.mulF(mean(smooth, spreadWeight), part))
}

// alongDim gives a vector the rank r, along dim.
func (e em) alongDim(v *ir.Value, dim, r int) *ir.Value { return along1(e.Builder, v, dim, r) }

// probabilityEntropy is cross entropy with a probability for every class.
func (e em) probabilityEntropy(logp, target, w *ir.Value, class int, reduction string, smoothing float64) *ir.Value {
	s := e.NeedShape(logp)
	if smoothing > 0 {
		target = e.addF(e.mulF(target, 1-smoothing), smoothing/float64(s[class]))
	}
	p := e.mul(logp, target)
	if e.classWeight(w, s[class], e.NeedDType(logp)) != nil { // unlike with class indices, the weights have a gradient
		p = e.mul(p, e.alongDim(w, class, len(s)))
	}
	l := e.neg(e.sum(p, false, class))
	if reduction != "mean" {
		return e.reduceLoss(l, reduction)
	}
	return e.divF(e.sum(l, false, allDims(e.Builder, l)...), float64(product(remove(s, class))))
}

func gaussianNLL(e em, a []*ir.Value) *ir.Value {
	x, t, v := a[0], a[1], a[2]
	sx, sv := e.NeedShape(x), e.NeedShape(v)
	if !sameInts(sx, sv) {
		switch {
		case len(sx) > 0 && sameInts(sx[:len(sx)-1], sv):
			v = e.insert(v, len(sv))
		case len(sx) == len(sv) && len(sx) > 0 && sameInts(sx[:len(sx)-1], sv[:len(sv)-1]) && sv[len(sv)-1] == 1:
		default:
			e.Failf("var is of incorrect size: input has shape %v, var has shape %v", sx, sv)
		}
	}
	e.must(e.Op("logical_not", e.lt(v, e.Float(0))), "gaussian_nll_loss: var has negative entry/entries")
	v = e.add(v, e.detach(e.sub(e.clampMin(v, constFloat(e.Builder, a[4])), v))) // bounded below, the gradient as if it were not
	l := e.mulF(e.add(e.log(v), e.div(e.sqr(e.sub(x, t)), v)), 0.5)
	if constBool(e.Builder, a[3]) {
		l = e.addF(l, 0.5*math.Log(2*math.Pi))
	}
	return e.reduced(l, a[5:])
}

// batchOfRows gives x [N, C] and t for operands without a batch dim too.
func (e em) batchOfRows(name string, x, t *ir.Value) (*ir.Value, *ir.Value, bool) {
	switch rank(e.Builder, x) {
	case 2:
		return x, t, true
	case 1:
		return e.insert(x, 0), e.insert(t, 0), false
	}
	e.Failf("%s: expected an input of 1 or 2 dimensions, got shape %v", name, e.NeedShape(x))
	return nil, nil, false
}

func multiMargin(e em, a []*ir.Value) *ir.Value {
	e.needFloat("multi_margin_loss", a[0])
	x := a[0]
	t := a[1]
	if rank(e.Builder, x) == 1 && rank(e.Builder, t) == 1 {
		t = e.reshape(t)
	}
	x, t, batched := e.batchOfRows("multi_margin_loss", x, t)
	s := e.NeedShape(x)
	if !sameInts(e.NeedShape(t), s[:1]) {
		e.Failf("inconsistent target size, got: %v, expected %v", e.NeedShape(t), s[:1])
	}
	p := constInt(e.Builder, a[2])
	if p != 1 && p != 2 {
		e.Failf("multi_margin_loss: only p == 1 and p == 2 supported, got %d", p)
	}
	own := e.Op("gather", x, e.Int(1), e.insert(t, 1))
	z := e.add(e.sub(x, own), a[3])
	z = e.where(e.gt(z, e.Float(0)), z, e.Float(0))
	if p == 2 {
		z = e.sqr(z)
	}
	classes := e.Op("iota", e.Int(s[1]), e.DType(dtype.I64))
	z = e.where(e.eq(e.insert(t, 1), classes), e.Float(0), z)
	if cw := e.classWeight(a[4], s[1], e.NeedDType(x)); cw != nil {
		z = e.mul(z, e.insert(e.Op("take", cw, t), 1))
	}
	l := e.mean(z, false, 1)
	if !batched {
		l = e.reshape(l)
	}
	return e.reduced(l, a[5:])
}

// multilabelMargin: a row of the target lists classes up to the first negative number.
func multilabelMargin(e em, a []*ir.Value) *ir.Value {
	e.needFloat("multilabel_margin_loss", a[0])
	e.sameSizes("multilabel_margin_loss", a[0], a[1])
	x, t, batched := e.batchOfRows("multilabel_margin_loss", a[0], a[1])
	s := e.NeedShape(x)
	listed := e.Op("cumprod", cast(e.Builder, e.ge(t, e.Int(0)), dtype.I64), e.Int(1))
	valid := e.ne(listed, e.Int(0))
	safe := e.where(valid, t, e.Int(0))
	classes := e.Op("iota", e.Int(s[1]), e.DType(dtype.I64))
	same := e.and(e.eq(e.insert(safe, 2), classes), e.insert(valid, 2)) // [N, listed, class]
	isTarget := e.Op("any", same, e.Ints(1), e.Bool(true))
	z := e.addF(e.sub(e.insert(x, 1), e.insert(e.Op("gather", x, e.Int(1), safe), 2)), 1)
	count := e.and(e.and(e.gt(z, e.Float(0)), e.insert(valid, 2)), e.Op("logical_not", isTarget))
	l := e.divF(e.sum(e.where(count, z, e.Float(0)), false, 1, 2), float64(s[1]))
	if !batched {
		l = e.reshape(l)
	}
	return e.reduced(l, a[2:])
}

// logSumExp is the logarithm of the sum of exponentials of equal-shaped tensors, minus infinity (without a gradient) where all are.
func (e em) logSumExp(xs ...*ir.Value) *ir.Value {
	m := xs[0]
	for _, x := range xs[1:] {
		m = e.maxi(m, x)
	}
	none := e.eq(m, e.Float(math.Inf(-1)))
	m = e.detach(e.where(none, e.Float(0), m))
	var s *ir.Value
	for _, x := range xs {
		t := e.exp(e.sub(x, m))
		if s == nil {
			s = t
		} else {
			s = e.add(s, t)
		}
	}
	return e.where(none, e.Float(math.Inf(-1)), e.add(e.log(e.where(none, e.Float(1), s)), m))
}

// ctcLoss runs the forward recursion of connectionist temporal classification on log_probs [T, N, C] (or [T, C]).
func ctcLoss(e em, a []*ir.Value) *ir.Value {
	lp, targets, lengths, labels := a[0], cast(e.Builder, a[1], dtype.I64), cast(e.Builder, a[2], dtype.I64), cast(e.Builder, a[3], dtype.I64)
	blank, reduction := constInt(e.Builder, a[4]), constStr(e.Builder, a[5])
	e.needFloat("ctc_loss", lp)
	unbatched := rank(e.Builder, lp) == 2
	if unbatched {
		lp = e.insert(lp, 1)
	}
	s := e.NeedShape(lp)
	if len(s) != 3 {
		e.Failf("ctc_loss: log_probs must have shape (T, N, C) or (T, C), got %v", s)
	}
	if blank < 0 || blank >= s[2] {
		e.Failf("ctc_loss: blank must be in label range, got %d with %d classes", blank, s[2])
	}
	n := s[1]
	lengths, labels = e.reshape(lengths, n), e.reshape(labels, n)
	e.must(e.le(lengths, e.Int(s[0])), fmt.Sprintf("ctc_loss: Expected input_lengths to have value at most %d, the number of time steps", s[0]))
	e.must(e.and(e.ge(lengths, e.Int(0)), e.ge(labels, e.Int(0))), "ctc_loss: lengths must not be negative")
	targets = e.ctcTargets(targets, labels, n)
	width := e.NeedShape(targets)[1]
	// the labels with blanks between and around them: [N, 2*width+1]
	states := 2*width + 1
	blanks := e.Op("full", e.Ints(n, width, 1), e.Int(blank), e.DType(dtype.I64))
	ext := e.reshape(e.concat(2, blanks, e.insert(targets, 2)), n, 2*width)
	ext = e.concat(1, ext, e.Op("full", e.Ints(n, 1), e.Int(blank), e.DType(dtype.I64)))
	shift := func(x *ir.Value, by int, fill ir.Datum) *ir.Value {
		return e.padDims(x, []int{by}, []int{-by}, fill)
	}
	state := e.Op("iota", e.Int(states), e.DType(dtype.I64))
	skip := e.and(e.ne(ext, e.Int(blank)), e.ne(ext, shift(ext, min(2, states), int64(-1))))
	none := e.Float(math.Inf(-1))
	emit := func(t int) *ir.Value {
		row := e.reshape(e.slice(lp, 0, t, t+1), n, s[2])
		return e.Op("gather", row, e.Int(1), ext)
	}
	start := e.and(e.lt(state, e.Int(2)), e.le(state, e.insert(e.mul(labels, e.Int(2)), 1)))
	alpha := e.where(start, emit(0), none)
	for t := 1; t < s[0]; t++ {
		two := e.where(skip, shift(alpha, min(2, states), math.Inf(-1)), none)
		next := e.add(e.logSumExp(alpha, shift(alpha, 1, math.Inf(-1)), two), emit(t))
		alpha = e.where(e.insert(e.lt(e.Int(t), lengths), 1), next, alpha)
	}
	end := e.mul(labels, e.Int(2))
	at := func(i *ir.Value) *ir.Value { return e.reshape(e.Op("gather", alpha, e.Int(1), e.insert(i, 1)), n) }
	last := at(end)
	before := e.where(e.gt(end, e.Int(0)), at(e.maxi(e.add(end, e.Int(-1)), e.Int(0))), none)
	l := e.neg(e.logSumExp(last, before))
	if constBool(e.Builder, a[6]) {
		l = e.where(e.eq(l, e.Float(math.Inf(1))), e.Float(0), l)
	}
	if reduction == "mean" {
		l = e.div(l, cast(e.Builder, e.maxi(labels, e.Int(1)), e.NeedDType(l)))
	}
	if unbatched && reduction == "none" {
		return e.reshape(l)
	}
	return e.reduceLoss(l, reduction)
}

// ctcTargets gives targets as rows [N, width], also where they came one after another.
func (e em) ctcTargets(targets, labels *ir.Value, n int) *ir.Value {
	s := e.NeedShape(targets)
	switch {
	case len(s) == 2:
		return targets
	case n == 1:
		return e.reshape(targets, 1, s[0])
	case s[0] == 0:
		return e.reshape(targets, n, 0)
	}
	ends := e.Op("cumsum", labels, e.Int(0))
	starts := e.insert(e.sub(ends, labels), 1)
	index := e.mini(e.add(starts, e.Op("iota", e.Int(s[0]), e.DType(dtype.I64))), e.Int(s[0]-1))
	return e.Op("take", targets, index)
}
