package trace

import (
	"bytes"
	"context"
	"fmt"
	"sort"

	"github.com/gtc-project/gtc/internal/pkgfile"
	"github.com/gtc-project/gtc/internal/safetensors"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
	"github.com/gtc-project/gtc/runtime"
	"github.com/gtc-project/gtc/tensor"
)

// Save writes the program as a package; source is named in its manifest. A package has no state: what the function writes to in place (Updates) is left out.
func (p *Program) Save(path, source string) error {
	names := make([]string, 0, len(p.Weights))
	for name := range p.Weights {
		names = append(names, name)
	}
	sort.Strings(names)
	weights := make([]safetensors.Named, len(names))
	for i, name := range names {
		weights[i] = safetensors.Named{Name: name, Array: p.Weights[name]}
	}
	m := pkgfile.Manifest{Producer: "gtc", Source: source, Entry: p.Func.Name}
	return pkgfile.Write(path, m, p.withoutUpdates().String(), weights)
}

// withoutUpdates is the function with its results only.
func (p *Program) withoutUpdates() *ir.Func {
	if len(p.Updates) == 0 {
		return p.Func
	}
	f := p.Func.Clone()
	ret := f.Body.Terminator()
	ret.Args = ret.Args[:len(ret.Args)-len(p.Updates)]
	return f
}

// Open reads a package that Save or the command line wrote.
func Open(path string) (*Program, error) {
	pkg, err := pkgfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer pkg.Close()
	return unpack(pkg, path)
}

// Decode reads a package from memory, for programs that embed it.
func Decode(data []byte) (*Program, error) {
	const name = "embedded package"
	pkg, err := pkgfile.New(bytes.NewReader(data), int64(len(data)), name)
	if err != nil {
		return nil, err
	}
	defer pkg.Close()
	return unpack(pkg, name)
}

func unpack(pkg *pkgfile.Package, path string) (*Program, error) {
	fs, err := ir.ParseString(path, pkg.Module)
	if err != nil {
		return nil, err
	}
	p := &Program{Weights: map[string]*ir.Array{}}
	for _, f := range fs {
		if p.Func == nil || f.Name == pkg.Manifest.Entry {
			p.Func = f
		}
	}
	if p.Func == nil {
		return nil, fmt.Errorf("%s: the package has no function", path)
	}
	for _, name := range p.Func.ParamNames {
		if pkg.Weights != nil {
			if _, ok := pkg.Weights.Info(name); ok {
				a, err := pkg.Weights.Read(name)
				if err != nil {
					return nil, err
				}
				p.Weights[name] = a
				continue
			}
		}
		p.Inputs = append(p.Inputs, name)
	}
	p.frozen = p.freeze()
	return p, nil
}

// freeze is the function with the weights as constants: they are then laid out for the kernels once.
func (p *Program) freeze() *ir.Func {
	k := len(p.Inputs)
	weights := make([]ir.Datum, 0, len(p.Weights))
	for _, name := range p.Func.ParamNames[k:] {
		weights = append(weights, p.Weights[name])
	}
	return passes.Freeze(p.withoutUpdates(), k, weights)
}

// Call runs the program on Go values, on the default engine: tensors, ints, floats (float64) and bools, one per input. It gives the results as such
// values, and as strings and nil for None; a result that is a tuple comes as its elements.
func (p *Program) Call(ctx context.Context, args ...any) ([]any, error) {
	if len(args) != len(p.Inputs) {
		return nil, fmt.Errorf("%s takes %d arguments, got %d", p.Func.Name, len(p.Inputs), len(args))
	}
	data := make([]ir.Datum, 0, len(args))
	for i, a := range args {
		d, err := datumOf(a)
		if err != nil {
			return nil, fmt.Errorf("%s: argument %s: %w", p.Func.Name, p.Inputs[i], err)
		}
		data = append(data, d)
	}
	f := p.frozen
	if f == nil { // a fresh trace, whose weights may be trained on
		f = p.freeze()
	}
	out, err := runtime.Default().Run(ctx, f, data...)
	if err != nil {
		return nil, err
	}
	return goValues(out, nil)
}

func datumOf(a any) (ir.Datum, error) {
	switch a := a.(type) {
	case *tensor.Tensor:
		if a == nil {
			return nil, fmt.Errorf("it is a nil tensor")
		}
		return a.Array(), a.Err()
	case int:
		return int64(a), nil
	case float64, bool:
		return a, nil
	}
	return nil, fmt.Errorf("a %T cannot be passed; pass a tensor, int, float64 or bool", a)
}

func goValues(ds []ir.Datum, out []any) ([]any, error) {
	for _, d := range ds {
		var err error
		switch d := d.(type) {
		case *ir.Array:
			out = append(out, tensor.FromArray(d))
		case int64:
			out = append(out, int(d))
		case float64, bool, string, nil:
			out = append(out, d)
		case ir.Tuple:
			out, err = goValues(d, out)
		default:
			err = fmt.Errorf("a result of type %s has no Go form", ir.TypeOf(d))
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
