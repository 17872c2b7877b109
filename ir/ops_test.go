package ir

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every row of the op table states every facet of its op.
func TestOpRowsAreComplete(t *testing.T) {
	for _, op := range Ops() {
		t.Run(op.Name, func(t *testing.T) {
			require.True(t, strings.HasSuffix(op.Doc, "."), "Doc %q is a sentence", op.Doc)
			require.NotContains(t, op.Doc, "\n")
			seen := map[string]bool{}
			for i, p := range op.Params {
				require.NotEmpty(t, p)
				require.False(t, seen[p], "parameter %s occurs twice", p)
				seen[p] = true
				if strings.HasSuffix(p, "...") {
					require.Equal(t, len(op.Params)-1, i, "only the last parameter takes any number")
				}
			}
			require.LessOrEqual(t, int(op.Class), int(Terminator))
			require.LessOrEqual(t, int(op.Effect), int(Ordered))
			structured := op.Class == Control || op.Class == Generic
			require.Equal(t, structured, op.Infer == nil, "Infer")
			require.Equal(t, op.Class == Elementwise, op.Scalar != nil, "Scalar")
			if op.Class == Elementwise || structured || op.Class == Terminator {
				require.Nil(t, op.Eval, "Eval")
			} else {
				require.NotNil(t, op.Eval, "Eval")
			}
			require.NotEqual(t, op.NoGrad, op.Grad != nil, "a gradient, or NoGrad")
		})
	}
}

// Rows of tensor ops have a case in opCases, so that the tests of inference, evaluation and gradients see them.
func TestEveryPrimitiveHasACase(t *testing.T) {
	have := map[string]bool{}
	for _, c := range opCases() {
		have[c.op] = true
	}
	for _, op := range Ops() {
		switch op.Class {
		case Reduce, View, Move, Contract, Generate, Linalg:
			require.True(t, have[op.Name], "no case for %s", op.Name)
		}
	}
}

// Hand-written text may leave a type open, and then anything arrives.
func TestElementwiseOpRefusesWhatIsNoTensor(t *testing.T) {
	f, err := ParseFunc("func @f(%x: any) {\n  %1: tensor<?> = sin(%x)\n  return %1\n}\n")
	require.NoError(t, err)

	_, err = (&Evaluator{}).Run(context.Background(), f, int64(3))

	require.ErrorContains(t, err, "operand 0 is int, want a tensor")
}
