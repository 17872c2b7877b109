package ir

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Datum is a value at run time: *Array, int64, float64, bool, string, dtype.DType, nil (None), List, Tuple or *Dict.
// Data never change once made.
type Datum any

// Tuple is a fixed sequence of values.
type Tuple []Datum

// List is an immutable sequence that is cheap to append to: lists that grow from one another share their memory.
type List struct {
	shared *[]Datum
	n      int
}

// NewList makes a list of the given elements, which it takes over.
func NewList(elems ...Datum) List { return List{shared: &elems, n: len(elems)} }

// Len is the number of elements.
func (l List) Len() int { return l.n }

// At is the element with index i, 0 <= i < Len().
func (l List) At(i int) Datum { return (*l.shared)[i] }

// Elems are all elements; the caller must not change them.
func (l List) Elems() []Datum {
	if l.shared == nil {
		return nil
	}
	return (*l.shared)[:l.n:l.n]
}

// Append gives the list with one more element. It takes constant time (amortised) unless another list has been appended to
// the same beginning; then it copies.
func (l List) Append(d Datum) List {
	if l.shared != nil && len(*l.shared) == l.n {
		*l.shared = append(*l.shared, d)
		return List{shared: l.shared, n: l.n + 1}
	}
	elems := make([]Datum, l.n, 2*l.n+4)
	copy(elems, l.Elems())
	elems = append(elems, d)
	return List{shared: &elems, n: l.n + 1}
}

// Frozen is l in memory of its own that appending never writes to: what a constant in a program must be.
func (l List) Frozen() List {
	elems := make([]Datum, l.n, l.n+1)
	copy(elems, l.Elems())
	elems = append(elems, nil) // one more than n, so that Append copies
	return List{shared: &elems, n: l.n}
}

// With gives the list with element i replaced.
func (l List) With(i int, d Datum) List {
	elems := append([]Datum{}, l.Elems()...)
	elems[i] = d
	return NewList(elems...)
}

// Dict is an insertion-ordered map; keys are int64, float64, bool or string. It never changes once made.
type Dict struct {
	Keys   []Datum
	Values []Datum
	index  map[Datum]int
}

// NewDict makes a dict of parallel keys and values; the last of equal keys wins, at the place of the first.
func NewDict(keys, values []Datum) *Dict {
	d := &Dict{index: map[Datum]int{}}
	for i, k := range keys {
		d.put(k, values[i])
	}
	return d
}

func (d *Dict) put(k, v Datum) {
	if i, ok := d.index[k]; ok {
		d.Values[i] = v
		return
	}
	d.index[k] = len(d.Keys)
	d.Keys = append(d.Keys, k)
	d.Values = append(d.Values, v)
}

// Get looks a key up.
func (d *Dict) Get(k Datum) (Datum, bool) {
	i, ok := d.index[k]
	if !ok {
		return nil, false
	}
	return d.Values[i], true
}

// With gives the dict with one key set.
func (d *Dict) With(k, v Datum) *Dict {
	e := NewDict(d.Keys, d.Values)
	e.put(k, v)
	return e
}

// Without gives the dict with one key removed.
func (d *Dict) Without(k Datum) *Dict {
	e := &Dict{index: map[Datum]int{}}
	for i, q := range d.Keys {
		if q != k {
			e.put(q, d.Values[i])
		}
	}
	return e
}

// TypeOf is the most precise type of a run-time value.
func TypeOf(d Datum) Type {
	switch d := d.(type) {
	case *Array:
		return d.Type()
	case int64:
		return Int
	case float64:
		return Float
	case bool:
		return BoolT
	case string:
		return Str
	case dtype.DType:
		return DTypeT
	case nil:
		return NoneT
	case List:
		return ListOf(joinAll(d.Elems()))
	case Tuple:
		t := Type{Kind: KTuple, Elems: make([]Type, len(d))}
		for i, e := range d {
			t.Elems[i] = TypeOf(e)
		}
		return t
	case *Dict:
		return DictOf(joinAll(d.Keys), joinAll(d.Values))
	}
	panic(fmt.Sprintf("BUG: TypeOf(%T)", d))
}

func joinAll(ds []Datum) Type {
	t := Any
	for i, d := range ds {
		if i == 0 {
			t = TypeOf(d)
		} else {
			t = t.Join(TypeOf(d))
		}
	}
	return t
}

// FormatDatum writes a value as IR text does.
func FormatDatum(d Datum) string {
	switch d := d.(type) {
	case *Array:
		return d.String()
	case int64:
		return strconv.FormatInt(d, 10)
	case float64:
		return formatFloat(d, 64)
	case bool:
		return strconv.FormatBool(d)
	case string:
		return strconv.Quote(d)
	case dtype.DType:
		return "dtype." + d.String()
	case nil:
		return "none"
	case List:
		return "[" + formatAll(d.Elems()) + "]"
	case Tuple:
		return "(" + formatAll(d) + ")"
	case *Dict:
		parts := make([]string, len(d.Keys))
		for i, k := range d.Keys {
			parts[i] = FormatDatum(k) + ": " + FormatDatum(d.Values[i])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	panic(fmt.Sprintf("BUG: FormatDatum(%T)", d))
}

func formatAll(ds []Datum) string {
	parts := make([]string, len(ds))
	for i, e := range ds {
		parts[i] = FormatDatum(e)
	}
	return strings.Join(parts, ", ")
}

// Ints makes the list datum of some sizes or dims.
func Ints(v ...int) List {
	elems := make([]Datum, len(v))
	for i, x := range v {
		elems[i] = int64(x)
	}
	return NewList(elems...)
}

// AsInts reads a list of ints.
func AsInts(d Datum) ([]int, error) {
	l, ok := d.(List)
	if !ok {
		return nil, fmt.Errorf("expected a list of ints, got %s", TypeOf(d))
	}
	out := make([]int, l.Len())
	for i, e := range l.Elems() {
		n, ok := e.(int64)
		if !ok {
			return nil, fmt.Errorf("expected a list of ints, element %d is %s", i, TypeOf(e))
		}
		out[i] = int(n)
	}
	return out, nil
}
