package optim

import (
	"math"

	"github.com/gtc-project/gtc/tensor"
)

// or gives v, or d where v is zero: settings that are left out take PyTorch's defaults.
func or(v, d float64) float64 {
	if v == 0 {
		return d
	}
	return v
}

func group(ps []*tensor.Tensor, lr, decay float64, maximize bool) *Group {
	return &Group{Params: ps, LR: lr, WeightDecay: decay, Maximize: maximize}
}

// decayed adds the gradient of an L2 penalty.
func decayed(w, g *tensor.Tensor, group *Group) *tensor.Tensor {
	if group.WeightDecay == 0 {
		return g
	}
	return g.Add(w.Mul(group.WeightDecay))
}

// average moves m towards g: m = b·m + (1-b)·g.
func average(m, g *tensor.Tensor, b float64) *tensor.Tensor {
	m.Mul_(b)
	return m.Add_(g.Mul(1 - b))
}

// SGD holds the settings of stochastic gradient descent.
type SGD struct {
	LR, Momentum, Dampening, WeightDecay float64
	Nesterov, Maximize                   bool
}

// NewSGD makes the optimiser of torch.optim.SGD.
func NewSGD(ps []*tensor.Tensor, o SGD) Optimizer {
	return newOptimizer("SGD", o, group(ps, o.LR, o.WeightDecay, o.Maximize))
}

func (o SGD) update(w, g *tensor.Tensor, s *state, group *Group) error {
	g = decayed(w, g, group)
	if o.Momentum != 0 {
		v := s.tensors["momentum_buffer"]
		if v == nil {
			v = g.Clone()
			s.tensors["momentum_buffer"] = v
		} else {
			v.Mul_(o.Momentum)
			v.Add_(g.Mul(1 - o.Dampening))
		}
		if o.Nesterov {
			g = g.Add(v.Mul(o.Momentum))
		} else {
			g = v
		}
	}
	return w.Sub_(g.Mul(group.LR)).Err()
}

// Adam holds the settings of Adam; zero values mean lr 1e-3, betas 0.9 and 0.999, eps 1e-8, weight decay 0.
type Adam struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64
	AMSGrad, Maximize                  bool
}

// AdamW holds the settings of Adam with decoupled weight decay; zero values mean what they mean in Adam.
type AdamW Adam

func (o Adam) defaults() Adam {
	o.LR, o.Beta1, o.Beta2, o.Eps = or(o.LR, 1e-3), or(o.Beta1, 0.9), or(o.Beta2, 0.999), or(o.Eps, 1e-8)
	return o
}

// NewAdam makes the optimiser of torch.optim.Adam.
func NewAdam(ps []*tensor.Tensor, o Adam) Optimizer {
	o = o.defaults()
	return newOptimizer("Adam", o, group(ps, o.LR, o.WeightDecay, o.Maximize))
}

// NewAdamW makes the optimiser of torch.optim.AdamW, whose weight decay is 0.01 there and 0 here where it is left out.
func NewAdamW(ps []*tensor.Tensor, o AdamW) Optimizer {
	o = AdamW(Adam(o).defaults())
	return newOptimizer("AdamW", o, group(ps, o.LR, o.WeightDecay, o.Maximize))
}

func (o Adam) update(w, g *tensor.Tensor, s *state, group *Group) error {
	return o.move(w, decayed(w, g, group), s, group)
}

func (o AdamW) update(w, g *tensor.Tensor, s *state, group *Group) error {
	if group.WeightDecay != 0 {
		w.Mul_(1 - group.LR*group.WeightDecay)
	}
	return Adam(o).move(w, g, s, group)
}

func (o Adam) move(w, g *tensor.Tensor, s *state, group *Group) error {
	m, v := average(s.like("exp_avg", w, 0), g, o.Beta1), average(s.like("exp_avg_sq", w, 0), g.Mul(g), o.Beta2)
	if o.AMSGrad {
		most := s.like("max_exp_avg_sq", w, 0)
		v = most.CopyFrom(tensor.Call("maximum", most, v))
	}
	c1, c2 := 1-math.Pow(o.Beta1, float64(s.step)), 1-math.Pow(o.Beta2, float64(s.step))
	denom := v.Sqrt().Div(math.Sqrt(c2)).Add(o.Eps)
	return w.Sub_(m.Div(denom).Mul(group.LR / c1)).Err()
}

// RMSprop holds the settings of RMSprop; zero values mean lr 0.01, alpha 0.99, eps 1e-8.
type RMSprop struct {
	LR, Alpha, Eps, WeightDecay, Momentum float64
	Centered, Maximize                    bool
}

// NewRMSprop makes the optimiser of torch.optim.RMSprop.
func NewRMSprop(ps []*tensor.Tensor, o RMSprop) Optimizer {
	o.LR, o.Alpha, o.Eps = or(o.LR, 0.01), or(o.Alpha, 0.99), or(o.Eps, 1e-8)
	return newOptimizer("RMSprop", o, group(ps, o.LR, o.WeightDecay, o.Maximize))
}

