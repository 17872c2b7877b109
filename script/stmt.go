package script

import (
	"fmt"
	"strings"

	"github.com/gtc-project/gtc/ir"
)

// endWith is put after the body of a with block; it restores whether gradients are recorded.
type endWith struct {
	node
	noGrad int
}

// Codes that a loop variable "$cN" holds when its loop is left before its end; a return has codeReturn plus its number.
const (
	codeBreak  = 1
	codeReturn = 2
)

// block lowers statements up to an exit (return, break, continue, or an if whose branches hold one: those get the rest of the
// statements appended). It reports whether control never reaches the end of the block.
func (l *lowering) block(stmts []stmt) bool {
	for i, s := range stmts {
		l.at(s.at())
		rest := stmts[i+1:]
		switch s := s.(type) {
		case *ifStmt:
			if hasExit(s.then) || hasExit(s.els) {
				return l.exitIf(s, rest)
			}
			if l.plainIf(s) {
				return true
			}
		case *whileStmt:
			if l.whileLoop(s) {
				return l.dispatch(rest)
			}
		case *forStmt:
			if l.forLoop(s) {
				return l.dispatch(rest)
			}
		case *withStmt:
			end := &endWith{s.node, l.noGrad}
			l.enterWith(s)
			return l.block(join3(s.body, end, rest))
		case *endWith:
			l.noGrad = s.noGrad
		case *returnStmt:
			l.returns(s)
			return true
		case *breakStmt:
			l.frame.vars[l.codeVar()] = l.scalar(int64(codeBreak))
			return true
		case *continueStmt:
			if l.frame.pseudo[l.frame.loop] {
				l.frame.vars[l.codeVar()] = l.scalar(int64(codeContinue))
			}
			return true
		case *raiseStmt:
			l.raise(s)
			return true
		default:
			l.simple(s)
		}
	}
	return false
}

func join3(a []stmt, mid stmt, b []stmt) []stmt {
	return append(append(append([]stmt{}, a...), mid), b...)
}

func concat(a, b []stmt) []stmt { return append(append([]stmt{}, a...), b...) }

func (l *lowering) codeVar() string { return fmt.Sprintf("$c%d", l.frame.loop) }

func (l *lowering) enterWith(s *withStmt) {
	for _, item := range s.items {
		call, name := &callExpr{}, ""
		if c, ok := item.(*callExpr); ok {
			if path, ok := l.file.dotted(c.fn); ok {
				call, name = c, path
			}
		}
		switch name {
		case "torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad":
			l.noGrad++
		case "torch.enable_grad", "torch.autograd.enable_grad":
			l.noGrad = 0
		case "torch.set_grad_enabled", "torch.autograd.set_grad_enabled":
			l.setGradEnabled(call)
		case "torch.autograd.profiler.record_function", "torch.profiler.record_function":
			l.args(call)
		default:
			l.fail(item.at(), "only torch.no_grad(), enable_grad(), set_grad_enabled() and record_function() are supported in a 'with'")
		}
	}
}

func (l *lowering) setGradEnabled(call *callExpr) {
	if len(call.args) == 1 {
		if s, ok := l.expr(call.args[0]).(*scalarV); ok {
			if on, isConst := s.v.Const(); isConst && s.t.Kind == ir.KBool {
				l.noGrad++
				if on.(bool) {
					l.noGrad = 0
				}
				return
			}
		}
	}
	l.fail(call.pos, "torch.set_grad_enabled() takes a constant: True or False")
}

// hasExit reports whether statements hold a return, or a break or continue of the loop around them.
func hasExit(stmts []stmt) bool { return anyExit(stmts, true) }

func anyExit(stmts []stmt, loops bool) bool {
	for _, s := range stmts {
		switch s := s.(type) {
		case *returnStmt:
			return true
		case *breakStmt, *continueStmt:
			if loops {
				return true
			}
		case *ifStmt:
			if anyExit(s.then, loops) || anyExit(s.els, loops) {
				return true
			}
		case *whileStmt:
			if anyExit(s.body, false) {
				return true
			}
		case *forStmt:
			if anyExit(s.body, false) {
				return true
			}
		case *withStmt:
			if anyExit(s.body, loops) {
				return true
			}
		}
	}
	return false
}

// leaves reports whether control surely does not reach the end of the statements.
func exits(stmts []stmt) bool {
	for _, s := range stmts {
		switch s := s.(type) {
		case *returnStmt, *breakStmt, *continueStmt, *raiseStmt:
			return true
		case *ifStmt:
			if exits(s.then) && exits(s.els) {
				return true
			}
		case *withStmt:
			if exits(s.body) {
				return true
			}
		}
	}
	return false
}

// raises reports whether the statements surely end in a raise and cannot be left otherwise.
func raises(stmts []stmt) bool {
	for _, s := range stmts {
		switch s := s.(type) {
		case *raiseStmt:
			return true
		case *returnStmt, *breakStmt, *continueStmt:
			return false
		case *ifStmt:
			if raises(s.then) && raises(s.els) {
				return true
			}
			if hasExit([]stmt{s}) {
				return false
			}
		case *forStmt, *whileStmt, *withStmt:
			if hasExit([]stmt{s}) {
				return false
			}
		}
	}
	return false
}

