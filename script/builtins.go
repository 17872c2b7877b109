package script

import (
	"math"
	"strings"

	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

var mathConstants = map[string]float64{"pi": math.Pi, "e": math.E, "inf": math.Inf(1), "nan": math.NaN(), "tau": 2 * math.Pi}

type builtinFunc func(l *lowering, args []value, kws []kwValue, e *callExpr) value

// builtins are Python's functions that scripts may call.
var builtins map[string]builtinFunc

func init() {
	builtins = map[string]builtinFunc{
		"range": builtinRange, "len": builtinLen, "enumerate": builtinEnumerate, "zip": builtinZip, "min": minMax("py_min", "minimum"),
		"max": minMax("py_max", "maximum"), "abs": builtinAbs, "sum": builtinSum, "sorted": builtinSorted, "round": builtinRound,
		"any": anyAll(false), "all": anyAll(true), "str": builtinStr, "int": builtinInt, "float": builtinFloat, "bool": builtinBool,
		"list": builtinList, "tuple": builtinTuple, "dict": builtinDict, "print": builtinPrint, "pow": builtinPow, "divmod": builtinDivmod,
		"reversed": builtinReversed, "isinstance": nil, "hasattr": nil, "getattr": builtinGetattr, "super": builtinSuper, "slice": nil, "id": nil,
		"ord": onString("ord", "str_ord"), "chr": onInt("chr"), "hex": onInt("hex"), "oct": onInt("oct"), "bin": onInt("bin"), "map": nil, "filter": nil,
	}
	for name, f := range builtins {
		if f == nil {
			builtins[name] = func(l *lowering, _ []value, _ []kwValue, e *callExpr) value {
				l.fail(e.pos, "'%s' is not supported here", name)
				return nil
			}
		}
	}
	delete(builtins, "map")
	delete(builtins, "filter")
	delete(builtins, "id")
	delete(builtins, "slice")
}

func (l *lowering) builtin(name string, args []value, kws []kwValue, e *callExpr) value {
	if fn, ok := strings.CutPrefix(name, "math."); ok {
		return l.mathCall(fn, args, e)
	}
	switch name {
	case "enumerate", "sorted", "sum", "print", "round", "max", "min", "dict":
	default:
		if len(kws) > 0 {
			l.fail(kws[0].pos, "%s() got an unexpected keyword argument '%s'", name, short(kws[0].name))
		}
	}
	f := builtins[name]
	if f == nil {
		l.fail(e.pos, "'%s' is not supported in a script", name)
	}
	return f(l, args, kws, e)
}

func (l *lowering) arity(args []value, lo, hi int, what string, p Pos) {
	if len(args) < lo || len(args) > hi {
		l.fail(p, "%s() takes %d to %d arguments, got %d", what, lo, hi, len(args))
	}
}

func (l *lowering) mathCall(name string, args []value, e *callExpr) value {
	n := len(ir.LookupOp("math_" + name).Params)
	if name == "log" && len(args) == 2 {
		return scalarOf(l.op("py_truediv", l.irOf(l.mathCall("log", args[:1], e)), l.irOf(l.mathCall("log", args[1:], e))))
	}
	l.arity(args, n, n, "math."+name, e.pos)
	irs := make([]*ir.Value, n)
	for i, a := range args {
		switch a := a.(type) {
		case *scalarV:
			if !isNumber(a.t) {
				l.fail(e.pos, "math.%s(): expected a number, found '%s'", name, typeName(a.t))
			}
			irs[i] = a.v
		default:
			r, ok := isTensor(a)
			if !ok {
				l.fail(e.pos, "math.%s(): expected a number, found '%s'", name, describe(a))
			}
			irs[i] = l.op("item_float", l.read(r))
		}
	}
	v := l.op("math_"+name, irs...)
	return l.valueOf(v, v.Type)
}

func (l *lowering) intArg(v value, p Pos, what string) *ir.Value {
	if r, ok := isTensor(v); ok {
		return l.op("item_int", l.read(r))
	}
	return l.irOf(l.coerce(v, ir.Int, p, what))
}

func builtinRange(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 1, 3, "range", e.pos)
	r := &rangeV{l.int(0), nil, l.int(1)}
	vs := make([]*ir.Value, len(args))
	for i, a := range args {
		vs[i] = l.intArg(a, e.args[min(i, len(e.args)-1)].at(), "range(): argument")
	}
	l.at(e.pos)
	switch len(vs) {
	case 1:
		r.stop = vs[0]
	case 2:
		r.start, r.stop = vs[0], vs[1]
	case 3:
		r.start, r.stop, r.step = vs[0], vs[1], vs[2]
	}
	return r
}

