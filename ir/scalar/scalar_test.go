package scalar

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir/dtype"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
	nz  = math.Copysign(0, -1)
)

// eval runs op on one tuple of operands given as float64 and gives the result as float64 (Bool as 0 or 1).
func eval(t *testing.T, op string, d dtype.DType, args ...float64) float64 {
	t.Helper()
	r, fault := evalFault(t, op, d, args...)
	require.Equal(t, NoFault, fault, "%s %s %v", op, d, args)
	return r
}

func evalFault(t *testing.T, op string, d dtype.DType, args ...float64) (float64, FaultCode) {
	t.Helper()
	p, err := Program(op, d)
	require.NoError(t, err)
	require.NoError(t, p.Verify(), "%s", p)
	f := p.Frame()
	defer f.Release()
	for i, a := range args {
		set(f.Input(i), a)
	}
	fault := f.Run(1)
	return get(f.Output(0)), fault
}

func set(lanes any, v float64) {
	switch l := lanes.(type) {
	case []bool:
		l[0] = v != 0
	case []uint8:
		l[0] = uint8(v)
	case []int8:
		l[0] = int8(v)
	case []int16:
		l[0] = int16(v)
	case []int32:
		l[0] = int32(v)
	case []int64:
		l[0] = int64(v)
	case []float32:
		l[0] = float32(v)
	case []float64:
		l[0] = v
	}
}

func get(lanes any) float64 {
	switch l := lanes.(type) {
	case []bool:
		return float64(b2u(l[0]))
	case []uint8:
		return float64(l[0])
	case []int8:
		return float64(l[0])
	case []int16:
		return float64(l[0])
	case []int32:
		return float64(l[0])
	case []int64:
		return float64(l[0])
	case []float32:
		return float64(l[0])
	case []float64:
		return l[0]
	}
	panic("unknown lanes")
}

func requireSame(t *testing.T, want, got float64, msg string, args ...any) {
	t.Helper()
	if math.IsNaN(want) && math.IsNaN(got) {
		return
	}
	if math.Float64bits(want) != math.Float64bits(got) {
		t.Errorf("want %v, got %v: %s", want, got, fmt.Sprintf(msg, args...))
	}
}

// Every operation builds a well-typed program for every dtype that it takes, and is an error for the others.
func TestEveryOpAndDtype(t *testing.T) {
	for _, name := range Names() {
		op := Lookup(name)
		require.NotEmpty(t, op.Doc, name)
		for _, d := range dtype.All {
			p, err := Program(name, d)
			if !op.Takes.Has(d) {
				require.Error(t, err, "%s %s", name, d)
				continue
			}
			require.NoError(t, err)
			require.NoError(t, p.Verify(), "%s %s:\n%s", name, d, p)
			require.Equal(t, op.Result(d), p.Out[0].DType)
			NewFrame(p).Run(Lanes)
		}
	}
}

