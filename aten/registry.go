package aten

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Where says under which of PyTorch's names a function can be called.
type Where uint8

// The places of a function; a function may have several.
const (
	Method  Where = 1 << iota // x.name(…): the first parameter is the tensor itself
	Torch                     // torch.name(…)
	NN                        // torch.nn.functional.name(…)
	Linalg                    // torch.linalg.name(…)
	Special                   // torch.special.name(…)
	Hidden                    // only emitted by front ends: operators, view writes, …
)

// Param is one parameter of a schema.
type Param struct {
	Name     string
	Type     ir.Type
	Scalar   bool // "Scalar": an int, float or bool that takes part in arithmetic; it stays a run-time operand
	KwOnly   bool
	Optional bool // None allowed
	// IntOrList says that "int[2]" was declared: one int stands for that many equal ones.
	IntOrList  int
	HasDefault bool
	Default    ir.Datum
}

// Fn is one function: a name may have several, tried in order of declaration (overloads).
type Fn struct {
	Name    string // as in IR text, without "aten.": softmax, or max.dim for an overload
	Base    string // what the user writes: max
	Where   Where
	Schema  string
	Params  []Param
	Returns []ir.Type
	// Random functions have a last, hidden parameter "key": front ends emit an rng node and pass its result.
	Random bool
	// View functions give a tensor that shares memory with their first operand in PyTorch; MayView ones sometimes do.
	View, MayView bool
	// Expand builds the function's meaning; args has one value per parameter (a constant None for an absent optional).
	Expand func(b *ir.Builder, args []*ir.Value) []*ir.Value
}

var (
	byName = map[string]*Fn{}
	byBase = map[string][]*Fn{}
)

// Lookup finds a function by its full name ("max.dim"); nil where there is none.
func Lookup(name string) *Fn { return byName[name] }

// Overloads lists the functions that a user may mean by a base name at a place, in order of preference. As in TorchScript, a function
// of torch whose first parameter is a tensor self may be called as a method too.
func Overloads(base string, where Where) []*Fn {
	var out []*Fn
	for _, f := range byBase[base] {
		method := where == Method && f.Where&Torch != 0 && len(f.Params) > 0 && f.Params[0].Name == "self" && f.Params[0].Type.IsTensor()
		if f.Where&where != 0 || method {
			out = append(out, f)
		}
	}
	return out
}

