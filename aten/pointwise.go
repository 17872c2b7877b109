package aten

import (
	"math"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Functions of one element, or of corresponding elements, of their operands.

const everywhere = Method | Torch | Special

func init() {
	floatUnaries()
	sameTypeUnaries()
	roundings()
	arithmetic()
	divisions()
	powers()
	floatBinaries()
	extrema()
	clamps()
	blends()
	specials()
}

// floatUnaries are primitives that give floating-point results; integers become f32 first.
func floatUnaries() {
	for _, name := range []string{
		"exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tan", "asin", "acos",
		"atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "erfinv", "lgamma", "digamma", "i0", "sigmoid",
	} {
		where := Method | Torch
		switch name {
		case "exp2", "expm1", "log1p", "erf", "erfc", "erfinv", "digamma", "i0":
			where |= Special
		case "sigmoid", "tanh":
			where |= NN
		}
		def(where, name+"(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return one(unaryFloat(b, name, args[0]))
		})
	}
	for name, of := range map[string]string{
		"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
	} {
		alias(Method|Torch, name, of)
	}
	alias(Special, "expit", "sigmoid")
	alias(Special, "gammaln", "lgamma")
	alias(Special, "psi", "digamma")
}

// unary declares a method and torch function of one tensor.
func unary(where Where, name string, f func(b *ir.Builder, x *ir.Value) *ir.Value) {
	def(where, name+"(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value { return one(f(b, args[0])) })
}

// sameTypeUnaries keep the dtype of their operand.
func sameTypeUnaries() {
	unary(Method|Torch, "neg", func(b *ir.Builder, x *ir.Value) *ir.Value {
		if dt(b, x) == dtype.Bool {
			b.Failf("Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.")
		}
		return b.Op("neg", x)
	})
	unary(Method|Torch, "abs", func(b *ir.Builder, x *ir.Value) *ir.Value {
		if dt(b, x) == dtype.Bool {
			b.Failf("\"abs_cpu\" not implemented for 'Bool'")
		}
		return b.Op("abs", x)
	})
	unary(Method|Torch, "sign", func(b *ir.Builder, x *ir.Value) *ir.Value { return b.Op("sign", x) })
	unary(Method|Torch, "positive", func(b *ir.Builder, x *ir.Value) *ir.Value {
		if dt(b, x) == dtype.Bool {
			b.Failf("The `+` operator, on a bool tensor is not supported.")
		}
		return x
	})
	unary(Method|Torch, "square", func(b *ir.Builder, x *ir.Value) *ir.Value {
		if dt(b, x) == dtype.Bool { // pow(x, 2), where 2 is an int
			x = cast(b, x, dtype.I64)
		}
		return b.Op("mul", x, x)
	})
	unary(Method|Torch|NN, "relu", func(b *ir.Builder, x *ir.Value) *ir.Value {
		if dt(b, x) == dtype.Bool {
			b.Failf("Boolean inputs not supported for relu")
		}
		return b.Op("relu", x)
	})
	unary(Method|Torch, "frac", func(b *ir.Builder, x *ir.Value) *ir.Value {
		needFloat(b, "frac", x)
		return b.Op("sub", x, b.Op("detach", b.Op("trunc", x)))
	})
	unary(Method|Torch, "deg2rad", func(b *ir.Builder, x *ir.Value) *ir.Value { return scaled(b, x, math.Pi/180) })
	unary(Method|Torch, "rad2deg", func(b *ir.Builder, x *ir.Value) *ir.Value { return scaled(b, x, 180/math.Pi) })
	alias(Method|Torch, "negative", "neg")
	alias(Method|Torch, "absolute", "abs")
	alias(Method|Torch, "sgn", "sign")
	for _, name := range []string{"conj", "resolve_conj", "resolve_neg", "real"} {
		def(Method|Torch, name+"(Tensor self) -> Tensor", first, isView)
	}
}

// first is the expansion of functions that give their first operand.
func first(_ *ir.Builder, args []*ir.Value) []*ir.Value { return one(args[0]) }

// scaled is x times a constant, in floating point.
func scaled(b *ir.Builder, x *ir.Value, factor float64) *ir.Value {
	return apply(b, "mul", cast(b, x, floatOf(dt(b, x))), factor)
}

func roundings() {
	for _, name := range []string{"floor", "ceil", "trunc", "round"} {
		unary(Method|Torch, name, func(b *ir.Builder, x *ir.Value) *ir.Value {
			switch d := dt(b, x); {
			case d.IsInt():
				return x
			case d == dtype.Bool:
				b.Failf("%q not implemented for 'Bool'", name)
			}
			return b.Op(name, x)
		})
	}
	def(everywhere, "round.decimals(Tensor self, *, int decimals) -> Tensor", roundDecimals)
	alias(Method|Torch, "fix", "trunc")
	alias(Special, "round", "round")
}

func roundDecimals(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, digits := args[0], constInt(b, args[1])
	if !dt(b, x).IsFloat() {
		return one(x)
	}
	up, down := "mul", "div"
	if digits < 0 {
		up, down = down, up
	}
	ten := math.Pow(10, math.Abs(float64(digits)))
	return one(apply(b, down, b.Op("round", apply(b, up, x, ten)), ten))
}

// arith declares the overloads of a binary function for a second operand that is a tensor or a number.
func arith(where Where, name string, f expansion) {
	def(where, name+".Tensor(Tensor self, Tensor other) -> Tensor", f)
	def(where, name+".Scalar(Tensor self, Scalar other) -> Tensor", f)
}

// reversed declares a binary function on a number and a tensor, as operators with the number on the left need it.
func reversed(where Where, name string, f expansion) {
	def(where, name+"(Scalar self, Tensor other) -> Tensor", f)
}

// primitive is the expansion that promotes, broadcasts and applies a primitive.
func primitive(op string) expansion {
	return func(b *ir.Builder, args []*ir.Value) []*ir.Value { return one(binary(b, op, args[0], args[1])) }
}

// floatPrimitive is primitive for floating-point results.
func floatPrimitive(op string) expansion {
	return func(b *ir.Builder, args []*ir.Value) []*ir.Value { return one(binaryFloat(b, op, args[0], args[1])) }
}

func arithmetic() {
	for _, op := range []string{"add", "sub"} {
		def(Method|Torch, op+".Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", withAlpha(op))
		def(Method|Torch, op+".Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", withAlpha(op))
	}
	def(Method|Torch, "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", rsub)
	def(Method|Torch, "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", rsub)
	arith(Method|Torch, "mul", primitive("mul"))
	// a number on the left: torch.add(2, x)
	reversed(Torch, "add.Scalar_Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value { return one(binary(b, "add", args[0], args[1])) })
	reversed(Torch, "mul.Scalar_Tensor", primitive("mul"))
	reversed(Torch, "sub.Scalar_Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return withAlpha("sub")(b, append(args[:2:2], b.Int(1)))
	})
	alias(Method|Torch, "subtract", "sub")
	alias(Method|Torch, "multiply", "mul")
	for _, op := range []string{"gcd", "lcm"} {
		def(Method|Torch, op+"(Tensor self, Tensor other) -> Tensor", primitive(op))
	}
}

// withAlpha is self op alpha*other.
func withAlpha(op string) expansion {
	return func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x, y, alpha := args[0], args[1], args[2]
		d := promote(b, x, y)
		if op == "sub" {
			for _, v := range args[:2] {
				if v.Type.IsTensor() && dt(b, v) == dtype.Bool {
					b.Failf("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.")
				}
			}
		}
		xy := operands(b, d, x, timesAlpha(b, y, alpha, d))
		return one(b.Op(op, xy...))
	}
}

