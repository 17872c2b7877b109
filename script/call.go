package script

import (
	"fmt"

	"github.com/gtc-project/gtc/ir"
)

// kwValue is a keyword argument.
type kwValue struct {
	name string
	pos  Pos
	v    value
}

// call lowers a call.
func (l *lowering) call(e *callExpr) value {
	if a, ok := e.fn.(*attrExpr); ok {
		if v, done := l.methodCall(e, a); done {
			return v
		}
	}
	if c, ok := l.typeTest(e); ok {
		if c.static {
			return l.scalar(c.value)
		}
		return scalarOf(c.v)
	}
	fn := l.expr(e.fn)
	if b, ok := fn.(*builtinV); ok && b.name == "super" {
		l.fail(e.pos, "super() is only supported as super().method(…)")
	}
	args, kws := l.args(e)
	l.at(e.pos)
	return l.apply(fn, args, kws, e)
}

func (l *lowering) args(e *callExpr) ([]value, []kwValue) {
	var args []value
	for _, a := range e.args {
		if s, ok := a.(*starExpr); ok {
			args = append(args, l.spread(s)...)
			continue
		}
		args = append(args, l.expr(a))
	}
	var kws []kwValue
	seen := map[string]bool{}
	for _, k := range e.kws {
		if k.name == "**" {
			l.fail(k.pos, "**keywords in a call are only supported in constructors")
		}
		if seen[k.name] {
			l.fail(k.pos, "keyword argument '%s' is specified twice", short(k.name))
		}
		seen[k.name] = true
		kws = append(kws, kwValue{k.name, k.pos, l.expr(k.x)})
	}
	return args, kws
}

// methodCall lowers x.name(…) where x is a run-time value or a module.
func (l *lowering) methodCall(e *callExpr, a *attrExpr) (value, bool) {
	if c, ok := a.x.(*callExpr); ok {
		if n, ok := c.fn.(*nameExpr); ok && n.name == "super" {
			return l.superCall(e, a), true
		}
	}
	x := l.expr(a.x)
	switch x := x.(type) {
	case *torchV:
		fn := l.namespace(x.name+"."+a.name, a.pos)
		if t, ok := fn.(*torchV); ok && t.name == "torch.jit.annotate" && len(e.args) == 2 {
			return l.typed(e.args[1], l.annotation(e.args[0])), true
		}
		args, kws := l.args(e)
		l.at(e.pos)
		return l.apply(fn, args, kws, e), true
	case *module:
		l.at(a.pos)
		if fn := x.method(l.file, a.name); fn != nil {
			args, kws := l.args(e)
			l.at(e.pos)
			return l.inline(fn, x, args, kws, e.pos), true
		}
		if v, ok := l.moduleCall(x, a, e); ok {
			return v, true
		}
		fn := l.moduleAttr(x, a)
		args, kws := l.args(e)
		l.at(e.pos)
		return l.apply(fn, args, kws, e), true
	case *refV, *scalarV, *tupleV:
		args, kws := l.args(e)
		l.at(e.pos)
		return l.method(x, a, args, kws, e.pos), true
	case *classV:
		if fn := x.def.methods[a.name]; fn != nil {
			args, kws := l.args(e)
			l.at(e.pos)
			return l.inline(fn, nil, args, kws, e.pos), true
		}
		if v := l.classAttr(x.def, a.name); v != nil {
			args, kws := l.args(e)
			return l.apply(v, args, kws, e), true
		}
		l.fail(a.pos, "class '%s' has no attribute '%s'", short(x.def.name), short(a.name))
	}
	l.fail(a.pos, "'%s' object has no attribute or method '%s'", describe(x), short(a.name))
	return nil, true
}

func (l *lowering) method(x value, a *attrExpr, args []value, kws []kwValue, p Pos) value {
	switch x := x.(type) {
	case *refV:
		switch x.t.Kind {
		case ir.KTensor:
			return l.tensorMethod(x, a.name, args, kws, p)
		case ir.KList:
			return l.listMethod(x, a.name, args, kws, p)
		case ir.KDict:
			return l.dictMethod(x, a.name, args, p)
		}
		l.fail(a.pos, "'%s' object has no attribute or method '%s': the value may be None, check that it 'is not None' first", typeName(x.t), short(a.name))
	case *scalarV:
		if x.t.Kind == ir.KString {
			return l.stringMethod(x, a.name, args, kws, p)
		}
	case *tupleV:
		switch a.name {
		case "index", "count":
			if len(args) == 1 {
				return l.listMethod(l.listOf(x.elems, nil).(*refV), a.name, args, kws, p)
			}
		}
	}
	l.fail(a.pos, "'%s' object has no attribute or method '%s'", describe(x), short(a.name))
	return nil
}

