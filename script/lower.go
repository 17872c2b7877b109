package script

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gtc-project/gtc/ir"
)

const (
	maxNodes = 250_000 // nodes that lowering may emit
	maxCalls = 200     // nesting of calls of the script's own functions
)

// lowering turns functions of a file into IR. It interprets the program abstractly: types are inferred on the way, calls are
// inlined, and the memory that tensors and lists share is tracked in cells (cells.go).
type lowering struct {
	file  *File
	names *File // where annotations are looked up, if elsewhere
	f     *ir.Func
	b     *ir.Builder
	pos   Pos // of the expression being lowered

	frame  *frame
	cells  map[*cell]cellState // cells written so far; the others hold their first content
	serial int                 // counts cells, to tell those made in a branch from those before it
	stamp  int                 // counts writes
	noGrad int
	leaves []leaf            // tensors on which requires_grad_() was called
	inputs map[*weight]*refV // parameters and buffers of the entry's module; nil while a constructor computes with tensors
	order  []*weight
	train  bool

	scopes []int          // loops around the present place
	scope  int            // counts loops
	tagIDs map[string]int // numbers of references, for tags

	sites  map[string]*cell // the latest cell made at a site
	mirror mirrorPlan
	loops  map[string]*loopPlan
	limit  *int

	unrollAll bool // loops over short constant ranges are unrolled
}

// frame is one inlined call.
type frame struct {
	parent   *frame
	def      *funcDef
	self     *module
	key      string // the chain of call sites, for plans that persist over attempts
	vars     map[string]value
	declared map[string]ir.Type
	gone     map[string]string // why a name that was assigned somewhere is not defined here
	ret      *ir.Type          // declared
	loop     int               // depth of loops
	returns  []*returnStmt     // returns inside loops, evaluated after them
	dups     int               // nested ifs whose rest has been appended to both branches
	pseudo   map[int]bool      // levels of loop that are no loops: see exitByCode
	depth    int
	call     Pos   // where it was called,
	file     *File // in this file
}

// lowerError carries an *Error through the recursion.
func (l *lowering) fail(p Pos, format string, args ...any) {
	file, at := l.userPlace(p)
	e := file.src.errorf(at, format, args...)
	for f := l.frame; f != nil && f.parent != nil && len(e.Calls) < 5; f = f.parent {
		if f.def.file == prelude() {
			continue
		}
		e.Calls = append(e.Calls, fmt.Sprintf("in function '%s'", short(f.def.name)))
	}
	panic(e)
}

// failShared reports that what shares memory cannot be worked out.
func (l *lowering) failShared(p Pos, format string, args ...any) {
	defer func() {
		r := recover()
		if e, ok := r.(*Error); ok {
			e.shared = true
		}
		panic(r)
	}()
	l.fail(p, format, args...)
}

// userPlace is the place in the user's own source: for code of the built-in layers, the call that led there.
func (l *lowering) userPlace(p Pos) (*File, Pos) {
	file := l.file
	for f := l.frame; f != nil && f.file != nil && file == prelude(); f = f.parent {
		file, p = f.file, f.call
	}
	return file, p
}

// at makes p the position of what is emitted next.
func (l *lowering) at(p Pos) {
	l.pos = p
	file, at := l.userPlace(p)
	l.b.Pos = ir.Pos{File: file.src.name, Line: at.Line, Col: at.Col}
}

// try runs code that builds and reports its errors at the current position.
func (l *lowering) try(build func()) {
	if *l.limit--; *l.limit < 0 {
		l.fail(l.pos, "the program is too large: more than %d operations after inlining calls and branches", maxNodes)
	}
	if err := ir.Try(build); err != nil {
		if errors.Is(err, ir.ErrNeedsTypes) {
			panic("BUG: lowering needs types: " + err.Error())
		}
		l.fail(l.pos, "%s", err)
	}
}

// op emits a node with one result, or folds it where all operands are constants.
func (l *lowering) op(name string, args ...*ir.Value) *ir.Value {
	if d, ok := l.folded(name, args); ok {
		return l.constant(d)
	}
	var v *ir.Value
	l.try(func() { v = l.b.Op(name, args...) })
	return v
}

// folded evaluates an operation on constant scalars; an operation that fails is left to fail at run time.
func (l *lowering) folded(name string, args []*ir.Value) (ir.Datum, bool) {
	if kind, _, _ := strings.Cut(name, "_"); kind != "py" && kind != "str" && kind != "math" && name != "is_none" {
		return nil, false
	}
	data := make([]ir.Datum, len(args))
	for i, a := range args {
		d, ok := a.Const()
		if !ok {
			return nil, false
		}
		if _, list := d.(ir.List); list {
			return nil, false
		}
		data[i] = d
	}
	op := ir.LookupOp(name)
	rs, err := op.Eval(&ir.EvalCall{Node: &ir.Node{Op: op}, Args: data})
	if err != nil {
		return nil, false
	}
	switch rs[0].(type) {
	case ir.List, ir.Tuple:
		return nil, false
	}
	return rs[0], true
}