// timesAlpha is alpha*y in dtype d; y itself where alpha is the literal 1.
func timesAlpha(b *ir.Builder, y, alpha *ir.Value, d dtype.DType) *ir.Value {
	if c, ok := alpha.Const(); ok && (c == int64(1) || c == 1.0) {
		return y
	}
	if alpha.Type.Kind == ir.KFloat && !d.IsFloat() {
		b.Failf("For integral input tensors, argument alpha must not be a floating point number.")
	}
	if alpha.Type.Kind == ir.KBool && d != dtype.Bool {
		b.Failf("Boolean alpha only supported for Boolean results.")
	}
	return b.Op("mul", operands(b, d, y, alpha)...)
}

// rsub is other - alpha*self.
func rsub(b *ir.Builder, args []*ir.Value) []*ir.Value {
	return withAlpha("sub")(b, []*ir.Value{args[1], args[0], args[2]})
}

func divisions() {
	trueDiv := floatPrimitive("div")
	for _, name := range []string{"div", "true_divide"} {
		arith(Method|Torch, name, trueDiv)
	}
	def(Method|Torch, "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", divMode)
	def(Method|Torch, "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", divMode)
	alias(Method|Torch, "divide", "div")
	arith(Method|Torch, "floor_divide", primitive("floor_div"))
	arith(Method|Torch, "remainder", primitive("remainder"))
	def(Torch, "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", primitive("remainder"))
	arith(Method|Torch, "fmod", primitive("fmod"))
	reversed(Torch, "div.Scalar_Tensor", trueDiv)
	reversed(Hidden, "rdiv", trueDiv)
	reversed(Hidden, "rfloordiv", primitive("floor_div"))
	reversed(Hidden, "rremainder", primitive("remainder"))
}

