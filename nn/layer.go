package nn

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/gtc-project/gtc/internal/eager"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/nn/layers"
	"github.com/gtc-project/gtc/script"
	"github.com/gtc-project/gtc/tensor"
)

// Layer is a layer of torch.nn. What it is made of and what it computes is said by its class in package layers, for scripts and for Go alike; this type holds its
// parameters and its mode, and runs its forward function on tensors, through the tape and the tracer like any operation.
type Layer struct {
	Weight *tensor.Tensor // the parameter of that name; nil where the layer has none. It may be set, to tie it to another layer's.
	Bias   *tensor.Tensor // likewise

	Mode
	file   *script.File
	source string  // the construction, as Python: "Conv2d(1, 6, 5, padding=2)"
	names  []Entry // parameters and buffers in the order of the state dict; Weight and Bias have no tensor here
	err    error
	modes  [2]*program // what it computes in evaluation and in training; made when first needed
}

// Kw holds keyword arguments of a layer's constructor, by their names in PyTorch.
type Kw map[string]any

// New makes a layer of any class of torch.nn from the arguments of its constructor: ints, floats, bools, strings, nil, slices of ints, dtypes, other layers, and keywords:
//
//	nn.New("GroupNorm", 2, 8, nn.Kw{"eps": 1e-3})
//	nn.New("TransformerEncoder", nn.New("TransformerEncoderLayer", 64, 4), 6)
//
// Random parameters are drawn as PyTorch draws them, from the default generator. Wrong arguments are an error that the layer's results hold; see Err.
func New(class string, args ...any) *Layer {
	text, err := construction(class, args)
	if err != nil {
		return &Layer{source: class, err: err}
	}
	return newLayer(script.Layers(), text)
}

// Script makes a layer of a module class of a script: entry is its name, or a construction such as "Net(width=8)".
func Script(f *script.File, entry string) *Layer { return newLayer(f, entry) }

func newLayer(f *script.File, source string) *Layer {
	l := &Layer{file: f, source: source}
	p, err := compiled(f, source, true)
	if err != nil {
		l.err = err
		return l
	}
	l.modes[1] = p
	for _, w := range p.sig.Weights {
		t, err := initial(w)
		if err != nil {
			l.err = err
			return l
		}
		e := Entry{Name: w.Name, Tensor: t, Buffer: w.Buffer}
		switch w.Name {
		case "weight":
			l.Weight, e.Tensor = t, nil
		case "bias":
			l.Bias, e.Tensor = t, nil
		}
		l.names = append(l.names, e)
	}
	return l
}

// Err tells what was wrong with the layer's construction; nil for a sound layer.
func (l *Layer) Err() error { return l.err }

// String is the layer's construction.
func (l *Layer) String() string { return l.source }

// Tensor is the parameter or buffer of a name in the layer's state dict; nil where there is none.
func (l *Layer) Tensor(name string) *tensor.Tensor {
	for i := range l.names {
		if l.names[i].Name == name {
			return l.tensor(&l.names[i])
		}
	}
	return nil
}

func (l *Layer) tensor(e *Entry) *tensor.Tensor {
	switch {
	case e.Tensor != nil:
		return e.Tensor
	case e.Name == "weight":
		return l.Weight
	}
	return l.Bias
}

// entries lists the parameters and buffers.
func (l *Layer) entries() []Entry {
	out := make([]Entry, 0, len(l.names))
	for i := range l.names {
		e := l.names[i]
		if e.Tensor = l.tensor(&e); e.Tensor != nil {
			out = append(out, e)
		}
	}
	return out
}

// Forward applies the layer to one tensor and gives the first result.
func (l *Layer) Forward(x *tensor.Tensor) *tensor.Tensor { return l.Call(x)[0] }

// Call applies the layer to the arguments of its forward function: *tensor.Tensor, nil for None, bool, int, float64, []any for tuples and lists, and Kw for arguments by
// name. It gives all results, tuples flattened, None left out. A failed call gives one tensor that holds the error.
func (l *Layer) Call(args ...any) []*tensor.Tensor {
	out, err := l.call(args)
	if err != nil {
		name, _, _ := strings.Cut(l.source, "(")
		return []*tensor.Tensor{tensor.Failed("nn."+name, args, err)}
	}
	return out
}

