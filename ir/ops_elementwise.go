package ir

import (
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// The elementwise ops. Operands of a node have one dtype and one shape (where's condition is bool, convert's target is a
// constant dtype); broadcasting and promotion are nodes of their own. The meaning of each, its domain and its corner cases are
// the scalar program of the same name; here stand the gradients.
//
// Gradients follow PyTorch 1.13, also where a formula gives NaN or infinity. Fixed choices at kinks: abs'(0) = 0, relu'(0) = 0,
// maximum and minimum give half to each side of a tie, fmax and fmin give all to the first, d(a^b)/da = 0 for b = 0,
// d(a^b)/db = 0 for a = 0 and b >= 0. A where passes nothing, not even NaN times zero, to the side that it did not take.

// rule writes the gradient of an elementwise node: one cotangent per operand, nil for none.
type rule func(e grad) []*Value

// stepwise marks ops whose derivative is zero wherever it exists, and those without floating-point results.
var stepwise rule

func init() {
	for _, r := range []struct {
		name string
		rule rule
	}{
		// one operand
		{"neg", one1(func(e grad) *Value { return e.neg(e.g) })},
		{"abs", one1(func(e grad) *Value { return e.mul(e.g, e.op("sign", e.x)) })},
		{"sign", stepwise},
		{"floor", stepwise},
		{"ceil", stepwise},
		{"round", stepwise},
		{"trunc", stepwise},
		{"exp", one1(func(e grad) *Value { return e.mul(e.g, e.out) })},
		{"exp2", one1(func(e grad) *Value { return e.mul(e.mul(e.g, e.out), e.c(math.Ln2)) })},
		{"expm1", one1(func(e grad) *Value { return e.mul(e.g, e.add(e.out, e.c(1))) })},
		{"log", one1(func(e grad) *Value { return e.div(e.g, e.x) })},
		{"log1p", one1(func(e grad) *Value { return e.div(e.g, e.add(e.x, e.c(1))) })},
		{"log2", one1(func(e grad) *Value { return e.div(e.g, e.mul(e.x, e.c(math.Ln2))) })},
		{"log10", one1(func(e grad) *Value { return e.div(e.g, e.mul(e.x, e.c(math.Ln10))) })},
		{"sqrt", one1(func(e grad) *Value { return e.div(e.g, e.mul(e.out, e.c(2))) })},
		{"rsqrt", one1(func(e grad) *Value { return e.mul(e.mul(e.g, e.c(-0.5)), e.mul(e.out, e.mul(e.out, e.out))) })},
		{"reciprocal", one1(func(e grad) *Value { return e.neg(e.mul(e.g, e.mul(e.out, e.out))) })},
		{"sin", one1(func(e grad) *Value { return e.mul(e.g, e.op("cos", e.x)) })},
		{"cos", one1(func(e grad) *Value { return e.neg(e.mul(e.g, e.op("sin", e.x))) })},
		{"tan", one1(func(e grad) *Value { return e.mul(e.g, e.add(e.c(1), e.mul(e.out, e.out))) })},
		{"asin", one1(func(e grad) *Value { return e.mul(e.g, e.op("rsqrt", e.sub(e.c(1), e.mul(e.x, e.x)))) })},
		{"acos", one1(func(e grad) *Value { return e.neg(e.mul(e.g, e.op("rsqrt", e.sub(e.c(1), e.mul(e.x, e.x))))) })},
		{"atan", one1(func(e grad) *Value { return e.div(e.g, e.add(e.c(1), e.mul(e.x, e.x))) })},
		{"sinh", one1(func(e grad) *Value { return e.mul(e.g, e.op("cosh", e.x)) })},
		{"cosh", one1(func(e grad) *Value { return e.mul(e.g, e.op("sinh", e.x)) })},
		{"tanh", one1(func(e grad) *Value { return e.mul(e.g, e.sub(e.c(1), e.mul(e.out, e.out))) })},
		{"asinh", one1(func(e grad) *Value { return e.mul(e.g, e.op("rsqrt", e.add(e.mul(e.x, e.x), e.c(1)))) })},
		{"acosh", one1(func(e grad) *Value { return e.mul(e.g, e.op("rsqrt", e.sub(e.mul(e.x, e.x), e.c(1)))) })},
		{"atanh", one1(func(e grad) *Value { return e.div(e.g, e.sub(e.c(1), e.mul(e.x, e.x))) })},
		{"erf", one1(func(e grad) *Value { return e.mul(e.g, e.gauss()) })},
		{"erfc", one1(func(e grad) *Value { return e.neg(e.mul(e.g, e.gauss())) })},
		{"erfinv", one1(func(e grad) *Value {
			return e.mul(e.g, e.mul(e.c(math.Sqrt(math.Pi)/2), e.op("exp", e.mul(e.out, e.out))))
		})},
		{"lgamma", one1(func(e grad) *Value { return e.mul(e.g, e.op("digamma", e.x)) })},
		{"digamma", one1(func(e grad) *Value { return e.mul(e.g, e.op("trigamma", e.x)) })},
		{"trigamma", one1(trigammaGrad)},
		{"i0", one1(func(e grad) *Value { return e.mul(e.g, e.op("i1", e.x)) })},
		{"i1", one1(func(e grad) *Value {
			zero := e.op("eq", e.x, e.c(0))
			ratio := e.div(e.out, e.where(zero, e.c(1), e.x))
			return e.mul(e.g, e.sub(e.op("i0", e.x), e.where(zero, e.c(0.5), ratio)))
		})},
		{"sigmoid", one1(func(e grad) *Value { return e.mul(e.g, e.mul(e.out, e.sub(e.c(1), e.out))) })},
		{"relu", one1(func(e grad) *Value { return e.where(e.op("le", e.x, e.c(0)), e.c(0), e.g) })},
		{"isnan", stepwise},
		{"isinf", stepwise},
		{"isfinite", stepwise},
		{"signbit", stepwise},
		{"logical_not", stepwise},
		{"bitwise_not", stepwise},

		// two operands
		{"add", func(e grad) []*Value { return []*Value{e.g, e.g} }},
		{"sub", func(e grad) []*Value { return []*Value{e.g, e.neg(e.g)} }},
		{"mul", func(e grad) []*Value { return []*Value{e.mul(e.g, e.y), e.mul(e.g, e.x)} }},
		{"div", func(e grad) []*Value {
			return []*Value{e.div(e.g, e.y), e.neg(e.mul(e.g, e.div(e.div(e.x, e.y), e.y)))}
		}},
		{"floor_div", stepwise},
		{"trunc_div", stepwise},
		{"remainder", func(e grad) []*Value { return []*Value{e.g, e.neg(e.mul(e.g, e.op("floor_div", e.x, e.y)))} }},
		{"fmod", func(e grad) []*Value { return []*Value{e.g, e.neg(e.mul(e.g, e.op("trunc_div", e.x, e.y)))} }},
		{"pow", powGrad},
		{"atan2", func(e grad) []*Value {
			r := e.op("reciprocal", e.add(e.mul(e.x, e.x), e.mul(e.y, e.y)))
			return []*Value{e.mul(e.mul(e.g, e.y), r), e.mul(e.mul(e.g, e.neg(e.x)), r)}
		}},
		{"maximum", extremumGrad("lt")},
		{"minimum", extremumGrad("gt")},
		{"fmax", firstExtremumGrad("ge")},
		{"fmin", firstExtremumGrad("le")},
		{"copysign", func(e grad) []*Value {
			zero := e.op("eq", e.x, e.c(0))
			ratio := e.div(e.out, e.where(zero, e.c(1), e.x))
			return []*Value{e.mul(e.g, e.where(zero, e.c(0), ratio)), nil}
		}},
		{"nextafter", stepwise},
		{"hypot", func(e grad) []*Value {
			return []*Value{e.mul(e.g, e.div(e.x, e.out)), e.mul(e.g, e.div(e.y, e.out))}
		}},
		{"logaddexp", func(e grad) []*Value {
			return []*Value{e.mul(e.g, e.op("sigmoid", e.sub(e.x, e.y))), e.mul(e.g, e.op("sigmoid", e.sub(e.y, e.x)))}
		}},
		{"xlogy", func(e grad) []*Value {
			none := e.op("logical_and", e.op("eq", e.x, e.c(0)), e.op("le", e.y, e.c(0)))
			return []*Value{e.where(none, e.c(0), e.op("xlogy", e.g, e.y)), e.div(e.mul(e.g, e.x), e.y)}
		}},
		{"zeta", func(e grad) []*Value {
			return []*Value{nil, e.neg(e.mul(e.g, e.mul(e.x, e.op("zeta", e.add(e.x, e.c(1)), e.y))))}
		}},
		{"eq", stepwise},
		{"ne", stepwise},
		{"lt", stepwise},
		{"le", stepwise},
		{"gt", stepwise},
		{"ge", stepwise},
		{"logical_and", stepwise},
		{"logical_or", stepwise},
		{"logical_xor", stepwise},
		{"bitwise_and", stepwise},
		{"bitwise_or", stepwise},
		{"bitwise_xor", stepwise},
		{"shl", stepwise},
		{"shr", stepwise},
		{"gcd", stepwise},
		{"lcm", stepwise},

		// three operands
		{"where", func(e grad) []*Value {
			zero := e.c(0)
			return []*Value{nil, e.where(e.x, e.g, zero), e.where(e.x, zero, e.g)}
		}},
		{"lerp", func(e grad) []*Value {
			w := e.n.Args[2]
			return []*Value{e.mul(e.g, e.sub(e.c(1), w)), e.mul(e.g, w), e.mul(e.g, e.sub(e.y, e.x))}
		}},
	} {
		registerElementwise(r.name, r.rule)
	}
	register(&Op{
		Name: "convert", Doc: "x[S…] as another dtype: to bool x != 0, float to integer towards zero.", Params: []string{"x", "dtype"},
		Class: Elementwise, Infer: inferConvert, Scalar: convertScalar,
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			x := n.Args[0]
			if d := b.NeedDType(x); ct[0] != nil && d.IsFloat() && ct[0].Type.DType.IsFloat() {
				return []*Value{b.Op("convert", ct[0], b.DType(d)), nil}
			}
			return []*Value{nil, nil}
		},
	})
}