func divMode(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, y := args[0], args[1]
	if isNone(args[2]) {
		return one(binaryFloat(b, "div", x, y))
	}
	switch mode := constStr(b, args[2]); mode {
	case "floor":
		return one(binary(b, "floor_div", x, y))
	case "trunc":
		return one(binary(b, "trunc_div", x, y))
	default:
		b.Failf("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'", mode)
		return nil
	}
}

func powers() {
	def(everywhere, "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", pow)
	def(everywhere, "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", pow)
	def(Torch, "pow.Scalar(Scalar self, Tensor exponent) -> Tensor", pow)
	reversed(Hidden, "rpow", pow)
	floatPow := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(b.Op("pow", operands(b, dtype.F64, args[0], args[1])...))
	}
	def(Method|Torch, "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", floatPow)
	def(Method|Torch, "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", floatPow)
	def(Torch, "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", floatPow)
	def(Method|Torch, "ldexp(Tensor self, Tensor other) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return one(binaryFloat(b, "mul", args[0], unaryFloat(b, "exp2", args[1])))
	})
}

// pow computes small constant exponents by multiplication and square roots, as PyTorch does.
func pow(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, e := args[0], args[1]
	d := promote(b, x, e)
	if _, literal := e.Const(); literal && x.Type.IsTensor() && isNumber(e) {
		f := constFloat(b, e)
		if d.IsInt() && f < 0 {
			b.Failf("Integers to negative integer powers are not allowed.")
		}
		if d == dtype.Bool {
			return one(boolPow(b, x, f))
		}
		if r := smallPower(b, cast(b, x, d), f); r != nil {
			return one(r)
		}
	}
	if d.IsInt() && x.Type.IsTensor() && isNumber(e) {
		b.NeedConst(e) // a negative exponent is an error
	}
	if d != dtype.Bool {
		return one(b.Op("pow", operands(b, d, x, e)...))
	}
	xy := operands(b, dtype.U8, x, e)
	return one(cast(b, b.Op("pow", xy...), dtype.Bool))
}

func boolPow(b *ir.Builder, x *ir.Value, exponent float64) *ir.Value {
	if exponent == 0 {
		return fill(b, true, dtype.Bool, shapeOf(b, x))
	}
	return x
}

