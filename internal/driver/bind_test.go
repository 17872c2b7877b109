package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/internal/driver"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

func f32(v ...float64) *ir.Array { return ir.FromFloats(dtype.F32, []int{len(v)}, v) }
func num(d ir.Datum) *ir.Array {
	return ir.Scalar(map[bool]dtype.DType{true: dtype.I64, false: dtype.F64}[isInt(d)], d)
}
func isInt(d ir.Datum) bool                  { _, ok := d.(int64); return ok }
func param(n string, t ir.Type) driver.Param { return driver.Param{Name: n, Type: t} }

// TestBindForms binds one argument of every form that an array file can express.
func TestBindForms(t *testing.T) {
	x, y, s := f32(1, 2), f32(3), num(2.5)
	n := num(int64(7))
	pair := ir.TupleOf(ir.AnyTensor, ir.Int)
	for _, c := range []struct {
		name   string
		typ    ir.Type
		arrays driver.ArrayMap
		want   ir.Datum
	}{
		{"a tensor", ir.AnyTensor, driver.ArrayMap{"a": x}, x},
		{"a 0-d tensor stays one", ir.AnyTensor, driver.ArrayMap{"a": s}, s},
		{"an int", ir.Int, driver.ArrayMap{"a": n}, int64(7)},
		{"a float", ir.Float, driver.ArrayMap{"a": s}, 2.5},
		{"a bool", ir.BoolT, driver.ArrayMap{"a": ir.Scalar(dtype.Bool, true)}, true},
		{"an absent optional", ir.OptionalOf(ir.AnyTensor), driver.ArrayMap{}, nil},
		{"a present optional", ir.OptionalOf(ir.AnyTensor), driver.ArrayMap{"a": x}, x},
		{"a list of ints", ir.IntList, driver.ArrayMap{"a": ir.FromFloats(dtype.I64, []int{2}, []float64{4, 5})}, ir.Ints(4, 5)},
		{"an empty list of ints", ir.IntList, driver.ArrayMap{"a": ir.NewArray(dtype.F64, 0)}, ir.NewList()},
		{"a list of tensors", ir.ListOf(ir.AnyTensor), driver.ArrayMap{"a.0": x, "a.1": y}, ir.NewList(x, y)},
		{"an absent list", ir.ListOf(ir.AnyTensor), driver.ArrayMap{}, ir.NewList()},
		{"a nested tuple", ir.TupleOf(ir.AnyTensor, pair), driver.ArrayMap{"a.0": x, "a.1.0": y, "a.1.1": n}, ir.Tuple{x, ir.Tuple{y, int64(7)}}},
		{"a list of pairs", ir.ListOf(pair), driver.ArrayMap{"a.0.0": x, "a.0.1": n}, ir.NewList(ir.Tuple{x, int64(7)})},
		{"a dict", ir.DictOf(ir.Str, ir.AnyTensor), driver.ArrayMap{"a.k": x, "a.l.m": y}, ir.NewDict([]ir.Datum{"k", "l.m"}, []ir.Datum{x, y})},
		{"an absent dict", ir.DictOf(ir.Str, ir.AnyTensor), driver.ArrayMap{}, ir.NewDict(nil, nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := driver.Bind([]driver.Param{param("a", c.typ)}, c.arrays, false)
			require.NoError(t, err)
			require.Equal(t, ir.FormatDatum(c.want), ir.FormatDatum(b.Args[0]))
			require.Equal(t, ir.TypeOf(c.want), ir.TypeOf(b.Args[0]))
		})
	}
}

func TestBindDefaultsAndReservedNames(t *testing.T) {
	params := []driver.Param{param("x", ir.AnyTensor), {Name: "k", Type: ir.Int, HasDefault: true, Default: int64(3)}}
	in := driver.ArrayMap{"x": f32(1), "cotangent.0": f32(2), "v.x": f32(5)}
	b, err := driver.Bind(params, in, true)
	require.NoError(t, err)
	require.Equal(t, int64(3), b.Args[1])
	require.Equal(t, in["cotangent.0"], b.Cotangents[0])
	require.Equal(t, "x", b.V)
	b, err = driver.Bind(params, in, false)
	require.NoError(t, err)
	require.Empty(t, b.Cotangents)

	// A parameter that is a dict named v claims v.x for itself.
	b, err = driver.Bind([]driver.Param{param("v", ir.DictOf(ir.Str, ir.AnyTensor))}, driver.ArrayMap{"v.x": f32(1)}, true)
	require.NoError(t, err)
	require.Empty(t, b.V)
}

func TestBindErrors(t *testing.T) {
	params := []driver.Param{param("x", ir.AnyTensor), {Name: "k", Type: ir.Int, HasDefault: true, Default: int64(3)}}
	for _, c := range []struct {
		in   driver.ArrayMap
		want string
	}{
		{driver.ArrayMap{}, `missing argument "x"; expected: x: Tensor, k: int = 3`},
		{driver.ArrayMap{"x": f32(1), "y": f32(1)}, `unknown argument "y"; expected: x: Tensor, k: int = 3`},
		{driver.ArrayMap{"y": f32(1)}, `missing argument "x" and unknown argument "y"`},
		{driver.ArrayMap{"x": f32(1), "k": f32(1)}, "argument k: expected one int (a 0-d array), got tensor<f32[1]>"},
		{driver.ArrayMap{"x": f32(1), "k": num(1.0)}, "argument k: expected int, got an array of torch.float64"},
	} {
		_, err := driver.Bind(params, c.in, false)
		require.ErrorContains(t, err, c.want)
	}
	_, err := driver.Bind(params, driver.ArrayMap{"x": f32(1), "cotangent.a": f32(1)}, true)
	require.ErrorContains(t, err, "cotangent.N")
}

func TestFlatten(t *testing.T) {
	x, y := f32(1), f32(2)
	got, err := driver.Flatten(ir.Tuple{x, ir.NewList(int64(3), ir.Tuple{true}), nil, 0.5}, y)
	require.NoError(t, err)
	var texts []string
	for _, a := range got {
		texts = append(texts, a.String())
	}
	require.Equal(t, []string{"f32[1]{1.0}", "i64[]{3}", "bool[]{1}", "f64[]{0.5}", "f32[1]{2.0}"}, texts)
	_, err = driver.Flatten("text")
	require.ErrorContains(t, err, "str")
}

func TestParseType(t *testing.T) {
	for in, want := range map[string]string{
		"f32[1,28,28]":  "tensor<f32[1,28,28]>",
		"float32[N, 3]": "tensor<f32[N,3]>",
		"i64[]":         "tensor<i64[]>",
		"torch.bool[2]": "tensor<bool[2]>",
		"bfloat16[0]":   "tensor<bf16[0]>",
	} {
		got, err := driver.ParseType(in)
		require.NoError(t, err)
		require.Equal(t, want, got.String())
	}
	for in, want := range map[string]string{"f32": "brackets", "f33[1]": "dtype", "f32[-1]": `"-1"`, "f32[1,]": `""`} {
		_, err := driver.ParseType(in)
		require.ErrorContains(t, err, want)
	}
}
