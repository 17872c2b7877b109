package ir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// Evaluator is the reference evaluator: plain Go, any platform, the oracle for everything that compiles. It runs any function,
// generic or specialised. The zero value runs functions without generic nodes.
//
// An Evaluator is for one goroutine at a time.
type Evaluator struct {
	// Resolve expands a generic call (aten, or vjp with order > 0) for actual operands into a function whose parameters are the
	// operands and whose results are those of the node. Package passes provides it.
	Resolve func(n *Node, args []Datum) (*Func, error)
	// Kernel, where set, is asked first for every node that is neither control flow nor a host op; ok is false where it leaves the
	// node to the reference evaluation.
	Kernel func(ctx context.Context, n *Node, args []Datum) (results []Datum, ok bool, err error)
	// Out receives what print nodes write; nil means os.Stdout.
	Out io.Writer
	// RNG is the random stream that rng nodes draw from.
	RNG RNG

	steps int
}

// RNG is the state of the random stream: each draw is named by a key made of the seed and its number.
type RNG struct {
	Seed  uint64
	Draws uint64
}

// Next gives the key of the next draw.
func (r *RNG) Next() int64 {
	r.Draws++
	// splitmix64 of seed and draw number: neighbouring seeds and draws give unrelated keys
	z := r.Seed*0x9e3779b97f4a7c15 + r.Draws*0xbf58476d1ce4e5b9
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int64(z ^ z>>31)
}

// Error is a failure while running, with the place in the source and the op that reported it.
type Error struct {
	Pos Pos
	Op  string
	Err error
}

