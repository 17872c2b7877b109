package ir

import (
	"fmt"
	"strings"
)

// Rule is a constraint on functions; README.md lists them by number.
type Rule int

// The constraints that Verify checks.
const (
	RuleParams     Rule = iota + 1 // 1: one distinct name per parameter
	RuleValues                     // 2: every value is defined once, has an id of its own, and knows its definition
	RuleScope                      // 3: operands are defined before, in the same block or an enclosing one
	RuleTerminator                 // 4: the body ends with return, nested blocks with yield, and nothing else is a terminator
	RuleOperands                   // 5: the number of operands is that of the op's parameters
	RuleTypes                      // 6: result types agree with the op's type rule
	RuleBlocks                     // 7: control flow has its blocks, with matching parameters and yields
	RuleFused                      // 8: fused blocks hold no control flow, generic calls or ordered effects
	RuleAttrs                      // 9: attributes are present where the op needs them
)

// Violation is one broken constraint.
type Violation struct {
	Func string
	Rule Rule
	Node *Node  // nil where the function itself is at fault
	Text string // how the node reads
	Msg  string
}

func (v *Violation) Error() string {
	s := "func @" + v.Func
	if v.Text != "" {
		s += ": " + v.Text
	}
	if v.Node != nil && !v.Node.Pos.IsZero() {
		s = v.Node.Pos.String() + ": " + s
	}
	return fmt.Sprintf("%s: %s (constraint %d)", s, v.Msg, v.Rule)
}

// Verify checks a function against all constraints and gives every violation, in program order.
func Verify(f *Func) []error {
	v := &verifier{f: f, defined: make([]*Value, f.NumValues()), visible: make([]bool, f.NumValues())}
	v.function()
	return v.errs
}

// maxViolations bounds what Verify reports of one function.
const maxViolations = 100

type verifier struct {
	f       *Func
	defined []*Value // by id
	visible []bool   // by id: defined in the current block or an enclosing one
	errs    []error
	names   *namer
}

func (v *verifier) report(rule Rule, n *Node, format string, args ...any) {
	if len(v.errs) >= maxViolations {
		return
	}
	e := &Violation{Func: v.f.Name, Rule: rule, Node: n, Msg: fmt.Sprintf(format, args...)}
	if n != nil {
		e.Text = v.describe(n)
	}
	v.errs = append(v.errs, e)
}

// name is how a value is printed.
func (v *verifier) name(x *Value) string {
	if v.names == nil { // only broken functions pay for names
		p := &printer{namer: newNamer()}
		p.nameAll(v.f)
		v.names = p.namer
	}
	return v.names.use(x)
}

func (v *verifier) describe(n *Node) string {
	var args []string
	for i, a := range n.Args {
		if i == 8 {
			args = append(args, "…")
			break
		}
		args = append(args, shorten(v.name(a)))
	}
	s := n.head() + "(" + strings.Join(args, ", ") + ")"
	if len(n.Results) > 0 {
		s = v.name(n.Results[0]) + " = " + s
	}
	return s
}

// nameAll names all values in the order of the text.
func (p *printer) nameAll(f *Func) {
	var block func(b *Block)
	block = func(b *Block) {
		for i, x := range b.Params {
			hint := x.Name
			if b == f.Body && i < len(f.ParamNames) {
				hint = f.ParamNames[i]
			}
			p.define(x, hint)
		}
		for _, n := range b.Nodes {
			if n.Op == OpConst {
				continue
			}
			for _, r := range n.Results {
				p.define(r, r.Name)
			}
			for _, nb := range n.Blocks {
				block(nb)
			}
		}
	}
	block(f.Body)
}

func (v *verifier) function() {
	if len(v.f.ParamNames) != len(v.f.Body.Params) {
		v.report(RuleParams, nil, "expected %d parameter names, got %d", len(v.f.Body.Params), len(v.f.ParamNames))
	}
	seen := map[string]bool{}
	for _, name := range v.f.ParamNames {
		if name != "" && seen[name] {
			v.report(RuleParams, nil, "two parameters are named %q", name)
		}
		seen[name] = true
	}
	v.block(v.f.Body, OpReturn, nil)
}

// define notes the definition of a value.
func (v *verifier) define(x *Value, def *Node, index int) {
	switch {
	case x == nil:
		v.report(RuleValues, def, "result or parameter %d is missing", index)
		return
	case x.ID < 0 || x.ID >= len(v.defined):
		v.report(RuleValues, def, "value id %d is out of range: the function has %d values", x.ID, len(v.defined))
		return
	case v.defined[x.ID] == x:
		v.report(RuleValues, def, "%s is defined twice", v.name(x))
	case v.defined[x.ID] != nil:
		v.report(RuleValues, def, "%s has the id %d of another value", v.name(x), x.ID)
	case x.Def != def || def != nil && x.Index != index:
		v.report(RuleValues, def, "%s does not know its definition", v.name(x))
	}
	v.defined[x.ID] = x
	v.visible[x.ID] = true
}

