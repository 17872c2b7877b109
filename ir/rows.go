package ir

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Helpers shared by the rows of the op table: reading operand types and constants in type rules, sizes in gradient rules, and
// walking strided memory in reference evaluations.

func (c *Call) param(i int) string {
	if i < len(c.Op.Params) {
		return c.Op.Params[i]
	}
	return fmt.Sprintf("operand %d", i)
}

// need checks the number of operands.
func (c *Call) need(n int) error {
	if len(c.Args) != n {
		return c.Errorf("expected %d operands %v, got %d", n, c.Op.Params, len(c.Args))
	}
	return nil
}

// tensor is the type of operand i, which must be a tensor; an operand of unknown kind counts as tensor<?>.
func (c *Call) tensor(i int) (Type, error) {
	if i >= len(c.Args) {
		return Type{}, c.Errorf("operand %s is missing: expected %d operands", c.param(i), len(c.Op.Params))
	}
	switch t := c.Args[i]; t.Kind {
	case KTensor:
		return t, nil
	case KAny:
		return AnyTensor, nil
	default:
		return Type{}, c.Errorf("expected a tensor for %s, got %s", c.param(i), t)
	}
}

// scalarArg is the constant that operand i is; known is false where it is not constant. The operand must be of one of the kinds.
func (c *Call) scalarArg(i int, kinds ...Kind) (d Datum, known bool, err error) {
	if i >= len(c.Args) {
		return nil, false, c.Errorf("operand %s is missing: expected %d operands", c.param(i), len(c.Op.Params))
	}
	k := c.Args[i].Kind
	for _, want := range kinds {
		if k == want || k == KAny {
			if d, ok := c.Const(i); ok && k != KAny {
				return d, true, nil
			}
			return nil, false, nil
		}
	}
	return nil, false, c.Errorf("expected %s for %s, got %s", kindList(kinds), c.param(i), c.Args[i])
}

func kindList(kinds []Kind) string {
	s := ""
	for i, k := range kinds {
		if i > 0 {
			s += " or "
		}
		s += k.String()
	}
	return s
}

func (c *Call) intArg(i int) (n int, known bool, err error) {
	d, known, err := c.scalarArg(i, KInt)
	if !known || err != nil {
		return 0, false, err
	}
	return int(d.(int64)), true, nil
}

func (c *Call) boolArg(i int) (v, known bool, err error) {
	d, known, err := c.scalarArg(i, KBool)
	if !known || err != nil {
		return false, false, err
	}
	return d.(bool), true, nil
}

func (c *Call) dtypeArg(i int) (dtype.DType, error) {
	d, known, err := c.scalarArg(i, KDType)
	if !known || err != nil {
		return dtype.Invalid, err
	}
	return d.(dtype.DType), nil
}

// dimArg is operand i as a dimension of a tensor of type t.
func (c *Call) dimArg(i int, t Type) (d int, known bool, err error) {
	d, known, err = c.intArg(i)
	if known && t.Ranked {
		err = c.checkDim(d, t)
	}
	return d, known, err
}

func (c *Call) checkDim(d int, t Type) error {
	if d < 0 || d >= len(t.Dims) {
		return c.Errorf("dimension %d is out of range for a tensor of shape %s, expected 0 to %d", d, dimsString(t.Dims), len(t.Dims)-1)
	}
	return nil
}

// dimsArg is operand i as distinct dimensions of a tensor of type t.
func (c *Call) dimsArg(i int, t Type) (dims []int, known bool, err error) {
	list, known, err := c.listArg(i)
	if !known || err != nil {
		return nil, false, err
	}
	seen := map[int]bool{}
	for _, d := range list {
		if d.N == -1 {
			return nil, false, nil
		}
		if t.Ranked {
			if err := c.checkDim(d.N, t); err != nil {
				return nil, false, err
			}
		}
		if seen[d.N] {
			return nil, false, c.Errorf("dimension %d appears twice in %s", d.N, c.param(i))
		}
		seen[d.N] = true
		dims = append(dims, d.N)
	}
	return dims, true, nil
}

