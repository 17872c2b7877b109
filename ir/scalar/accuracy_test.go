package scalar

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir/dtype"
)

// ulp32 is the distance of got from want in units of the last place of the float32 nearest to want.
func ulp32(got float32, want float64) float64 {
	w := float32(want)
	if math.IsNaN(want) || math.IsInf(float64(w), 0) || math.IsInf(float64(got), 0) || got != got {
		if float64(got) == float64(w) || got != got && want != want {
			return 0
		}
		return math.Inf(1)
	}
	unit := math.Ldexp(1, max(math.Ilogb(want), -126)-23)
	return math.Abs(float64(got)-want) / unit
}

var refs = map[string]func(float64) float64{
	"exp": math.Exp, "exp2": math.Exp2, "expm1": math.Expm1, "tanh": math.Tanh, "sinh": math.Sinh, "cosh": math.Cosh,
	"sigmoid": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"log":     math.Log, "log1p": math.Log1p, "log2": math.Log2, "log10": math.Log10,
	"asinh": math.Asinh, "acosh": math.Acosh, "atanh": math.Atanh,
	"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
	"erf": math.Erf, "erfc": math.Erfc, "erfinv": math.Erfinv,
	"lgamma": func(x float64) float64 { v, _ := math.Lgamma(x); return v },
}

// random32 draws finite floats: some of every exponent, more of moderate ones.
func random32(r *rand.Rand) float32 {
	for {
		var x float32
		switch r.IntN(3) {
		case 0:
			x = math.Float32frombits(r.Uint32())
		case 1:
			x = float32(r.NormFloat64() * 3)
		default:
			x = float32(r.NormFloat64() * 40)
		}
		if x == x && !math.IsInf(float64(x), 0) {
			return x
		}
	}
}

func TestAccuracyF32(t *testing.T) {
	bounds := map[string]float64{"exp": 1, "tanh": 1.3, "sigmoid": 1.6, "log": 1, "erf": 1.3}
	for op, ref := range refs {
		if Lookup(op) == nil {
			continue
		}
		bound := bounds[op]
		if bound == 0 {
			bound = 0.51
		}
		p, err := Program(op, dtype.F32)
		require.NoError(t, err)
		f := p.Frame()
		r := rand.New(rand.NewPCG(1, 2))
		worst, at := 0.0, float32(0)
		for range 400 {
			in := f.Input(0).([]float32)
			for i := range in {
				in[i] = random32(r)
			}
			f.Run(Lanes)
			out := f.Output(0).([]float32)
			for i, x := range in {
				if e := ulp32(out[i], ref(float64(x))); e > worst {
					worst, at = e, x
				}
			}
		}
		t.Logf("%-8s %.3f ulp at %g: %g, want %g", op, worst, at, eval(t, op, dtype.F32, float64(at)), ref(float64(at)))
		if worst > bound {
			t.Errorf("%s: %.3f ulp, bound %v", op, worst, bound)
		}
	}
}
