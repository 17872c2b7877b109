package aten

import (
	"math"
	"testing"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

func TestIndex(t *testing.T) {
	i, j := i64s([]int{2}, 1, -1), i64s([]int{2}, 0, 2)
	want(t, []string{"i64[2,3]{3,4,5,3,4,5}"}, "index", m23, list(i))
	want(t, []string{"i64[2]{3,5}"}, "index", m23, list(i, j))
	want(t, []string{"i64[2,2]{0,2,3,5}"}, "index", m23, list(nil, j))
	want(t, []string{"i64[1,2,3]{3,4,5,3,4,5}"}, "index", m23, list(i64s([]int{1, 2}, 1, 1)))
	want(t, []string{"i64[2,1]{3,1}"}, "index", m23, list(i64s([]int{2, 1}, 1, 0), i64s([]int{2, 1}, 0, 1)))
	// separated indices: their dims come first
	x := i64s([]int{2, 2, 2}, 0, 1, 2, 3, 4, 5, 6, 7)
	want(t, []string{"i64[3,2]{0,2,1,3,5,7}"}, "index", x, list(i64s([]int{3}, 0, 0, 1), nil, i64s([]int{3}, 0, 1, 1)))
	// adjacent ones: they stay in place
	want(t, []string{"i64[2,3]{0,1,3,4,5,7}"}, "index", x, list(nil, i64s([]int{3}, 0, 0, 1), i64s([]int{3}, 0, 1, 1)))
	fails(t, "index 5 is out of", "index", m23, list(i64s([]int{1}, 5)))
	fails(t, "index -7", "index", m23, list(i64s([]int{1}, -9), i64s([]int{1}, 0)))
	fails(t, "too many indices", "index", m23, list(i, i, i))
	fails(t, "could not be broadcast together", "index", m23, list(i, i64s([]int{3}, 0, 0, 0)))
}

func TestIndexByMask(t *testing.T) {
	m := bools([]int{2}, 0, 1)
	c := bools([]int{3}, 1, 0, 1)
	want(t, []string{"i64[1,3]{3,4,5}"}, "index", m23, list(m))
	want(t, []string{"i64[2,2]{0,2,3,5}"}, "index", m23, list(nil, c))
	want(t, []string{"i64[2]{0,5}"}, "index", m23, list(bools([]int{2, 3}, 1, 0, 0, 0, 0, 1)))
	want(t, []string{"i64[2]{3,5}"}, "index", m23, list(m, c)) // one true row is repeated
	want(t, []string{"i64[2]{3,4}"}, "index", m23, list(i64s([]int{2}, 1, 1), bools([]int{3}, 1, 1, 0)))
	want(t, []string{"i64[1,2,3]{0,1,2,3,4,5}"}, "index", m23, list(bools(nil, 1)))
	fails(t, "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2 3]", "index", m23, list(c))
}

func TestIndexPut(t *testing.T) {
	i, j := i64s([]int{2}, 1, 1), i64s([]int{2}, 0, 2)
	want(t, []string{"i64[2,3]{0,1,2,9,9,9}"}, "index_put", m23, list(i64s([]int{1}, 1)), i64s(nil, 9))
	want(t, []string{"i64[2,3]{0,1,2,7,4,8}"}, "index_put", m23, list(i, j), i64s([]int{2}, 7, 8))
	want(t, []string{"i64[2,3]{0,1,2,5,8,11}"}, "index_put", m23, list(i), i64s([]int{2, 3}, 1, 2, 3, 1, 2, 3), true)
	want(t, []string{"i64[2,3]{7,1,8,7,4,8}"}, "index_put", m23, list(nil, j), i64s([]int{2}, 7, 8))
	want(t, []string{"i64[2,3]{0,1,2,9,9,9}"}, "index_put", m23, list(bools([]int{2}, 0, 1)), i64s(nil, 9))
	want(t, []string{"i64[2,3]{7,1,2,3,4,8}"}, "index_put", m23, list(bools([]int{2, 3}, 1, 0, 0, 0, 0, 1)), i64s([]int{2}, 7, 8))
	want(t, []string{"i64[2,3]{9,9,9,9,9,9}"}, "index_put", m23, list(bools(nil, 1)), i64s([]int{1}, 9))
	fails(t, "cannot be broadcast to indexing result", "index_put", m23, list(i), i64s([]int{2}, 7, 8))
	fails(t, "dtypes match", "index_put", m23, list(i), f32s([]int{3}, 7, 8, 9))
}

func TestRowsOfOneDim(t *testing.T) {
	i := i64s([]int{2}, 1, 1)
	want(t, []string{"i64[2,2]{1,1,4,4}"}, "index_select", m23, int64(1), i)
	want(t, []string{"i64[2,3]{0,1,2,13,16,19}"}, "index_add", m23, int64(0), i, i64s([]int{2, 3}, 1, 2, 3, 4, 4, 4), int64(2))
	want(t, []string{"i64[2,3]{0,7,2,3,9,5}"}, "index_copy", m23, int64(1), i64s([]int{1}, 1), i64s([]int{2, 1}, 7, 9))
	want(t, []string{"i64[2,3]{0,8,2,3,8,5}"}, "index_fill.int_Scalar", m23, int64(1), i, int64(8))
	fails(t, "out of range", "index_select", m23, int64(0), i64s([]int{1}, 2))
	fails(t, "index", "index_select", m23, int64(0), i64s([]int{1}, -1))
}

func TestGatherAndScatter(t *testing.T) {
	i := i64s([]int{2, 2}, 0, 2, 1, 1)
	want(t, []string{"i64[2,2]{0,2,4,4}"}, "gather", m23, int64(1), i)
	want(t, []string{"i64[2,3]{7,1,8,3,9,5}"}, "scatter.src", m23, int64(1), i, i64s([]int{2, 2}, 7, 8, 6, 9))
	want(t, []string{"i64[2,3]{9,1,9,3,9,5}"}, "scatter.value", m23, int64(1), i, int64(9))
	want(t, []string{"i64[2,3]{1,1,3,3,6,5}"}, "scatter_add", m23, int64(1), i, i64s([]int{2, 2}, 1, 1, 1, 1))
	want(t, []string{"f32[2]{2.0,9.0}"}, "scatter_reduce", f32s([]int{2}, 1, 9), int64(0), i64s([]int{2}, 0, 0), f32s([]int{2}, 2, 3), "mean")
	want(t, []string{"f32[2]{2.5,9.0}"}, "scatter_reduce", f32s([]int{2}, 1, 9), int64(0), i64s([]int{2}, 0, 0), f32s([]int{2}, 2, 3), "mean", false)
	want(t, []string{"i64[2]{5,0}"}, "take", m23, i64s([]int{2}, -1, 0))
	want(t, []string{"i64[2,1]{2,3}"}, "take_along_dim", m23, i64s([]int{2, 1}, 2, 0), int64(1))
	fails(t, "same number of dimensions", "gather", m23, int64(1), i64s([]int{1}, 0))
	fails(t, "out of range", "gather", m23, int64(1), i64s([]int{1, 1}, 3))
	fails(t, "Expected dtype int64", "gather", m23, int64(1), f32s([]int{1, 1}, 0))
}

func TestMasks(t *testing.T) {
	m := bools([]int{2, 3}, 1, 0, 0, 0, 1, 1)
	want(t, []string{"i64[3]{0,4,5}"}, "masked_select", m23, m)
	want(t, []string{"i64[2,3]{9,1,2,3,9,9}"}, "masked_fill.Scalar", m23, m, int64(9))
	want(t, []string{"i64[2,3]{7,1,2,3,8,9}"}, "masked_scatter", m23, m, i64s([]int{4}, 7, 8, 9, 10))
	want(t, []string{"i64[3,2]{0,0,1,1,1,2}"}, "nonzero", m)
	want(t, []string{"[i64[3]{0,1,1}, i64[3]{0,1,2}]"}, "where", m)
	want(t, []string{"i64[2,3]{0,1,0,0,0,1}"}, "one_hot", i64s([]int{2}, 1, 2))
	want(t, []string{"i64[1,2]{1,0}"}, "one_hot", i64s([]int{1}, 0), int64(2))
	fails(t, "0-dimensional value", "masked_fill.Tensor", m23, m, i64s([]int{1}, 9))
}

func TestSorting(t *testing.T) {
	x := f32s([]int{4}, 2, math.NaN(), 1, 2)
	want(t, []string{"f32[4]{1.0,2.0,2.0,nan}", "i64[4]{2,0,3,1}"}, "sort", x)
	want(t, []string{"f32[4]{nan,2.0,2.0,1.0}", "i64[4]{1,0,3,2}"}, "sort.stable", x, true, int64(0), true)
	want(t, []string{"i64[4]{2,0,3,1}"}, "argsort", x)
	want(t, []string{"f32[2]{nan,2.0}", "i64[2]{1,0}"}, "topk", x, int64(2))
	want(t, []string{"f32[2]{1.0,2.0}", "i64[2]{2,0}"}, "topk", x, int64(2), int64(0), false)
	want(t, []string{"f32[]{2.0}", "i64[]{0}"}, "kthvalue", x, int64(2))
	fails(t, "selected index k out of range", "topk", x, int64(5))
	want(t, []string{"i64[3]{1,3,4}"}, "cumsum", i64s([]int{3}, 1, 2, 1), int64(0))
	want(t, []string{"i64[2,3]{0,1,2,3,5,7}"}, "cumsum", m23, int64(0))
	want(t, []string{"i64[3]{1,2,2}", "i64[3]{0,1,1}"}, "cummax", i64s([]int{3}, 1, 2, 1), int64(0))
	want(t, []string{"i64[2]{1,-1}"}, "diff", i64s([]int{3}, 1, 2, 1))
}

func TestSearches(t *testing.T) {
	s := f32s([]int{3}, 1, 2, 3)
	want(t, []string{"i64[3]{0,1,3}"}, "bucketize.Tensor", f32s([]int{3}, 0, 2, math.NaN()), s)
	want(t, []string{"i32[]{2}"}, "bucketize.Scalar", 2.0, s, true, true)
	want(t, []string{"i64[2,1]{1,2}"}, "searchsorted.Tensor", f32s([]int{2, 2}, 1, 3, 5, 7), f32s([]int{2, 1}, 2, 9))
	want(t, []string{"bool[2,3]{0,1,0,1,0,0}"}, "isin.Tensor_Tensor", m23, i64s([]int{2}, 1, 3))
	u := i64s([]int{5}, 3, 1, 3, 1, 1)
	want(t, []string{"i64[2]{1,3}"}, "unique", u)
	want(t, []string{"i64[2]{1,3}", "i64[5]{1,0,1,0,0}", "i64[2]{3,2}"}, "_unique2", u)
	want(t, []string{"i64[2]{1,3}", "i64[2]{3,2}"}, "unique.counts", u, true, true)
	want(t, []string{"i64[4]{3,1,3,1}"}, "unique_consecutive", u)
}

func TestCreation(t *testing.T) {
	want(t, []string{"f32[2]{0.0,0.0}"}, "zeros", ints(2))
	want(t, []string{"i64[1]{3}"}, "full", ints(1), int64(3))
	want(t, []string{"f32[1]{3.5}"}, "full", ints(1), 3.5)
	want(t, []string{"f32[2,3]{1.0,0.0,0.0,0.0,1.0,0.0}"}, "eye.m", int64(2), int64(3))
	want(t, []string{"i64[3]{0,1,2}"}, "arange", int64(3))
	want(t, []string{"f32[4]{0.0,0.25,0.5,0.75}"}, "arange.start_step", int64(0), int64(1), 0.25)
	want(t, []string{"i64[3]{5,3,1}"}, "arange.start_step", int64(5), int64(0), int64(-2))
	want(t, []string{"f32[3]{0.0,1.0,2.0}"}, "arange.start", 0.0, 2.5)
	want(t, []string{"f32[3]{0.0,0.5,1.0}"}, "linspace", int64(0), int64(1), int64(3))
	want(t, []string{"i64[2,3]{2,2,2,2,2,2}"}, "full_like", m23, int64(2))
	want(t, []string{"f64[2,3]{1.0,1.0,1.0,1.0,1.0,1.0}"}, "ones_like", m23, dtype.F64)
	want(t, []string{"i64[2]{1,1}"}, "new_ones", m23, ints(2))
	want(t, []string{"f32[2,1]{1.0,2.5}"}, "tensor", list(list(int64(1)), list(2.5)))
	want(t, []string{"bool[2]{1,0}"}, "tensor", list(true, false))
	want(t, []string{"f32[]{2.5}"}, "tensor", 2.5)
	want(t, []string{"f32[0]{}"}, "tensor", ir.NewList())
	want(t, []string{"i64[2]{1,2}"}, "tensor", list(i64s(nil, 1), i64s(nil, 2)))
	fails(t, "expected sequence of length 1", "tensor", list(list(int64(1)), list(int64(1), int64(2))))
	fails(t, "negative dimension", "zeros", ints(-2))
	fails(t, "step sign", "arange.start", int64(3), int64(0))
	want(t, []string{"i64[2]{1,-1}"}, "long", f32s([]int{2}, 1.9, -1.9))
	want(t, []string{"i64[2,3]{0,1,0,0,1,0}"}, "copy", m23, i64s([]int{3}, 0, 1, 0))
	want(t, []string{"i64[2,3]{4,4,4,4,4,4}"}, "fill.Scalar", m23, int64(4))
	want(t, []string{"i64[2,3]{9,1,2,3,9,5}"}, "fill_diagonal", m23, int64(9))
	want(t, []string{"6"}, "numel", m23)
}
