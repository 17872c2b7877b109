package script

import (
	"strings"

	"github.com/gtc-project/gtc/ir"
)

// expr lowers an expression to a value.
func (l *lowering) expr(e expr) value {
	l.at(e.at())
	switch e := e.(type) {
	case *nameExpr:
		return l.name(e)
	case *intExpr:
		return l.scalar(e.v)
	case *floatExpr:
		return l.scalar(e.v)
	case *strExpr:
		return l.scalar(e.v)
	case *fstrExpr:
		return l.fstring(e)
	case *constExpr:
		switch e.name {
		case "True", "False":
			return l.scalar(e.name == "True")
		case "None":
			return l.none()
		}
		l.fail(e.pos, "'...' is only supported as an index")
	case *attrExpr:
		return l.attr(e)
	case *callExpr:
		return l.call(e)
	case *indexExpr:
		return l.index(e)
	case *unaryExpr:
		return l.unary(e)
	case *binaryExpr:
		x := l.expr(e.x)
		y := l.expr(e.y)
		return l.binary(e.op, x, y, e.pos)
	case *boolExpr, *compareExpr:
		c := l.condition(e)
		if c.tensor != nil {
			return c.tensor
		}
		if c.static {
			l.at(e.at())
			return l.scalar(c.value)
		}
		return scalarOf(c.v)
	case *ifExpr:
		return l.ternary(e)
	case *listExpr:
		return l.listLiteral(e)
	case *tupleExpr:
		elems := make([]value, 0, len(e.elems))
		for _, x := range e.elems {
			if s, ok := x.(*starExpr); ok {
				elems = append(elems, l.spread(s)...)
				continue
			}
			elems = append(elems, l.expr(x))
		}
		return l.tuple(elems)
	case *dictExpr:
		return l.dictLiteral(e, nil)
	case *compExpr:
		return l.comprehension(e, nil)
	}
	l.fail(e.at(), "this expression is not supported")
	return nil
}

// spread gives the elements of *x.
func (l *lowering) spread(s *starExpr) []value {
	x := l.expr(s.x)
	switch x := x.(type) {
	case *tupleV:
		return x.elems
	case *refV:
		if st, ok := l.static(x); ok {
			return st.elems
		}
	}
	l.fail(s.pos, "only a tuple, or a list whose length is known here, can be spread with *")
	return nil
}

func (l *lowering) undefined(p Pos, name, why string) {
	if why == "" {
		l.fail(p, "undefined value '%s': the name is not defined", short(name))
	}
	l.fail(p, "undefined value '%s': it is not defined here because %s", short(name), why)
}

func (l *lowering) name(e *nameExpr) value {
	if v, ok := l.frame.vars[e.name]; ok {
		return v
	}
	if why, ok := l.frame.gone[e.name]; ok {
		l.undefined(e.pos, e.name, why)
	}
	if v := l.global(e.name, e.pos); v != nil {
		return v
	}
	l.undefined(e.pos, e.name, "")
	return nil
}

// global finds a name of the file, an import, or a builtin; nil where there is none.
func (l *lowering) global(name string, p Pos) value {
	if d := l.file.funcs[name]; d != nil {
		return &funcV{def: d}
	}
	if c := l.file.classes[name]; c != nil {
		return &classV{c}
	}
	if e := l.file.consts[name]; e != nil {
		return l.constantExpr(e, name, p)
	}
	if path, ok := l.file.imported(name); ok {
		return l.namespace(path, p)
	}
	if builtins[name] != nil {
		return &builtinV{name}
	}
	if t, ok := simpleTypes[name]; ok && (t.Kind == ir.KInt || t.Kind == ir.KFloat || t.Kind == ir.KBool || t.Kind == ir.KString) {
		return &builtinV{name}
	}
	return nil
}

// constantExpr lowers a module-level constant where it is used.
func (l *lowering) constantExpr(e expr, name string, p Pos) value {
	switch e.(type) {
	case *intExpr, *floatExpr, *strExpr, *constExpr, *unaryExpr, *binaryExpr, *listExpr, *tupleExpr, *attrExpr, *callExpr, *nameExpr:
		vars := l.frame.vars
		l.frame.vars = map[string]value{}
		v := l.expr(e)
		l.frame.vars = vars
		l.at(p)
		return v
	}
	l.fail(p, "the module-level variable '%s' is not a constant", short(name))
	return nil
}

