package ir

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Kind says what sort of value a Type describes.
type Kind uint8

// The kinds of value that an IR function handles.
const (
	KAny      Kind = iota // not known yet
	KTensor               // an *Array
	KInt                  // int64
	KFloat                // float64
	KBool                 // bool
	KString               // string
	KDType                // dtype.DType
	KNone                 // nil
	KList                 // List, Elems[0] is the element type
	KTuple                // Tuple, one Elems entry per element
	KDict                 // *Dict, Elems[0] is the key type, Elems[1] the value type
	KOptional             // nil or a value of Elems[0]
)

var kindNames = [...]string{"any", "tensor", "int", "float", "bool", "str", "dtype", "none", "list", "tuple", "dict", "optional"}

func (k Kind) String() string { return kindNames[k] }

// Dim is the size of one dimension: known (N >= 0), or N == -1 and then either a named symbol or simply unknown.
type Dim struct {
	N   int
	Sym string
}

// Unknown is the dimension of which nothing is known.
var Unknown = Dim{N: -1}

// Known reports whether the size is a number.
func (d Dim) Known() bool { return d.N >= 0 }

func (d Dim) String() string {
	switch {
	case d.N >= 0:
		return strconv.Itoa(d.N)
	case d.Sym != "":
		return d.Sym
	}
	return "?"
}

// Type describes a value. For tensors DType may be Invalid and Ranked false: such a type is generic, written tensor<?>.
type Type struct {
	Kind   Kind
	DType  dtype.DType
	Ranked bool
	Dims   []Dim
	Elems  []Type
	Names  []string // what a front end calls the elements of a tuple; no part of the type's identity
}

// The types without parameters.
var (
	Any       = Type{Kind: KAny}
	Int       = Type{Kind: KInt}
	Float     = Type{Kind: KFloat}
	BoolT     = Type{Kind: KBool}
	Str       = Type{Kind: KString}
	DTypeT    = Type{Kind: KDType}
	NoneT     = Type{Kind: KNone}
	AnyTensor = Type{Kind: KTensor}
	IntList   = ListOf(Int)
)

// TensorOf is the type of a tensor of known dtype and sizes; -1 is an unknown size.
func TensorOf(d dtype.DType, shape ...int) Type {
	t := Type{Kind: KTensor, DType: d, Ranked: true, Dims: make([]Dim, len(shape))}
	for i, n := range shape {
		t.Dims[i] = Dim{N: n}
	}
	return t
}

// TensorDims is TensorOf for dimensions that may be symbolic.
func TensorDims(d dtype.DType, dims []Dim) Type {
	return Type{Kind: KTensor, DType: d, Ranked: true, Dims: append([]Dim{}, dims...)}
}

// ListOf is the type of lists of elem.
func ListOf(elem Type) Type { return Type{Kind: KList, Elems: []Type{elem}} }

// TupleOf is the type of tuples with these element types.
func TupleOf(elems ...Type) Type { return Type{Kind: KTuple, Elems: elems} }

// DictOf is the type of insertion-ordered dicts.
func DictOf(key, value Type) Type { return Type{Kind: KDict, Elems: []Type{key, value}} }

// OptionalOf is the type of values that may be None.
func OptionalOf(elem Type) Type { return Type{Kind: KOptional, Elems: []Type{elem}} }

// IsTensor reports whether t is a tensor of any sort.
func (t Type) IsTensor() bool { return t.Kind == KTensor }

// IsFloatTensor reports whether t is a tensor of a known floating-point dtype.
func (t Type) IsFloatTensor() bool { return t.Kind == KTensor && t.DType.IsFloat() }

// Static reports whether t is a tensor whose dtype and every size are known.
func (t Type) Static() bool {
	if t.Kind != KTensor || t.DType == dtype.Invalid || !t.Ranked {
		return false
	}
	for _, d := range t.Dims {
		if !d.Known() {
			return false
		}
	}
	return true
}