func (e *Error) Error() string {
	s := e.Err.Error()
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	if !e.Pos.IsZero() {
		s = e.Pos.String() + ": " + s
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Run evaluates f on the given arguments, one per parameter.
func (ev *Evaluator) Run(ctx context.Context, f *Func, args ...Datum) ([]Datum, error) {
	if err := f.CheckArgs(args); err != nil {
		return nil, err
	}
	return ev.RunExpansion(ctx, f, args)
}

// CheckArgs reports arguments that f cannot take: too many or too few, or one that is not of its parameter's type.
func (f *Func) CheckArgs(args []Datum) error {
	if len(args) != len(f.Body.Params) {
		return fmt.Errorf("%s takes %d arguments, got %d", f.Name, len(f.Body.Params), len(args))
	}
	for i, p := range f.Body.Params {
		if !accepts(p.Type, args[i]) {
			return fmt.Errorf("%s: argument %s is %s, expected %s", f.Name, f.ParamNames[i], TypeOf(args[i]), p.Type)
		}
	}
	return nil
}

// accepts reports whether d may be passed for type t; an empty list fits every list type.
func accepts(t Type, d Datum) bool {
	switch t.Kind {
	case KAny:
		return true
	case KOptional:
		return d == nil || accepts(t.Elems[0], d)
	case KList:
		l, ok := d.(List)
		if !ok {
			return false
		}
		for _, e := range l.Elems() {
			if !accepts(t.Elems[0], e) {
				return false
			}
		}
		return true
	case KTuple:
		tu, ok := d.(Tuple)
		if !ok || len(tu) != len(t.Elems) {
			return false
		}
		for i, e := range tu {
			if !accepts(t.Elems[i], e) {
				return false
			}
		}
		return true
	case KDict:
		_, ok := d.(*Dict)
		return ok
	case KTensor:
		a, ok := d.(*Array)
		if !ok || t.DType != 0 && t.DType != a.DType {
			return false
		}
		if !t.Ranked {
			return true
		}
		if len(t.Dims) != len(a.Shape) {
			return false
		}
		for i, dim := range t.Dims {
			if dim.Known() && dim.N != a.Shape[i] {
				return false
			}
		}
		return true
	}
	return t.Accepts(TypeOf(d))
}

type frame struct {
	ev    *Evaluator
	ctx   context.Context
	vals  []Datum
	drops map[*Node][]*Value // values that nothing reads after a node; nil: not worth it
}

func (fr *frame) set(vs []*Value, ds []Datum) {
	for i, v := range vs {
		fr.vals[v.ID] = ds[i]
	}
}

// drop forgets values.
func (fr *frame) drop(vs []*Value) {
	for _, v := range vs {
		fr.vals[v.ID] = nil
	}
}

// Buffer is memory that arrays share (Array.Owner) and that is used again once nobody holds it. The reference evaluator does not count;
// package runtime does.
type Buffer interface {
	Retain()
	// Release takes one holder away and gives the memory back when it was the last.
	Release()
}

// Release gives the memory of results back for reuse, where it came from a reused arena: nobody may read them, or what shares memory with
// them, afterwards. Without it the memory is reused once the garbage collector has found the arrays unreachable.
func Release(ds ...Datum) {
	for _, d := range ds {
		if a, ok := d.(*Array); ok {
			if b, ok := a.Owner.(Buffer); ok {
				b.Release()
			}
		}
	}
}

func (fr *frame) get(vs []*Value) []Datum {
	out := make([]Datum, len(vs))
	for i, v := range vs {
		out[i] = fr.vals[v.ID]
	}
	return out
}

// block runs the nodes and gives the operands of the terminator.
func (fr *frame) block(b *Block) ([]Datum, error) {
	for _, n := range b.Nodes {
		if n.Op.Class == Terminator {
			return fr.get(n.Args), nil
		}
		if fr.ev.steps++; fr.ev.steps&1023 == 0 {
			if err := fr.ctx.Err(); err != nil {
				return nil, err
			}
		}
		rs, err := fr.node(n)
		if err != nil {
			return nil, ErrorAt(n, err)
		}
		fr.set(n.Results, rs)
		if fr.drops != nil {
			fr.drop(fr.drops[n])
		}
	}
	panic("BUG: block without a terminator")
}

// ErrorAt is err as an error of n: an Error that says where n stands and what it is, unless err already does. It is nil for nil.
func ErrorAt(n *Node, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		if e.Pos.IsZero() && !n.Pos.IsZero() {
			return &Error{Pos: n.Pos, Op: e.Op, Err: e.Err}
		}
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	name := n.Op.Name
	if n.Op.Class == Generic {
		name = n.Attrs.Callee
	}
	return &Error{Pos: n.Pos, Op: name, Err: err}
}

func (fr *frame) node(n *Node) ([]Datum, error) {
	switch n.Op {
	case OpConst:
		return []Datum{n.Attrs.Value}, nil
	case OpIf:
		cond, ok := fr.vals[n.Args[0].ID].(bool)
		if !ok {
			return nil, fmt.Errorf("condition is %s, expected a bool", TypeOf(fr.vals[n.Args[0].ID]))
		}
		if cond {
			return fr.block(n.Blocks[0])
		}
		return fr.block(n.Blocks[1])
	case OpWhile:
		return fr.while(n)
	case OpFor:
		return fr.loop(n)
	}
	args := fr.get(n.Args)
	if n.Op != OpFused || fr.ev.Kernel != nil {
		if rs, ok, err := fr.kernel(n, args); ok || err != nil {
			return rs, err
		}
	}
	switch n.Op {
	case OpFused:
		fr.set(n.Blocks[0].Params, args)
		return fr.block(n.Blocks[0])
	case OpAten, OpVjp:
		return fr.generic(n, args)
	}
	return fr.ev.EvalNode(fr.ctx, n, args)
}

// EvalNode is the reference evaluation of a single node that is neither control flow nor to be expanded.
func (ev *Evaluator) EvalNode(ctx context.Context, n *Node, args []Datum) (out []Datum, err error) {
	if err := checkOpen(n, args); err != nil {
		return nil, err
	}
	defer func() { // host ops take operands apart without asking, as type rules say little of lists and numbers
		switch e := recover().(type) {
		case nil:
		case operandError:
			err = e
		case *runtime.TypeAssertionError:
			err = wrongKind(n, args)
		case runtime.Error:
			if !strings.Contains(e.Error(), "unhashable") { // a key of a dict
				panic(e)
			}
			err = wrongKind(n, args)
		default:
			panic(e)
		}
	}()
	switch {
	case n.Op == OpGrad:
		return nil, errors.New("torch.autograd.grad was not expanded: the outputs do not depend on the inputs within one block")
	case n.Op.Class == Elementwise:
		return evalElementwise(n, args)
	}
	return n.Op.Eval(&EvalCall{Node: n, Args: args, Env: ev, Ctx: ctx})
}

// checkOpen puts what arrived for operands of open types, any and tensors of unknown dtype or rank, to the op's type rule: only here are their types known.
// Operands of other types were checked when the function was verified. Host ops check their operands themselves: a list that happens to hold ints may take
// something else.
func checkOpen(n *Node, args []Datum) error {
	open := false
	for _, a := range n.Args {
		open = open || isOpen(a.Type)
	}
	if !open || n.Op.Class == Host || n.Op.Infer == nil {
		return nil
	}
	types := make([]Type, len(args))
	vals := append([]*Value{}, n.Args...)
	for i, d := range args {
		types[i] = n.Args[i].Type
		if isOpen(types[i]) {
			types[i] = TypeOf(d)
			vals[i] = &Value{Type: types[i], Def: &Node{Op: OpConst, Attrs: Attrs{Value: d}}}
		}
	}
	_, err := n.Op.Infer(&Call{Op: n.Op, Args: types, Vals: vals, Attrs: n.Attrs})
	return err
}

func isOpen(t Type) bool {
	return t.Kind == KAny || t.Kind == KTensor && (t.DType == 0 || !t.Ranked) || t.Kind == KList && t.Elems[0].Kind == KAny
}

// operandError is what an operand accessor of EvalCall panics with.
type operandError struct{ error }

func wrongKind(n *Node, args []Datum) error {
	types := make([]string, len(args))
	for i, a := range args {
		types[i] = TypeOf(a).String()
	}
	return fmt.Errorf("it cannot take operands of types (%s); it takes (%s)", strings.Join(types, ", "), strings.Join(n.Op.Params, ", "))
}

func (fr *frame) kernel(n *Node, args []Datum) ([]Datum, bool, error) {
	if fr.ev.Kernel == nil || n.Op.Class == Host {
		return nil, false, nil
	}
	return fr.ev.Kernel(fr.ctx, n, args)
}

func (fr *frame) while(n *Node) ([]Datum, error) {
	cur := fr.get(n.Args)
	for {
		fr.set(n.Blocks[0].Params, cur)
		c, err := fr.block(n.Blocks[0])
		if err != nil {
			return nil, err
		}
		if !c[0].(bool) {
			return cur, nil
		}
		fr.set(n.Blocks[1].Params, cur)
		if cur, err = fr.block(n.Blocks[1]); err != nil {
			return nil, err
		}
		if err := fr.ctx.Err(); err != nil {
			return nil, err
		}
	}
}

func (fr *frame) loop(n *Node) ([]Datum, error) {
	vals := fr.get(n.Args)
	trip, cur := vals[0].(int64), vals[1:]
	params := n.Blocks[0].Params
	for i := int64(0); i < trip; i++ {
		fr.vals[params[0].ID] = i
		fr.set(params[1:], cur)
		var err error
		if cur, err = fr.block(n.Blocks[0]); err != nil {
			return nil, err
		}
		if err := fr.ctx.Err(); err != nil {
			return nil, err
		}
	}
	return cur, nil
}

// generic expands the call for the actual operands and runs the expansion in a frame of its own.
func (fr *frame) generic(n *Node, args []Datum) ([]Datum, error) {
	if fr.ev.Resolve == nil {
		return nil, fmt.Errorf("%s has no expansion here: the evaluator was made without the function library", n.Attrs.Callee)
	}
	f, err := fr.ev.Resolve(n, args)
	if err != nil {
		return nil, err
	}
	return fr.ev.RunExpansion(fr.ctx, f, args)
}

func (ev *Evaluator) out() io.Writer {
	if ev.Out != nil {
		return ev.Out
	}
	return os.Stdout
}

// RunExpansion evaluates what Resolve gave for a call on the same operands.
func (ev *Evaluator) RunExpansion(ctx context.Context, f *Func, args []Datum) ([]Datum, error) {
	fr := &frame{ev: ev, ctx: ctx, vals: make([]Datum, f.NumValues()), drops: f.drops()}
	fr.set(f.Body.Params, args)
	return fr.block(f.Body)
}

// minDrops is the number of values from which on a function's dead values are dropped early.
const minDrops = 64

// drops gives, per node, the values of its block that no later node of the block reads. It is computed at the first run and kept while the function
// does not grow.
func (f *Func) drops() map[*Node][]*Value {
	if f.nextID < minDrops {
		return nil
	}
	if p := f.dropPlan.Load(); p != nil && p.values == f.nextID {
		return p.after
	}
	p := &dropPlan{values: f.nextID, after: map[*Node][]*Value{}}
	p.block(f.Body)
	f.dropPlan.Store(p)
	return p.after
}

type dropPlan struct {
	values int
	after  map[*Node][]*Value
}

func (p *dropPlan) block(b *Block) {
	here := map[*Value]bool{} // defined in b and not read by a later node
	for _, v := range b.Params {
		here[v] = true
	}
	for _, n := range b.Nodes {
		for _, r := range n.Results {
			here[r] = true
		}
	}
	for i := len(b.Nodes) - 1; i >= 0; i-- {
		n := b.Nodes[i]
		last := func(v *Value) {
			if here[v] {
				delete(here, v)
				if n.Op.Class != Terminator {
					p.after[n] = append(p.after[n], v)
				}
			}
		}
		for _, v := range n.Args {
			last(v)
		}
		if len(n.Blocks) > 0 {
			for _, v := range Captures(n.Blocks...) {
				last(v)
			}
			for _, nb := range n.Blocks {
				p.block(nb)
			}
		}
		for _, r := range n.Results {
			last(r)
		}
	}
}