func (l *Layer) call(args []any) ([]*tensor.Tensor, error) {
	if l.err != nil {
		return nil, l.err
	}
	p, err := l.program()
	if err != nil {
		return nil, err
	}
	given, err := p.bind(args)
	if err != nil {
		return nil, err
	}
	var scope *tensor.Scope
	if err := eachTensor(given, func(t *tensor.Tensor) error {
		if scope == nil {
			scope = t.Scope()
		}
		return t.Err()
	}); err != nil {
		return nil, err
	}
	r := p.NewRun(scope)
	data := make([]ir.Datum, 0, len(given)+len(l.names))
	for i, g := range given {
		d, err := datum(r, g, p.sig.Params[i].Type)
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", p.sig.Params[i].Name, err)
		}
		data = append(data, d)
	}
	for i := range l.names {
		t := l.tensor(&l.names[i])
		switch {
		case t == nil:
			return nil, fmt.Errorf("parameter %s is nil", l.names[i].Name)
		case t.Err() != nil:
			return nil, t.Err()
		}
		data = append(data, r.Put(t))
	}
	results, err := r.Do(context.Background(), data)
	if err != nil {
		return nil, plainError(err)
	}
	own := len(results) - len(p.sig.Updated)
	for i, name := range p.sig.Updated {
		a, ok := results[own+i].(*ir.Array)
		if !ok {
			return nil, fmt.Errorf("BUG: the new value of %s is no tensor", name)
		}
		if err := tensor.NoGrad(l.Tensor(name)).CopyFrom(r.Tensor(a).Detach()).Err(); err != nil {
			return nil, err
		}
	}
	var out []*tensor.Tensor
	for _, d := range results[:own] {
		out = tensors(r, d, out)
	}
	if len(out) == 0 {
		return nil, errors.New("it gives no tensor")
	}
	return out, nil
}

// plainError takes the place in the layer's own source off an error: the caller's line is what helps.
func plainError(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if !strings.HasPrefix(e.Error(), "torch.nn:") {
			return e
		}
		err = e
	}
	return err
}