// listArg is operand i as a list of non-negative ints of known length, of which some may be unknown. It sees through constants,
// list nodes, shape(x) and size(x, d).
func (c *Call) listArg(i int) (elems []Dim, known bool, err error) {
	if i >= len(c.Args) {
		return nil, false, c.Errorf("operand %s is missing: expected %d operands", c.param(i), len(c.Op.Params))
	}
	t := c.Args[i]
	if t.Kind != KAny && (t.Kind != KList || t.Elems[0].Kind != KInt && t.Elems[0].Kind != KAny) {
		return nil, false, c.Errorf("expected a list of ints for %s, got %s", c.param(i), t)
	}
	if i >= len(c.Vals) {
		return nil, false, nil
	}
	return c.listValue(c.Vals[i], c.param(i))
}

func (c *Call) listValue(v *Value, param string) (elems []Dim, known bool, err error) {
	if d, ok := v.Const(); ok {
		ints, err := AsInts(d)
		if err != nil {
			return nil, false, c.Errorf("%s: %v", param, err)
		}
		elems = make([]Dim, len(ints))
		for k, n := range ints {
			if n < 0 {
				return nil, false, c.Errorf("%s %v: expected non-negative sizes, got %d", param, ints, n)
			}
			elems[k] = Dim{N: n}
		}
		return elems, true, nil
	}
	switch {
	case v.Def == nil:
		return nil, false, nil
	case v.Def.Op == OpList:
		elems = make([]Dim, len(v.Def.Args))
		for k, a := range v.Def.Args {
			elems[k] = sizeValue(a)
			if elems[k].N < -1 {
				return nil, false, c.Errorf("%s: expected non-negative sizes, got %d", param, elems[k].N)
			}
		}
		return elems, true, nil
	case v.Def.Op.Name == "shape" && v.Def.Args[0].Type.Ranked:
		return v.Def.Args[0].Type.Dims, true, nil
	}
	return nil, false, nil
}

// sizeValue is what is known of an int used as a size.
func sizeValue(v *Value) Dim {
	if d, ok := v.Const(); ok {
		if n, ok := d.(int64); ok {
			if n == -1 {
				n = -2 // -1 says unknown
			}
			return Dim{N: int(n)}
		}
		return Unknown
	}
	if v.Def == nil || v.Def.Op.Name != "size" || len(v.Def.Args) != 2 {
		return Unknown
	}
	t := v.Def.Args[0].Type
	if d, ok := v.Def.Args[1].Const(); ok && t.Ranked {
		if n, ok := d.(int64); ok && n >= 0 && int(n) < len(t.Dims) {
			return t.Dims[n]
		}
	}
	return Unknown
}

// intsArg is operand i as a constant list of ints.
func (c *Call) intsArg(i int) (v []int, known bool, err error) {
	list, known, err := c.listArg(i)
	if !known || err != nil {
		return nil, false, err
	}
	for _, d := range list {
		if !d.Known() {
			return nil, false, nil
		}
		v = append(v, d.N)
	}
	return v, true, nil
}

func dimsString(dims []Dim) string {
	s := "["
	for i, d := range dims {
		if i > 0 {
			s += ", "
		}
		s += d.String()
	}
	return s + "]"
}

// shapeString shows the sizes of a tensor type in messages.
func shapeString(t Type) string {
	if !t.Ranked {
		return "[*]"
	}
	return dimsString(t.Dims)
}

// dimsDiffer reports whether two sizes are known to be different.
func dimsDiffer(a, b Dim) bool { return a.Known() && b.Known() && a.N != b.N }

// meetDim is what is known of a size of which both a and b hold.
func meetDim(a, b Dim) Dim {
	if a.Known() || a.Sym != "" && !b.Known() {
		return a
	}
	return b
}