// powGrad keeps the corners finite: see the choices at the top.
func powGrad(e grad) []*Value {
	zero := e.c(0)
	none := e.op("eq", e.y, zero) // x^0 is 1: no derivative of it may see x^-1
	da := e.mul(e.g, e.mul(e.y, e.op("pow", e.x, e.where(none, zero, e.sub(e.y, e.c(1))))))
	db := e.mul(e.out, e.op("log", e.x))
	flat := e.op("logical_and", e.op("eq", e.x, zero), e.op("ge", e.y, zero))
	return []*Value{e.where(none, zero, da), e.mul(e.g, e.where(flat, zero, db))}
}

// extremumGrad is the rule of maximum and minimum: worse compares an operand that loses with the other.
func extremumGrad(worse string) rule {
	return func(e grad) []*Value {
		zero := e.c(0)
		shared := e.where(e.op("eq", e.x, e.y), e.mul(e.g, e.c(0.5)), e.g)
		return []*Value{e.where(e.op(worse, e.x, e.y), zero, shared), e.where(e.op(worse, e.y, e.x), zero, shared)}
	}
}

func firstExtremumGrad(wins string) rule {
	return func(e grad) []*Value {
		zero := e.c(0)
		first := e.op("logical_or", e.op(wins, e.x, e.y), e.op("isnan", e.y))
		return []*Value{e.where(first, e.g, zero), e.where(first, zero, e.g)}
	}
}