func eachTensor(args []any, f func(*tensor.Tensor) error) error {
	for _, a := range args {
		var err error
		switch a := a.(type) {
		case *tensor.Tensor:
			if a != nil {
				err = f(a)
			}
		case []any:
			err = eachTensor(a, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// datum is an argument as the layer's function takes it.
func datum(r *eager.Run, a any, t ir.Type) (ir.Datum, error) {
	if t.Kind == ir.KOptional {
		if a == nil {
			return nil, nil
		}
		t = t.Elems[0]
	}
	switch a := a.(type) {
	case *tensor.Tensor:
		if t.Kind == ir.KTensor {
			return r.Put(a), nil
		}
	case []any:
		elems := make([]ir.Datum, len(a))
		for i, x := range a {
			of := ir.Any
			switch {
			case t.Kind == ir.KTuple && i < len(t.Elems):
				of = t.Elems[i]
			case t.Kind == ir.KList:
				of = t.Elems[0]
			}
			d, err := datum(r, x, of)
			if err != nil {
				return nil, err
			}
			elems[i] = d
		}
		if t.Kind == ir.KTuple && len(a) == len(t.Elems) {
			return ir.Tuple(elems), nil
		}
		if t.Kind == ir.KList {
			return ir.NewList(elems...), nil
		}
	case []int:
		if t.Kind == ir.KList {
			return ir.Ints(a...), nil
		}
	case int:
		switch t.Kind {
		case ir.KInt:
			return int64(a), nil
		case ir.KFloat:
			return float64(a), nil
		}
	case float64:
		if t.Kind == ir.KFloat {
			return a, nil
		}
	case bool:
		if t.Kind == ir.KBool {
			return a, nil
		}
	case string:
		if t.Kind == ir.KString {
			return a, nil
		}
	}
	return nil, fmt.Errorf("is %T, expected %s", a, t)
}

// tensors appends the tensors of a result.
func tensors(r *eager.Run, d ir.Datum, out []*tensor.Tensor) []*tensor.Tensor {
	switch d := d.(type) {
	case *ir.Array:
		return append(out, r.Tensor(d))
	case ir.Tuple:
		for _, e := range d {
			out = tensors(r, e, out)
		}
	case ir.List:
		for _, e := range d.Elems() {
			out = tensors(r, e, out)
		}
	case *ir.Dict:
		for _, e := range d.Values {
			out = tensors(r, e, out)
		}
	}
	return out
}

// program is a layer's forward function in one mode.
type program struct {
	*eager.Program
	sig *script.Signature
}

type programKey struct {
	file   *script.File
	source string
	train  bool
}

var programs sync.Map // of *program, by programKey

func compiled(f *script.File, source string, train bool) (*program, error) {
	key := programKey{f, source, train}
	if p, ok := programs.Load(key); ok {
		return p.(*program), nil
	}
	fn, sig, err := f.Lower(source, &script.Options{Train: train, KeepGrad: true})
	if err != nil {
		return nil, err
	}
	p, _ := programs.LoadOrStore(key, &program{eager.Prepare(fn), sig})
	return p.(*program), nil
}

// program is the layer's function in its present mode.
func (l *Layer) program() (*program, error) {
	mode := 0
	if l.Training() {
		mode = 1
	}
	if l.modes[mode] != nil {
		return l.modes[mode], nil
	}
	if l.file == nil {
		return nil, errors.New("this layer was not made by a constructor: use nn.New")
	}
	return compiled(l.file, l.source, l.Training())
}

// bind gives one argument per parameter.
func (p *program) bind(args []any) ([]any, error) {
	kw := Kw{}
	if n := len(args); n > 0 {
		if k, ok := args[n-1].(Kw); ok {
			args, kw = args[:n-1], k
		}
	}
	params := p.sig.Params
	if len(args) > len(params) {
		return nil, fmt.Errorf("forward takes %d arguments, got %d", len(params), len(args))
	}
	out := make([]any, len(params))
	copy(out, args)
	used := 0
	for i, prm := range params {
		v, named := kw[prm.Name]
		switch {
		case named && i < len(args):
			return nil, fmt.Errorf("argument %s is given twice", prm.Name)
		case named:
			used++
			out[i] = v
		case i < len(args):
		case !prm.HasDefault:
			return nil, fmt.Errorf("argument %s is missing", prm.Name)
		default:
			out[i] = goValue(prm.Default)
		}
	}
	if used < len(kw) {
		return nil, fmt.Errorf("forward has no argument like one of %v", sortedKeys(kw))
	}
	return out, nil
}

// goValue is a default as Call takes arguments.
func goValue(d ir.Datum) any {
	if i, ok := d.(int64); ok {
		return int(i)
	}
	return d
}

func sortedKeys(kw Kw) []string {
	var names []string
	for k := range kw {
		names = append(names, k)
	}
	sort.Strings(names)
	return names
}

// initial gives a parameter or buffer its first value.
func initial(w script.Weight) (*tensor.Tensor, error) {
	var t *tensor.Tensor
	if w.Value != nil {
		t = tensor.FromArray(w.Value.Copy())
	} else {
		in, err := layers.ParseInit(w.Init)
		if err != nil {
			return nil, err
		}
		switch in.Kind {
		case "value":
			t = tensor.Full(w.DType, in.A, w.Shape...)
		case "uniform":
			t = tensor.Rand(w.DType, w.Shape...).Mul(in.B - in.A).Add(in.A)
		case "normal":
			t = tensor.Randn(w.DType, w.Shape...).Mul(in.B).Add(in.A)
		}
		if in.ZeroRow >= 0 {
			t.Select(0, in.ZeroRow).Zero_()
		}
	}
	if t.Err() == nil && !w.Buffer && w.DType.IsFloat() && !w.Frozen {
		t = t.RequiresGrad()
	}
	return t, t.Err()
}

// construction writes a constructor's call as Python.
func construction(class string, args []any) (string, error) {
	var parts []string
	for _, a := range args {
		if kw, ok := a.(Kw); ok {
			for _, k := range sortedKeys(kw) {
				v, err := python(kw[k])
				if err != nil {
					return "", fmt.Errorf("%s: %w", k, err)
				}
				parts = append(parts, k+"="+v)
			}
			continue
		}
		v, err := python(a)
		if err != nil {
			return "", err
		}
		parts = append(parts, v)
	}
	return class + "(" + strings.Join(parts, ", ") + ")", nil
}

func python(a any) (string, error) {
	switch a := a.(type) {
	case nil:
		return "None", nil
	case bool:
		return map[bool]string{true: "True", false: "False"}[a], nil
	case int:
		return strconv.Itoa(a), nil
	case float64:
		s := strconv.FormatFloat(a, 'g', -1, 64)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		return s, nil
	case string:
		return strconv.Quote(a), nil
	case dtype.DType:
		return a.Torch(), nil
	case []int:
		parts := make([]string, len(a))
		for i, n := range a {
			parts[i] = strconv.Itoa(n)
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	case *Layer:
		return a.source, a.err
	}
	return "", fmt.Errorf("a constructor cannot take a %T", a)
}
