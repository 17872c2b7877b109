package aten

import "github.com/gtc-project/gtc/ir"

// Single steps of recurrent networks.

func init() {
	def(Torch, "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
		func(b *ir.Builder, a []*ir.Value) []*ir.Value {
			e := em{b}
			hx := listElems(b, a[1])
			if len(hx) != 2 {
				e.Failf("lstm_cell expects two hidden states, got %d", len(hx))
			}
			g := e.gates(e.add(e.linear(a[0], a[2], a[4]), e.linear(hx[0], a[3], a[5])), 4)
			c := e.add(e.mul(e.Op("sigmoid", g[1]), hx[1]), e.mul(e.Op("sigmoid", g[0]), e.Op("tanh", g[2])))
			return []*ir.Value{e.mul(e.Op("sigmoid", g[3]), e.Op("tanh", c)), c}
		})
	def(Torch, "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			x, h := e.gates(e.linear(a[0], a[2], a[4]), 3), e.gates(e.linear(a[1], a[3], a[5]), 3)
			r := e.Op("sigmoid", e.add(x[0], h[0]))
			z := e.Op("sigmoid", e.add(x[1], h[1]))
			n := e.Op("tanh", e.add(x[2], e.mul(r, h[2])))
			return e.add(e.mul(e.sub(a[1], n), z), n)
		}))
	for name, op := range map[string]string{"rnn_tanh_cell": "tanh", "rnn_relu_cell": "relu"} {
		def(Torch, name+"(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
			expand1(func(e em, a []*ir.Value) *ir.Value {
				return e.Op(op, e.add(e.linear(a[0], a[2], a[4]), e.linear(a[1], a[3], a[5])))
			}))
	}
}

// gates cuts the last dim into n equal parts.
func (e em) gates(x *ir.Value, n int) []*ir.Value {
	s := e.NeedShape(x)
	last := len(s) - 1
	if last < 0 {
		e.Failf("expected an input of shape [batch, features] and weights of shape [gates*hidden, features], got a product of shape %v", s)
	}
	if s[last]%n != 0 {
		e.Failf("expected weights for %d gates, but their number of rows, %d, is not divisible by %d", n, s[last], n)
	}
	step := s[last] / n
	out := make([]*ir.Value, n)
	for i := range out {
		out[i] = e.slice(x, last, i*step, (i+1)*step)
	}
	return out
}