// smallPower is x to an exponent for which there is a shorter way than the primitive, and nil for others.
func smallPower(b *ir.Builder, x *ir.Value, exponent float64) *ir.Value {
	switch exponent {
	case 1:
		return x
	case 2:
		return b.Op("mul", x, x)
	case 3:
		return b.Op("mul", b.Op("mul", x, x), x)
	}
	if !dt(b, x).IsFloat() {
		return nil
	}
	switch exponent {
	case 0.5:
		return b.Op("sqrt", x)
	case -0.5:
		return b.Op("rsqrt", x)
	case -1:
		return b.Op("reciprocal", x)
	case -2:
		return b.Op("reciprocal", b.Op("mul", x, x))
	}
	return nil
}

func floatBinaries() {
	for _, op := range []string{"atan2", "hypot", "logaddexp"} {
		def(Method|Torch, op+"(Tensor self, Tensor other) -> Tensor", floatPrimitive(op))
	}
	alias(Method|Torch, "arctan2", "atan2")
	arith(Method|Torch, "copysign", floatPrimitive("copysign"))
	def(Method|Torch, "nextafter(Tensor self, Tensor other) -> Tensor", primitive("nextafter"))
	def(Method|Torch, "logaddexp2(Tensor self, Tensor other) -> Tensor", logaddexp2)
	arith(everywhere, "xlogy", floatPrimitive("xlogy"))
	def(Torch|Special, "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", floatPrimitive("xlogy"))
	xlog1py := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		xy := operands(b, floatOf(promote(b, args...)), args...)
		x, y := xy[0], xy[1]
		zero := apply(b, "eq", x, 0.0)
		zero = b.Op("logical_and", zero, b.Op("logical_not", b.Op("isnan", y)))
		safe := apply(b, "where", zero, 1.0, y)
		return one(apply(b, "where", zero, 0.0, b.Op("mul", x, b.Op("log1p", safe))))
	}
	arith(Special, "special_xlog1py", xlog1py)
	def(Special, "special_xlog1py.Scalar_Self(Scalar self, Tensor other) -> Tensor", xlog1py)
	alias(Special, "xlog1py", "special_xlog1py")
	arith(Method|Torch, "heaviside", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		xy := operands(b, promote(b, args...), args...)
		x, at0 := xy[0], xy[1]
		step := cast(b, apply(b, "gt", x, 0), dt(b, x))
		return one(b.Op("where", apply(b, "eq", x, 0), at0, step))
	})
}

// logaddexp2 is log2(2^x + 2^y).
func logaddexp2(b *ir.Builder, args []*ir.Value) []*ir.Value {
	xy := operands(b, floatOf(promote(b, args...)), args...)
	sum := b.Op("logaddexp", scaled(b, xy[0], math.Ln2), scaled(b, xy[1], math.Ln2))
	return one(scaled(b, sum, 1/math.Ln2))
}

func extrema() {
	for _, op := range []string{"maximum", "minimum", "fmax", "fmin"} {
		def(Method|Torch, op+"(Tensor self, Tensor other) -> Tensor", primitive(op))
	}
}

func clamps() {
	for _, name := range []string{"clamp", "clip"} {
		def(Method|Torch, name+"(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", clamp)
		def(Method|Torch, name+".Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", clamp)
	}
	for _, v := range []struct {
		name, param string
		f           expansion
	}{
		{"clamp_min", "min", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return clamp(b, []*ir.Value{args[0], args[1], b.None()})
		}},
		{"clamp_max", "max", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return clamp(b, []*ir.Value{args[0], b.None(), args[1]})
		}},
	} {
		def(Method|Torch, v.name+"(Tensor self, Scalar "+v.param+") -> Tensor", v.f)
		def(Method|Torch, v.name+".Tensor(Tensor self, Tensor "+v.param+") -> Tensor", v.f)
	}
}

