package tensor

import (
	"fmt"

	"github.com/gtc-project/gtc/aten"
)

// Apply runs one call by its exact name ("max.dim") on all operands of its schema, the hidden key of a random function included, and records it on the
// tape: what an interpreter of programs needs. Operands are *Tensor, []any of them (nil inside: None) or plain data (see ir.Datum); results likewise.
func Apply(op Op, args []any) ([]any, error) {
	fn := aten.Lookup(op.Callee)
	if fn == nil {
		return nil, fmt.Errorf("there is no function %s", op.Callee)
	}
	if op.Order > 0 {
		fn = nil
	}
	return dispatch(op, fn, args)
}

// Graft gives the value of x with the gradient history of like, a tensor of the same shape and dtype.
func Graft(x, like *Tensor) *Tensor {
	t := *x
	t.hist, t.leaf, t.views = like.history(), like.leaf, nil
	return &t
}

// Failed gives a tensor that holds the error of an operation on args, with the line of the caller, for packages that build operations on this one.
func Failed(op string, args []any, err error) *Tensor { return failed(located(op, args, err)) }

// Key draws the key of a random operation from the scope's generator.
func (s *Scope) Key() int64 { return s.generator().Key() }