func TestBasicOps(t *testing.T) {
	const (
		f32, f64, i64, i32, i8, u8, b = dtype.F32, dtype.F64, dtype.I64, dtype.I32, dtype.I8, dtype.U8, dtype.Bool
	)
	for _, c := range []struct {
		op   string
		d    dtype.DType
		args []float64
		want float64
	}{
		{"neg", f32, []float64{0}, nz},
		{"neg", i8, []float64{-128}, -128},
		{"abs", f64, []float64{nz}, 0},
		{"abs", i8, []float64{-128}, -128},
		{"abs", u8, []float64{200}, 200},
		{"sign", f32, []float64{nan}, 0},
		{"sign", f32, []float64{-3}, -1},
		{"sign", i64, []float64{7}, 1},
		{"sign", u8, []float64{7}, 1},
		{"floor", f32, []float64{-1.5}, -2},
		{"ceil", f64, []float64{-0.5}, nz},
		{"trunc", f64, []float64{-1.9}, -1},
		{"round", f32, []float64{0.5}, 0},
		{"round", f32, []float64{2.5}, 2},
		{"round", f64, []float64{-3.5}, -4},
		{"sqrt", f64, []float64{-1}, nan},
		{"rsqrt", f32, []float64{0}, inf},
		{"relu", f32, []float64{nan}, nan},
		{"relu", f32, []float64{-2}, 0},
		{"relu", f32, []float64{3}, 3},
		{"isnan", f32, []float64{nan}, 1},
		{"isnan", i64, []float64{1}, 0},
		{"isinf", f64, []float64{-inf}, 1},
		{"isfinite", f64, []float64{nan}, 0},
		{"signbit", f32, []float64{nz}, 1},
		{"logical_not", f32, []float64{nan}, 0},
		{"bitwise_not", b, []float64{1}, 0},
		{"bitwise_not", u8, []float64{1}, 254},
		{"add", b, []float64{1, 1}, 1},
		{"add", u8, []float64{255, 2}, 1},
		{"add", f32, []float64{16777216, 1}, 16777216},
		{"mul", i8, []float64{100, 3}, 44},
		{"div", f32, []float64{-1, 0}, -inf},
		{"floor_div", f32, []float64{-7, 2}, -4},
		{"floor_div", f32, []float64{1, 0.1}, 9},
		{"floor_div", f64, []float64{1, 0}, inf},
		{"floor_div", f64, []float64{0, -2}, nz},
		{"floor_div", u8, []float64{255, 2}, 127},
		{"trunc_div", i64, []float64{-7, 2}, -3},
		{"trunc_div", i8, []float64{-128, -1}, -128},
		{"trunc_div", f32, []float64{-7, 2}, -3},
		{"remainder", f32, []float64{-7, 2}, 1},
		{"remainder", f64, []float64{5.5, -2}, -0.5},
		{"remainder", i8, []float64{-128, -1}, 0},
		{"fmod", f64, []float64{5.5, -2}, 1.5},
		{"fmod", f64, []float64{1e10, 3}, 1},
		{"fmod", f32, []float64{5, inf}, 5},
		{"fmod", i64, []float64{-7, 2}, -1},
		{"maximum", f32, []float64{nan, 1}, nan},
		{"maximum", f32, []float64{1, nan}, nan},
		{"maximum", f32, []float64{1, 2}, 2},
		{"minimum", f64, []float64{1, nan}, nan},
		{"minimum", f64, []float64{nan, 1}, nan},
		{"minimum", i64, []float64{-1, 1}, -1},
		{"fmax", f32, []float64{nan, 1}, 1},
		{"fmax", f32, []float64{1, nan}, 1},
		{"fmin", f32, []float64{nan, nan}, nan},
		{"copysign", f32, []float64{3, nz}, -3},
		{"nextafter", f64, []float64{0, -1}, -math.SmallestNonzeroFloat64},
		{"nextafter", f32, []float64{1, 2}, float64(math.Nextafter32(1, 2))},
		{"nextafter", f32, []float64{-1, 2}, float64(math.Nextafter32(-1, 2))},
		{"nextafter", f64, []float64{nan, 2}, nan},
		{"eq", f32, []float64{nan, nan}, 0},
		{"ne", f32, []float64{nan, nan}, 1},
		{"lt", b, []float64{0, 1}, 1},
		{"ge", f64, []float64{2, nan}, 0},
		{"gt", u8, []float64{200, 100}, 1},
		{"logical_xor", f32, []float64{2, 3}, 0},
		{"bitwise_xor", i32, []float64{6, 3}, 5},
		{"shl", i32, []float64{1, 31}, math.MinInt32},
		{"shl", i32, []float64{1, 32}, 0},
		{"shl", i32, []float64{1, -1}, 0},
		{"shr", i8, []float64{-128, 9}, -1},
		{"shr", i8, []float64{-128, 3}, -16},
		{"shr", u8, []float64{128, 3}, 16},
		{"gcd", i64, []float64{-12, 18}, 6},
		{"gcd", i8, []float64{0, 0}, 0},
		{"gcd", i8, []float64{-128, 0}, -128},
		{"lcm", i32, []float64{4, -6}, 12},
		{"lcm", i32, []float64{0, 0}, 0},
		{"where", f32, []float64{1, 2, 3}, 2},
		{"where", f32, []float64{0, 2, nz}, nz},
		{"lerp", f32, []float64{1, 3, 0.5}, 2},
	} {
		requireSame(t, c.want, eval(t, c.op, c.d, c.args...), "%s %s %v", c.op, c.d, c.args)
	}
}

// Python's // and % over all signs (and the fault for zero).
func TestIntegerDivision(t *testing.T) {
	for _, d := range []dtype.DType{dtype.I8, dtype.I16, dtype.I32, dtype.I64} {
		for _, c := range [][4]float64{
			{-7, 2, -4, 1}, {7, -2, -4, -1}, {-7, -2, 3, -1}, {-1, 3, -1, 2}, {1, -3, -1, -2}, {-5, 3, -2, 1}, {5, -3, -2, -1},
			{120, -27, -5, -15}, {6, 3, 2, 0}, {5, -1, -5, 0},
		} {
			require.Equal(t, c[2], eval(t, "floor_div", d, c[0], c[1]), "%v // %v", c[0], c[1])
			require.Equal(t, c[3], eval(t, "remainder", d, c[0], c[1]), "%v %% %v", c[0], c[1])
		}
		for _, op := range []string{"floor_div", "trunc_div", "remainder", "fmod"} {
			_, fault := evalFault(t, op, d, 1, 0)
			require.Equal(t, FaultZero, fault, "%s %s", op, d)
		}
	}
}

func TestHalvesRoundAfterEveryOp(t *testing.T) {
	require.Equal(t, 1.0, eval(t, "add", dtype.BF16, 1, 1.0/512))
	require.Equal(t, inf, eval(t, "mul", dtype.F16, 60000, 2))
	require.Equal(t, 2048.0, eval(t, "add", dtype.F16, 2048, 1))

	b := NewBuilder()
	x, y := b.Input(dtype.BF16), b.Input(dtype.BF16)
	s, err := Apply(b, "add", x, y)
	require.NoError(t, err)
	e, err := Apply(b, "eq", s, x)
	require.NoError(t, err)
	b.Output(e)
	f := NewFrame(b.Finish())
	set(f.Input(0), 1)
	set(f.Input(1), 1.0/512)
	f.Run(1)
	require.Equal(t, 1.0, get(f.Output(0)), "the comparison sees the rounded sum")
}

