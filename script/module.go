package script

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/nn/layers"
)

// prelude is the file with the layers of torch.nn.
var prelude = sync.OnceValue(func() *File {
	f, err := Parse("torch.nn", layers.Source())
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return f
})

// module is an instance of an nn.Module, known completely while lowering.
type module struct {
	class   string
	kind    string    // of a container: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict
	def     *classDef // nil for the plain containers
	attrs   map[string]any
	names   []string // of attrs, in the order in which they were first set
	keys    []string // of the children of a container
	items   []*module
	weights []*weight // of a ParameterList or ParameterDict
}

// weight is a tensor that a constructor made: a parameter, a buffer or a plain tensor.
type weight struct {
	name    string
	shape   []int
	dtype   dtype.DType
	init    string
	value   *ir.Array // nil: described by init only
	param   bool
	frozen  bool // a parameter with requires_grad=False
	buffer  bool
	unsaved bool // a buffer outside the state dict
}

func newModule(class string) *module { return &module{class: class, attrs: map[string]any{}} }

func newContainer(kind string) *module {
	m := newModule(kind)
	m.kind = kind
	return m
}

func (m *module) set(name string, v any) {
	if _, had := m.attrs[name]; !had {
		m.names = append(m.names, name)
	}
	m.attrs[name] = v
}

func (m *module) container() bool { return m.kind != "" }

func (m *module) iterate() ([]value, bool) {
	switch m.kind {
	case "ModuleList", "Sequential":
		out := make([]value, len(m.items))
		for i, c := range m.items {
			out[i] = c
		}
		return out, true
	}
	return nil, false
}

func (m *module) has(name string) bool {
	if m.container() {
		for _, k := range m.keys {
			if k == name {
				return true
			}
		}
	}
	if _, ok := m.attrs[name]; ok || name == "training" {
		return true
	}
	return m.def != nil && (m.def.method(name) != nil || m.def.field(name) != nil)
}

