package trace

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/nn"
	"github.com/gtc-project/gtc/tensor"
)

// recorder is the tensor.Tracer of one run of the traced function.
type recorder struct {
	name   string
	b      *ir.Builder
	start  uint64 // when the trace began; see tensor.Clock
	done   bool
	err    error              // the first fault that only the end of the trace reports
	vals   map[*ir.Array]val  // by the array of a handle; copies of a handle share it
	stores map[*byte]*written // by the memory of a storage that was written to in the trace
	inputs []*tensor.Tensor   // the clones that the function runs on
	caps   []*capture
	guards []guard

	constants map[*ir.Value]*ir.Value   // without gradients, by the values that have them
	keys      map[int64]*ir.Value       // the keys of random operations
	calls     map[*tensor.Recorded]bool // made outside, and recorded since
	peek      bool
	writes    int                  // in-place writes so far
	sized     bool                 // sizes became numbers of the program: read into Go, or part of where a view lies
	noGrad    bool                 // the operation that is being recorded has no gradients
	modes     []*nn.Mode           // of modules, which the function read
	names     map[*ir.Array]string // of weights that may be captured
	keep      []*ir.Array          // in order of appearance; kept alive, so that their addresses stay unique

	outs    []*ir.Value       // the results
	aliases []alias           // of the results
	updates map[string]update // by the identity of the input or capture
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
	grad    bool // something that was written is differentiable
}

// capture is a tensor that the function uses but was not given.
type capture struct {
	name  string
	id    string         // the same for the same tensor in other runs
	t     *tensor.Tensor // the handle; its value may change between calls
	made  bool           // during the trace: it is a constant
	array *ir.Array      // a copy of the value when the function first used it
	param *ir.Value
	grad  *tensor.Tensor // the accumulated gradient before the trace
}

// guard is a value read into Go: the path that was recorded holds only while the read gives want.
type guard struct {
	at   int // the number of nodes before it in the body
	read *ir.Value
	want ir.Datum
	pos  ir.Pos
}

// alias says that a result is a view of an input or capture, or the same as an earlier result.
type alias struct {
	param string // identity; empty for none
	same  bool   // the very view that the parameter is
	view  *ir.Array
	dup   int  // the number of an earlier result, or -1
	fixed bool // computed without gradients
}

// update is the value that an input or capture has when the function ends.
type update struct {
	v    *ir.Value
	grad bool
}

func newRecorder(name string) *recorder {
	return &recorder{name: name, b: ir.NewBuilder(ir.NewFunc(name)), start: tensor.Clock(), vals: map[*ir.Array]val{}, stores: map[*byte]*written{}, names: map[*ir.Array]string{},
		constants: map[*ir.Value]*ir.Value{}, keys: map[int64]*ir.Value{}, calls: map[*tensor.Recorded]bool{}, updates: map[string]update{}}
}

func (r *recorder) String() string { return r.name }

func (r *recorder) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// ended refuses what comes after the end of the trace.
func (r *recorder) ended() error {
	if !r.done {
		return nil
	}
	return fmt.Errorf("%s: a tensor of the trace of %s is used after the trace ended: it escaped through a variable; return it from the traced function instead", callerPos(), r.name)
}

// Record appends the call and names its results.
func (r *recorder) Record(op tensor.Op, args, results []any) error {
	if err := r.ended(); err != nil {
		return err
	}
	r.b.Pos = callerPos()
	operands := make([]*ir.Value, len(args))
	key := keyOf(op)
	r.noGrad = !grads(results)
	for i, a := range args {
		if i == key {
			operands[i] = r.key(a)
			continue
		}
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
		if r.noGrad {
			r.constants[out[i]] = out[i]
		}
	}
	return nil
}

// grads reports that results belong to a scope in which gradients are recorded.
func grads(results []any) bool {
	for _, res := range results {
		switch res := res.(type) {
		case *tensor.Tensor:
			return res.Scope().Grads()
		case []any:
			if !grads(res) {
				return false
			}
		}
	}
	return true
}

// constant is v, the value of t, as operand of an operation that records no gradients.
func (r *recorder) constant(t *tensor.Tensor, v *ir.Value) *ir.Value {
	captured := slices.ContainsFunc(r.caps, func(c *capture) bool { return c.param == v && !c.made && t.DType().IsFloat() })
	if !t.NeedsGrad() && !captured { // what is captured may be differentiated later
		return v
	}
	d := r.constants[v]
	if d == nil {
		d = r.b.Op("detach", v)
		r.constants[v], r.constants[d] = d, d
	}
	return d
}

// keyOf is the index of the hidden key among the operands of a random function or its gradients; -1 for others.
func keyOf(op tensor.Op) int {
	if fn := aten.Lookup(op.Callee); fn != nil && fn.Random {
		return len(fn.Params) - 1
	}
	return -1
}

