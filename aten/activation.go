package aten

import (
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Activation functions. Where a branch is chosen by the sign of x, the side not taken is computed on a harmless value, so that
// it contributes nothing to the gradient, not even NaN. A parameter "inplace" is for the front ends, which write the result back
// into the operand where it is true; the value is the same.

func init() {
	act := func(where Where, schema string, f func(e em, a []*ir.Value) *ir.Value, opts ...option) {
		def(where, schema, expand1(f), opts...)
	}
	// floating gives f's operand as it is, after the check that it is of a floating-point dtype
	floating := func(name string, f func(e em, x *ir.Value, a []*ir.Value) *ir.Value) func(e em, a []*ir.Value) *ir.Value {
		return func(e em, a []*ir.Value) *ir.Value {
			e.needFloat(name, a[0])
			return f(e, a[0], a[1:])
		}
	}
	num := func(e em, v *ir.Value) float64 { return constFloat(e.Builder, v) }

	act(NN, "relu.F(Tensor input, bool inplace=False) -> Tensor", func(e em, a []*ir.Value) *ir.Value { return call(e.Builder, "relu", a[0]) })
	act(NN, "relu6(Tensor input, bool inplace=False) -> Tensor", func(e em, a []*ir.Value) *ir.Value { return e.hardtanh(a[0], 0, 6) })
	act(NN, "hardtanh(Tensor input, Scalar min_val=-1.0, Scalar max_val=1.0, bool inplace=False) -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		lo, hi := num(e, a[1]), num(e, a[2])
		if lo > hi {
			e.Failf("hardtanh: min_val (%g) cannot be greater than max_val (%g)", lo, hi)
		}
		return e.hardtanh(a[0], lo, hi)
	})
	act(NN, "threshold(Tensor input, Scalar threshold, Scalar value, bool inplace=False) -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		x, d := a[0], e.NeedDType(a[0])
		return e.where(e.le(x, tensorArg(e.Builder, a[1], d)), tensorArg(e.Builder, a[2], d), x)
	})
	alias(Torch, "threshold", "threshold")
	act(NN, "leaky_relu(Tensor input, Scalar negative_slope=0.01, bool inplace=False) -> Tensor", floating("leaky_relu", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		return e.leaky(x, a[0])
	}))
	act(Method|Torch|NN, "prelu(Tensor self, Tensor weight) -> Tensor", func(e em, a []*ir.Value) *ir.Value { return e.prelu(a[0], a[1]) })
	rrelu := func(e em, a []*ir.Value) *ir.Value { return e.rrelu(a[0], a[1], a[2], a[3], a[len(a)-1]) }
	act(NN, "rrelu(Tensor input, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, bool inplace=False) -> Tensor", rrelu, isRandom)
	act(Torch, "rrelu.torch(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor", rrelu, isRandom)
	act(NN, "elu(Tensor input, Scalar alpha=1.0, bool inplace=False) -> Tensor", floating("elu", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		return e.elu(x, num(e, a[0]), 1, 1)
	}))
	selu := floating("selu", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		return e.elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1)
	})
	act(NN, "selu(Tensor input, bool inplace=False) -> Tensor", selu)
	celu := floating("celu", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		alpha := num(e, a[0])
		if alpha == 0 {
			e.Failf("ZeroDivisionError: alpha cannot be 0 for CELU")
		}
		return e.elu(x, alpha, 1, 1/alpha)
	})
	act(NN, "celu(Tensor input, Scalar alpha=1.0, bool inplace=False) -> Tensor", celu)
	alias(Torch, "selu", "selu")
	alias(Torch, "celu", "celu")
	act(NN, "gelu(Tensor self, *, str approximate='none') -> Tensor", floating("gelu", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		return e.gelu(x, constStr(e.Builder, a[0]))
	}))
	act(NN, "gelu.F(Tensor input, str approximate='none') -> Tensor", floating("gelu", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		return e.gelu(x, constStr(e.Builder, a[0]))
	}))
	act(NN, "silu(Tensor input, bool inplace=False) -> Tensor", floating("silu", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		return e.Op("mul", x, e.Op("sigmoid", x))
	}))
	act(NN, "mish(Tensor input, bool inplace=False) -> Tensor", floating("mish", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		return e.Op("mul", x, e.Op("tanh", e.softplus(x, 1, 20)))
	}))
	act(NN, "hardsigmoid(Tensor input, bool inplace=False) -> Tensor", floating("hardsigmoid", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		// NaN stays, without a gradient
		inside := e.and(e.gt(x, e.Float(-3)), e.lt(x, e.Float(3)))
		y := e.divF(e.hardtanh(e.addF(x, 3), 0, 6), 6)
		return e.where(inside, y, e.detach(y))
	}))
	act(NN, "hardswish(Tensor input, bool inplace=False) -> Tensor", floating("hardswish", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		return e.hardswish(x)
	}))
	act(Method|Torch|NN, "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", floating("hardshrink", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		inside := e.and(e.ge(x, e.Float(-num(e, a[0]))), e.le(x, a[0]))
		return e.where(inside, e.Float(0), x)
	}))
	act(NN, "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", floating("softshrink", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		l := num(e, a[0])
		if l < 0 {
			e.Failf("lambda must be greater or equal to 0, but found to be %g.", l)
		}
		above, below := e.gt(x, a[0]), e.lt(x, e.Float(-l))
		return e.where(above, e.addF(x, -l), e.where(below, e.addF(x, l), e.Float(0)))
	}))
	act(NN, "tanhshrink(Tensor input) -> Tensor", floating("tanh", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		return e.Op("sub", x, e.Op("tanh", x))
	}))
	act(NN, "softsign(Tensor input) -> Tensor", floating("softsign", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		return e.Op("div", x, e.addF(e.abs(x), 1))
	}))
	act(NN, "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", floating("softplus", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		return e.softplus(x, num(e, a[0]), num(e, a[1]))
	}))
	act(NN, "logsigmoid(Tensor self) -> Tensor", floating("log_sigmoid", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		return e.logSigmoid(x)
	}))
	act(NN, "glu(Tensor input, int dim=-1) -> Tensor", floating("glu", func(e em, x *ir.Value, a []*ir.Value) *ir.Value {
		return e.glu(x, constInt(e.Builder, a[0]))
	}))

	act(Method|Torch|Special, "softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		return e.softmax(a[0], constInt(e.Builder, a[1]), a[2])
	})
	act(Method|Torch|Special, "log_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		return e.logSoftmax(a[0], constInt(e.Builder, a[1]), a[2])
	})
	act(NN, "softmax.F(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		return e.softmax(a[0], e.softmaxDim(a[0], a[1]), a[3])
	})
	act(NN, "log_softmax.F(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		return e.logSoftmax(a[0], e.softmaxDim(a[0], a[1]), a[3])
	})
	act(NN, "softmin(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		return e.softmax(e.neg(a[0]), e.softmaxDim(a[0], a[1]), a[3])
	})
	act(NN, "gumbel_softmax(Tensor logits, float tau=1, bool hard=False, float eps=1e-10, int dim=-1) -> Tensor", func(e em, a []*ir.Value) *ir.Value {
		return e.gumbelSoftmax(a[0], a[1], constBool(e.Builder, a[2]), constInt(e.Builder, a[4]), a[5])
	}, isRandom)
}