func (o RMSprop) update(w, g *tensor.Tensor, s *state, group *Group) error {
	g = decayed(w, g, group)
	v := average(s.like("square_avg", w, 0), g.Mul(g), o.Alpha)
	if o.Centered {
		m := average(s.like("grad_avg", w, 0), g, o.Alpha)
		v = v.Sub(m.Mul(m))
	}
	step := g.Div(v.Sqrt().Add(o.Eps))
	if o.Momentum > 0 {
		b := s.like("momentum_buffer", w, 0)
		b.Mul_(o.Momentum)
		step = b.Add_(step)
	}
	return w.Sub_(step.Mul(group.LR)).Err()
}

// Adagrad holds the settings of Adagrad; zero values mean lr 0.01 and eps 1e-10.
type Adagrad struct {
	LR, LRDecay, WeightDecay, InitialAccumulator, Eps float64
	Maximize                                          bool
}

// NewAdagrad makes the optimiser of torch.optim.Adagrad.
func NewAdagrad(ps []*tensor.Tensor, o Adagrad) Optimizer {
	o.LR, o.Eps = or(o.LR, 0.01), or(o.Eps, 1e-10)
	return newOptimizer("Adagrad", o, group(ps, o.LR, o.WeightDecay, o.Maximize))
}

func (o Adagrad) update(w, g *tensor.Tensor, s *state, group *Group) error {
	g = decayed(w, g, group)
	sum := s.like("sum", w, o.InitialAccumulator).Add_(g.Mul(g))
	return w.Sub_(g.Div(sum.Sqrt().Add(o.Eps)).Mul(group.LR / (1 + float64(s.step-1)*o.LRDecay))).Err()
}

// Adadelta holds the settings of Adadelta; zero values mean lr 1, rho 0.9, eps 1e-6.
type Adadelta struct {
	LR, Rho, Eps, WeightDecay float64
	Maximize                  bool
}

// NewAdadelta makes the optimiser of torch.optim.Adadelta.
func NewAdadelta(ps []*tensor.Tensor, o Adadelta) Optimizer {
	o.LR, o.Rho, o.Eps = or(o.LR, 1), or(o.Rho, 0.9), or(o.Eps, 1e-6)
	return newOptimizer("Adadelta", o, group(ps, o.LR, o.WeightDecay, o.Maximize))
}

func (o Adadelta) update(w, g *tensor.Tensor, s *state, group *Group) error {
	g = decayed(w, g, group)
	v := average(s.like("square_avg", w, 0), g.Mul(g), o.Rho)
	acc := s.like("acc_delta", w, 0)
	delta := acc.Add(o.Eps).Sqrt().Div(v.Add(o.Eps).Sqrt()).Mul(g)
	average(acc, delta.Mul(delta), o.Rho)
	return w.Sub_(delta.Mul(group.LR)).Err()
}

// Adamax holds the settings of Adamax; zero values mean lr 2e-3, betas 0.9 and 0.999, eps 1e-8.
type Adamax struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64
	Maximize                           bool
}

// NewAdamax makes the optimiser of torch.optim.Adamax.
func NewAdamax(ps []*tensor.Tensor, o Adamax) Optimizer {
	o.LR, o.Beta1, o.Beta2, o.Eps = or(o.LR, 2e-3), or(o.Beta1, 0.9), or(o.Beta2, 0.999), or(o.Eps, 1e-8)
	return newOptimizer("Adamax", o, group(ps, o.LR, o.WeightDecay, o.Maximize))
}

func (o Adamax) update(w, g *tensor.Tensor, s *state, group *Group) error {
	g = decayed(w, g, group)
	m := average(s.like("exp_avg", w, 0), g, o.Beta1)
	u := s.like("exp_inf", w, 0)
	u.CopyFrom(tensor.Call("maximum", u.Mul(o.Beta2), g.Abs().Add(o.Eps)))
	return w.Sub_(m.Div(u).Mul(group.LR / (1 - math.Pow(o.Beta1, float64(s.step))))).Err()
}

// NAdam holds the settings of NAdam; zero values mean lr 2e-3, betas 0.9 and 0.999, eps 1e-8, momentum decay 4e-3.
type NAdam struct{ LR, Beta1, Beta2, Eps, WeightDecay, MomentumDecay float64 }

// NewNAdam makes the optimiser of torch.optim.NAdam.
func NewNAdam(ps []*tensor.Tensor, o NAdam) Optimizer {
	o.LR, o.Beta1, o.Beta2, o.Eps, o.MomentumDecay = or(o.LR, 2e-3), or(o.Beta1, 0.9), or(o.Beta2, 0.999), or(o.Eps, 1e-8), or(o.MomentumDecay, 4e-3)
	return newOptimizer("NAdam", o, group(ps, o.LR, o.WeightDecay, false))
}