// imported gives the dotted path that an import statement bound a name to.
func (f *File) imported(name string) (string, bool) {
	for i := len(f.imports) - 1; i >= 0; i-- {
		im := f.imports[i]
		for local, what := range im.names {
			module, isModule := strings.CutPrefix(what, "=")
			switch {
			case !isModule && local == name:
				return im.module + "." + what, true
			case isModule && local == name:
				return module, true
			case isModule && local == module && strings.HasPrefix(module, name+"."):
				return name, true
			}
		}
	}
	return "", false
}

func (l *lowering) attr(e *attrExpr) value {
	x := l.expr(e.x)
	l.at(e.pos)
	switch x := x.(type) {
	case *torchV:
		return l.namespace(x.name+"."+e.name, e.pos)
	case *module:
		return l.moduleAttr(x, e)
	case *refV:
		if x.t.Kind == ir.KTensor {
			return l.tensorAttr(x, e)
		}
	case *tupleV:
		for i, n := range x.names {
			if n == e.name {
				return x.elems[i]
			}
		}
	case *classV:
		if v := l.classAttr(x.def, e.name); v != nil {
			return v
		}
	case *scalarV:
		if x.t.Kind == ir.KString { // a device is its name
			switch e.name {
			case "type":
				return x
			case "index":
				return l.none()
			}
		}
	}
	if t, ok := typeOf(x); ok && isOptional(t) {
		l.fail(e.pos, "'%s' object has no attribute '%s': the value may be None, check that it 'is not None' first", typeName(t), short(e.name))
	}
	l.fail(e.pos, "'%s' object has no attribute '%s'", describe(x), short(e.name))
	return nil
}

func (l *lowering) tensorAttr(r *refV, e *attrExpr) value {
	switch e.name {
	case "shape":
		return l.fresh(l.op("shape", l.read(r)), ir.IntList)
	case "ndim":
		return scalarOf(l.op("rank", l.read(r)))
	case "dtype":
		return scalarOf(l.op("dtype_of", l.read(r)))
	case "device":
		return l.scalar("cpu")
	case "layout":
		return l.scalar("torch.strided")
	case "requires_grad":
		return l.scalar(l.leafOf(r) != nil)
	case "is_cuda", "is_sparse", "is_quantized", "is_leaf", "is_mps", "is_meta":
		return l.scalar(false)
	case "T":
		return l.view(r, viewStep("numpy_T", nil), no)
	case "mT":
		return l.view(r, viewStep("mT", nil), no)
	case "H":
		return l.view(r, viewStep("matrix_H", nil), no)
	case "real": // of a real tensor: itself
		return r
	case "data":
		return l.view(r, viewStep("detach", nil), r.contiguous)
	case "grad":
		if f := l.leafOf(r); f != nil {
			return f.grad
		}
		return l.none()
	case "itemsize":
		return l.tensorMethod(r, "element_size", nil, nil, e.pos)
	}
	if l.knowsMethod(e.name) {
		l.fail(e.pos, "'%s' is a method: call it with ()", short(e.name))
	}
	l.fail(e.pos, "'Tensor' object has no attribute or method '%s'", short(e.name))
	return nil
}

func (l *lowering) unary(e *unaryExpr) value {
	if e.op == "not" {
		c := l.condition(e)
		if c.static {
			return l.scalar(c.value)
		}
		return scalarOf(c.v)
	}
	x := l.expr(e.x)
	l.at(e.pos)
	if r, ok := x.(*refV); ok && r.t.Kind == ir.KTensor {
		switch e.op {
		case "-":
			return l.tensorMethod(r, "neg", nil, nil, e.pos)
		case "~":
			return l.tensorMethod(r, "bitwise_not", nil, nil, e.pos)
		}
		return x
	}
	s, ok := x.(*scalarV)
	if !ok || !isNumber(s.t) {
		l.fail(e.pos, "bad operand type for unary %s: expected a number or Tensor, found '%s'", e.op, describe(x))
	}
	switch e.op {
	case "-":
		return scalarOf(l.op("py_neg", s.v))
	case "~":
		if s.t.Kind == ir.KFloat {
			l.fail(e.pos, "bad operand type for unary ~: 'float', expected an int")
		}
		return scalarOf(l.op("py_invert", s.v))
	}
	if s.t.Kind == ir.KBool {
		return scalarOf(l.op("py_add", s.v, l.int(0)))
	}
	return s
}