// finish lowers the statements up to the end of the function, or of the loop body; it reports whether they are left before.
func (l *lowering) finish(stmts []stmt) bool {
	if l.block(stmts) {
		return true
	}
	if l.frame.loop == 0 {
		l.implicitReturn()
		return true
	}
	return false
}

// implicitReturn is what happens at the end of a function that has no return there.
func (l *lowering) implicitReturn() {
	f := l.frame
	if f.ret != nil && f.ret.Kind != ir.KNone && f.ret.Kind != ir.KOptional {
		l.fail(f.def.pos, "Function '%s' was not annotated as having type None, but does not return along all paths: it must return a value of type %s", short(f.def.name), typeName(*f.ret))
	}
	v := value(l.none())
	if f.ret != nil {
		v = l.retype(v, *f.ret)
	}
	f.vars["$ret"] = v
}

// raising lowers a branch that ends in a raise: nothing after it sees its state.
func (l *lowering) raising(cond *ir.Value, when bool, stmts []stmt) {
	blocks := []*ir.Block{{}, {}}
	i := 0
	if !when {
		i = 1
	}
	vars, cells, noGrad, loop, leaves := l.frame.vars, l.cells, l.noGrad, l.frame.loop, l.leaves
	l.frame.vars, l.cells = copyVars(vars), l.snapshot()
	p := l.pos
	l.in(blocks[i], func() { l.block(stmts) })
	l.frame.vars, l.cells, l.noGrad, l.frame.loop, l.leaves = vars, cells, noGrad, loop, leaves
	l.at(p)
	for _, b := range blocks {
		l.in(b, func() { l.try(func() { l.b.Yield() }) })
	}
	l.try(func() { l.b.Node(ir.OpIf, ir.Attrs{}, blocks, nil, cond) })
}

// plainIf lowers an if without exits; it reports whether control never comes out of it (both branches raise).
func (l *lowering) plainIf(s *ifStmt) bool {
	c := l.cond(s.cond)
	switch {
	case c.static && c.value:
		l.refine(c.yes)
		return l.block(s.then)
	case c.static:
		l.refine(c.no)
		return l.block(s.els)
	case raises(s.then):
		l.raising(c.v, true, s.then)
		l.refine(c.no)
		return l.block(s.els)
	case raises(s.els):
		l.raising(c.v, false, s.els)
		l.refine(c.yes)
		return l.block(s.then)
	}
	l.at(s.pos)
	l.branch(c.v, nil, func() { l.refine(c.yes); l.block(s.then) }, func() { l.refine(c.no); l.block(s.els) })
	return false
}

// exitIf lowers an if with an exit inside; each branch goes on with the rest.
func (l *lowering) exitIf(s *ifStmt, rest []stmt) bool {
	c := l.cond(s.cond)
	then, els := s.then, s.els
	if !exits(then) {
		then = concat(then, rest)
	}
	if !exits(els) {
		els = concat(els, rest)
	}
	switch {
	case c.static && c.value:
		l.refine(c.yes)
		return l.block(then)
	case c.static:
		l.refine(c.no)
		return l.block(els)
	case raises(then):
		l.raising(c.v, true, then)
		l.refine(c.no)
		return l.block(els)
	case raises(els):
		l.raising(c.v, false, els)
		l.refine(c.yes)
		return l.block(then)
	}
	l.at(s.pos)
	f := l.frame
	if !exits(s.then) && !exits(s.els) && len(rest) > 0 {
		if f.dups >= maxDups {
			return l.exitByCode(s, c, rest)
		}
		f.dups++
		defer func() { f.dups-- }()
	}
	keep := func(string) bool { return false }
	if f.loop > 0 {
		keep = nil
	}
	var exited, none [2]bool
	which := &none
	if f.pseudo[f.loop] {
		which = &exited
	}
	l.branchExits(c.v, keep, which, func() { l.refine(c.yes); exited[0] = l.finish(then) }, func() { l.refine(c.no); exited[1] = l.finish(els) })
	return exited[0] && exited[1] || f.loop == 0 || !f.pseudo[f.loop]
}

// maxDups bounds the nesting of ifs whose rest is lowered twice.
const maxDups = 3

// codeContinue is what a continue inside exitByCode leaves in the code variable.
const codeContinue = -1

