package script

import (
	"strings"

	"github.com/gtc-project/gtc/ir"
)

// typeName writes a type as PyTorch's messages do.
func typeName(t ir.Type) string {
	switch t.Kind {
	case ir.KTensor:
		return "Tensor"
	case ir.KNone:
		return "NoneType"
	case ir.KAny:
		return "Scalar"
	case ir.KList:
		return "List[" + typeName(t.Elems[0]) + "]"
	case ir.KDict:
		return "Dict[" + typeName(t.Elems[0]) + ", " + typeName(t.Elems[1]) + "]"
	case ir.KOptional:
		return "Optional[" + typeName(t.Elems[0]) + "]"
	case ir.KTuple:
		if isUnion(t) {
			return "Union[" + strings.TrimPrefix(typeName(ir.TupleOf(t.Elems[1:]...)), "Tuple[")
		}
		parts := make([]string, len(t.Elems))
		for i, e := range t.Elems {
			parts[i] = typeName(e)
		}
		if len(parts) > 8 {
			parts = append(parts[:8], "…")
		}
		return "Tuple[" + strings.Join(parts, ", ") + "]"
	}
	return t.Kind.String()
}

// mutable reports whether values of type t are references to something that can be changed in place.
func mutable(t ir.Type) bool {
	switch t.Kind {
	case ir.KTensor, ir.KList, ir.KDict:
		return true
	case ir.KOptional:
		return mutable(t.Elems[0])
	}
	return false
}

func isOptional(t ir.Type) bool { return t.Kind == ir.KOptional }

// unwrapped is T for Optional[T], and t itself otherwise.
func unwrapped(t ir.Type) ir.Type {
	if t.Kind == ir.KOptional {
		return t.Elems[0]
	}
	return t
}

// optional is Optional[t] without nesting.
func optional(t ir.Type) ir.Type {
	if t.Kind == ir.KOptional || t.Kind == ir.KNone {
		return t
	}
	return ir.OptionalOf(t)
}

// subtype reports whether a value of type t may stand where want is asked for, without conversion.
func subtype(t, want ir.Type) bool {
	switch {
	case isAnything(want):
		return true
	case isUnion(want) && isUnion(t):
		for _, m := range t.Elems[1:] {
			if memberOf(want, m) < 0 {
				return false
			}
		}
		return true
	case isUnion(want):
		return memberOf(want, t) >= 0
	case isUnion(t) && want.Kind != ir.KOptional:
		return false
	}
	switch want.Kind {
	case ir.KAny:
		return t.Kind == ir.KInt || t.Kind == ir.KFloat || t.Kind == ir.KBool || t.Kind == ir.KAny
	case ir.KOptional:
		return t.Kind == ir.KNone || subtype(unwrapped(t), want.Elems[0])
	case ir.KTensor:
		return t.Kind == ir.KTensor
	}
	if t.Kind != want.Kind || len(t.Elems) != len(want.Elems) {
		return false
	}
	for i := range t.Elems {
		if t.Kind == ir.KTuple {
			if !subtype(t.Elems[i], want.Elems[i]) {
				return false
			}
			continue
		}
		if t.Elems[i].Kind == ir.KAny && want.Elems[i].Kind != ir.KAny { // the empty literal
			continue
		}
		if !t.Elems[i].Equal(want.Elems[i]) && !subtype(t.Elems[i], want.Elems[i]) {
			return false
		}
	}
	return true
}

// unify is the type of a variable that is t on one path and u on another; ok is false where the two do not go together.
func unify(t, u ir.Type) (r ir.Type, ok bool) {
	switch {
	case isUnion(t) != isUnion(u) && t.Kind != ir.KOptional && u.Kind != ir.KOptional && t.Kind != ir.KNone && u.Kind != ir.KNone:
		if isUnion(u) {
			t, u = u, t
		}
		return t, subtype(u, t)
	case t.Equal(u):
		return t, true
	case isNumber(t) && isNumber(u) && (t.Kind == ir.KAny || u.Kind == ir.KAny):
		return ir.Any, true
	case t.Kind == ir.KNone:
		return optional(u), true
	case u.Kind == ir.KNone:
		return optional(t), true
	case isOptional(t) || isOptional(u):
		r, ok = unify(unwrapped(t), unwrapped(u))
		return optional(r), ok
	case t.Kind != u.Kind || len(t.Elems) != len(u.Elems):
		return t, false
	case t.Kind == ir.KTensor:
		return ir.AnyTensor, true
	}
	r = ir.Type{Kind: t.Kind, Elems: make([]ir.Type, len(t.Elems)), Names: t.Names}
	for i := range t.Elems {
		a, b := t.Elems[i], u.Elems[i]
		switch {
		case t.Kind != ir.KTuple && a.Kind == ir.KAny:
			r.Elems[i] = b
		case t.Kind != ir.KTuple && b.Kind == ir.KAny:
			r.Elems[i] = a
		default:
			if r.Elems[i], ok = unify(a, b); !ok {
				return t, false
			}
		}
	}
	return r, true
}

var simpleTypes = map[string]ir.Type{
	"Tensor": ir.AnyTensor, "int": ir.Int, "float": ir.Float, "bool": ir.BoolT, "str": ir.Str, "None": ir.NoneT, "number": ir.Any,
	"device": ir.Str, "dtype": ir.DTypeT, "LongTensor": ir.AnyTensor, "FloatTensor": ir.AnyTensor, "Parameter": ir.AnyTensor,
}

