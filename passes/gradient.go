package passes

import (
	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/ir"
)

// Gradient is autograd.Differentiate for arguments of one Signature. It specialises f first, because gradients of primitive ops save less
// than those of whole calls, and then what it gets. Where an op on the way needs types that only the run shows, it differentiates
// f as it is. The function that it gives takes f's arguments and then the cotangents, as Differentiate says, and needs no further Specialise.
func Gradient(f *ir.Func, args []ir.Datum, o autograd.Options) (*ir.Func, error) {
	return gradient(f, args, o, nil)
}

func gradient(f *ir.Func, args []ir.Datum, o autograd.Options, fuel *Fuel) (*ir.Func, error) {
	s, err := specialiseArgs(f, args, fuel)
	if err != nil {
		return nil, err
	}
	if g, err := autograd.Differentiate(s, o); err == nil {
		return specialise(g, fuel, keepParam(nil))
	}
	g, err := autograd.Differentiate(f, o)
	if err != nil {
		return nil, err
	}
	return specialise(g, fuel, func(s *specialiser, g *ir.Func, i int) {
		if i < len(args) {
			bindParam(s, g, i, args[i])
		} else {
			keepParam(nil)(s, g, i)
		}
	})
}