// exitByCode lowers an if with exits without appending the rest to its branches: exits set a code, as those of a loop do, and the
// rest runs where there was none.
func (l *lowering) exitByCode(s *ifStmt, c cond, rest []stmt) bool {
	f := l.frame
	f.loop++
	if f.pseudo == nil {
		f.pseudo = map[int]bool{}
	}
	f.pseudo[f.loop] = true
	code := l.codeVar()
	f.vars[code] = l.scalar(int64(0))
	dups := f.dups
	f.dups = 0
	var exited [2]bool
	l.branchExits(c.v, nil, &exited, func() { l.refine(c.yes); exited[0] = l.block(s.then) }, func() { l.refine(c.no); exited[1] = l.block(s.els) })
	f.dups = dups
	delete(f.pseudo, f.loop)
	f.loop--
	v := f.vars[code].(*scalarV).v
	delete(f.vars, code)
	left := l.op("py_ne", v, l.int(0))
	keep := func(string) bool { return false }
	if f.loop > 0 {
		keep = nil
	}
	gone := [2]bool{f.pseudo[f.loop], false}
	l.branchExits(left, keep, &gone, func() {
		switch {
		case f.loop == 0:
			l.returnSites(v, 0)
		case f.pseudo[f.loop]:
			f.vars[l.codeVar()] = scalarOf(v)
		default:
			f.vars[l.codeVar()] = scalarOf(l.op("py_select", l.op("py_eq", v, l.int(codeContinue)), l.int(0), v))
		}
	}, func() { gone[1] = l.finish(rest) && f.pseudo[f.loop] })
	return true
}

// returns lowers a return statement. Inside a loop the loop is left first; the value is computed behind it.
func (l *lowering) returns(s *returnStmt) {
	f := l.frame
	if f.loop > 0 {
		number := len(f.returns)
		for i, r := range f.returns {
			if r == s {
				number = i
			}
		}
		if number == len(f.returns) {
			f.returns = append(f.returns, s)
		}
		f.vars[l.codeVar()] = l.scalar(int64(codeReturn + number))
		if s.x != nil {
			names := map[string]bool{}
			collectNames(s.x, names)
			for _, name := range sortedNames(names) {
				if v, ok := f.vars[name]; ok {
					if _, run := typeOf(v); run {
						f.vars[fmt.Sprintf("$r%d.%s", number, name)] = v
					}
				} else if why, gone := f.gone[name]; gone {
					l.undefined(s.x.at(), name, why)
				}
			}
		}
		return
	}
	l.returnValue(s)
}

func (l *lowering) returnValue(s *returnStmt) {
	f := l.frame
	var v value = l.none()
	if s.x != nil {
		v = l.expr(s.x)
		if r, ok := v.(*rangeV); ok {
			v = l.fresh(l.irOf(r), ir.IntList)
		}
		if _, ok := typeOf(v); !ok {
			l.fail(s.x.at(), "a function cannot return %s", describe(v))
		}
	} else if s.x == nil {
		v = l.none()
	}
	l.at(s.pos)
	if f.ret != nil {
		v = l.coerce(v, *f.ret, s.pos, "Return value was annotated as having type "+typeName(*f.ret)+" but is of another type")
	}
	f.vars["$ret"] = v
}

// dispatch goes on after a loop that may have been left by a return.
func (l *lowering) dispatch(rest []stmt) bool {
	f := l.frame
	inner := fmt.Sprintf("$c%d", f.loop+1)
	code := f.vars[inner].(*scalarV).v
	delete(f.vars, inner)
	left := l.op("py_ge", code, l.int(codeReturn))
	keep := func(string) bool { return false }
	if f.loop > 0 {
		keep = nil
	}
	l.branch(left, keep, func() {
		if f.loop > 0 {
			f.vars[l.codeVar()] = scalarOf(code)
			return
		}
		l.returnSites(code, 0)
	}, func() { l.finish(rest) })
	return true
}

// returnSites evaluates the return whose number the code tells.
func (l *lowering) returnSites(code *ir.Value, number int) {
	f := l.frame
	if number+1 == len(f.returns) {
		l.returnSite(number)
		return
	}
	is := l.op("py_eq", code, l.int(codeReturn+number))
	l.branch(is, func(string) bool { return false }, func() { l.returnSite(number) }, func() { l.returnSites(code, number+1) })
}

func (l *lowering) returnSite(number int) {
	f := l.frame
	prefix := fmt.Sprintf("$r%d.", number)
	for name, v := range f.vars {
		if plain, ok := strings.CutPrefix(name, prefix); ok {
			f.vars[plain] = v
		}
	}
	l.at(f.returns[number].pos)
	l.returnValue(f.returns[number])
}

func (l *lowering) raise(s *raiseStmt) {
	kind, msg := "RuntimeError", value(l.scalar(""))
	switch x := s.x.(type) {
	case *nameExpr:
		kind = x.name
	case *callExpr:
		if n, ok := x.fn.(*nameExpr); ok {
			kind = n.name
		}
		if len(x.args) > 0 {
			msg = l.expr(x.args[0])
		}
	case nil:
		l.fail(s.pos, "a bare raise is not supported: name an exception")
	default:
		l.fail(s.pos, "raise takes an exception such as RuntimeError('message')")
	}
	if !strings.HasSuffix(kind, "Error") && !strings.HasSuffix(kind, "Exception") {
		l.fail(s.pos, "'%s' is not an exception", short(kind))
	}
	l.at(s.pos)
	l.do("raise", l.constant(kind), l.op("py_str", l.irOf(msg)))
}

