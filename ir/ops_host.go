package ir

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Ops on scalars, strings, lists, tuples and dicts, with Python's meaning. They run on the host, on every target.
//
// Cotangents of containers: a list's is a list of the same length, a tuple's a tuple, a dict's a dict that may lack keys; None
// anywhere stands for zero.

// RaiseError is what a raise or a failed assert of the program reports.
type RaiseError struct{ Kind, Msg string }

func (e *RaiseError) Error() string {
	if e.Msg == "" {
		return e.Kind
	}
	return e.Kind + ": " + e.Msg
}

// host registers a pure host op without gradient.
func host(name, params, doc string, infer func(c *Call) ([]Type, error), eval func(c *EvalCall) (Datum, error)) *Op {
	return register(&Op{Name: name, Doc: doc, Params: strings.Fields(params), Class: Host, NoGrad: true, Infer: infer,
		Eval: func(c *EvalCall) ([]Datum, error) {
			d, err := eval(c)
			return []Datum{d}, err
		}})
}

// mayFail marks a row whose evaluation may report an error.
func mayFail(op *Op) *Op { op.Effect = MayFail; return op }

// withGrad gives a row a gradient.
func withGrad(op *Op, grad func(b *Builder, n *Node, ct []*Value) []*Value) *Op {
	op.Grad, op.NoGrad = grad, false
	return op
}

// is makes a type rule that always gives t.
func is(t Type) func(*Call) ([]Type, error) {
	return func(*Call) ([]Type, error) { return t1(t) }
}

// elem is the i-th element type of a container type, and Any where it is not one.
func elem(t Type, i int) Type {
	if i < len(t.Elems) {
		return t.Elems[i]
	}
	return Any
}

// sameAs makes a type rule that gives the type of operand i.
func sameAs(i int) func(*Call) ([]Type, error) {
	return func(c *Call) ([]Type, error) { return t1(c.Args[i]) }
}

func isNumberKind(k Kind) bool { return k == KInt || k == KFloat || k == KBool || k == KAny }

// arithType: int for ints and bools, float where one is a float.
func arithType(c *Call) ([]Type, error) {
	t := Int
	for _, a := range c.Args {
		switch a.Kind {
		case KFloat:
			if t.Kind != KAny {
				t = Float
			}
		case KAny:
			t = Any
		case KInt, KBool:
		default:
			return nil, c.Errorf("operand is %s, expected a number", a)
		}
	}
	return t1(t)
}

// num reads a Python number.
func num(d Datum) (i int64, f float64, isFloat bool, err error) {
	switch v := d.(type) {
	case int64:
		return v, float64(v), false, nil
	case bool:
		return b2i(v), float64(b2i(v)), false, nil
	case float64:
		return 0, v, true, nil
	}
	return 0, 0, false, fmt.Errorf("operand is %s, expected a number", TypeOf(d))
}

// arith registers a binary operator on numbers.
func arith(name, doc string, fi func(a, b int64) (int64, error), ff func(a, b float64) (float64, error)) *Op {
	return mayFail(host(name, "a b", doc, arithType, func(c *EvalCall) (Datum, error) {
		ai, af, aF, err := num(c.Args[0])
		if err != nil {
			return nil, err
		}
		bi, bf, bF, err := num(c.Args[1])
		if err != nil {
			return nil, err
		}
		if aF || bF {
			return ff(af, bf)
		}
		return fi(ai, bi)
	}))
}

var errDivZero = &RaiseError{"ZeroDivisionError", "division by zero"}

// FloorDiv is Python's // on ints; b is not zero.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func floorMod(a, b float64) float64 {
	m := math.Mod(a, b)
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return m
}

func ipow(a, b int64) int64 {
	r := int64(1)
	for ; b > 0; b >>= 1 {
		if b&1 != 0 {
			r *= a
		}
		a *= a
	}
	return r
}

// pure marks an arithmetic row that never fails on numbers of the right kind.
func pure(op *Op) *Op { op.Effect = Pure; return op }