func (o NAdam) update(w, g *tensor.Tensor, s *state, group *Group) error {
	g = decayed(w, g, group)
	t := float64(s.step)
	mu := o.Beta1 * (1 - 0.5*math.Pow(0.96, t*o.MomentumDecay))
	next := o.Beta1 * (1 - 0.5*math.Pow(0.96, (t+1)*o.MomentumDecay))
	product := s.number("mu_product", 1) * mu
	s.numbers["mu_product"] = product
	m, v := average(s.like("exp_avg", w, 0), g, o.Beta1), average(s.like("exp_avg_sq", w, 0), g.Mul(g), o.Beta2)
	denom := v.Div(1 - math.Pow(o.Beta2, t)).Sqrt().Add(o.Eps)
	w.Sub_(g.Div(denom).Mul(group.LR * (1 - mu) / (1 - product)))
	return w.Sub_(m.Div(denom).Mul(group.LR * next / (1 - product*next))).Err()
}

// RAdam holds the settings of RAdam; zero values mean lr 1e-3, betas 0.9 and 0.999, eps 1e-8.
type RAdam struct{ LR, Beta1, Beta2, Eps, WeightDecay float64 }

// NewRAdam makes the optimiser of torch.optim.RAdam.
func NewRAdam(ps []*tensor.Tensor, o RAdam) Optimizer {
	o = RAdam{or(o.LR, 1e-3), or(o.Beta1, 0.9), or(o.Beta2, 0.999), or(o.Eps, 1e-8), o.WeightDecay}
	return newOptimizer("RAdam", o, group(ps, o.LR, o.WeightDecay, false))
}

func (o RAdam) update(w, g *tensor.Tensor, s *state, group *Group) error {
	g = decayed(w, g, group)
	t := float64(s.step)
	c1, c2 := 1-math.Pow(o.Beta1, t), 1-math.Pow(o.Beta2, t)
	m, v := average(s.like("exp_avg", w, 0), g, o.Beta1), average(s.like("exp_avg_sq", w, 0), g.Mul(g), o.Beta2)
	limit := 2/(1-o.Beta2) - 1
	rho := limit - 2*t*math.Pow(o.Beta2, t)/c2
	step := m.Mul(group.LR / c1)
	if rho > 5 {
		r := math.Sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho))
		step = step.Mul(r * math.Sqrt(c2)).Div(v.Sqrt().Add(o.Eps))
	}
	return w.Sub_(step).Err()
}

// Rprop holds the settings of resilient backpropagation; zero values mean lr 0.01, etas 0.5 and 1.2, step sizes from 1e-6 to 50.
type Rprop struct{ LR, EtaMinus, EtaPlus, StepMin, StepMax float64 }

// NewRprop makes the optimiser of torch.optim.Rprop.
func NewRprop(ps []*tensor.Tensor, o Rprop) Optimizer {
	o = Rprop{or(o.LR, 0.01), or(o.EtaMinus, 0.5), or(o.EtaPlus, 1.2), or(o.StepMin, 1e-6), or(o.StepMax, 50)}
	return newOptimizer("Rprop", o, group(ps, o.LR, 0, false))
}

func (o Rprop) update(w, g *tensor.Tensor, s *state, group *Group) error {
	prev, size := s.like("prev", w, 0), s.like("step_size", w, group.LR)
	sign := tensor.Call("sign", g.Mul(prev))
	factor := tensor.Call("where", sign.Gt(0), o.EtaPlus, tensor.Call("where", sign.Lt(0), o.EtaMinus, tensor.Call("ones_like", w)))
	size.CopyFrom(tensor.Call("clamp", size.Mul(factor), o.StepMin, o.StepMax))
	g = tensor.Call("where", sign.Lt(0), tensor.ZerosLike(g), g)
	prev.CopyFrom(g)
	return w.Sub_(tensor.Call("sign", g).Mul(size)).Err()
}

// ASGD holds the settings of averaged stochastic gradient descent; zero values mean lr 0.01, lambda 1e-4, alpha 0.75, t0 1e6.
type ASGD struct{ LR, Lambda, Alpha, T0, WeightDecay float64 }

// NewASGD makes the optimiser of torch.optim.ASGD; the averages are the entries "INDEX.ax" of its state.
func NewASGD(ps []*tensor.Tensor, o ASGD) Optimizer {
	o.LR, o.Lambda, o.Alpha, o.T0 = or(o.LR, 0.01), or(o.Lambda, 1e-4), or(o.Alpha, 0.75), or(o.T0, 1e6)
	return newOptimizer("ASGD", o, group(ps, o.LR, o.WeightDecay, false))
}

func (o ASGD) update(w, g *tensor.Tensor, s *state, group *Group) error {
	g = decayed(w, g, group)
	eta, mu, ax := s.number("eta", group.LR), s.number("mu", 1), s.like("ax", w, 0)
	w.Mul_(1 - o.Lambda*eta)
	w.Sub_(g.Mul(eta))
	if mu == 1 {
		ax.CopyFrom(w)
	} else {
		ax.Add_(w.Sub(ax).Mul(mu))
	}
	t := float64(s.step)
	s.numbers["eta"] = group.LR / math.Pow(1+o.Lambda*group.LR*t, o.Alpha)
	s.numbers["mu"] = 1 / math.Max(1, t-o.T0)
	return w.Err()
}
