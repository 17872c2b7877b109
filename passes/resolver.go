package passes

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/ir"
)

// Resolver expands generic calls for actual operands and keeps the expansions by signature. It is safe for concurrent use.
type Resolver struct {
	mu    sync.Mutex
	cache map[string]*ir.Func
}

// maxExpansions bounds the cache; beyond it the cache starts anew.
const maxExpansions = 1 << 14

// NewResolver makes an empty Resolver.
func NewResolver() *Resolver { return &Resolver{cache: map[string]*ir.Func{}} }

// Resolve is what ir.Evaluator.Resolve needs: a function of n's operands that computes n's results for operands of the types of args.
func (r *Resolver) Resolve(n *ir.Node, args []ir.Datum) (*ir.Func, error) {
	fn := aten.Lookup(n.Attrs.Callee)
	if fn == nil {
		return nil, fmt.Errorf("there is no function aten.%s", n.Attrs.Callee)
	}
	scalars := func(i int) bool { return n.Op == ir.OpAten && i < len(fn.Params) && fn.Params[i].Scalar }
	f, err := r.resolve(n, fn, args, scalars)
	if errors.Is(err, ir.ErrNeedsTypes) {
		f, err = r.resolve(n, fn, args, func(int) bool { return false })
	}
	return f, err
}

func (r *Resolver) resolve(n *ir.Node, fn *aten.Fn, args []ir.Datum, runtime func(i int) bool) (*ir.Func, error) {
	key := signature(n, args, runtime)
	r.mu.Lock()
	f := r.cache[key]
	r.mu.Unlock()
	if f != nil {
		return f, nil
	}
	f, err := expandCall(n, fn, args, runtime)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.cache) >= maxExpansions {
		r.cache = map[string]*ir.Func{}
	}
	r.cache[key] = f
	return f, nil
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
		sb.WriteByte('[')
		for _, e := range d.Elems() {
			writeKey(sb, e, false)
			sb.WriteByte(',')
		}
		sb.WriteByte(']')
	default:
		if runtime {
			sb.WriteString(ir.TypeOf(d).String())
			return
		}
		sb.WriteString(ir.FormatDatum(d))
	}
}

// expandCall builds the function: its parameters are the operands; those that are not tensors are constants in its body unless runtime says otherwise.
func expandCall(n *ir.Node, fn *aten.Fn, args []ir.Datum, runtime func(i int) bool) (*ir.Func, error) {
	if n.Op != ir.OpAten {
		return nil, fmt.Errorf("the gradient of aten.%s is not available", fn.Name)
	}
	f := ir.NewFunc(fn.Name)
	b := ir.NewBuilder(f)
	err := ir.Try(func() {
		ops := make([]*ir.Value, len(args))
		for i, a := range args {
			p := f.Param(fmt.Sprintf("a%d", i), operandType(a))
			ops[i] = operand(b, p, a, runtime(i))
		}
		b.Return(fn.Expand(b, ops)...)
	})
	return f, err
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
		elems := make([]*ir.Value, d.Len())
		tensors := false
		for i, e := range d.Elems() {
			if a, ok := e.(*ir.Array); ok {
				tensors = true
				elems[i] = b.Op("list_get", p, b.Int(i))
				elems[i].Type = a.Type()
			} else {
				elems[i] = b.Const(e)
			}
		}
		if tensors {
			return b.List(elems...)
		}
	}
	if runtime {
		return p
	}
	return b.Const(d)
}
