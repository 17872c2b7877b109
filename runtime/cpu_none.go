//go:build nollvm

package runtime

import (
	"context"
	"errors"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
)

var errNoLLVM = errors.New("this gtc was built with -tags nollvm: only the reference evaluator is available")

func newCPU(Options, *passes.Resolver) (eager, whole runner, err error) {
	return nil, nil, errNoLLVM
}

// Emit needs LLVM.
func Emit(context.Context, *ir.Func, string, string) ([]byte, error) { return nil, errNoLLVM }
