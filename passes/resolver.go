package passes

import (
	"container/list"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/ir"
)

// Resolver expands generic calls for actual operands and keeps the expansions by signature: the function, dtypes and shapes of
// tensors, and the values of the operands that are not tensors. It is safe for concurrent use.
type Resolver struct {
	mu    sync.Mutex
	cache map[string]*list.Element
	used  list.List // of *expansion, the least recently used last
	limit int
}

type expansion struct {
	key string
	f   *ir.Func
	err error
}

// maxExpansions bounds the number of expansions that a Resolver keeps.
const maxExpansions = 1 << 14

// NewResolver makes an empty Resolver.
func NewResolver() *Resolver {
	return &Resolver{cache: map[string]*list.Element{}, limit: maxExpansions}
}

// Resolve is what ir.Evaluator.Resolve needs: a function of n's operands that computes n's results for operands of the types of args.
func (r *Resolver) Resolve(n *ir.Node, args []ir.Datum) (*ir.Func, error) {
	fn := aten.Lookup(n.Attrs.Callee)
	if fn == nil {
		return nil, fmt.Errorf("there is no function aten.%s", n.Attrs.Callee)
	}
	if len(args) < len(fn.Params) {
		return nil, fmt.Errorf("aten.%s takes %d operands, got %d", fn.Name, len(fn.Params), len(args))
	}
	f, err := r.resolve(n, fn, args, func(i int) bool { return i < len(fn.Params) && fn.Params[i].Scalar })
	if errors.Is(err, ir.ErrNeedsTypes) {
		f, err = r.resolve(n, fn, args, func(int) bool { return false })
	}
	return f, err
}

func (r *Resolver) resolve(n *ir.Node, fn *aten.Fn, args []ir.Datum, runtime func(i int) bool) (*ir.Func, error) {
	key := signature(n, args, runtime)
	if e := r.find(key); e != nil {
		return e.f, e.err
	}
	f, err := expandCall(n, fn, args, runtime)
	if err == nil {
		f, err = tidy(f)
	}
	if err == nil || errors.Is(err, ir.ErrNeedsTypes) {
		r.keep(&expansion{key, f, err})
	}
	return f, err
}

func (r *Resolver) find(key string) *expansion {
	r.mu.Lock()
	defer r.mu.Unlock()
	el := r.cache[key]
	if el == nil {
		return nil
	}
	r.used.MoveToFront(el)
	return el.Value.(*expansion)
}

func (r *Resolver) keep(e *expansion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cache[e.key] != nil {
		return
	}
	r.cache[e.key] = r.used.PushFront(e)
	for len(r.cache) > r.limit {
		last := r.used.Back()
		delete(r.cache, last.Value.(*expansion).key)
		r.used.Remove(last)
	}
}

func signature(n *ir.Node, args []ir.Datum, runtime func(i int) bool) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s/%d", n.Attrs.Callee, n.Attrs.Order)
	for i, a := range args {
		sb.WriteByte('|')
		writeKey(&sb, a, runtime(i))
	}
	return sb.String()
}

func writeKey(sb *strings.Builder, d ir.Datum, runtime bool) {
	switch d := d.(type) {
	case *ir.Array:
		fmt.Fprintf(sb, "%s%v", d.DType, d.Shape)
	case ir.List:
		writeKeys(sb, '[', d.Elems())
	case ir.Tuple:
		writeKeys(sb, '(', d)
	case *ir.Dict:
		writeKeys(sb, '{', d.Keys)
		writeKeys(sb, ':', d.Values)
	default:
		if runtime {
			sb.WriteString(ir.TypeOf(d).String())
			return
		}
		sb.WriteString(ir.FormatDatum(d))
	}
}

func writeKeys(sb *strings.Builder, open byte, ds []ir.Datum) {
	sb.WriteByte(open)
	for _, e := range ds {
		writeKey(sb, e, false)
		sb.WriteByte(',')
	}
	sb.WriteByte(';')
}

