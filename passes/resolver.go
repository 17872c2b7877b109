package passes

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"

	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Resolver expands generic calls for actual operands and keeps the expansions by signature: the function, the dtypes and shapes of
// tensors, and the values of the operands that are not tensors. Scalar operands count by their kind only, where the expansion allows it.
// It is safe for concurrent use; finding a kept expansion costs a few hundred nanoseconds and does not allocate.
type Resolver struct {
	// Plain leaves expansions as the functions build them, without rewrites and kernels: for a reference.
	Plain bool

	mu    sync.RWMutex
	cache map[string]*expansion
	clock atomic.Int64
	limit int
}

type expansion struct {
	f    *ir.Func // nil: the expansion depends on the values of scalar operands
	used atomic.Int64
}

// maxExpansions bounds the number of expansions that a Resolver keeps.
const maxExpansions = 1 << 14

// NewResolver makes an empty Resolver.
func NewResolver() *Resolver { return &Resolver{cache: map[string]*expansion{}, limit: maxExpansions} }

// Resolve is what ir.Evaluator.Resolve needs: a function of n's operands that computes n's results for operands of the types of args. Gradients
// that a vjp node's results say nobody wants (their type is None) are not computed.
func (r *Resolver) Resolve(n *ir.Node, args []ir.Datum) (*ir.Func, error) {
	fn, err := lookupCall(n.Attrs.Callee, len(args))
	if err != nil {
		return nil, err
	}
	var buf [256]byte
	order := 0
	var unwanted []*ir.Value
	if n.Op == ir.OpVjp {
		order, unwanted = n.Attrs.Order, n.Results
	}
	for _, scalars := range []bool{true, false} {
		key := appendSignature(buf[:0], fn, order, args, scalars)
		key = appendUnwanted(key, unwanted)
		if e := r.find(key); e != nil {
			if e.f != nil {
				return e.f, nil
			}
			continue
		}
		ops := make([]operand, len(args))
		for i, a := range args {
			ops[i] = operandOfDatum(a, scalars && isScalar(fn, i))
		}
		f, err := expandCall(fn, order, ops, n.Results)
		if needsTypes(err) && scalars {
			r.keep(key, nil)
			continue
		}
		if err != nil {
			return nil, err
		}
		if !r.Plain {
			if f, err = tidy(f); err != nil {
				return nil, err
			}
		}
		r.keep(key, f)
		return f, nil
	}
	return nil, ir.ErrNeedsTypes
}

// isScalar reports whether operand i is a number that takes part in arithmetic only. Exponents are not: small ones become products.
func isScalar(fn *aten.Fn, i int) bool {
	return i < len(fn.Params) && fn.Params[i].Scalar && fn.Params[i].Name != "exponent"
}

func (r *Resolver) find(key []byte) *expansion {
	r.mu.RLock()
	e := r.cache[string(key)]
	r.mu.RUnlock()
	if e != nil {
		e.used.Store(r.clock.Add(1))
	}
	return e
}

// keep adds an expansion. A full cache first drops the half that was not used for longest.
func (r *Resolver) keep(key []byte, f *ir.Func) {
	e := &expansion{f: f}
	e.used.Store(r.clock.Add(1))
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.cache) >= r.limit {
		r.evict()
	}
	r.cache[string(key)] = e
}

func (r *Resolver) evict() {
	keep := r.limit / 2
	for span := int64(keep); ; span /= 2 {
		oldest := r.clock.Load() - span
		for k, e := range r.cache {
			if e.used.Load() <= oldest {
				delete(r.cache, k)
			}
		}
		if len(r.cache) <= keep {
			return
		}
	}
}

// appendSignature writes what an expansion depends on. With scalars, scalar operands count by their kind.
func appendSignature(key []byte, fn *aten.Fn, order int, args []ir.Datum, scalars bool) []byte {
	key = append(key, fn.Name...)
	key = append(key, 0, byte(order))
	for i, a := range args {
		if scalars && isScalar(fn, i) {
			if k := scalarKind(a); k != 0 {
				key = append(key, k)
				continue
			}
		}
		key = appendDatum(key, a)
	}
	return key
}

// appendUnwanted writes which results nobody wants, if any.
func appendUnwanted(key []byte, results []*ir.Value) []byte {
	for i, r := range results {
		if r.Type.Kind == ir.KNone {
			key = binary.AppendUvarint(append(key, tagUnwanted), uint64(i))
		}
	}
	return key
}

// Tags of signatures; every datum starts with one, and all but the tags of kinds say how long they are.
const (
	tagKindInt byte = iota + 1
	tagKindFloat
	tagKindBool
	tagArray
	tagInt
	tagFloat
	tagTrue
	tagFalse
	tagString
	tagDType
	tagNone
	tagList
	tagTuple
	tagDict
	tagUnwanted
)

func scalarKind(d ir.Datum) byte {
	switch d.(type) {
	case int64:
		return tagKindInt
	case float64:
		return tagKindFloat
	case bool:
		return tagKindBool
	}
	return 0
}

func appendDatum(key []byte, d ir.Datum) []byte {
	switch d := d.(type) {
	case *ir.Array:
		key = append(key, tagArray, byte(d.DType), byte(len(d.Shape)))
		for _, n := range d.Shape {
			key = binary.AppendUvarint(key, uint64(n))
		}
	case int64:
		key = binary.AppendVarint(append(key, tagInt), d)
	case float64:
		key = binary.LittleEndian.AppendUint64(append(key, tagFloat), math.Float64bits(d))
	case bool:
		if d {
			return append(key, tagTrue)
		}
		return append(key, tagFalse)
	case string:
		key = binary.AppendUvarint(append(key, tagString), uint64(len(d)))
		key = append(key, d...)
	case dtype.DType:
		key = append(key, tagDType, byte(d))
	case nil:
		key = append(key, tagNone)
	case ir.List:
		key = appendData(append(key, tagList), d.Elems())
	case ir.Tuple:
		key = appendData(append(key, tagTuple), d)
	case *ir.Dict:
		key = appendData(appendData(append(key, tagDict), d.Keys), d.Values)
	}
	return key
}

func appendData(key []byte, ds []ir.Datum) []byte {
	key = binary.AppendUvarint(key, uint64(len(ds)))
	for _, d := range ds {
		key = appendDatum(key, d)
	}
	return key
}
