package optim

import (
	"errors"
	"fmt"

	"github.com/gtc-project/gtc/tensor"
)

// Optimizer changes its parameters by their gradients.
type Optimizer interface {
	// Step updates every parameter that has a gradient.
	Step() error
	// ZeroGrad clears the gradients.
	ZeroGrad()
	// LR is the learning rate of the first group.
	LR() float64
	// SetLR changes the learning rate of all groups.
	SetLR(lr float64)
	// Groups gives the parameter groups, whose learning rates and weight decays may be changed between steps.
	Groups() []*Group
	// State gives what the optimiser remembers, by "INDEX.NAME" over the parameters of all groups, for a file beside the model's; the tensors share memory with it.
	State() map[string]*tensor.Tensor
	// LoadState takes over what State gave.
	LoadState(state map[string]*tensor.Tensor) error
}

// Group is a set of parameters with settings of their own.
type Group struct {
	Params      []*tensor.Tensor
	LR          float64
	WeightDecay float64
	Maximize    bool // follow the gradient upwards
}

// rule is an optimiser's update of one parameter. g is its gradient, negated where the group maximises; s what is remembered about it.
type rule interface {
	update(w, g *tensor.Tensor, s *state, group *Group) error
}

// optimizer applies a rule to groups of parameters.
type optimizer struct {
	name   string
	rule   rule
	groups []*Group
	states map[*tensor.Tensor]*state
}

func newOptimizer(name string, r rule, groups ...*Group) *optimizer {
	return &optimizer{name: name, rule: r, groups: groups, states: map[*tensor.Tensor]*state{}}
}

// WithGroup adds parameters with their own learning rate and weight decay to an optimiser.
func WithGroup(o Optimizer, g Group) Optimizer {
	opt := o.(*optimizer)
	opt.groups = append(opt.groups, &g)
	return o
}

func (o *optimizer) Groups() []*Group { return o.groups }
func (o *optimizer) LR() float64      { return o.groups[0].LR }

func (o *optimizer) SetLR(lr float64) {
	for _, g := range o.groups {
		g.LR = lr
	}
}

func (o *optimizer) ZeroGrad() {
	for _, g := range o.groups {
		for _, p := range g.Params {
			p.ZeroGrad()
		}
	}
}

func (o *optimizer) Step() error {
	i := 0
	for _, group := range o.groups {
		for _, p := range group.Params {
			if grad := p.Grad(); grad != nil {
				g := tensor.NoGrad(grad)
				if group.Maximize {
					g = g.Neg()
				}
				s := o.state(p)
				s.step++
				if err := errors.Join(o.rule.update(tensor.NoGrad(p), g, s, group), s.err); err != nil {
					return fmt.Errorf("optim.%s: parameter %d: %w", o.name, i, err)
				}
			}
			i++
		}
	}
	return nil
}

func (o *optimizer) state(p *tensor.Tensor) *state {
	s := o.states[p]
	if s == nil {
		s = &state{tensors: map[string]*tensor.Tensor{}, numbers: map[string]float64{}}
		o.states[p] = s
	}
	return s
}

// state is what a rule remembers about one parameter.
type state struct {
	step    int
	tensors map[string]*tensor.Tensor
	numbers map[string]float64
	err     error
}

// like is the tensor of a name; at first it has the shape of w and every element is v.
func (s *state) like(name string, w *tensor.Tensor, v float64) *tensor.Tensor {
	t := s.tensors[name]
	if t == nil {
		t = tensor.NoGrad(tensor.Full(w.DType(), v, w.Shape()...))
		s.tensors[name] = t
	}
	return t
}

// number is the number of a name, v at first.
func (s *state) number(name string, v float64) float64 {
	if x, ok := s.numbers[name]; ok {
		return x
	}
	s.numbers[name] = v
	return v
}

const stepKey = "step"

func (o *optimizer) State() map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	o.each(func(i int, p *tensor.Tensor) {
		s := o.states[p]
		if s == nil {
			return
		}
		out[fmt.Sprintf("%d.%s", i, stepKey)] = tensor.Full(tensor.F64, float64(s.step))
		for name, t := range s.tensors {
			out[fmt.Sprintf("%d.%s", i, name)] = t
		}
		for name, v := range s.numbers {
			out[fmt.Sprintf("%d.#%s", i, name)] = tensor.Full(tensor.F64, v)
		}
	})
	return out
}

func (o *optimizer) LoadState(values map[string]*tensor.Tensor) error {
	states := map[*tensor.Tensor]*state{}
	var params []*tensor.Tensor
	o.each(func(_ int, p *tensor.Tensor) { params = append(params, p) })
	for key, t := range values {
		var i int
		var name string
		if _, err := fmt.Sscanf(key, "%d.%s", &i, &name); err != nil || i < 0 || i >= len(params) {
			return fmt.Errorf("optim.%s: the state has an entry %q, which belongs to none of the %d parameters", o.name, key, len(params))
		}
		p := params[i]
		s := states[p]
		if s == nil {
			s = &state{tensors: map[string]*tensor.Tensor{}, numbers: map[string]float64{}}
			states[p] = s
		}
		if name != stepKey && name[0] != '#' {
			if fmt.Sprint(t.Shape()) != fmt.Sprint(p.Shape()) {
				return fmt.Errorf("optim.%s: %s has shape %v, the parameter %v", o.name, key, t.Shape(), p.Shape())
			}
			s.tensors[name] = tensor.NoGrad(t.Detach().Clone())
			continue
		}
		v, err := t.Item()
		if err != nil {
			return fmt.Errorf("optim.%s: %s: %w", o.name, key, err)
		}
		if name == stepKey {
			s.step = int(v)
		} else {
			s.numbers[name[1:]] = v
		}
	}
	o.states = states
	return nil
}

func (o *optimizer) each(visit func(i int, p *tensor.Tensor)) {
	i := 0
	for _, g := range o.groups {
		for _, p := range g.Params {
			visit(i, p)
			i++
		}
	}
}
