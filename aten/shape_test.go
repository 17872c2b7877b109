package aten

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

var m23 = i64s([]int{2, 3}, 0, 1, 2, 3, 4, 5)

func TestReshapes(t *testing.T) {
	want(t, []string{"i64[3,2]{0,1,2,3,4,5}"}, "reshape", m23, ints(3, -1))
	want(t, []string{"i64[6]{0,1,2,3,4,5}"}, "view", m23, ints(-1))
	want(t, []string{"i64[6]{0,1,2,3,4,5}"}, "flatten", m23)
	want(t, []string{"i64[1]{7}"}, "flatten", i64s(nil, 7))
	want(t, []string{"i64[2,3,1]{0,1,2,3,4,5}"}, "unflatten", m23, int64(1), ints(3, 1))
	want(t, []string{"i64[1,2,3]{0,1,2,3,4,5}"}, "unsqueeze", m23, int64(0))
	want(t, []string{"i64[3]{0,1,2}"}, "squeeze", i64s([]int{1, 3, 1}, 0, 1, 2))
	want(t, []string{"i64[3,1]{0,1,2}"}, "squeeze.dim", i64s([]int{1, 3, 1}, 0, 1, 2), int64(0))
	want(t, []string{"i64[1,2]{4,5}"}, "atleast_2d", i64s([]int{2}, 4, 5))
	want(t, []string{"i64[1]{1065353216}"}, "view.dtype", f32s([]int{2}, 1, 0), dtype.I64)
	want(t, []string{"i32[2]{1065353216,0}"}, "view.dtype", f32s([]int{2}, 1, 0), dtype.I32)
	fails(t, "divisible by 2", "view.dtype", f32s([]int{3}, 1, 0, 0), dtype.I64)
	fails(t, "is invalid for input of size 6", "reshape", m23, ints(4, -1))
	fails(t, "is invalid for input of size 6", "view", m23, ints(5))
}

func TestViewDemandsAdjacentDims(t *testing.T) {
	f := ir.NewFunc("f")
	b := ir.NewBuilder(f)
	x := f.Param("x", ir.TensorOf(dtype.F32, 2, 3, 4))
	err := ir.Try(func() { call(b, "view", call(b, "transpose.int", x, b.Int(0), b.Int(1)), b.Ints(24)) })
	require.ErrorContains(t, err, "view size is not compatible")
	require.NoError(t, ir.Try(func() {
		y := call(b, "transpose.int", x, b.Int(0), b.Int(1))
		call(b, "view", y, b.Ints(3, 2, 2, 2))
		call(b, "view", call(b, "contiguous", y), b.Ints(24))
		call(b, "reshape", y, b.Ints(24))
		call(b, "view", call(b, "permute", y, b.Ints(1, 0, 2)), b.Ints(24))
	}))
}

func TestTransposes(t *testing.T) {
	want(t, []string{"i64[3,2]{0,3,1,4,2,5}"}, "t", m23)
	want(t, []string{"i64[3,2]{0,3,1,4,2,5}"}, "transpose.int", m23, int64(0), int64(-1))
	want(t, []string{"i64[3,2]{0,3,1,4,2,5}"}, "permute", m23, ints(1, 0))
	want(t, []string{"i64[3,2]{0,3,1,4,2,5}"}, "movedim.int", m23, int64(0), int64(1))
	want(t, []string{"i64[3,2]{0,3,1,4,2,5}"}, "numpy_T", m23)
	fails(t, "duplicate dims", "permute", m23, ints(0, 0))
	fails(t, "number of dimensions", "permute", m23, ints(0))
	fails(t, "<= 2 dimensions", "t", i64s([]int{1, 1, 1}, 0))
}