// trigammaGrad is -2 zeta(3, x) for x >= 1/2; below, that of 1-x with 2 pi^3 cos(pi x)/sin(pi x)^3 taken off, by reflection.
func trigammaGrad(e grad) *Value {
	low := e.op("lt", e.x, e.c(0.5))
	away := e.where(low, e.sub(e.c(1), e.x), e.x)
	direct := e.mul(e.c(-2), e.op("zeta", e.c(3), away))
	angle := e.mul(e.c(math.Pi), e.sub(e.x, e.op("round", e.x)))
	angle = e.where(low, angle, e.c(1))
	sin := e.op("sin", angle)
	reflected := e.div(e.mul(e.c(2*math.Pi*math.Pi*math.Pi), e.op("cos", angle)), e.mul(sin, e.mul(sin, sin)))
	return e.mul(e.g, e.sub(direct, e.where(low, reflected, e.c(0))))
}

// gauss is 2/sqrt(pi) * exp(-x^2), the derivative of erf.
func (e grad) gauss() *Value {
	return e.mul(e.c(2/math.Sqrt(math.Pi)), e.op("exp", e.neg(e.mul(e.x, e.x))))
}

// grad is what a rule works with: the node, its operands x and y, its result and the result's cotangent.
type grad struct {
	b      *Builder
	n      *Node
	x, y   *Value
	out, g *Value
}

func one1(f func(e grad) *Value) rule { return func(e grad) []*Value { return []*Value{f(e)} } }

func (e grad) op(name string, args ...*Value) *Value { return e.b.Op(name, args...) }
func (e grad) neg(x *Value) *Value                   { return e.op("neg", x) }
func (e grad) add(x, y *Value) *Value                { return e.op("add", x, y) }
func (e grad) sub(x, y *Value) *Value                { return e.op("sub", x, y) }
func (e grad) mul(x, y *Value) *Value                { return e.op("mul", x, y) }
func (e grad) div(x, y *Value) *Value                { return e.op("div", x, y) }
func (e grad) where(c, x, y *Value) *Value           { return e.op("where", c, x, y) }