func builtinLen(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 1, 1, "len", e.pos)
	l.noUnion(args[0], e.pos)
	switch x := args[0].(type) {
	case *tupleV:
		return l.scalar(int64(len(x.elems)))
	case *rangeV:
		return scalarOf(l.op("range_len", x.start, x.stop, x.step))
	case *module:
		if x.container() {
			return l.scalar(int64(len(x.keys)))
		}
	case *scalarV:
		if x.t.Kind == ir.KString {
			return scalarOf(l.op("str_len", x.v))
		}
	case *refV:
		switch x.t.Kind {
		case ir.KList:
			if s, ok := l.static(x); ok {
				return l.scalar(int64(len(s.elems)))
			}
			return scalarOf(l.op("list_len", l.read(x)))
		case ir.KDict:
			return scalarOf(l.op("dict_len", l.read(x)))
		case ir.KTensor:
			return scalarOf(l.op("size", l.read(x), l.int(0)))
		}
	}
	l.fail(e.pos, "len(): a value of type '%s' has no length", describe(args[0]))
	return nil
}

func builtinEnumerate(l *lowering, args []value, kws []kwValue, e *callExpr) value {
	l.arity(args, 1, 2, "enumerate", e.pos)
	en := &enumV{x: args[0], start: l.int(0)}
	if len(args) == 2 {
		en.start = l.intArg(args[1], e.pos, "enumerate(): argument 'start'")
	}
	for _, k := range kws {
		if k.name != "start" {
			l.fail(k.pos, "enumerate() got an unexpected keyword argument '%s'", short(k.name))
		}
		en.start = l.intArg(k.v, k.pos, "enumerate(): argument 'start'")
	}
	return en
}

func builtinZip(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 1, 100, "zip", e.pos)
	return &zipV{args}
}

func minMax(scalar, tensor string) builtinFunc {
	return func(l *lowering, args []value, kws []kwValue, e *callExpr) value {
		if len(kws) > 0 {
			l.fail(kws[0].pos, "%s() got an unexpected keyword argument '%s'", scalar[3:], short(kws[0].name))
		}
		if len(args) == 1 {
			return l.fold(args[0], e.pos, scalar[3:], func(a, b value) value { return l.pair(scalar, tensor, a, b, e.pos) }, nil)
		}
		l.arity(args, 2, 100, scalar[3:], e.pos)
		out := args[0]
		for _, a := range args[1:] {
			out = l.pair(scalar, tensor, out, a, e.pos)
		}
		return out
	}
}

func (l *lowering) pair(scalar, tensor string, a, b value, p Pos) value {
	x, okX := number(a)
	y, okY := number(b)
	if okX && okY {
		return scalarOf(l.op(scalar, x.v, y.v))
	}
	rx, tx := isTensor(a)
	ry, ty := isTensor(b)
	if tx && ty {
		return l.tensorMethod(rx, tensor, []value{ry}, nil, p)
	}
	l.fail(p, "%s(): cannot compare '%s' and '%s'", scalar[3:], describe(a), describe(b))
	return nil
}

// fold combines the elements of a list from the left; an empty list is an error unless there is a start.
func (l *lowering) fold(v value, p Pos, what string, f func(a, b value) value, start value) value {
	if r, ok := isTensor(v); ok {
		return l.fold(l.unbind(r), p, what, f, start)
	}
	if elems, ok := l.unrolled(v, nil); ok && (len(elems) > 0 || start != nil) {
		if start == nil {
			start, elems = elems[0], elems[1:]
		}
		for _, e := range elems {
			start = f(start, e)
		}
		return start
	}
	n, item := l.iterate(v, p)
	trip, first := n, 0
	if start == nil {
		start, first = item(l.int(0)), 1
		trip = l.op("py_sub", n, l.int(1))
	}
	l.frame.vars["$fold"] = start
	l.loop(&loopSpec{pos: p, assigned: map[string]bool{"$fold": true}, trip: trip, body: func(i *ir.Value) {
		l.frame.vars["$fold"] = f(l.frame.vars["$fold"], item(l.op("py_add", i, l.int(first))))
	}})
	out := l.frame.vars["$fold"]
	delete(l.frame.vars, "$fold")
	return out
}

