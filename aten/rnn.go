package aten

import (
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Recurrent networks, and single steps of them.

func init() {
	recurrent()
	def(Torch, "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
		func(b *ir.Builder, a []*ir.Value) []*ir.Value {
			e := em{b}
			hx := listElems(b, a[1])
			if len(hx) != 2 {
				e.Failf("lstm_cell expects two hidden states, got %d", len(hx))
			}
			return cells["lstm"].step(e, e.linear(a[0], a[2], a[4]), e.linear(hx[0], a[3], a[5]), hx)
		})
	def(Torch, "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
		expand1(func(e em, a []*ir.Value) *ir.Value {
			return cells["gru"].step(e, e.linear(a[0], a[2], a[4]), e.linear(a[1], a[3], a[5]), a[1:2])[0]
		}))
	for _, name := range []string{"rnn_tanh", "rnn_relu"} {
		def(Torch, name+"_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
			expand1(func(e em, a []*ir.Value) *ir.Value {
				return cells[name].step(e, e.linear(a[0], a[2], a[4]), e.linear(a[1], a[3], a[5]), a[1:2])[0]
			}))
	}
}

// cell is one kind of recurrent step: its number of gates, and the next states from the gates of the input and of the hidden state
// (already summed where the kind only needs their sum) and the states before.
type cell struct {
	gates, states int
	step          func(e em, x, h *ir.Value, states []*ir.Value) []*ir.Value
}

var cells = map[string]cell{
	"lstm": {4, 2, func(e em, x, h *ir.Value, states []*ir.Value) []*ir.Value {
		g := e.gates(e.add(x, h), 4)
		c := e.add(e.mul(e.Op("sigmoid", g[1]), states[1]), e.mul(e.Op("sigmoid", g[0]), e.Op("tanh", g[2])))
		return []*ir.Value{e.mul(e.Op("sigmoid", g[3]), e.Op("tanh", c)), c}
	}},
	"gru": {3, 1, func(e em, x, h *ir.Value, states []*ir.Value) []*ir.Value {
		gx, gh := e.gates(x, 3), e.gates(h, 3)
		r, z := e.Op("sigmoid", e.add(gx[0], gh[0])), e.Op("sigmoid", e.add(gx[1], gh[1]))
		n := e.Op("tanh", e.add(gx[2], e.mul(r, gh[2])))
		return []*ir.Value{e.add(e.mul(e.sub(states[0], n), z), n)}
	}},
	"rnn_tanh": {1, 1, func(e em, x, h *ir.Value, _ []*ir.Value) []*ir.Value { return []*ir.Value{e.Op("tanh", e.add(x, h))} }},
	"rnn_relu": {1, 1, func(e em, x, h *ir.Value, _ []*ir.Value) []*ir.Value { return []*ir.Value{e.Op("relu", e.add(x, h))} }},
}

// recurrent declares the functions for whole sequences. The one for packed sequences is not among them: its batch sizes are data.
func recurrent() {
	for _, name := range []string{"gru", "lstm", "rnn_relu", "rnn_tanh"} {
		hx, results := "Tensor hx", "(Tensor, Tensor)"
		if cells[name].states == 2 {
			hx, results = "Tensor[] hx", "(Tensor, Tensor, Tensor)"
		}
		def(Torch, name+".input(Tensor input, "+hx+", Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> "+results,
			func(b *ir.Builder, a []*ir.Value) []*ir.Value {
				n := network{em: em{b}, name: name, cell: cells[name], params: listElems(b, a[2]), biases: constBool(b, a[3]), layers: constInt(b, a[4]),
					drop: constFloat(b, a[5]), train: constBool(b, a[6]), directions: 1, batchFirst: constBool(b, a[8]), key: a[9]}
				if constBool(b, a[7]) {
					n.directions = 2
				}
				hx := []*ir.Value{a[1]}
				if n.cell.states == 2 {
					hx = listElems(b, a[1])
				}
				return n.run(a[0], hx)
			}, isRandom)
	}
}

// network is a call of a recurrent network.
type network struct {
	em
	name                      string
	cell                      cell
	params                    []*ir.Value // w_ih, w_hh and with biases b_ih, b_hh of every direction of every layer
	biases, train, batchFirst bool
	layers, directions        int
	drop                      float64
	key                       *ir.Value
}

// run gives the outputs of all steps and the last states; x is [T, N, features] or [N, T, features], a state [layers*directions, N, hidden].
func (n *network) run(x *ir.Value, hx []*ir.Value) []*ir.Value {
	n.check(x, hx)
	if n.batchFirst {
		x = n.permute(x, 1, 0, 2)
	}
	last := make([][]*ir.Value, n.cell.states)
	masks := n.masks(n.NeedShape(x), n.NeedShape(hx[0]))
	for l := range n.layers {
		var outs []*ir.Value
		for d := range n.directions {
			out, states := n.layer(x, hx, l*n.directions+d, d == 1)
			outs = append(outs, out)
			for i, s := range states {
				last[i] = append(last[i], n.insert(s, 0))
			}
		}
		x = concat(n.Builder, 2, outs...)
		if masks != nil && l+1 < n.layers {
			x = n.mul(x, n.reshape(n.slice(masks, 0, l, l+1), n.NeedShape(x)...))
		}
	}
	if n.batchFirst {
		x = n.permute(x, 1, 0, 2)
	}
	results := []*ir.Value{x}
	for _, s := range last {
		results = append(results, concat(n.Builder, 0, s...))
	}
	return results
}

// check stops where the operands do not fit each other.
func (n *network) check(x *ir.Value, hx []*ir.Value) {
	n.needFloat(n.name, x)
	per := 2
	if n.biases {
		per = 4
	}
	if want := per * n.layers * n.directions; n.layers < 1 || len(n.params) != want {
		n.Failf("%s: got an incorrect number of RNN parameters: expected %d for %d layers and %d directions, got %d", n.name, want, n.layers, n.directions, len(n.params))
	}
	if len(hx) != n.cell.states {
		n.Failf("%s expects %d hidden states, got %d", n.name, n.cell.states, len(hx))
	}
	s := n.NeedShape(x)
	if len(s) != 3 {
		n.Failf("%s: input must have 3 dimensions, got shape %v", n.name, s)
	}
	w := n.NeedShape(n.params[0])
	if len(w) != 2 || s[2] != w[1] || w[0]%n.cell.gates != 0 {
		n.Failf("%s: input.size(-1) must be equal to input_size: got an input of shape %v and weights of shape %v", n.name, s, w)
	}
	batch := s[1]
	if n.batchFirst {
		batch = s[0]
	}
	want := []int{n.layers * n.directions, batch, w[0] / n.cell.gates}
	for _, h := range hx {
		if got := n.NeedShape(h); !sameInts(got, want) {
			n.Failf("%s: Expected hidden size %v, got %v", n.name, want, got)
		}
	}
}

// masks are the dropout masks behind all layers but the last, [layers-1, T, N, directions*hidden]; nil where nothing is dropped.
func (n *network) masks(x, h []int) *ir.Value {
	if !n.train || n.drop == 0 || n.layers < 2 {
		return nil
	}
	if !(n.drop > 0 && n.drop <= 1) {
		n.Failf("%s: dropout probability has to be between 0 and 1, but got %g", n.name, n.drop)
	}
	shape := []int{n.layers - 1, x[0], x[1], n.directions * h[2]}
	if n.drop == 1 {
		return n.zeros(n.NeedDType(n.params[0]), shape...)
	}
	kept := cast(n.Builder, n.lt(n.uniform(dtype.F32, shape, n.key), n.Float(1-n.drop)), n.NeedDType(n.params[0]))
	return n.mulF(kept, 1/(1-n.drop))
}

// layer runs one direction of one layer over x [T, N, features]; k numbers it.
func (n *network) layer(x *ir.Value, hx []*ir.Value, k int, backwards bool) (out *ir.Value, states []*ir.Value) {
	none := n.None()
	wx, wh, bx, bh := n.params[2*k], n.params[2*k+1], none, none
	if n.biases {
		p := n.params[4*k:]
		wx, wh, bx, bh = p[0], p[1], p[2], p[3]
	}
	for _, h := range hx {
		states = append(states, selectAt(n.Builder, h, 0, k))
	}
	fromInput := n.linear(x, wx, bx)
	steps := n.NeedShape(x)[0]
	if steps == 0 {
		n.Failf("%s: Expected sequence length to be larger than 0 in RNN", n.name)
	}
	outs := make([]*ir.Value, steps)
	for i := range steps {
		t := i
		if backwards {
			t = steps - 1 - i
		}
		states = n.cell.step(n.em, selectAt(n.Builder, fromInput, 0, t), n.linear(states[0], wh, bh), states)
		outs[t] = n.insert(states[0], 0)
	}
	return concat(n.Builder, 0, outs...), states
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