// clamp selects rather than takes extrema, because at a bound the whole gradient goes to self.
func clamp(b *ir.Builder, args []*ir.Value) []*ir.Value {
	vs := []*ir.Value{}
	for _, a := range args {
		if !isNone(a) {
			vs = append(vs, a)
		}
	}
	if len(vs) == 1 {
		b.Failf("torch.clamp: At least one of 'min' or 'max' must not be None")
	}
	d := promote(b, vs...)
	x := cast(b, args[0], d)
	for i, outside := range []string{"lt", "gt"} {
		if isNone(args[1+i]) {
			continue
		}
		xb := broadcast(b, x, tensorArg(b, args[1+i], d))
		bound := xb[1]
		out := b.Op(outside, xb[0], bound)
		if c, ok := args[1+i].Const(); d.IsFloat() && !(ok && isNumber(args[1+i]) && c == c) {
			out = b.Op("logical_or", out, b.Op("isnan", bound)) // a NaN bound makes everything NaN
		}
		x = b.Op("where", out, bound, xb[0])
	}
	return one(x)
}

func blends() {
	for _, cond := range []string{
		"where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
		"where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
		"where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
		"where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
	} {
		def(Torch, cond, where)
	}
	for _, form := range []string{
		"where.method(Tensor self, Tensor condition, Tensor other) -> Tensor",
		"where.methodScalar(Tensor self, Tensor condition, Scalar other) -> Tensor",
	} {
		def(Method, form, func(b *ir.Builder, args []*ir.Value) []*ir.Value {
			return where(b, []*ir.Value{args[1], args[0], args[2]})
		})
	}
	def(Method|Torch, "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", nanToNum)
	lerp := func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		d := needFloat(b, "lerp", args[0])
		return one(b.Op("lerp", operands(b, d, args...)...))
	}
	def(Method|Torch, "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", lerp)
	def(Method|Torch, "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", lerp)
	def(Method|Torch, "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", addc("mul"))
	def(Method|Torch, "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", addc("div"))
}

func where(b *ir.Builder, args []*ir.Value) []*ir.Value {
	cond := args[0]
	switch d := dt(b, cond); d {
	case dtype.Bool:
	case dtype.U8:
		cond = cast(b, cond, dtype.Bool)
	default:
		b.Failf("where expected condition to be a boolean tensor, but got a tensor with dtype %s", typeName(d))
	}
	d := promote(b, args[1], args[2])
	return one(b.Op("where", broadcast(b, cond, tensorArg(b, args[1], d), tensorArg(b, args[2], d))...))
}

func nanToNum(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x := args[0]
	d := dt(b, x)
	if !d.IsFloat() {
		return one(x)
	}
	top := maxFinite(d)
	inf := b.Op("isinf", x)
	for i, v := range []struct {
		otherwise float64
		where     *ir.Value
	}{
		{0, b.Op("isnan", x)},
		{top, b.Op("logical_and", inf, apply(b, "gt", x, 0.0))},
		{-top, b.Op("logical_and", inf, apply(b, "lt", x, 0.0))},
	} {
		to := args[1+i]
		if isNone(to) {
			to = b.Float(v.otherwise)
		}
		x = b.Op("where", broadcast(b, v.where, tensorArg(b, to, d), x)...)
	}
	return one(x)
}