// All lists every function, sorted by name.
func All() []*Fn {
	out := make([]*Fn, 0, len(byName))
	for _, f := range byName {
		out = append(out, f)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// option changes a declaration.
type option func(*Fn)

var (
	isView   option = func(f *Fn) { f.View = true }
	mayView  option = func(f *Fn) { f.MayView = true }
	isRandom option = func(f *Fn) { f.Random = true }
)

// expansion is the Go function behind a declaration.
type expansion = func(b *ir.Builder, args []*ir.Value) []*ir.Value

// def declares a function: a schema such as
//
//	softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
//	max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)
//	cat(Tensor[] tensors, int dim=0) -> Tensor
//
// Parameter types: Tensor, Tensor?, Tensor[], Tensor?[], Scalar, Scalar?, int, int?, int[], int[]?, int[2] (one int allowed), float, float?,
// float[], float[]?, bool, bool?, str, str?, ScalarType (a dtype), ScalarType?, Device?, Generator? are understood. Malformed schemas are our own bug and panic at start.
func def(where Where, schema string, expand expansion, opts ...option) *Fn {
	f, err := parseSchema(schema)
	if err != nil {
		panic("BUG: aten schema " + schema + ": " + err.Error())
	}
	f.Where, f.Expand = where, expand
	for _, o := range opts {
		o(f)
	}
	if f.Random {
		f.Params = append(f.Params, Param{Name: "key", Type: ir.Int, KwOnly: true, Scalar: true})
	}
	if byName[f.Name] != nil {
		panic("BUG: aten function " + f.Name + " declared twice")
	}
	byName[f.Name] = f
	byBase[f.Base] = append(byBase[f.Base], f)
	return f
}

// alias gives a function a second base name, for example multiply for mul.
func alias(where Where, name, of string) {
	for _, f := range byBase[of] {
		g := *f
		g.Where = where
		g.Base = name
		byBase[name] = append(byBase[name], &g)
	}
}

func parseSchema(s string) (*Fn, error) {
	open := strings.IndexByte(s, '(')
	arrow := strings.LastIndex(s, "->")
	if open < 0 || arrow < 0 {
		return nil, fmt.Errorf("expected name(…) -> …")
	}
	closing := strings.LastIndexByte(s[:arrow], ')')
	f := &Fn{Name: strings.TrimSpace(s[:open]), Schema: s}
	f.Base, _, _ = strings.Cut(f.Name, ".")
	kwOnly := false
	for _, part := range splitTop(s[open+1 : closing]) {
		if part == "*" {
			kwOnly = true
			continue
		}
		p, err := parseParam(part)
		if err != nil {
			return nil, err
		}
		p.KwOnly = kwOnly
		f.Params = append(f.Params, p)
	}
	ret := strings.TrimSpace(s[arrow+2:])
	ret = strings.TrimSuffix(strings.TrimPrefix(ret, "("), ")")
	for _, part := range splitTop(ret) {
		t, err := schemaType(strings.Fields(part)[0])
		if err != nil {
			return nil, err
		}
		f.Returns = append(f.Returns, t.Type)
	}
	return f, nil
}

// splitTop splits at commas outside brackets.
func splitTop(s string) []string {
	var out []string
	depth, start := 0, 0
	for i := 0; i <= len(s); i++ {
		if i == len(s) || s[i] == ',' && depth == 0 {
			if part := strings.TrimSpace(s[start:i]); part != "" {
				out = append(out, part)
			}
			start = i + 1
			continue
		}
		switch s[i] {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		}
	}
	return out
}

func parseParam(s string) (Param, error) {
	decl, deflt, hasDefault := strings.Cut(s, "=")
	fields := strings.Fields(decl)
	if len(fields) != 2 {
		return Param{}, fmt.Errorf("parameter %q", s)
	}
	p, err := schemaType(fields[0])
	if err != nil {
		return p, err
	}
	p.Name = fields[1]
	if hasDefault {
		p.HasDefault = true
		p.Default, err = schemaDefault(deflt, p)
	}
	return p, err
}

func schemaType(s string) (Param, error) {
	if base, ok := strings.CutSuffix(s, "?"); ok {
		p, err := schemaType(base)
		p.Optional = true
		p.Type = ir.OptionalOf(p.Type)
		return p, err
	}
	switch s {
	case "Tensor":
		return Param{Type: ir.AnyTensor}, nil
	case "any": // nested lists of numbers
		return Param{Type: ir.Any}, nil
	case "Tensor[]":
		return Param{Type: ir.ListOf(ir.AnyTensor)}, nil
	case "Tensor?[]":
		return Param{Type: ir.ListOf(ir.OptionalOf(ir.AnyTensor))}, nil
	case "Scalar":
		return Param{Type: ir.Any, Scalar: true}, nil
	case "int":
		return Param{Type: ir.Int}, nil
	case "int[]":
		return Param{Type: ir.IntList}, nil
	case "int[][]":
		return Param{Type: ir.ListOf(ir.IntList)}, nil
	case "float":
		return Param{Type: ir.Float}, nil
	case "float[]":
		return Param{Type: ir.ListOf(ir.Float)}, nil
	case "bool":
		return Param{Type: ir.BoolT}, nil
	case "str", "Device", "Generator", "MemoryFormat":
		return Param{Type: ir.Str}, nil
	case "ScalarType":
		return Param{Type: ir.DTypeT}, nil
	}
	if n, ok := strings.CutPrefix(s, "int["); ok {
		k, err := strconv.Atoi(strings.TrimSuffix(n, "]"))
		return Param{Type: ir.IntList, IntOrList: k}, err
	}
	return Param{}, fmt.Errorf("unknown type %q", s)
}

func schemaDefault(s string, p Param) (ir.Datum, error) {
	t := p.Type
	if t.Kind == ir.KOptional {
		t = t.Elems[0]
	}
	switch {
	case s == "None":
		return nil, nil
	case s == "True" || s == "False":
		return s == "True", nil
	case strings.HasPrefix(s, "'"):
		return strings.Trim(s, "'"), nil
	case strings.HasPrefix(s, "["):
		l := ir.NewList()
		for _, e := range splitTop(strings.Trim(s, "[]")) {
			n, err := strconv.Atoi(e)
			if err != nil {
				return nil, err
			}
			l = l.Append(int64(n))
		}
		return l, nil
	}
	if d, ok := dtype.Parse(s); ok {
		return d, nil
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		switch {
		case t.Kind == ir.KFloat:
			return float64(i), nil
		case t.Kind == ir.KList: // int[2] x=1
			l := ir.NewList()
			for k := 0; k < p.IntOrList; k++ {
				l = l.Append(i)
			}
			return l, nil
		}
		return i, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err
}