func init() {
	noErrI := func(f func(a, b int64) int64) func(a, b int64) (int64, error) {
		return func(a, b int64) (int64, error) { return f(a, b), nil }
	}
	noErrF := func(f func(a, b float64) float64) func(a, b float64) (float64, error) {
		return func(a, b float64) (float64, error) { return f(a, b), nil }
	}
	pure(arith("py_add", "a + b on numbers.", noErrI(func(a, b int64) int64 { return a + b }), noErrF(func(a, b float64) float64 { return a + b })))
	pure(arith("py_sub", "a - b on numbers.", noErrI(func(a, b int64) int64 { return a - b }), noErrF(func(a, b float64) float64 { return a - b })))
	pure(arith("py_mul", "a * b on numbers.", noErrI(func(a, b int64) int64 { return a * b }), noErrF(func(a, b float64) float64 { return a * b })))
	arith("py_floordiv", "a // b on numbers, rounding down.", func(a, b int64) (int64, error) {
		if b == 0 {
			return 0, errDivZero
		}
		return FloorDiv(a, b), nil
	}, noErrF(func(a, b float64) float64 { return math.Floor(a / b) }))
	arith("py_mod", "a % b on numbers, with the sign of b.", func(a, b int64) (int64, error) {
		if b == 0 {
			return 0, errDivZero
		}
		return a - FloorDiv(a, b)*b, nil
	}, noErrF(floorMod))
	arith("py_pow", "a ** b on numbers; an int for ints, which then must have b >= 0.", func(a, b int64) (int64, error) {
		if b < 0 {
			return 0, errors.New("integer to a negative power: convert to float first")
		}
		return ipow(a, b), nil
	}, noErrF(math.Pow))
	arith("py_bitand", "a & b on ints.", noErrI(func(a, b int64) int64 { return a & b }), notInts)
	arith("py_bitor", "a | b on ints.", noErrI(func(a, b int64) int64 { return a | b }), notInts)
	arith("py_bitxor", "a ^ b on ints.", noErrI(func(a, b int64) int64 { return a ^ b }), notInts)
	arith("py_shl", "a << b on ints.", shift(func(a, b int64) int64 { return a << b }), notInts)
	arith("py_shr", "a >> b on ints.", shift(func(a, b int64) int64 { return a >> b }), notInts)
	pure(arith("py_min", "The smaller of two numbers.", noErrI(func(a, b int64) int64 { return min(a, b) }), noErrF(func(a, b float64) float64 {
		if b < a {
			return b
		}
		return a
	})))
	pure(arith("py_max", "The larger of two numbers.", noErrI(func(a, b int64) int64 { return max(a, b) }), noErrF(func(a, b float64) float64 {
		if b > a {
			return b
		}
		return a
	})))

	host("py_truediv", "a b", "a / b on numbers, always a float; by the rules of IEEE where b is zero.", is(Float), func(c *EvalCall) (Datum, error) {
		_, a, _, err := num(c.Args[0])
		if err != nil {
			return nil, err
		}
		_, b, _, err := num(c.Args[1])
		if err != nil {
			return nil, err
		}
		return a / b, nil
	})
	host("py_neg", "a", "-a on numbers.", arithType, func(c *EvalCall) (Datum, error) {
		i, f, isF, err := num(c.Args[0])
		if isF {
			return -f, err
		}
		return -i, err
	})
	host("py_invert", "a", "~a on ints.", is(Int), func(c *EvalCall) (Datum, error) {
		i, _, _, err := num(c.Args[0])
		return ^i, err
	})
	host("py_abs", "a", "The absolute value of a number.", arithType, func(c *EvalCall) (Datum, error) {
		i, f, isF, err := num(c.Args[0])
		if isF {
			return math.Abs(f), err
		}
		return max(i, -i), err
	})
	host("py_round", "a digits", "round(a, digits) to even.", is(Float), func(c *EvalCall) (Datum, error) {
		_, f, _, err := num(c.Args[0])
		p := math.Pow(10, float64(c.Int(1)))
		return math.RoundToEven(f*p) / p, err
	})
	host("py_not", "a", "not a on bools.", is(BoolT), func(c *EvalCall) (Datum, error) { return !c.Bool(0), nil })
	host("py_select", "cond a b", "a where cond is true, else b, both evaluated.",
		func(c *Call) ([]Type, error) { return t1(c.Args[1].Join(c.Args[2])) },
		func(c *EvalCall) (Datum, error) {
			if c.Bool(0) {
				return c.Args[1], nil
			}
			return c.Args[2], nil
		})
	for _, cmp := range []struct {
		name, sym string
		ok        func(c int) bool
	}{
		{"py_lt", "<", func(c int) bool { return c == -1 }},
		{"py_le", "<=", func(c int) bool { return c == -1 || c == 0 }},
		{"py_gt", ">", func(c int) bool { return c == 1 }},
		{"py_ge", ">=", func(c int) bool { return c == 1 || c == 0 }},
	} {
		host(cmp.name, "a b", "a "+cmp.sym+" b on numbers or strings.", is(BoolT), func(c *EvalCall) (Datum, error) {
			r, err := compare(c.Args[0], c.Args[1])
			return cmp.ok(r), err
		})
	}
	host("py_eq", "a b", "a == b on anything but tensors.", is(BoolT), func(c *EvalCall) (Datum, error) { return DatumEqual(c.Args[0], c.Args[1]), nil })
	host("py_ne", "a b", "a != b on anything but tensors.", is(BoolT), func(c *EvalCall) (Datum, error) { return !DatumEqual(c.Args[0], c.Args[1]), nil })
	host("is_none", "a", "Whether a is None.", is(BoolT), func(c *EvalCall) (Datum, error) { return c.Args[0] == nil, nil })

	mayFail(host("py_int", "a", "int(a) of a number or string, towards zero.", is(Int), func(c *EvalCall) (Datum, error) {
		if s, ok := c.Args[0].(string); ok {
			i, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
			if err != nil {
				return nil, &RaiseError{"ValueError", fmt.Sprintf("invalid literal for int(): %q", s)}
			}
			return i, nil
		}
		i, f, isF, err := num(c.Args[0])
		if !isF || err != nil {
			return i, err
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("cannot convert float %s to int", formatFloat(f, 64))
		}
		return int64(f), nil
	}))
	mayFail(host("py_float", "a", "float(a) of a number or string.", is(Float), func(c *EvalCall) (Datum, error) {
		if s, ok := c.Args[0].(string); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
			if err != nil && !errors.Is(err, strconv.ErrRange) {
				return nil, &RaiseError{"ValueError", fmt.Sprintf("could not convert string to float: %q", s)}
			}
			return f, nil
		}
		_, f, _, err := num(c.Args[0])
		return f, err
	}))
	host("py_bool", "a", "Whether a number is not zero, or a string or container not empty.", is(BoolT), func(c *EvalCall) (Datum, error) { return truth(c.Args[0]) })
	host("py_str", "a", "str(a).", is(Str), func(c *EvalCall) (Datum, error) { return PyString(c.Args[0]), nil })

	// tensors read into scalars
	host("shape", "x", "The sizes of a tensor.", is(IntList), func(c *EvalCall) (Datum, error) { return Ints(c.Array(0).Shape...), nil })
	mayFail(host("size", "x dim", "The size of one dimension; dim may be negative.", is(Int), func(c *EvalCall) (Datum, error) {
		if len(c.Array(0).Shape) == 0 {
			return nil, fmt.Errorf("dimension specified as %d but tensor has no dimensions", c.Int(1))
		}
		d, err := WrapDim(c.Int(1), len(c.Array(0).Shape))
		if err != nil {
			return nil, err
		}
		return int64(c.Array(0).Shape[d]), nil
	}))
	host("rank", "x", "The number of dimensions of a tensor.", is(Int), func(c *EvalCall) (Datum, error) { return int64(len(c.Array(0).Shape)), nil })
	host("numel", "x", "The number of elements of a tensor.", is(Int), func(c *EvalCall) (Datum, error) { return int64(c.Array(0).Len()), nil })
	host("dtype_of", "x", "The dtype of a tensor.", is(DTypeT), func(c *EvalCall) (Datum, error) { return c.Array(0).DType, nil })
	mayFail(host("item", "x", "The element of a tensor that has one: an int, float or bool by its dtype.", func(c *Call) ([]Type, error) {
		switch d := c.Args[0].DType; {
		case d == dtype.Invalid:
			return t1(Any)
		case d == dtype.Bool:
			return t1(BoolT)
		case d.IsInt():
			return t1(Int)
		}
		return t1(Float)
	}, func(c *EvalCall) (Datum, error) { return Item(c.Array(0)) }))
	mayFail(host("item_int", "x", "int(x) of a tensor with one element.", is(Int), func(c *EvalCall) (Datum, error) {
		d, err := Item(c.Array(0))
		if f, ok := d.(float64); ok {
			if math.IsNaN(f) || math.IsInf(f, 0) {
				return nil, fmt.Errorf("cannot convert float %s to int", formatFloat(f, 64))
			}
			return int64(f), err
		}
		if b, ok := d.(bool); ok {
			return b2i(b), err
		}
		return d, err
	}))
	mayFail(host("item_float", "x", "float(x) of a tensor with one element.", is(Float), func(c *EvalCall) (Datum, error) {
		d, err := Item(c.Array(0))
		if err != nil {
			return nil, err
		}
		_, f, _, err := num(d)
		return f, err
	}))
	mayFail(host("item_bool", "x", "bool(x) of a tensor with one element.", is(BoolT), func(c *EvalCall) (Datum, error) {
		x := c.Array(0)
		switch n := x.Len(); {
		case n > 1:
			return nil, fmt.Errorf("Boolean value of Tensor with more than one value is ambiguous (shape %v): use .any() or .all()", x.Shape)
		case n == 0:
			return false, nil
		}
		d, err := Item(x)
		if err != nil {
			return nil, err
		}
		return truth(d)
	}))
	// one list per nesting level gives the sizes; used for torch.tensor
	mayFail(host("range_len", "start stop step", "The number of values of range(start, stop, step).", is(Int), func(c *EvalCall) (Datum, error) {
		n, err := rangeLen(int64(c.Int(0)), int64(c.Int(1)), int64(c.Int(2)))
		return n, err
	}))
	mayFail(host("range_list", "start stop step", "The list of the values of range(start, stop, step).", is(IntList), func(c *EvalCall) (Datum, error) {
		start, step := int64(c.Int(0)), int64(c.Int(2))
		n, err := rangeLen(start, int64(c.Int(1)), step)
		if err != nil {
			return nil, err
		}
		if n > 1<<26 {
			return nil, fmt.Errorf("range of %d values is too long to be a list", n)
		}
		elems := make([]Datum, n)
		for i := range elems {
			elems[i] = start + int64(i)*step
		}
		return NewList(elems...), nil
	}))
	initMath()
	initStrings()
	initContainers()
	initEffects()
}

