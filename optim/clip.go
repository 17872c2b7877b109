package optim

import (
	"fmt"
	"math"

	"github.com/gtc-project/gtc/tensor"
)

// ClipGradNorm scales all gradients so that their common 2-norm is at most maxNorm, and gives the norm before. A norm that is not finite is an error.
func ClipGradNorm(ps []*tensor.Tensor, maxNorm float64) (float64, error) {
	var total float64
	for _, p := range ps {
		if p.Grad() == nil {
			continue
		}
		s, err := tensor.NoGrad(p.Grad()).To(tensor.F64).Square().Sum().Item()
		if err != nil {
			return 0, err
		}
		total += s
	}
	norm := math.Sqrt(total)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return norm, fmt.Errorf("optim.ClipGradNorm: the norm of the gradients is %g", norm)
	}
	if scale := maxNorm / (norm + 1e-6); scale < 1 {
		for _, p := range ps {
			if g := p.Grad(); g != nil {
				if err := tensor.NoGrad(g).Mul_(scale).Err(); err != nil {
					return norm, err
				}
			}
		}
	}
	return norm, nil
}

// ClipGradValue clamps every element of the gradients to [-limit, limit].
func ClipGradValue(ps []*tensor.Tensor, limit float64) error {
	for _, p := range ps {
		if g := p.Grad(); g != nil {
			g = tensor.NoGrad(g)
			if err := g.CopyFrom(tensor.Call("clamp", g, -limit, limit)).Err(); err != nil {
				return fmt.Errorf("optim.ClipGradValue: %w", err)
			}
		}
	}
	return nil
}
