package script

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/passes"
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
	m.def = c
	if init := c.method("__init__"); init != nil {
		fr.call(init, m, args, kws, fr.pos)
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
	if len(args) > len(params) {
		fr.fail(p, "%s() takes at most %d arguments but %d were given: too many arguments", fr.nameOf(def), len(params), len(args))
	}
	for name := range kws {
		if !hasParam(params, name) {
			fr.fail(p, "%s() got an unexpected keyword argument '%s'", fr.nameOf(def), short(name))
		}
	}
	for i, prm := range params {
		v, given := kws[prm.name]
		switch {
		case i < len(args) && given:
			fr.fail(p, "%s() got multiple values for argument '%s'", fr.nameOf(def), short(prm.name))
		case i < len(args):
			v = args[i]
		case !given && prm.deflt == nil:
			fr.fail(p, "%s() is missing a value for argument '%s'", fr.nameOf(def), short(prm.name))
		case !given:
			v = inner.eval(prm.deflt)
		}
		inner.vars[prm.name] = v
	}
	inner.block(def.body)
	return inner.ret
}

func (fr *pyFrame) nameOf(def *funcDef) string {
	if def.name == "__init__" && def.owner != nil {
		return short(def.owner.name)
	}
	return short(def.name)
}

func hasParam(params []param, name string) bool {
	for _, p := range params {
		if p.name == name {
			return true
		}
	}
	return false
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
			if t.name != "requires_grad" && t.name != "data" {
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
		if k, ok := fr.eval(t.subs[0]).(string); ok && x.class == "ModuleDict" {
			x.addChild(k, v)
			return
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
		if d.keys[i] == k {
			d.values[i] = v
			return
		}
	}
	d.keys, d.values = append(d.keys, k), append(d.values, v)
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
	if m, ok := x.(*module); ok && s.op == "+" && m.class == "ModuleList" {
		fr.extend(m, y, s.pos)
		return
	}
	fr.assign(s.target, fr.binary(s.op, x, y, s))
}

func (fr *pyFrame) extend(m *module, v any, p Pos) {
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
		if v.class == "ModuleDict" {
			var out []any
			for _, k := range v.keys {
				out = append(out, k)
			}
			return out
		}
		if v.container() {
			var out []any
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
		return !v.container() || len(v.items) > 0
	}
	return true
}

// eval evaluates an expression.
func (fr *pyFrame) eval(e expr) any {
	fr.step(e.at())
	switch e := e.(type) {
	case *nameExpr:
		return fr.name(e)
	case *intExpr:
		return e.v
	case *floatExpr:
		return e.v
	case *strExpr:
		return e.v
	case *fstrExpr:
		var b strings.Builder
		for i, part := range e.parts {
			b.WriteString(fr.format(fr.eval(part), e.specs[i], e.pos))
		}
		return b.String()
	case *constExpr:
		return map[string]any{"True": true, "False": false}[e.name]
	case *attrExpr:
		return fr.attr(fr.eval(e.x), e)
	case *callExpr:
		return fr.callExpr(e)
	case *indexExpr:
		return fr.index(e)
	case *unaryExpr:
		return fr.unary(e)
	case *binaryExpr:
		x := fr.eval(e.x)
		return fr.binary(e.op, x, fr.eval(e.y), e)
	case *boolExpr:
		var v any
		for _, t := range e.terms {
			if v = fr.eval(t); fr.truth(v) == (e.op == "or") {
				return v
			}
		}
		return v
	case *compareExpr:
		x := fr.eval(e.first)
		for i, op := range e.ops {
			y := fr.eval(e.rest[i])
			if !fr.compare(op, x, y, e.pos) {
				return false
			}
			x = y
		}
		return true
	case *ifExpr:
		if fr.truth(fr.eval(e.cond)) {
			return fr.eval(e.then)
		}
		return fr.eval(e.els)
	case *listExpr:
		return &pyList{fr.evalAll(e.elems)}
	case *tupleExpr:
		return pyTuple(fr.evalAll(e.elems))
	case *dictExpr:
		d := &pyDict{}
		for i := range e.keys {
			d.set(fr.eval(e.keys[i]), fr.eval(e.values[i]))
		}
		return d
	case *compExpr:
		return fr.comprehension(e)
	}
	fr.fail(e.at(), "this expression is not supported in a constructor")
	return nil
}

func (fr *pyFrame) format(v any, spec string, p Pos) string {
	if f, ok := v.(float64); ok && strings.HasPrefix(spec, ".") && strings.HasSuffix(spec, "f") {
		if n, err := strconv.Atoi(spec[1 : len(spec)-1]); err == nil && n < 40 {
			return strconv.FormatFloat(f, 'f', n, 64)
		}
	}
	return pyStr(v)
}

func (fr *pyFrame) evalAll(es []expr) []any {
	out := make([]any, 0, len(es))
	for _, e := range es {
		if s, ok := e.(*starExpr); ok {
			out = append(out, fr.elements(fr.eval(s.x), s.pos)...)
			continue
		}
		out = append(out, fr.eval(e))
	}
	return out
}

func (fr *pyFrame) comprehension(e *compExpr) any {
	var out []any
	d := &pyDict{}
	saved := map[string]any{}
	names := map[string]bool{}
	collectTargets(e.target, names)
	for n := range names {
		if v, ok := fr.vars[n]; ok {
			saved[n] = v
		}
	}
	for _, v := range fr.elements(fr.eval(e.iter), e.iter.at()) {
		fr.assign(e.target, v)
		keep := true
		for _, c := range e.conds {
			keep = keep && fr.truth(fr.eval(c))
		}
		switch {
		case !keep:
		case e.value != nil:
			d.set(fr.eval(e.elem), fr.eval(e.value))
		default:
			out = append(out, fr.eval(e.elem))
		}
	}
	for n := range names {
		delete(fr.vars, n)
		if v, ok := saved[n]; ok {
			fr.vars[n] = v
		}
	}
	if e.value != nil {
		return d
	}
	return &pyList{out}
}

func (fr *pyFrame) name(e *nameExpr) any {
	if v, ok := fr.vars[e.name]; ok {
		return v
	}
	f := fr.file
	if d := f.funcs[e.name]; d != nil {
		return &pyFunc{def: d}
	}
	if c := f.classes[e.name]; c != nil {
		return &pyClass{c}
	}
	if c := f.consts[e.name]; c != nil {
		return fr.eval(c)
	}
	if path, ok := f.imported(e.name); ok {
		return fr.path(path, e.pos)
	}
	if f == prelude() && e.name[0] == '_' {
		return pyName(e.name)
	}
	switch e.name {
	case "range", "len", "enumerate", "zip", "min", "max", "abs", "sum", "int", "float", "bool", "str", "list", "tuple", "dict", "isinstance", "print",
		"round", "sorted", "reversed", "super", "hasattr", "getattr", "setattr", "any", "all", "map", "pow", "divmod", "type", "id", "callable":
		return pyName(e.name)
	}
	fr.fail(e.pos, "name '%s' is not defined", short(e.name))
	return nil
}

// path gives what a dotted name under torch or math is.
func (fr *pyFrame) path(path string, p Pos) any {
	if name, ok := strings.CutPrefix(path, "torch.nn."); ok {
		if c := prelude().classes[name]; c != nil {
			return &pyClass{c}
		}
	}
	if name, ok := strings.CutPrefix(path, "torch."); ok {
		if d, ok := dtypeNames[name]; ok {
			return d
		}
	}
	if name, ok := strings.CutPrefix(path, "math."); ok {
		if v, ok := mathConstants[name]; ok {
			return v
		}
	}
	return pyName(path)
}

func (fr *pyFrame) attr(x any, e *attrExpr) any {
	switch x := x.(type) {
	case pyName:
		return fr.path(string(x)+"."+e.name, e.pos)
	case *module:
		if v, ok := x.attrs[e.name]; ok {
			return v
		}
		if c := x.child(e.name); c != nil {
			return c
		}
		if e.name == "training" {
			return true
		}
		if x.def != nil {
			if d := x.def.method(e.name); d != nil {
				if isProperty(d) {
					return fr.call(d, x, nil, nil, e.pos)
				}
				return &pyFunc{d, x}
			}
			if f := x.def.field(e.name); f != nil {
				return (&pyFrame{ev: fr.ev, file: x.def.file, vars: map[string]any{}, up: fr, pos: e.pos}).eval(f.value)
			}
		}
		switch e.name {
		case "append", "extend", "insert", "register_buffer", "register_parameter", "add_module", "register_module", "apply", "modules", "parameters",
			"children", "named_modules", "named_children", "named_parameters", "eval", "train", "to", "float", "items", "keys", "values", "update", "requires_grad_", "double", "half":
			return &pyMethod{x, e.name}
		}
		fr.fail(e.pos, "module '%s' has no attribute '%s'", x.class, short(e.name))
	case *pyClass:
		if f := x.def.field(e.name); f != nil {
			return (&pyFrame{ev: fr.ev, file: x.def.file, vars: map[string]any{}, up: fr, pos: e.pos}).eval(f.value)
		}
		if d := x.def.method(e.name); d != nil {
			return &pyFunc{def: d}
		}
		if e.name == "__name__" {
			return x.def.name
		}
	case *weight:
		switch e.name {
		case "shape":
			return pyInts(x.shape)
		case "dtype":
			return x.dtype
		case "data":
			return x
		case "device":
			return "cpu"
		case "requires_grad":
			return x.param
		}
		return &pyMethod{x, e.name}
	case *pyList, *pyDict, string, pyTuple:
		return &pyMethod{x, e.name}
	}
	fr.fail(e.pos, "a value of type %s has no attribute '%s'", pyType(x), short(e.name))
	return nil
}

func pyInts(shape []int) pyTuple {
	out := make(pyTuple, len(shape))
	for i, n := range shape {
		out[i] = int64(n)
	}
	return out
}

func (fr *pyFrame) unary(e *unaryExpr) any {
	x := fr.eval(e.x)
	if e.op == "not" {
		return !fr.truth(x)
	}
	switch v := x.(type) {
	case *weight:
		return fr.tensorExpr(e)
	case bool:
		x = map[bool]int64{true: 1}[v]
	}
	switch v := x.(type) {
	case int64:
		switch e.op {
		case "-":
			return -v
		case "~":
			return ^v
		}
		return v
	case float64:
		if e.op == "-" {
			return -v
		}
		return v
	}
	fr.fail(e.pos, "bad operand type for unary %s: %s", e.op, pyType(x))
	return nil
}

func isPyNumber(v any) bool {
	switch v.(type) {
	case int64, float64, bool:
		return true
	}
	return false
}

// binary applies an operator; at is the expression, for tensors and messages.
func (fr *pyFrame) binary(op string, x, y any, at interface{ at() Pos }) any {
	p := at.at()
	if isPyNumber(x) && isPyNumber(y) {
		name := scalarOps[op]
		if op == "**" {
			if _, isInt := x.(int64); isInt {
				if k, ok := y.(int64); ok && k < 0 {
					x, y = float64(x.(int64)), float64(k)
				}
			}
		}
		if o := ir.LookupOp(name); o != nil {
			rs, err := o.Eval(&ir.EvalCall{Node: &ir.Node{Op: o}, Args: []ir.Datum{x, y}})
			if err != nil {
				fr.fail(p, "%s", err)
			}
			return rs[0]
		}
	}
	wx, tx := x.(*weight)
	_, ty := y.(*weight)
	if tx || ty {
		if tx && op == "*" && wx.value == nil {
			if s, ok := toFloat(y); ok && scaledInit(wx, s) != nil {
				return scaledInit(wx, s)
			}
		}
		if e, ok := at.(expr); ok {
			return fr.tensorExpr(e)
		}
		if s, ok := at.(*augStmt); ok {
			return fr.tensorExpr(&binaryExpr{node{p}, op, s.target, s.value})
		}
	}
	switch a := x.(type) {
	case string:
		if b, ok := y.(string); ok && op == "+" {
			return a + b
		}
		if op == "%" {
			args := pyTuple{y}
			if t, ok := y.(pyTuple); ok {
				args = t
			}
			out := a
			for _, v := range args {
				for _, verb := range []string{"%d", "%s"} {
					if i := strings.Index(out, verb); i >= 0 {
						out = out[:i] + pyStr(v) + out[i+2:]
						break
					}
				}
			}
			return out
		}
	case *pyList:
		if b, ok := y.(*pyList); ok && op == "+" {
			return &pyList{append(append([]any{}, a.elems...), b.elems...)}
		}
		if n, ok := y.(int64); ok && op == "*" {
			return &pyList{fr.repeat(a.elems, n, p)}
		}
	case pyTuple:
		if b, ok := y.(pyTuple); ok && op == "+" {
			return append(append(pyTuple{}, a...), b...)
		}
		if n, ok := y.(int64); ok && op == "*" {
			return pyTuple(fr.repeat(a, n, p))
		}
	case int64:
		if _, ok := y.(*pyList); ok && op == "*" {
			return fr.binary(op, y, x, at)
		}
		if _, ok := y.(pyTuple); ok && op == "*" {
			return fr.binary(op, y, x, at)
		}
	case *module:
		if b, ok := y.(*module); ok && op == "+" && a.class == "ModuleList" {
			m := newModule("ModuleList")
			fr.extend(m, a, p)
			fr.extend(m, b, p)
			return m
		}
	}
	fr.fail(p, "unsupported operand types for %s: %s and %s", op, pyType(x), pyType(y))
	return nil
}

func (fr *pyFrame) repeat(elems []any, n int64, p Pos) []any {
	if int64(len(elems))*n > 1_000_000 {
		fr.fail(p, "the list is too long")
	}
	var out []any
	for range max(n, 0) {
		out = append(out, elems...)
	}
	return out
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// scaledInit is a random tensor times a number; nil for other tensors.
func scaledInit(w *weight, s float64) *weight {
	kind, arg, _ := strings.Cut(w.init, ":")
	a, err := strconv.ParseFloat(arg, 64)
	if err != nil || kind != "normal" && kind != "uniform" && kind != "value" {
		return nil
	}
	c := *w
	c.param, c.name = false, ""
	c.init = kind + ":" + strconv.FormatFloat(a*s, 'g', -1, 64)
	return &c
}

func (fr *pyFrame) compare(op string, x, y any, p Pos) bool {
	switch op {
	case "is":
		return x == y
	case "is not":
		return x != y
	case "in", "not in":
		found := false
		if s, ok := y.(string); ok {
			part, _ := x.(string)
			found = strings.Contains(s, part)
		} else if m, ok := y.(*module); ok && m.class == "ModuleDict" {
			k, _ := x.(string)
			found = m.child(k) != nil
		} else {
			for _, e := range fr.elements(y, p) {
				found = found || pyEqual(e, x)
			}
		}
		return found == (op == "in")
	case "==":
		return pyEqual(x, y)
	case "!=":
		return !pyEqual(x, y)
	}
	name := map[string]string{"<": "py_lt", "<=": "py_le", ">": "py_gt", ">=": "py_ge"}[op]
	_, sx := x.(string)
	_, sy := y.(string)
	if isPyNumber(x) && isPyNumber(y) || sx && sy {
		o := ir.LookupOp(name)
		rs, err := o.Eval(&ir.EvalCall{Node: &ir.Node{Op: o}, Args: []ir.Datum{x, y}})
		if err == nil {
			return rs[0].(bool)
		}
	}
	fr.fail(p, "'%s' is not supported between %s and %s", op, pyType(x), pyType(y))
	return false
}

func pyEqual(x, y any) bool {
	switch a := x.(type) {
	case *pyList:
		b, ok := y.(*pyList)
		return ok && pyAllEqual(a.elems, b.elems)
	case pyTuple:
		b, ok := y.(pyTuple)
		return ok && pyAllEqual(a, b)
	}
	if isPyNumber(x) && isPyNumber(y) {
		return ir.DatumEqual(x, y)
	}
	if _, ok := y.(pyTuple); ok {
		return false
	}
	return x == y
}

func pyAllEqual(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !pyEqual(a[i], b[i]) {
			return false
		}
	}
	return true
}

func (fr *pyFrame) index(e *indexExpr) any {
	x := fr.eval(e.x)
	if _, ok := x.(*weight); ok {
		return fr.tensorExpr(e)
	}
	if len(e.subs) != 1 {
		fr.fail(e.pos, "this takes one index")
	}
	if s, ok := e.subs[0].(*sliceExpr); ok {
		return fr.slice(x, s)
	}
	i := fr.eval(e.subs[0])
	switch v := x.(type) {
	case *pyDict:
		for k := range v.keys {
			if pyEqual(v.keys[k], i) {
				return v.values[k]
			}
		}
		fr.fail(e.pos, "KeyError: %s", pyStr(i))
	case *module:
		if k, ok := i.(string); ok {
			if c := v.child(k); c != nil {
				return c
			}
		}
	}
	elems := fr.elements(x, e.pos)
	k, ok := i.(int64)
	if !ok {
		fr.fail(e.pos, "an index must be an int, not %s", pyType(i))
	}
	if k < 0 {
		k += int64(len(elems))
	}
	if k < 0 || k >= int64(len(elems)) {
		fr.fail(e.pos, "index %d is out of range for %d elements", i, len(elems))
	}
	return elems[k]
}

func (fr *pyFrame) slice(x any, s *sliceExpr) any {
	elems := fr.elements(x, s.pos)
	n := len(elems)
	bound := func(e expr, deflt int) int {
		if e == nil {
			return deflt
		}
		k, ok := fr.eval(e).(int64)
		if !ok {
			return deflt
		}
		if k < 0 {
			k += int64(n)
		}
		return int(min(max(k, 0), int64(n)))
	}
	step := 1
	if s.step != nil {
		if k, ok := fr.eval(s.step).(int64); ok && k != 0 {
			step = int(k)
		}
	}
	var out []any
	if step > 0 {
		for i := bound(s.lo, 0); i < bound(s.hi, n); i += step {
			out = append(out, elems[i])
		}
	} else {
		for i := min(bound(s.lo, n-1), n-1); i >= 0 && (s.hi == nil || i > bound(s.hi, 0)); i += step {
			out = append(out, elems[i])
		}
	}
	switch x := x.(type) {
	case pyTuple:
		return pyTuple(out)
	case string:
		var b strings.Builder
		for _, e := range out {
			b.WriteString(e.(string))
		}
		return b.String()
	case *module:
		m := newModule(x.class)
		fr.extend(m, &pyList{out}, s.pos)
		return m
	}
	return &pyList{out}
}

// tensorExpr evaluates an expression that computes with tensors: it is lowered and run.
func (fr *pyFrame) tensorExpr(e expr) any {
	out := fr.runLowered(e.at(), e, func(l *lowering) *ir.Value { return l.irOf(l.expr(e)) })
	switch v := out.(type) {
	case *ir.Array:
		return &weight{shape: v.Shape, dtype: v.DType, value: v, init: "value"}
	case int64, float64, bool, string, nil, dtype.DType:
		return v
	case ir.List:
		l := &pyList{}
		for _, x := range v.Elems() {
			if a, ok := x.(*ir.Array); ok {
				l.elems = append(l.elems, &weight{shape: a.Shape, dtype: a.DType, value: a, init: "value"})
				continue
			}
			l.elems = append(l.elems, x)
		}
		return l
	}
	fr.fail(e.at(), "this expression is not supported in a constructor")
	return nil
}

// tensorStmt runs an assignment to a part of the tensor w, which the variable root holds.
func (fr *pyFrame) tensorStmt(s *assignStmt, root string, w *weight) {
	if root == "" {
		fr.fail(s.pos, "assignment to a part of a tensor needs a variable here")
	}
	walk := &tupleExpr{node: s.node, elems: append([]expr{s.value}, s.targets...)}
	out := fr.runLowered(s.pos, walk, func(l *lowering) *ir.Value {
		l.assignment(s)
		return l.irOf(l.frame.vars[root])
	})
	if a, ok := out.(*ir.Array); ok {
		w.value, w.init = a, "value"
	}
}

var resolver = passes.NewResolver()

// runLowered lowers with the frame's variables as constants and runs the result.
func (fr *pyFrame) runLowered(p Pos, e expr, build func(l *lowering) *ir.Value) ir.Datum {
	limit := 100_000
	l := &lowering{file: fr.file, cells: map[*cell]cellState{}, sites: map[string]*cell{}, tagIDs: map[string]int{}, loops: map[string]*loopPlan{}, limit: &limit}
	l.mirror = mirrorPlan{used: map[string]bool{}}
	l.f = ir.NewFunc("constructor")
	l.b = ir.NewBuilder(l.f)
	l.frame = &frame{def: &funcDef{name: "constructor", file: fr.file}, vars: map[string]value{}, declared: map[string]ir.Type{}, gone: map[string]string{}}
	l.at(p)
	names := map[string]bool{}
	collectNames(e, names)
	for _, name := range sortedNames(names) {
		if v, ok := fr.vars[name]; ok {
			l.frame.vars[name] = l.pyValue(v, &attrExpr{node{p}, nil, name})
		}
	}
	out := build(l)
	l.try(func() { l.b.Return(out) })
	ev := &ir.Evaluator{Resolve: resolver.Resolve}
	rs, err := ev.Run(context.Background(), l.f)
	if err != nil {
		fr.fail(p, "%s", err)
	}
	return rs[0]
}

// array is the tensor's value; random ones are zeros here: their values come with the weights.
func (w *weight) array() *ir.Array {
	if w.value != nil {
		return w.value
	}
	fill := 0.0
	if v, ok := strings.CutPrefix(w.init, "value:"); ok {
		fill, _ = strconv.ParseFloat(v, 64)
	}
	a := ir.FromFloats(w.dtype, nil, []float64{fill})
	return a.View(append([]int{}, w.shape...), make([]int, len(w.shape)), 0)
}

func (fr *pyFrame) callExpr(e *callExpr) any {
	if a, ok := e.fn.(*attrExpr); ok {
		if c, ok := a.x.(*callExpr); ok {
			if n, ok := c.fn.(*nameExpr); ok && n.name == "super" {
				return fr.super(a, e)
			}
		}
	}
	fn := fr.eval(e.fn)
	args := fr.evalAll(e.args)
	kws := map[string]any{}
	for _, k := range e.kws {
		kws[k.name] = fr.eval(k.x)
	}
	switch f := fn.(type) {
	case *pyFunc:
		return fr.call(f.def, f.self, args, kws, e.pos)
	case *pyClass:
		fr2 := &pyFrame{ev: fr.ev, file: fr.file, vars: fr.vars, pos: e.pos, up: fr}
		return fr2.newObject(f.def, args, kws)
	case pyName:
		return fr.callName(string(f), args, kws, e)
	case *pyMethod:
		return fr.callMethod(f, args, kws, e)
	case *module:
		return fr.tensorExpr(e)
	}
	fr.fail(e.pos, "a value of type %s cannot be called", pyType(fn))
	return nil
}

func (fr *pyFrame) super(a *attrExpr, e *callExpr) any {
	owner := fr.def
	if owner == nil || owner.owner == nil {
		fr.fail(e.pos, "super() is only supported in a method")
	}
	args := fr.evalAll(e.args)
	kws := map[string]any{}
	for _, k := range e.kws {
		kws[k.name] = fr.eval(k.x)
	}
	for _, p := range owner.owner.parents() {
		if d := p.method(a.name); d != nil {
			return fr.call(d, fr.self, args, kws, e.pos)
		}
	}
	if a.name != "__init__" {
		return fr.callMethod(&pyMethod{fr.self, a.name}, args, kws, e)
	}
	return nil
}

// newTensor is a tensor of a shape that an initialisation describes.
func newTensor(shape []int, d dtype.DType, init string) *weight {
	if d == dtype.Invalid {
		d = dtype.F32
	}
	return &weight{shape: shape, dtype: d, init: init}
}

func (fr *pyFrame) shapeOf(v any, p Pos) []int {
	var out []int
	elems := []any{v}
	if _, ok := v.(int64); !ok {
		elems = fr.elements(v, p)
	}
	n := 1
	for _, e := range elems {
		k, ok := e.(int64)
		if !ok || k < 0 {
			fr.fail(p, "a size must be a non-negative int, not %s", pyStr(e))
		}
		if k > 0 && n > (1<<40)/int(k) {
			fr.fail(p, "the tensor is too large: a shape with %v", append(out, int(k)))
		}
		n *= max(int(k), 1)
		out = append(out, int(k))
	}
	return out
}

// callName calls a builtin or a function of torch or math.
func (fr *pyFrame) callName(name string, args []any, kws map[string]any, e *callExpr) any {
	p := e.pos
	arg := func(i int) any {
		if i < len(args) {
			return args[i]
		}
		fr.fail(p, "%s() is missing an argument", name)
		return nil
	}
	dt, _ := kws["dtype"].(dtype.DType)
	switch name {
	case "_uniform", "_normal", "_full":
		v, _ := toFloat(arg(0))
		kind := map[string]string{"_uniform": "uniform:", "_normal": "normal:", "_full": "value:"}[name]
		if len(args) > 2 {
			dt, _ = args[2].(dtype.DType)
		}
		w := newTensor(fr.shapeOf(arg(1), p), dt, kind+strconv.FormatFloat(v, 'g', -1, 64))
		w.param = true
		return w
	case "_ntuple":
		n, _ := arg(1).(int64)
		switch v := arg(0).(type) {
		case int64, float64:
			return pyTuple(fr.repeat([]any{v}, n, p))
		case *pyList:
			return pyTuple(v.elems)
		}
		return arg(0)
	case "torch.nn.Parameter", "torch.nn.parameter.Parameter":
		w, ok := arg(0).(*weight)
		if !ok {
			fr.fail(p, "nn.Parameter takes a tensor, not %s", pyType(arg(0)))
		}
		c := *w
		c.param, c.buffer, c.name = true, false, ""
		return &c
	case "torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict", "torch.nn.ParameterList":
		return fr.newContainer(name[len("torch.nn."):], args, p)
	case "collections.OrderedDict", "dict":
		return fr.newDict(args, kws, p)
	case "torch.zeros", "torch.ones", "torch.empty", "torch.randn", "torch.rand", "torch.full":
		if w := fr.create(name, args, dt, p); w != nil {
			return w
		}
	case "torch.nn.Module", "torch.manual_seed", "warnings.warn", "print":
		return nil
	}
	if strings.HasPrefix(name, "torch.nn.init.") {
		return fr.initialise(name[len("torch.nn.init."):], args, kws, p)
	}
	if strings.HasPrefix(name, "math.") {
		return fr.mathCall(name[5:], args, p)
	}
	if strings.HasPrefix(name, "torch.") {
		if len(functionOverloads(name)) > 0 {
			return fr.tensorExpr(e)
		}
		fr.fail(p, "'%s' is not known or not supported in a constructor", short(name))
	}
	return fr.builtin(name, args, kws, e)
}

func (fr *pyFrame) create(name string, args []any, dt dtype.DType, p Pos) *weight {
	fill := map[string]string{"torch.zeros": "value:0", "torch.ones": "value:1", "torch.empty": "value:0", "torch.randn": "normal:1", "torch.rand": "uniform01"}[name]
	if name == "torch.full" {
		v, ok := toFloat(args[len(args)-1])
		if !ok || len(args) != 2 {
			return nil
		}
		if _, isInt := args[1].(int64); isInt && dt == dtype.Invalid {
			dt = dtype.I64
		}
		return newTensor(fr.shapeOf(args[0], p), dt, "value:"+strconv.FormatFloat(v, 'g', -1, 64))
	}
	var shape any = pyTuple(args)
	if len(args) == 1 {
		shape = args[0]
	}
	return newTensor(fr.shapeOf(shape, p), dt, fill)
}

func (fr *pyFrame) newContainer(class string, args []any, p Pos) any {
	m := newModule(class)
	var items []any
	switch {
	case class == "Sequential" && len(args) == 1:
		if d, ok := args[0].(*pyDict); ok {
			for i := range d.keys {
				if k, ok := d.keys[i].(string); !ok || !m.addChild(k, d.values[i]) {
					fr.fail(p, "a Sequential of a dict takes names and modules")
				}
			}
			return m
		}
		items = args
	case class == "Sequential":
		items = args
	case len(args) == 0:
	case class == "ModuleDict":
		if d, ok := args[0].(*pyDict); ok {
			for i := range d.keys {
				if k, ok := d.keys[i].(string); !ok || !m.addChild(k, d.values[i]) {
					fr.fail(p, "a ModuleDict takes names and modules")
				}
			}
		}
		return m
	case class == "ParameterList":
		for _, v := range fr.elements(args[0], p) {
			if w, ok := v.(*weight); ok {
				w.param = true
				m.weights = append(m.weights, w)
			}
		}
		return m
	default:
		items = fr.elements(args[0], p)
	}
	fr.extend(m, &pyList{items}, p)
	return m
}

func (fr *pyFrame) newDict(args []any, kws map[string]any, p Pos) any {
	d := &pyDict{}
	if len(args) > 0 {
		if o, ok := args[0].(*pyDict); ok {
			d.keys, d.values = append(d.keys, o.keys...), append(d.values, o.values...)
		} else {
			for _, pair := range fr.elements(args[0], p) {
				kv := fr.elements(pair, p)
				if len(kv) != 2 {
					fr.fail(p, "a dict is made of pairs")
				}
				d.set(kv[0], kv[1])
			}
		}
	}
	names := map[string]bool{}
	for k := range kws {
		names[k] = true
	}
	for _, k := range sortedNames(names) {
		d.set(k, kws[k])
	}
	return d
}

// initialise is a function of torch.nn.init, which changes how a tensor starts.
func (fr *pyFrame) initialise(name string, args []any, kws map[string]any, p Pos) any {
	if len(args) == 0 {
		return nil
	}
	w, ok := args[0].(*weight)
	if !ok {
		return nil
	}
	num := func(i int, key string, deflt float64) float64 {
		v := kws[key]
		if i < len(args) {
			v = args[i]
		}
		if f, ok := toFloat(v); ok {
			return f
		}
		return deflt
	}
	fanIn, fanOut := 1.0, 1.0
	if len(w.shape) > 1 {
		field := 1.0
		for _, n := range w.shape[2:] {
			field *= float64(n)
		}
		fanIn, fanOut = float64(w.shape[1])*field, float64(w.shape[0])*field
	}
	text := func(kind string, v float64) { w.init, w.value = kind+strconv.FormatFloat(v, 'g', -1, 64), nil }
	switch strings.TrimSuffix(name, "_") {
	case "zeros":
		text("value:", 0)
	case "ones":
		text("value:", 1)
	case "constant":
		text("value:", num(1, "val", 0))
	case "normal", "trunc_normal":
		text("normal:", num(2, "std", 1))
	case "uniform":
		text("uniform:", num(2, "b", 1))
	case "xavier_uniform":
		text("uniform:", num(1, "gain", 1)*math.Sqrt(6/(fanIn+fanOut)))
	case "xavier_normal":
		text("normal:", num(1, "gain", 1)*math.Sqrt(2/(fanIn+fanOut)))
	case "kaiming_uniform", "kaiming_normal":
		fan := fanIn
		if kws["mode"] == "fan_out" {
			fan = fanOut
		}
		gain := math.Sqrt2
		if a := num(1, "a", 0); a != 0 {
			gain = math.Sqrt(2 / (1 + a*a))
		}
		if strings.HasPrefix(name, "kaiming_n") {
			text("normal:", gain/math.Sqrt(fan))
		} else {
			text("uniform:", gain*math.Sqrt(3/fan))
		}
	case "orthogonal", "eye", "dirac", "sparse":
		text("normal:", 1/math.Sqrt(fanIn))
	default:
		fr.fail(p, "torch.nn.init.%s is not known", short(name))
	}
	return w
}

func (fr *pyFrame) mathCall(name string, args []any, p Pos) any {
	if name == "prod" && len(args) == 1 {
		var out any = int64(1)
		for _, v := range fr.elements(args[0], p) {
			out = fr.binary("*", out, v, node{p})
		}
		return out
	}
	for _, a := range args {
		if !isPyNumber(a) {
			fr.fail(p, "math.%s() takes numbers, not %s", name, pyType(a))
		}
	}
	switch {
	case name == "pow" && len(args) == 2:
		x, _ := toFloat(args[0])
		y, _ := toFloat(args[1])
		return math.Pow(x, y)
	case name == "log" && len(args) == 2:
		x, _ := toFloat(args[0])
		y, _ := toFloat(args[1])
		return math.Log(x) / math.Log(y)
	case name == "gcd" && len(args) == 2:
		a, okA := args[0].(int64)
		b, okB := args[1].(int64)
		if okA && okB {
			for b != 0 {
				a, b = b, a%b
			}
			return max(a, -a)
		}
	}
	if op := ir.LookupOp("math_" + name); op != nil && len(args) == 1 {
		rs, err := op.Eval(&ir.EvalCall{Node: &ir.Node{Op: op}, Args: []ir.Datum{args[0]}})
		if err != nil {
			fr.fail(p, "math.%s: %s", name, err)
		}
		return rs[0]
	}
	fr.fail(p, "math.%s with these arguments is not supported in a constructor", short(name))
	return nil
}

// callMethod calls a method of a module, list, dict, string or tensor.
func (fr *pyFrame) callMethod(f *pyMethod, args []any, kws map[string]any, e *callExpr) any {
	switch x := f.x.(type) {
	case *module:
		return fr.moduleMethod(x, f.name, args, kws, e)
	case *weight:
		return fr.weightMethod(x, f.name, args, kws, e)
	case *pyList:
		switch {
		case f.name == "append" && len(args) == 1:
			x.elems = append(x.elems, args[0])
		case f.name == "extend" && len(args) == 1:
			x.elems = append(x.elems, fr.elements(args[0], e.pos)...)
		case f.name == "insert" && len(args) == 2:
			i, _ := args[0].(int64)
			i = min(max(i, 0), int64(len(x.elems)))
			x.elems = append(x.elems[:i:i], append([]any{args[1]}, x.elems[i:]...)...)
		case f.name == "pop" && len(x.elems) > 0:
			i := int64(len(x.elems) - 1)
			if len(args) == 1 {
				if k, ok := args[0].(int64); ok {
					if i = k; k < 0 {
						i += int64(len(x.elems))
					}
				}
			}
			if i < 0 || i >= int64(len(x.elems)) {
				fr.fail(e.pos, "pop index out of range")
			}
			v := x.elems[i]
			x.elems = append(x.elems[:i:i], x.elems[i+1:]...)
			return v
		case f.name == "reverse":
			for i, j := 0, len(x.elems)-1; i < j; i, j = i+1, j-1 {
				x.elems[i], x.elems[j] = x.elems[j], x.elems[i]
			}
		case f.name == "copy":
			return &pyList{append([]any{}, x.elems...)}
		default:
			fr.fail(e.pos, "list.%s() is not supported in a constructor", short(f.name))
		}
		return nil
	case *pyDict:
		switch f.name {
		case "keys":
			return &pyList{x.keys}
		case "values":
			return &pyList{x.values}
		case "items":
			l := &pyList{}
			for i := range x.keys {
				l.elems = append(l.elems, pyTuple{x.keys[i], x.values[i]})
			}
			return l
		case "get":
			for i := range x.keys {
				if len(args) > 0 && pyEqual(x.keys[i], args[0]) {
					return x.values[i]
				}
			}
			if len(args) > 1 {
				return args[1]
			}
			return nil
		}
	case string:
		return fr.stringMethod(x, f.name, args, e)
	}
	fr.fail(e.pos, "method '%s' of %s is not supported in a constructor", short(f.name), pyType(f.x))
	return nil
}

func (fr *pyFrame) stringMethod(s, name string, args []any, e *callExpr) any {
	if name == "format" {
		data := []ir.Datum{s}
		for _, a := range args {
			data = append(data, pyStr(a))
		}
		op := ir.LookupOp("str_format")
		rs, err := op.Eval(&ir.EvalCall{Node: &ir.Node{Op: op}, Args: data})
		if err != nil {
			fr.fail(e.pos, "%s", err)
		}
		return rs[0]
	}
	if name == "join" && len(args) == 1 {
		var parts []string
		for _, v := range fr.elements(args[0], e.pos) {
			parts = append(parts, pyStr(v))
		}
		return strings.Join(parts, s)
	}
	irs := []string{s}
	for _, a := range args {
		irs = append(irs, pyStr(a))
	}
	switch {
	case name == "lower":
		return strings.ToLower(s)
	case name == "upper":
		return strings.ToUpper(s)
	case name == "startswith" && len(irs) == 2:
		return strings.HasPrefix(s, irs[1])
	case name == "endswith" && len(irs) == 2:
		return strings.HasSuffix(s, irs[1])
	case name == "replace" && len(irs) == 3:
		return strings.ReplaceAll(s, irs[1], irs[2])
	}
	fr.fail(e.pos, "str.%s() is not supported in a constructor", short(name))
	return nil
}

func (fr *pyFrame) moduleMethod(m *module, name string, args []any, kws map[string]any, e *callExpr) any {
	key := func() string {
		if len(args) > 0 {
			if k, ok := args[0].(string); ok {
				return k
			}
		}
		k, _ := kws["name"].(string)
		return k
	}
	second := func(other string) any {
		if len(args) > 1 {
			return args[1]
		}
		return kws[other]
	}
	switch name {
	case "register_buffer":
		w, ok := second("tensor").(*weight)
		if !ok {
			m.set(key(), nil)
			return nil
		}
		c := *w
		c.buffer, c.param, c.name = true, false, ""
		keep := kws["persistent"]
		if len(args) > 2 {
			keep = args[2]
		}
		c.unsaved = keep == false
		if c.unsaved {
			c.buffer = false
		}
		m.set(key(), &c)
	case "register_parameter":
		m.set(key(), second("param"))
	case "add_module", "register_module":
		if m.container() {
			m.addChild(key(), second("module"))
		} else {
			m.set(key(), second("module"))
		}
	case "append":
		if len(args) == 1 {
			if w, ok := args[0].(*weight); ok && m.class == "ParameterList" {
				w.param = true
				m.weights = append(m.weights, w)
				return m
			}
			fr.extend(m, &pyList{args}, e.pos)
		}
		return m
	case "extend":
		if len(args) == 1 {
			fr.extend(m, args[0], e.pos)
		}
		return m
	case "apply":
		for _, c := range m.all(nil) {
			switch f := args[0].(type) {
			case *pyFunc:
				fr.call(f.def, f.self, []any{c}, nil, e.pos)
			}
		}
		return m
	case "modules":
		l := &pyList{}
		for _, c := range m.all(nil) {
			l.elems = append(l.elems, c)
		}
		return l
	case "children":
		l := &pyList{}
		for _, c := range m.children() {
			l.elems = append(l.elems, c)
		}
		return l
	case "parameters":
		l := &pyList{}
		m.walk("", map[*module]bool{}, func(w *weight) {
			w.name = ""
			if w.param {
				l.elems = append(l.elems, w)
			}
		})
		return l
	case "named_parameters":
		l := &pyList{}
		m.walk("", map[*module]bool{}, func(w *weight) {
			if w.param {
				l.elems = append(l.elems, pyTuple{w.name, w})
			}
			w.name = ""
		})
		return l
	case "items", "keys", "values":
		l := &pyList{}
		for i, c := range m.items {
			switch name {
			case "items":
				l.elems = append(l.elems, pyTuple{m.keys[i], c})
			case "keys":
				l.elems = append(l.elems, m.keys[i])
			default:
				l.elems = append(l.elems, c)
			}
		}
		return l
	case "eval", "train", "to", "float", "requires_grad_", "double", "half":
		return m
	case "insert":
		if i, ok := args[0].(int64); ok && len(args) == 2 {
			items := m.items
			m.items, m.keys = nil, nil
			all := append([]any{}, fr.elements(&pyList{}, e.pos)...)
			for _, c := range items {
				all = append(all, c)
			}
			i = min(max(i, 0), int64(len(all)))
			all = append(all[:i:i], append([]any{args[1]}, all[i:]...)...)
			fr.extend(m, &pyList{all}, e.pos)
			return nil
		}
	default:
		fr.fail(e.pos, "method '%s' of a module is not supported in a constructor", short(name))
	}
	return nil
}

func (m *module) children() []*module {
	out := append([]*module{}, m.items...)
	for _, name := range m.names {
		if c, ok := m.attrs[name].(*module); ok {
			out = append(out, c)
		}
	}
	return out
}

// all lists a module's descendants and then itself, as apply visits them.
func (m *module) all(out []*module) []*module {
	for _, c := range m.children() {
		out = c.all(out)
	}
	return append(out, m)
}

func (fr *pyFrame) weightMethod(w *weight, name string, args []any, kws map[string]any, e *callExpr) any {
	switch name {
	case "size":
		if len(args) == 1 {
			i, _ := args[0].(int64)
			if i < 0 {
				i += int64(len(w.shape))
			}
			if i >= 0 && i < int64(len(w.shape)) {
				return int64(w.shape[i])
			}
			fr.fail(e.pos, "dimension out of range")
		}
		return pyInts(w.shape)
	case "dim", "ndimension":
		return int64(len(w.shape))
	case "numel", "nelement":
		n := int64(1)
		for _, k := range w.shape {
			n *= int64(k)
		}
		return n
	case "normal_", "uniform_", "zero_", "fill_", "copy_", "ones_", "constant_":
		to := map[string]string{"zero_": "zeros_", "fill_": "constant_"}[name]
		if to == "" {
			to = name
		}
		if to == "copy_" {
			if o, ok := args[0].(*weight); ok {
				w.init, w.value = o.init, o.value
			}
			return w
		}
		return fr.initialise(to, append([]any{w}, args...), kws, e.pos)
	case "requires_grad_", "contiguous", "detach", "clone":
		if name == "clone" {
			c := *w
			c.param, c.buffer, c.name = false, false, ""
			return &c
		}
		return w
	}
	return fr.tensorExpr(e)
}

// builtin calls one of Python's functions.
func (fr *pyFrame) builtin(name string, args []any, kws map[string]any, e *callExpr) any {
	p := e.pos
	one := func() any {
		if len(args) == 0 {
			fr.fail(p, "%s() is missing an argument", name)
		}
		return args[0]
	}
	switch name {
	case "range":
		return fr.rangeOf(args, p)
	case "len":
		switch v := one().(type) {
		case *weight:
			if len(v.shape) > 0 {
				return int64(v.shape[0])
			}
		default:
			return int64(len(fr.elements(v, p)))
		}
	case "enumerate":
		l := &pyList{}
		start, _ := kws["start"].(int64)
		if len(args) > 1 {
			start, _ = args[1].(int64)
		}
		for i, v := range fr.elements(one(), p) {
			l.elems = append(l.elems, pyTuple{start + int64(i), v})
		}
		return l
	case "zip":
		return fr.zip(args, p)
	case "min", "max":
		vs := args
		if len(args) == 1 {
			vs = fr.elements(args[0], p)
		}
		if len(vs) > 0 {
			out := vs[0]
			for _, v := range vs[1:] {
				if fr.compare(map[string]string{"min": "<", "max": ">"}[name], v, out, p) {
					out = v
				}
			}
			return out
		}
	case "sum":
		var out any = int64(0)
		if len(args) > 1 {
			out = args[1]
		}
		for _, v := range fr.elements(one(), p) {
			out = fr.binary("+", out, v, node{p})
		}
		return out
	case "any", "all":
		for _, v := range fr.elements(one(), p) {
			if fr.truth(v) == (name == "any") {
				return name == "any"
			}
		}
		return name == "all"
	case "abs", "int", "float", "round":
		return fr.numberCall(name, one(), args, p)
	case "bool":
		return fr.truth(one())
	case "str":
		return pyStr(one())
	case "list", "sorted", "reversed":
		if len(args) == 0 {
			return &pyList{}
		}
		vs := append([]any{}, fr.elements(args[0], p)...)
		if name == "reversed" {
			for i, j := 0, len(vs)-1; i < j; i, j = i+1, j-1 {
				vs[i], vs[j] = vs[j], vs[i]
			}
		}
		if name == "sorted" {
			for i := range vs {
				for j := i; j > 0 && fr.compare("<", vs[j], vs[j-1], p); j-- {
					fr.step(p)
					vs[j], vs[j-1] = vs[j-1], vs[j]
				}
			}
		}
		return &pyList{vs}
	case "tuple":
		if len(args) == 0 {
			return pyTuple{}
		}
		return pyTuple(fr.elements(args[0], p))
	case "isinstance":
		if len(args) == 2 {
			return fr.isInstance(args[0], args[1])
		}
	case "hasattr", "getattr", "setattr":
		return fr.attrCall(name, args, e)
	case "pow":
		if len(args) == 2 {
			return fr.binary("**", args[0], args[1], e)
		}
	case "divmod":
		if len(args) == 2 {
			return pyTuple{fr.binary("//", args[0], args[1], e), fr.binary("%", args[0], args[1], e)}
		}
	case "super":
		return fr.self
	case "id", "callable", "type", "map":
	}
	fr.fail(p, "%s() with these arguments is not supported in a constructor", short(name))
	return nil
}

func (fr *pyFrame) attrCall(name string, args []any, e *callExpr) any {
	if len(args) >= 2 {
		m, okM := args[0].(*module)
		k, okK := args[1].(string)
		if okM && okK {
			switch name {
			case "hasattr":
				return m.has(k)
			case "setattr":
				if len(args) == 3 {
					m.set(k, args[2])
					return nil
				}
			case "getattr":
				if !m.has(k) && len(args) == 3 {
					return args[2]
				}
				return fr.attr(m, &attrExpr{node{e.pos}, nil, k})
			}
		}
		if path, ok := args[0].(pyName); ok && okK && name == "getattr" {
			return fr.path(string(path)+"."+k, e.pos)
		}
	}
	fr.fail(e.pos, "%s() takes a module and a name", name)
	return nil
}

func (fr *pyFrame) rangeOf(args []any, p Pos) any {
	var n [3]int64
	n[2] = 1
	for i, a := range args {
		k, ok := a.(int64)
		if !ok || i > 2 {
			fr.fail(p, "range() takes up to three ints")
		}
		n[i] = k
	}
	if len(args) == 1 {
		n[0], n[1] = 0, n[0]
	}
	if n[2] == 0 {
		fr.fail(p, "range() arg 3 must not be zero")
	}
	l := &pyList{}
	for i := n[0]; n[2] > 0 && i < n[1] || n[2] < 0 && i > n[1]; i += n[2] {
		fr.step(p)
		l.elems = append(l.elems, i)
	}
	return l
}

func (fr *pyFrame) zip(args []any, p Pos) any {
	l := &pyList{}
	var lists [][]any
	n := math.MaxInt
	for _, a := range args {
		es := fr.elements(a, p)
		lists = append(lists, es)
		n = min(n, len(es))
	}
	for i := 0; i < n && len(lists) > 0; i++ {
		t := make(pyTuple, len(lists))
		for k := range lists {
			t[k] = lists[k][i]
		}
		l.elems = append(l.elems, t)
	}
	return l
}

func (fr *pyFrame) numberCall(name string, v any, args []any, p Pos) any {
	if w, ok := v.(*weight); ok && w.value != nil && w.value.Len() == 1 {
		d, err := ir.Item(w.value)
		if err == nil {
			v = d
		}
	}
	op := map[string]string{"abs": "py_abs", "int": "py_int", "float": "py_float"}[name]
	data := []ir.Datum{v}
	if name == "round" {
		f, ok := toFloat(v)
		if !ok {
			fr.fail(p, "round() takes a number")
		}
		if len(args) == 1 {
			return int64(math.RoundToEven(f))
		}
		op, data = "py_round", append(data, args[1])
	}
	_, str := v.(string)
	if !isPyNumber(v) && !str {
		fr.fail(p, "%s() takes a number, not %s", name, pyType(v))
	}
	o := ir.LookupOp(op)
	rs, err := o.Eval(&ir.EvalCall{Node: &ir.Node{Op: o}, Args: data})
	if err != nil {
		fr.fail(p, "%s", err)
	}
	return rs[0]
}

func (fr *pyFrame) isInstance(x, t any) bool {
	switch t := t.(type) {
	case pyTuple:
		for _, u := range t {
			if fr.isInstance(x, u) {
				return true
			}
		}
	case *pyClass:
		m, ok := x.(*module)
		return ok && m.def != nil && m.def.derives(t.def, 0)
	case pyName:
		switch t {
		case "int":
			_, ok := x.(int64)
			_, isBool := x.(bool)
			return ok || isBool
		case "torch.nn.Module":
			_, ok := x.(*module)
			return ok
		case "torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict":
			m, ok := x.(*module)
			return ok && "torch.nn."+m.class == string(t)
		case "torch.Tensor", "torch.nn.Parameter":
			_, ok := x.(*weight)
			return ok
		}
		return pyType(x) == string(t)
	}
	return false
}

func (c *classDef) derives(base *classDef, depth int) bool {
	if c == base {
		return true
	}
	if depth > 50 {
		return false
	}
	for _, p := range c.parents() {
		if p.derives(base, depth+1) {
			return true
		}
	}
	return false
}
