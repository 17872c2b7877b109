//go:build nollvm

package runtime

import "errors"

func newCPU(Options) (kernels, error) {
	return nil, errors.New("this gtc was built with -tags nollvm: only the reference evaluator is available")
}
