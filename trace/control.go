package trace

import (
	"errors"
	"fmt"
	"maps"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/tensor"
)

// Control flow that a trace records. Outside a trace these functions just run; in one, they record both sides of a branch, or the body of a loop once, and
// the compiled function decides anew at each call. Branches and bodies must not write to tensors in place, and must not read values into Go.

// If runs then where cond (one element) is true and els otherwise, and gives what it gives. Both must give as many tensors, of the same dtypes.
func If(cond *tensor.Tensor, then, els func() []*tensor.Tensor) ([]*tensor.Tensor, error) {
	r := recorderOf(cond)
	take, err := readBool(r, cond)
	if err != nil {
		return nil, err
	}
	if r == nil {
		if take {
			return firstErr(then())
		}
		return firstErr(els())
	}
	var outs [2][]*tensor.Tensor
	blocks := []*ir.Block{{}, {}}
	r.b.Pos = callerPos()
	c := r.b.Op("item_bool", r.tensor(cond))
	for i, f := range []func() []*tensor.Tensor{then, els} {
		if outs[i], err = r.block(blocks[i], f); err != nil {
			return nil, err
		}
	}
	if len(outs[0]) != len(outs[1]) {
		return nil, fmt.Errorf("%s: trace.If: one side gives %d tensors, the other %d", callerPos(), len(outs[0]), len(outs[1]))
	}
	taken := outs[0]
	if !take {
		taken = outs[1]
	}
	n := r.b.Node(ir.OpIf, ir.Attrs{}, blocks, tensorTypes(len(taken)), c)
	return r.results(n, taken, cond), nil
}

// While repeats body while cond gives a tensor with a true element, passing the state along. The state keeps its length and dtypes.
func While(state []*tensor.Tensor, cond func(state []*tensor.Tensor) *tensor.Tensor, body func(state []*tensor.Tensor) []*tensor.Tensor) ([]*tensor.Tensor, error) {
	r := recorderOf(state...)
	cur := state
	if r == nil {
		return runWhile(nil, cur, cond, body)
	}
	r.b.Pos = callerPos()
	init := r.values(state)
	blocks := []*ir.Block{{}, {}}
	proto := r.carried(blocks[0], state)
	if _, err := r.blockValues(blocks[0], func() ([]*ir.Value, error) {
		c := cond(proto)
		if c.Err() != nil {
			return nil, c.Err()
		}
		return []*ir.Value{r.b.Op("item_bool", r.tensor(c))}, nil
	}); err != nil {
		return nil, err
	}
	proto = r.carried(blocks[1], state)
	if _, err := r.block(blocks[1], func() []*tensor.Tensor { return body(proto) }); err != nil {
		return nil, err
	}
	n := r.b.Node(ir.OpWhile, ir.Attrs{}, blocks, tensorTypes(len(state)), init...)
	var final []*tensor.Tensor
	err := r.silently(func() (err error) {
		final, err = runWhile(r, cur, cond, body)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r.results(n, final, state[0]), nil
}

func runWhile(r *recorder, cur []*tensor.Tensor, cond func([]*tensor.Tensor) *tensor.Tensor, body func([]*tensor.Tensor) []*tensor.Tensor) ([]*tensor.Tensor, error) {
	for {
		go_, err := readBool(r, cond(cur))
		if err != nil || !go_ {
			return cur, err
		}
		if cur, err = firstErr(body(cur)); err != nil {
			return nil, err
		}
	}
}

// For repeats body n times, passing the iteration number as an I64 tensor and the state along.
func For(n int, state []*tensor.Tensor, body func(i *tensor.Tensor, state []*tensor.Tensor) []*tensor.Tensor) ([]*tensor.Tensor, error) {
	r := recorderOf(state...)
	run := func() (cur []*tensor.Tensor, err error) {
		cur = state
		for i := 0; i < n && err == nil; i++ {
			cur, err = firstErr(body(tensor.FromArray(ir.Scalar(tensor.I64, int64(i))), cur))
		}
		return cur, err
	}
	if r == nil {
		return run()
	}
	r.b.Pos = callerPos()
	init := append([]*ir.Value{r.b.Int(n)}, r.values(state)...)
	blk := &ir.Block{}
	i := r.b.Func.BlockParam(blk, ir.Int)
	proto := r.carried(blk, state)
	it := tensor.FromArray(ir.Scalar(tensor.I64, int64(0))).With(state[0].Scope())
	if _, err := r.block(blk, func() []*tensor.Tensor {
		r.set(it.Array(), r.b.Op("scalar_tensor", i, r.b.DType(tensor.I64)))
		return body(it, proto)
	}); err != nil {
		return nil, err
	}
	node := r.b.Node(ir.OpFor, ir.Attrs{}, []*ir.Block{blk}, tensorTypes(len(state)), init...)
	var final []*tensor.Tensor
	err := r.silently(func() (err error) { final, err = run(); return err })
	if err != nil {
		return nil, err
	}
	return r.results(node, final, state[0]), nil
}

func recorderOf(ts ...*tensor.Tensor) *recorder {
	for _, t := range ts {
		if r, ok := t.Scope().Tracer().(*recorder); ok {
			return r
		}
	}
	return nil
}

// readBool reads a condition without a guard.
func readBool(r *recorder, t *tensor.Tensor) (bool, error) {
	if r == nil {
		return t.Bool()
	}
	old := r.peek
	r.peek = true
	defer func() { r.peek = old }()
	return t.Bool()
}

func firstErr(ts []*tensor.Tensor) ([]*tensor.Tensor, error) {
	for _, t := range ts {
		if t.Err() != nil {
			return nil, t.Err()
		}
	}
	return ts, nil
}

func tensorTypes(n int) []ir.Type {
	ts := make([]ir.Type, n)
	for i := range ts {
		ts[i] = ir.AnyTensor
	}
	return ts
}

func (r *recorder) values(ts []*tensor.Tensor) []*ir.Value {
	out := make([]*ir.Value, len(ts))
	for i, t := range ts {
		out[i] = r.tensor(t)
	}
	return out
}

// carried gives fresh handles for a block's parameters, with the values of state.
func (r *recorder) carried(blk *ir.Block, state []*tensor.Tensor) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(state))
	for i, t := range state {
		a := t.Array().Copy()
		out[i] = tensor.FromArray(a).With(t.Scope())
		r.set(a, r.b.Func.BlockParam(blk, ir.AnyTensor))
	}
	return out
}