// expandCall builds the function: its parameters are the operands; those that are not tensors are constants in its body unless runtime says otherwise.
func expandCall(n *ir.Node, fn *aten.Fn, args []ir.Datum, runtime func(i int) bool) (*ir.Func, error) {
	f := ir.NewFunc(fn.Name)
	b := ir.NewBuilder(f)
	primal := args
	if n.Op == ir.OpVjp {
		if len(fn.Params) > len(args) {
			return nil, fmt.Errorf("vjp of aten.%s: %d operands are too few", fn.Name, len(args))
		}
		primal = args[:len(fn.Params)]
	}
	err := ir.Try(func() {
		ops := make([]*ir.Value, len(primal))
		for i, a := range primal {
			p := f.Param(fmt.Sprintf("a%d", i), operandType(a))
			ops[i] = operand(b, p, a, runtime(i))
		}
		b.Return(fn.Expand(b, ops)...)
	})
	if err != nil || n.Op == ir.OpAten {
		return f, err
	}
	for range n.Attrs.Order {
		if f, err = vjp(f, args); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// vjp is the gradient of f in the convention of ir.OpVjp: its parameters are those of f and then one cotangent per result of f, typed by the actual
// operands in args; its results are one gradient per parameter of f, None where there is none.
func vjp(f *ir.Func, args []ir.Datum) (*ir.Func, error) {
	n, results := len(f.Body.Params), len(f.Returns())
	if len(args) < n+results {
		return nil, fmt.Errorf("vjp of %s: %d operands, expected %d and %d cotangents", f.Name, len(args), n, results)
	}
	cts := args[n : n+results]
	o := autograd.Options{NoPrimal: true, NoneForZero: true, Cotangents: make([]bool, results)}
	for i := range n {
		o.Wrt = append(o.Wrt, i)
	}
	for i, ct := range cts {
		o.Cotangents[i] = ct != nil
	}
	g, err := autograd.Differentiate(f, o)
	if err != nil {
		return nil, err
	}
	w := ir.NewFunc(f.Name)
	b := ir.NewBuilder(w)
	err = ir.Try(func() {
		var pass []*ir.Value
		for i, p := range f.Body.Params {
			pass = append(pass, w.Param(f.ParamNames[i], p.Type))
		}
		for i, ct := range cts {
			p := w.Param(fmt.Sprintf("ct%d", n+i), operandType(ct))
			if o.Cotangents[i] {
				pass = append(pass, p)
			}
		}
		b.Return(b.Inline(g, pass)...)
	})
	return w, err
}

func operandType(d ir.Datum) ir.Type {
	if l, ok := d.(ir.List); ok && l.Len() == 0 {
		return ir.ListOf(ir.Any)
	}
	return ir.TypeOf(d)
}

// operand is the value that stands for an actual operand in the expansion.
func operand(b *ir.Builder, p *ir.Value, d ir.Datum, runtime bool) *ir.Value {
	switch d := d.(type) {
	case *ir.Array:
		return p
	case ir.List:
		if !holdsTensor(d.Elems()) {
			return b.Const(d)
		}
		elems := make([]*ir.Value, d.Len())
		for i, e := range d.Elems() {
			elems[i] = element(b, "list_get", p, i, e)
		}
		return b.List(elems...)
	case ir.Tuple:
		if !holdsTensor(d) {
			return b.Const(d)
		}
		elems := make([]*ir.Value, len(d))
		for i, e := range d {
			elems[i] = element(b, "tuple_get", p, i, e)
		}
		return b.Tuple(elems...)
	case *ir.Dict:
		return p
	}
	if runtime {
		return p
	}
	return b.Const(d)
}

// element is element i of a container, d, with its exact type.
func element(b *ir.Builder, get string, p *ir.Value, i int, d ir.Datum) *ir.Value {
	a, ok := d.(*ir.Array)
	if !ok {
		return b.Const(d)
	}
	return b.Node(ir.LookupOp(get), ir.Attrs{}, nil, []ir.Type{a.Type()}, p, b.Int(i)).Results[0]
}

func holdsTensor(ds []ir.Datum) bool {
	for _, e := range ds {
		if _, ok := e.(*ir.Array); ok {
			return true
		}
	}
	return false
}
