package ir

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Func is a function of the IR: an ordered SSA body with nested blocks. It owns its nodes and values.
//
// Invariants (the verifier checks them): every value is defined before it is used, in the same block or an enclosing one; the
// last node of the body is a return, the last node of every nested block is a yield; no other node is a terminator.
type Func struct {
	Name       string
	Body       *Block
	ParamNames []string // one per Body.Params
	nextID     int
	dropPlan   atomic.Pointer[dropPlan] // see drops
	prepared   sync.Map                 // see Prepared
}

// Prepared gives what prepare makes of f for owner, once; it lives as long as f, which must not be changed afterwards.
func (f *Func) Prepared(owner any, prepare func() any) any {
	v, ok := f.prepared.Load(owner)
	if !ok {
		v, _ = f.prepared.LoadOrStore(owner, sync.OnceValue(prepare))
	}
	return v.(func() any)()
}

// Block is a list of nodes with parameters.
type Block struct {
	Params []*Value
	Nodes  []*Node
}

// Node applies an op. Its operands may be values of its own block or of enclosing ones.
type Node struct {
	Op      *Op
	Args    []*Value
	Results []*Value
	Blocks  []*Block // of if, while, for, fused
	Attrs   Attrs
	Pos     Pos
}

// Attrs holds what a few ops need besides operands.
type Attrs struct {
	Value  Datum  // const: the literal
	Callee string // aten, vjp: the function's name; fused: the kernel's name
	Order  int    // vjp: how many times the function was differentiated, 1 or more
	Count  int    // vjp: how many results it has; grad: how many of its operands are outputs
}

// Value is defined once, by a node (Def, Index) or as a block parameter (Def == nil).
type Value struct {
	ID    int // dense within its Func
	Type  Type
	Def   *Node
	Index int
	Name  string // a hint for printing; may be empty
}

// Pos is a place in a source file.
type Pos struct {
	File      string
	Line, Col int
}

// IsZero reports whether nothing is known of the place.
func (p Pos) IsZero() bool { return p.Line == 0 }

