package script

import (
	"github.com/gtc-project/gtc/ir"
)

// value is what an expression denotes while a function is lowered:
//
//	*scalarV   an immutable run-time value: int, float, bool, str, dtype, None, Optional of such
//	*refV      a reference to something mutable: a tensor, list or dict, or an Optional of one
//	*tupleV    a tuple, always taken apart
//	others     what exists only at compile time: functions, modules, namespaces, ranges
type value interface{}

type scalarV struct {
	t ir.Type
	v *ir.Value
}

// refV refers to the part of a cell that a path of views leads to.
type refV struct {
	t    ir.Type
	cell *cell
	path []*step
	// cached is what the path gave when the cell had this stamp.
	cached *ir.Value
	stamp  int
	// contiguous says what is known of the memory layout in PyTorch's sense.
	contiguous tri
}

type tupleV struct {
	elems []value
	names []string // of a NamedTuple
	n     int      // leaves
}

type (
	rangeV struct{ start, stop, step *ir.Value }
	zipV   struct{ parts []value }
	enumV  struct {
		x     value
		start *ir.Value
	}
	// funcV is a function of the script, or a method bound to its module.
	funcV struct {
		def  *funcDef
		self *module
	}
	// builtinV is a builtin function such as len, or math.sqrt.
	builtinV struct{ name string }
	// torchV is a namespace or function of PyTorch by its dotted name.
	torchV struct{ name string }
	// methodV is an unbound-yet method of a value.
	methodV struct {
		x    value
		expr expr
		name string
	}
	classV struct{ def *classDef }
)

// tri is a truth value that may be unknown.
type tri uint8

const (
	unknown tri = iota
	yes
	no
)

// typeOf is the type of a run-time value; ok is false for compile-time ones.
func typeOf(v value) (ir.Type, bool) {
	switch v := v.(type) {
	case *scalarV:
		return v.t, true
	case *refV:
		return v.t, true
	case *tupleV:
		t := ir.Type{Kind: ir.KTuple, Elems: make([]ir.Type, len(v.elems)), Names: v.names}
		for i, e := range v.elems {
			et, ok := typeOf(e)
			if !ok {
				return t, false
			}
			t.Elems[i] = et
		}
		return t, true
	}
	return ir.Type{}, false
}

// describe names a value's type for a message.
func describe(v value) string {
	if t, ok := typeOf(v); ok {
		return typeName(t)
	}
	switch v := v.(type) {
	case *funcV:
		return "function " + short(v.def.name)
	case *builtinV:
		return "function " + v.name
	case *torchV:
		return v.name
	case *module:
		return "module " + v.class
	case *rangeV:
		return "range"
	}
	return "object"
}

func leaves(v value) int {
	if t, ok := v.(*tupleV); ok {
		return t.n
	}
	return 1
}

// maxLeaves bounds a tuple's size when it is taken apart completely: tuples of tuples can double at every step.
const maxLeaves = 1 << 12
