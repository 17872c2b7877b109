package script

import (
	"math"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Calls in constructors: functions, methods, builtins, layers.

func (fr *pyFrame) callExpr(e *callExpr) any {
	if a, ok := e.fn.(*attrExpr); ok {
		if c, ok := a.x.(*callExpr); ok {
			if n, ok := c.fn.(*nameExpr); ok && n.name == "super" {
				return fr.super(a, e)
			}
		}
	}
	fn := fr.eval(e.fn)
	args, kws := fr.args(e)
	switch f := fn.(type) {
	case *pyFunc:
		if f.cls != nil {
			args = append([]any{f.cls}, args...)
		}
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

// args evaluates the arguments of a call.
func (fr *pyFrame) args(e *callExpr) ([]any, map[string]any) {
	args := fr.evalAll(e.args)
	kws := map[string]any{}
	for _, k := range e.kws {
		v := fr.eval(k.x)
		if k.name != "**" {
			kws[k.name] = v
			continue
		}
		d, ok := v.(*pyDict)
		if !ok {
			fr.fail(k.pos, "** takes a dict, not %s", pyType(v))
		}
		for i := range d.keys {
			name, ok := d.keys[i].(string)
			if !ok {
				fr.fail(k.pos, "keywords must be strings")
			}
			kws[name] = d.values[i]
		}
	}
	return args, kws
}

func (fr *pyFrame) super(a *attrExpr, e *callExpr) any {
	owner := fr.def
	if owner == nil || owner.owner == nil {
		fr.fail(e.pos, "super() is only supported in a method")
	}
	args, kws := fr.args(e)
	for _, p := range owner.owner.parents() {
		if d := p.method(a.name); d != nil {
			return fr.call(d, fr.self, args, kws, e.pos)
		}
	}
	if a.name == "__init__" && fr.self != nil && fr.self.kind != "" && len(args) > 0 {
		return fr.fill(fr.self, args, e.pos)
	}
	if a.name != "__init__" {
		return fr.callMethod(&pyMethod{fr.self, a.name}, args, kws, e)
	}
	return nil
}

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
		if row, ok := argOr(args, 3).(int64); ok {
			w.init += "/zero:" + strconv.FormatInt(row, 10)
		}
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
		if g, given := kws["requires_grad"]; given || len(args) > 1 {
			if !given {
				g = args[1]
			}
			c.frozen = !fr.truth(g)
		}
		return &c
	case "copy.deepcopy", "copy.copy":
		return deepCopy(arg(0), map[any]any{})
	case "torch.Size":
		return pyTuple(fr.elements(arg(0), p))
	case "torch.device":
		return "cpu"
	case "torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict", "torch.nn.ParameterList", "torch.nn.ParameterDict":
		return fr.newContainer(name[len("torch.nn."):], args, p)
	case "collections.OrderedDict", "dict":
		return fr.newDict(args, kws, p)
	case "torch.Tensor", "torch.FloatTensor":
		if len(args) > 0 {
			if _, isSize := args[0].(int64); isSize {
				return fr.create("torch.empty", args, dt, p)
			}
		}
	case "torch.zeros", "torch.ones", "torch.empty", "torch.randn", "torch.rand", "torch.full":
		if w := fr.create(name, args, dt, p); w != nil {
			return w
		}
	case "torch.nn.Module":
		return newModule("Module")
	case "torch.manual_seed", "warnings.warn", "print":
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

func (fr *pyFrame) newContainer(class string, args []any, p Pos) any {
	return fr.fill(newContainer(class), args, p)
}

func (fr *pyFrame) fill(m *module, args []any, p Pos) any {
	class := m.kind
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
	case class == "ParameterDict":
		if d, ok := args[0].(*pyDict); ok {
			for i := range d.keys {
				k, okKey := d.keys[i].(string)
				w, okValue := d.values[i].(*weight)
				if !okKey || !okValue {
					fr.fail(p, "a ParameterDict takes names and parameters")
				}
				m.addWeight(k, w)
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
			default:
				fr.fail(e.pos, "apply() takes a function")
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
	case "parameters", "named_parameters":
		l := &pyList{}
		m.eachWeight(func(path string, w *weight) {
			switch {
			case !w.param:
			case name == "parameters":
				l.elems = append(l.elems, w)
			default:
				l.elems = append(l.elems, pyTuple{path, w})
			}
		})
		return l
	case "named_modules", "named_children":
		l := &pyList{}
		m.named("", name == "named_modules", func(path string, c *module) { l.elems = append(l.elems, pyTuple{path, c}) })
		return l
	case "buffers":
		l := &pyList{}
		m.eachWeight(func(_ string, w *weight) {
			if w.buffer {
				l.elems = append(l.elems, w)
			}
		})
		return l
	case "items", "keys", "values":
		l := &pyList{}
		for i, k := range m.keys {
			var c any
			if i < len(m.items) {
				c = m.items[i]
			} else {
				c = m.weights[i]
			}
			switch name {
			case "items":
				l.elems = append(l.elems, pyTuple{k, c})
			case "keys":
				l.elems = append(l.elems, k)
			default:
				l.elems = append(l.elems, c)
			}
		}
		return l
	case "update":
		if d, ok := argOr(args, 0).(*pyDict); ok {
			return fr.fill(m, []any{d}, e.pos)
		}
		return m
	case "eval", "train": // the mode is set for the whole model when it runs
		return m
	case "requires_grad_":
		on := len(args) == 0 || fr.truth(args[0])
		m.eachWeight(func(_ string, w *weight) { w.frozen = !on })
		return m
	case "to", "float", "double", "half", "bfloat16":
		d, ok := argOr(args, 0).(dtype.DType)
		if kd, given := kws["dtype"].(dtype.DType); given {
			d, ok = kd, true
		}
		if name != "to" {
			d, ok = map[string]dtype.DType{"float": dtype.F32, "double": dtype.F64, "half": dtype.F16, "bfloat16": dtype.BF16}[name], true
		}
		if ok {
			m.eachWeight(func(_ string, w *weight) { w.convert(d) })
		}
		return m
	case "zero_grad", "share_memory", "cpu":
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

// named visits a module's children, or itself and all its descendants, by their paths.
func (m *module) named(path string, deep bool, visit func(path string, c *module)) {
	if deep {
		visit(path, m)
	}
	if path != "" {
		path += "."
	}
	for _, c := range m.childNames() {
		if deep {
			m.childAt(c).named(path+c, true, visit)
		} else {
			visit(path+c, m.childAt(c))
		}
	}
}

func (m *module) childNames() []string {
	var out []string
	if len(m.items) > 0 {
		out = append(out, m.keys...)
	}
	for _, name := range m.names {
		if _, ok := m.attrs[name].(*module); ok {
			out = append(out, name)
		}
	}
	return out
}

func (m *module) childAt(name string) *module {
	if c, ok := m.attrs[name].(*module); ok {
		return c
	}
	return m.child(name)
}

// eachWeight visits the different parameters and buffers below a module by their paths.
func (m *module) eachWeight(visit func(path string, w *weight)) {
	seen := map[*weight]bool{}
	m.walk("", map[*module]bool{}, func(path string, w *weight) {
		if !seen[w] {
			seen[w] = true
			visit(path, w)
		}
	})
}

func argOr(args []any, i int) any {
	if i < len(args) {
		return args[i]
	}
	return nil
}

// deepCopy copies what a constructor computed; what appears twice is copied once.
func deepCopy(v any, seen map[any]any) any {
	if t, ok := v.(pyTuple); ok {
		c := make(pyTuple, len(t))
		for i, x := range t {
			c[i] = deepCopy(x, seen)
		}
		return c
	}
	if c, ok := seen[v]; ok {
		return c
	}
	switch v := v.(type) {
	case *module:
		c := *v
		seen[v] = &c
		c.attrs = make(map[string]any, len(v.attrs))
		for k, x := range v.attrs {
			c.attrs[k] = deepCopy(x, seen)
		}
		c.names, c.keys = append([]string{}, v.names...), append([]string{}, v.keys...)
		c.items, c.weights = nil, nil
		for _, x := range v.items {
			c.items = append(c.items, deepCopy(x, seen).(*module))
		}
		for _, w := range v.weights {
			c.weights = append(c.weights, deepCopy(w, seen).(*weight))
		}
		return &c
	case *weight:
		c := *v
		c.name = ""
		seen[v] = &c
		return &c
	case *pyList:
		c := &pyList{}
		seen[v] = c
		for _, x := range v.elems {
			c.elems = append(c.elems, deepCopy(x, seen))
		}
		return c
	case *pyDict:
		c := &pyDict{keys: append([]any{}, v.keys...)}
		seen[v] = c
		for _, x := range v.values {
			c.values = append(c.values, deepCopy(x, seen))
		}
		return c
	}
	return v
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
		case "torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.ParameterList", "torch.nn.ParameterDict":
			m, ok := x.(*module)
			return ok && "torch.nn."+m.kind == string(t)
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
