package aten

import (
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// rank is the number of dimensions of x.
func rank(b *ir.Builder, x *ir.Value) int { return b.NeedRank(x) }

// dt is the dtype of x.
func dt(b *ir.Builder, x *ir.Value) dtype.DType { return b.NeedDType(x) }

// shapeOf is the shape of x, every size known.
func shapeOf(b *ir.Builder, x *ir.Value) []int { return b.NeedShape(x) }

// numel is the number of elements of x.
func numel(b *ir.Builder, x *ir.Value) int { return product(b.NeedShape(x)) }

func product(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

// isNone reports whether v is a constant None.
func isNone(v *ir.Value) bool {
	if v.Type.Kind == ir.KNone {
		return true
	}
	d, ok := v.Const()
	return ok && d == nil
}

// isNumber reports whether v is a number that is not a tensor.
func isNumber(v *ir.Value) bool {
	k := v.Type.Kind
	return k == ir.KInt || k == ir.KFloat || k == ir.KBool
}

// constInt is the int that v is; it stops with ErrNeedsTypes where v is not a literal.
func constInt(b *ir.Builder, v *ir.Value) int {
	switch d := b.NeedConst(v).(type) {
	case int64:
		return int(d)
	case bool:
		if d {
			return 1
		}
		return 0
	default:
		b.Failf("expected an int, got %s", ir.TypeOf(d))
		return 0
	}
}

// constFloat is the number that v is.
func constFloat(b *ir.Builder, v *ir.Value) float64 {
	switch d := b.NeedConst(v).(type) {
	case float64:
		return d
	case int64:
		return float64(d)
	case bool:
		if d {
			return 1
		}
		return 0
	default:
		b.Failf("expected a number, got %s", ir.TypeOf(d))
		return 0
	}
}

// constBool is the bool that v is.
func constBool(b *ir.Builder, v *ir.Value) bool {
	switch d := b.NeedConst(v).(type) {
	case bool:
		return d
	case int64:
		return d != 0
	default:
		b.Failf("expected a bool, got %s", ir.TypeOf(d))
		return false
	}
}

// constStr is the string that v is.
func constStr(b *ir.Builder, v *ir.Value) string {
	d := b.NeedConst(v)
	s, ok := d.(string)
	if !ok {
		b.Failf("expected a str, got %s", ir.TypeOf(d))
	}
	return s
}

// constDType is the dtype that v is.
func constDType(b *ir.Builder, v *ir.Value) dtype.DType {
	d := b.NeedConst(v)
	t, ok := d.(dtype.DType)
	if !ok {
		b.Failf("expected a dtype, got %s", ir.TypeOf(d))
	}
	return t
}

// optDType is the dtype that v is, or otherwise where v is None.
func optDType(b *ir.Builder, v *ir.Value, otherwise dtype.DType) dtype.DType {
	if isNone(v) {
		return otherwise
	}
	return constDType(b, v)
}

// constInts is the list of ints that v is; a single int is a list of one.
func constInts(b *ir.Builder, v *ir.Value) []int {
	switch d := b.NeedConst(v).(type) {
	case int64:
		return []int{int(d)}
	case ir.Tuple:
		return constIntElems(b, ir.NewList(d...))
	default:
		return constIntElems(b, d)
	}
}

func constIntElems(b *ir.Builder, d ir.Datum) []int {
	ints, err := ir.AsInts(d)
	if err != nil {
		b.Fail(err)
	}
	return ints
}

// optInts is constInts for an operand that may be None; ok says whether it is there.
func optInts(b *ir.Builder, v *ir.Value) (ints []int, ok bool) {
	if isNone(v) {
		return nil, false
	}
	return constInts(b, v), true
}

// optInt is constInt for an operand that may be None.
func optInt(b *ir.Builder, v *ir.Value, otherwise int) int {
	if isNone(v) {
		return otherwise
	}
	return constInt(b, v)
}

// wrapDim makes a possibly negative dim non-negative. A 0-d tensor has the dims 0 and -1, as in PyTorch.
func wrapDim(b *ir.Builder, d, rank int) int {
	n := max(rank, 1)
	if d < -n || d >= n {
		b.Failf("Dimension out of range (expected to be in range of [%d, %d], but got %d)", -n, n-1, d)
	}
	if d < 0 {
		d += n
	}
	return d
}

// wrapDims is wrapDim for a list without repetitions.
func wrapDims(b *ir.Builder, dims []int, rank int) []int {
	out := make([]int, len(dims))
	seen := map[int]bool{}
	for i, d := range dims {
		out[i] = wrapDim(b, d, rank)
		if seen[out[i]] {
			b.Failf("dim %d appears multiple times in the list of dims", out[i])
		}
		seen[out[i]] = true
	}
	return out
}

// operandOf describes v, a tensor or a number, for type promotion.
func operandOf(b *ir.Builder, v *ir.Value) dtype.Operand {
	switch v.Type.Kind {
	case ir.KInt:
		return dtype.Operand{DType: dtype.I64, Wrapped: true}
	case ir.KFloat:
		return dtype.Operand{DType: dtype.F64, Wrapped: true}
	case ir.KBool:
		return dtype.Operand{DType: dtype.Bool, Wrapped: true}
	case ir.KTensor:
		return dtype.Operand{DType: dt(b, v), ZeroDim: rank(b, v) == 0}
	case ir.KAny, ir.KOptional:
		b.Fail(ir.ErrNeedsTypes)
	}
	b.Failf("expected a tensor or a number, got %s", v.Type)
	return dtype.Operand{}
}

// promote is torch.result_type of tensors and numbers.
func promote(b *ir.Builder, vs ...*ir.Value) dtype.DType {
	ops := make([]dtype.Operand, len(vs))
	for i, v := range vs {
		ops[i] = operandOf(b, v)
	}
	return dtype.ResultType(ops...)
}

// floatOf is d where it is a floating-point dtype and f32, the default, otherwise.
func floatOf(d dtype.DType) dtype.DType {
	if d.IsFloat() {
		return d
	}
	return dtype.F32
}

// cast converts x to d; it gives x itself where that is its dtype.
func cast(b *ir.Builder, x *ir.Value, d dtype.DType) *ir.Value {
	if x.Type.DType == d {
		return x
	}
	return b.Op("convert", x, b.DType(d))
}

// tensorArg is v, a tensor or a number, as a tensor of dtype d; a number becomes a 0-d tensor.
func tensorArg(b *ir.Builder, v *ir.Value, d dtype.DType) *ir.Value {
	if v.Type.IsTensor() {
		dt(b, v)
		return cast(b, v, d)
	}
	operandOf(b, v) // rejects what is no number
	return b.Op("scalar_tensor", v, b.DType(d))
}

// broadcastShape is the shape that all of the shapes broadcast to.
func broadcastShape(b *ir.Builder, shapes ...[]int) []int {
	out := []int{}
	for _, s := range shapes {
		if len(s) > len(out) {
			out = append(ones(len(s)-len(out)), out...)
		}
		shift := len(out) - len(s)
		for i, n := range s {
			switch have := out[shift+i]; {
			case n == have || n == 1:
			case have == 1:
				out[shift+i] = n
			default:
				b.Failf("The size of tensor a (%d) must match the size of tensor b (%d) at non-singleton dimension %d", have, n, shift+i)
			}
		}
	}
	return out
}

func ones(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

func sameInts(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// broadcastTo repeats x to the given shape, by numpy's rule; x itself where it has that shape.
func broadcastTo(b *ir.Builder, x *ir.Value, shape []int) *ir.Value {
	have := shapeOf(b, x)
	if sameInts(have, shape) {
		return x
	}
	return b.Op("broadcast", x, b.Ints(shape...))
}

// broadcast brings tensors to one shape.
func broadcast(b *ir.Builder, xs ...*ir.Value) []*ir.Value {
	if sameUnknown(xs) {
		return xs
	}
	if out, ok := broadcastSingles(b, xs); ok {
		return out
	}
	shapes := make([][]int, len(xs))
	for i, x := range xs {
		shapes[i] = shapeOf(b, x)
	}
	shape := broadcastShape(b, shapes...)
	out := make([]*ir.Value, len(xs))
	for i, x := range xs {
		out[i] = broadcastTo(b, x, shape)
	}
	return out
}

// broadcastSingles handles one tensor with sizes that only the run will show, next to tensors of a single element.
func broadcastSingles(b *ir.Builder, xs []*ir.Value) (out []*ir.Value, ok bool) {
	var whole *ir.Value
	for _, x := range xs {
		if x.Type.Ranked && !isSingle(x) && x != whole {
			if whole != nil {
				return nil, false
			}
			whole = x
		}
	}
	if whole == nil || whole.Type.Static() || dt(b, whole) == dtype.Invalid {
		return nil, false
	}
	out = append(out, xs...)
	for i, x := range xs {
		if x == whole {
			continue
		}
		if rank(b, x) > rank(b, whole) {
			return nil, false
		}
		out[i] = b.Op("broadcast", x, b.Op("shape", whole))
	}
	return out, true
}

func isSingle(x *ir.Value) bool { return x.Type.NumElems() == 1 }

// sameUnknown reports whether all shapes are the same for certain although not all sizes are known: sizes with equal symbols.
func sameUnknown(xs []*ir.Value) bool {
	for _, x := range xs {
		if !x.Type.Ranked || len(x.Type.Dims) != len(xs[0].Type.Dims) {
			return false
		}
		for i, d := range x.Type.Dims {
			if d != xs[0].Type.Dims[i] || x != xs[0] && !d.Known() && d.Sym == "" {
				return false
			}
		}
	}
	return true
}

// operands brings tensors and numbers to dtype d and one shape.
func operands(b *ir.Builder, d dtype.DType, vs ...*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		out[i] = tensorArg(b, v, d)
	}
	return broadcast(b, out...)
}

// binary applies an elementwise primitive to tensors or numbers after promotion and broadcasting.
func binary(b *ir.Builder, op string, x, y *ir.Value) *ir.Value {
	xy := operands(b, promote(b, x, y), x, y)
	return b.Op(op, xy...)
}

// binaryFloat is binary for ops that work on floating-point numbers only: integers become f32 first.
func binaryFloat(b *ir.Builder, op string, x, y *ir.Value) *ir.Value {
	xy := operands(b, floatOf(promote(b, x, y)), x, y)
	return b.Op(op, xy...)
}

// unaryFloat applies an elementwise primitive that works on floating-point numbers only: integers become f32 first.
func unaryFloat(b *ir.Builder, op string, x *ir.Value) *ir.Value {
	return b.Op(op, cast(b, x, floatOf(dt(b, x))))
}

// sizeOf is the size of dimension d (non-negative) as an int value, constant where it is known.
func sizeOf(b *ir.Builder, x *ir.Value, d int) *ir.Value {
	if n := x.Type.Dims[d].N; n >= 0 {
		return b.Int(n)
	}
	return b.Op("size", x, b.Int(d))
}

// reduceDims are the dims that an operand of ints names, sorted; all of them where it is None or empty.
func reduceDims(b *ir.Builder, x, dims *ir.Value) []int {
	r := rank(b, x)
	var ds []int
	if !isNone(dims) {
		ds = wrapDims(b, constInts(b, dims), r)
	}
	if r == 0 {
		return []int{}
	}
	named := make([]bool, r)
	for _, d := range ds {
		named[d] = true
	}
	out := []int{}
	for d := range named {
		if named[d] || len(ds) == 0 {
			out = append(out, d)
		}
	}
	return out
}

// reduce applies a reduction over dims (sorted).
func reduce(b *ir.Builder, op string, x *ir.Value, dims []int, keepdim bool) *ir.Value {
	return b.Op(op, x, b.Ints(dims...), b.Bool(keepdim))
}

// allDims lists the dims of x.
func allDims(b *ir.Builder, x *ir.Value) []int { return seq(rank(b, x)) }

// seq is 0, 1, …, n-1.
func seq(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// fill is a tensor of one constant: an int, int64, float64 or bool.
func fill(b *ir.Builder, v any, d dtype.DType, shape []int) *ir.Value {
	if i, ok := v.(int); ok {
		v = int64(i)
	}
	return b.Op("full", b.Ints(shape...), b.Const(v), b.DType(d))
}

// number is a 0-d tensor of one constant.
func number(b *ir.Builder, v any, d dtype.DType) *ir.Value {
	if i, ok := v.(int); ok {
		v = int64(i)
	}
	return b.Op("scalar_tensor", b.Const(v), b.DType(d))
}

// fillLike is a tensor of one constant with the dtype and shape of x.
func fillLike(b *ir.Builder, v any, x *ir.Value) *ir.Value {
	if i, ok := v.(int); ok {
		v = int64(i)
	}
	return b.Op("full", shapeValue(b, x), b.Const(v), b.DType(dt(b, x)))
}

// shapeValue is the shape of x as a list of ints, constant where it is known.
func shapeValue(b *ir.Builder, x *ir.Value) *ir.Value {
	rank(b, x)
	if x.Type.Static() {
		return b.Ints(x.Type.Shape()...)
	}
	return b.Op("shape", x)
}

// zerosLike and onesLike have the dtype and shape of x.
func zerosLike(b *ir.Builder, x *ir.Value) *ir.Value { return fillLike(b, 0, x) }
func onesLike(b *ir.Builder, x *ir.Value) *ir.Value  { return fillLike(b, 1, x) }

// apply applies an elementwise primitive to a tensor and constants of its dtype and shape, or to tensors that already agree up to
// broadcasting: operands that are numbers (int, float64, bool) stand for tensors of the first tensor's dtype.
func apply(b *ir.Builder, op string, xs ...any) *ir.Value {
	var d dtype.DType
	for _, x := range xs {
		if v, ok := x.(*ir.Value); ok && (d == dtype.Invalid || d == dtype.Bool) {
			d = dt(b, v)
		}
	}
	vs := make([]*ir.Value, len(xs))
	for i, x := range xs {
		if v, ok := x.(*ir.Value); ok {
			vs[i] = v
		} else {
			vs[i] = number(b, x, d)
		}
	}
	return b.Op(op, broadcast(b, vs...)...)
}

// reshape gives x another shape with as many elements (no -1).
func reshape(b *ir.Builder, x *ir.Value, shape []int) *ir.Value {
	if x.Type.Static() && sameInts(x.Type.Shape(), shape) {
		return x
	}
	return b.Op("reshape", x, b.Ints(shape...))
}

// permute reorders the dims of x.
func permute(b *ir.Builder, x *ir.Value, dims []int) *ir.Value {
	if sameInts(dims, seq(len(dims))) {
		return x
	}
	return b.Op("permute", x, b.Ints(dims...))
}

// moveDim is x with dim from at position to.
func moveDim(b *ir.Builder, x *ir.Value, from, to int) *ir.Value {
	var dims []int
	for d := range rank(b, x) {
		if d != from {
			dims = append(dims, d)
		}
	}
	return permute(b, x, insert(dims, to, from))
}

// insert is s with v before index i.
func insert(s []int, i, v int) []int {
	out := append([]int{}, s[:i]...)
	return append(append(out, v), s[i:]...)
}

// remove is s without index i.
func remove(s []int, i int) []int { return append(append([]int{}, s[:i]...), s[i+1:]...) }

// replace is s with v at index i.
func replace(s []int, i, v int) []int {
	out := append([]int{}, s...)
	out[i] = v
	return out
}

// unsqueeze adds a dim of size 1 before dim d.
func unsqueeze(b *ir.Builder, x *ir.Value, d int) *ir.Value {
	rank(b, x)
	if x.Type.Static() {
		return reshape(b, x, insert(shapeOf(b, x), d, 1))
	}
	sizes := sizesOf(b, x)
	return b.Op("reshape", x, b.List(append(append(append([]*ir.Value{}, sizes[:d]...), b.Int(1)), sizes[d:]...)...))
}

// squeezeDim drops dim d, whose size is 1.
func squeezeDim(b *ir.Builder, x *ir.Value, d int) *ir.Value {
	rank(b, x)
	if x.Type.Static() {
		return reshape(b, x, remove(shapeOf(b, x), d))
	}
	sizes := sizesOf(b, x)
	return b.Op("reshape", x, b.List(append(append([]*ir.Value{}, sizes[:d]...), sizes[d+1:]...)...))
}

// sizesOf are all sizes of x as int values.
func sizesOf(b *ir.Builder, x *ir.Value) []*ir.Value {
	out := make([]*ir.Value, rank(b, x))
	for d := range out {
		out[d] = sizeOf(b, x, d)
	}
	return out
}

// sliceDim is the part start ≤ i < stop of dim d.
func sliceDim(b *ir.Builder, x *ir.Value, d, start, stop, step int) *ir.Value {
	if n := x.Type.Dims[d].N; start == 0 && stop == n && step == 1 {
		return x
	}
	return b.Op("slice", x, b.Int(d), b.Int(start), b.Int(stop), b.Int(step))
}

// concat joins tensors of one dtype along a dim.
func concat(b *ir.Builder, dim int, xs ...*ir.Value) *ir.Value {
	if len(xs) == 1 {
		return xs[0]
	}
	return b.Op("concat", b.List(xs...), b.Int(dim))
}

// counting is 0, 1, …, n-1.
func counting(b *ir.Builder, n int, d dtype.DType) *ir.Value {
	return b.Op("iota", b.Int(n), b.DType(d))
}

// maxPieces bounds what an expansion makes one by one: nodes, and elements of literals.
const maxPieces = 1 << 24

// needFew stops where a number that the user gave asks for more pieces than any program can mean.
func needFew(b *ir.Builder, n int, what string) {
	if n > maxPieces {
		b.Failf("%d %s are too many: the limit is %d", n, what, maxPieces)
	}
}

// listElems are the elements of a list or tuple of tensors.
func listElems(b *ir.Builder, v *ir.Value) []*ir.Value {
	if v.Def != nil && (v.Def.Op == ir.OpList || v.Def.Op == ir.OpTuple) {
		return v.Def.Args
	}
	d, ok := v.Const()
	if !ok {
		b.Fail(ir.ErrNeedsTypes)
	}
	var elems []ir.Datum
	switch d := d.(type) {
	case ir.List:
		elems = d.Elems()
	case ir.Tuple:
		elems = d
	default:
		b.Failf("expected a list, got %s", ir.TypeOf(d))
	}
	out := make([]*ir.Value, len(elems))
	for i, e := range elems {
		out[i] = b.Const(e)
	}
	return out
}

// call expands another function, by its full name, with defaults for the parameters that args does not reach.
func call(b *ir.Builder, name string, args ...*ir.Value) *ir.Value {
	return callAll(b, name, args...)[0]
}

// callAll is call for a function with several results.
func callAll(b *ir.Builder, name string, args ...*ir.Value) []*ir.Value {
	f := byName[name]
	if f == nil {
		panic("BUG: no aten function " + name)
	}
	if len(args) > len(f.Params) {
		panic("BUG: too many operands for aten function " + name)
	}
	for _, p := range f.Params[len(args):] {
		if !p.HasDefault && !p.Optional {
			panic("BUG: aten function " + name + " called without " + p.Name)
		}
		args = append(args, b.Const(p.Default))
	}
	return f.Expand(b, args)
}

// later leaves a call generic: its operands have sizes that only the run will show.
func later(b *ir.Builder, name string, results []ir.Type, args ...*ir.Value) []*ir.Value {
	if byName[name] == nil {
		panic("BUG: no aten function " + name)
	}
	return b.Aten(name, results, args...)
}

// needFloat stops with torch's message where x has no floating-point dtype.
func needFloat(b *ir.Builder, fn string, x *ir.Value) dtype.DType {
	d := dt(b, x)
	if !d.IsFloat() {
		b.Failf("%s(): input dtype should be either floating point or complex. Got %s instead", fn, typeName(d))
	}
	return d
}

// typeName is the name that torch's messages use for a dtype: Float, Long, ….
func typeName(d dtype.DType) string {
	switch d {
	case dtype.Bool:
		return "Bool"
	case dtype.U8:
		return "Byte"
	case dtype.I8:
		return "Char"
	case dtype.I16:
		return "Short"
	case dtype.I32:
		return "Int"
	case dtype.I64:
		return "Long"
	case dtype.F16:
		return "Half"
	case dtype.BF16:
		return "BFloat16"
	case dtype.F32:
		return "Float"
	case dtype.F64:
		return "Double"
	}
	return strings.TrimPrefix(d.Torch(), "torch.")
}

// one wraps the single result of an expansion.
func one(v *ir.Value) []*ir.Value { return []*ir.Value{v} }