// simple lowers a statement that is neither control flow nor an exit.
func (l *lowering) simple(s stmt) {
	switch s := s.(type) {
	case *passStmt:
	case *exprStmt:
		if _, doc := s.x.(*strExpr); !doc {
			l.expr(s.x)
		}
	case *assertStmt:
		l.assert(s)
	case *assignStmt:
		l.assignment(s)
	case *augStmt:
		l.augmented(s)
	case *delStmt:
		for _, t := range s.targets {
			l.del(t)
		}
	default:
		l.fail(s.at(), "this statement is not supported")
	}
}

func (l *lowering) assert(s *assertStmt) {
	c := l.cond(s.cond)
	l.at(s.pos)
	if !c.static || !c.value {
		msg := l.constant("")
		if s.msg != nil {
			msg = l.irOf(l.expr(s.msg))
		}
		l.at(s.pos)
		v := c.v
		if c.static {
			v = l.constant(false)
		}
		l.do("assert", v, l.op("py_str", msg))
	}
	l.refine(c.yes)
}

func (l *lowering) del(t expr) {
	switch t := t.(type) {
	case *nameExpr:
		if _, ok := l.frame.vars[t.name]; !ok {
			l.undefined(t.pos, t.name, "")
		}
		delete(l.frame.vars, t.name)
		l.frame.gone[t.name] = "it was deleted"
	case *indexExpr:
		x := l.expr(t.x)
		if r, ok := x.(*refV); ok && len(t.subs) == 1 {
			k := l.irOf(l.expr(t.subs[0]))
			switch r.t.Kind {
			case ir.KList:
				l.write(r, l.op("list_remove", l.read(r), k))
				return
			case ir.KDict:
				l.do("dict_get", l.read(r), k)
				l.dropKey(r, scalarOf(k))
				l.write(r, l.op("dict_without", l.read(r), k))
				return
			}
		}
		l.fail(t.pos, "cannot delete an element of %s", describe(x))
	default:
		l.fail(t.at(), "this cannot be deleted")
	}
}

func (l *lowering) assignment(s *assignStmt) {
	if s.typ != nil {
		t := l.annotation(s.typ)
		n, ok := s.targets[0].(*nameExpr)
		if !ok {
			l.fail(s.pos, "only a variable can be annotated")
		}
		l.frame.declared[n.name] = t
		if s.value == nil {
			return
		}
		v := l.typed(s.value, t)
		l.at(s.pos)
		l.frame.vars[n.name] = l.declaredValue(v, t, n)
		return
	}
	var v value
	if n, ok := s.targets[0].(*nameExpr); ok && isEmptyLiteral(s.value) && l.frame.declared[n.name].Kind != ir.KAny {
		v = l.typed(s.value, l.frame.declared[n.name])
	} else {
		v = l.expr(s.value)
	}
	for _, t := range s.targets {
		l.assign(t, v)
	}
}

func isEmptyLiteral(e expr) bool {
	switch e := e.(type) {
	case *listExpr:
		return len(e.elems) == 0
	case *dictExpr:
		return len(e.keys) == 0
	}
	return false
}

// declaredValue gives a variable annotated as t its value; an Optional that is assigned something other than None is refined.
func (l *lowering) declaredValue(v value, t ir.Type, n *nameExpr) value {
	what := fmt.Sprintf("Variable '%s' is annotated with type %s but is being assigned to a value of another type", short(n.name), typeName(t))
	if isOptional(t) {
		vt, ok := typeOf(v)
		if ok && vt.Kind != ir.KNone && !isOptional(vt) {
			return l.coerce(v, t.Elems[0], n.pos, what)
		}
	}
	return l.coerce(v, t, n.pos, what)
}

// typed lowers an expression where a type is expected: empty literals take it.
func (l *lowering) typed(e expr, t ir.Type) value {
	u := unwrapped(t)
	switch x := e.(type) {
	case *listExpr:
		if u.Kind == ir.KList {
			elems := make([]value, len(x.elems))
			for i, el := range x.elems {
				if _, star := el.(*starExpr); star {
					return l.expr(e)
				}
				elems[i] = l.coerce(l.typed(el, u.Elems[0]), u.Elems[0], el.at(), "List element")
			}
			l.at(e.at())
			return l.freshList(u, elems)
		}
	case *dictExpr:
		if u.Kind == ir.KDict {
			return l.dictLiteral(x, &u)
		}
	case *tupleExpr:
		if u.Kind == ir.KTuple && len(u.Elems) == len(x.elems) {
			out := make([]value, len(x.elems))
			for i, el := range x.elems {
				out[i] = l.typed(el, u.Elems[i])
			}
			return l.tuple(out)
		}
	case *compExpr:
		if u.Kind == ir.KList && x.value == nil {
			return l.comprehension(x, &u)
		}
	}
	return l.expr(e)
}