func notInts(a, b float64) (float64, error) {
	return 0, errors.New("operands are floats, expected ints")
}

func shift(f func(a, b int64) int64) func(a, b int64) (int64, error) {
	return func(a, b int64) (int64, error) {
		if b < 0 {
			return 0, errors.New("negative shift count")
		}
		return f(a, b), nil
	}
}

func rangeLen(start, stop, step int64) (int64, error) {
	switch {
	case step == 0:
		return 0, errors.New("range() arg 3 must not be zero")
	case step > 0 && stop > start:
		return (stop-start-1)/step + 1, nil
	case step < 0 && stop < start:
		return (start-stop-1)/-step + 1, nil
	}
	return 0, nil
}

// WrapDim turns a dimension that may be negative into 0 … rank-1; a 0-d tensor accepts -1 and 0.
func WrapDim(d, rank int) (int, error) {
	n := max(rank, 1)
	if d < -n || d >= n {
		return 0, fmt.Errorf("Dimension out of range (expected to be in range of [%d, %d], but got %d)", -n, n-1, d)
	}
	if d < 0 {
		d += n
	}
	return d, nil
}

// Item is the only element of a.
func Item(a *Array) (Datum, error) {
	if a.Len() != 1 {
		return nil, fmt.Errorf("only one element tensors can be converted to Python scalars, got shape %v", a.Shape)
	}
	switch {
	case a.DType == dtype.Bool:
		return a.Int(a.Offset) != 0, nil
	case a.DType.IsInt():
		return a.Int(a.Offset), nil
	}
	return a.Float(a.Offset), nil
}

