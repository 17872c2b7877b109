package script

import (
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// The evaluator of constructors: plain Python on numbers, strings, lists and modules, run while a model is loaded. What computes
// with tensors is lowered like a script and run at once by the reference evaluator.
//
// Values are nil, bool, int64, float64, string, dtype.DType and the types below.
type (
	pyList  struct{ elems []any }
	pyTuple []any
	pyDict  struct{ keys, values []any }
	pyFunc  struct {
		def  *funcDef
		self *module
		cls  *pyClass // of a class method
	}
	pyClass struct{ def *classDef }
	// pyName is a namespace, function or layer by its dotted path, or a builtin.
	pyName string
	// pyMethod is a method of a value.
	pyMethod struct {
		x    any
		name string
	}
)

const (
	maxSteps   = 5_000_000 // statements and calls that constructors may run
	maxModules = 100_000
)

// pyEval runs constructors.
type pyEval struct {
	steps, modules int
	depth          int
}

// pyFrame is one call.
type pyFrame struct {
	ev   *pyEval
	file *File
	def  *funcDef
	self *module
	vars map[string]any
	ret  any
	pos  Pos
	up   *pyFrame
}

// flow says how a statement ended.
type flow uint8

const (
	flowNext flow = iota
	flowBreak
	flowContinue
	flowReturn
)

// construct makes the entry's module; call gives the constructor's arguments.
func (f *File) construct(c *classDef, call *callExpr) *module {
	ev := &pyEval{}
	fr := &pyFrame{ev: ev, file: f, vars: map[string]any{}, pos: c.pos}
	var args []any
	kws := map[string]any{}
	if call != nil {
		file := f
		fr.file = &File{src: newSource("--entry", ""), funcs: f.funcs, classes: f.classes, consts: f.consts, imports: f.imports}
		for _, a := range call.args {
			args = append(args, fr.eval(a))
		}
		for _, k := range call.kws {
			kws[k.name] = fr.eval(k.x)
		}
		fr.file = file
	}
	return fr.newObject(c, args, kws)
}

func (fr *pyFrame) fail(p Pos, format string, args ...any) {
	file := fr.file
	for f := fr; f.up != nil && file == prelude(); f = f.up {
		file, p = f.up.file, f.pos
	}
	panic(file.src.errorf(p, format, args...))
}

func (fr *pyFrame) step(p Pos) {
	if fr.ev.steps++; fr.ev.steps > maxSteps {
		fr.fail(p, "the constructor runs too long: more than %d steps", maxSteps)
	}
}

func (fr *pyFrame) newObject(c *classDef, args []any, kws map[string]any) *module {
	if fr.ev.modules++; fr.ev.modules > maxModules {
		fr.fail(fr.pos, "the model has more than %d modules", maxModules)
	}
	m := newModule(c.name)
	m.def, m.kind = c, c.kind(0)
	if init := c.method("__init__"); init != nil {
		fr.call(init, m, args, kws, fr.pos)
	} else if m.kind != "" {
		fr.fill(m, args, fr.pos)
	} else if len(args)+len(kws) > 0 {
		fr.fail(fr.pos, "%s() takes no arguments", short(c.name))
	}
	return m
}

// call runs a function or method.
func (fr *pyFrame) call(def *funcDef, self *module, args []any, kws map[string]any, p Pos) any {
	if fr.ev.depth++; fr.ev.depth > maxCalls {
		fr.fail(p, "calls are nested more than %d deep: recursion is not supported", maxCalls)
	}
	defer func() { fr.ev.depth-- }()
	inner := &pyFrame{ev: fr.ev, file: def.file, def: def, self: self, vars: map[string]any{}, pos: p, up: fr}
	params := def.params
	if self != nil {
		if len(params) == 0 {
			fr.fail(p, "method '%s' needs a parameter self", short(def.name))
		}
		inner.vars[params[0].name] = self
		params = params[1:]
	}
	inner.bind(params, args, kws)
	inner.block(def.body)
	return inner.ret
}

// bind gives the parameters of a call their values.
func (fr *pyFrame) bind(params []param, args []any, kws map[string]any) {
	def, p, inner := fr.def, fr.pos, fr
	fr = fr.up
	positional, rest := 0, map[string]any{}
	for k, v := range kws {
		rest[k] = v
	}
	takesAll, takesNames := false, false
	for _, prm := range params {
		if !prm.kwOnly {
			positional++
		}
		takesAll = takesAll || prm.star == "*"
		takesNames = takesNames || prm.star == "**"
		delete(rest, prm.name)
	}
	if len(args) > positional && !takesAll {
		fr.fail(p, "%s() takes at most %d arguments but %d were given: too many arguments", fr.nameOf(def), positional, len(args))
	}
	names := map[string]bool{}
	for name := range rest {
		names[name] = true
	}
	extra := &pyDict{}
	for _, name := range sortedNames(names) {
		if !takesNames {
			fr.fail(p, "%s() got an unexpected keyword argument '%s'", fr.nameOf(def), short(name))
		}
		extra.set(name, rest[name])
	}
	for i, prm := range params {
		v, given := kws[prm.name]
		switch {
		case prm.star == "*":
			v = pyTuple(args[min(positional, len(args)):])
		case prm.star == "**":
			v = extra
		case i < min(positional, len(args)) && given:
			fr.fail(p, "%s() got multiple values for argument '%s'", fr.nameOf(def), short(prm.name))
		case i < min(positional, len(args)):
			v = args[i]
		case !given && prm.deflt == nil:
			fr.fail(p, "%s() is missing a value for argument '%s'", fr.nameOf(def), short(prm.name))
		case !given:
			v = inner.eval(prm.deflt)
		}
		inner.vars[prm.name] = v
	}
}

func (fr *pyFrame) nameOf(def *funcDef) string {
	if def.name == "__init__" && def.owner != nil {
		return short(def.owner.name)
	}
	return short(def.name)
}

func (fr *pyFrame) block(stmts []stmt) flow {
	for _, s := range stmts {
		fr.step(s.at())
		if f := fr.stmt(s); f != flowNext {
			return f
		}
	}
	return flowNext
}

func (fr *pyFrame) stmt(s stmt) flow {
	switch s := s.(type) {
	case *passStmt:
	case *exprStmt:
		if _, doc := s.x.(*strExpr); !doc {
			fr.eval(s.x)
		}
	case *assignStmt:
		if s.value != nil {
			v := fr.eval(s.value)
			for _, t := range s.targets {
				fr.assign(t, v)
			}
		}
	case *augStmt:
		fr.augmented(s)
	case *ifStmt:
		if fr.truth(fr.eval(s.cond)) {
			return fr.block(s.then)
		}
		return fr.block(s.els)
	case *whileStmt:
		for fr.truth(fr.eval(s.cond)) {
			fr.step(s.pos)
			if f := fr.block(s.body); f == flowBreak {
				break
			} else if f == flowReturn {
				return f
			}
		}
	case *forStmt:
		for _, v := range fr.elements(fr.eval(s.iter), s.iter.at()) {
			fr.step(s.pos)
			fr.assign(s.target, v)
			if f := fr.block(s.body); f == flowBreak {
				break
			} else if f == flowReturn {
				return f
			}
		}
	case *breakStmt:
		return flowBreak
	case *continueStmt:
		return flowContinue
	case *returnStmt:
		if s.x != nil {
			fr.ret = fr.eval(s.x)
		}
		return flowReturn
	case *assertStmt:
		if !fr.truth(fr.eval(s.cond)) {
			msg := ""
			if s.msg != nil {
				msg = ": " + pyStr(fr.eval(s.msg))
			}
			fr.fail(s.pos, "AssertionError%s", msg)
		}
	case *raiseStmt:
		fr.raise(s)
	case *withStmt:
		return fr.block(s.body)
	case *delStmt:
		for _, t := range s.targets {
			if n, ok := t.(*nameExpr); ok {
				delete(fr.vars, n.name)
			}
		}
	default:
		fr.fail(s.at(), "this statement is not supported in a constructor")
	}
	return flowNext
}

func (fr *pyFrame) raise(s *raiseStmt) {
	if c, ok := s.x.(*callExpr); ok {
		msg := ""
		if len(c.args) > 0 {
			msg = ": " + pyStr(fr.eval(c.args[0]))
		}
		fr.fail(s.pos, "%s%s", dottedName(c.fn), msg)
	}
	fr.fail(s.pos, "the constructor raised an exception")
}

func (fr *pyFrame) assign(t expr, v any) {
	switch t := t.(type) {
	case *nameExpr:
		fr.vars[t.name] = v
	case *attrExpr:
		switch x := fr.eval(t.x).(type) {
		case *module:
			x.set(t.name, v)
		case *weight:
			switch o, isTensor := v.(*weight); {
			case t.name == "requires_grad":
				x.frozen = !fr.truth(v)
			case t.name == "data" && isTensor:
				x.shape, x.dtype, x.init, x.value = o.shape, o.dtype, o.init, o.value
			default:
				fr.fail(t.pos, "attribute '%s' of a tensor cannot be set", short(t.name))
			}
		default:
			fr.fail(t.pos, "cannot set attribute '%s' here", short(t.name))
		}
	case *tupleExpr:
		fr.unpack(t.elems, v, t.pos)
	case *listExpr:
		fr.unpack(t.elems, v, t.pos)
	case *indexExpr:
		fr.setItem(t, v)
	}
}

func (fr *pyFrame) unpack(targets []expr, v any, p Pos) {
	elems := fr.elements(v, p)
	if len(elems) != len(targets) {
		fr.fail(p, "cannot unpack %d values into %d", len(elems), len(targets))
	}
	for i, t := range targets {
		fr.assign(t, elems[i])
	}
}

func (fr *pyFrame) setItem(t *indexExpr, v any) {
	switch x := fr.eval(t.x).(type) {
	case *pyList:
		if i, ok := fr.eval(t.subs[0]).(int64); ok {
			if i < 0 {
				i += int64(len(x.elems))
			}
			if i >= 0 && i < int64(len(x.elems)) {
				x.elems[i] = v
				return
			}
		}
		fr.fail(t.pos, "list index out of range")
	case *pyDict:
		x.set(fr.eval(t.subs[0]), v)
	case *weight:
		const name = "$value"
		fr.vars[name] = v
		s := &assignStmt{node: node{t.pos}, targets: []expr{t}, value: &nameExpr{node{t.pos}, name}}
		root := rootName(t)
		fr.tensorStmt(s, root, x)
		delete(fr.vars, name)
	case *module:
		switch k := fr.eval(t.subs[0]).(type) {
		case string:
			if x.kind == "ModuleDict" && x.addChild(k, v) {
				return
			}
			if w, ok := v.(*weight); ok && x.kind == "ParameterDict" {
				x.addWeight(k, w)
				return
			}
		case int64:
			if k < 0 {
				k += int64(len(x.items))
			}
			if c, ok := v.(*module); ok && k >= 0 && k < int64(len(x.items)) {
				x.items[k] = c
				return
			}
		}
		fr.fail(t.pos, "cannot assign to an element of a %s here", x.class)
	default:
		fr.fail(t.pos, "this does not support item assignment")
	}
}

func rootName(e expr) string {
	switch e := e.(type) {
	case *nameExpr:
		return e.name
	case *indexExpr:
		return rootName(e.x)
	}
	return ""
}

func (d *pyDict) set(k, v any) {
	for i := range d.keys {
		if pyEqual(d.keys[i], k) {
			d.values[i] = v
			return
		}
	}
	d.keys, d.values = append(d.keys, k), append(d.values, v)
}

// addWeight puts a parameter into a ParameterList or ParameterDict.
func (m *module) addWeight(key string, w *weight) {
	w.param = true
	for i, k := range m.keys {
		if k == key {
			m.weights[i] = w
			return
		}
	}
	m.keys, m.weights = append(m.keys, key), append(m.weights, w)
}

func (m *module) addChild(key string, v any) bool {
	c, ok := v.(*module)
	if ok {
		for i, k := range m.keys {
			if k == key {
				m.items[i] = c
				return true
			}
		}
		m.keys, m.items = append(m.keys, key), append(m.items, c)
	}
	return ok
}

func (fr *pyFrame) augmented(s *augStmt) {
	x, y := fr.eval(s.target), fr.eval(s.value)
	if l, ok := x.(*pyList); ok && s.op == "+" {
		l.elems = append(l.elems, fr.elements(y, s.pos)...)
		return
	}
	if m, ok := x.(*module); ok && s.op == "+" && m.kind == "ModuleList" {
		fr.extend(m, y, s.pos)
		return
	}
	fr.assign(s.target, fr.binary(s.op, x, y, s))
}

func (fr *pyFrame) extend(m *module, v any, p Pos) {
	if m.kind == "ParameterList" {
		for _, e := range fr.elements(v, p) {
			w, ok := e.(*weight)
			if !ok {
				fr.fail(p, "a ParameterList holds parameters only")
			}
			m.addWeight(strconv.Itoa(len(m.weights)), w)
		}
		return
	}
	for _, e := range fr.elements(v, p) {
		if !m.addChild(strconv.Itoa(len(m.items)), e) {
			fr.fail(p, "a %s holds modules only", m.class)
		}
	}
}

// elements lists what an iterable gives.
func (fr *pyFrame) elements(v any, p Pos) []any {
	switch v := v.(type) {
	case *pyList:
		return append([]any{}, v.elems...)
	case pyTuple:
		return v
	case *pyDict:
		return v.keys
	case string:
		var out []any
		for _, r := range v {
			out = append(out, string(r))
		}
		return out
	case *module:
		if v.kind == "ModuleDict" || v.kind == "ParameterDict" {
			var out []any
			for _, k := range v.keys {
				out = append(out, k)
			}
			return out
		}
		if v.container() {
			var out []any
			for _, w := range v.weights {
				out = append(out, w)
			}
			for _, c := range v.items {
				out = append(out, c)
			}
			return out
		}
	}
	fr.fail(p, "a value of type %s is not iterable", pyType(v))
	return nil
}

func pyType(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *pyList:
		return "list"
	case pyTuple:
		return "tuple"
	case *pyDict:
		return "dict"
	case *module:
		return v.class
	case *weight:
		return "Tensor"
	case dtype.DType:
		return "dtype"
	}
	return "function"
}

func pyStr(v any) string {
	switch v := v.(type) {
	case nil, bool, int64, float64, string, dtype.DType:
		return ir.PyString(v)
	case pyTuple:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = pyStr(e)
		}
		return "(" + strings.Join(parts, ", ") + ")"
	}
	return "<" + pyType(v) + ">"
}

func (fr *pyFrame) truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *pyList:
		return len(v.elems) > 0
	case pyTuple:
		return len(v) > 0
	case *pyDict:
		return len(v.keys) > 0
	case *module:
		return !v.container() || len(v.items)+len(v.weights) > 0
	}
	return true
}