// assign gives a target its value.
func (l *lowering) assign(target expr, v value) {
	l.at(target.at())
	switch t := target.(type) {
	case *nameExpr:
		if r, ok := v.(*rangeV); ok {
			v = l.fresh(l.irOf(r), ir.IntList)
		}
		switch v.(type) {
		case *scalarV, *refV, *tupleV, *module, *funcV, *torchV:
		default:
			l.fail(t.pos, "%s cannot be assigned to a variable", describe(v))
		}
		if d, ok := l.frame.declared[t.name]; ok {
			v = l.declaredValue(v, d, t)
		}
		l.frame.vars[t.name] = v
	case *tupleExpr:
		l.unpack(t.elems, v, t.pos)
	case *listExpr:
		l.unpack(t.elems, v, t.pos)
	case *indexExpr:
		l.setItem(t, v)
	case *attrExpr:
		l.setAttr(t, v)
	default:
		l.fail(target.at(), "cannot assign to this expression")
	}
}

func (l *lowering) unpack(targets []expr, v value, p Pos) {
	for i, t := range targets {
		if star, ok := t.(*starExpr); ok {
			l.unpackStar(targets, i, star, v, p)
			return
		}
	}
	elems := l.unpacked(v, len(targets), p)
	for i, t := range targets {
		l.assign(t, elems[i])
	}
}

// unpackStar gives the target with the star at index i what the others leave.
func (l *lowering) unpackStar(targets []expr, i int, star *starExpr, v value, p Pos) {
	elems, ok := l.unrolled(v, nil)
	if !ok {
		l.fail(p, "only a tuple, or a list whose length is known here, can be unpacked with *")
	}
	rest := len(elems) - (len(targets) - 1)
	if rest < 0 {
		l.fail(p, "cannot unpack a tuple of %d elements into at least %d values", len(elems), len(targets)-1)
	}
	for k, t := range targets[:i] {
		l.assign(t, elems[k])
	}
	var middle value = l.tuple(append([]value{}, elems[i:i+rest]...))
	if _, isList := v.(*refV); isList {
		middle = l.listOf(append([]value{}, elems[i:i+rest]...), nil)
	}
	l.assign(star.x, middle)
	for k, t := range targets[i+1:] {
		l.assign(t, elems[i+rest+k])
	}
}

// unpacked gives the n elements of a tuple or list.
func (l *lowering) unpacked(v value, n int, p Pos) []value {
	l.noUnion(v, p)
	switch v := v.(type) {
	case *tupleV:
		if len(v.elems) != n {
			l.fail(p, "cannot unpack a tuple of %d elements into %d values: the tuple has another length", len(v.elems), n)
		}
		return v.elems
	case *refV:
		switch v.t.Kind {
		case ir.KList:
			return l.unpackList(v, n, p)
		case ir.KTensor:
			return l.unpackList(l.unbind(v), n, p)
		}
	}
	l.fail(p, "cannot unpack a value of type %s: expected a tuple or list", describe(v))
	return nil
}

func (l *lowering) unpackList(r *refV, n int, p Pos) []value {
	if s, ok := l.static(r); ok {
		if len(s.elems) != n {
			// torch reports this when running
			l.do("check_len", l.read(r), l.int(n))
			l.fail(p, "cannot unpack a list of %d elements: expected %d values", len(s.elems), n)
		}
		return s.elems
	}
	l.at(p)
	l.do("check_len", l.read(r), l.int(n))
	out := make([]value, n)
	for i := range out {
		out[i] = l.listItem(r, l.int(i))
	}
	return out
}

// static gives the elements of a list that is known element by element.
func (l *lowering) static(r *refV) (*staticList, bool) {
	if len(r.path) > 0 || r.t.Kind != ir.KList {
		return nil, false
	}
	l.sync(r.cell)
	s, ok := l.state(r.cell).content.(*staticList)
	return s, ok
}

func (l *lowering) setAttr(t *attrExpr, v value) {
	x := l.expr(t.x)
	if m, ok := x.(*module); ok {
		l.setModuleAttr(m, t, v)
		return
	}
	if r, ok := isTensor(x); ok && t.name == "grad" {
		if f := l.leafOf(r); f != nil {
			l.write(f.grad, l.irOf(l.coerce(v, f.grad.t, t.pos, "assignment to .grad")))
			return
		}
	}
	l.fail(t.pos, "cannot assign to attribute '%s' of a value of type %s", short(t.name), describe(x))
}

// augmented lowers x op= y. On tensors, lists and dicts it changes the object in place.
func (l *lowering) augmented(s *augStmt) {
	switch t := s.target.(type) {
	case *nameExpr:
		old := l.expr(t)
		if r, ok := old.(*refV); ok && (r.t.Kind == ir.KTensor || r.t.Kind == ir.KList && s.op == "+") {
			l.inPlace(r, s.op, l.expr(s.value), s)
			return
		}
		y := l.expr(s.value)
		l.at(s.pos)
		v := l.binary(s.op, old, y, s.pos)
		if d, ok := l.frame.declared[t.name]; ok {
			v = l.declaredValue(v, d, t)
		}
		l.frame.vars[t.name] = v
	case *indexExpr:
		l.augmentedItem(t, s)
	case *attrExpr:
		old := l.expr(t)
		if r, ok := old.(*refV); ok && r.t.Kind == ir.KTensor {
			l.inPlace(r, s.op, l.expr(s.value), s)
			return
		}
		l.setAttr(t, l.binary(s.op, old, l.expr(s.value), s.pos))
	default:
		l.fail(s.target.at(), "cannot assign to this expression")
	}
}