func TestExpansions(t *testing.T) {
	want(t, []string{"i64[2,2]{1,1,2,2}"}, "expand", i64s([]int{2, 1}, 1, 2), ints(-1, 2))
	want(t, []string{"[i64[2,2]{1,1,2,2}, i64[2,2]{3,4,3,4}]"}, "broadcast_tensors", list(i64s([]int{2, 1}, 1, 2), i64s([]int{2}, 3, 4)))
	want(t, []string{"[i64[2,1]{1,2}, i64[2,1]{3,3}]"}, "meshgrid", list(i64s([]int{2}, 1, 2), i64s([]int{1}, 3)))
	want(t, []string{"[i64[1,2]{1,2}, i64[1,2]{3,3}]"}, "meshgrid.indexing", list(i64s([]int{2}, 1, 2), i64s([]int{1}, 3)), "xy")
	fails(t, "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1", "expand", m23, ints(2, 4))
}

func TestJoins(t *testing.T) {
	want(t, []string{"i64[4,3]{0,1,2,3,4,5,0,1,2,3,4,5}"}, "cat", list(m23, m23))
	want(t, []string{"f32[3]{1.0,2.0,0.5}"}, "cat", list(i64s([]int{2}, 1, 2), f32s([]int{1}, 0.5)))
	want(t, []string{"i64[2,2]{1,3,2,4}"}, "stack", list(i64s([]int{2}, 1, 2), i64s([]int{2}, 3, 4)), int64(1))
	want(t, []string{"i64[2,2]{1,3,2,4}"}, "column_stack", list(i64s([]int{2}, 1, 2), i64s([]int{2}, 3, 4)))
	want(t, []string{"i64[2,2]{1,2,3,4}"}, "vstack", list(i64s([]int{2}, 1, 2), i64s([]int{2}, 3, 4)))
	want(t, []string{"i64[2,3]{1,0,0,0,2,3}"}, "block_diag", list(i64s([]int{1}, 1), i64s([]int{2}, 2, 3)))
	fails(t, "Sizes of tensors must match except in dimension 0", "cat", list(m23, i64s([]int{1, 2}, 1, 2)))
	fails(t, "stack expects each tensor to be equal size", "stack", list(m23, i64s([]int{1, 2}, 1, 2)))
}

func TestSplits(t *testing.T) {
	v := i64s([]int{5}, 0, 1, 2, 3, 4)
	want(t, []string{"[i64[2]{0,1}, i64[2]{2,3}, i64[1]{4}]"}, "split.Tensor", v, int64(2))
	want(t, []string{"[i64[1]{0}, i64[4]{1,2,3,4}]"}, "split.sizes", v, ints(1, 4))
	want(t, []string{"[i64[2]{0,1}, i64[2]{2,3}, i64[1]{4}]"}, "chunk", v, int64(3))
	want(t, []string{"[i64[2]{0,1}, i64[2]{2,3}, i64[1]{4}]"}, "tensor_split.sections", v, int64(3))
	want(t, []string{"[i64[1]{0}, i64[3]{1,2,3}, i64[1]{4}]"}, "tensor_split.indices", v, ints(1, 4))
	want(t, []string{"[i64[3]{0,1,2}, i64[3]{3,4,5}]"}, "unbind", m23)
	fails(t, "sum exactly to 5", "split.sizes", v, ints(1, 3))
}

func TestRepetitions(t *testing.T) {
	v := i64s([]int{2}, 1, 2)
	want(t, []string{"i64[2,4]{1,2,1,2,1,2,1,2}"}, "repeat", v, ints(2, 2))
	want(t, []string{"i64[2,6]{0,1,2,0,1,2,3,4,5,3,4,5}"}, "tile", m23, ints(2))
	want(t, []string{"i64[4]{1,1,2,2}"}, "repeat_interleave.self_int", v, int64(2))
	want(t, []string{"i64[3]{1,2,2}"}, "repeat_interleave.self_Tensor", v, i64s([]int{2}, 1, 2))
	want(t, []string{"i64[2,3]{0,0,2,3,3,5}"}, "repeat_interleave.self_Tensor", m23, i64s([]int{3}, 2, 0, 1), int64(1))
}

