package ir

import (
	"fmt"
	"math"
)

// The functions of Python's module math on host numbers. As in TorchScript, a function that is not defined somewhere gives NaN or
// an infinity there instead of an error.

var mathFuncs = map[string]func(float64) float64{
	"sqrt": math.Sqrt, "exp": math.Exp, "log": math.Log, "log2": math.Log2, "log10": math.Log10, "log1p": math.Log1p, "expm1": math.Expm1,
	"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
	"sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "asinh": math.Asinh, "acosh": math.Acosh, "atanh": math.Atanh,
	"erf": math.Erf, "erfc": math.Erfc, "fabs": math.Abs, "degrees": func(x float64) float64 { return x * 180 / math.Pi },
	"radians": func(x float64) float64 { return x * math.Pi / 180 }, "gamma": math.Gamma,
	"lgamma": func(x float64) float64 { v, _ := math.Lgamma(x); return v },
}

var mathFuncs2 = map[string]func(a, b float64) float64{
	"pow": math.Pow, "fmod": math.Mod, "atan2": math.Atan2, "copysign": math.Copysign, "hypot": math.Hypot, "remainder": math.Remainder,
}

func initMath() {
	float := func(name, params string, t Type, f func(c *EvalCall, x float64) Datum) {
		host("math_"+name, params, "math."+name+"("+params+").", is(t), func(c *EvalCall) (Datum, error) {
			_, x, _, err := num(c.Args[0])
			return f(c, x), err
		})
	}
	for name, f := range mathFuncs {
		float(name, "a", Float, func(_ *EvalCall, x float64) Datum { return f(x) })
	}
	for name, f := range mathFuncs2 {
		host("math_"+name, "a b", "math."+name+"(a, b).", is(Float), func(c *EvalCall) (Datum, error) {
			_, x, _, err := num(c.Args[0])
			if err != nil {
				return nil, err
			}
			_, y, _, err := num(c.Args[1])
			return f(x, y), err
		})
	}
	for name, f := range map[string]func(float64) float64{"floor": math.Floor, "ceil": math.Ceil, "trunc": math.Trunc} {
		host("math_"+name, "a", "math."+name+"(a), an int.", is(Int), func(c *EvalCall) (Datum, error) {
			i, x, isF, err := num(c.Args[0])
			if !isF {
				return i, err
			}
			return int64(f(x)), err
		})
	}
	float("isnan", "a", BoolT, func(_ *EvalCall, x float64) Datum { return math.IsNaN(x) })
	float("isinf", "a", BoolT, func(_ *EvalCall, x float64) Datum { return math.IsInf(x, 0) })
	float("isfinite", "a", BoolT, func(_ *EvalCall, x float64) Datum { return !math.IsNaN(x) && !math.IsInf(x, 0) })
	float("modf", "a", TupleOf(Float, Float), func(_ *EvalCall, x float64) Datum {
		whole, part := math.Modf(x)
		return Tuple{part, whole}
	})
	float("frexp", "a", TupleOf(Float, Int), func(_ *EvalCall, x float64) Datum {
		m, e := math.Frexp(x)
		return Tuple{m, int64(e)}
	})
	float("ldexp", "a i", Float, func(c *EvalCall, x float64) Datum { return math.Ldexp(x, c.Int(1)) })
	host("math_gcd", "a b", "math.gcd(a, b).", is(Int), func(c *EvalCall) (Datum, error) {
		a, b := int64(c.Int(0)), int64(c.Int(1))
		for b != 0 {
			a, b = b, a%b
		}
		return max(a, -a), nil
	})
	mayFail(host("math_factorial", "n", "math.factorial(n), which must fit into 64 bits.", is(Int), func(c *EvalCall) (Datum, error) {
		n := c.Int(0)
		if n < 0 || n > 20 {
			return nil, &RaiseError{"ValueError", fmt.Sprintf("factorial() of %d: expected 0 to 20", n)}
		}
		r := int64(1)
		for i := 2; i <= n; i++ {
			r *= int64(i)
		}
		return r, nil
	}))
}