// maxFinite is the largest finite number of a floating-point dtype.
func maxFinite(d dtype.DType) float64 {
	switch d {
	case dtype.F16:
		return 65504
	case dtype.BF16:
		return float64(dtype.BF16ToF32(0x7f7f))
	case dtype.F32:
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

// addc is self + value*tensor1 op tensor2.
func addc(op string) expansion {
	return func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		d := promote(b, args[:3]...)
		if op == "div" && !d.IsFloat() {
			b.Failf("Integer division with addcdiv is no longer supported, and in a future release addcdiv will perform a true division of tensor1 and tensor2.")
		}
		xyz := operands(b, d, args[0], timesAlpha(b, args[1], args[3], d), args[2])
		return one(b.Op("add", xyz[0], b.Op(op, xyz[1], xyz[2])))
	}
}

// specials are less usual functions, derived from the primitives.
func specials() {
	def(everywhere, "logit(Tensor self, float? eps=None) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x := cast(b, args[0], floatOf(dt(b, args[0])))
		if !isNone(args[1]) {
			eps := constFloat(b, args[1])
			x = call(b, "clamp", x, b.Float(eps), b.Float(1-eps))
		}
		return one(b.Op("sub", b.Op("log", x), b.Op("log1p", b.Op("neg", x)))) // the gradient at 0 and 1 is infinite, not NaN
	})
	def(everywhere, "sinc(Tensor self) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		x := scaled(b, args[0], math.Pi)
		zero := apply(b, "eq", x, 0.0)
		safe := apply(b, "where", zero, 1.0, x)
		return one(apply(b, "where", zero, 1.0, b.Op("div", b.Op("sin", safe), safe)))
	})
	def(everywhere, "polygamma(int n, Tensor self) -> Tensor", polygamma)
	def(Method, "polygamma.method(Tensor self, int n) -> Tensor", func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return polygamma(b, []*ir.Value{args[1], args[0]})
	})
	def(everywhere, "mvlgamma(Tensor self, int p) -> Tensor", mvlgamma)
	alias(Special, "multigammaln", "mvlgamma")
	special := func(name string, f func(b *ir.Builder, x *ir.Value) *ir.Value) {
		unary(Special, "special_"+name, func(b *ir.Builder, x *ir.Value) *ir.Value { return f(b, cast(b, x, floatOf(dt(b, x)))) })
		alias(Special, name, "special_"+name)
	}
	special("ndtr", func(b *ir.Builder, x *ir.Value) *ir.Value {
		return apply(b, "mul", b.Op("erfc", apply(b, "mul", x, -math.Sqrt2/2)), 0.5)
	})
	special("ndtri", func(b *ir.Builder, x *ir.Value) *ir.Value {
		return apply(b, "mul", b.Op("erfinv", apply(b, "sub", apply(b, "mul", x, 2.0), 1.0)), math.Sqrt2)
	})
	special("entr", func(b *ir.Builder, x *ir.Value) *ir.Value {
		positive := apply(b, "gt", x, 0.0)
		safe := apply(b, "where", positive, x, 1.0)
		outside := apply(b, "where", apply(b, "lt", x, 0.0), math.Inf(-1), apply(b, "mul", x, 0.0))
		return b.Op("where", positive, b.Op("neg", b.Op("mul", safe, b.Op("log", safe))), outside)
	})
	special("i0e", func(b *ir.Builder, x *ir.Value) *ir.Value { return scaledBessel(b, "i0", x) })
	special("i1", func(b *ir.Builder, x *ir.Value) *ir.Value { return b.Op("i1", x) })
	special("i1e", func(b *ir.Builder, x *ir.Value) *ir.Value { return scaledBessel(b, "i1", x) })
	alias(Special, "modified_bessel_i0", "i0")
	alias(Special, "modified_bessel_i1", "special_i1")
	special("spherical_bessel_j0", func(b *ir.Builder, x *ir.Value) *ir.Value {
		zero := apply(b, "eq", x, 0.0)
		safe := apply(b, "where", zero, 1.0, x)
		y := apply(b, "where", zero, 1.0, b.Op("div", b.Op("sin", safe), safe))
		return apply(b, "where", b.Op("isinf", x), 0.0, y)
	})
	arith(Special, "special_zeta", floatPrimitive("zeta"))
	def(Special, "special_zeta.Scalar_Self(Scalar self, Tensor other) -> Tensor", floatPrimitive("zeta"))
	alias(Special, "zeta", "special_zeta")
}

// scaledBessel is exp(-|x|) I(x) for the Bessel function i0 or i1, in f64; where I would overflow, by Hankel's expansion.
func scaledBessel(b *ir.Builder, op string, x *ir.Value) *ir.Value {
	d, mu := dt(b, x), 0.0
	if op == "i1" {
		mu = 4
	}
	x = cast(b, x, dtype.F64)
	size := b.Op("abs", x)
	large := apply(b, "gt", size, 600.0)
	near := apply(b, "where", large, 1.0, x)
	y := b.Op("mul", b.Op("exp", b.Op("neg", b.Op("abs", near))), b.Op(op, near))
	far := apply(b, "where", large, size, 1000.0)
	tail := 1.0
	coeffs := []float64{}
	for k := 1.0; k < 6; k++ {
		tail *= -(mu - (2*k-1)*(2*k-1)) / (8 * k)
		coeffs = append(coeffs, tail)
	}
	inverse, series := b.Op("reciprocal", far), fillLike(b, 0, far)
	for k := len(coeffs) - 1; k >= 0; k-- {
		series = b.Op("mul", inverse, apply(b, "add", series, coeffs[k]))
	}
	z := b.Op("mul", b.Op("rsqrt", apply(b, "mul", far, 2*math.Pi)), apply(b, "add", series, 1.0))
	if op == "i1" {
		z = b.Op("mul", z, b.Op("sign", x))
	}
	return cast(b, b.Op("where", large, z, y), d)
}

