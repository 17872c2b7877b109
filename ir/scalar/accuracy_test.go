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

// Zeros keep their sign, infinities and NaN have the values of C99's Annex F, which Go's math package also follows.
func TestSpecialValues(t *testing.T) {
	special := []float64{0, nz, inf, -inf, nan, 1, -1, 2, -2, 0x1p-149, -0x1p-149, 0x1p127, -0x1p127}
	for _, d := range []dtype.DType{dtype.F32, dtype.F64} {
		for op, ref := range refs {
			for _, x := range special {
				want := ref(x)
				if op == "lgamma" && math.IsInf(x, -1) {
					want = inf // Go's Lgamma(-Inf) is -Inf; C's is +Inf
				}
				got := eval(t, op, d, x)
				switch {
				case math.IsNaN(want) || math.IsInf(want, 0) || want == 0 || want == 1:
					if d == dtype.F32 {
						want = float64(float32(want))
					}
					requireSame(t, want, got, "%s %s %g", op, d, x)
				case math.IsNaN(got), math.Signbit(got) != math.Signbit(want):
					t.Errorf("%s %s %g: got %v, want %v", op, d, x, got, want)
				}
			}
		}
		two := map[string]func(x, y float64) float64{"pow": math.Pow, "atan2": math.Atan2, "hypot": math.Hypot, "fmod": math.Mod}
		pairs := append([]float64{3, -3, 0.5, -0.5, 1e30, -1e30}, special...)
		for op, ref := range two {
			for _, x := range pairs {
				for _, y := range pairs {
					want := ref(x, y)
					if d == dtype.F32 {
						want = float64(float32(ref(float64(float32(x)), float64(float32(y)))))
					}
					got := eval(t, op, d, x, y)
					if math.IsNaN(want) || math.IsInf(want, 0) || want == 0 || math.IsNaN(got) {
						requireSame(t, want, got, "%s %s %g %g", op, d, x, y)
					} else {
						require.InEpsilon(t, want, got, 1e-6, "%s %s %g %g", op, d, x, y)
					}
				}
			}
		}
	}
}

func TestMoreSpecialValues(t *testing.T) {
	for _, d := range []dtype.DType{dtype.F32, dtype.F64} {
		for _, c := range []struct {
			op   string
			args []float64
			want float64
		}{
			{"digamma", []float64{0}, -inf}, {"digamma", []float64{nz}, inf}, {"digamma", []float64{-3}, nan},
			{"digamma", []float64{inf}, inf}, {"digamma", []float64{nan}, nan},
			{"trigamma", []float64{0}, inf}, {"trigamma", []float64{inf}, 0}, {"trigamma", []float64{nan}, nan},
			{"zeta", []float64{1, 2}, inf}, {"zeta", []float64{0.5, 2}, nan}, {"zeta", []float64{2, 0}, inf}, {"zeta", []float64{2, -1}, inf},
			{"zeta", []float64{2, -0.5}, nan}, {"zeta", []float64{2, inf}, 0}, {"zeta", []float64{nan, 1}, nan}, {"zeta", []float64{2, nan}, nan},
			{"i0", []float64{0}, 1}, {"i0", []float64{-inf}, inf}, {"i0", []float64{nan}, nan},
			{"i1", []float64{nz}, nz}, {"i1", []float64{-inf}, -inf}, {"i1", []float64{nan}, nan},
			{"logaddexp", []float64{-inf, -inf}, -inf}, {"logaddexp", []float64{inf, inf}, inf},
			{"logaddexp", []float64{inf, -inf}, inf}, {"logaddexp", []float64{3, -inf}, 3},
			{"logaddexp", []float64{nan, 1}, nan}, {"logaddexp", []float64{inf, nan}, nan},
			{"xlogy", []float64{0, 0}, 0}, {"xlogy", []float64{0, -1}, 0}, {"xlogy", []float64{0, nan}, nan},
			{"xlogy", []float64{nan, 1}, nan}, {"xlogy", []float64{2, 0}, -inf},
			{"pow", []float64{10, 3}, 1000}, {"pow", []float64{-2, 3}, -8}, {"pow", []float64{-8, 1.0 / 3}, nan},
			{"log10", []float64{1000}, 3}, {"log2", []float64{0.125}, -3}, {"exp2", []float64{10}, 1024},
			{"sigmoid", []float64{-inf}, 0}, {"sigmoid", []float64{inf}, 1}, {"sigmoid", []float64{0}, 0.5},
		} {
			requireSame(t, c.want, eval(t, c.op, d, c.args...), "%s %s %v", c.op, d, c.args)
		}
	}
	require.Equal(t, 81.0, eval(t, "pow", dtype.I64, -3, 4))
	require.Equal(t, 0.0, eval(t, "pow", dtype.I64, 2, 64))
	require.Equal(t, 0.0, eval(t, "pow", dtype.I32, 2, -1))
	require.Equal(t, -1.0, eval(t, "pow", dtype.I32, -1, -3))
	require.Equal(t, 243.0, eval(t, "pow", dtype.U8, 3, 69), "3^69 mod 256")
}