func builtinAbs(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 1, 1, "abs", e.pos)
	if r, ok := isTensor(args[0]); ok {
		return l.tensorMethod(r, "abs", nil, nil, e.pos)
	}
	if s, ok := number(args[0]); ok {
		return scalarOf(l.op("py_abs", s.v))
	}
	l.fail(e.pos, "abs(): expected a number or Tensor, found '%s'", describe(args[0]))
	return nil
}

func builtinSum(l *lowering, args []value, kws []kwValue, e *callExpr) value {
	l.arity(args, 1, 2, "sum", e.pos)
	var start value
	if len(args) == 2 {
		start = args[1]
	}
	for _, k := range kws {
		start = k.v
	}
	if r, ok := args[0].(*refV); ok && start == nil && r.t.Kind == ir.KList {
		switch r.t.Elems[0].Kind {
		case ir.KInt, ir.KBool:
			start = l.scalar(int64(0))
		case ir.KFloat:
			start = l.scalar(0.0)
		}
	}
	if start == nil {
		if _, ok := args[0].(*rangeV); ok {
			start = l.scalar(int64(0))
		}
	}
	return l.fold(args[0], e.pos, "sum", func(a, b value) value {
		x, okX := number(a)
		y, okY := number(b)
		if okX && okY {
			return scalarOf(l.op("py_add", x.v, y.v))
		}
		return l.binary("+", a, b, e.pos)
	}, start)
}

func builtinSorted(l *lowering, args []value, kws []kwValue, e *callExpr) value {
	l.arity(args, 1, 1, "sorted", e.pos)
	r, ok := args[0].(*refV)
	if !ok || r.t.Kind != ir.KList {
		l.fail(e.pos, "sorted(): expected a list, found '%s'", describe(args[0]))
	}
	rev := l.constant(false)
	for _, k := range kws {
		if k.name != "reverse" {
			l.fail(k.pos, "sorted() got an unexpected keyword argument '%s'", short(k.name))
		}
		rev = l.irOf(l.coerce(k.v, ir.BoolT, k.pos, "sorted(): argument 'reverse'"))
	}
	return l.fresh(l.op("list_sort", l.read(r), rev), r.t)
}

func builtinRound(l *lowering, args []value, kws []kwValue, e *callExpr) value {
	if len(kws) > 0 {
		args = append(args, kws[0].v)
	}
	l.arity(args, 1, 2, "round", e.pos)
	if r, ok := isTensor(args[0]); ok {
		return l.tensorMethod(r, "round", nil, nil, e.pos)
	}
	s, ok := number(args[0])
	if !ok {
		l.fail(e.pos, "round(): expected a number, found '%s'", describe(args[0]))
	}
	if len(args) == 1 {
		return scalarOf(l.op("py_round", l.op("py_float", s.v), l.int(0)))
	}
	return scalarOf(l.op("py_round", l.op("py_float", s.v), l.intArg(args[1], e.pos, "round(): argument 'ndigits'")))
}

func anyAll(all bool) builtinFunc {
	name := map[bool]string{true: "all", false: "any"}[all]
	return func(l *lowering, args []value, _ []kwValue, e *callExpr) value {
		l.arity(args, 1, 1, name, e.pos)
		if r, ok := isTensor(args[0]); ok {
			return l.tensorMethod(r, name, nil, nil, e.pos)
		}
		f := func(a, b value) value {
			x, y := a.(*scalarV).v, l.truth(b, e.pos)
			if all {
				return scalarOf(l.op("py_select", x, y, l.constant(false)))
			}
			return scalarOf(l.op("py_select", x, l.constant(true), y))
		}
		return l.fold(args[0], e.pos, name, f, l.scalar(all))
	}
}

func builtinStr(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 0, 1, "str", e.pos)
	if len(args) == 0 {
		return l.scalar("")
	}
	return scalarOf(l.op("py_str", l.irOf(args[0])))
}

