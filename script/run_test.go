package script_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/passes"
	"github.com/gtc-project/gtc/script"
)

// arguments are what the programs of testdata/script are given, by name.
var arguments = map[string]ir.Datum{
	"x": ir.FromFloats(dtype.F32, []int{3, 4}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
	"y": ir.FromFloats(dtype.F32, []int{4}, []float64{0, 10, 20, 30}),
	"c": true, "d": false, "k": int64(2), "n": int64(3), "z": int64(0),
}

var wantOut = regexp.MustCompile(`(?m)^# out\.\d+ = (\[.*?\]) (\[.*\])$`)

// The programs of testdata/script give what plain Python gives, or the error that they state.
func TestPrograms(t *testing.T) {
	paths, err := filepath.Glob("../testdata/script/*/*.py")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	resolver := passes.NewResolver()
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".py"), func(t *testing.T) {
			src, err := os.ReadFile(path)
			require.NoError(t, err)
			f, err := script.Parse(filepath.Base(path), src)
			require.NoError(t, err)
			fn, sig, err := f.Lower("forward", nil)
			if _, want, isError := strings.Cut(string(src), "\n# error: "); isError {
				require.ErrorContains(t, err, strings.TrimSpace(want))
				return
			}
			require.NoError(t, err)
			require.Empty(t, ir.Verify(fn))
			var args []ir.Datum
			for _, p := range sig.Params {
				args = append(args, arguments[p.Name])
			}
			ev := &ir.Evaluator{Resolve: resolver.Resolve}
			results, err := ev.Run(context.Background(), fn, args...)
			require.NoError(t, err)
			checkResults(t, string(src), flatten(results))
		})
	}
}

func checkResults(t *testing.T, src string, got []ir.Datum) {
	wants := wantOut.FindAllStringSubmatch(src, -1)
	require.Len(t, got, len(wants))
	for i, w := range wants {
		var shape []int
		var values []float64
		require.NoError(t, json.Unmarshal([]byte(w[1]), &shape))
		require.NoError(t, json.Unmarshal([]byte(w[2]), &values))
		gotShape, gotValues := numbers(got[i])
		require.Equal(t, shape, gotShape, "shape of out.%d", i)
		require.InDeltaSlice(t, values, gotValues, 1e-4, "out.%d", i)
	}
}

// flatten lists the leaves of results, depth first.
func flatten(ds []ir.Datum) []ir.Datum {
	var out []ir.Datum
	for _, d := range ds {
		switch d := d.(type) {
		case ir.Tuple:
			out = append(out, flatten(d)...)
		case ir.List:
			out = append(out, flatten(d.Elems())...)
		case nil:
		default:
			out = append(out, d)
		}
	}
	return out
}

func numbers(d ir.Datum) (shape []int, values []float64) {
	switch d := d.(type) {
	case *ir.Array:
		return append([]int{}, d.Shape...), d.Floats()
	case int64:
		return []int{}, []float64{float64(d)}
	case float64:
		return []int{}, []float64{d}
	case bool:
		if d {
			return []int{}, []float64{1}
		}
	}
	return []int{}, []float64{0}
}
