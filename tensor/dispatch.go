package tensor

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"

	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/runtime"
)

// Op names what a call computes: an aten function (Order 0), or its gradient taken Order times (see ir.OpVjp); Count is the number of results.
type Op struct {
	Callee string
	Order  int
	Count  int
}

func (o Op) String() string {
	if o.Order == 0 {
		return o.Callee
	}
	return fmt.Sprintf("vjp[%d].%s", o.Order, o.Callee)
}

// Call runs an aten function by name, for example Call("softmax", x, -1) or Call("conv2d", x, w, nil, 1, 0, 1, 1). Arguments are in the order of its schema: *Tensor,
// int, float64, float32, bool, string, DType, []int, []float64, []*Tensor, nil for None; those left out at the end take their defaults. Overloads are
// chosen by the kinds of the arguments. It gives the first result; CallN gives all.
func Call(name string, args ...any) *Tensor {
	rs := CallN(name, args...)
	return rs[0]
}

// CallN is Call for functions with several results; a list of tensors counts as so many results. It never gives an empty slice: a failed call gives one
// tensor that holds the error.
func CallN(name string, args ...any) []*Tensor {
	fn, full, err := bind(name, args)
	if err != nil {
		return []*Tensor{failed(located(name, args, err))}
	}
	rs, err := dispatch(Op{Callee: fn.Name, Count: len(fn.Returns)}, fn, full)
	if err != nil {
		return []*Tensor{failed(located(name, args, err))}
	}
	var out []*Tensor
	for _, r := range rs {
		switch r := r.(type) {
		case *Tensor:
			out = append(out, r)
		case []any:
			for _, e := range r {
				out = append(out, e.(*Tensor))
			}
		default:
			d, ok := r.(ir.Datum)
			if !ok {
				continue
			}
			if a := scalarArray(d); a != nil {
				out = append(out, FromArray(a))
			}
		}
	}
	if len(out) == 0 {
		return []*Tensor{failed(fmt.Errorf("%s has no result", name))}
	}
	return out
}

func scalarArray(d ir.Datum) *ir.Array {
	switch d.(type) {
	case int64:
		return ir.Scalar(dtype.I64, d)
	case float64:
		return ir.Scalar(dtype.F64, d)
	case bool:
		return ir.Scalar(dtype.Bool, d)
	}
	return nil
}

// opError is an error of an operation with the place in the caller's source.
type opError struct {
	op    string
	where string
	err   error
}

func (e *opError) Error() string {
	s := e.op + ": " + e.err.Error()
	if e.where != "" {
		s = e.where + ": " + s
	}
	return s
}

func (e *opError) Unwrap() error { return e.err }

// located adds the operation, the argument shapes and the caller's line to an error; an error that an argument held already is passed on.
func located(name string, args []any, err error) error {
	if _, ok := err.(*opError); ok {
		return err
	}
	var shapes []string
	for _, a := range args {
		if t, ok := a.(*Tensor); ok && t != nil && t.arr != nil {
			shapes = append(shapes, fmt.Sprintf("%s%v", t.arr.DType, t.arr.Shape))
		}
	}
	if len(shapes) > 0 {
		err = fmt.Errorf("%w (arguments %s)", err, strings.Join(shapes, ", "))
	}
	return &opError{op: name, where: callerLine(), err: err}
}

const modulePath = "github.com/gtc-project/gtc/"

// callerLine is the nearest line of the stack outside gtc's own packages (its tests count as outside).
func callerLine() string {
	var pcs [32]uintptr
	return firstOutside(pcs[:goruntime.Callers(3, pcs[:])])
}

// firstOutside is the first line of a stack that is outside gtc's own packages.
func firstOutside(pcs []uintptr) string {
	frames := goruntime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		pkg := strings.TrimPrefix(f.Function, modulePath)
		internal := pkg != f.Function && (strings.HasPrefix(pkg, "tensor.") || strings.HasPrefix(pkg, "nn.") || strings.HasPrefix(pkg, "optim.") || strings.HasPrefix(pkg, "trace."))
		if !internal || strings.HasSuffix(f.File, "_test.go") {
			if f.File == "" {
				return ""
			}
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return ""
		}
	}
}