func builtinInt(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	return l.convert("int", "item_int", "py_int", args, e)
}

func builtinFloat(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	return l.convert("float", "item_float", "py_float", args, e)
}

func builtinBool(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 0, 1, "bool", e.pos)
	if len(args) == 0 {
		return l.scalar(false)
	}
	return scalarOf(l.truth(args[0], e.pos))
}

func (l *lowering) convert(name, item, op string, args []value, e *callExpr) value {
	l.arity(args, 0, 1, name, e.pos)
	if len(args) == 0 {
		if name == "int" {
			return l.scalar(int64(0))
		}
		return l.scalar(0.0)
	}
	switch x := l.numberOf(args[0]).(type) {
	case *scalarV:
		if isNumber(x.t) || x.t.Kind == ir.KString {
			return scalarOf(l.op(op, x.v))
		}
	case *refV:
		if x.t.Kind == ir.KTensor {
			return scalarOf(l.op(item, l.read(x)))
		}
	}
	l.fail(e.pos, "%s(): cannot convert a value of type '%s'", name, describe(args[0]))
	return nil
}

func builtinList(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 0, 1, "list", e.pos)
	if len(args) == 0 {
		return l.freshList(ir.ListOf(ir.AnyTensor), nil)
	}
	switch x := args[0].(type) {
	case *refV:
		switch x.t.Kind {
		case ir.KList:
			return l.listMethod(x, "copy", nil, nil, e.pos)
		case ir.KDict:
			return l.dictMethod(x, "keys", nil, e.pos)
		case ir.KTensor:
			return l.unbind(x)
		}
	case *tupleV:
		return l.listOf(append([]value{}, x.elems...), nil)
	case *rangeV:
		return l.fresh(l.irOf(x), ir.IntList)
	case *scalarV:
		if x.t.Kind == ir.KString {
			return l.characters(x)
		}
	case *zipV, *enumV:
		c := &compExpr{node: node{e.pos}, target: &nameExpr{node{e.pos}, "$x"}, elem: &nameExpr{node{e.pos}, "$x"}, iter: e.args[0]}
		return l.comprehension(c, nil)
	}
	l.fail(e.pos, "list(): cannot make a list of a value of type '%s'", describe(args[0]))
	return nil
}

func builtinTuple(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 0, 1, "tuple", e.pos)
	if len(args) == 0 {
		return l.tuple(nil)
	}
	if elems, ok := l.unrolled(args[0], nil); ok {
		return l.tuple(elems)
	}
	l.fail(e.pos, "tuple(): the number of elements must be known here, but '%s' has a length known only at run time", describe(args[0]))
	return nil
}

func builtinDict(l *lowering, args []value, kws []kwValue, e *callExpr) value {
	l.arity(args, 0, 1, "dict", e.pos)
	if len(args) == 1 {
		if r, ok := args[0].(*refV); ok && r.t.Kind == ir.KDict {
			return l.dictMethod(r, "copy", nil, e.pos)
		}
		if v := l.dictOfPairs(args[0], e); v != nil {
			return v
		}
		l.fail(e.pos, "dict(): cannot make a dict of a value of type '%s'", describe(args[0]))
	}
	t := ir.DictOf(ir.Str, ir.AnyTensor)
	if len(kws) > 0 {
		vt, _ := typeOf(kws[0].v)
		t = ir.DictOf(ir.Str, vt)
	}
	d := l.fresh(l.emptyDict(t), t)
	for _, k := range kws {
		l.setKey(d, l.scalar(k.name), k.v, k.pos)
	}
	return &refV{t: d.t, cell: d.cell}
}

// dictOfPairs is dict([(key, value), …]), also of zip and the like; nil for what has no pairs.
func (l *lowering) dictOfPairs(pairs value, e *callExpr) value {
	switch x := pairs.(type) {
	case *refV:
		if x.t.Kind != ir.KList || x.t.Elems[0].Kind != ir.KTuple || len(x.t.Elems[0].Elems) != 2 {
			return nil
		}
	case *zipV, *enumV:
	default:
		return nil
	}
	name := func(s string) expr { return &nameExpr{node{e.pos}, s} }
	return l.comprehension(&compExpr{node: node{e.pos}, elem: name("$k"), value: name("$v"), target: &tupleExpr{node{e.pos}, []expr{name("$k"), name("$v")}}, iter: e.args[0]}, nil)
}