func truth(d Datum) (Datum, error) {
	switch v := d.(type) {
	case bool:
		return v, nil
	case int64:
		return v != 0, nil
	case float64:
		return v != 0, nil
	case string:
		return v != "", nil
	case List:
		return v.Len() > 0, nil
	case Tuple:
		return len(v) > 0, nil
	case *Dict:
		return len(v.Keys) > 0, nil
	case nil:
		return false, nil
	}
	return nil, fmt.Errorf("%s has no truth value", TypeOf(d))
}

func compare(a, b Datum) (int, error) {
	if s, ok := a.(string); ok {
		if t, ok := b.(string); ok {
			return strings.Compare(s, t), nil
		}
	}
	ai, af, aF, err := num(a)
	if err != nil {
		return 0, err
	}
	bi, bf, bF, err := num(b)
	if err != nil {
		return 0, err
	}
	if !aF && !bF {
		return cmp3(ai, bi), nil
	}
	if math.IsNaN(af) || math.IsNaN(bf) {
		return 2, nil
	}
	return cmp3(af, bf), nil
}

func cmp3[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// DatumEqual is Python's == on anything but tensors, which are equal when they are the same array.
func DatumEqual(a, b Datum) bool {
	switch x := a.(type) {
	case List:
		y, ok := b.(List)
		return ok && allEqual(x.Elems(), y.Elems())
	case Tuple:
		y, ok := b.(Tuple)
		return ok && allEqual(x, y)
	case int64, float64, bool:
		switch b.(type) {
		case int64, float64, bool:
			c, _ := compare(a, b)
			return c == 0
		}
		return false
	case *Dict:
		y, ok := b.(*Dict)
		if !ok || len(x.Keys) != len(y.Keys) {
			return false
		}
		for i, k := range x.Keys {
			if v, ok := y.Get(k); !ok || !DatumEqual(x.Values[i], v) {
				return false
			}
		}
		return true
	}
	return a == b
}

func allEqual(a, b []Datum) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !DatumEqual(a[i], b[i]) {
			return false
		}
	}
	return true
}

