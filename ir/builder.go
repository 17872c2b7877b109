package ir

import (
	"errors"
	"fmt"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Builder appends nodes to a block of a function, inferring their types. A type error stops the construction: the builder
// panics with a value that Try turns into an error, so that code which builds need not check every step. Always build inside Try.
type Builder struct {
	Func  *Func
	Block *Block
	Pos   Pos
}

type buildError struct{ err error }

// NewBuilder builds at the end of f's body.
func NewBuilder(f *Func) *Builder { return &Builder{Func: f, Block: f.Body} }

// ErrNeedsTypes is what construction fails with where it depends on a dtype, rank or size that is not known yet. It is not the
// user's mistake: the node stays generic and is expanded at run time.
var ErrNeedsTypes = errors.New("operand types are not known yet")

// Try runs code that builds and gives the error that stopped it, if any.
func Try(build func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			be, ok := r.(buildError)
			if !ok {
				panic(r)
			}
			err = be.err
		}
	}()
	build()
	return nil
}

// Fail stops the construction with an error.
func (b *Builder) Fail(err error) { panic(buildError{err}) }

// Failf stops the construction with a message for the user: what, which shapes or dtypes, and what would be right.
func (b *Builder) Failf(format string, args ...any) { b.Fail(fmt.Errorf(format, args...)) }

// Node appends a node and gives it.
func (b *Builder) Node(op *Op, attrs Attrs, blocks []*Block, results []Type, args ...*Value) *Node {
	n := b.Func.NewNode(op, append([]*Value{}, args...), results, b.Pos)
	n.Attrs, n.Blocks = attrs, blocks
	b.Block.Nodes = append(b.Block.Nodes, n)
	return n
}

// Emit appends a node of an op that infers its own result types, and gives its results.
func (b *Builder) Emit(name string, args ...*Value) []*Value {
	op := mustOp(name)
	return b.EmitOp(op, Attrs{}, args...)
}

// EmitOp is Emit with attributes.
func (b *Builder) EmitOp(op *Op, attrs Attrs, args ...*Value) []*Value {
	types := make([]Type, len(args))
	for i, a := range args {
		if a == nil {
			panic(fmt.Sprintf("BUG: operand %d of %s is nil", i, op.Name))
		}
		types[i] = a.Type
	}
	results, err := op.Infer(&Call{Op: op, Args: types, Vals: args, Attrs: attrs})
	if err != nil {
		b.Fail(err)
	}
	return b.Node(op, attrs, nil, results, args...).Results
}

// Op appends a node with one result.
func (b *Builder) Op(name string, args ...*Value) *Value { return b.Emit(name, args...)[0] }

// Const appends a literal.
func (b *Builder) Const(d Datum) *Value {
	if l, ok := d.(List); ok {
		d = l.Frozen()
	}
	return b.Node(OpConst, Attrs{Value: d}, nil, []Type{TypeOf(d)}).Results[0]
}

// Int, Float, Bool, Str, DType, None and Ints append literals.
func (b *Builder) Int(i int) *Value             { return b.Const(int64(i)) }
func (b *Builder) Float(f float64) *Value       { return b.Const(f) }
func (b *Builder) Bool(v bool) *Value           { return b.Const(v) }
func (b *Builder) Str(s string) *Value          { return b.Const(s) }
func (b *Builder) DType(d dtype.DType) *Value   { return b.Const(d) }
func (b *Builder) None() *Value                 { return b.Const(nil) }
func (b *Builder) Ints(v ...int) *Value         { return b.Const(Ints(v...)) }
func (b *Builder) List(elems ...*Value) *Value  { return b.EmitOp(OpList, Attrs{}, elems...)[0] }
func (b *Builder) Tuple(elems ...*Value) *Value { return b.EmitOp(OpTuple, Attrs{}, elems...)[0] }
func (b *Builder) Return(vals ...*Value)        { b.Node(OpReturn, Attrs{}, nil, nil, vals...) }
func (b *Builder) Yield(vals ...*Value)         { b.Node(OpYield, Attrs{}, nil, nil, vals...) }

