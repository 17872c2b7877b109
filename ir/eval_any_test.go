package ir

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir/dtype"
)

// anything is a value of every kind.
func anything() []Datum {
	return []Datum{
		int64(3), int64(-7), 2.5, true, "ab", nil, Ints(0, 1), Ints(-5), NewList(), NewList(int64(1), "x"), NewList(f32([]int{2}, 1, 2), f32([]int{2}, 3, 4)),
		Tuple{int64(1), nil}, NewDict([]Datum{"k"}, []Datum{1.5}), f32([]int{2}, 1, 2), f32([]int{2, 2}, 1, 2, 3, 4), i64(nil, 1), i64([]int{2}, 9, -9),
		NewArray(dtype.Bool, 2), NewArray(dtype.F32, 0, 3), dtype.F32,
	}
}

// openCall is a function of one node whose operands all have the type any; nil where the op refuses that before running.
func openCall(op *Op, n int) *Func {
	f := NewFunc("f")
	b := NewBuilder(f)
	types := make([]Type, n)
	args := make([]*Value, n)
	for i := range args {
		args[i] = f.Param(fmt.Sprintf("p%d", i), Any)
	}
	if checkArity(&Node{Op: op, Args: args}) != nil {
		return nil
	}
	results, err := op.Infer(&Call{Op: op, Args: types, Vals: args})
	if err != nil {
		return nil
	}
	b.Return(b.Node(op, Attrs{}, nil, results, args...).Results...)
	return f
}

// Hand-written text may leave a type open, and then anything arrives: every op refuses what it cannot take with an error.
func TestOpenOperandsAreCheckedWhenRun(t *testing.T) {
	calls := map[string]*Func{} // by op and number of operands
	run := func(op *Op, args ...Datum) {
		key := fmt.Sprint(op.Name, len(args))
		f, ok := calls[key]
		if !ok {
			f = openCall(op, len(args))
			calls[key] = f
		}
		if f == nil {
			return
		}
		defer func() {
			if r := recover(); r != nil {
				text := ""
				for _, a := range args {
					text += " " + FormatDatum(a)
				}
				t.Errorf("%s of%s panics: %v", op.Name, text, r)
			}
		}()
		_, _ = (&Evaluator{Out: discard{}}).Run(context.Background(), f, args...)
	}
	anything := anything()
	for _, c := range opCases() { // one operand of a good call is something else
		for i := range c.args {
			for _, d := range anything {
				args := append([]Datum{}, c.args...)
				args[i] = d
				run(LookupOp(c.op), args...)
			}
		}
	}
	for _, op := range Ops() {
		if op.Eval == nil && op.Class != Elementwise {
			continue
		}
		for _, x := range anything {
			run(op, x)
			for _, y := range anything {
				run(op, x, y)
			}
		}
		if len(op.Params) == 3 {
			for i, x := range anything { // every pair of values at every pair of places
				for k, y := range anything {
					z := anything[(3*i+7*k)%len(anything)]
					run(op, x, y, z)
					run(op, x, z, y)
					run(op, z, x, y)
				}
			}
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func TestOpenOperandsErrorNamesTheKind(t *testing.T) {
	f, err := ParseFunc("func @f(%x: any) {\n  %1: tensor<?> = permute(%x, [0])\n  return %1\n}\n")
	require.NoError(t, err)

	_, err = (&Evaluator{}).Run(context.Background(), f, "text")
	require.ErrorContains(t, err, "permute: expected a tensor for x, got str")
}