// PyString writes a value as Python's str does.
func PyString(d Datum) string {
	switch v := d.(type) {
	case string:
		return v
	case bool:
		if v {
			return "True"
		}
		return "False"
	case nil:
		return "None"
	case dtype.DType:
		return v.Torch()
	case *Array:
		return "tensor(" + v.String() + ")"
	case List:
		parts := make([]string, v.Len())
		for i, e := range v.Elems() {
			parts[i] = pyRepr(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Tuple:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = pyRepr(e)
		}
		if len(parts) == 1 {
			return "(" + parts[0] + ",)"
		}
		return "(" + strings.Join(parts, ", ") + ")"
	}
	return FormatDatum(d)
}

func pyRepr(d Datum) string {
	if s, ok := d.(string); ok {
		return "'" + s + "'"
	}
	return PyString(d)
}

func listIndex(i, n int) (int, error) {
	j := i
	if j < 0 {
		j += n
	}
	if j < 0 || j >= n {
		return 0, fmt.Errorf("list index out of range: index %d of a list of length %d", i, n)
	}
	return j, nil
}

// sliceBounds resolves Python's slice for a sequence of length n; start and stop may be None.
func sliceBounds(start, stop Datum, step, n int) (lo, hi int, err error) {
	if step == 0 {
		return 0, 0, errors.New("slice step cannot be zero")
	}
	clampTo := func(d Datum, deflt int) int {
		if d == nil {
			return deflt
		}
		i := int(d.(int64))
		if i < 0 {
			i += n
		}
		if step > 0 {
			return min(max(i, 0), n)
		}
		return min(max(i, -1), n-1)
	}
	if step > 0 {
		return clampTo(start, 0), clampTo(stop, n), nil
	}
	return clampTo(start, n-1), clampTo(stop, -1), nil
}

func sliceIndices(c *EvalCall, n int) ([]int, error) {
	step := 1
	if c.Args[3] != nil {
		step = c.Int(3)
	}
	lo, hi, err := sliceBounds(c.Args[1], c.Args[2], step, n)
	if err != nil {
		return nil, err
	}
	var idx []int
	for i := lo; step > 0 && i < hi || step < 0 && i > hi; i += step {
		idx = append(idx, i)
	}
	return idx, nil
}

// initContainers registers the ops on lists, tuples and dicts.
func initContainers() {
	l := func(c *EvalCall, i int) List { return c.Args[i].(List) }
	host("list_len", "l", "len(l).", is(Int), func(c *EvalCall) (Datum, error) { return int64(l(c, 0).Len()), nil })
	withGrad(mayFail(host("list_get", "l i", "l[i]; i may be negative.",
		func(c *Call) ([]Type, error) {
			if l := c.Vals; len(l) == 2 && l[0].Def != nil && l[0].Def.Op == OpList {
				if i, ok := c.Const(1); ok {
					if k, err := listIndex(int(i.(int64)), len(l[0].Def.Args)); err == nil {
						return t1(l[0].Def.Args[k].Type)
					}
				}
			}
			return t1(elem(c.Args[0], 0))
		},
		func(c *EvalCall) (Datum, error) {
			i, err := listIndex(c.Int(1), l(c, 0).Len())
			if err != nil {
				return nil, err
			}
			return l(c, 0).At(i), nil
		})), func(b *Builder, n *Node, ct []*Value) []*Value {
		return []*Value{b.Op("list_onehot", b.Op("list_len", n.Args[0]), n.Args[1], ct[0]), nil}
	})
	host("list_onehot", "n i v", "A list of n Nones but for v at index i.", func(c *Call) ([]Type, error) { return t1(ListOf(OptionalOf(c.Args[2]))) },
		func(c *EvalCall) (Datum, error) {
			elems := make([]Datum, max(c.Int(0), 0))
			i, err := listIndex(c.Int(1), len(elems))
			if err != nil {
				return nil, err
			}
			elems[i] = c.Args[2]
			return NewList(elems...), nil
		})
	withGrad(host("list_append", "l x", "l + [x].",
		func(c *Call) ([]Type, error) { return t1(joinElem(c.Args[0], c.Args[1])) },
		func(c *EvalCall) (Datum, error) { return l(c, 0).Append(c.Args[1]), nil }),
		func(b *Builder, n *Node, ct []*Value) []*Value {
			k := b.Op("list_len", n.Args[0])
			return []*Value{b.Op("list_slice", ct[0], b.Int(0), k, b.Int(1)), b.Op("list_get", ct[0], k)}
		})
	withGrad(host("list_concat", "a b", "a + b on lists.",
		func(c *Call) ([]Type, error) { return t1(joinLists(c.Args[0], c.Args[1])) },
		func(c *EvalCall) (Datum, error) {
			return NewList(append(append([]Datum{}, l(c, 0).Elems()...), l(c, 1).Elems()...)...), nil
		}),
		func(b *Builder, n *Node, ct []*Value) []*Value {
			k := b.Op("list_len", n.Args[0])
			return []*Value{b.Op("list_slice", ct[0], b.Int(0), k, b.Int(1)), b.Op("list_slice", ct[0], k, b.None(), b.Int(1))}
		})
	withGrad(mayFail(host("list_slice", "l start stop step", "l[start:stop:step]; each may be None.", sameAs(0),
		func(c *EvalCall) (Datum, error) {
			idx, err := sliceIndices(c, l(c, 0).Len())
			if err != nil {
				return nil, err
			}
			out := make([]Datum, len(idx))
			for k, i := range idx {
				out[k] = l(c, 0).At(i)
			}
			return NewList(out...), nil
		})), func(b *Builder, n *Node, ct []*Value) []*Value {
		return []*Value{b.Op("list_unslice", ct[0], n.Args[1], n.Args[2], n.Args[3], b.Op("list_len", n.Args[0])), nil, nil, nil}
	})
	host("list_unslice", "g start stop step n", "A list of n Nones but for g's elements at the places of the slice.",
		func(c *Call) ([]Type, error) { return t1(ListOf(OptionalOf(elem(c.Args[0], 0)))) },
		func(c *EvalCall) (Datum, error) {
			out := make([]Datum, c.Int(4))
			idx, err := sliceIndices(c, len(out))
			if err != nil {
				return nil, err
			}
			for k, i := range idx {
				out[i] = l(c, 0).At(k)
			}
			return NewList(out...), nil
		})
	withGrad(mayFail(host("list_set", "l i x", "l with element i replaced by x.",
		func(c *Call) ([]Type, error) { return t1(joinElem(c.Args[0], c.Args[2])) },
		func(c *EvalCall) (Datum, error) {
			i, err := listIndex(c.Int(1), l(c, 0).Len())
			if err != nil {
				return nil, err
			}
			return l(c, 0).With(i, c.Args[2]), nil
		})), func(b *Builder, n *Node, ct []*Value) []*Value {
		return []*Value{b.Op("list_set", ct[0], n.Args[1], b.None()), nil, b.Op("list_get", ct[0], n.Args[1])}
	})
	withGrad(host("list_insert", "l i x", "l with x inserted before index i.",
		func(c *Call) ([]Type, error) { return t1(joinElem(c.Args[0], c.Args[2])) },
		func(c *EvalCall) (Datum, error) {
			n := l(c, 0).Len()
			i := insertPlace(c.Int(1), n)
			out := append([]Datum{}, l(c, 0).Elems()[:i]...)
			out = append(append(out, c.Args[2]), l(c, 0).Elems()[i:]...)
			return NewList(out...), nil
		}), func(b *Builder, n *Node, ct []*Value) []*Value {
		i := b.Op("list_insert_place", n.Args[0], n.Args[1])
		return []*Value{b.Op("list_remove", ct[0], i), nil, b.Op("list_get", ct[0], i)}
	})
	host("list_insert_place", "l i", "The index at which an element inserted at i ends up.", is(Int),
		func(c *EvalCall) (Datum, error) { return int64(insertPlace(c.Int(1), l(c, 0).Len())), nil })
	withGrad(mayFail(host("list_remove", "l i", "l without element i.", sameAs(0),
		func(c *EvalCall) (Datum, error) {
			i, err := listIndex(c.Int(1), l(c, 0).Len())
			if err != nil {
				return nil, err
			}
			out := append([]Datum{}, l(c, 0).Elems()[:i]...)
			return NewList(append(out, l(c, 0).Elems()[i+1:]...)...), nil
		})), func(b *Builder, n *Node, ct []*Value) []*Value {
		i := b.Op("list_index_place", n.Args[0], n.Args[1])
		return []*Value{b.Op("list_insert", ct[0], i, b.None()), nil}
	})
	host("list_index_place", "l i", "The index i of l, counted from the start.", is(Int),
		func(c *EvalCall) (Datum, error) {
			i, err := listIndex(c.Int(1), l(c, 0).Len())
			return int64(i), err
		})
	withGrad(host("list_reverse", "l", "l backwards.", sameAs(0), func(c *EvalCall) (Datum, error) {
		n := l(c, 0).Len()
		out := make([]Datum, n)
		for i := range out {
			out[i] = l(c, 0).At(n - 1 - i)
		}
		return NewList(out...), nil
	}), func(b *Builder, n *Node, ct []*Value) []*Value { return []*Value{b.Op("list_reverse", ct[0])} })
	host("list_sort", "l reverse", "A list of numbers or strings, sorted.", sameAs(0), func(c *EvalCall) (Datum, error) {
		out := append([]Datum{}, l(c, 0).Elems()...)
		var err error
		sort.SliceStable(out, func(i, j int) bool {
			r, e := compare(out[i], out[j])
			if e != nil {
				err = e
			}
			if c.Bool(1) {
				return r == 1
			}
			return r == -1
		})
		return NewList(out...), err
	})
	mayFail(host("list_index", "l x", "The index of the first element equal to x.", is(Int), func(c *EvalCall) (Datum, error) {
		for i, e := range l(c, 0).Elems() {
			if DatumEqual(e, c.Args[1]) {
				return int64(i), nil
			}
		}
		return nil, &RaiseError{"ValueError", PyString(c.Args[1]) + " is not in list"}
	}))
	host("list_count", "l x", "How many elements equal x.", is(Int), func(c *EvalCall) (Datum, error) {
		n := int64(0)
		for _, e := range l(c, 0).Elems() {
			n += b2i(DatumEqual(e, c.Args[1]))
		}
		return n, nil
	})
	host("list_contains", "l x", "x in l, for a list or a tuple.", is(BoolT), func(c *EvalCall) (Datum, error) {
		var elems []Datum
		switch s := c.Args[0].(type) {
		case List:
			elems = s.Elems()
		case Tuple:
			elems = s
		}
		for _, e := range elems {
			if DatumEqual(e, c.Args[1]) {
				return true, nil
			}
		}
		return false, nil
	})
	host("list_of_tuple", "t", "The elements of a tuple as a list.",
		func(c *Call) ([]Type, error) { return t1(ListOf(joinTypes(c.Args[0].Elems))) },
		func(c *EvalCall) (Datum, error) { return NewList(append([]Datum{}, c.Args[0].(Tuple)...)...), nil })
	mayFail(host("check_len", "l n", "l, which must have n elements (unpacking).", sameAs(0), func(c *EvalCall) (Datum, error) {
		if n := l(c, 0).Len(); n != c.Int(1) {
			return nil, fmt.Errorf("expected %d elements in the list to unpack, got %d", c.Int(1), n)
		}
		return c.Args[0], nil
	}))
	withGrad(LookupOp("check_len"), func(b *Builder, n *Node, ct []*Value) []*Value { return []*Value{ct[0], nil} })
	withGrad(host("tuple_get", "t i", "Element i of a tuple; i is a constant.",
		func(c *Call) ([]Type, error) {
			i, ok := c.Const(1)
			if t := c.Args[0]; ok && t.Kind == KTuple {
				k, err := listIndex(int(i.(int64)), len(t.Elems))
				if err != nil {
					return nil, fmt.Errorf("tuple index %d is out of range for a tuple of %d elements", i, len(t.Elems))
				}
				return t1(t.Elems[k])
			}
			return t1(Any)
		}, func(c *EvalCall) (Datum, error) {
			t, ok := c.Args[0].(Tuple)
			if !ok {
				return nil, nil // the zero cotangent of a tuple
			}
			k, err := listIndex(c.Int(1), len(t))
			if err != nil {
				return nil, err
			}
			return t[k], nil
		}), func(b *Builder, n *Node, ct []*Value) []*Value {
		parts := make([]*Value, len(n.Args[0].Type.Elems))
		k := int(b.NeedConst(n.Args[1]).(int64))
		if k < 0 {
			k += len(parts)
		}
		for i := range parts {
			if i == k {
				parts[i] = ct[0]
			} else {
				parts[i] = b.None()
			}
		}
		return []*Value{b.Tuple(parts...), nil}
	})
	withGrad(host("dict", "pairs...", "The dict of its operands: key, value, key, value, ….",
		func(c *Call) ([]Type, error) {
			var ks, vs []Type
			for i := 0; i+1 < len(c.Args); i += 2 {
				ks, vs = append(ks, c.Args[i]), append(vs, c.Args[i+1])
			}
			return t1(DictOf(joinTypes(ks), joinTypes(vs)))
		}, func(c *EvalCall) (Datum, error) {
			var ks, vs []Datum
			for i := 0; i+1 < len(c.Args); i += 2 {
				ks, vs = append(ks, c.Args[i]), append(vs, c.Args[i+1])
			}
			return NewDict(ks, vs), nil
		}), func(b *Builder, n *Node, ct []*Value) []*Value {
		out := make([]*Value, len(n.Args))
		for i := 0; i+1 < len(out); i += 2 {
			out[i+1] = b.Op("dict_get_or", ct[0], n.Args[i], b.None())
		}
		return out
	})
	dict := func(c *EvalCall) *Dict {
		if d, ok := c.Args[0].(*Dict); ok {
			return d
		}
		return NewDict(nil, nil) // None: the zero cotangent of a dict
	}
	withGrad(mayFail(host("dict_get", "d k", "d[k].", func(c *Call) ([]Type, error) { return t1(elem(c.Args[0], 1)) },
		func(c *EvalCall) (Datum, error) {
			v, ok := dict(c).Get(c.Args[1])
			if !ok {
				return nil, &RaiseError{"KeyError", PyString(c.Args[1])}
			}
			return v, nil
		})), func(b *Builder, n *Node, ct []*Value) []*Value { return []*Value{b.Op("dict", n.Args[1], ct[0]), nil} })
	withGrad(host("dict_get_or", "d k default", "d.get(k, default).",
		func(c *Call) ([]Type, error) { return t1(elem(c.Args[0], 1).Join(c.Args[2])) },
		func(c *EvalCall) (Datum, error) {
			if v, ok := dict(c).Get(c.Args[1]); ok {
				return v, nil
			}
			return c.Args[2], nil
		}), func(b *Builder, n *Node, ct []*Value) []*Value {
		has := b.Op("dict_contains", n.Args[0], n.Args[1])
		return []*Value{
			b.Op("py_select", has, b.Op("dict", n.Args[1], ct[0]), b.None()), nil,
			b.Op("py_select", has, b.None(), ct[0]),
		}
	})
	withGrad(host("dict_set", "d k v", "d with d[k] = v.",
		func(c *Call) ([]Type, error) {
			return t1(DictOf(c.Args[1].Join(elem(c.Args[0], 0)), c.Args[2].Join(elem(c.Args[0], 1))))
		},
		func(c *EvalCall) (Datum, error) { return dict(c).With(c.Args[1], c.Args[2]), nil }),
		func(b *Builder, n *Node, ct []*Value) []*Value {
			return []*Value{b.Op("dict_without", ct[0], n.Args[1]), nil, b.Op("dict_get_or", ct[0], n.Args[1], b.None())}
		})
	withGrad(host("dict_without", "d k", "d without the key k, if it has it.", sameAs(0),
		func(c *EvalCall) (Datum, error) { return dict(c).Without(c.Args[1]), nil }),
		func(b *Builder, n *Node, ct []*Value) []*Value { return []*Value{ct[0], nil} })
	host("dict_contains", "d k", "k in d.", is(BoolT), func(c *EvalCall) (Datum, error) {
		_, ok := dict(c).Get(c.Args[1])
		return ok, nil
	})
	host("dict_len", "d", "len(d).", is(Int), func(c *EvalCall) (Datum, error) { return int64(len(dict(c).Keys)), nil })
	host("dict_keys", "d", "The keys of d as a list, in order of insertion.", func(c *Call) ([]Type, error) { return t1(ListOf(elem(c.Args[0], 0))) },
		func(c *EvalCall) (Datum, error) { return NewList(append([]Datum{}, dict(c).Keys...)...), nil })
	withGrad(host("dict_values", "d", "The values of d as a list, in order of insertion.", func(c *Call) ([]Type, error) { return t1(ListOf(elem(c.Args[0], 1))) },
		func(c *EvalCall) (Datum, error) { return NewList(append([]Datum{}, dict(c).Values...)...), nil }),
		func(b *Builder, n *Node, ct []*Value) []*Value {
			return []*Value{b.Op("dict_zip", b.Op("dict_keys", n.Args[0]), ct[0])}
		})
	withGrad(host("dict_zip", "keys values", "The dict of parallel lists.",
		func(c *Call) ([]Type, error) { return t1(DictOf(elem(c.Args[0], 0), elem(c.Args[1], 0))) },
		func(c *EvalCall) (Datum, error) {
			if l(c, 0).Len() != l(c, 1).Len() {
				return nil, errors.New("keys and values differ in number")
			}
			return NewDict(l(c, 0).Elems(), l(c, 1).Elems()), nil
		}), func(b *Builder, n *Node, ct []*Value) []*Value { return []*Value{nil, b.Op("dict_values", ct[0])} })
}

func insertPlace(i, n int) int {
	if i < 0 {
		i += n
	}
	return min(max(i, 0), n)
}

func joinElem(list, e Type) Type { return joinLists(list, ListOf(e)) }

// joinLists is the type of a list of elements of either; an empty list (of any) adds nothing.
func joinLists(a, b Type) Type {
	switch {
	case a.Kind != KList || b.Kind != KList:
		return Any
	case a.Elems[0].Kind == KAny:
		return b
	case b.Elems[0].Kind == KAny:
		return a
	}
	return ListOf(a.Elems[0].Join(b.Elems[0]))
}

// initEffects registers the ops whose order matters.
func initEffects() {
	ordered := func(op *Op) *Op { op.Effect = Ordered; return op }
	ordered(register(&Op{Name: "raise", Doc: "Fails with an exception kind and a message.", Params: []string{"kind", "msg"}, Class: Host, NoGrad: true, Infer: noTypes,
		Eval: func(c *EvalCall) ([]Datum, error) { return nil, &RaiseError{c.Args[0].(string), PyString(c.Args[1])} }}))
	ordered(register(&Op{Name: "assert", Doc: "Fails with a message unless cond is true.", Params: []string{"cond", "msg"}, Class: Host, NoGrad: true, Infer: noTypes,
		Eval: func(c *EvalCall) ([]Datum, error) {
			if c.Bool(0) {
				return nil, nil
			}
			return nil, &RaiseError{"AssertionError", PyString(c.Args[1])}
		}}))
	ordered(register(&Op{Name: "print", Doc: "Writes its operands, separated by spaces, and a newline.", Params: []string{"args..."}, Class: Host, NoGrad: true, Infer: noTypes,
		Eval: func(c *EvalCall) ([]Datum, error) {
			parts := make([]string, len(c.Args))
			for i, a := range c.Args {
				parts[i] = PyString(a)
			}
			_, err := fmt.Fprintln(c.Env.out(), strings.Join(parts, " "))
			return nil, err
		}}))
	ordered(host("rng", "", "Draws the key of the next random op from the stream.", is(Int),
		func(c *EvalCall) (Datum, error) { return c.Env.RNG.Next(), nil }))
	ordered(register(&Op{Name: "manual_seed", Doc: "Restarts the random stream with a seed.", Params: []string{"seed"}, Class: Host, NoGrad: true, Infer: noTypes,
		Eval: func(c *EvalCall) ([]Datum, error) {
			c.Env.RNG = RNG{Seed: uint64(c.Int(0))}
			return nil, nil
		}}))
	// or_zeros and ct_add are how autograd handles cotangents that may be None or containers.
	host("or_zeros", "ct like", "ct, or zeros of the dtype and shape of like where ct is None.", sameAs(1), func(c *EvalCall) (Datum, error) {
		if c.Args[0] != nil {
			return c.Args[0], nil
		}
		return ZerosLike(c.Args[1])
	})
	withGrad(LookupOp("or_zeros"), func(b *Builder, n *Node, ct []*Value) []*Value { return []*Value{ct[0], nil} })
	withGrad(host("ct_add", "a b", "The sum of two cotangents of any structure; None is zero.",
		func(c *Call) ([]Type, error) { return t1(c.Args[0].Join(c.Args[1])) },
		func(c *EvalCall) (Datum, error) { return addCotangents(c.Args[0], c.Args[1]) }),
		func(b *Builder, n *Node, ct []*Value) []*Value { return []*Value{ct[0], ct[0]} })
}

// ZerosLike is the zero cotangent of a value: zeros for a floating-point tensor, containers of such, None for the rest.
func ZerosLike(d Datum) (Datum, error) {
	switch v := d.(type) {
	case *Array:
		if !v.DType.IsFloat() {
			return nil, nil
		}
		z := NewArray(v.DType)
		return z.View(append([]int{}, v.Shape...), make([]int, len(v.Shape)), 0), nil
	case List:
		out := make([]Datum, v.Len())
		for i, e := range v.Elems() {
			out[i], _ = ZerosLike(e)
		}
		return NewList(out...), nil
	case Tuple:
		out := make(Tuple, len(v))
		for i, e := range v {
			out[i], _ = ZerosLike(e)
		}
		return out, nil
	case *Dict:
		out := make([]Datum, len(v.Values))
		for i, e := range v.Values {
			out[i], _ = ZerosLike(e)
		}
		return NewDict(v.Keys, out), nil
	}
	return nil, nil
}

func addCotangents(a, b Datum) (Datum, error) {
	if a == nil {
		return b, nil
	}
	if b == nil {
		return a, nil
	}
	switch x := a.(type) {
	case *Array:
		y, ok := b.(*Array)
		if !ok {
			return nil, fmt.Errorf("cotangents %s and %s differ in structure", TypeOf(a), TypeOf(b))
		}
		p, err := ElementwiseProg(mustOp("add"), dtype.Invalid, x.DType, y.DType)
		if err != nil {
			return nil, err
		}
		if !sameShape(x.Shape, y.Shape) {
			return nil, fmt.Errorf("cotangents of shapes %v and %v", x.Shape, y.Shape)
		}
		outs, err := RunProg(p, x.Shape, []*Array{x, y})
		if err != nil {
			return nil, err
		}
		return outs[0], nil
	case List:
		y, ok := b.(List)
		if !ok || x.Len() != y.Len() {
			return nil, fmt.Errorf("cotangents %s and %s differ in structure", TypeOf(a), TypeOf(b))
		}
		out, err := addAll(x.Elems(), y.Elems())
		return NewList(out...), err
	case Tuple:
		y, ok := b.(Tuple)
		if !ok || len(x) != len(y) {
			return nil, fmt.Errorf("cotangents %s and %s differ in structure", TypeOf(a), TypeOf(b))
		}
		out, err := addAll(x, y)
		return Tuple(out), err
	case *Dict:
		y, ok := b.(*Dict)
		if !ok {
			return nil, fmt.Errorf("cotangents %s and %s differ in structure", TypeOf(a), TypeOf(b))
		}
		out := NewDict(x.Keys, x.Values)
		for i, k := range y.Keys {
			old, _ := out.Get(k)
			s, err := addCotangents(old, y.Values[i])
			if err != nil {
				return nil, err
			}
			out.put(k, s)
		}
		return out, nil
	}
	return nil, nil
}

func addAll(a, b []Datum) ([]Datum, error) {
	out := make([]Datum, len(a))
	for i := range a {
		var err error
		if out[i], err = addCotangents(a[i], b[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