// apply calls a value.
func (l *lowering) apply(fn value, args []value, kws []kwValue, e *callExpr) value {
	switch fn := fn.(type) {
	case *funcV:
		return l.inline(fn.def, fn.self, args, kws, e.pos)
	case *builtinV:
		return l.builtin(fn.name, args, kws, e)
	case *torchV:
		return l.torchCall(fn.name, args, kws, e)
	case *module:
		return l.callModule(fn, args, kws, e.pos)
	case *classV:
		return l.construct(fn.def, args, kws, e.pos)
	}
	l.fail(e.pos, "a value of type %s cannot be called: it is not a function", describe(fn))
	return nil
}

// construct makes a NamedTuple.
func (l *lowering) construct(c *classDef, args []value, kws []kwValue, p Pos) value {
	if !c.isNamedTuple() {
		l.fail(p, "a module such as '%s' can only be constructed in __init__, not in a scripted function", short(c.name))
	}
	def := &funcDef{node: c.node, name: c.name}
	for _, f := range c.fields {
		n, ok := f.targets[0].(*nameExpr)
		if !ok || f.typ == nil {
			l.fail(f.pos, "a field of a NamedTuple is written name: type")
		}
		def.params = append(def.params, param{name: n.name, pos: f.pos, typ: f.typ, deflt: f.value})
	}
	bound := l.bindArgs(def, false, args, kws, p)
	t := l.tuple(nil)
	for i, prm := range def.params {
		v := l.coerce(bound[i], l.annotation(prm.typ), p, fmt.Sprintf("%s() field '%s'", short(c.name), short(prm.name)))
		t.elems, t.names = append(t.elems, v), append(t.names, prm.name)
	}
	out := l.tuple(t.elems)
	out.names = t.names
	return out
}

// inline lowers a call of a function of the script in place.
func (l *lowering) inline(def *funcDef, self *module, args []value, kws []kwValue, p Pos) value {
	if def.decorated("staticmethod") {
		self = nil
	}
	unused := l.checkDecorators(def)
	f := &frame{parent: l.frame, def: def, self: self, vars: map[string]value{}, declared: map[string]ir.Type{}, gone: map[string]string{},
		key: fmt.Sprintf("%s>%d:%d", l.frame.key, p.Line, p.Col), depth: l.frame.depth + 1}
	for c := l.frame; c != nil; c = c.parent {
		if c.def == def && c.self == self {
			l.fail(p, "function '%s' is called recursively: recursion is not supported", short(def.name))
		}
	}
	if f.depth > maxCalls {
		l.fail(p, "calls are nested more than %d deep", maxCalls)
	}
	bound := l.bindArgs(def, self != nil, args, kws, p)
	params := def.params
	if self != nil {
		f.vars[params[0].name] = self
		params = params[1:]
	}
	for i, prm := range params {
		f.vars[prm.name] = l.inFile(def.file, func() value { return l.argument(def, prm, bound[i], p) })
	}
	caller := l.frame
	f.call, f.file = p, l.file
	l.frame = f
	l.file = def.file
	if def.ret != nil {
		t := l.annotation(def.ret)
		f.ret = &t
	}
	noGrad := l.noGrad
	if unused {
		l.do("raise", l.constant("RuntimeError"), l.constant("'"+short(def.name)+"' is marked with @torch.jit.unused: it cannot be called in a script"))
	} else {
		l.finish(def.body)
	}
	l.noGrad = noGrad
	l.frame, l.file = caller, f.file
	l.at(p)
	ret, ok := f.vars["$ret"]
	if !ok { // every path raises
		if f.ret == nil && unused {
			return l.dummy(ir.AnyTensor)
		}
		if f.ret == nil {
			return l.none()
		}
		return l.dummy(*f.ret)
	}
	return ret
}

// inFile runs f where names and annotations are those of another file; diagnostics stay with the calling one.
func (l *lowering) inFile(file *File, f func() value) value {
	if file == l.file || file == nil {
		return f()
	}
	old := l.names
	l.names = file
	v := f()
	l.names = old
	return v
}

