package driver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Param is one parameter of a model's entry.
type Param struct {
	Name       string
	Type       ir.Type
	HasDefault bool
	Default    ir.Datum
}

func (p Param) String() string {
	s := p.Name + ": " + typeName(p.Type)
	if p.HasDefault {
		s += " = " + ir.FormatDatum(p.Default)
	}
	return s
}

// typeName is a parameter's type as its annotation says it.
func typeName(t ir.Type) string {
	if t.Kind == ir.KTensor && !t.Specialised() {
		return "Tensor"
	}
	return t.String()
}

// Arrays is a set of named arrays, such as an open .npz file.
type Arrays interface {
	Names() []string
	Read(name string) (*ir.Array, error)
}

// ArrayMap is a set of arrays in memory.
type ArrayMap map[string]*ir.Array

// Names lists the names, sorted.
func (m ArrayMap) Names() []string { return slices.Sorted(maps.Keys(m)) }

// Read gives one array.
func (m ArrayMap) Read(name string) (*ir.Array, error) {
	if a := m[name]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("no array %q", name)
}

// Bound are the arguments of a call, and the arrays that no parameter claims but that gradients use.
type Bound struct {
	Args       []ir.Datum        // one per parameter
	Cotangents map[int]*ir.Array // cotangent.N
	V          string            // the key whose gradient is differentiated again (v.NAME), or ""
	Vector     *ir.Array         // v.NAME itself
}

// Bind gives every parameter its value by name:
//
//   - a tensor, int, float or bool takes the array of its name (a 0-d one for numbers);
//   - a list or tuple takes name.0, name.1, … (a list of numbers: one 1-d array name), a dict name.KEY in file order;
//   - what is absent takes its default, None where optional, and empty where a list or dict.
//
// Arrays that nothing claims are errors, except cotangent.N and v.NAME, which are read only where grad is set.
func Bind(params []Param, arrays Arrays, grad bool) (*Bound, error) {
	b := &binder{arrays: arrays, present: map[string]bool{}, prefixes: map[string]bool{}, claimed: map[string]bool{}}
	for _, n := range arrays.Names() {
		b.present[n] = true
		for i, c := range n {
			if c == '.' {
				b.prefixes[n[:i]] = true
			}
		}
	}
	out := &Bound{}
	var missing []string
	for _, p := range params {
		d, err := b.param(p)
		var m missingError
		switch {
		case errors.As(err, &m):
			missing = append(missing, string(m))
		case err != nil:
			return nil, fmt.Errorf("argument %s: %w", p.Name, err)
		}
		out.Args = append(out.Args, d)
	}
	unknown, err := b.rest(out, grad)
	if err != nil {
		return nil, err
	}
	if len(missing)+len(unknown) > 0 {
		return nil, mismatch(params, missing, unknown)
	}
	return out, nil
}

// mismatch words what is wrong with the set of names.
func mismatch(params []Param, missing, unknown []string) error {
	var parts []string
	if len(missing) > 0 {
		parts = append(parts, "missing argument "+shortList(missing))
	}
	if len(unknown) > 0 {
		parts = append(parts, "unknown argument "+shortList(unknown))
	}
	expected := make([]string, len(params))
	for i, p := range params {
		expected[i] = p.String()
	}
	if len(params) == 0 {
		expected = []string{"none"}
	}
	return fmt.Errorf("%s; expected: %s", strings.Join(parts, " and "), strings.Join(expected, ", "))
}

func shortList(names []string) string {
	const most = 10
	var out []string
	for i, n := range names {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(names)-most))
			break
		}
		if len(n) > 60 {
			n = n[:60] + "…"
		}
		out = append(out, strconv.Quote(n))
	}
	return strings.Join(out, ", ")
}

// missingError is the key of a required argument that is absent.
type missingError string

func (m missingError) Error() string { return "array " + strconv.Quote(string(m)) + " is missing" }

type binder struct {
	arrays   Arrays
	present  map[string]bool // the arrays' names
	prefixes map[string]bool // their beginnings before a dot
	claimed  map[string]bool // the names that parameters took
}

func (b *binder) param(p Param) (ir.Datum, error) {
	if p.HasDefault && !b.has(p.Name) {
		return p.Default, nil
	}
	return b.value(p.Name, p.Type)
}

// has reports whether any array belongs to key.
func (b *binder) has(key string) bool { return b.present[key] || b.prefixes[key] }

