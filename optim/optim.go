package optim

import (
	"fmt"
	"math"

	"github.com/gtc-project/gtc/tensor"
)

// Optimizer changes its parameters by their gradients.
type Optimizer interface {
	// Step updates every parameter that has a gradient.
	Step() error
	// ZeroGrad clears the gradients.
	ZeroGrad()
	// SetLR changes the learning rate.
	SetLR(lr float64)
}

type params []*tensor.Tensor

// ZeroGrad clears the gradients.
func (ps params) ZeroGrad() {
	for _, p := range ps {
		p.ZeroGrad()
	}
}

// SGD holds the settings of stochastic gradient descent.
type SGD struct {
	LR, Momentum, Dampening, WeightDecay float64
	Nesterov                             bool
}

type sgd struct {
	params
	o        SGD
	velocity map[*tensor.Tensor]*tensor.Tensor
}

// NewSGD makes the optimiser of torch.optim.SGD.
func NewSGD(ps []*tensor.Tensor, o SGD) Optimizer {
	return &sgd{params: ps, o: o, velocity: map[*tensor.Tensor]*tensor.Tensor{}}
}

func (s *sgd) SetLR(lr float64) { s.o.LR = lr }

func (s *sgd) Step() error {
	for i, p := range s.params {
		if p.Grad() == nil {
			continue
		}
		w, g := tensor.NoGrad(p), tensor.NoGrad(p.Grad())
		if s.o.WeightDecay != 0 {
			g = g.Add(w.Mul(s.o.WeightDecay))
		}
		if s.o.Momentum != 0 {
			v := s.velocity[p]
			if v == nil {
				v = g.Clone()
				s.velocity[p] = v
			} else {
				v.Mul_(s.o.Momentum)
				v.Add_(g.Mul(1 - s.o.Dampening))
			}
			if s.o.Nesterov {
				g = g.Add(v.Mul(s.o.Momentum))
			} else {
				g = v
			}
		}
		if err := w.Sub_(g.Mul(s.o.LR)).Err(); err != nil {
			return fmt.Errorf("optim.SGD: parameter %d: %w", i, err)
		}
	}
	return nil
}

// AdamW holds the settings of Adam with decoupled weight decay; zero values mean lr 1e-3, betas 0.9 and 0.999, eps 1e-8, weight decay 0.
type AdamW struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64
}

type adamW struct {
	params
	o    AdamW
	step int
	m, v map[*tensor.Tensor]*tensor.Tensor
}

// NewAdamW makes the optimiser of torch.optim.AdamW.
func NewAdamW(ps []*tensor.Tensor, o AdamW) Optimizer {
	for _, d := range []struct {
		p *float64
		v float64
	}{{&o.LR, 1e-3}, {&o.Beta1, 0.9}, {&o.Beta2, 0.999}, {&o.Eps, 1e-8}} {
		if *d.p == 0 {
			*d.p = d.v
		}
	}
	return &adamW{params: ps, o: o, m: map[*tensor.Tensor]*tensor.Tensor{}, v: map[*tensor.Tensor]*tensor.Tensor{}}
}

func (a *adamW) SetLR(lr float64) { a.o.LR = lr }

func (a *adamW) Step() error {
	a.step++
	c1 := 1 - math.Pow(a.o.Beta1, float64(a.step))
	c2 := 1 - math.Pow(a.o.Beta2, float64(a.step))
	for i, p := range a.params {
		if p.Grad() == nil {
			continue
		}
		w, g := tensor.NoGrad(p), tensor.NoGrad(p.Grad())
		if a.m[p] == nil {
			a.m[p], a.v[p] = tensor.ZerosLike(w), tensor.ZerosLike(w)
		}
		m, v := a.m[p], a.v[p]
		if a.o.WeightDecay != 0 {
			w.Mul_(1 - a.o.LR*a.o.WeightDecay)
		}
		m.Mul_(a.o.Beta1)
		m.Add_(g.Mul(1 - a.o.Beta1))
		v.Mul_(a.o.Beta2)
		v.Add_(g.Mul(g).Mul(1 - a.o.Beta2))
		denom := v.Sqrt().Div(math.Sqrt(c2)).Add(a.o.Eps)
		if err := w.Sub_(m.Div(denom).Mul(a.o.LR / c1)).Err(); err != nil {
			return fmt.Errorf("optim.AdamW: parameter %d: %w", i, err)
		}
	}
	return nil
}

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