// hardtanh is lo where x <= lo, hi where x >= hi, x otherwise; at the bounds the gradient is zero, and NaN stays.
func (e em) hardtanh(x *ir.Value, lo, hi float64) *ir.Value {
	d := e.NeedDType(x)
	low, high := tensorArg(e.Builder, e.Float(lo), d), tensorArg(e.Builder, e.Float(hi), d)
	return e.where(e.le(x, low), low, e.where(e.ge(x, high), high, x))
}

func (e em) leaky(x, slope *ir.Value) *ir.Value {
	return e.where(e.gt(x, e.Int(0)), x, e.mul(x, slope))
}

// prelu has one slope, or one per channel: dim 1, or dim 0 of a 1-d tensor.
func (e em) prelu(x, weight *ir.Value) *ir.Value {
	e.needFloat("prelu", x)
	e.needSame(x, weight)
	s, n := e.NeedShape(x), numel(e.Builder, weight)
	shape := ones(len(s))
	if n != 1 {
		if len(s) == 0 {
			e.Failf("Not allow zero-dim input tensor.")
		}
		channels, at := 1, min(1, len(s)-1)
		if len(s) > 1 {
			channels = s[1]
		}
		if channels != n {
			e.Failf("Mismatch of parameter numbers and input channel size. Found parameter numbers = %d and channel size = %d.", n, channels)
		}
		shape[at] = n
	}
	return e.leaky(x, e.reshape(weight, shape...))
}

