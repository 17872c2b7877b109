package driver

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// symbolSize stands for a symbolic size where values are needed.
const symbolSize = 4

// Arguments binds the arrays that the options name to the parameters.
func Arguments(params []Param, o *Options) (*Bound, error) {
	arrays, done, err := openInputs(o)
	if err != nil {
		return nil, err
	}
	defer done()
	b, err := Bind(params, arrays, o.Grad)
	if err != nil && o.Inputs != "" && !strings.HasPrefix(err.Error(), o.Inputs) {
		err = fmt.Errorf("%s: %w", o.Inputs, err)
	}
	if err != nil {
		return nil, err
	}
	types := make([]ir.Type, len(params))
	for i, d := range b.Args {
		types[i] = ir.TypeOf(d)
	}
	return b, applyDynamic(params, types, o.Dynamic) // it changes nothing here, as each call is compiled for its sizes; but names must be right
}

// openInputs opens --inputs and overlays --input; done closes the file.
func openInputs(o *Options) (arrays Arrays, done func(), err error) {
	in := overlay{extra: ArrayMap{}}
	done = func() {}
	if o.Inputs != "" {
		f, err := npz.Open(o.Inputs)
		if err != nil {
			return nil, nil, err
		}
		in.base, done = f, func() { _ = f.Close() }
	}
	rng := newRandom(o.Seed)
	for _, s := range o.Input {
		name, value, _ := strings.Cut(s, "=")
		a, err := inputValue(value, rng)
		if err != nil {
			done()
			return nil, nil, fmt.Errorf("--input %s: %w", name, err)
		}
		if in.extra[name] == nil {
			in.order = append(in.order, name)
		}
		in.extra[name] = a
	}
	return in, done, nil
}

// readInput reads FILE.npy, or one array of FILE.npz:KEY.
func readInput(value string) (*ir.Array, error) {
	i := strings.Index(value, ".npz:")
	if i < 0 {
		return npz.ReadNpy(value)
	}
	f, err := npz.Open(value[:i+len(".npz")])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Read(value[i+len(".npz:"):])
}

// inputValue makes a random array of a signature, takes a number or a bool as it is, or reads an array from a file.
func inputValue(value string, rng *random) (*ir.Array, error) {
	t, err := ParseType(value)
	if err == nil {
		return rng.array(t)
	}
	if a := literal(value); a != nil {
		return a, nil
	}
	if _, statErr := os.Stat(value); statErr != nil && !strings.Contains(value, ".np") {
		return nil, err // more likely a mistyped signature than a file
	}
	return readInput(value)
}

// literal is a number or bool as a 0-d array; nil for other text.
func literal(value string) *ir.Array {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		return ir.Scalar(dtype.I64, n)
	}
	if x, err := strconv.ParseFloat(value, 64); err == nil {
		return ir.Scalar(dtype.F64, x)
	}
	switch value {
	case "true", "True":
		return ir.Scalar(dtype.Bool, true)
	case "false", "False":
		return ir.Scalar(dtype.Bool, false)
	}
	return nil
}

// random makes reproducible values: the same seed gives the same arrays on every machine.
type random struct{ *rand.PCG }

func newRandom(seed uint64) *random { return &random{rand.NewPCG(seed, 0x677463)} }

// unit is uniform in [0, 1).
func (r *random) unit() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// normal is drawn by Box and Muller's method.
func (r *random) normal() float64 {
	return math.Sqrt(-2*math.Log(1-r.unit())) * math.Cos(2*math.Pi*r.unit())
}

// array makes normal floats, integers from 0 to 9, or coin flips.
func (r *random) array(t ir.Type) (*ir.Array, error) {
	shape := t.Shape()
	for i, n := range shape {
		if n < 0 {
			shape[i] = symbolSize
		}
	}
	a, err := ir.TryNewArray(t.DType, shape)
	if err != nil {
		return nil, err
	}
	for i := range a.Len() {
		switch {
		case t.DType.IsFloat():
			a.SetFloat(i, r.normal())
		case t.DType == dtype.Bool:
			a.SetInt(i, int64(r.Uint64()>>63))
		default:
			hi, _ := bits.Mul64(r.Uint64(), 10)
			a.SetInt(i, int64(hi))
		}
	}
	return a, nil
}

// Signature gives the parameters' types for compiling without values: those of --input and of the arrays in --inputs, with the sizes
// that --dynamic names made symbolic. Parameters that are not tensors keep their declared type.
func Signature(params []Param, o *Options) ([]ir.Type, error) {
	types := make([]ir.Type, len(params))
	for i, p := range params {
		types[i] = p.Type
	}
	set := func(name string, t ir.Type) error {
		i := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
		if i < 0 {
			return mismatch(params, nil, []string{name})
		}
		if types[i].Kind != ir.KTensor && types[i].Kind != ir.KAny {
			return nil
		}
		types[i] = t
		return nil
	}
	if o.Inputs != "" {
		b, err := Arguments(params, &Options{Inputs: o.Inputs, Grad: o.Grad})
		if err != nil {
			return nil, err
		}
		for i, d := range b.Args {
			if a, ok := d.(*ir.Array); ok {
				types[i] = a.Type()
			}
		}
	}
	for _, s := range o.Input {
		name, value, _ := strings.Cut(s, "=")
		t, err := ParseType(value)
		if err != nil {
			a, err := inputValue(value, nil)
			if err != nil {
				return nil, fmt.Errorf("--input %s: %w", name, err)
			}
			t = a.Type()
		}
		if err := set(name, t); err != nil {
			return nil, err
		}
	}
	return types, applyDynamic(params, types, o.Dynamic)
}

func applyDynamic(params []Param, types []ir.Type, dynamic []string) error {
	for _, s := range dynamic {
		name, dim, err := parseDynamic(s)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
		switch {
		case i < 0:
			return mismatch(params, nil, []string{name})
		case types[i].Kind != ir.KTensor || !types[i].Ranked:
			return errors.New("--dynamic " + s + ": the parameter needs a signature first: --input " + name + "=f32[…]")
		case dim >= len(types[i].Dims):
			return fmt.Errorf("--dynamic %s: %s has %d dimensions", s, name, len(types[i].Dims))
		}
		types[i].Dims = slices.Clone(types[i].Dims)
		types[i].Dims[dim] = ir.Dim{N: -1, Sym: fmt.Sprintf("%s_%d", name, dim)}
	}
	return nil
}

// InputArrays reads or makes the arrays of the named parameters from the options' inputs; one that is missing is an error that lists all.
func InputArrays(names []string, o *Options) ([]npz.Named, error) {
	arrays, done, err := openInputs(o)
	if err != nil {
		return nil, err
	}
	defer done()
	have := arrays.Names()
	var out []npz.Named
	for _, name := range names {
		if !slices.Contains(have, name) {
			return nil, fmt.Errorf("the input %s is missing; the function takes %s: give each with --input NAME=FILE.npy or --input NAME=f32[1,28,28]", name, strings.Join(names, ", "))
		}
		a, err := arrays.Read(name)
		if err != nil {
			return nil, err
		}
		out = append(out, npz.Named{Name: name, Array: a})
	}
	for _, name := range have {
		if !slices.Contains(names, name) && !strings.HasPrefix(name, "cotangent.") && !strings.HasPrefix(name, "v.") {
			return nil, fmt.Errorf("there is no input %s; the function takes %s", name, strings.Join(names, ", "))
		}
	}
	return out, nil
}