func builtinPrint(l *lowering, args []value, kws []kwValue, e *callExpr) value {
	if len(kws) > 0 {
		l.fail(kws[0].pos, "print() got an unexpected keyword argument '%s'", short(kws[0].name))
	}
	irs := make([]*ir.Value, len(args))
	for i, a := range args {
		irs[i] = l.irOf(a)
	}
	l.at(e.pos)
	l.do("print", irs...)
	return l.none()
}

func builtinPow(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 2, 2, "pow", e.pos)
	return l.binary("**", args[0], args[1], e.pos)
}

func builtinDivmod(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 2, 2, "divmod", e.pos)
	return l.tuple([]value{l.binary("//", args[0], args[1], e.pos), l.binary("%", args[0], args[1], e.pos)})
}

func builtinReversed(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 1, 1, "reversed", e.pos)
	switch x := args[0].(type) {
	case *rangeV:
		n := l.op("range_len", x.start, x.stop, x.step)
		last := l.op("py_add", x.start, l.op("py_mul", l.op("py_sub", n, l.int(1)), x.step))
		neg := l.op("py_neg", x.step)
		return &rangeV{last, l.op("py_add", last, l.op("py_mul", n, neg)), neg}
	case *refV:
		if x.t.Kind == ir.KList {
			c := l.listMethod(x, "copy", nil, nil, e.pos).(*refV)
			l.listMethod(c, "reverse", nil, nil, e.pos)
			return &refV{t: c.t, cell: c.cell}
		}
	case *tupleV:
		out := make([]value, len(x.elems))
		for i, v := range x.elems {
			out[len(out)-1-i] = v
		}
		return l.tuple(out)
	}
	l.fail(e.pos, "reversed(): expected a range or list, found '%s'", describe(args[0]))
	return nil
}

func builtinGetattr(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	if len(e.args) >= 2 {
		if s, ok := args[1].(*scalarV); ok && s.t.Kind == ir.KString {
			if d, ok := s.v.Const(); ok {
				name := d.(string)
				if m, ok := args[0].(*module); ok && !m.has(name) && len(args) == 3 {
					return args[2]
				}
				return l.attr(&attrExpr{node{e.pos}, e.args[0], name})
			}
		}
	}
	l.fail(e.pos, "getattr() takes an object and a literal name")
	return nil
}

func builtinSuper(l *lowering, _ []value, _ []kwValue, e *callExpr) value {
	l.fail(e.pos, "super() is only supported as super().method(…)")
	return nil
}

func onString(name, op string) builtinFunc {
	return func(l *lowering, args []value, _ []kwValue, e *callExpr) value {
		l.arity(args, 1, 1, name, e.pos)
		return scalarOf(l.op(op, l.irOf(l.coerce(args[0], ir.Str, e.pos, name+"(): argument"))))
	}
}

func onInt(name string) builtinFunc {
	return func(l *lowering, args []value, _ []kwValue, e *callExpr) value {
		l.arity(args, 1, 1, name, e.pos)
		return scalarOf(l.op("py_"+name, l.intArg(args[0], e.pos, name+"(): argument")))
	}
}

type specialMethod func(l *lowering, r *refV, args []value, kws []kwValue, p Pos) value

// specialMethods are tensor methods that are not plain aten functions; one that gives nil leaves the call to aten.
var specialMethods map[string]specialMethod

type specialFunction func(l *lowering, args []value, kws []kwValue, e *callExpr) value

// specialFunctions are functions of torch by their dotted names that are not plain aten functions; one that gives nil leaves the
// call to aten.
var specialFunctions map[string]specialFunction