func (v *verifier) uses(n *Node) (ok bool) {
	ok = true
	for i, a := range n.Args {
		switch {
		case a == nil:
			v.report(RuleScope, n, "operand %d is missing", i)
			ok = false
		case a.ID < 0 || a.ID >= len(v.defined) || v.defined[a.ID] != a:
			v.report(RuleScope, n, "operand %d, %s, is not defined before its use", i, v.name(a))
			ok = false
		case !v.visible[a.ID]:
			v.report(RuleScope, n, "operand %d, %s, is defined in a block that does not enclose its use", i, v.name(a))
			ok = false
		}
	}
	return ok
}

// block checks b, which belongs to owner (nil for the body) and must end with a terminator of op end.
func (v *verifier) block(b *Block, end *Op, owner *Node) {
	for i, x := range b.Params {
		v.define(x, nil, i)
	}
	for i, n := range b.Nodes {
		last := i == len(b.Nodes)-1
		ok := v.uses(n)
		switch {
		case last && n.Op != end:
			v.report(RuleTerminator, n, "expected the block to end with %s", end.Name)
		case !last && n.Op.Class == Terminator:
			v.report(RuleTerminator, n, "%s is not the last node of its block", n.Op.Name)
		}
		v.node(n, ok)
		for k, r := range n.Results {
			v.define(r, n, k)
		}
	}
	if len(b.Nodes) == 0 {
		v.report(RuleTerminator, owner, "expected the block to end with %s, but it is empty", end.Name)
	}
	for _, x := range b.Params {
		v.hide(x)
	}
	for _, n := range b.Nodes {
		for _, r := range n.Results {
			v.hide(r)
		}
	}
}

func (v *verifier) hide(x *Value) {
	if x != nil && x.ID >= 0 && x.ID < len(v.visible) {
		v.visible[x.ID] = false
	}
}

// node checks one node; its operands are usable if ok.
func (v *verifier) node(n *Node, ok bool) {
	v.attrs(n)
	for _, b := range n.Blocks {
		v.block(b, OpYield, n)
	}
	if !ok {
		return
	}
	if !v.operands(n) {
		return
	}
	switch {
	case n.Op == OpIf || n.Op == OpWhile || n.Op == OpFor || n.Op == OpFused:
		v.control(n)
	case len(n.Blocks) > 0:
		v.report(RuleBlocks, n, "%s takes no blocks", n.Op.Name)
	case n.Op.Infer != nil:
		v.types(n)
	}
}

func (v *verifier) operands(n *Node) bool {
	if err := checkArity(n); err != nil {
		v.report(RuleOperands, n, "%v", err)
		return false
	}
	return true
}

// checkArity checks the number of operands, on which type rules rely.
func checkArity(n *Node) error {
	params := n.Op.Params
	if k := len(params); k > 0 && strings.HasSuffix(params[k-1], "...") {
		if len(n.Args) < k-1 {
			return fmt.Errorf("expected at least %d operands, got %d", k-1, len(n.Args))
		}
		return nil
	}
	if len(n.Args) != len(params) {
		return fmt.Errorf("expected %d operands (%s), got %d", len(params), strings.Join(params, ", "), len(n.Args))
	}
	return nil
}

func (v *verifier) types(n *Node) {
	types, err := n.Op.Infer(&Call{Op: n.Op, Args: valueTypes(n.Args), Vals: n.Args, Attrs: n.Attrs})
	if err != nil {
		v.report(RuleTypes, n, "%v", err)
		return
	}
	if len(types) != len(n.Results) {
		v.report(RuleTypes, n, "expected %d results, got %d", len(types), len(n.Results))
		return
	}
	for i, r := range n.Results {
		if !compatible(r.Type, types[i]) {
			v.report(RuleTypes, n, "result %d is of type %s, expected %s", i, r.Type, types[i])
		}
	}
}