// sameDType checks that tensors that must agree in dtype do, and gives it.
func (c *Call) sameDType(ts ...Type) (dtype.DType, error) {
	d := dtype.Invalid
	for _, t := range ts {
		if t.DType == dtype.Invalid {
			continue
		}
		if d != dtype.Invalid && t.DType != d {
			return d, c.Errorf("expected tensors of the same dtype, got %s and %s", d, t.DType)
		}
		d = t.DType
	}
	return d, nil
}

// withDims is t with another shape.
func (t Type) withDims(dims []Dim) Type {
	return Type{Kind: KTensor, DType: t.DType, Ranked: true, Dims: dims}
}

// unranked is t of unknown shape.
func (t Type) unranked() Type { return Type{Kind: KTensor, DType: t.DType} }

// withDType is t with another element type.
func (t Type) withDType(d dtype.DType) Type { t.DType = d; return t }

// unknownDims are n sizes of which nothing is known.
func unknownDims(n int) []Dim {
	dims := make([]Dim, n)
	for i := range dims {
		dims[i] = Unknown
	}
	return dims
}

// checked wraps a reference evaluation: the type rule is applied to the actual operands first, so that eval sees operands that the
// op accepts, and gets the exact types of the results.
func checked(eval func(c *EvalCall, out []Type) ([]Datum, error)) func(c *EvalCall) ([]Datum, error) {
	return func(c *EvalCall) ([]Datum, error) {
		types, err := actualTypes(c)
		if err != nil {
			return nil, err
		}
		return eval(c, types)
	}
}

func actualTypes(c *EvalCall) ([]Type, error) {
	call := &Call{Op: c.Node.Op, Attrs: c.Node.Attrs, Args: make([]Type, len(c.Args)), Vals: make([]*Value, len(c.Args))}
	for i, a := range c.Args {
		call.Args[i] = TypeOf(a)
		call.Vals[i] = &Value{Type: call.Args[i]}
		if _, isArray := a.(*Array); !isArray {
			call.Vals[i].Def = &Node{Op: OpConst, Attrs: Attrs{Value: a}}
		}
	}
	return call.Op.Infer(call)
}

// tensorOf allocates the array of a static type.
func tensorOf(t Type) (*Array, error) { return TryNewArray(t.DType, t.Shape()) }

// ShapeOf is the shape of v as a list of ints: a constant where it is known.
func (b *Builder) ShapeOf(v *Value) *Value {
	t := v.Type
	if !t.Ranked {
		return b.Op("shape", v)
	}
	for _, d := range t.Dims {
		if !d.Known() {
			return b.Op("shape", v)
		}
	}
	return b.Ints(t.Shape()...)
}

// SizeOf is one size of v, a constant where it is known.
func (b *Builder) SizeOf(v *Value, dim int) *Value {
	if t := v.Type; t.Ranked && t.Dims[dim].Known() {
		return b.Int(t.Dims[dim].N)
	}
	return b.Op("size", v, b.Int(dim))
}

// sizesOf are some sizes of v as a list; a dim of -1 stands for the size 1.
func (b *Builder) sizesOf(v *Value, dims ...int) *Value {
	sizes := make([]*Value, len(dims))
	consts := make([]int, len(dims))
	static := true
	for i, d := range dims {
		if d < 0 {
			consts[i] = 1
			continue
		}
		if k := v.Type.Dims[d]; k.Known() {
			consts[i] = k.N
		} else {
			static = false
		}
	}
	if static {
		return b.Ints(consts...)
	}
	for i, d := range dims {
		if d < 0 {
			sizes[i] = b.Int(1)
		} else {
			sizes[i] = b.SizeOf(v, d)
		}
	}
	return b.List(sizes...)
}

// elem is one element of a list value.
func (b *Builder) elem(list *Value, i int) *Value {
	if list.Def != nil && list.Def.Op == OpList {
		return list.Def.Args[i]
	}
	if d, ok := list.Const(); ok {
		return b.Const(d.(List).At(i))
	}
	return b.Op("list_get", list, b.Int(i))
}

