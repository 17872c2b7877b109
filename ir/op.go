package ir

import (
	"context"
	"fmt"
	"sort"

	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// Class groups the ops by how they are executed and compiled.
type Class uint8

// The classes of op.
const (
	Elementwise Class = iota // one scalar program applied at every index; operands have equal shape
	Reduce                   // combines the elements along some dims
	View                     // a new view of the operand's memory; computes nothing (reshape copies where strides demand it)
	Move                     // moves elements without changing them: concat, gather, scatter, sort, …
	Contract                 // dot
	Generate                 // makes a tensor from scalars: full, iota, uniform
	Linalg                   // whole-matrix algorithms that run on the host
	Host                     // works on scalars, lists, tuples, dicts and strings, or reads tensors into them
	Generic                  // aten, vjp, grad: expanded once types are known
	Control                  // if, while, for
	Terminator               // yield, return
)

var classNames = [...]string{"elementwise", "reduce", "view", "move", "contract", "generate", "linalg", "host", "generic", "control", "terminator"}

func (c Class) String() string { return classNames[c] }

// Effect says what a pass may do with a node.
type Effect uint8

// Effects, from the freest to the most constrained.
const (
	Pure    Effect = iota // may be dropped, duplicated, hoisted
	MayFail               // may report an error depending on run-time values: never hoisted past its guard, never dropped
	Ordered               // also keeps its order among the ordered ops: print, raise, rng
)

var effectNames = [...]string{"pure", "mayFail", "ordered"}

func (e Effect) String() string { return effectNames[e] }

// Op is one row of the op table: everything there is to know of an op.
type Op struct {
	Name   string
	Doc    string   // one sentence, with shapes
	Params []string // operand names; a last one ending in "..." takes any number
	Class  Class
	Effect Effect

	// Infer is the type rule. It gives the result types, as precise as the operand types allow, and fails on operands that the
	// op rejects. It must accept unknown dtypes, ranks and sizes.
	Infer func(c *Call) ([]Type, error)
	// Eval is the reference evaluation; nil for elementwise ops (Scalar defines them), control flow and generic ops.
	Eval func(c *EvalCall) ([]Datum, error)
	// Scalar is the meaning of an elementwise op for one element; nil otherwise.
	Scalar scalar.Form
	// Grad gives the cotangent of every operand (nil: none) from those of the results (nil: zero). It is written over the
	// builder, so that it can be differentiated again; n's operands and results may be used as values. nil with NoGrad set
	// means that the op has no gradient.
	Grad   func(b *Builder, n *Node, ct []*Value) []*Value
	NoGrad bool
}

// Call is what a type rule sees.
type Call struct {
	Op    *Op
	Args  []Type
	Vals  []*Value // the operands themselves, for constants
	Attrs Attrs
}

// Const is operand i where it is a constant.
func (c *Call) Const(i int) (Datum, bool) {
	if i >= len(c.Vals) {
		return nil, false
	}
	return c.Vals[i].Const()
}

// ConstInts is operand i where it is a constant list of ints; ok is false where it is not constant.
func (c *Call) ConstInts(i int) (v []int, ok bool, err error) {
	d, ok := c.Const(i)
	if !ok {
		return nil, false, nil
	}
	v, err = AsInts(d)
	return v, err == nil, err
}

// EvalCall is what a reference evaluation sees. Its accessors panic on an operand of another kind; EvalNode makes an error of that.
type EvalCall struct {
	Node *Node
	Args []Datum
	Env  *Evaluator
	Ctx  context.Context
}

// Array is operand i as a tensor.
func (c *EvalCall) Array(i int) *Array { return c.Args[i].(*Array) }

// Int is operand i as an int.
func (c *EvalCall) Int(i int) int { return int(c.Args[i].(int64)) }

// Bool is operand i as a bool.
func (c *EvalCall) Bool(i int) bool { return c.Args[i].(bool) }

// Ints is operand i as a list of ints.
func (c *EvalCall) Ints(i int) []int {
	v, err := AsInts(c.Args[i])
	if err != nil {
		panic(operandError{err})
	}
	return v
}

// DType is operand i as a dtype.
func (c *EvalCall) DType(i int) dtype.DType { return c.Args[i].(dtype.DType) }

// one wraps a single result.
func one(d Datum) ([]Datum, error) { return []Datum{d}, nil }

// t1 wraps a single result type.
func t1(t Type) ([]Type, error) { return []Type{t}, nil }

var ops = map[string]*Op{}

// register adds a row; op files call it from package variables or init.
func register(op *Op) *Op {
	if ops[op.Name] != nil {
		panic("BUG: op " + op.Name + " registered twice")
	}
	ops[op.Name] = op
	return op
}

// LookupOp finds a row by name; nil where there is none.
func LookupOp(name string) *Op { return ops[name] }

// Ops lists the table, sorted by name.
func Ops() []*Op {
	out := make([]*Op, 0, len(ops))
	for _, op := range ops {
		out = append(out, op)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

func mustOp(name string) *Op {
	op := ops[name]
	if op == nil {
		panic("BUG: no op " + name)
	}
	return op
}

// Errorf makes an error that names the op and its operand types.
func (c *Call) Errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %s", c.Op.Name, fmt.Sprintf(format, args...))
}