// Aten appends a call of an aten function, generic until its types are known; results are its result types as far as known.
func (b *Builder) Aten(name string, results []Type, args ...*Value) []*Value {
	return b.Node(OpAten, Attrs{Callee: name}, nil, results, args...).Results
}

// Vjp appends the gradient of an aten function: args are the function's operands, then the cotangents of its results (None
// for zero); the results are the gradients of all order-1 operands (None for operands that have none). See OpVjp.
func (b *Builder) Vjp(callee string, order int, results []Type, args ...*Value) []*Value {
	return b.Node(OpVjp, Attrs{Callee: callee, Order: order, Count: len(results)}, nil, results, args...).Results
}

// In runs build with the builder at the end of another block.
func (b *Builder) In(blk *Block, build func()) {
	old := b.Block
	b.Block = blk
	build()
	b.Block = old
}

// If appends an if node. Both functions build a branch and give what it yields.
func (b *Builder) If(cond *Value, then, els func() []*Value) []*Value {
	blocks := []*Block{{}, {}}
	var yields [2][]*Value
	for i, f := range []func() []*Value{then, els} {
		b.In(blocks[i], func() {
			yields[i] = f()
			b.Yield(yields[i]...)
		})
	}
	types := make([]Type, len(yields[0]))
	for i := range types {
		types[i] = yields[0][i].Type.Join(yields[1][i].Type)
	}
	return b.Node(OpIf, Attrs{}, blocks, types, cond).Results
}

// For appends a for node that runs body trip times: body gets the iteration number 0, 1, … and the carried values, and gives the
// next carried values. carried types are joined with what the body yields; the body is built once, on the joined types given by
// types (nil: those of init).
func (b *Builder) For(trip *Value, init []*Value, types []Type, body func(i *Value, carried []*Value) []*Value) []*Value {
	if types == nil {
		types = valueTypes(init)
	}
	blk := &Block{}
	i := b.Func.BlockParam(blk, Int)
	for _, t := range types {
		b.Func.BlockParam(blk, t)
	}
	b.In(blk, func() { b.Yield(body(i, blk.Params[1:])...) })
	return b.Node(OpFor, Attrs{}, []*Block{blk}, types, append([]*Value{trip}, init...)...).Results
}

// While appends a while node: cond gives a bool from the carried values, body the next carried values.
func (b *Builder) While(init []*Value, types []Type, cond func(carried []*Value) *Value, body func(carried []*Value) []*Value) []*Value {
	if types == nil {
		types = valueTypes(init)
	}
	blocks := []*Block{{}, {}}
	for _, blk := range blocks {
		for _, t := range types {
			b.Func.BlockParam(blk, t)
		}
	}
	b.In(blocks[0], func() { b.Yield(cond(blocks[0].Params)) })
	b.In(blocks[1], func() { b.Yield(body(blocks[1].Params)...) })
	return b.Node(OpWhile, Attrs{}, blocks, types, init...).Results
}

func valueTypes(vs []*Value) []Type {
	out := make([]Type, len(vs))
	for i, v := range vs {
		out[i] = v.Type
	}
	return out
}

// NeedDType is the dtype of v; it stops with ErrNeedsTypes where that is not known.
func (b *Builder) NeedDType(v *Value) dtype.DType {
	if v.Type.DType == dtype.Invalid {
		b.Fail(ErrNeedsTypes)
	}
	return v.Type.DType
}

// NeedRank is the rank of v; it stops with ErrNeedsTypes where that is not known.
func (b *Builder) NeedRank(v *Value) int {
	if !v.Type.Ranked {
		b.Fail(ErrNeedsTypes)
	}
	return len(v.Type.Dims)
}

// NeedShape is the shape of v as numbers; it stops with ErrNeedsTypes where a size is not known.
func (b *Builder) NeedShape(v *Value) []int {
	b.NeedRank(v)
	s := v.Type.Shape()
	for _, n := range s {
		if n < 0 {
			b.Fail(ErrNeedsTypes)
		}
	}
	return s
}

// NeedConst is the literal that v is; it stops with ErrNeedsTypes where v is not constant.
func (b *Builder) NeedConst(v *Value) Datum {
	d, ok := v.Const()
	if !ok {
		b.Fail(ErrNeedsTypes)
	}
	return d
}