func (e em) rrelu(x, lower, upper, training, key *ir.Value) *ir.Value {
	e.needFloat("rrelu", x)
	lo, hi := constFloat(e.Builder, lower), constFloat(e.Builder, upper)
	if !constBool(e.Builder, training) {
		return e.leaky(x, e.Float((lo+hi)/2))
	}
	u := e.Op("uniform", e.Ints(e.NeedShape(x)...), key, e.DType(e.NeedDType(x)))
	return e.where(e.le(x, e.Int(0)), e.mul(x, e.addF(e.mulF(u, hi-lo), lo)), x)
}

// elu is scale*alpha*(exp(x*in)-1) where x <= 0 and scale*x otherwise, NaN included. At 0 the slope is that of the left side, but
// the second derivative is 0.
func (e em) elu(x *ir.Value, alpha, scale, in float64) *ir.Value {
	low := e.le(x, e.Float(0))
	t := e.where(e.lt(x, e.Float(0)), x, e.Float(0))
	if in != 1 {
		t = e.mulF(t, in)
	}
	negative := e.mulF(e.Op("expm1", t), alpha*scale)
	zero := e.mulF(x, alpha*scale*in)
	if scale != 1 {
		x = e.mulF(x, scale)
	}
	return e.where(low, e.where(e.eq(x, e.Float(0)), zero, negative), x)
}

func (e em) gelu(x *ir.Value, approximate string) *ir.Value {
	switch approximate {
	case "none":
		return e.mul(e.mulF(x, 0.5), e.addF(e.Op("erf", e.mulF(x, math.Sqrt2/2)), 1))
	case "tanh":
		cube := e.mul(e.mul(x, x), x)
		inner := e.mulF(e.add(x, e.mulF(cube, 0.044715)), math.Sqrt2*2/math.Sqrt(math.Pi)/2)
		return e.mul(e.mulF(x, 0.5), e.addF(e.Op("tanh", inner), 1))
	}
	e.Failf("approximate argument must be either none or tanh, got %q.", approximate)
	return nil
}

// hardswish is x*relu6(x+3)/6. The gradient at -3 is -1/2 and at 3 is 3/2, as in PyTorch.
func (e em) hardswish(x *ir.Value) *ir.Value {
	below := e.lt(x, e.Float(-3))
	middle := e.and(e.ge(x, e.Float(-3)), e.le(x, e.Float(3)))
	t := e.where(middle, x, e.Float(0))
	curve := e.divF(e.mul(t, e.addF(t, 3)), 6)
	zero := e.mulF(e.detach(x), 0) // NaN for minus infinity
	return e.where(below, zero, e.where(middle, curve, x))
}

// softplus is log(1+exp(beta*x))/beta, and x itself where beta*x > threshold.
func (e em) softplus(x *ir.Value, beta, threshold float64) *ir.Value {
	z := x
	if beta != 1 {
		z = e.mulF(x, beta)
	}
	linear := e.gt(z, e.Float(threshold))
	soft := e.Op("log1p", e.exp(e.where(linear, e.Float(0), z)))
	if beta != 1 {
		soft = e.divF(soft, beta)
	}
	return e.where(linear, x, soft)
}

// logSigmoid is min(x, 0) - log(1+exp(-|x|)), chosen by the sign so that every derivative holds at 0 too.
func (e em) logSigmoid(x *ir.Value) *ir.Value {
	negative := e.lt(x, e.Float(0))
	soft := e.Op("log1p", e.exp(e.where(negative, x, e.neg(x))))
	return e.sub(e.where(negative, x, e.Float(0)), soft)
}