var inPlaceOps = map[string]string{
	"+": "add_", "-": "sub_", "*": "mul_", "/": "div_", "//": "floor_divide_", "%": "remainder_", "**": "pow_",
	"&": "bitwise_and_", "|": "bitwise_or_", "^": "bitwise_xor_", "<<": "bitwise_left_shift_", ">>": "bitwise_right_shift_",
}

func (l *lowering) inPlace(r *refV, op string, y value, s *augStmt) {
	l.at(s.pos)
	if r.t.Kind == ir.KList {
		l.listMethod(r, "extend", []value{y}, nil, s.pos)
		return
	}
	name := inPlaceOps[op]
	if name == "" {
		l.fail(s.pos, "'%s=' on a tensor is not supported", op)
	}
	l.tensorMethod(r, name, []value{y}, nil, s.pos)
}

// whileLoop lowers a while loop and reports whether its body may return.
func (l *lowering) whileLoop(s *whileStmt) bool {
	f := l.frame
	c := l.cond(s.cond)
	if c.static && !c.value {
		return false
	}
	l.loopOver(s.pos, s.body, nil, func(exit bool) *loopSpec {
		return &loopSpec{
			enter: l.bool(c),
			body: func(*ir.Value) {
				if !c.static {
					l.refine(c.yes)
				}
				l.block(s.body)
			},
			again: func() *ir.Value { return l.unlessLeft(exit, func() *ir.Value { return l.bool(l.cond(s.cond)) }) },
		}
	})
	l.refine(c.no)
	return f.vars[fmt.Sprintf("$c%d", f.loop+1)] != nil
}

// unlessLeft is false where the loop body was left by break or return, and what next gives otherwise.
func (l *lowering) unlessLeft(exit bool, next func() *ir.Value) *ir.Value {
	code, ok := l.frame.vars[l.codeVar()].(*scalarV)
	if !exit || !ok {
		return next()
	}
	left := l.op("py_ne", code.v, l.int(0))
	if d, ok := left.Const(); ok {
		if d.(bool) {
			return l.constant(false)
		}
		return next()
	}
	l.branch(left, nil, func() { l.frame.vars["$go"] = l.scalar(false) }, func() { l.frame.vars["$go"] = scalarOf(next()) })
	v := l.frame.vars["$go"].(*scalarV).v
	delete(l.frame.vars, "$go")
	return v
}

// loopOver lowers a loop in a frame one level deeper. If the loop may be left by a return, its code variable stays behind.
func (l *lowering) loopOver(p Pos, body []stmt, targets []expr, makeSpec func(exit bool) *loopSpec) {
	f := l.frame
	f.loop++
	assigned := map[string]bool{}
	collectAssigned(body, assigned, func(name string) bool {
		r, ok := f.vars[name].(*refV)
		return ok && (r.t.Kind == ir.KTensor || r.t.Kind == ir.KList)
	})
	for _, t := range targets {
		collectNames(t, assigned)
	}
	exit := hasExit(body)
	code := l.codeVar()
	if exit {
		f.vars[code] = l.scalar(int64(0))
	} else {
		delete(f.vars, code)
	}
	spec := makeSpec(exit)
	spec.pos, spec.assigned = p, assigned
	l.at(p)
	l.loop(spec)
	f.loop--
	if !anyExit(body, false) {
		delete(f.vars, code)
	}
}

// collectAssigned lists the variables that statements assign. In-place operations on what mutates says are left out.
func collectAssigned(stmts []stmt, out map[string]bool, mutates func(string) bool) {
	for _, s := range stmts {
		switch s := s.(type) {
		case *assignStmt:
			for _, t := range s.targets {
				collectTargets(t, out)
			}
		case *augStmt:
			if n, ok := s.target.(*nameExpr); ok && !mutates(n.name) {
				out[n.name] = true
			}
		case *delStmt:
			for _, t := range s.targets {
				collectTargets(t, out)
			}
		case *ifStmt:
			collectAssigned(s.then, out, mutates)
			collectAssigned(s.els, out, mutates)
		case *whileStmt:
			collectAssigned(s.body, out, mutates)
		case *forStmt:
			collectTargets(s.target, out)
			collectAssigned(s.body, out, mutates)
		case *withStmt:
			collectAssigned(s.body, out, mutates)
		}
	}
}

func collectTargets(e expr, out map[string]bool) {
	switch e := e.(type) {
	case *nameExpr:
		out[e.name] = true
	case *starExpr:
		collectTargets(e.x, out)
	case *tupleExpr:
		for _, x := range e.elems {
			collectTargets(x, out)
		}
	case *listExpr:
		for _, x := range e.elems {
			collectTargets(x, out)
		}
	}
}

