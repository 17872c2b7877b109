package scalar

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir/dtype"
)

// halfFormat describes a half dtype by its bits alone, for tests to judge conversions by.
type halfFormat struct {
	dtype        dtype.DType
	mantissa     int // bits of the fraction
	minExp       int // the exponent of the smallest normal number
	widen        func(uint16) float32
	narrow       func(float32) uint16
	infinityBits uint16
}

var halfFormats = []halfFormat{
	{dtype.F16, 10, -14, dtype.F16ToF32, dtype.F32ToF16, 0x7c00},
	{dtype.BF16, 7, -126, dtype.BF16ToF32, dtype.F32ToBF16, 0x7f80},
}

// value is the number that the bits stand for; for those of infinity, the number that would follow the largest one.
func (h *halfFormat) value(bits uint16) float64 {
	exp, frac := int(bits&0x7fff>>h.mantissa), float64(bits&(1<<h.mantissa-1))
	if exp > 0 {
		frac += float64(int(1) << h.mantissa)
		exp--
	}
	return math.Copysign(math.Ldexp(frac, exp+h.minExp-h.mantissa), 1-2*float64(bits>>15))
}

// Every value of a half dtype converts to f32 exactly and back to the same bits; between each two neighbours the nearer one is
// taken, and in the middle the even one: from zero over the denormals to where infinity begins.
func TestHalfConversionsExhaustively(t *testing.T) {
	for _, h := range halfFormats {
		b := NewBuilder()
		b.Output(b.roundHalf(h.dtype, b.Input(dtype.F32)))
		round := b.Finish().Frame()
		check := func(x float32, want uint16) {
			if got := h.narrow(x); got != want {
				t.Fatalf("%s: %g becomes %#04x, want %#04x", h.dtype, x, got, want)
			}
			set(round.Input(0), float64(x))
			round.Run(1)
			if got := round.Output(0).([]float32)[0]; math.Float32bits(got) != math.Float32bits(h.widen(want)) {
				t.Fatalf("%s: %g is rounded to %g, want %g", h.dtype, x, got, h.widen(want))
			}
		}
		for i := range 1 << 16 {
			bits := uint16(i)
			wide := h.widen(bits)
			switch magnitude := bits & 0x7fff; {
			case magnitude > h.infinityBits:
				require.True(t, wide != wide, "%s %#04x is NaN", h.dtype, bits)
				back := h.narrow(wide)
				require.Greater(t, back&0x7fff, h.infinityBits, "%s %#04x: NaN stays NaN", h.dtype, bits)
				set(round.Input(0), math.NaN())
				round.Run(1)
				require.True(t, math.IsNaN(get(round.Output(0))))
			case magnitude == h.infinityBits:
				require.True(t, math.IsInf(float64(wide), 1-2*int(bits>>15)))
				check(wide, bits)
			default:
				if float64(wide) != h.value(bits) || math.Signbit(float64(wide)) != (bits>>15 == 1) {
					t.Fatalf("%s %#04x is %g, want %g", h.dtype, bits, wide, h.value(bits))
				}
				check(wide, bits)
				middle := (h.value(bits) + h.value(bits+1)) / 2
				if middle == float64(float32(middle)) { // the last denormals of bf16 have no middle in f32
					tie := float32(middle)
					check(tie, bits+bits&1)
					check(math.Float32frombits(math.Float32bits(tie)-1), bits)
					check(math.Float32frombits(math.Float32bits(tie)+1), bits+1)
				}
			}
		}
	}
}

// An operation on halves is that on f32, rounded once, for every operation that takes them.
func TestHalfArithmeticIsF32RoundedOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, h := range halfFormats {
		for _, name := range Names() {
			op := Lookup(name)
			if !op.Takes.Has(h.dtype) {
				continue
			}
			half, err := Program(name, h.dtype)
			require.NoError(t, err)
			wide, err := Program(name, dtype.F32)
			require.NoError(t, err)
			hf, wf := half.Frame(), wide.Frame()
			for range 8 {
				for i := range op.Arity {
					if l, isBool := hf.Input(i).([]bool); isBool {
						for j := range l {
							l[j] = r.IntN(2) == 0
						}
						copy(wf.Input(i).([]bool), l)
						continue
					}
					l := hf.Input(i).([]float32)
					for j := range l {
						l[j] = h.widen(uint16(r.Uint32()))
					}
					copy(wf.Input(i).([]float32), l)
				}
				hf.Run(Lanes)
				wf.Run(Lanes)
				if op.Bool {
					require.Equal(t, wf.Output(0), hf.Output(0), "%s %s", name, h.dtype)
					continue
				}
				got := hf.Output(0).([]float32)
				for j, w := range wf.Output(0).([]float32) {
					want := h.widen(h.narrow(w))
					if math.Float32bits(got[j]) != math.Float32bits(want) && (got[j] == got[j] || want == want) {
						t.Fatalf("%s %s: %g, want %g rounded to %g", name, h.dtype, got[j], w, want)
					}
				}
			}
		}
	}
}

// Arithmetic of integers is that of the residues modulo 2^bits: every pair of the 8-bit types, a sample of the wider ones.
func TestIntegersWrapAround(t *testing.T) {
	exact := map[string]func(a, b int64) int64{
		"add": func(a, b int64) int64 { return a + b },
		"sub": func(a, b int64) int64 { return a - b },
		"mul": func(a, b int64) int64 { return a * b },
	}
	r := rand.New(rand.NewPCG(7, 8))
	for op, f := range exact {
		wrapsAs(t, op, dtype.I8, func(i int) int8 { return int8(i) }, func(a, b int8) int8 { return int8(f(int64(a), int64(b))) })
		wrapsAs(t, op, dtype.U8, func(i int) uint8 { return uint8(i) }, func(a, b uint8) uint8 { return uint8(f(int64(a), int64(b))) })
		wrapsAs(t, op, dtype.I16, func(int) int16 { return int16(r.Uint32()) }, func(a, b int16) int16 { return int16(f(int64(a), int64(b))) })
		wrapsAs(t, op, dtype.I32, func(int) int32 { return int32(r.Uint32()) }, func(a, b int32) int32 { return int32(f(int64(a), int64(b))) })
		wrapsAs(t, op, dtype.I64, func(int) int64 { return int64(r.Uint64()) }, f)
	}
	for _, d := range []dtype.DType{dtype.I8, dtype.I16, dtype.I32} {
		least := -math.Ldexp(1, 8*d.Size()-1)
		require.Equal(t, least, eval(t, "neg", d, least))
		require.Equal(t, least, eval(t, "abs", d, least))
	}
	require.Equal(t, 255.0, eval(t, "neg", dtype.U8, 1))
}

// wrapsAs compares an operation with want on all pairs of 256 numbers.
func wrapsAs[T comparable](t *testing.T, op string, d dtype.DType, number func(i int) T, want func(a, b T) T) {
	t.Helper()
	p, err := Program(op, d)
	require.NoError(t, err)
	f := p.Frame()
	x, y := f.Input(0).([]T), f.Input(1).([]T)
	require.Len(t, y, Lanes)
	for i := range 256 {
		a := number(i)
		for j := range y {
			x[j], y[j] = a, number(j)
		}
		f.Run(Lanes)
		for j, got := range f.Output(0).([]T) {
			if w := want(a, y[j]); got != w {
				t.Fatalf("%s %s of %v and %v: %v, want %v", op, d, a, y[j], got, w)
			}
		}
	}
}