func TestReversals(t *testing.T) {
	want(t, []string{"i64[2,3]{3,4,5,0,1,2}"}, "flip", m23, ints(0))
	want(t, []string{"i64[3,2]{2,5,1,4,0,3}"}, "rot90", m23)
	want(t, []string{"i64[2,3]{5,4,3,2,1,0}"}, "rot90", m23, int64(2))
	want(t, []string{"i64[3,2]{3,0,4,1,5,2}"}, "rot90", m23, int64(-1))
	want(t, []string{"i64[2,3]{5,0,1,2,3,4}"}, "roll", m23, ints(1))
	want(t, []string{"i64[2,3]{4,5,3,1,2,0}"}, "roll", m23, ints(1, -1), ints(0, 1))
}

func TestPartialViewsAndTheirWrites(t *testing.T) {
	row := i64s([]int{3}, 7, 8, 9)
	want(t, []string{"i64[2]{2,5}"}, "select.int", m23, int64(1), int64(-1))
	want(t, []string{"i64[2,3]{0,1,2,7,8,9}"}, "select_scatter", m23, row, int64(0), int64(1))
	want(t, []string{"i64[2,2]{0,2,3,5}"}, "slice.Tensor", m23, int64(1), nil, nil, int64(2))
	want(t, []string{"i64[1,3]{3,4,5}"}, "slice.Tensor", m23, int64(0), int64(-1))
	want(t, []string{"i64[0,3]{}"}, "slice.Tensor", m23, int64(0), int64(5), int64(9))
	want(t, []string{"i64[2,3]{7,1,8,7,4,8}"}, "slice_scatter", m23, i64s([]int{2, 2}, 7, 8, 7, 8), int64(1), int64(0), nil, int64(2))
	want(t, []string{"i64[2,2]{1,2,4,5}"}, "narrow", m23, int64(1), int64(1), int64(2))
	want(t, []string{"i64[2,2,2]{0,1,1,2,3,4,4,5}"}, "unfold", m23, int64(1), int64(2), int64(1))
	want(t, []string{"i64[2]{1,5}"}, "diagonal", m23, int64(1))
	want(t, []string{"i64[2,3]{0,7,2,3,4,8}"}, "diagonal_scatter", m23, i64s([]int{2}, 7, 8), int64(1))
	want(t, []string{"i64[2,3]{0,1,2,7,4,5}"}, "diagonal_scatter", m23, i64s([]int{1}, 7), int64(-1))
	want(t, []string{"i64[2,2]{0,1,1,2}"}, "as_strided", m23, ints(2, 2), ints(1, 1))
	want(t, []string{"i64[2,3]{0,7,2,8,4,5}"}, "as_strided_scatter", m23, i64s([]int{2}, 7, 8), ints(2), ints(2), int64(1))
	fails(t, "select(): index 3 out of range for tensor of size [2 3] at dimension 1", "select.int", m23, int64(1), int64(3))
	fails(t, "exceeds dimension size (3)", "narrow", m23, int64(1), int64(2), int64(2))
	fails(t, "slice step must be positive", "slice.Tensor", m23, int64(1), nil, nil, int64(0))
}

func TestDiagonalsAndTriangles(t *testing.T) {
	v := i64s([]int{2}, 7, 8)
	want(t, []string{"i64[2,2]{7,0,0,8}"}, "diag", v)
	want(t, []string{"i64[3,3]{0,7,0,0,0,8,0,0,0}"}, "diag", v, int64(1))
	want(t, []string{"i64[3,3]{0,0,0,7,0,0,0,8,0}"}, "diag_embed", v, int64(-1))
	want(t, []string{"i64[2,2,2]{0,0,2,0,0,1,0,3}"}, "diag_embed", i64s([]int{2, 2}, 0, 1, 2, 3), int64(0), int64(0), int64(2))
	want(t, []string{"i64[2,3]{0,1,0,3,4,5}"}, "tril", m23, int64(1))
	want(t, []string{"i64[2,3]{0,1,2,0,4,5}"}, "triu", m23)
	want(t, []string{"i64[]{4}"}, "trace", m23)
	want(t, []string{"i64[2,3]{0,1,1,0,0,1}"}, "tril_indices", int64(2), int64(2))
	want(t, []string{"i64[2,3]{0,0,1,1,2,2}"}, "triu_indices", int64(2), int64(3), int64(1))
}