func (e em) glu(x *ir.Value, dim int) *ir.Value {
	s := e.NeedShape(x)
	if len(s) == 0 {
		e.Failf("glu does not support 0-dimensional tensors")
	}
	d := wrapDim(e.Builder, dim, len(s))
	if s[d]%2 != 0 {
		e.Failf("Halving dimension must be even, but dimension %d is size %d", d, s[d])
	}
	return e.mul(e.slice(x, d, 0, s[d]/2), e.Op("sigmoid", e.slice(x, d, s[d]/2, s[d])))
}

// softmaxDim is the dim that F.softmax and its kin work along where none is given.
func (e em) softmaxDim(x, dim *ir.Value) int {
	if !isNone(dim) {
		return constInt(e.Builder, dim)
	}
	switch rank(e.Builder, x) {
	case 0, 1, 3:
		return 0
	}
	return 1
}

// softmaxOperand is the operand as it is used: of a floating-point dtype, its maximum along dim subtracted. A shift changes no
// result, so the maximum has no gradient.
func (e em) softmaxOperand(name string, x *ir.Value, dim int, dt *ir.Value) (shifted *ir.Value, d int) {
	if !isNone(dt) {
		x = cast(e.Builder, x, constDType(e.Builder, dt))
	}
	if t := e.NeedDType(x); !t.IsFloat() {
		e.Failf("%q not implemented for '%s': softmax needs a floating point dtype", name, typeName(t))
	}
	d = wrapDim(e.Builder, dim, rank(e.Builder, x))
	if rank(e.Builder, x) == 0 {
		return e.sub(x, e.detach(x)), -1
	}
	if n := x.Type.NumElems(); n == 0 {
		return x, d
	}
	m := e.detach(e.amax(x, true, d))
	return e.sub(x, m), d
}

// sumAlong is the sum along d, kept; the whole where d is -1 (a 0-d tensor).
func (e em) sumAlong(x *ir.Value, d int) *ir.Value {
	if d < 0 {
		return x
	}
	return e.sum(x, true, d)
}

func (e em) softmax(x *ir.Value, dim int, dt *ir.Value) *ir.Value {
	z, d := e.softmaxOperand("softmax_kernel_impl", x, dim, dt)
	if h := e.NeedDType(z); h.IsHalf() {
		return cast(e.Builder, e.softmax(cast(e.Builder, x, dtype.F32), dim, e.None()), h)
	}
	p := e.exp(z)
	return e.div(p, e.sumAlong(p, d))
}

func (e em) logSoftmax(x *ir.Value, dim int, dt *ir.Value) *ir.Value {
	z, d := e.softmaxOperand("log_softmax_kernel_impl", x, dim, dt)
	if h := e.NeedDType(z); h.IsHalf() {
		return cast(e.Builder, e.logSoftmax(cast(e.Builder, x, dtype.F32), dim, e.None()), h)
	}
	return e.sub(z, e.log(e.sumAlong(e.exp(z), d)))
}

func (e em) gumbelSoftmax(x, tau *ir.Value, hard bool, dim int, key *ir.Value) *ir.Value {
	e.needFloat("gumbel_softmax", x)
	u := e.Op("uniform", e.Ints(e.NeedShape(x)...), key, e.DType(e.NeedDType(x)))
	// 1-u lies in (0, 1]; -log of it is exponentially distributed, kept away from zero
	expo := e.maxi(e.neg(e.log(e.sub(e.Float(1), u))), e.Float(1e-30))
	soft := e.softmax(e.div(e.sub(x, e.log(expo)), tau), dim, e.None())
	if !hard {
		return soft
	}
	s := e.NeedShape(x)
	d := wrapDim(e.Builder, dim, len(s))
	if len(s) == 0 {
		return e.add(e.sub(onesLike(e.Builder, soft), e.detach(soft)), soft)
	}
	best := e.Op("argmax", soft, e.Int(d), e.Bool(true))
	along := ones(len(s))
	along[d] = s[d]
	index := e.reshape(e.Op("iota", e.Int(s[d]), e.DType(dtype.I64)), along...)
	oneHot := cast(e.Builder, e.eq(best, index), e.NeedDType(x))
	return e.add(e.sub(oneHot, e.detach(soft)), soft)
}
