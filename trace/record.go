package trace

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/tensor"
)

// recorder is the tensor.Tracer of one run of the traced function.
type recorder struct {
	name   string
	b      *ir.Builder
	vals   map[*ir.Array]val  // by the array of a handle; copies of a handle share it
	stores map[*byte]*written // by the memory of a storage that was written to in the trace
	caps   []*capture
	guards []guard
	peek   bool
	writes int                  // in-place writes so far
	names  map[*ir.Array]string // of weights that may be captured
	keep   []any                // keeps arrays alive, so that their addresses stay unique
}

// val is the IR value that an array held at a version of its storage.
type val struct {
	v       *ir.Value
	version int
}

// written is the state of a storage that was written to: its flat value, and how often it was.
type written struct {
	base    *ir.Value
	version int
	array   *ir.Array
}

// capture is a tensor that the function uses but was not given.
type capture struct {
	name  string
	array *ir.Array
	param *ir.Value
}

// guard is a value read into Go: the path that was recorded holds only while the read gives want.
type guard struct {
	at   int // the number of nodes before it in the body
	read *ir.Value
	want ir.Datum
	pos  ir.Pos
}

func newRecorder(name string) *recorder {
	return &recorder{name: name, b: ir.NewBuilder(ir.NewFunc(name)), vals: map[*ir.Array]val{}, stores: map[*byte]*written{}, names: map[*ir.Array]string{}}
}

func (r *recorder) String() string { return r.name }

// Record appends the call and names its results.
func (r *recorder) Record(op tensor.Op, args, results []any) error {
	r.b.Pos = callerPos()
	operands := make([]*ir.Value, len(args))
	for i, a := range args {
		v, err := r.operand(a)
		if err != nil {
			return err
		}
		operands[i] = v
	}
	types := make([]ir.Type, len(results))
	for i, res := range results {
		types[i] = resultType(res)
	}
	var out []*ir.Value
	if op.Order == 0 {
		out = r.b.Aten(op.Callee, types, operands...)
	} else {
		out = r.b.Vjp(op.Callee, op.Order, types, operands...)
	}
	for i, res := range results {
		r.bind(res, out[i])
	}
	return nil
}

func resultType(res any) ir.Type {
	switch res := res.(type) {
	case *tensor.Tensor:
		return ir.AnyTensor
	case []any:
		t := ir.ListOf(ir.AnyTensor)
		for _, e := range res {
			if e == nil {
				t = ir.ListOf(ir.OptionalOf(ir.AnyTensor))
			}
		}
		return t
	default:
		return ir.TypeOf(res)
	}
}

// bind says that a result is v; the elements of a list are taken out of it.
func (r *recorder) bind(res any, v *ir.Value) {
	switch res := res.(type) {
	case *tensor.Tensor:
		r.set(res.Array(), v)
	case []any:
		for k, e := range res {
			if e != nil {
				r.bind(e, r.b.Op("list_get", v, r.b.Int(k)))
			}
		}
	}
}

func (r *recorder) set(a *ir.Array, v *ir.Value) {
	version := 0
	if w := r.stores[memory(a)]; w != nil {
		version = w.version
	}
	r.vals[a] = val{v, version}
	r.keep = append(r.keep, a)
}

func memory(a *ir.Array) *byte {
	if len(a.Data) == 0 {
		return nil
	}
	return &a.Data[0]
}

// operand is the value of an argument; a tensor that the trace has not seen is captured.
func (r *recorder) operand(a any) (*ir.Value, error) {
	switch a := a.(type) {
	case *tensor.Tensor:
		return r.tensor(a.Array()), nil
	case []any:
		elems := make([]*ir.Value, len(a))
		for i, e := range a {
			v, err := r.operand(e)
			if err != nil {
				return nil, err
			}
			elems[i] = v
		}
		return r.b.List(elems...), nil
	}
	return r.b.Const(a), nil
}

