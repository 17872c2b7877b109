package aten

import "testing"

func TestArithmetic(t *testing.T) {
	x := f32s([]int{2}, 1, 2)
	i := i64s([]int{2}, 5, -7)
	want(t, []string{"f32[2]{1.5,3.0}"}, "add.Tensor", x, x, 0.5)
	want(t, []string{"f32[2]{6.0,-5.0}"}, "add.Tensor", x, i)
}