func (b *binder) value(key string, t ir.Type) (ir.Datum, error) {
	switch t.Kind {
	case ir.KTensor, ir.KAny:
		return b.array(key)
	case ir.KInt, ir.KFloat, ir.KBool:
		a, err := b.array(key)
		if err != nil {
			return nil, err
		}
		return scalarOf(a, t)
	case ir.KOptional:
		if !b.has(key) {
			return nil, nil
		}
		return b.value(key, t.Elems[0])
	case ir.KNone:
		return nil, nil
	case ir.KList:
		return b.list(key, t.Elems[0])
	case ir.KTuple:
		out := make(ir.Tuple, len(t.Elems))
		for i, e := range t.Elems {
			var err error
			if out[i], err = b.value(fmt.Sprintf("%s.%d", key, i), e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case ir.KDict:
		return b.dict(key, t.Elems[0], t.Elems[1])
	}
	return nil, fmt.Errorf("a value of type %s cannot come from an array file; give the parameter a default", typeName(t))
}

func (b *binder) array(key string) (*ir.Array, error) {
	if !b.present[key] {
		return nil, missingError(key)
	}
	b.claimed[key] = true
	return b.arrays.Read(key)
}

// scalarOf reads a Python number from a 0-d array.
func scalarOf(a *ir.Array, t ir.Type) (ir.Datum, error) {
	if len(a.Shape) != 0 {
		return nil, fmt.Errorf("expected one %s (a 0-d array), got %s", t, a.Type())
	}
	return element(a, 0, t)
}

func element(a *ir.Array, off int, t ir.Type) (ir.Datum, error) {
	switch {
	case t.Kind == ir.KInt && a.DType.IsInt():
		return a.Int(a.Offset + off), nil
	case t.Kind == ir.KBool && a.DType == dtype.Bool:
		return a.Int(a.Offset+off) != 0, nil
	case t.Kind == ir.KFloat && a.DType != dtype.Bool:
		return a.Float(a.Offset + off), nil
	}
	return nil, fmt.Errorf("expected %s, got an array of %s", t, a.DType.Torch())
}

func (b *binder) list(key string, elem ir.Type) (ir.Datum, error) {
	switch elem.Kind {
	case ir.KInt, ir.KFloat, ir.KBool:
		if b.present[key] {
			return b.numbers(key, elem)
		}
	}
	var elems []ir.Datum
	for i := 0; ; i++ {
		at := fmt.Sprintf("%s.%d", key, i)
		if !b.has(at) {
			break
		}
		d, err := b.value(at, elem)
		if err != nil {
			return nil, err
		}
		elems = append(elems, d)
	}
	return ir.NewList(elems...), nil
}

func (b *binder) numbers(key string, elem ir.Type) (ir.Datum, error) {
	a, err := b.array(key)
	if err != nil {
		return nil, err
	}
	if len(a.Shape) != 1 {
		return nil, fmt.Errorf("expected a 1-d array for a list of %s, got %s", elem, a.Type())
	}
	a = a.Contiguous()
	elems := make([]ir.Datum, a.Len())
	if len(elems) == 0 {
		return ir.NewList(), nil // NumPy's empty arrays are float64 whatever they are meant to be
	}
	for i := range elems {
		if elems[i], err = element(a, i, elem); err != nil {
			return nil, err
		}
	}
	return ir.NewList(elems...), nil
}

// dict collects key.NAME. Where the values are single arrays, NAME may itself hold dots.
func (b *binder) dict(key string, keyType, valueType ir.Type) (ir.Datum, error) {
	leaf := valueType.Kind == ir.KTensor || valueType.Kind == ir.KInt || valueType.Kind == ir.KFloat || valueType.Kind == ir.KBool
	var keys, values []ir.Datum
	seen := map[string]bool{}
	for _, n := range b.arrays.Names() {
		name, ok := strings.CutPrefix(n, key+".")
		if !ok {
			continue
		}
		if !leaf {
			name, _, _ = strings.Cut(name, ".")
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		k, err := dictKey(name, keyType)
		if err != nil {
			return nil, err
		}
		v, err := b.value(key+"."+name, valueType)
		if err != nil {
			return nil, err
		}
		keys, values = append(keys, k), append(values, v)
	}
	return ir.NewDict(keys, values), nil
}

func dictKey(name string, t ir.Type) (ir.Datum, error) {
	switch t.Kind {
	case ir.KInt:
		n, err := strconv.ParseInt(name, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no int key", name)
		}
		return n, nil
	case ir.KString, ir.KAny:
		return name, nil
	}
	return nil, fmt.Errorf("a dict with keys of type %s cannot come from an array file", t)
}

// rest sorts the arrays that no parameter claimed: cotangents and the vector of a second derivative are kept where grad is set, others
// are listed.
func (b *binder) rest(out *Bound, grad bool) (unknown []string, err error) {
	for _, n := range b.arrays.Names() {
		number, isCotangent := strings.CutPrefix(n, "cotangent.")
		key, isVector := strings.CutPrefix(n, "v.")
		switch {
		case b.claimed[n]:
		case isCotangent && grad:
			err = b.cotangent(out, n, number)
		case isVector && grad:
			err = b.vector(out, n, key)
		case !isCotangent && !isVector:
			unknown = append(unknown, n)
		}
		if err != nil {
			return nil, err
		}
	}
	return unknown, nil
}

func (b *binder) cotangent(out *Bound, name, number string) error {
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 {
		return fmt.Errorf("array %q: a cotangent is named cotangent.N, where N is the number of an output", name)
	}
	if out.Cotangents == nil {
		out.Cotangents = map[int]*ir.Array{}
	}
	out.Cotangents[i], err = b.arrays.Read(name)
	return err
}

func (b *binder) vector(out *Bound, name, key string) (err error) {
	if out.V != "" {
		return fmt.Errorf("arrays %q and %q: only one v.NAME may be given", "v."+out.V, name)
	}
	out.V = key
	out.Vector, err = b.arrays.Read(name)
	return err
}
