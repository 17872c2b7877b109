package script

import (
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir"
)

// Expressions of constructors.

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
			s, star := e.keys[i].(*starExpr)
			if !star {
				d.set(fr.eval(e.keys[i]), fr.eval(e.values[i]))
				continue
			}
			o, ok := fr.eval(s.x).(*pyDict)
			if !ok {
				fr.fail(s.pos, "** takes a dict")
			}
			for k := range o.keys {
				d.set(o.keys[k], o.values[k])
			}
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
				return boundMethod(d, x, x.def)
			}
			if f := x.def.field(e.name); f != nil {
				return (&pyFrame{ev: fr.ev, file: x.def.file, vars: map[string]any{}, up: fr, pos: e.pos}).eval(f.value)
			}
		}
		switch e.name {
		case "append", "extend", "insert", "register_buffer", "register_parameter", "add_module", "register_module", "apply", "modules", "parameters",
			"children", "named_modules", "named_children", "named_parameters", "buffers", "eval", "train", "to", "float", "items", "keys", "values", "update",
			"requires_grad_", "double", "half", "bfloat16", "zero_grad", "share_memory", "cpu":
			return &pyMethod{x, e.name}
		}
		fr.fail(e.pos, "module '%s' has no attribute '%s'", x.class, short(e.name))
	case *pyClass:
		if f := x.def.field(e.name); f != nil {
			return (&pyFrame{ev: fr.ev, file: x.def.file, vars: map[string]any{}, up: fr, pos: e.pos}).eval(f.value)
		}
		if d := x.def.method(e.name); d != nil {
			return boundMethod(d, nil, x.def)
		}
		if e.name == "__name__" {
			return x.def.name
		}
	case *weight:
		switch e.name {
		case "T", "mT", "ndim":
			return fr.tensorExpr(e)
		case "shape":
			return pyInts(x.shape)
		case "dtype":
			return x.dtype
		case "data":
			return x
		case "device":
			return "cpu"
		case "requires_grad":
			return x.param && !x.frozen
		}
		return &pyMethod{x, e.name}
	case *pyList, *pyDict, string, pyTuple:
		return &pyMethod{x, e.name}
	}
	fr.fail(e.pos, "a value of type %s has no attribute '%s'", pyType(x), short(e.name))
	return nil
}

// boundMethod is a method of a module, or of a class where self is nil.
func boundMethod(d *funcDef, self *module, c *classDef) *pyFunc {
	switch {
	case d.decorated("staticmethod"):
		return &pyFunc{def: d}
	case d.decorated("classmethod"):
		return &pyFunc{def: d, cls: &pyClass{c}}
	}
	return &pyFunc{def: d, self: self}
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
		if b, ok := y.(*module); ok && op == "+" && a.kind == "ModuleList" {
			m := newContainer("ModuleList")
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

func (fr *pyFrame) compare(op string, x, y any, p Pos) bool {
	switch op {
	case "is":
		return pyIs(x, y)
	case "is not":
		return !pyIs(x, y)
	case "in", "not in":
		found := false
		if s, ok := y.(string); ok {
			part, _ := x.(string)
			found = strings.Contains(s, part)
		} else if m, ok := y.(*module); ok && m.kind == "ModuleDict" {
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

// pyIs is identity, of tuples equality.
func pyIs(x, y any) bool {
	if _, tuple := x.(pyTuple); tuple {
		return pyEqual(x, y)
	}
	if _, tuple := y.(pyTuple); tuple {
		return false
	}
	return x == y
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
			for n, key := range v.keys {
				if key == k && n < len(v.weights) {
					return v.weights[n]
				}
			}
			fr.fail(e.pos, "KeyError: %s", pyStr(i))
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
		m := newContainer(x.kind)
		fr.extend(m, &pyList{out}, s.pos)
		return m
	}
	return &pyList{out}
}