func (p Pos) String() string {
	if p.IsZero() {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// NewFunc makes an empty function.
func NewFunc(name string) *Func { return &Func{Name: name, Body: &Block{}} }

// NewValue makes a value that belongs to f.
func (f *Func) NewValue(t Type) *Value {
	v := &Value{ID: f.nextID, Type: t}
	f.nextID++
	return v
}

// NumValues bounds the ids of f's values: side tables are slices of this length.
func (f *Func) NumValues() int { return f.nextID }

// Param adds a parameter to the function.
func (f *Func) Param(name string, t Type) *Value {
	v := f.BlockParam(f.Body, t)
	v.Name = name
	f.ParamNames = append(f.ParamNames, name)
	return v
}

// BlockParam adds a parameter to a block.
func (f *Func) BlockParam(b *Block, t Type) *Value {
	v := f.NewValue(t)
	b.Params = append(b.Params, v)
	return v
}

// NewNode makes a node that is in no block yet; one result per type.
func (f *Func) NewNode(op *Op, args []*Value, results []Type, pos Pos) *Node {
	n := &Node{Op: op, Args: args, Pos: pos}
	for i, t := range results {
		v := f.NewValue(t)
		v.Def, v.Index = n, i
		n.Results = append(n.Results, v)
	}
	return n
}

// Terminator is the block's last node, or nil while the block is being built.
func (b *Block) Terminator() *Node {
	if n := len(b.Nodes); n > 0 && b.Nodes[n-1].Op.Class == Terminator {
		return b.Nodes[n-1]
	}
	return nil
}

// Returns are the values that the function returns.
func (f *Func) Returns() []*Value { return f.Body.Terminator().Args }

// ResultTypes are the types of what the function returns.
func (f *Func) ResultTypes() []Type {
	var ts []Type
	for _, v := range f.Returns() {
		ts = append(ts, v.Type)
	}
	return ts
}

// Const gives the literal that v is, where v is a const node's result or a list or tuple of such.
func (v *Value) Const() (Datum, bool) {
	if v == nil || v.Def == nil {
		return nil, false
	}
	switch v.Def.Op {
	case OpConst:
		return v.Def.Attrs.Value, true
	case OpList, OpTuple:
		elems := make([]Datum, len(v.Def.Args))
		for i, a := range v.Def.Args {
			d, ok := a.Const()
			if !ok {
				return nil, false
			}
			elems[i] = d
		}
		if v.Def.Op == OpList {
			return NewList(elems...), true
		}
		return Tuple(elems), true
	}
	return nil, false
}

// Walk calls f for every node of the block and of the blocks nested in it, in program order; the node before its blocks.
func (b *Block) Walk(f func(*Node)) {
	for _, n := range b.Nodes {
		f(n)
		for _, nb := range n.Blocks {
			nb.Walk(f)
		}
	}
}

// Replace makes every use of a key of subst use its value instead (chains are followed).
func (f *Func) Replace(subst map[*Value]*Value) {
	if len(subst) == 0 {
		return
	}
	f.Body.Walk(func(n *Node) {
		for i, a := range n.Args {
			for r, ok := subst[a]; ok; r, ok = subst[a] {
				a = r
			}
			n.Args[i] = a
		}
	})
}

// Captures lists the values that the blocks use but do not define, in order of first use.
func Captures(blocks ...*Block) []*Value {
	defined := map[*Value]bool{}
	seen := map[*Value]bool{}
	var out []*Value
	var visit func(b *Block)
	visit = func(b *Block) {
		for _, p := range b.Params {
			defined[p] = true
		}
		for _, n := range b.Nodes {
			for _, a := range n.Args {
				if !defined[a] && !seen[a] {
					seen[a] = true
					out = append(out, a)
				}
			}
			for _, nb := range n.Blocks {
				visit(nb)
			}
			for _, r := range n.Results {
				defined[r] = true
			}
		}
	}
	for _, b := range blocks {
		visit(b)
	}
	return out
}

// Cloner copies nodes into a function, mapping values as it goes. Values that are not in Map are used as they are.
type Cloner struct {
	To  *Func
	Map map[*Value]*Value
}

// NewCloner makes a Cloner into f with an empty map.
func NewCloner(f *Func) *Cloner { return &Cloner{To: f, Map: map[*Value]*Value{}} }

// Val is what v has become.
func (c *Cloner) Val(v *Value) *Value {
	if w, ok := c.Map[v]; ok {
		return w
	}
	return v
}

// Vals maps a slice.
func (c *Cloner) Vals(vs []*Value) []*Value {
	out := make([]*Value, len(vs))
	for i, v := range vs {
		out[i] = c.Val(v)
	}
	return out
}

// Node copies one node with its blocks; the copy is in no block yet.
func (c *Cloner) Node(n *Node) *Node {
	types := make([]Type, len(n.Results))
	for i, r := range n.Results {
		types[i] = r.Type
	}
	m := c.To.NewNode(n.Op, c.Vals(n.Args), types, n.Pos)
	m.Attrs = n.Attrs
	for _, b := range n.Blocks {
		m.Blocks = append(m.Blocks, c.Block(b))
	}
	for i, r := range n.Results {
		m.Results[i].Name = r.Name
		c.Map[r] = m.Results[i]
	}
	return m
}

// Block copies a block with its parameters.
func (c *Cloner) Block(b *Block) *Block {
	nb := &Block{}
	for _, p := range b.Params {
		q := c.To.BlockParam(nb, p.Type)
		q.Name = p.Name
		c.Map[p] = q
	}
	for _, n := range b.Nodes {
		nb.Nodes = append(nb.Nodes, c.Node(n))
	}
	return nb
}

// Clone copies the whole function.
func (f *Func) Clone() *Func {
	g := &Func{Name: f.Name, ParamNames: append([]string{}, f.ParamNames...)}
	c := NewCloner(g)
	g.Body = c.Block(f.Body)
	return g
}

// Inline copies the body of g to the end of the builder's block with args for its parameters, and gives what g returns.
func (b *Builder) Inline(g *Func, args []*Value) []*Value {
	if len(args) != len(g.Body.Params) {
		panic(fmt.Sprintf("BUG: inlining %s with %d arguments for %d parameters", g.Name, len(args), len(g.Body.Params)))
	}
	c := NewCloner(b.Func)
	for i, p := range g.Body.Params {
		c.Map[p] = args[i]
	}
	nodes := g.Body.Nodes
	for _, n := range nodes[:len(nodes)-1] {
		m := c.Node(n)
		if m.Pos.IsZero() {
			m.Pos = b.Pos
		}
		b.Block.Nodes = append(b.Block.Nodes, m)
	}
	return c.Vals(g.Returns())
}