// Specialised reports whether t is no tensor, or a tensor whose dtype and rank are known.
func (t Type) Specialised() bool {
	return t.Kind != KTensor || t.DType != dtype.Invalid && t.Ranked
}

// Rank is the number of dimensions, or -1 where it is not known.
func (t Type) Rank() int {
	if !t.Ranked {
		return -1
	}
	return len(t.Dims)
}

// Shape gives the sizes as numbers, -1 for those not known; nil for an unknown rank.
func (t Type) Shape() []int {
	if !t.Ranked {
		return nil
	}
	s := make([]int, len(t.Dims))
	for i, d := range t.Dims {
		s[i] = d.N
	}
	return s
}

// NumElems is the number of elements of a static tensor type, and -1 otherwise.
func (t Type) NumElems() int {
	if !t.Static() {
		return -1
	}
	n := 1
	for _, d := range t.Dims {
		n *= d.N
	}
	return n
}

// Equal reports whether both types are the same.
func (t Type) Equal(u Type) bool {
	if t.Kind != u.Kind || t.DType != u.DType || t.Ranked != u.Ranked || len(t.Dims) != len(u.Dims) || len(t.Elems) != len(u.Elems) {
		return false
	}
	for i := range t.Dims {
		if t.Dims[i] != u.Dims[i] {
			return false
		}
	}
	for i := range t.Elems {
		if !t.Elems[i].Equal(u.Elems[i]) {
			return false
		}
	}
	return true
}

// Join is the most precise type that describes the values of both t and u.
func (t Type) Join(u Type) Type {
	if t.Equal(u) {
		return t
	}
	switch {
	case t.Kind == KNone && u.Kind == KOptional:
		return u
	case t.Kind == KNone && u.Kind != KAny:
		return OptionalOf(u)
	case u.Kind == KNone || u.Kind == KOptional && t.Kind != KOptional:
		return u.Join(t)
	case t.Kind == KOptional && u.Kind != KOptional && u.Kind != KAny:
		return OptionalOf(t.Elems[0].Join(u))
	case t.Kind != u.Kind || len(t.Elems) != len(u.Elems):
		return Any
	case t.Kind == KTensor:
		r := Type{Kind: KTensor}
		if t.DType == u.DType {
			r.DType = t.DType
		}
		if t.Ranked && u.Ranked && len(t.Dims) == len(u.Dims) {
			r.Ranked, r.Dims = true, make([]Dim, len(t.Dims))
			for i := range t.Dims {
				r.Dims[i] = Unknown
				if t.Dims[i] == u.Dims[i] {
					r.Dims[i] = t.Dims[i]
				}
			}
		}
		return r
	}
	r := Type{Kind: t.Kind, Elems: make([]Type, len(t.Elems))}
	for i := range t.Elems {
		r.Elems[i] = t.Elems[i].Join(u.Elems[i])
	}
	return r
}

// Accepts reports whether every value of type u is a value of type t.
func (t Type) Accepts(u Type) bool { return t.Kind == KAny || t.Join(u).Equal(t) }

// String is the form used in IR text: tensor<f32[2,N,?]>, tensor<f32[*]> (unknown rank), tensor<?[2]>, tensor<?>, list<int>, ….
func (t Type) String() string {
	switch t.Kind {
	case KTensor:
		if t.DType == dtype.Invalid && !t.Ranked {
			return "tensor<?>"
		}
		if !t.Ranked {
			return fmt.Sprintf("tensor<%s[*]>", t.DType)
		}
		dims := make([]string, len(t.Dims))
		for i, d := range t.Dims {
			dims[i] = d.String()
		}
		return fmt.Sprintf("tensor<%s[%s]>", t.DType, strings.Join(dims, ","))
	case KList, KTuple, KDict, KOptional:
		elems := make([]string, len(t.Elems))
		for i, e := range t.Elems {
			elems[i] = e.String()
		}
		return t.Kind.String() + "<" + strings.Join(elems, ",") + ">"
	}
	return t.Kind.String()
}