func isNumber(t ir.Type) bool {
	return t.Kind == ir.KInt || t.Kind == ir.KFloat || t.Kind == ir.KBool || t.Kind == ir.KAny
}

func isTensor(v value) (*refV, bool) {
	r, ok := v.(*refV)
	return r, ok && r.t.Kind == ir.KTensor
}

var scalarOps = map[string]string{
	"+": "py_add", "-": "py_sub", "*": "py_mul", "/": "py_truediv", "//": "py_floordiv", "%": "py_mod", "**": "py_pow",
	"&": "py_bitand", "|": "py_bitor", "^": "py_bitxor", "<<": "py_shl", ">>": "py_shr",
}

var tensorOps = map[string]string{
	"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floor_divide", "%": "remainder", "**": "pow", "@": "matmul",
	"&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "<<": "bitwise_left_shift", ">>": "bitwise_right_shift",
	"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
}

// reversedOps are the functions for a number on the left and a tensor on the right.
var reversedOps = map[string]string{
	"-": "rsub", "/": "rdiv", "//": "rfloordiv", "%": "rremainder", "**": "rpow",
}

var swapped = map[string]string{"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// binary lowers x op y.
func (l *lowering) binary(op string, x, y value, p Pos) value {
	l.at(p)
	rx, tx := isTensor(x)
	ry, ty := isTensor(y)
	sx, nx := number(x)
	sy, ny := number(y)
	switch {
	case tx && (ty || ny && op != "@"):
		return l.tensorMethod(rx, tensorOps[op], []value{y}, nil, p)
	case nx && ty && op != "@":
		if swap, ok := swapped[op]; ok {
			return l.tensorMethod(ry, tensorOps[swap], []value{x}, nil, p)
		}
		return l.reversed(op, x, ry, p)
	case nx && ny && op != "@":
		return l.scalarBinary(op, sx, sy, p)
	}
	if v := l.otherBinary(op, x, y, p); v != nil {
		return v
	}
	if t, ok := typeOf(x); ok && isOptional(t) {
		l.fail(p, "unsupported operand types for %s: '%s' and '%s'; the left one may be None, check that it 'is not None' first", op, describe(x), describe(y))
	}
	if t, ok := typeOf(y); ok && isOptional(t) {
		l.fail(p, "unsupported operand types for %s: '%s' and '%s'; the right one may be None, check that it 'is not None' first", op, describe(x), describe(y))
	}
	l.fail(p, "unsupported operand types for %s: cannot combine '%s' and '%s'", op, describe(x), describe(y))
	return nil
}

func number(v value) (*scalarV, bool) {
	s, ok := v.(*scalarV)
	return s, ok && isNumber(s.t)
}

// reversed lowers number op tensor for operators that do not commute.
func (l *lowering) reversed(op string, x value, y *refV, p Pos) value {
	switch op {
	case "+", "*", "&", "|", "^":
		return l.tensorMethod(y, tensorOps[op], []value{x}, nil, p)
	case "-":
		return l.tensorMethod(y, "rsub", []value{x}, nil, p)
	}
	name := reversedOps[op]
	if name == "" {
		name = tensorOps[op]
	}
	return l.function(name, hiddenOrTorch, []value{x, y}, nil, p, "operator "+op)
}

func (l *lowering) scalarBinary(op string, x, y *scalarV, p Pos) value {
	name, ok := scalarOps[op]
	if !ok {
		name = map[string]string{"==": "py_eq", "!=": "py_ne", "<": "py_lt", "<=": "py_le", ">": "py_gt", ">=": "py_ge"}[op]
	}
	switch op {
	case "&", "|", "^", "<<", ">>":
		if x.t.Kind == ir.KFloat || y.t.Kind == ir.KFloat {
			l.fail(p, "unsupported operand types for %s: '%s' and '%s'", op, typeName(x.t), typeName(y.t))
		}
		if x.t.Kind == ir.KBool && y.t.Kind == ir.KBool && len(op) == 1 {
			return scalarOf(l.op("py_bool", l.op(name, x.v, y.v)))
		}
	case "+", "-", "*", "/", "//", "%", "**":
		if (x.t.Kind == ir.KBool || y.t.Kind == ir.KBool) && l.file != prelude() {
			l.fail(p, "unsupported operand types for %s: cannot combine '%s' and '%s': convert the bool with int()", op, typeName(x.t), typeName(y.t))
		}
		if op == "**" && x.t.Kind == ir.KInt && y.t.Kind == ir.KInt {
			return scalarOf(l.op(name, l.op("py_float", x.v), y.v)) // TorchScript's int ** int is a float
		}
	}
	return scalarOf(l.op(name, x.v, y.v))
}

// otherBinary lowers operators on strings, lists and tuples, and comparisons of anything; nil where there is none.
func (l *lowering) otherBinary(op string, x, y value, p Pos) value {
	sx, okX := x.(*scalarV)
	sy, okY := y.(*scalarV)
	if okX && okY && sx.t.Kind == ir.KString {
		switch {
		case op == "%":
			return l.percent(sx, []value{y}, p)
		case sy.t.Kind != ir.KString:
		case op == "+":
			return scalarOf(l.op("str_add", sx.v, sy.v))
		case swapped[op] != "":
			return l.scalarBinary(op, sx, sy, p)
		}
	}
	if t, ok := y.(*tupleV); ok && okX && sx.t.Kind == ir.KString && op == "%" {
		return l.percent(sx, t.elems, p)
	}
	if op == "==" || op == "!=" {
		return l.equality(op, x, y, p)
	}
	rx, okRX := x.(*refV)
	ry, okRY := y.(*refV)
	switch {
	case okRX && okRY && op == "+" && rx.t.Kind == ir.KList && ry.t.Kind == ir.KList:
		return l.concatLists(rx, ry, p)
	case op == "*" && okRX && rx.t.Kind == ir.KList && okY && sy.t.Kind == ir.KInt:
		return l.repeatList(rx, sy, p)
	case op == "*" && okRY && ry.t.Kind == ir.KList && okX && sx.t.Kind == ir.KInt:
		return l.repeatList(ry, sx, p)
	}
	tx, okTX := x.(*tupleV)
	ty, okTY := y.(*tupleV)
	if okTX && okTY && op == "+" {
		return l.tuple(append(append([]value{}, tx.elems...), ty.elems...))
	}
	return nil
}

func (l *lowering) equality(op string, x, y value, p Pos) value {
	t, okX := typeOf(x)
	u, okY := typeOf(y)
	if !okX || !okY {
		return nil
	}
	if _, ok := unify(t, u); !ok {
		return nil
	}
	if unwrapped(t).Kind == ir.KTensor || unwrapped(u).Kind == ir.KTensor {
		return nil
	}
	name := map[string]string{"==": "py_eq", "!=": "py_ne"}[op]
	return scalarOf(l.op(name, l.irOf(x), l.irOf(y)))
}

func (l *lowering) ternary(e *ifExpr) value {
	c := l.cond(e.cond)
	l.at(e.pos)
	if c.static {
		saved := copyVars(l.frame.vars)
		var v value
		if c.value {
			l.refine(c.yes)
			v = l.expr(e.then)
		} else {
			l.refine(c.no)
			v = l.expr(e.els)
		}
		l.frame.vars = saved
		return v
	}
	saved := l.frame.vars
	l.branch(c.v, nil, func() { l.refine(c.yes); l.frame.vars["$if"] = l.expr(e.then) }, func() { l.refine(c.no); l.frame.vars["$if"] = l.expr(e.els) })
	v := l.frame.vars["$if"]
	l.frame.vars = saved
	return v
}

// cond is a condition as control flow sees it.
type cond struct {
	v             *ir.Value // a bool; nil where static
	static, value bool
	yes, no       []refinement // what is known of variables where the condition is true, or false
	tensor        value        // the condition as a value that is no bool: a tensor comparison
}

// refinement says that a variable is not None, or that its Union holds one of some members.
type refinement struct {
	name    string
	members []int // nil: it is not None
}

// refine gives variables the types that a condition tells.
func (l *lowering) refine(known []refinement) {
	for _, r := range known {
		if r.members != nil {
			l.frame.vars[r.name] = l.narrowed(l.frame.vars[r.name], r.members)
		} else {
			l.frame.vars[r.name] = l.unwrap(l.frame.vars[r.name])
		}
	}
}

// unwrap gives an Optional that is known not to be None its plain type.
func (l *lowering) unwrap(v value) value {
	switch v := v.(type) {
	case *scalarV:
		if v.t.Kind == ir.KOptional {
			return l.valueOf(l.unwrapped(v.v, v.t.Elems[0]), v.t.Elems[0])
		}
	case *refV:
		if v.t.Kind == ir.KOptional {
			r := l.view(v, unwrapStep(v.t.Elems[0]), yes)
			r.t = v.t.Elems[0]
			return r
		}
	}
	return v
}

// unwrapped emits an unwrap to a type that the operand's own may not tell: None is a value of every Optional.
func (l *lowering) unwrapped(v *ir.Value, t ir.Type) *ir.Value {
	var out *ir.Value
	l.try(func() { out = l.b.Node(ir.OpUnwrap, ir.Attrs{}, nil, []ir.Type{t}, v).Results[0] })
	return out
}

// bool is a condition as a value.
func (l *lowering) bool(c cond) *ir.Value {
	if c.static {
		return l.constant(c.value)
	}
	return c.v
}

// cond lowers an expression to a condition, converting numbers and tensors of one element to bool.
func (l *lowering) cond(e expr) cond {
	c := l.condition(e)
	if c.tensor != nil {
		c.v = l.truth(c.tensor, e.at())
		c.tensor = nil
	}
	return c
}

func (l *lowering) condition(e expr) cond {
	l.at(e.at())
	switch e := e.(type) {
	case *unaryExpr:
		if e.op == "not" {
			c := l.cond(e.x)
			l.at(e.pos)
			c.yes, c.no = c.no, c.yes
			if c.static {
				c.value = !c.value
			} else {
				c.v = l.op("py_not", c.v)
			}
			return c
		}
	case *boolExpr:
		return l.boolean(e)
	case *compareExpr:
		return l.compare(e)
	case *callExpr:
		if c, ok := l.typeTest(e); ok {
			return c
		}
	}
	v := l.expr(e)
	if s, ok := v.(*scalarV); ok && s.t.Kind == ir.KBool {
		return l.settled(cond{v: s.v}, e)
	}
	return cond{tensor: v}
}

// settled makes a condition static where it is a constant that a module's configuration decides.
func (l *lowering) settled(c cond, e expr) cond {
	d, ok := c.v.Const()
	if !ok {
		return c
	}
	configured := l.file == prelude()
	switch x := e.(type) {
	case *constExpr:
		configured = true
	case *nameExpr: // a constant of the function, not one that the caller passes
		configured = configured || !l.frame.def.hasParam(x.name)
	}
	walkExpr(e, func(e expr) {
		if a, isAttr := e.(*attrExpr); isAttr {
			configured = configured || a.name == "is_scripting" || a.name == "is_tracing"
			if n, isName := a.x.(*nameExpr); isName {
				if _, isModule := l.frame.vars[n.name].(*module); isModule {
					configured = true
				}
			}
		}
	})
	if configured {
		c.static, c.value = true, d.(bool)
	}
	return c
}

// truth is bool(v).
func (l *lowering) truth(v value, p Pos) *ir.Value {
	l.at(p)
	switch v := v.(type) {
	case *scalarV:
		switch {
		case v.t.Kind == ir.KBool:
			return v.v
		case isNumber(v.t) || v.t.Kind == ir.KString:
			return l.op("py_bool", v.v)
		}
	case *refV:
		switch v.t.Kind {
		case ir.KTensor:
			return l.op("item_bool", l.read(v))
		case ir.KList, ir.KDict:
			return l.op("py_bool", l.read(v))
		}
	}
	if t, ok := typeOf(v); ok && isOptional(t) {
		l.fail(p, "cannot cast a value of type %s to bool: test it with 'is not None'", typeName(t))
	}
	l.fail(p, "could not cast a value of type %s to bool: expected a bool, number, str, list, dict or tensor with one element", describe(v))
	return nil
}

// boolean lowers and / or: a term is evaluated only where those before it leave the outcome open.
func (l *lowering) boolean(e *boolExpr) cond {
	isAnd := e.op == "and"
	saved := copyVars(l.frame.vars)
	defer func() { l.restore(saved) }()
	out := l.cond(e.terms[0])
	for _, term := range e.terms[1:] {
		if out.static {
			if out.value != isAnd { // False and …, True or …
				return out
			}
			l.refineBranch(out, isAnd)
			next := l.cond(term)
			next.yes, next.no = mergeNames(out, next, isAnd)
			out = next
			continue
		}
		l.at(e.pos)
		out = l.twoTerms(out, term, isAnd)
	}
	return out
}

// restore takes back refinements of a condition; assignments do not happen in conditions.
func (l *lowering) restore(vars map[string]value) {
	for name, v := range vars {
		l.frame.vars[name] = v
	}
}

func (l *lowering) refineBranch(c cond, isAnd bool) {
	if isAnd {
		l.refine(c.yes)
	} else {
		l.refine(c.no)
	}
}

func mergeNames(a, b cond, isAnd bool) (yes, no []refinement) {
	if isAnd {
		return append(append([]refinement{}, a.yes...), b.yes...), nil
	}
	return nil, append(append([]refinement{}, a.no...), b.no...)
}

func (l *lowering) twoTerms(first cond, term expr, isAnd bool) cond {
	var second cond
	next := func() {
		l.refineBranch(first, isAnd)
		second = l.cond(term)
		v := second.v
		if second.static {
			v = l.constant(second.value)
		}
		l.frame.vars["$and"] = scalarOf(v)
	}
	stop := func() { l.frame.vars["$and"] = l.scalar(!isAnd) }
	saved := l.frame.vars
	if isAnd {
		l.branch(first.v, nil, next, stop)
	} else {
		l.branch(first.v, nil, stop, next)
	}
	out := cond{v: l.frame.vars["$and"].(*scalarV).v}
	l.frame.vars = saved
	out.yes, out.no = mergeNames(first, second, isAnd)
	if second.static && second.value != isAnd { // x and False: still evaluated x
		out.v, out.static, out.value = nil, true, !isAnd
	}
	return out
}

// compare lowers a chain of comparisons.
func (l *lowering) compare(e *compareExpr) cond {
	x := l.expr(e.first)
	if len(e.ops) == 1 {
		return l.comparison(e.ops[0], e.first, x, e.rest[0], e.pos)
	}
	var out *ir.Value
	for i, op := range e.ops {
		y := l.expr(e.rest[i])
		v := l.truth(l.compareValues(op, x, y, e.pos), e.pos)
		if out == nil {
			out = v
		} else {
			out = l.op("py_select", out, v, l.constant(false))
		}
		x = y
	}
	return cond{v: out}
}

// comparison lowers one comparison; x is None and the like refine.
func (l *lowering) comparison(op string, ex expr, x value, ey expr, p Pos) cond {
	isNone := func(e expr) bool { c, ok := e.(*constExpr); return ok && c.name == "None" }
	if isNone(ey) || isNone(ex) {
		if isNone(ex) {
			ex, x = ey, l.expr(ey)
		}
		switch op {
		case "is", "==":
			return l.noneTest(ex, x, true, p)
		case "is not", "!=":
			return l.noneTest(ex, x, false, p)
		}
	}
	y := l.expr(ey)
	v := l.compareValues(op, x, y, p)
	if s, ok := v.(*scalarV); ok && s.t.Kind == ir.KBool {
		return l.settled(cond{v: s.v}, &tupleExpr{elems: []expr{ex, ey}})
	}
	return cond{tensor: v}
}

func (l *lowering) noneTest(ex expr, x value, is bool, p Pos) cond {
	l.at(p)
	t, ok := typeOf(x)
	switch {
	case ok && t.Kind == ir.KNone:
		return cond{static: true, value: is}
	case !ok || t.Kind != ir.KOptional:
		return cond{static: true, value: !is}
	}
	c := cond{v: l.op("is_none", l.irOf(x))}
	if d, ok := c.v.Const(); ok {
		c = cond{static: true, value: d.(bool) == is}
	} else if !is {
		c.v = l.op("py_not", c.v)
	}
	if n, ok := ex.(*nameExpr); ok {
		if is {
			c.no = []refinement{{name: n.name}}
		} else {
			c.yes = []refinement{{name: n.name}}
		}
	}
	return c
}

func (l *lowering) compareValues(op string, x, y value, p Pos) value {
	l.at(p)
	switch op {
	case "is", "is not":
		return l.identity(op, x, y, p)
	case "in", "not in":
		v := l.contains(x, y, p)
		if op == "not in" {
			v = l.op("py_not", v)
		}
		return scalarOf(v)
	}
	return l.binary(op, x, y, p)
}

func (l *lowering) identity(op string, x, y value, p Pos) value {
	sx, sOkX := x.(*scalarV)
	sy, sOkY := y.(*scalarV)
	if sOkX && sOkY && sx.t.Kind == ir.KBool && sy.t.Kind == ir.KBool {
		return l.scalarBinary(map[string]string{"is": "==", "is not": "!="}[op], sx, sy, p)
	}
	tx, okX := x.(*tupleV)
	ty, okY := y.(*tupleV)
	if okX && okY && len(tx.names) == 2 && len(ty.names) == 2 && tx.names[0] == enumNames[0] && ty.names[0] == enumNames[0] {
		return l.equality(map[string]string{"is": "==", "is not": "!="}[op], x, y, p)
	}
	l.fail(p, "'%s' is only supported with None", op)
	return nil
}

func (l *lowering) contains(x, y value, p Pos) *ir.Value {
	switch c := y.(type) {
	case *refV:
		switch c.t.Kind {
		case ir.KList:
			if t, ok := typeOf(x); ok && (t.Kind == ir.KTensor || !subtype(t, c.t.Elems[0]) && c.t.Elems[0].Kind != ir.KAny) {
				l.fail(p, "'in': cannot look for a value of type '%s' in a '%s'", describe(x), typeName(c.t))
			}
			return l.op("list_contains", l.read(c), l.irOf(x))
		case ir.KDict:
			if t, ok := typeOf(x); ok && !subtype(t, c.t.Elems[0]) {
				l.fail(p, "'in': expected a key of type '%s', found '%s'", typeName(c.t.Elems[0]), describe(x))
			}
			return l.op("dict_contains", l.read(c), l.irOf(x))
		}
	case *tupleV:
		return l.op("list_contains", l.irOf(c), l.irOf(x))
	case *scalarV:
		if c.t.Kind == ir.KString {
			if s, ok := x.(*scalarV); ok && s.t.Kind == ir.KString {
				return l.op("str_contains", c.v, s.v)
			}
		}
	case *rangeV:
		return l.op("list_contains", l.irOf(c), l.irOf(x))
	case *module:
		if s, ok := x.(*scalarV); ok {
			if d, ok := s.v.Const(); ok {
				key, _ := d.(string)
				return l.constant(c.has(key))
			}
		}
	}
	l.fail(p, "'in' is not supported on a value of type '%s'", describe(y))
	return nil
}

// typeTest lowers isinstance and hasattr, which are decided while lowering except for Optionals.
func (l *lowering) typeTest(e *callExpr) (cond, bool) {
	n, ok := e.fn.(*nameExpr)
	if !ok || l.frame.vars[n.name] != nil {
		return cond{}, false
	}
	switch n.name {
	case "isinstance":
		return l.isInstance(e), true
	case "hasattr":
		if len(e.args) == 2 {
			if m, ok := l.expr(e.args[0]).(*module); ok {
				if s, ok := e.args[1].(*strExpr); ok {
					return cond{static: true, value: m.has(s.v)}, true
				}
			}
		}
		l.fail(e.pos, "hasattr() takes a module and a literal name")
	}
	return cond{}, false
}

func (l *lowering) isInstance(e *callExpr) cond {
	if len(e.args) != 2 {
		l.fail(e.pos, "isinstance() takes 2 arguments, got %d", len(e.args))
	}
	x := l.expr(e.args[0])
	l.at(e.pos)
	types := []expr{e.args[1]}
	if t, ok := e.args[1].(*tupleExpr); ok {
		types = t.elems
	}
	if u, t, ok := isUnionValue(x); ok {
		return l.unionTest(u, t, e.args[0], types)
	}
	t, ok := typeOf(x)
	for _, te := range types {
		if ok && l.instanceOf(unwrapped(t), te) {
			if !isOptional(t) {
				return cond{static: true, value: true}
			}
			c := cond{v: l.op("py_not", l.op("is_none", l.irOf(x)))}
			if n, ok := e.args[0].(*nameExpr); ok {
				c.yes = []refinement{{name: n.name}}
			}
			return c
		}
		if ok && t.Kind == ir.KOptional {
			if c, isNone := te.(*constExpr); isNone && c.name == "None" {
				return cond{v: l.op("is_none", l.irOf(x))}
			}
		}
	}
	return cond{static: true, value: false}
}

func (l *lowering) instanceOf(t ir.Type, e expr) bool {
	if n, ok := e.(*nameExpr); ok {
		switch n.name {
		case "list", "List":
			return t.Kind == ir.KList
		case "tuple", "Tuple":
			return t.Kind == ir.KTuple
		case "dict", "Dict":
			return t.Kind == ir.KDict
		}
	}
	want := l.annotation(e)
	return t.Kind == want.Kind && isUnion(t) == isUnion(want) && subtype(t, want)
}