// do emits a node without results.
func (l *lowering) do(name string, args ...*ir.Value) {
	l.try(func() { l.b.Emit(name, args...) })
}

func (l *lowering) constant(d ir.Datum) *ir.Value {
	var v *ir.Value
	l.try(func() { v = l.b.Const(d) })
	return v
}

func (l *lowering) int(i int) *ir.Value { return l.constant(int64(i)) }

func (l *lowering) scalar(d ir.Datum) *scalarV {
	v := l.constant(d)
	return &scalarV{v.Type, v}
}

func (l *lowering) none() *scalarV { return l.scalar(nil) }

func scalarOf(v *ir.Value) *scalarV { return &scalarV{v.Type, v} }

// in runs build at the end of another block.
func (l *lowering) in(blk *ir.Block, build func()) {
	old := l.b.Block
	l.b.Block = blk
	build()
	l.b.Block = old
}

// addResult gives a control-flow node one more result.
func (l *lowering) addResult(n *ir.Node, t ir.Type) *ir.Value {
	v := l.f.NewValue(t)
	v.Def, v.Index = n, len(n.Results)
	n.Results = append(n.Results, v)
	return v
}

// irOf gives a run-time value as one IR value of the given type (nil: its own): lists are read, tuples packed.
func (l *lowering) irOf(v value) *ir.Value {
	switch v := v.(type) {
	case *scalarV:
		return v.v
	case *refV:
		return l.read(v)
	case *tupleV:
		if v.n > maxLeaves {
			l.fail(l.pos, "the tuple is too large: it has more than %d elements when taken apart", maxLeaves)
		}
		elems := make([]*ir.Value, len(v.elems))
		for i, e := range v.elems {
			elems[i] = l.irOf(e)
		}
		var t *ir.Value
		l.try(func() { t = l.b.Tuple(elems...) })
		return t
	case *rangeV:
		return l.op("range_list", v.start, v.stop, v.step)
	case *module:
		l.fail(l.pos, "a module is not a value here: call it")
	}
	l.fail(l.pos, "%s cannot be used as a value here", describe(v))
	return nil
}

// valueOf makes a value of an IR value of static type t that nothing else refers to.
func (l *lowering) valueOf(v *ir.Value, t ir.Type) value {
	switch {
	case t.Kind == ir.KTuple:
		out := make([]value, len(t.Elems))
		for i, et := range t.Elems {
			out[i] = l.valueOf(l.op("tuple_get", v, l.int(i)), et)
		}
		tup := l.tuple(out)
		tup.names = t.Names
		return tup
	case mutable(t):
		return l.fresh(v, t)
	}
	return &scalarV{t, v}
}

func (l *lowering) tuple(elems []value) *tupleV {
	t := &tupleV{elems: elems}
	for _, e := range elems {
		t.n = min(t.n+leaves(e), maxLeaves+1)
	}
	return t
}

// coerce checks that v may stand where want is asked for and gives it that type; what names the place for the message.
func (l *lowering) coerce(v value, want ir.Type, p Pos, what string) value {
	t, ok := typeOf(v)
	if m, isModule := v.(*module); isModule {
		l.fail(p, "%s: expected a value of type '%s' but found module '%s'", what, typeName(want), m.class)
	}
	if r, isRange := v.(*rangeV); isRange {
		v = l.fresh(l.irOf(r), ir.IntList)
		t, ok = ir.IntList, true
	}
	if isAnything(want) {
		return v
	}
	if !ok || !subtype(t, want) {
		l.fail(p, "%s: expected a value of type '%s' but instead found type '%s'", what, typeName(want), describe(v))
	}
	return l.retype(v, want)
}

// retype gives v the wider type want, of which it is known to be a subtype.
func (l *lowering) retype(v value, want ir.Type) value {
	if isAnything(want) {
		return v
	}
	if t, ok := typeOf(v); ok && isOptional(want) && isUnion(want.Elems[0]) && !isOptional(t) && t.Kind != ir.KNone {
		return &scalarV{want, l.irOf(l.retype(v, want.Elems[0]))}
	}
	if isUnion(want) {
		if t, _ := typeOf(v); !isUnion(t) || !t.Equal(want) {
			return l.toUnion(v, want)
		}
	}
	switch v := v.(type) {
	case *scalarV:
		if want.Kind == ir.KOptional && mutable(want) { // None
			return l.fresh(v.v, want)
		}
		if v.t.Equal(want) {
			return v
		}
		return &scalarV{want, v.v}
	case *refV:
		if v.t.Equal(want) {
			return v
		}
		c := *v
		c.t = want
		if v.t.Kind == ir.KList || v.t.Kind == ir.KDict {
			l.setElemType(v.cell, unwrapped(want))
		}
		return &c
	case *tupleV:
		if want.Kind == ir.KOptional {
			return &scalarV{want, l.irOf(l.retype(v, want.Elems[0]))}
		}
		out := make([]value, len(v.elems))
		for i, e := range v.elems {
			out[i] = l.retype(e, want.Elems[i])
		}
		t := l.tuple(out)
		t.names = v.names
		return t
	}
	return v
}