// block records what f does into blk, ended by a yield of what it gives.
func (r *recorder) block(blk *ir.Block, f func() []*tensor.Tensor) ([]*tensor.Tensor, error) {
	var outs []*tensor.Tensor
	_, err := r.blockValues(blk, func() ([]*ir.Value, error) {
		var err error
		if outs, err = firstErr(f()); err != nil {
			return nil, err
		}
		return r.values(outs), nil
	})
	return outs, err
}

var errInBlock = errors.New("a value is read into Go, or a tensor written in place, inside trace.If, While or For: return it instead")

func (r *recorder) blockValues(blk *ir.Block, f func() ([]*ir.Value, error)) ([]*ir.Value, error) {
	outer, guards := r.b.Block, len(r.guards)
	vals, calls, constants := maps.Clone(r.vals), maps.Clone(r.calls), maps.Clone(r.constants)
	writes := r.writes
	r.b.Block = blk
	vs, err := f()
	if err == nil {
		r.b.Yield(vs...)
	}
	for a, v := range r.vals {
		if v.v.Def == nil && r.isParam(v.v) {
			vals[a] = v // captured inside: still known outside
		}
	}
	r.b.Block, r.vals, r.calls, r.constants = outer, vals, calls, constants
	if err == nil && (len(r.guards) != guards || r.writes != writes) {
		err = fmt.Errorf("%s: %w", callerPos(), errInBlock)
	}
	return vs, err
}

func (r *recorder) isParam(v *ir.Value) bool {
	for _, p := range r.b.Func.Body.Params {
		if p == v {
			return true
		}
	}
	return false
}

// silently runs f without recording what it does.
func (r *recorder) silently(f func() error) error {
	outer, vals, calls, constants := r.b.Block, maps.Clone(r.vals), maps.Clone(r.calls), maps.Clone(r.constants)
	caps, params, names := r.caps, r.b.Func.Body.Params, r.b.Func.ParamNames
	r.b.Block = &ir.Block{}
	err := f()
	r.b.Block, r.vals, r.calls, r.constants, r.caps = outer, vals, calls, constants, caps
	r.b.Func.Body.Params, r.b.Func.ParamNames = params, names
	return err
}

// results binds the values that a control-flow node gives to handles of their own.
func (r *recorder) results(n *ir.Node, ts []*tensor.Tensor, like *tensor.Tensor) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(ts))
	for i, t := range ts {
		out[i] = tensor.FromArray(t.Array().Copy()).With(like.Scope())
		r.set(out[i].Array(), n.Results[i])
	}
	return out
}