func init() {
	specialMethods = map[string]specialMethod{
		"requires_grad_": methodRequiresGrad, "retain_grad": func(l *lowering, r *refV, _ []value, _ []kwValue, _ Pos) value { return l.none() },
		"detach_": func(l *lowering, r *refV, _ []value, _ []kwValue, p Pos) value {
			l.fail(p, "detach_() is not supported: write x = x.detach()")
			return nil
		},
		"size": methodSize, "get_device": func(l *lowering, r *refV, _ []value, _ []kwValue, _ Pos) value { return l.scalar(int64(-1)) },
		"tolist": func(l *lowering, r *refV, _ []value, _ []kwValue, p Pos) value {
			l.fail(p, "tolist() is not supported in a script: its result has no static type; use item(), unbind() or indexing")
			return nil
		},
		"item": func(l *lowering, r *refV, args []value, _ []kwValue, p Pos) value {
			l.arity(args, 0, 0, "Tensor.item", p)
			return scalarOf(l.op("item", l.read(r)))
		},
		"backward": func(l *lowering, r *refV, args []value, kws []kwValue, p Pos) value {
			return l.backward([]value{r}, args, kws, "Tensor.backward", p)
		},
		"is_contiguous": methodIsContiguous, "stride": methodStride, "cuda": methodCuda,
		"zero_": func(l *lowering, r *refV, args []value, _ []kwValue, p Pos) value {
			l.writeTensor(r, l.aten1("fill.Scalar", l.read(r), l.int(0)))
			return r
		},
		"normal_": randomFill("normal_"), "uniform_": randomFill("uniform_"),
	}
	detached := func(l *lowering, args []value, kws []kwValue, e *callExpr) value { return nil }
	specialFunctions = map[string]specialFunction{
		"torch.autograd.grad": autogradGrad, "torch.autograd.backward": autogradBackward, "torch.manual_seed": manualSeed, "torch.random.manual_seed": manualSeed,
		"torch.jit.is_scripting": func(l *lowering, _ []value, _ []kwValue, _ *callExpr) value { return l.scalar(true) },
		"torch.jit.is_tracing":   func(l *lowering, _ []value, _ []kwValue, _ *callExpr) value { return l.scalar(false) },
		"torch.jit._unwrap_optional": func(l *lowering, args []value, _ []kwValue, e *callExpr) value {
			l.arity(args, 1, 1, "torch.jit._unwrap_optional", e.pos)
			if t, ok := typeOf(args[0]); ok && isOptional(t) {
				l.do("assert", l.op("py_not", l.op("is_none", l.irOf(args[0]))), l.constant("Unwrapping null optional"))
			}
			return l.unwrap(args[0])
		},
		"torch.jit.annotate": jitAnnotate, "torch.jit.unused": nil, "torch.jit.ignore": nil, "torch.jit.export": nil, "torch.jit.script": nil,
		"torch.no_grad": detached, "torch.inference_mode": detached, "torch.enable_grad": nil, "torch.is_tensor": isTensorFn,
		"torch.device": deviceFn, "torch.Size": sizeFn, "torch.is_grad_enabled": func(l *lowering, _ []value, _ []kwValue, _ *callExpr) value { return l.scalar(l.noGrad == 0) },
		"torch.numel": nil, "torch._assert": torchAssert, "torch.einsum": nil, "torch.get_default_dtype": func(l *lowering, _ []value, _ []kwValue, _ *callExpr) value {
			return l.scalar(dtype.F32)
		},
		"torch.cuda.is_available": func(l *lowering, _ []value, _ []kwValue, _ *callExpr) value { return l.scalar(false) },
	}
	for name, f := range specialFunctions {
		if f == nil {
			delete(specialFunctions, name)
		}
	}
}

func randomFill(name string) specialMethod {
	return func(l *lowering, r *refV, args []value, kws []kwValue, p Pos) value {
		shape := l.fresh(l.op("shape", l.read(r)), ir.IntList)
		lo, hi := value(l.scalar(0.0)), value(l.scalar(1.0))
		for i, a := range args {
			if i == 0 {
				lo = a
			} else {
				hi = a
			}
		}
		for _, k := range kws {
			switch k.name {
			case "mean", "from":
				lo = k.v
			case "std", "to":
				hi = k.v
			}
		}
		fn := map[string]string{"normal_": "randn", "uniform_": "rand"}[name]
		kw := []kwValue{{name: "dtype", v: scalarOf(l.op("dtype_of", l.read(r)))}}
		var v value = l.fresh(l.callAten(fn, []value{shape}, kw), ir.AnyTensor)
		scale := hi
		if name == "uniform_" {
			scale = l.binary("-", hi, lo, p)
		}
		v = l.binary("+", l.binary("*", v, scale, p), lo, p)
		l.writeTensor(r, l.aten1("write_result", l.read(r), l.irOf(v)))
		return r
	}
}