func TestConvert(t *testing.T) {
	for _, c := range []struct {
		from, to dtype.DType
		x, want  float64
	}{
		{dtype.F32, dtype.I64, -1.9, -1},
		{dtype.F32, dtype.I64, nan, math.MinInt64},
		{dtype.F64, dtype.I64, 1e300, math.MinInt64},
		{dtype.F64, dtype.I32, 3e9, math.MinInt32},
		{dtype.F64, dtype.I32, -2147483648.5, math.MinInt32},
		{dtype.F64, dtype.I32, 2147483647.5, math.MaxInt32},
		{dtype.F32, dtype.U8, -1, 255},
		{dtype.F32, dtype.U8, 300, 44},
		{dtype.F32, dtype.I8, 200, -56},
		{dtype.F32, dtype.Bool, nan, 1},
		{dtype.F32, dtype.Bool, nz, 0},
		{dtype.F32, dtype.Bool, 0.5, 1},
		{dtype.I64, dtype.U8, -1, 255},
		{dtype.I8, dtype.I64, -5, -5},
		{dtype.U8, dtype.I8, 200, -56},
		{dtype.Bool, dtype.F16, 1, 1},
		{dtype.I64, dtype.F32, 16777217, 16777216},
		{dtype.I32, dtype.BF16, 257, 256},
		{dtype.F64, dtype.F16, 1e6, inf},
		{dtype.F64, dtype.F32, 1e-46, 0},
		{dtype.BF16, dtype.F16, 3, 3},
	} {
		p := ConvertProgram(c.from, c.to)
		require.NoError(t, p.Verify())
		f := p.Frame()
		set(f.Input(0), c.x)
		f.Run(1)
		requireSame(t, c.want, get(f.Output(0)), "%v %s to %s", c.x, c.from, c.to)
	}
	for _, from := range dtype.All {
		for _, to := range dtype.All {
			require.NoError(t, ConvertProgram(from, to).Verify(), "%s to %s", from, to)
		}
	}
}

// A register may take over the lanes of one that dies, never of one that is still read.
func TestRegistersAreReusedSafely(t *testing.T) {
	b := NewBuilder()
	x := b.Input(dtype.F64)
	two := b.F(dtype.F64, 2)
	p := b.Mul(x, two)
	q := b.Add(p, two)
	r := b.Mul(q, q)
	s := b.Sub(r, p)
	b.Output(b.Add(s, q))
	b.Output(r)
	b.Output(x)
	f := NewFrame(b.Finish())
	for range 2 {
		in := f.Input(0).([]float64)
		for i := range in {
			in[i] = float64(i)
		}
		f.Run(Lanes)
		for i := range in {
			v := float64(i)
			q := 2*v + 2
			require.Equal(t, q*q-2*v+q, f.Output(0).([]float64)[i])
			require.Equal(t, q*q, f.Output(1).([]float64)[i])
			require.Equal(t, v, f.Output(2).([]float64)[i])
		}
	}
}

func TestLoadStoreStrided(t *testing.T) {
	p, err := Program("neg", dtype.BF16)
	require.NoError(t, err)
	data := make([]byte, 2*8)
	for i := range 8 {
		le.PutUint16(data[2*i:], dtype.F32ToBF16(float32(i)))
	}
	f := p.Frame()
	f.Load(0, data, 6, -2, 3) // 6, 4, 2
	f.Run(3)
	out := make([]byte, 2*3)
	f.StoreAt(0, out, []int{2, 1, 0})
	for i, want := range []float32{-2, -4, -6} {
		require.Equal(t, want, dtype.BF16ToF32(le.Uint16(out[2*i:])))
	}
	f.LoadAt(0, data, []int{7, 7, 1})
	f.Run(3)
	f.Store(0, out, 0, 1, 3)
	for i, want := range []float32{-7, -7, -1} {
		require.Equal(t, want, dtype.BF16ToF32(le.Uint16(out[2*i:])))
	}
}

func TestApplyErrors(t *testing.T) {
	b := NewBuilder()
	x, y := b.Input(dtype.F32), b.Input(dtype.I64)
	for _, c := range []struct {
		op   string
		args []Value
		want string
	}{
		{"nope", []Value{x}, "no operation"},
		{"add", []Value{x}, "takes 2 operands"},
		{"add", []Value{x, y}, "convert it first"},
		{"bitwise_and", []Value{x, x}, "not defined for f32"},
	} {
		_, err := Apply(b, c.op, c.args...)
		require.ErrorContains(t, err, c.want)
	}
}

func BenchmarkAddF32(b *testing.B) {
	p, _ := Program("add", dtype.F32)
	f := p.Frame()
	for b.Loop() {
		f.Run(Lanes)
	}
}