func (b *Builder) addInt(x, y *Value) *Value {
	if m, n, ok := constInts(x, y); ok {
		return b.Int(m + n)
	}
	return b.Op("py_add", x, y)
}

func (b *Builder) mulInt(x, y *Value) *Value {
	if m, n, ok := constInts(x, y); ok {
		return b.Int(m * n)
	}
	return b.Op("py_mul", x, y)
}

func (b *Builder) minInt(x, y *Value) *Value {
	if m, n, ok := constInts(x, y); ok {
		return b.Int(min(m, n))
	}
	return b.Op("py_min", x, y)
}

func constInts(x, y *Value) (m, n int, ok bool) {
	c, ok1 := x.Const()
	d, ok2 := y.Const()
	if !ok1 || !ok2 {
		return 0, 0, false
	}
	return int(c.(int64)), int(d.(int64)), true
}

// fullLike is a tensor of v's shape and dtype with one value everywhere.
func (b *Builder) fullLike(v *Value, value float64) *Value {
	return b.fullOf(b.ShapeOf(v), value, b.NeedDType(v))
}

func (b *Builder) fullOf(shape *Value, value float64, d dtype.DType) *Value {
	var c Datum = value
	switch {
	case d == dtype.Bool:
		c = value != 0
	case d.IsInt():
		c = int64(value)
	}
	return b.Op("full", shape, b.Const(c), b.DType(d))
}

// constDims is a constant list of ints; it stops with ErrNeedsTypes where v is not constant.
func (b *Builder) constDims(v *Value) []int {
	dims, err := AsInts(b.NeedConst(v))
	if err != nil {
		b.Fail(err)
	}
	return dims
}

func (b *Builder) constInt(v *Value) int   { return int(b.NeedConst(v).(int64)) }
func (b *Builder) constBool(v *Value) bool { return b.NeedConst(v).(bool) }

// swapLast exchanges the last two dims.
func (b *Builder) swapLast(v *Value) *Value {
	p := iotaInts(b.NeedRank(v))
	n := len(p)
	p[n-1], p[n-2] = p[n-2], p[n-1]
	return b.Op("permute", v, b.Ints(p...))
}

// iotaInts are the numbers 0 to n-1.
func iotaInts(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	return p
}

// only places one cotangent among n operands.
func only(n, i int, ct *Value) []*Value {
	out := make([]*Value, n)
	out[i] = ct
	return out
}

// number is what reference evaluations compute in: f32 for f32 and halves, f64, and int64 for integers and bools.
type number interface {
	~float32 | ~float64 | ~int64
}

// load reads all elements in row-major order as T, which must be the type that a's dtype computes in (or wider).
func load[T number](a *Array) []T {
	out := make([]T, a.Len())
	at := 0
	a.EachRow(func(off, n, stride int) {
		loadRow(out[at:at+n], a, off, stride)
		at += n
	})
	return out
}

func loadRow[T number](out []T, a *Array, off, stride int) {
	data := a.Data
	switch a.DType {
	case dtype.F32:
		if stride == 1 {
			row := data[off*4 : (off+len(out))*4]
			for i := range out {
				out[i] = T(math.Float32frombits(binary.LittleEndian.Uint32(row[:4])))
				row = row[4:]
			}
			return
		}
		for i := range out {
			out[i] = T(math.Float32frombits(binary.LittleEndian.Uint32(data[off*4:])))
			off += stride
		}
	case dtype.F64:
		for i := range out {
			out[i] = T(math.Float64frombits(binary.LittleEndian.Uint64(data[off*8:])))
			off += stride
		}
	case dtype.F16, dtype.BF16:
		for i := range out {
			out[i] = T(a.Float(off))
			off += stride
		}
	case dtype.I64:
		for i := range out {
			out[i] = T(int64(binary.LittleEndian.Uint64(data[off*8:])))
			off += stride
		}
	default:
		for i := range out {
			out[i] = T(a.Int(off))
			off += stride
		}
	}
}