func (r *recorder) tensor(a *ir.Array) *ir.Value {
	w := r.stores[memory(a)]
	known, ok := r.vals[a]
	switch {
	case ok && (w == nil || known.version == w.version):
		return known.v
	case w != nil:
		v := r.b.Aten("as_strided", []ir.Type{ir.AnyTensor}, w.base, r.b.Ints(a.Shape...), r.b.Ints(a.Strides...), r.b.Int(a.Offset))[0]
		r.set(a, v)
		return v
	case ok:
		return known.v
	}
	c := &capture{name: r.names[a], array: a}
	if c.name == "" {
		c.name = fmt.Sprintf("const.%d", len(r.caps))
	}
	// a capture is what the storage held when the function first used it
	c.array = a.Copy()
	c.param = r.b.Func.Param(c.name, a.Type())
	r.caps = append(r.caps, c)
	r.set(a, c.param)
	return c.param
}

// Write records that the storage of t changed; every view of it reads the new value from now on.
func (r *recorder) Write(t, src *tensor.Tensor) error {
	r.b.Pos = callerPos()
	a := t.Array()
	mem := memory(a)
	if mem == nil {
		return nil
	}
	s := r.tensor(src.Array())
	w := r.stores[mem]
	size := len(a.Data) / a.DType.Size()
	if w == nil {
		flat := a.View([]int{size}, []int{1}, 0)
		w = &written{array: a, base: r.wholeStorage(a, flat)}
		r.stores[mem] = w
	}
	w.base = r.b.Aten("as_strided_scatter", []ir.Type{ir.AnyTensor}, w.base, s, r.b.Ints(a.Shape...), r.b.Ints(a.Strides...), r.b.Int(a.Offset))[0]
	w.version++
	r.writes++
	r.vals[a] = val{s, w.version}
	return nil
}

// wholeStorage is the flat value of a storage before its first write: from a value that covers it, or else captured.
func (r *recorder) wholeStorage(a, flat *ir.Array) *ir.Value {
	for b, v := range r.vals {
		if memory(b) == memory(a) && b.Offset == 0 && b.IsContiguous() && b.Len() == flat.Len() {
			return r.b.Aten("reshape", []ir.Type{ir.AnyTensor}, v.v, r.b.Ints(-1))[0]
		}
	}
	return r.tensor(flat)
}

// Read records a guard, or refuses.
func (r *recorder) Read(t *tensor.Tensor, what string, v any) error {
	if r.peek {
		return nil
	}
	pos := callerPos()
	switch what {
	case "Bool":
		d, ok := v.(bool)
		if !ok {
			d = fmt.Sprint(v) != "0"
		}
		r.guard("item_bool", t, d, pos)
	case "Int":
		if f, ok := v.(float64); ok {
			v = int64(f)
		}
		r.guard("item_int", t, v, pos)
	default:
		return fmt.Errorf("%s: a %s of a traced tensor is read into Go here, which the trace cannot follow: use trace.If, While or For to steer by it, return the tensor to get its value, or trace.Peek to look at it without steering", pos, strings.ToLower(what))
	}
	return nil
}

func (r *recorder) guard(op string, t *tensor.Tensor, want ir.Datum, pos ir.Pos) {
	r.b.Pos = pos
	read := r.b.Op(op, r.tensor(t.Array()))
	r.guards = append(r.guards, guard{at: len(r.b.Block.Nodes), read: read, want: want, pos: pos})
}

// callerPos is the line of the traced function: the nearest frame outside gtc's library packages.
func callerPos() ir.Pos {
	pcs := make([]uintptr, 40)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	const module = "github.com/gtc-project/gtc/"
	for {
		f, more := frames.Next()
		pkg, inModule := strings.CutPrefix(f.Function, module)
		library := inModule && (strings.HasPrefix(pkg, "tensor.") || strings.HasPrefix(pkg, "nn.") || strings.HasPrefix(pkg, "trace."))
		if !library || strings.HasSuffix(f.File, "_test.go") {
			if f.File == "" {
				return ir.Pos{}
			}
			return ir.Pos{File: f.File, Line: f.Line, Col: 1}
		}
		if !more {
			return ir.Pos{}
		}
	}
}