func methodSize(l *lowering, r *refV, args []value, kws []kwValue, p Pos) value {
	for _, k := range kws {
		args = append(args, k.v)
	}
	l.arity(args, 0, 1, "Tensor.size", p)
	if len(args) == 0 {
		return l.fresh(l.op("shape", l.read(r)), ir.IntList)
	}
	return scalarOf(l.op("size", l.read(r), l.intArg(args[0], p, "Tensor.size(): argument 'dim'")))
}

func methodIsContiguous(l *lowering, r *refV, _ []value, _ []kwValue, p Pos) value {
	if r.contiguous == yes {
		return l.scalar(true)
	}
	shape, strides, ok := l.strides(r)
	if !ok {
		l.fail(p, "is_contiguous(): the memory layout of this tensor is not known here")
	}
	return scalarOf(l.op("can_view", shape, strides, l.list([]*ir.Value{l.int(-1)}, ir.Int)))
}

func methodStride(l *lowering, r *refV, args []value, _ []kwValue, p Pos) value {
	_, strides, ok := l.strides(r)
	if !ok {
		l.fail(p, "stride(): the memory layout of this tensor is not known here")
	}
	if len(args) == 1 {
		return scalarOf(l.op("list_get", strides, l.intArg(args[0], p, "Tensor.stride(): argument 'dim'")))
	}
	return l.fresh(strides, ir.IntList)
}

func methodCuda(l *lowering, r *refV, _ []value, _ []kwValue, _ Pos) value {
	return l.step(r, "alias")
}

// torchCall lowers a call of a function of torch.
func (l *lowering) torchCall(name string, args []value, kws []kwValue, e *callExpr) value {
	if f := specialFunctions[name]; f != nil {
		if v := f(l, args, kws, e); v != nil {
			return v
		}
	}
	fns := functionOverloads(name)
	if len(fns) == 0 {
		l.fail(e.pos, "'%s' cannot be called in a script", name)
	}
	if name == "torch.tensor" && len(args) > 0 {
		if t, ok := args[0].(*tupleV); ok {
			args = append([]value{l.listOf(append([]value{}, t.elems...), nil)}, args[1:]...)
		}
	}
	if i := len(name) - 1; name[i] == '_' && !strings.HasSuffix(name, "__") && len(args) > 0 {
		if r, ok := isTensor(args[0]); ok {
			short := name[strings.LastIndexByte(name, '.')+1:]
			if l.knowsMethod(short) {
				return l.tensorMethod(r, short, args[1:], kws, e.pos)
			}
			return l.writeBack(r, fns, short, args[1:], kws, e.pos)
		}
	}
	out := -1
	for i, k := range kws {
		if k.name == "out" {
			out = i
		}
	}
	if out >= 0 {
		l.fail(kws[out].pos, "the argument out= is not supported: assign the result")
	}
	return l.dispatchAten(fns, args, kws, e.pos, name)
}

func manualSeed(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 1, 1, "torch.manual_seed", e.pos)
	l.do("manual_seed", l.intArg(args[0], e.pos, "torch.manual_seed(): argument 'seed'"))
	return l.none()
}

func jitAnnotate(l *lowering, _ []value, _ []kwValue, e *callExpr) value {
	l.fail(e.pos, "torch.jit.annotate() takes a type and a value")
	return nil
}

func isTensorFn(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 1, 1, "torch.is_tensor", e.pos)
	_, ok := isTensor(args[0])
	return l.scalar(ok)
}

func deviceFn(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	if len(args) > 0 {
		if s, ok := args[0].(*scalarV); ok && s.t.Kind == ir.KString {
			return s
		}
	}
	l.fail(e.pos, "torch.device() takes a string")
	return nil
}

func sizeFn(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 1, 1, "torch.Size", e.pos)
	return args[0]
}

func torchAssert(l *lowering, args []value, _ []kwValue, e *callExpr) value {
	l.arity(args, 2, 2, "torch._assert", e.pos)
	l.do("assert", l.truth(args[0], e.pos), l.op("py_str", l.irOf(args[1])))
	return l.none()
}

var _ = aten.Torch