// collectNames lists the variables that an expression reads.
func collectNames(e expr, out map[string]bool) {
	walkExpr(e, func(e expr) {
		if n, ok := e.(*nameExpr); ok {
			out[n.name] = true
		}
	})
}

// walkExpr calls f for an expression and everything in it.
func walkExpr(e expr, f func(expr)) {
	if e == nil {
		return
	}
	f(e)
	all := func(es []expr) {
		for _, x := range es {
			walkExpr(x, f)
		}
	}
	switch e := e.(type) {
	case *attrExpr:
		walkExpr(e.x, f)
	case *callExpr:
		walkExpr(e.fn, f)
		all(e.args)
		for _, k := range e.kws {
			walkExpr(k.x, f)
		}
	case *indexExpr:
		walkExpr(e.x, f)
		all(e.subs)
	case *sliceExpr:
		all([]expr{e.lo, e.hi, e.step})
	case *unaryExpr:
		walkExpr(e.x, f)
	case *binaryExpr:
		walkExpr(e.x, f)
		walkExpr(e.y, f)
	case *boolExpr:
		all(e.terms)
	case *compareExpr:
		walkExpr(e.first, f)
		all(e.rest)
	case *ifExpr:
		all([]expr{e.cond, e.then, e.els})
	case *listExpr:
		all(e.elems)
	case *tupleExpr:
		all(e.elems)
	case *dictExpr:
		all(e.keys)
		all(e.values)
	case *compExpr:
		all([]expr{e.elem, e.value, e.iter})
		all(e.conds)
	case *starExpr:
		walkExpr(e.x, f)
	case *fstrExpr:
		all(e.parts)
	}
}

// forLoop lowers a for loop and reports whether its body may return.
func (l *lowering) forLoop(s *forStmt) bool {
	f := l.frame
	it := l.expr(s.iter)
	l.at(s.iter.at())
	l.noUnion(it, s.iter.at())
	elems, ok := l.unrolled(it, s.body)
	if !ok && l.unrollAll {
		elems, ok = l.constantRange(it)
	}
	if ok {
		return l.unroll(s, elems)
	}
	n, item := l.iterate(it, s.iter.at())
	if !hasExit(s.body) {
		l.loopOver(s.pos, s.body, []expr{s.target}, func(bool) *loopSpec {
			return &loopSpec{trip: n, body: func(i *ir.Value) {
				l.assign(s.target, item(i))
				l.block(s.body)
			}}
		})
		return false
	}
	f.loop++
	counter := fmt.Sprintf("$i%d", f.loop)
	f.vars[counter] = l.scalar(int64(0))
	f.loop--
	l.loopOver(s.pos, s.body, []expr{s.target}, func(exit bool) *loopSpec {
		return &loopSpec{
			enter: l.op("py_lt", l.int(0), n),
			body: func(*ir.Value) {
				i := f.vars[counter].(*scalarV).v
				l.assign(s.target, item(i))
				f.vars[counter] = scalarOf(l.op("py_add", i, l.int(1)))
				l.block(s.body)
			},
			again: func() *ir.Value {
				return l.unlessLeft(exit, func() *ir.Value { return l.op("py_lt", f.vars[counter].(*scalarV).v, n) })
			},
		}
	})
	delete(f.vars, counter)
	return f.vars[fmt.Sprintf("$c%d", f.loop+1)] != nil
}

// maxUnroll bounds the lists that a loop over is unrolled.
const maxUnroll = 32

// unrolled gives the elements of an iterable that are known one by one, where the loop is to be unrolled over them.
func (l *lowering) unrolled(it value, body []stmt) ([]value, bool) {
	switch it := it.(type) {
	case *tupleV:
		return it.elems, true
	case *module:
		if it.kind == "ParameterList" {
			out := make([]value, len(it.weights))
			for i, w := range it.weights {
				out[i] = l.weightRef(w)
			}
			return out, true
		}
		return it.iterate()
	case *enumV:
		inner, ok := l.unrolled(it.x, body)
		if !ok {
			return nil, false
		}
		out := make([]value, len(inner))
		for i, e := range inner {
			out[i] = l.tuple([]value{scalarOf(l.op("py_add", it.start, l.int(i))), e})
		}
		return out, true
	case *zipV:
		var parts [][]value
		n := -1
		mod := false
		for _, p := range it.parts {
			_, isM := p.(*module)
			mod = mod || isM
		}
		for _, p := range it.parts {
			inner, ok := l.unrolled(p, body)
			if !ok && mod {
				if r, list := p.(*refV); list && r.t.Kind == ir.KList {
					inner = nil
					ok = true
					parts = append(parts, nil)
					continue
				}
			}
			if !ok {
				return nil, false
			}
			parts = append(parts, inner)
			if n < 0 || len(inner) < n {
				n = len(inner)
			}
		}
		out := make([]value, max(n, 0))
		for i := range out {
			var elems []value
			for k, p := range parts {
				if p == nil {
					elems = append(elems, l.listItem(it.parts[k].(*refV), l.int(i)))
					continue
				}
				elems = append(elems, p[i])
			}
			out[i] = l.tuple(elems)
		}
		return out, true
	case *refV:
		if s, ok := l.static(it); ok && len(s.elems) <= maxUnroll && !hasExit(body) && len(s.elems)*len(body) <= 200 {
			return s.elems, true
		}
	}
	return nil, false
}

