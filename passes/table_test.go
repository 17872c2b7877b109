package passes_test

import (
	"bytes"
	"context"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/passes"
)

var update = flag.Bool("update", false, "rewrite the expected functions in testdata/passes")

// Passes run in the order of the table, which respects what each says of itself.
func TestTableOrder(t *testing.T) {
	place := map[string]int{}
	for i, p := range passes.Table {
		require.NotContains(t, place, p.Name)
		require.NotEmpty(t, p.Doc, p.Name)
		place[p.Name] = i
		for _, a := range p.After {
			require.Contains(t, place, a, "%s is to run after %s: %s", p.Name, a, p.Why)
		}
		require.Equal(t, len(p.After) > 0, p.Why != "", p.Name)
	}
}

func TestUnknownPass(t *testing.T) {
	_, err := passes.Run(ir.NewFunc("f"), passes.Options{Passes: []string{"fold", "polish"}})
	require.ErrorContains(t, err, `there is no pass "polish": choose from expand-grad, specialise,`)
}

// Passes report what they did, in order.
func TestRunReportsEveryPass(t *testing.T) {
	f := parse(t, `func @f(%x: tensor<f32[2]>) { %a = exp(%x) %b = neg(%a) return(%b) }`)
	var ran []string
	g, err := passes.Run(f, passes.Options{Passes: []string{"fuse", "cse"}, Verify: true, After: func(p *passes.Pass, f *ir.Func, _ time.Duration) { ran = append(ran, p.Name) }})
	require.NoError(t, err)
	require.Equal(t, []string{"cse", "fuse"}, ran)
	require.Contains(t, g.String(), "fused.exp_neg")
}

// separator stands between the function and what the pass makes of it.
const separator = "\n=>\n\n"

// Every file in testdata/passes/PASS holds a function and what PASS makes of it; both compute the same on arbitrary inputs.
func TestPassesByText(t *testing.T) {
	files, err := filepath.Glob("../testdata/passes/*/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		pass := filepath.Base(filepath.Dir(file))
		t.Run(pass+"/"+strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			in, want, _ := strings.Cut(string(text), separator)
			f := parse(t, in)
			g, err := passes.Run(f.Clone(), passes.Options{Passes: []string{pass}, Verify: true})
			require.NoError(t, err)
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(strings.TrimRight(in, "\n")+"\n"+separator+g.String()), 0o644))
			} else {
				require.Equal(t, want, g.String())
			}
			computeTheSame(t, f, g, pass == "expand-grad")
		})
	}
}

// computeTheSame runs both functions on a few inputs each, with the same random stream.
func computeTheSame(t *testing.T, f, g *ir.Func, onlySecond bool) {
	t.Helper()
	r := passes.NewResolver()
	run := func(f *ir.Func, args []ir.Datum) (string, error) {
		var out bytes.Buffer
		ev := &ir.Evaluator{Resolve: r.Resolve, Out: &out}
		rs, err := ev.Run(context.Background(), f, args...)
		return out.String() + ir.FormatDatum(ir.Tuple(rs)), err
	}
	for seed := range 4 {
		var args []ir.Datum
		for i, p := range f.Body.Params {
			args = append(args, sample(p.Type, seed+3*i))
		}
		got, err2 := run(g, slices.Clone(args))
		if onlySecond {
			require.NoError(t, err2)
			continue
		}
		want, err1 := run(f, args)
		if err1 != nil {
			require.EqualError(t, err2, err1.Error())
			continue
		}
		require.NoError(t, err2)
		require.Equal(t, want, got)
	}
}

// sample is a value of a type, different for different seeds.
func sample(t ir.Type, seed int) ir.Datum {
	switch t.Kind {
	case ir.KTensor:
		a := ir.NewArray(t.DType, t.Shape()...)
		special := []float64{0, 1, -1, negZero, math.NaN(), math.Inf(1), 0.5, -2.5}
		for i := 0; i < a.Len(); i++ {
			v := special[(i+seed)%len(special)]
			if seed%2 == 0 {
				v = float64((i*7+seed*3)%11)/4 - 1
			}
			a.SetFloat(i, v)
		}
		return a
	case ir.KInt:
		return int64(seed % 4)
	case ir.KBool:
		return seed%2 == 0
	case ir.KFloat:
		return float64(seed) / 2
	}
	return nil
}

// TestFuel: however many rewrites are made, the result is the same; the same limit stops at the same one.
func TestFuel(t *testing.T) {
	f, err := ir.ParseFunc(`func @f(%x: tensor<f32[2,3]>) {
	  %c = gt(%x, %x)
	  %y = for(2, %x) (%i: int, %h: tensor<f32[2,3]>) {
	    %n = neg(%h)
	    %m = neg(%n)
	    %z: tensor<?> = aten.softmax(%m, 1, none)
	    yield %z
	  }
	  %w = mul(%y, %y)
	  %v = add(%w, %x)
	  return %v }`)
	require.NoError(t, err)
	x := ir.FromFloats(dtype.F32, []int{2, 3}, []float64{1, 2, 3, -1, 0, 5})
	run := func(limit int) (string, *passes.Fuel) {
		fuel := &passes.Fuel{Limit: limit}
		g, err := passes.Compile(f, []ir.Datum{x}, nil, passes.Options{Fuel: fuel, Verify: true})
		require.NoError(t, err)
		out, err := (&ir.Evaluator{Resolve: passes.NewResolver().Resolve}).Run(t.Context(), g, x)
		require.NoError(t, err)
		return ir.FormatDatum(out[0]), fuel
	}
	want, all := run(1 << 30)
	require.Greater(t, all.Used, 5)
	for limit := range all.Used + 1 {
		got, fuel := run(limit)
		require.Equal(t, want, got, "after %d rewrites, the last of which is %s", limit, fuel.Last)
		require.Equal(t, limit, fuel.Used)
	}
	_, last := run(all.Used)
	require.Contains(t, last.Last, "pass fuse: fuse with others add")
}
