//go:build !nollvm

package runtime

import (
	"context"

	"github.com/gtc-project/gtc/ir"
)

func (k *cpuKernels) reduce(context.Context, *ir.Node, []ir.Datum) ([]ir.Datum, bool, error) {
	return nil, false, nil
}

func (k *cpuKernels) dot(context.Context, []ir.Datum) ([]ir.Datum, bool, error) {
	return nil, false, nil
}