// checkDecorators refuses unknown decorators and reports whether the function is marked as unused: calling it is an error when it runs.
func (l *lowering) checkDecorators(def *funcDef) (unused bool) {
	for _, d := range def.decorators {
		if c, ok := d.(*callExpr); ok {
			d = c.fn
		}
		name := dottedName(d)
		if path, ok := def.file.dotted(d); ok {
			name = path
		}
		switch name {
		case "torch.jit.unused":
			unused = true
		case "torch.jit.ignore", "torch.jit.script", "torch.jit.export", "torch.jit.script_method", "staticmethod", "torch.no_grad", "property":
		default:
			l.fail(d.at(), "unknown decorator '%s' on function '%s'", short(name), short(def.name))
		}
	}
	return unused
}

func dottedName(e expr) string {
	switch e := e.(type) {
	case *nameExpr:
		return e.name
	case *attrExpr:
		return dottedName(e.x) + "." + e.name
	}
	return "?"
}

// argument checks an argument against its parameter's annotation; no annotation means Tensor.
func (l *lowering) argument(def *funcDef, prm param, v value, p Pos) value {
	if _, isModule := v.(*module); isModule {
		return v
	}
	what := fmt.Sprintf("%s(): argument '%s'", short(def.name), short(prm.name))
	if prm.typ == nil {
		if _, ok := typeOf(v); !ok {
			return v
		}
		return l.coerce(v, ir.AnyTensor, p, what)
	}
	t := l.annotation(prm.typ)
	if r, ok := isTensor(v); ok && t.Kind == ir.KFloat {
		return scalarOf(l.op("item_float", l.read(r)))
	}
	return l.coerce(v, t, p, what)
}

// bindArgs gives one value per parameter (without self).
func (l *lowering) bindArgs(def *funcDef, isMethod bool, args []value, kws []kwValue, p Pos) []value {
	params := def.params
	for _, prm := range params {
		if prm.star != "" {
			l.fail(prm.pos, "a parameter %s%s is only supported in constructors: functions take a fixed number of arguments", prm.star, short(prm.name))
		}
	}
	if isMethod {
		if len(params) == 0 {
			l.fail(def.pos, "method '%s' needs a parameter self", short(def.name))
		}
		params = params[1:]
	}
	out := make([]value, len(params))
	positional := 0
	for _, prm := range params {
		if !prm.kwOnly {
			positional++
		}
	}
	if len(args) > positional {
		l.fail(p, "%s() takes at most %d positional arguments but %d were given: too many arguments", short(def.name), positional, len(args))
	}
	copy(out, args)
	for _, k := range kws {
		i := -1
		for n, prm := range params {
			if prm.name == k.name {
				i = n
			}
		}
		if i < 0 {
			l.fail(k.pos, "%s() got an unexpected keyword argument '%s': unknown keyword", short(def.name), short(k.name))
		}
		if out[i] != nil {
			l.fail(k.pos, "%s() got multiple values for argument '%s': it is specified twice", short(def.name), short(k.name))
		}
		out[i] = k.v
	}
	for i, prm := range params {
		if out[i] != nil {
			continue
		}
		if prm.deflt == nil {
			l.fail(p, "%s() is missing a value for argument '%s'", short(def.name), short(prm.name))
		}
		switch prm.deflt.(type) {
		case *listExpr, *dictExpr:
			l.mutableDefault(def, prm)
		}
		out[i] = l.defaultValue(def, prm)
	}
	return out
}

// mutableDefault refuses a list or dict as a default: all calls would share it.
func (l *lowering) mutableDefault(def *funcDef, prm param) {
	if def.file != prelude() {
		l.fail(prm.deflt.at(), "%s(): the default of '%s' is mutable, which is not supported: make it a tuple, or None and an Optional", short(def.name), short(prm.name))
	}
}

// defaultValue lowers a parameter's default, outside any function.
func (l *lowering) defaultValue(def *funcDef, prm param) value {
	caller, file := l.frame, l.file
	l.frame = &frame{parent: caller, def: def, vars: map[string]value{}, declared: map[string]ir.Type{}, gone: map[string]string{}, key: caller.key + ">default", depth: caller.depth,
		call: l.pos, file: file}
	if def.file != nil {
		l.file = def.file
	}
	var v value
	if prm.typ != nil {
		v = l.typed(prm.deflt, l.annotation(prm.typ))
	} else {
		v = l.expr(prm.deflt)
	}
	l.frame, l.file = caller, file
	return v
}
