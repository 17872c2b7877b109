package script

import "github.com/gtc-project/gtc/ir"

// A Union is a tuple of a number, which tells the member that it holds, and one element per member; those of the other members are
// never read. So branches and loops join and carry unions as they do tuples, and what its tensors share is tracked as always. Its type has
// unionNames for Names. Any is no type of its own: what is passed for it keeps its type.

var (
	unionNames = []string{"|"}
	anything   = ir.Type{Kind: ir.KTuple, Names: []string{"?"}}
)

func isUnion(t ir.Type) bool {
	return t.Kind == ir.KTuple && len(t.Names) == 1 && t.Names[0] == unionNames[0]
}

func isAnything(t ir.Type) bool {
	return t.Kind == ir.KTuple && len(t.Names) == 1 && t.Names[0] == anything.Names[0]
}

// unionOf is the Union of types, with None as an Optional around it.
func unionOf(types []ir.Type) ir.Type {
	var members []ir.Type
	none := false
	add := func(t ir.Type) {
		for _, m := range members {
			if m.Equal(t) {
				return
			}
		}
		members = append(members, t)
	}
	for _, t := range types {
		if t.Kind == ir.KNone || isOptional(t) {
			none = true
		}
		switch t = unwrapped(t); {
		case t.Kind == ir.KNone:
		case isUnion(t):
			for _, m := range t.Elems[1:] {
				add(m)
			}
		default:
			add(t)
		}
	}
	t := ir.NoneT
	switch len(members) {
	case 0:
	case 1:
		t = members[0]
	default:
		t = ir.Type{Kind: ir.KTuple, Elems: append([]ir.Type{ir.Int}, members...), Names: unionNames}
	}
	if none {
		return optional(t)
	}
	return t
}

// memberOf is the index of the member of a union that takes values of type t, -1 where there is none.
func memberOf(union, t ir.Type) int {
	for i, m := range union.Elems[1:] {
		if m.Equal(t) {
			return i
		}
	}
	for i, m := range union.Elems[1:] {
		if subtype(t, m) {
			return i
		}
	}
	return -1
}

// toUnion makes a value of a union of v, which is one of its members or a union of some of them.
func (l *lowering) toUnion(v value, union ir.Type) value {
	t, _ := typeOf(v)
	elems := make([]value, len(union.Elems))
	if isUnion(t) {
		from := v.(*tupleV)
		tag := l.int(memberOf(union, t.Elems[1]))
		for k, m := range t.Elems[1:] {
			i := memberOf(union, m)
			elems[i+1] = l.retype(from.elems[k+1], union.Elems[i+1])
			if k > 0 {
				tag = l.op("py_select", l.op("py_eq", from.elems[0].(*scalarV).v, l.int(k)), l.int(i), tag)
			}
		}
		elems[0] = scalarOf(tag)
	} else {
		i := memberOf(union, t)
		elems[0] = l.scalar(int64(i))
		elems[i+1] = l.retype(v, union.Elems[i+1])
	}
	for i := range elems {
		if elems[i] == nil {
			elems[i] = l.dummy(union.Elems[i])
		}
	}
	out := l.tuple(elems)
	out.names = unionNames
	return out
}

// isUnionValue reports whether v is a Union.
func isUnionValue(v value) (*tupleV, ir.Type, bool) {
	t, ok := v.(*tupleV)
	if !ok || len(t.names) != 1 || t.names[0] != unionNames[0] {
		return nil, ir.Type{}, false
	}
	typ, _ := typeOf(v)
	return t, typ, true
}

// narrowed is a union known to hold one of some members.
func (l *lowering) narrowed(v value, members []int) value {
	u, t, ok := isUnionValue(v)
	if !ok || len(members) == 0 {
		return v
	}
	if len(members) == 1 {
		return u.elems[members[0]+1]
	}
	types := []ir.Type{ir.Int}
	elems := []value{nil}
	tag := l.int(0)
	for k, m := range members {
		types, elems = append(types, t.Elems[m+1]), append(elems, u.elems[m+1])
		if k > 0 {
			tag = l.op("py_select", l.op("py_eq", u.elems[0].(*scalarV).v, l.int(m)), l.int(k), tag)
		}
	}
	elems[0] = scalarOf(tag)
	out := l.tuple(elems)
	out.names = unionNames
	return out
}

// unionTest is isinstance of a union: which members match decides.
func (l *lowering) unionTest(u *tupleV, t ir.Type, arg expr, types []expr) cond {
	var in, out []int
	for i, m := range t.Elems[1:] {
		matches := false
		for _, te := range types {
			matches = matches || l.instanceOf(m, te)
		}
		if matches {
			in = append(in, i)
		} else {
			out = append(out, i)
		}
	}
	if len(in) == 0 || len(out) == 0 {
		return cond{static: true, value: len(out) == 0}
	}
	tag := u.elems[0].(*scalarV).v
	is := l.op("py_eq", tag, l.int(in[0]))
	for _, i := range in[1:] {
		is = l.op("py_select", is, l.constant(true), l.op("py_eq", tag, l.int(i)))
	}
	c := cond{v: is}
	if d, known := is.Const(); known {
		c = cond{static: true, value: d.(bool)}
	}
	if n, ok := arg.(*nameExpr); ok {
		c.yes, c.no = []refinement{{n.name, in}}, []refinement{{n.name, out}}
	}
	return c
}

// noUnion refuses a union where one of its members is needed.
func (l *lowering) noUnion(v value, p Pos) {
	if _, t, ok := isUnionValue(v); ok {
		l.fail(p, "a value of type '%s' cannot be used like this: test its type with isinstance first", typeName(t))
	}
}

// numberOf is the number in a union of numbers; other values it gives back.
func (l *lowering) numberOf(v value) value {
	u, t, ok := isUnionValue(v)
	if !ok {
		return v
	}
	var out *ir.Value
	for i, m := range t.Elems[1:] {
		if !isNumber(m) {
			return v
		}
		x := u.elems[i+1].(*scalarV).v
		if out == nil {
			out = x
		} else {
			out = l.op("py_select", l.op("py_eq", u.elems[0].(*scalarV).v, l.int(i)), x, out)
		}
	}
	return &scalarV{ir.Any, out}
}