// store writes all elements of a contiguous array, rounding or wrapping to its dtype.
func store[T number](a *Array, v []T) {
	data := a.Data[a.Offset*a.DType.Size():]
	switch a.DType {
	case dtype.F32:
		for i, x := range v {
			binary.LittleEndian.PutUint32(data[i*4:], math.Float32bits(float32(x)))
		}
	case dtype.F64:
		for i, x := range v {
			binary.LittleEndian.PutUint64(data[i*8:], math.Float64bits(float64(x)))
		}
	case dtype.F16, dtype.BF16:
		for i, x := range v {
			a.SetFloat(a.Offset+i, float64(x))
		}
	default:
		for i, x := range v {
			a.SetInt(a.Offset+i, int64(x))
		}
	}
}

// eachRow walks arrays of one shape together: f gets the element offset of the first element of every innermost row in each
// array, and the row's length; the step of array j within a row is rowStride(arrays[j]).
func eachRow(arrays []*Array, f func(off []int, n int)) {
	first := arrays[0]
	if first.Len() == 0 {
		return
	}
	off := make([]int, len(arrays))
	for j, a := range arrays {
		off[j] = a.Offset
	}
	r := len(first.Shape)
	if r == 0 {
		f(off, 1)
		return
	}
	idx := make([]int, r-1)
	cur := make([]int, len(arrays))
	for {
		copy(cur, off)
		f(cur, first.Shape[r-1])
		d := r - 2
		for ; d >= 0; d-- {
			idx[d]++
			for j, a := range arrays {
				off[j] += a.Strides[d]
			}
			if idx[d] < first.Shape[d] {
				break
			}
			for j, a := range arrays {
				off[j] -= idx[d] * a.Strides[d]
			}
			idx[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

func rowStride(a *Array) int {
	if len(a.Strides) == 0 {
		return 1
	}
	return a.Strides[len(a.Strides)-1]
}

// assign copies src into the view dst of the same shape and dtype. Only for results under construction.
func assign(dst, src *Array) {
	ds, ss := rowStride(dst), rowStride(src)
	eachRow([]*Array{dst, src}, func(off []int, n int) {
		moveRow(dst.DType.Size(), dst.Data, off[0], ds, src.Data, off[1], ss, n)
	})
}

// moveRow copies n elements of size bytes between strided rows.
func moveRow(size int, dst []byte, d, ds int, src []byte, s, ss, n int) {
	if ds == 1 && ss == 1 {
		copy(dst[d*size:(d+n)*size], src[s*size:(s+n)*size])
		return
	}
	switch size {
	case 1:
		for ; n > 0; n-- {
			dst[d] = src[s]
			d, s = d+ds, s+ss
		}
	case 2:
		for ; n > 0; n-- {
			binary.LittleEndian.PutUint16(dst[d*2:], binary.LittleEndian.Uint16(src[s*2:]))
			d, s = d+ds, s+ss
		}
	case 4:
		for ; n > 0; n-- {
			binary.LittleEndian.PutUint32(dst[d*4:], binary.LittleEndian.Uint32(src[s*4:]))
			d, s = d+ds, s+ss
		}
	case 8:
		for ; n > 0; n-- {
			binary.LittleEndian.PutUint64(dst[d*8:], binary.LittleEndian.Uint64(src[s*8:]))
			d, s = d+ds, s+ss
		}
	}
}

// fill sets every element of a contiguous array to a number, converted to its dtype.
func fill(a *Array, v Datum) {
	if a.Len() == 0 {
		return
	}
	one := Scalar(a.DType, v)
	size := a.DType.Size()
	buf := a.Bytes()
	copy(buf, one.Data)
	for n := size; n < len(buf); n *= 2 {
		copy(buf[n:], buf[:n])
	}
}