// compatible reports whether some value may be of both types.
func compatible(t, u Type) bool {
	switch {
	case t.Kind == KAny || u.Kind == KAny:
		return true
	case t.Kind == KOptional && u.Kind == KOptional:
		return true // None
	case t.Kind == KOptional:
		return u.Kind == KNone || compatible(t.Elems[0], u)
	case u.Kind == KOptional:
		return compatible(u, t)
	case t.Kind != u.Kind:
		return false
	case t.Kind == KTensor:
		return (t.DType == u.DType || t.DType == 0 || u.DType == 0) && (!t.Ranked || !u.Ranked || shapesFit(t.Dims, u.Dims))
	case t.Kind == KList || t.Kind == KDict:
		return true // both may be empty
	case len(t.Elems) != len(u.Elems):
		return false
	}
	for i := range t.Elems {
		if !compatible(t.Elems[i], u.Elems[i]) {
			return false
		}
	}
	return true
}

// match checks that values of some types may be passed on as others.
func (v *verifier) match(n *Node, what string, from []*Value, to []Type) {
	if len(from) != len(to) {
		v.report(RuleBlocks, n, "%s: expected %d values, got %d", what, len(to), len(from))
		return
	}
	for i, x := range from {
		if x != nil && !compatible(x.Type, to[i]) {
			v.report(RuleBlocks, n, "%s: value %d, %s, is of type %s, expected %s", what, i, v.name(x), x.Type, to[i])
		}
	}
}

// yields are the operands of a block's terminator.
func (v *verifier) yields(b *Block) []*Value {
	if t := b.Terminator(); t != nil {
		return t.Args
	}
	return nil
}

// control checks the blocks of if, while, for and fused.
func (v *verifier) control(n *Node) {
	want := 1
	if n.Op == OpIf || n.Op == OpWhile {
		want = 2
	}
	if len(n.Blocks) != want {
		v.report(RuleBlocks, n, "expected %d blocks, got %d", want, len(n.Blocks))
		return
	}
	for _, b := range n.Blocks {
		if b.Terminator() == nil {
			return // reported already
		}
	}
	first, results := n.Blocks[0], valueTypes(n.Results)
	switch n.Op {
	case OpIf:
		v.match(n, "the condition of if", n.Args, []Type{BoolT})
		for i, name := range []string{"the first block of if", "the second block of if"} {
			v.match(n, "the parameters of "+name, n.Blocks[i].Params, nil)
			v.match(n, "what "+name+" yields", v.yields(n.Blocks[i]), results)
		}
	case OpWhile:
		second := n.Blocks[1]
		v.match(n, "the operands of while", n.Args, valueTypes(first.Params))
		v.match(n, "the parameters of the condition of while", first.Params, valueTypes(second.Params))
		v.match(n, "what the condition of while yields", v.yields(first), []Type{BoolT})
		v.match(n, "what the body of while yields", v.yields(second), valueTypes(second.Params))
		v.match(n, "the results of while", n.Results, valueTypes(second.Params))
	case OpFor:
		if len(first.Params) == 0 || !compatible(first.Params[0].Type, Int) {
			v.report(RuleBlocks, n, "expected an int as first parameter of for's block: the number of the iteration")
			return
		}
		v.match(n, "the operands of for", n.Args, append([]Type{Int}, valueTypes(first.Params[1:])...))
		v.match(n, "what the block of for yields", v.yields(first), valueTypes(first.Params[1:]))
		v.match(n, "the results of for", n.Results, valueTypes(first.Params[1:]))
	case OpFused:
		v.match(n, "the operands of fused", n.Args, valueTypes(first.Params))
		v.match(n, "what fused yields", v.yields(first), results)
		first.Walk(func(m *Node) {
			if m.Op.Class == Control || m.Op.Class == Generic || m.Op.Effect == Ordered {
				v.report(RuleFused, m, "%s cannot be part of a kernel", m.Op.Name)
			}
		})
	}
}

func (v *verifier) attrs(n *Node) {
	switch n.Op {
	case OpAten, OpVjp:
		if n.Attrs.Callee == "" {
			v.report(RuleAttrs, n, "%s does not say which function it calls", n.Op.Name)
		}
		if n.Op == OpVjp && n.Attrs.Order < 1 {
			v.report(RuleAttrs, n, "expected an order of 1 or more, got %d", n.Attrs.Order)
		}
		if n.Op == OpVjp && n.Attrs.Count != len(n.Results) {
			v.report(RuleAttrs, n, "expected %d results, got %d", n.Attrs.Count, len(n.Results))
		}
	case OpGrad:
		if c := n.Attrs.Count; c < 0 || len(n.Args) < 2*c {
			v.report(RuleAttrs, n, "expected %d outputs and as many grad_outputs, got %d operands", c, len(n.Args))
		} else if len(n.Results) != len(n.Args)-2*c {
			v.report(RuleAttrs, n, "expected one result for each of %d inputs, got %d", len(n.Args)-2*c, len(n.Results))
		}
	}
}
