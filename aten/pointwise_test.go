package aten

import (
	"math"
	"testing"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

func TestArithmeticPromotes(t *testing.T) {
	x, i, m := f32s([]int{2}, 1, 2), i64s([]int{2}, 5, -7), bools([]int{2}, 1, 0)
	want(t, []string{"f32[2]{1.5,3.0}"}, "add.Tensor", x, x, 0.5)
	want(t, []string{"f32[2]{6.0,-5.0}"}, "add.Tensor", x, i)
	want(t, []string{"i64[2]{6,-6}"}, "add.Scalar", i, int64(1))
	want(t, []string{"f32[2]{5.5,-6.5}"}, "add.Scalar", i, 0.5)
	want(t, []string{"bool[2]{1,0}"}, "add.Tensor", m, m)
	want(t, []string{"i64[2]{2,1}"}, "add.Scalar", m, int64(1))
	want(t, []string{"f32[2]{1.5,0.0}"}, "mul.Scalar", m, 1.5)
	want(t, []string{"f32[2]{1.0,0.0}"}, "rsub.Scalar", x, int64(2))
	want(t, []string{"f32[2]{2.5,-3.5}"}, "div.Scalar", i, int64(2))
	want(t, []string{"i64[2]{2,-4}"}, "floor_divide.Scalar", i, int64(2))
	want(t, []string{"i64[2]{2,-3}"}, "div.Scalar_mode", i, int64(2), "trunc")
	want(t, []string{"i64[2]{1,1}"}, "remainder.Scalar", i, int64(2))
	want(t, []string{"i64[2]{1,-1}"}, "fmod.Scalar", i, int64(2))
	fails(t, "bool tensor", "sub.Tensor", m, m)
	fails(t, "alpha", "add.Tensor", i, i, 0.5)
	fails(t, "rounding_mode", "div.Scalar_mode", i, int64(2), "up")
	fails(t, "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0", "add.Tensor", x, f32s([]int{3}, 1, 2, 3))
	fails(t, "ZeroDivisionError", "floor_divide.Scalar", i, int64(0))
}

func TestBroadcasting(t *testing.T) {
	want(t, []string{"f32[2,2]{11.0,21.0,12.0,22.0}"}, "add.Tensor", f32s([]int{2, 1}, 1, 2), f32s([]int{2}, 10, 20))
	d := ir.FromFloats(dtype.F64, nil, []float64{0.5})
	want(t, []string{"f32[2]{1.5,2.5}"}, "add.Tensor", f32s([]int{2}, 1, 2), d) // a 0-d tensor does not widen
	want(t, []string{"f64[]{1.0}"}, "add.Tensor", d, d)
}

func TestPowers(t *testing.T) {
	x, i := f32s([]int{2}, 4, 9), i64s([]int{2}, 2, -3)
	want(t, []string{"f32[2]{16.0,81.0}"}, "pow.Tensor_Scalar", x, int64(2))
	want(t, []string{"f32[2]{2.0,3.0}"}, "pow.Tensor_Scalar", x, 0.5)
	want(t, []string{"f32[2]{0.25,0.11111111}"}, "pow.Tensor_Scalar", x, int64(-1))
	want(t, []string{"i64[2]{8,-27}"}, "pow.Tensor_Scalar", i, int64(3))
	fails(t, "negative integer powers", "pow.Tensor_Scalar", i, int64(-1))
}

func TestUnary(t *testing.T) {
	x := f32s([]int{3}, -1.5, 2.5, 0.25)
	i := i64s([]int{2}, 4, -9)
	want(t, []string{"f32[3]{1.5,-2.5,-0.25}"}, "neg", x)
	want(t, []string{"f32[3]{-0.5,0.5,0.25}"}, "frac", x)
	want(t, []string{"f32[3]{0.0,2.5,0.25}"}, "relu", x)
	want(t, []string{"f32[3]{-2.0,2.0,0.0}"}, "round", x)
	want(t, []string{"f32[3]{-1.5,2.5,0.2}"}, "round.decimals", x, int64(1))
	want(t, []string{"i64[2]{4,-9}"}, "floor", i)
	want(t, []string{"f32[2]{2.0,nan}"}, "sqrt", i)
	want(t, []string{"f32[3]{-85.94367,143.23946,14.323945}"}, "rad2deg", x)
	fails(t, "Negation", "neg", bools([]int{1}, 1))
}

func TestClamp(t *testing.T) {
	x := f32s([]int{4}, -2, 0, 2, math.NaN())
	i := i64s([]int{3}, -5, 0, 5)
	want(t, []string{"f32[4]{-1.0,0.0,1.0,nan}"}, "clamp", x, int64(-1), int64(1))
	want(t, []string{"f32[4]{-1.0,-1.0,-1.0,nan}"}, "clamp", x, 1.0, -1.0)
	want(t, []string{"f32[4]{0.0,0.0,2.0,nan}"}, "clamp_min", x, int64(0))
	want(t, []string{"i64[3]{-5,0,3}"}, "clamp", i, nil, int64(3))
	want(t, []string{"f32[4]{0.0,0.0,1.0,nan}"}, "clamp.Tensor", x, f32s([]int{1}, 0), f32s(nil, 1))
	fails(t, "At least one of", "clamp", x, nil, nil)
}

func TestWhereAndBlends(t *testing.T) {
	m, x := bools([]int{2}, 1, 0), f32s([]int{2}, 1, 2)
	want(t, []string{"f32[2]{1.0,0.0}"}, "where.ScalarOther", m, x, int64(0))
	want(t, []string{"i64[2]{2,3}"}, "where.Scalar", m, int64(2), int64(3))
	want(t, []string{"f32[2]{2.0,3.5}"}, "where.Scalar", m, int64(2), 3.5)
	want(t, []string{"f32[2]{9.0,2.0}"}, "where.ScalarSelf", m, 9.0, x)
	fails(t, "boolean", "where.self", x, x, x)
	want(t, []string{"f32[3]{0.0,3.4028235e+38,-1.0}"}, "nan_to_num", f32s([]int{3}, math.NaN(), math.Inf(1), math.Inf(-1)), nil, nil, -1.0)
	want(t, []string{"f32[2]{1.5,3.0}"}, "lerp.Scalar", x, f32s([]int{2}, 2, 4), 0.5)
	want(t, []string{"f32[2]{1.5,4.0}"}, "addcmul", x, x, x, 0.5)
	want(t, []string{"f32[2]{-1.0,0.0}"}, "addcdiv", x, x, x, -2.0)
	fails(t, "addcdiv", "addcdiv", i64s(nil, 1), i64s(nil, 1), i64s(nil, 1))
}

func TestComparisons(t *testing.T) {
	x, i := f32s([]int{2}, 1, 2), i64s([]int{2}, 5, 2)
	want(t, []string{"bool[2]{0,1}"}, "eq.Tensor", x, i)
	want(t, []string{"bool[2]{0,0}"}, "eq.Scalar", i, 2.5)
	want(t, []string{"bool[2]{1,0}"}, "lt.Tensor", x, i)
	want(t, []string{"bool[2]{1,1}"}, "logical_and", x, i)
	want(t, []string{"i64[2]{-6,-3}"}, "bitwise_not", i)
	want(t, []string{"i64[2]{1,2}"}, "bitwise_and.Scalar", i, int64(3))
	want(t, []string{"i64[2]{10,4}"}, "bitwise_left_shift.Scalar", i, int64(1))
	fails(t, "not implemented for 'Float'", "bitwise_and.Tensor", x, x)
	want(t, []string{"true"}, "equal", x, x)
	want(t, []string{"false"}, "equal", x, f32s([]int{1}, 1))
	want(t, []string{"false"}, "allclose", x, f32s([]int{2}, 1, 2.1))
	n := f32s([]int{3}, math.NaN(), math.Inf(1), 1)
	want(t, []string{"bool[3]{0,1,1}"}, "isclose", n, n)
	want(t, []string{"bool[3]{1,1,1}"}, "isclose", n, n, 1e-5, 1e-8, true)
	want(t, []string{"bool[3]{0,1,0}"}, "isposinf", n)
}