// unroll repeats the body for each element. A body with exits is nested: what follows an element is in the branches that go on.
func (l *lowering) unroll(s *forStmt, elems []value) bool {
	if hasExit(s.body) {
		return l.unrollExits(s, elems)
	}
	key := l.frame.key
	for i, e := range elems {
		l.frame.key = fmt.Sprintf("%s/%d:%d", key, s.pos.Line, i)
		l.assign(s.target, e)
		l.block(s.body)
	}
	l.frame.key = key
	return false
}

// unrollExits unrolls a loop whose body has exits: each iteration but the first is in the branch that goes on.
func (l *lowering) unrollExits(s *forStmt, elems []value) bool {
	f := l.frame
	f.loop++
	code := l.codeVar()
	key := f.key
	var iteration func(i int)
	iteration = func(i int) {
		if i == len(elems) {
			return
		}
		f.key = fmt.Sprintf("%s/%d:%d", key, s.pos.Line, i)
		l.assign(s.target, elems[i])
		l.block(s.body)
		l.at(s.pos)
		left, ok := f.vars[code].(*scalarV)
		if !ok {
			iteration(i + 1)
			return
		}
		goOn := l.op("py_eq", left.v, l.int(0))
		if d, isConst := goOn.Const(); isConst {
			if d.(bool) {
				iteration(i + 1)
			}
			return
		}
		if i+1 < len(elems) {
			l.branch(goOn, nil, func() { iteration(i + 1) }, func() {})
		}
	}
	f.vars[code] = l.scalar(int64(0))
	iteration(0)
	f.key = key
	f.loop--
	if !anyExit(s.body, false) {
		delete(f.vars, code)
		return false
	}
	return true
}

// iterate gives the number of elements of an iterable and a function for the element at an index.
func (l *lowering) iterate(it value, p Pos) (*ir.Value, func(i *ir.Value) value) {
	switch it := it.(type) {
	case *rangeV:
		return l.op("range_len", it.start, it.stop, it.step), func(i *ir.Value) value {
			if d, ok := it.step.Const(); ok && d.(int64) == 1 {
				if s, ok := it.start.Const(); ok && s.(int64) == 0 {
					return scalarOf(i)
				}
				return scalarOf(l.op("py_add", it.start, i))
			}
			return scalarOf(l.op("py_add", it.start, l.op("py_mul", i, it.step)))
		}
	case *enumV:
		n, item := l.iterate(it.x, p)
		return n, func(i *ir.Value) value {
			return l.tuple([]value{scalarOf(l.op("py_add", it.start, i)), item(i)})
		}
	case *zipV:
		return l.iterateZip(it, p)
	case *tupleV:
		t, _ := typeOf(it)
		for _, e := range t.Elems {
			if !e.Equal(t.Elems[0]) {
				l.fail(p, "cannot iterate over a tuple with elements of different types")
			}
		}
		if len(t.Elems) > 0 {
			return l.iterate(l.freshList(ir.ListOf(t.Elems[0]), it.elems), p)
		}
	case *refV:
		switch it.t.Kind {
		case ir.KList:
			n := l.op("list_len", l.read(it))
			return n, func(i *ir.Value) value { return l.listItem(it, i) }
		case ir.KDict:
			return l.iterate(l.fresh(l.op("dict_keys", l.read(it)), ir.ListOf(it.t.Elems[0])), p)
		case ir.KTensor:
			n := l.op("size", l.read(it), l.int(0))
			return n, func(i *ir.Value) value {
				return l.view(it, viewStep("select.int", []*ir.Value{l.int(0), i}), it.contiguous)
			}
		}
	case *scalarV:
		if it.t.Kind == ir.KString {
			return l.iterate(l.characters(it), p)
		}
	}
	l.fail(p, "a value of type %s is not iterable: expected a range, list, tuple, dict or tensor", describe(it))
	return nil, nil
}

func (l *lowering) iterateZip(z *zipV, p Pos) (*ir.Value, func(i *ir.Value) value) {
	var n *ir.Value
	var items []func(i *ir.Value) value
	for _, part := range z.parts {
		k, item := l.iterate(part, p)
		items = append(items, item)
		if n == nil {
			n = k
		} else {
			n = l.op("py_min", n, k)
		}
	}
	if n == nil {
		l.fail(p, "zip() needs an argument")
	}
	return n, func(i *ir.Value) value {
		out := make([]value, len(items))
		for k, item := range items {
			out[k] = item(i)
		}
		return l.tuple(out)
	}
}