// polygamma is the n-th derivative of digamma: for n > 1 by Hurwitz's zeta function at x >= 1/2, and by reflection below, in f64.
func polygamma(b *ir.Builder, args []*ir.Value) []*ir.Value {
	n := constInt(b, args[0])
	switch {
	case n < 0:
		b.Failf("polygamma(n, x) does not support negative n, got %d", n)
	case n == 0:
		return one(unaryFloat(b, "digamma", args[1]))
	case n == 1:
		return one(unaryFloat(b, "trigamma", args[1]))
	case n > 100:
		b.Failf("polygamma(n, x) is implemented for n up to 100, not for n = %d", n)
	}
	d := floatOf(dt(b, args[1]))
	x := cast(b, args[1], dtype.F64)
	low := apply(b, "lt", x, 0.5)
	y := apply(b, "where", low, apply(b, "sub", 1.0, x), x)
	value := b.Op("zeta", fillLike(b, n+1, x), y)
	factorial := math.Gamma(float64(n + 1))
	// psi_n(x) = (-1)^n psi_n(1-x) - pi^(n+1) cot^(n)(pi x), and psi_n = (-1)^(n+1) n! zeta(n+1, .) here
	sign := 1.0
	if n%2 == 0 {
		sign = -1
	}
	direct := apply(b, "mul", value, sign*factorial)
	fraction := b.Op("sub", x, b.Op("detach", b.Op("round", x)))
	angle := apply(b, "where", low, apply(b, "mul", fraction, math.Pi), 1.0)
	cot := b.Op("div", b.Op("cos", angle), b.Op("sin", angle))
	c := cotDerivative(n)
	poly := fillLike(b, c[len(c)-1], cot)
	for i := len(c) - 2; i >= 0; i-- {
		poly = apply(b, "add", b.Op("mul", poly, cot), c[i])
	}
	reflected := b.Op("sub", apply(b, "mul", value, -factorial), apply(b, "mul", poly, math.Pow(math.Pi, float64(n+1))))
	pole := b.Op("logical_and", low, apply(b, "eq", fraction, 0.0))
	reflected = apply(b, "where", pole, sign*math.Inf(1), reflected)
	return one(cast(b, b.Op("where", low, reflected, direct), d))
}

// cotDerivative is the n-th derivative of cot as a polynomial in cot, lowest coefficient first: that of cot is -(1 + cot^2).
func cotDerivative(n int) []float64 {
	c := []float64{0, 1}
	for range n {
		next := make([]float64, len(c)+1)
		for k := 1; k < len(c); k++ {
			next[k-1] -= float64(k) * c[k]
			next[k+1] -= float64(k) * c[k]
		}
		c = next
	}
	return c
}

// mvlgamma is the logarithm of the multivariate gamma function.
func mvlgamma(b *ir.Builder, args []*ir.Value) []*ir.Value {
	x, p := cast(b, args[0], floatOf(dt(b, args[0]))), constInt(b, args[1])
	if p < 1 {
		b.Failf("p has to be greater than or equal to 1, got %d", p)
	}
	needFew(b, p, "terms")
	sum := number(b, float64(p*(p-1))/4*math.Log(math.Pi), dt(b, x))
	for j := range p {
		sum = apply(b, "add", sum, b.Op("lgamma", apply(b, "sub", x, float64(j)/2)))
	}
	return one(sum)
}