// c is the constant v in the dtype and shape of the result's cotangent.
func (e grad) c(v float64) *Value { return e.b.fullLike(e.g, v) }

func registerElementwise(name string, r rule) {
	s := scalar.Lookup(name)
	if s == nil {
		panic("BUG: no scalar program for " + name)
	}
	op := &Op{
		Name: name, Doc: s.Doc, Class: Elementwise, Scalar: s.Form, NoGrad: r == nil,
		Params: []string{"x", "y", "z"}[:s.Arity],
		Infer:  func(c *Call) ([]Type, error) { return inferElementwise(c, s) },
	}
	switch name {
	case "where":
		op.Params = []string{"cond", "x", "y"}
	case "floor_div", "trunc_div", "remainder", "fmod":
		op.Effect = MayFail // integers: division by zero
	}
	if r != nil {
		op.Grad = func(b *Builder, n *Node, ct []*Value) []*Value {
			if ct[0] == nil {
				return make([]*Value, len(n.Args))
			}
			e := grad{b: b, n: n, x: n.Args[0], out: n.Results[0], g: ct[0]}
			if len(n.Args) > 1 {
				e.y = n.Args[1]
			}
			return r(e)
		}
	}
	register(op)
}

// inferElementwise demands operands of one dtype that the op takes and of one shape; what one operand does not know, another
// may.
func inferElementwise(c *Call, s *scalar.Op) ([]Type, error) {
	if len(c.Args) != s.Arity {
		return nil, c.Errorf("takes %d operands, not %d", s.Arity, len(c.Args))
	}
	var d dtype.DType
	shape := AnyTensor
	for i, t := range c.Args {
		if t.Kind != KTensor && t.Kind != KAny {
			return nil, c.Errorf("operand %d is %s, want a tensor", i, t)
		}
		var err error
		if shape, err = meetShape(c, shape, t); err != nil {
			return nil, err
		}
		if s.Name == "where" && i == 0 {
			if t.DType != dtype.Bool && t.DType != dtype.Invalid {
				return nil, c.Errorf("the condition is %s, want bool", t)
			}
			continue
		}
		if d != dtype.Invalid && t.DType != dtype.Invalid && t.DType != d {
			return nil, c.Errorf("operands are %s and %s; convert them to one dtype first", d, t.DType)
		}
		if t.DType != dtype.Invalid {
			d = t.DType
		}
	}
	if d != dtype.Invalid && !s.Takes.Has(d) {
		return nil, c.Errorf("not implemented for '%s' tensors; it takes %s", d.Torch(), s.Takes)
	}
	shape.DType = d
	if s.Bool {
		shape.DType = dtype.Bool
	}
	return t1(shape)
}

// meetShape combines what two types know of one shape.
func meetShape(c *Call, a, b Type) (Type, error) {
	switch {
	case !b.Ranked:
		return a, nil
	case !a.Ranked:
		a.Ranked, a.Dims = true, append([]Dim{}, b.Dims...)
		return a, nil
	case len(a.Dims) != len(b.Dims):
		return a, c.Errorf("operand shapes %v and %v differ; broadcast them first", a.Dims, b.Dims)
	}
	for i, bd := range b.Dims {
		ad := &a.Dims[i]
		if ad.Known() && bd.Known() && *ad != bd {
			return a, c.Errorf("operand shapes %v and %v differ; broadcast them first", a.Dims, b.Dims)
		}
		if bd.Known() || *ad == Unknown {
			*ad = bd
		}
	}
	return a, nil
}

func inferConvert(c *Call) ([]Type, error) {
	if len(c.Args) != 2 || c.Args[0].Kind != KTensor && c.Args[0].Kind != KAny || c.Args[1].Kind != KDType && c.Args[1].Kind != KAny {
		return nil, c.Errorf("takes a tensor and a dtype, not %v", c.Args)
	}
	t := c.Args[0]
	t.Kind, t.DType = KTensor, dtype.Invalid
	if d, ok := c.Const(1); ok {
		t.DType = d.(dtype.DType)
	}
	return t1(t)
}

// convertScalar stands for convert where the target dtype is given apart: ApplyScalar handles it.
func convertScalar(_ *scalar.Builder, _ dtype.DType, args ...scalar.Value) scalar.Value {
	return args[0]
}