// annotation turns a type annotation into a type.
func (l *lowering) annotation(e expr) ir.Type {
	if l.names != nil {
		return l.names.annotation(e)
	}
	return l.file.annotation(e)
}

// annotation turns a type annotation into a type; it stops with an *Error panic on one that names no type.
func (f *File) annotation(e expr) ir.Type {
	switch e := e.(type) {
	case *constExpr:
		if e.name == "None" {
			return ir.NoneT
		}
	case *strExpr:
		return f.annotation(f.parseAnnotation(e))
	case *nameExpr:
		if t, ok := simpleTypes[e.name]; ok && f.funcs[e.name] == nil {
			return t
		}
		if e.name == "Any" {
			return anything
		}
		if c := f.classes[e.name]; c != nil && c.isNamedTuple() {
			return f.namedTupleType(c)
		}
		if c := f.classes[e.name]; c != nil && c.isEnum() {
			return f.enumType(c)
		}
		panic(f.src.errorf(e.pos, "unknown type name '%s' in an annotation", short(e.name)))
	case *attrExpr:
		if t, ok := simpleTypes[e.name]; ok {
			return t
		}
		switch e.name {
		case "List", "Tuple", "Dict", "Optional", "Any":
			return f.annotation(&nameExpr{e.node, e.name})
		}
	case *indexExpr:
		return f.generic(e)
	case *binaryExpr:
		if e.op == "|" {
			return unionOf([]ir.Type{f.annotation(e.x), f.annotation(e.y)})
		}
	}
	panic(f.src.errorf(e.at(), "unknown type in an annotation"))
}

func (f *File) parseAnnotation(e *strExpr) expr {
	toks, err := scan(newSource(f.src.name, e.v), e.v)
	if err != nil {
		panic(f.src.errorf(e.pos, "unknown type %q in an annotation", short(e.v)))
	}
	for i := range toks {
		toks[i].pos = e.pos
	}
	p := &parser{src: f.src, toks: toks}
	x := p.expr()
	if _, again := x.(*strExpr); again || p.cur().kind != tNewline {
		panic(f.src.errorf(e.pos, "unknown type %q in an annotation", short(e.v)))
	}
	return x
}

// generic is List[T] and the like.
func (f *File) generic(e *indexExpr) ir.Type {
	name := ""
	switch x := e.x.(type) {
	case *nameExpr:
		name = x.name
	case *attrExpr:
		name = x.name
	}
	args := e.subs
	if t, ok := args[0].(*tupleExpr); ok && len(args) == 1 {
		args = t.elems
	}
	want := map[string]int{"List": 1, "list": 1, "Dict": 2, "dict": 2, "Optional": 1, "Final": 1, "Sequence": 1}[name]
	if want > 0 && want != len(args) {
		panic(f.src.errorf(e.pos, "%s in an annotation takes %d type arguments, got %d", name, want, len(args)))
	}
	var types []ir.Type
	for _, a := range args {
		t := f.annotation(a)
		if isAnything(t) {
			if name == "Optional" {
				return t
			}
			f.fail(a.at(), "Any is not supported inside another type")
		}
		types = append(types, t)
	}
	switch name {
	case "List", "list", "Sequence":
		return ir.ListOf(types[0])
	case "Final":
		return types[0]
	case "Dict", "dict":
		switch types[0].Kind {
		case ir.KInt, ir.KFloat, ir.KBool, ir.KString:
			return ir.DictOf(types[0], types[1])
		}
		panic(f.src.errorf(e.pos, "dict keys must be int, float, bool or str, not %s", typeName(types[0])))
	case "Optional":
		return optional(types[0])
	case "Tuple", "tuple":
		return ir.TupleOf(types...)
	case "Union":
		return unionOf(types)
	}
	panic(f.src.errorf(e.pos, "unknown type '%s' in an annotation", short(name)))
}

func (c *classDef) isNamedTuple() bool { return c.hasBase("NamedTuple") }

func (c *classDef) isEnum() bool { return c.hasBase("Enum") }

func (c *classDef) hasBase(name string) bool {
	for _, b := range c.bases {
		switch b := b.(type) {
		case *nameExpr:
			return b.name == name
		case *attrExpr:
			return b.name == name
		}
	}
	return false
}

// enumNames are the fields of a member of an Enum, which is a named tuple.
var enumNames = []string{"name", "value"}

// enumType is the type of an Enum's members.
func (f *File) enumType(c *classDef) ir.Type {
	t := ir.Type{Kind: ir.KTuple, Elems: []ir.Type{ir.Str, ir.Int}, Names: enumNames}
	if len(c.fields) > 0 {
		switch c.fields[0].value.(type) {
		case *strExpr:
			t.Elems[1] = ir.Str
		case *floatExpr:
			t.Elems[1] = ir.Float
		case *constExpr:
			t.Elems[1] = ir.BoolT
		}
	}
	return t
}

func (f *File) namedTupleType(c *classDef) ir.Type {
	t := ir.Type{Kind: ir.KTuple}
	for _, a := range c.fields {
		t.Elems = append(t.Elems, f.annotation(a.typ))
		if n, ok := a.targets[0].(*nameExpr); ok {
			t.Names = append(t.Names, n.name)
		}
	}
	return t
}
