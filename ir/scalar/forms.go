package scalar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Form writes an operation on operands of dtype dt and gives its result. dt is never a half dtype: Apply computes those in
// F32. A form whose first operand is a condition gets dt of the others.
type Form func(b *Builder, dt dtype.DType, args ...Value) Value

// Dtypes is a set of dtypes that an operation takes.
type Dtypes uint8

// The classes of dtypes; halves are floats.
const (
	Bools Dtypes = 1 << iota
	Ints
	Halves
	Wides // F32, F64

	Floats  = Halves | Wides
	Numbers = Ints | Floats
	Bits    = Bools | Ints
	Any     = Bools | Ints | Floats
)

// Has reports whether d belongs to the set.
func (s Dtypes) Has(d dtype.DType) bool {
	switch {
	case d == dtype.Bool:
		return s&Bools != 0
	case d.IsInt():
		return s&Ints != 0
	case d.IsHalf():
		return s&Halves != 0
	case d.IsFloat():
		return s&Wides != 0
	}
	return false
}

// String names the set in error messages.
func (s Dtypes) String() string {
	var names []string
	for i, n := range []string{"bool", "integer", "f16/bf16", "f32/f64"} {
		if s>>i&1 != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

// Op is an elementwise operation.
type Op struct {
	Name  string
	Arity int
	// Takes lists the operand dtypes; all operands have one dtype, except that where's first is Bool.
	Takes Dtypes
	// Bool says that the result is Bool; otherwise it has the operands' dtype.
	Bool bool
	Form Form
	// Doc is one sentence: value and corner cases.
	Doc string
}

// Result is the result's dtype for operands of dtype d.
func (o *Op) Result(d dtype.DType) dtype.DType {
	if o.Bool {
		return dtype.Bool
	}
	return d
}

var ops = map[string]*Op{}

func register(rows ...Op) struct{} {
	for i := range rows {
		r := &rows[i]
		if ops[r.Name] != nil || r.Form == nil {
			panic("BUG: scalar: bad row " + r.Name)
		}
		ops[r.Name] = r
	}
	return struct{}{}
}

// Lookup finds an operation by name, or gives nil.
func Lookup(name string) *Op { return ops[name] }

// Names lists all operations in alphabetical order.
func Names() []string {
	var names []string
	for n := range ops {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Apply writes the named operation on args, whose dtypes must be equal (a leading condition of where apart) and taken by the
// op. Half dtypes are computed in F32 and rounded.
func Apply(b *Builder, name string, args ...Value) (Value, error) {
	op := Lookup(name)
	if op == nil {
		return Value{}, fmt.Errorf("scalar: there is no operation %q", name)
	}
	return op.Apply(b, args...)
}

// Apply is the function Apply for a known operation.
func (o *Op) Apply(b *Builder, args ...Value) (Value, error) {
	if len(args) != o.Arity {
		return Value{}, fmt.Errorf("scalar: %s takes %d operands, not %d", o.Name, o.Arity, len(args))
	}
	d := args[len(args)-1].dt
	if !o.Takes.Has(d) {
		return Value{}, fmt.Errorf("scalar: %s is not defined for %s; it takes %s operands", o.Name, d, o.Takes)
	}
	in := slices.Clone(args)
	for i, a := range args {
		want := d
		if i == 0 && o.Name == "where" {
			want = dtype.Bool
		}
		if a.dt != want {
			return Value{}, fmt.Errorf("scalar: operand %d of %s is %s, want %s; convert it first", i, o.Name, a.dt, want)
		}
		in[i].dt = RegType(a.dt)
	}
	r := o.Form(b, RegType(d), in...)
	if r.dt != o.Result(RegType(d)) {
		panic(fmt.Sprintf("BUG: scalar: %s of %s gave %s", o.Name, d, r.dt))
	}
	if d.IsHalf() && r.dt == dtype.F32 {
		r = b.roundHalf(d, r)
	}
	return r, nil
}

// Program is the program of one operation on operands of dtype d: inputs are the operands, the only output is the result.
func Program(name string, d dtype.DType) (*Prog, error) {
	op := Lookup(name)
	if op == nil {
		return nil, fmt.Errorf("scalar: there is no operation %q", name)
	}
	b := NewBuilder()
	args := make([]Value, op.Arity)
	for i := range args {
		args[i] = b.Input(d)
		if i == 0 && name == "where" {
			b.prog.In[0].DType = dtype.Bool
			args[0].dt = dtype.Bool
		}
	}
	r, err := op.Apply(b, args...)
	if err != nil {
		return nil, err
	}
	b.Output(r)
	return b.Finish(), nil
}

// ConvertProgram is the program that converts one element from one dtype to another.
func ConvertProgram(from, to dtype.DType) *Prog {
	b := NewBuilder()
	b.Output(b.Convert(to, b.Input(from)))
	return b.Finish()
}