// bind chooses the overload and gives one argument per parameter, the hidden key of a random function excepted.
func bind(name string, args []any) (*aten.Fn, []any, error) {
	cands := aten.Overloads(name, ^aten.Where(0))
	if f := aten.Lookup(name); f != nil {
		cands = append([]*aten.Fn{f}, cands...)
	}
	if len(cands) == 0 {
		return nil, nil, fmt.Errorf("there is no function %q: see `gtc ops` for the list", name)
	}
	var first error
	for _, f := range cands {
		full, err := bindTo(f, args)
		if err == nil {
			return f, full, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, nil, first
}

func bindTo(f *aten.Fn, args []any) ([]any, error) {
	params := f.Params
	if f.Random {
		params = params[:len(params)-1]
	}
	if len(args) > len(params) {
		return nil, fmt.Errorf("takes %d arguments, got %d; expected %s", len(params), len(args), f.Schema)
	}
	full := make([]any, len(params))
	for i, p := range params {
		if i >= len(args) {
			if !p.HasDefault {
				return nil, fmt.Errorf("missing argument %s; expected %s", p.Name, f.Schema)
			}
			full[i] = p.Default
			continue
		}
		v, err := coerce(p, args[i])
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w; expected %s", p.Name, err, f.Schema)
		}
		full[i] = v
	}
	return full, nil
}

// coerce turns a Go argument into an operand for parameter p: *Tensor, []any of such, or a datum.
func coerce(p aten.Param, a any) (any, error) {
	t := p.Type
	if t.Kind == ir.KOptional {
		if a == nil {
			return nil, nil
		}
		t = t.Elems[0]
	}
	if x, ok := a.(*Tensor); ok {
		if x == nil {
			if p.Optional {
				return nil, nil
			}
			return nil, fmt.Errorf("is nil, expected a tensor")
		}
		if x.err != nil {
			return x, nil // dispatch passes the error on
		}
		if t.Kind != ir.KTensor {
			return nil, fmt.Errorf("is a tensor, expected %s", t)
		}
		return x, nil
	}
	d := plain(a)
	switch t.Kind {
	case ir.KAny: // Scalar
		switch d.(type) {
		case int64, float64, bool:
			return d, nil
		}
	case ir.KInt:
		if _, ok := d.(int64); ok {
			return d, nil
		}
	case ir.KFloat:
		switch v := d.(type) {
		case float64:
			return v, nil
		case int64:
			return float64(v), nil
		}
	case ir.KBool:
		if _, ok := d.(bool); ok {
			return d, nil
		}
	case ir.KString:
		if _, ok := d.(string); ok {
			return d, nil
		}
	case ir.KDType:
		if _, ok := d.(dtype.DType); ok {
			return d, nil
		}
	case ir.KList:
		if ts, ok := a.([]*Tensor); ok && (t.Elems[0].Kind == ir.KTensor || t.Elems[0].Kind == ir.KOptional) {
			out := make([]any, len(ts))
			for i, x := range ts {
				if x != nil {
					out[i] = x
				}
			}
			return out, nil
		}
		if n, ok := d.(int64); ok && p.IntOrList > 0 {
			l := ir.NewList()
			for k := 0; k < p.IntOrList; k++ {
				l = l.Append(n)
			}
			return l, nil
		}
		if l, ok := d.(ir.List); ok && (t.Elems[0].Kind == ir.KInt || t.Elems[0].Kind == ir.KFloat) {
			return l, nil
		}
	}
	return nil, fmt.Errorf("is %T, expected %s", a, t)
}

// plain turns Go's numbers and slices into data; other values stay.
func plain(a any) any {
	switch v := a.(type) {
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case float32:
		return float64(v)
	case []int:
		return ir.Ints(v...)
	case []float64:
		l := ir.NewList()
		for _, x := range v {
			l = l.Append(x)
		}
		return l
	}
	return a
}

// dispatch is the one way from the eager API to the engine: it runs the call, shares storages of views, records it on the tape and tells the tracer. fn is
// nil for gradients. Operands are *Tensor, []any of them (nil inside: None) or data; results likewise.
func dispatch(op Op, fn *aten.Fn, args []any) ([]any, error) {
	scope, err := joinScopes(args)
	if err != nil {
		return nil, err
	}
	if fn != nil && fn.Random && len(args) < len(fn.Params) {
		args = append(args, scope.generator().Key())
	}
	var share []any
	if fn != nil && (fn.View || fn.MayView) {
		share = args
	}
	results, err := run(runtime.Callee{Name: op.Callee, Order: op.Order, Count: op.Count}, args, scope, share)
	if err != nil {
		return nil, err
	}
	if scope.Tracer() == nil {
		markDrawn(fn != nil && fn.Random, args, results)
		keepCall(op, args, results)
	}
	if fn == nil || !isConstant(fn.Name) {
		record(op, args, results, scope)
	} else {
		eachTensor(results, func(t *Tensor) { t.views, t.version, t.leafView = newViews(t.store.size), 0, false })
	}
	return results, nil
}

// run computes a call and tells the tracer. A result may lie in the memory of one of share.
func run(c runtime.Callee, args []any, scope *Scope, share []any) ([]any, error) {
	data := make([]ir.Datum, len(args))
	for i, a := range args {
		data[i] = datum(a)
	}
	out, err := scope.eng().Call(context.Background(), c, data)
	if err != nil {
		return nil, err
	}
	results := make([]any, len(out))
	for i, d := range out {
		results[i] = wrap(d, args, scope, share)
	}
	if tr := scope.Tracer(); tr != nil {
		if err := tr.Record(Op{Callee: c.Name, Order: c.Order, Count: c.Count}, args, results); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func isConstant(name string) bool { return name == "detach" }

func joinScopes(args []any) (*Scope, error) {
	var s *Scope
	var err error
	eachTensor(args, func(t *Tensor) {
		if err != nil {
			return
		}
		if t.err != nil {
			err = t.err
			return
		}
		s, err = join(s, t.scope)
	})
	return s, err
}

func eachTensor(args []any, f func(*Tensor)) {
	for _, a := range args {
		switch a := a.(type) {
		case *Tensor:
			f(a)
		case []any:
			eachTensor(a, f)
		}
	}
}

func datum(a any) ir.Datum {
	switch a := a.(type) {
	case *Tensor:
		return a.arr
	case []any:
		l := make([]ir.Datum, len(a))
		for i, e := range a {
			l[i] = datum(e)
		}
		return ir.NewList(l...)
	}
	return a
}

// wrap makes tensors of results. A result that lies in the memory of an operand is a view of it where that is one of share; otherwise, and where a fresh
// result repeats elements, it is copied, so that it may be written to.
func wrap(d ir.Datum, args []any, scope *Scope, share []any) any {
	switch d := d.(type) {
	case *ir.Array:
		t := &Tensor{arr: d, scope: scope}
		if x := inMemoryOf(share, d); x != nil {
			t.store, t.views, t.version = x.store, x.views, x.views.current()
			t.leafView = x.leaf != nil || x.leafView
			return t
		}
		if repeats(d) || inMemoryOf(args, d) != nil {
			t.arr = d.Copy()
		}
		t.own()
		return t
	case ir.List:
		out := make([]any, d.Len())
		for i, e := range d.Elems() {
			out[i] = wrap(e, args, scope, share)
		}
		return out
	}
	return d
}

// inMemoryOf finds the tensor whose memory a lies in.
func inMemoryOf(args []any, a *ir.Array) (found *Tensor) {
	if len(a.Data) == 0 {
		return nil
	}
	eachTensor(args, func(x *Tensor) {
		if found == nil && len(x.arr.Data) > 0 && &x.arr.Data[0] == &a.Data[0] {
			found = x
		}
	})
	return found
}