// key draws the key of a random operation where the program runs; the gradient of the operation takes the same.
func (r *recorder) key(a any) *ir.Value {
	k, ok := a.(int64)
	if !ok {
		return r.b.Const(a)
	}
	v := r.keys[k]
	if v == nil {
		v = r.b.Op("rng")
		r.keys[k] = v
	}
	return v
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
		if r.noGrad {
			return r.constant(a, r.tensor(a)), nil
		}
		return r.tensor(a), nil
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

func (r *recorder) tensor(t *tensor.Tensor) *ir.Value {
	a := t.Array()
	w := r.stores[memory(a)]
	known, ok := r.vals[a]
	switch {
	case ok && (w == nil || known.version == w.version):
		return known.v
	case w != nil:
		r.sized = true
		v := r.b.Aten("as_strided", []ir.Type{ir.AnyTensor}, w.base, r.b.Ints(a.Shape...), r.b.Ints(a.Strides...), r.b.Int(a.Offset))[0]
		r.set(a, v)
		return v
	case ok:
		return known.v
	}
	made, written, drawn := t.Since(r.start)
	if c := t.Call(); c != nil && made && !written {
		if r.replay(c) {
			if known, ok := r.vals[a]; ok {
				return known.v
			}
		}
	}
	switch {
	case drawn:
		r.fail(fmt.Errorf("%s: random numbers that were drawn outside of the trace are used here, and would be the same at each call: draw them on a tensor of the trace, such as tensor.Call(\"randn_like\", x)", callerPos()))
	case written && !made:
		r.fail(fmt.Errorf("%s: the captured tensor %s was written to by the function, but the trace did not see it, as no operand belongs to the trace: write it with t.With(x.Scope()).Add_(…), x being an input", callerPos(), r.describe(t)))
	}
	if t.Scope().Tracer() != nil {
		t = t.With(nil) // what it is outside of the trace
	}
	c := &capture{name: r.names[a], t: t, made: made, array: a.Copy(), grad: t.Grad()}
	if made {
		c.id = fmt.Sprintf("made %s %v %x", a.DType, a.Shape, sha256.Sum256(c.array.Bytes()))
	} else {
		c.id = identity(a)
	}
	if c.name == "" {
		c.name = fmt.Sprintf("const.%d", len(r.caps))
	}
	c.param = r.b.Func.Param(c.name, a.Type())
	r.caps = append(r.caps, c)
	r.set(a, c.param)
	return c.param
}

// identity names a view of a storage.
func identity(a *ir.Array) string {
	return fmt.Sprintf("%p %s %v %v %d", memory(a), a.DType, a.Shape, a.Strides, a.Offset)
}

func (r *recorder) describe(t *tensor.Tensor) string {
	if name := r.names[t.Array()]; name != "" {
		return name
	}
	return fmt.Sprintf("%s%v", t.DType(), t.Shape())
}

// replay records a call that was made outside of the trace while it ran.
func (r *recorder) replay(c *tensor.Recorded) bool {
	if r.calls[c] {
		return true
	}
	for _, a := range c.Args {
		if !r.replayable(a) {
			return false
		}
	}
	r.calls[c] = true
	return r.Record(c.Op, c.Args, c.Results) == nil
}

// replayable reports that an operand was not written to since.
func (r *recorder) replayable(a any) bool {
	switch a := a.(type) {
	case *tensor.Tensor:
		made, written, _ := a.Since(r.start)
		return !written || made && r.stores[memory(a.Array())] != nil
	case []any:
		for _, e := range a {
			if !r.replayable(e) {
				return false
			}
		}
	}
	return true
}

// Write records that the storage of t changed; every view of it reads the new value from now on.
func (r *recorder) Write(t, src *tensor.Tensor) error {
	if err := r.ended(); err != nil {
		return err
	}
	r.b.Pos = callerPos()
	a := t.Array()
	mem := memory(a)
	if mem == nil {
		return nil
	}
	s := r.tensor(src)
	w := r.stores[mem]
	r.sized = true
	if w == nil {
		w = &written{base: r.wholeStorage(t)}
		r.stores[mem] = w
	}
	w.base = r.b.Aten("as_strided_scatter", []ir.Type{ir.AnyTensor}, w.base, s, r.b.Ints(a.Shape...), r.b.Ints(a.Strides...), r.b.Int(a.Offset))[0]
	w.version++
	w.grad = w.grad || src.NeedsGrad()
	r.writes++
	r.set(a, s)
	return nil
}

// wholeStorage is the flat value of the storage of t before its first write: from a value that covers it, or from those of the inputs that lie in
// it, or else captured.
func (r *recorder) wholeStorage(t *tensor.Tensor) *ir.Value {
	a := t.Array()
	mem, size := memory(a), len(a.Data)/a.DType.Size()
	for _, b := range r.keep {
		if memory(b) == mem && b.Offset == 0 && b.IsContiguous() && b.Len() == size {
			return r.b.Aten("reshape", []ir.Type{ir.AnyTensor}, r.vals[b].v, r.b.Ints(-1))[0]
		}
	}
	var base *ir.Value
	for _, in := range r.inputs {
		b := in.Array()
		if memory(b) != mem {
			continue
		}
		if base == nil {
			base = r.b.Aten("zeros", []ir.Type{ir.AnyTensor}, r.b.Ints(size), r.b.DType(a.DType), r.b.None(), r.b.None(), r.b.None(), r.b.None())[0]
		}
		base = r.b.Aten("as_strided_scatter", []ir.Type{ir.AnyTensor}, base, r.vals[b].v, r.b.Ints(b.Shape...), r.b.Ints(b.Strides...), r.b.Int(b.Offset))[0]
	}
	if base != nil {
		return base
	}
	return r.tensor(tensor.NoGrad(t.With(nil)).StorageView([]int{size}, []int{1}, 0))
}

// ReadSize notes that the trace holds for the sizes of the inputs.
func (r *recorder) ReadSize(*tensor.Tensor) { r.sized = true }

// Read records a guard, or refuses.
func (r *recorder) Read(t *tensor.Tensor, what string, v any) error {
	if err := r.ended(); err != nil {
		return err
	}
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
	read := r.b.Op(op, r.tensor(t))
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
		library := inModule && (strings.HasPrefix(pkg, "tensor.") || strings.HasPrefix(pkg, "nn.") || strings.HasPrefix(pkg, "trace.")) || strings.HasPrefix(f.Function, "runtime.")
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