// bases lists the script classes that a class inherits from.
func (c *classDef) parents() []*classDef {
	var out []*classDef
	for _, b := range c.bases {
		if n, ok := b.(*nameExpr); ok && c.file.classes[n.name] != nil {
			out = append(out, c.file.classes[n.name])
			continue
		}
		if p := c.file.layerClass(b); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// layerClass is the built-in layer that an expression such as nn.Linear names.
func (f *File) layerClass(e expr) *classDef {
	path, ok := f.dotted(e)
	if !ok || len(path) < 9 || path[:9] != "torch.nn." {
		return nil
	}
	return prelude().classes[path[9:]]
}

// dotted gives the full path of an expression that names something imported.
func (f *File) dotted(e expr) (string, bool) {
	switch e := e.(type) {
	case *nameExpr:
		return f.imported(e.name)
	case *attrExpr:
		base, ok := f.dotted(e.x)
		return base + "." + e.name, ok
	}
	return "", false
}

// isModule reports whether a class derives from nn.Module.
func (c *classDef) isModule(depth int) bool {
	if depth > 50 {
		return false
	}
	for _, b := range c.bases {
		if path, ok := c.file.dotted(b); ok && (path == "torch.nn.Module" || path == "torch.jit.ScriptModule" || containerKind(path) != "") {
			return true
		}
		if n, ok := b.(*nameExpr); ok && n.name == "Module" && c.file == prelude() {
			return true
		}
	}
	for _, p := range c.parents() {
		if p.isModule(depth + 1) {
			return true
		}
	}
	return false
}

// containerKind is the kind of container that a path names, "" for others.
func containerKind(path string) string {
	switch kind := strings.TrimPrefix(path, "torch.nn."); kind {
	case "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict":
		if kind != path {
			return kind
		}
	}
	return ""
}

// kind is the kind of container that a class derives from, "" for none.
func (c *classDef) kind(depth int) string {
	for _, b := range c.bases {
		if path, ok := c.file.dotted(b); ok && containerKind(path) != "" {
			return containerKind(path)
		}
	}
	for _, p := range c.parents() {
		if depth < 50 && p.kind(depth+1) != "" {
			return p.kind(depth + 1)
		}
	}
	return ""
}

// method finds a method in the class or its bases.
func (c *classDef) method(name string) *funcDef { return c.find(name, 0) }

func (c *classDef) find(name string, depth int) *funcDef {
	if m := c.methods[name]; m != nil || depth > 50 {
		return m
	}
	for _, p := range c.parents() {
		if m := p.find(name, depth+1); m != nil {
			return m
		}
	}
	return nil
}

// field finds a class attribute.
func (c *classDef) field(name string) *assignStmt {
	for _, f := range c.fields {
		for _, t := range f.targets {
			if n, ok := t.(*nameExpr); ok && n.name == name && f.value != nil {
				return f
			}
		}
	}
	for _, p := range c.parents() {
		if f := p.field(name); f != nil {
			return f
		}
	}
	return nil
}

func (m *module) method(_ *File, name string) *funcDef {
	if m.def == nil {
		return nil
	}
	if _, attr := m.attrs[name]; attr {
		return nil
	}
	if d := m.def.method(name); d != nil && !isProperty(d) {
		return d
	}
	return nil
}

func isProperty(d *funcDef) bool {
	return d.decorated("property")
}

func (d *funcDef) decorated(name string) bool {
	for _, e := range d.decorators {
		if dottedName(e) == name {
			return true
		}
	}
	return false
}

func knownLayer(name string) bool {
	switch name {
	case "Module", "ModuleList", "ModuleDict", "Sequential", "Parameter", "ParameterList", "ParameterDict":
		return true
	}
	return prelude().classes[name] != nil
}

// weightRef is the tensor of a parameter or buffer.
func (l *lowering) weightRef(w *weight) *refV {
	if r, ok := l.inputs[w]; ok {
		return &refV{t: r.t, cell: r.cell, contiguous: yes}
	}
	r := l.fresh(l.constant(w.array()), ir.AnyTensor)
	return r
}

// moduleAttr reads an attribute of a module.
func (l *lowering) moduleAttr(m *module, e *attrExpr) value {
	if e.name == "training" {
		return l.scalar(l.train)
	}
	if v, ok := m.attrs[e.name]; ok {
		return l.pyValue(v, e)
	}
	if c := m.child(e.name); c != nil {
		return c
	}
	if w := m.weightAt(e.name); w != nil {
		return l.weightRef(w)
	}
	if m.def != nil {
		if d := m.def.method(e.name); d != nil {
			if isProperty(d) {
				return l.inline(d, m, nil, nil, e.pos)
			}
			if d.decorated("staticmethod") {
				m = nil
			}
			return &funcV{d, m}
		}
		if v := l.classAttr(m.def, e.name); v != nil {
			return v
		}
	}
	l.fail(e.pos, "module '%s' has no attribute '%s'", m.class, short(e.name))
	return nil
}

func (m *module) weightAt(name string) *weight {
	for i, k := range m.keys {
		if k == name && i < len(m.weights) {
			return m.weights[i]
		}
	}
	return nil
}

func (m *module) child(name string) *module {
	for i, k := range m.keys {
		if k == name && i < len(m.items) {
			return m.items[i]
		}
	}
	return nil
}

// pyValue turns what a constructor computed into a value.
func (l *lowering) pyValue(v any, e *attrExpr) value {
	switch v := v.(type) {
	case nil, bool, int64, float64, string, dtype.DType:
		return l.scalar(v)
	case *module:
		return v
	case *weight:
		return l.weightRef(v)
	case *pyList:
		return l.pyElems(v.elems, e)
	case pyTuple:
		out := make([]value, len(v))
		for i, x := range v {
			out[i] = l.pyValue(x, e)
		}
		return l.tuple(out)
	case *pyDict:
		if len(v.keys) > 0 {
			d := l.fresh(nil, ir.Any)
			return l.pyDictValue(v, d, e)
		}
	case *pyFunc:
		return &funcV{v.def, v.self}
	case *pyClass:
		return &classV{v.def}
	case pyName:
		return l.namespace(string(v), e.pos)
	}
	l.fail(e.pos, "attribute '%s' holds a value that a script cannot use", short(e.name))
	return nil
}

func (l *lowering) pyElems(elems []any, e *attrExpr) value {
	out := make([]value, len(elems))
	modules := false
	for i, x := range elems {
		out[i] = l.pyValue(x, e)
		_, modules = out[i].(*module)
	}
	if modules {
		m := newContainer("ModuleList")
		for i, x := range elems {
			c, ok := x.(*module)
			if !ok {
				l.fail(e.pos, "attribute '%s' is a list of modules and other things", short(e.name))
			}
			m.keys, m.items = append(m.keys, strconv.Itoa(i)), append(m.items, c)
		}
		return m
	}
	if l.file == prelude() && len(out) > 0 {
		if _, isTuple := out[0].(*tupleV); isTuple {
			return l.tuple(out)
		}
	}
	return l.listOf(out, nil)
}

func (l *lowering) pyDictValue(d *pyDict, _ *refV, e *attrExpr) value {
	var keys, values []value
	for i := range d.keys {
		keys = append(keys, l.pyValue(d.keys[i], e))
		values = append(values, l.pyValue(d.values[i], e))
	}
	t := ir.DictOf(l.common(keys, e.pos, "dict keys"), l.common(values, e.pos, "dict values"))
	out := l.fresh(l.emptyDict(t), t)
	for i := range keys {
		l.setKey(out, keys[i], values[i], e.pos)
	}
	return &refV{t: t, cell: out.cell}
}

// setModuleAttr lowers self.name = v: a write to a buffer.
func (l *lowering) setModuleAttr(m *module, t *attrExpr, v value) {
	if w, ok := m.attrs[t.name].(*weight); ok {
		r, isRef := isTensor(v)
		if !isRef {
			l.fail(t.pos, "attribute '%s' is a tensor and cannot be set to a value of type '%s'", short(t.name), describe(v))
		}
		l.write(l.weightRef(w), l.aten1("write_result", l.read(l.weightRef(w)), l.read(r)))
		return
	}
	l.fail(t.pos, "attribute '%s' of module '%s' cannot be changed in a script: return the new value instead", short(t.name), m.class)
}

// moduleCall lowers methods that every module or container has.
func (l *lowering) moduleCall(m *module, a *attrExpr, e *callExpr) (value, bool) {
	switch a.name {
	case "items", "keys", "values":
		if m.kind != "ModuleDict" && m.kind != "ParameterDict" {
			break
		}
		out := make([]value, len(m.keys))
		for i := range m.keys {
			var c value
			if m.kind == "ModuleDict" {
				c = m.items[i]
			} else {
				c = l.weightRef(m.weights[i])
			}
			switch a.name {
			case "keys":
				out[i] = l.scalar(m.keys[i])
			case "values":
				out[i] = c
			default:
				out[i] = l.tuple([]value{l.scalar(m.keys[i]), c})
			}
		}
		return l.tuple(out), true
	case "forward":
		if m.kind == "Sequential" {
			args, kws := l.args(e)
			return l.callModule(m, args, kws, e.pos), true
		}
	}
	return nil, false
}

// callModule lowers module(…).
func (l *lowering) callModule(m *module, args []value, kws []kwValue, p Pos) value {
	switch m.kind {
	case "Sequential":
		if m.def != nil && m.def.method("forward") != nil {
			break
		}
		if len(args) != 1 || len(kws) > 0 {
			l.fail(p, "a Sequential takes one argument, got %d", len(args)+len(kws))
		}
		x := args[0]
		key := l.frame.key
		for i, c := range m.items {
			l.frame.key = key + "/" + strconv.Itoa(i)
			x = l.callModule(c, []value{x}, nil, p)
		}
		l.frame.key = key
		return x
	case "ModuleList", "ModuleDict", "ParameterList", "ParameterDict":
		if m.def != nil && m.def.method("forward") != nil {
			break
		}
		l.fail(p, "a %s cannot be called: call its elements", m.class)
	}
	d := m.def.method("forward")
	if d == nil {
		l.fail(p, "module '%s' has no method forward", m.class)
	}
	return l.inline(d, m, args, kws, p)
}

// moduleItem lowers self.layers[i].
func (l *lowering) moduleItem(m *module, e *indexExpr) value {
	if len(e.subs) == 1 {
		if s, ok := e.subs[0].(*sliceExpr); ok {
			return l.moduleSlice(m, s)
		}
		if i, ok := l.expr(e.subs[0]).(*scalarV); ok {
			switch d, _ := i.v.Const(); k := d.(type) {
			case int64:
				if k < 0 {
					k += int64(len(m.keys))
				}
				if k >= 0 && k < int64(len(m.weights)) {
					return l.weightRef(m.weights[k])
				}
				if k >= 0 && k < int64(len(m.items)) {
					return m.items[k]
				}
				l.fail(e.pos, "index %d is out of range for a %s of %d modules", d, m.class, len(m.keys))
			case string:
				if c := m.child(k); c != nil {
					return c
				}
				if w := m.weightAt(k); w != nil {
					return l.weightRef(w)
				}
				l.fail(e.pos, "the %s has no entry '%s'", m.class, short(k))
			}
		}
	}
	l.fail(e.pos, "a %s is indexed with a constant: iterate over it instead", m.class)
	return nil
}

func (l *lowering) moduleSlice(m *module, s *sliceExpr) value {
	bound := func(x expr) *ir.Value {
		if x == nil {
			return l.constant(nil)
		}
		return l.irOf(l.coerce(l.expr(x), ir.Int, x.at(), "slice bound"))
	}
	items, ok := m.iterate()
	if ok {
		if part, ok := sliceStatic(items, bound(s.lo), bound(s.hi), bound(s.step)); ok {
			out := newContainer(m.kind)
			for i, c := range part {
				out.keys, out.items = append(out.keys, strconv.Itoa(i)), append(out.items, c.(*module))
			}
			return out
		}
	}
	l.fail(s.pos, "the bounds of a slice of modules must be constants")
	return nil
}

// superCall lowers super().name(…).
func (l *lowering) superCall(e *callExpr, a *attrExpr) value {
	owner := l.frame.def.owner
	if owner == nil || l.frame.self == nil {
		l.fail(e.pos, "super() is only supported in a method")
	}
	for _, p := range owner.parents() {
		if d := p.method(a.name); d != nil {
			args, kws := l.args(e)
			l.at(e.pos)
			return l.inline(d, l.frame.self, args, kws, e.pos)
		}
	}
	l.fail(a.pos, "no base class of '%s' has a method '%s'", short(owner.name), short(a.name))
	return nil
}

// classAttr reads a class attribute; nil where there is none.
func (l *lowering) classAttr(c *classDef, name string) value {
	f := c.field(name)
	if f == nil {
		return nil
	}
	v := l.constantExpr(f.value, name, f.pos)
	if c.isEnum() {
		t := l.tuple([]value{l.scalar(name), v})
		t.names = enumNames
		return t
	}
	return v
}

// entryClass constructs a module and lowers its forward; the module's weights become inputs behind the arguments.
func (l *lowering) entryClass(c *classDef, call *callExpr, opts *Options) (*ir.Func, *Signature) {
	if !c.isModule(0) {
		l.file.fail(c.pos, "class '%s' is no nn.Module", short(c.name))
	}
	m := l.file.construct(c, call)
	def := c.method("forward")
	if def == nil {
		l.file.fail(c.pos, "class '%s' has no method forward", short(c.name))
	}
	l.train = opts.Train
	l.inputs = map[*weight]*refV{}
	sig := &Signature{}
	l.frame = &frame{def: def, self: m, vars: map[string]value{}, declared: map[string]ir.Type{}, gone: map[string]string{}, key: c.name}
	l.file = def.file
	l.at(def.pos)
	l.checkDecorators(def)
	l.entryParams(def.params[1:], def, sig)
	m.walk("", map[*module]bool{}, func(name string, w *weight) { l.entryWeight(name, w, sig) })
	l.frame.vars[def.params[0].name] = m
	if def.ret != nil {
		t := l.annotation(def.ret)
		l.frame.ret = &t
	}
	l.finish(def.body)
	l.results(sig)
	return l.f, sig
}

func (l *lowering) entryWeight(name string, w *weight, sig *Signature) {
	if w.unsaved {
		return
	}
	if l.inputs[w] != nil {
		i := slices.IndexFunc(sig.Weights, func(s Weight) bool { return s.Name == w.name })
		sig.Weights[i].Also = append(sig.Weights[i].Also, name)
		return
	}
	w.name = name
	t := ir.TensorOf(w.dtype, w.shape...)
	v := l.f.Param(w.name, t)
	if w.frozen {
		v = l.op("detach", v)
	}
	l.inputs[w] = l.fresh(v, ir.AnyTensor)
	l.order = append(l.order, w)
	out := Weight{Name: w.name, Shape: w.shape, DType: w.dtype, Buffer: w.buffer, Frozen: w.frozen, Init: w.init}
	if w.buffer || w.value != nil {
		out.Value = w.array()
	}
	sig.Weights = append(sig.Weights, out)
}

// walk visits the parameters and buffers by their names, in the order of the state dict; what stands at several places is visited at each. on holds the
// modules on the way here.
func (m *module) walk(prefix string, on map[*module]bool, visit func(name string, w *weight)) {
	if on[m] {
		return
	}
	on[m] = true
	defer delete(on, m)
	for _, buffers := range []bool{false, true} {
		for _, name := range m.names {
			if w, ok := m.attrs[name].(*weight); ok && (w.param || w.buffer) && w.buffer == buffers {
				visit(prefix+name, w)
			}
		}
	}
	for i, w := range m.weights {
		visit(prefix+m.keys[i], w)
	}
	for i, c := range m.items {
		c.walk(prefix+m.keys[i]+".", on, visit)
	}
	for _, name := range m.names {
		if c, ok := m.attrs[name].(*module); ok {
			c.walk(prefix+name+".", on, visit)
		}
	}
}

// updatedBuffers gives the new values of buffers, and of parameters, that were written.
func (l *lowering) updatedBuffers(sig *Signature) []*ir.Value {
	var out []*ir.Value
	for _, w := range l.order {
		r := l.inputs[w]
		if l.stampOf(r.cell) != 0 {
			sig.Updated = append(sig.Updated, w.name)
			out = append(out, l.read(r))
		}
	}
	return out
}
