package cpu

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/gtc-project/gtc/ir/dtype"
)

var (
	i1  = types.I1
	i8  = types.I8
	i16 = types.I16
	i32 = types.I32
	i64 = types.I64
	f32 = types.Float
	f64 = types.Double

	bytePtr = types.NewPointer(types.I8)
)

// raw is a constant given by its text: llir's own float constants lose bits.
type raw struct {
	typ  types.Type
	text string
}

func (r *raw) String() string   { return r.typ.String() + " " + r.text }
func (r *raw) Type() types.Type { return r.typ }
func (r *raw) Ident() string    { return r.text }
func (r *raw) IsConstant()      {}

// regType is the LLVM type of one lane of a register.
func regType(d dtype.DType) types.Type {
	switch d {
	case dtype.Bool:
		return i1
	case dtype.U8, dtype.I8:
		return i8
	case dtype.I16:
		return i16
	case dtype.I32:
		return i32
	case dtype.I64:
		return i64
	case dtype.F32:
		return f32
	case dtype.F64:
		return f64
	}
	panic("BUG: no register type for " + d.String())
}

// memType is the LLVM type of one element in memory.
func memType(d dtype.DType) types.Type {
	switch d {
	case dtype.Bool:
		return i8
	case dtype.F16, dtype.BF16:
		return i16
	}
	return regType(d)
}

// wide is t for one lane, and a vector of t for more.
func wide(t types.Type, w int) types.Type {
	if w == 1 {
		return t
	}
	return types.NewVector(uint64(w), t)
}

// suffix is how intrinsics name a type: "f32", "v8f32".
func suffix(t types.Type) string {
	switch t := t.(type) {
	case *types.VectorType:
		return fmt.Sprintf("v%d%s", t.Len, suffix(t.ElemType))
	case *types.FloatType:
		if t.Kind == types.FloatKindDouble {
			return "f64"
		}
		return "f32"
	case *types.IntType:
		return fmt.Sprintf("i%d", t.BitSize)
	}
	panic("BUG: no intrinsic suffix for " + t.String())
}

// constBits is the text of a constant of lane type t with the given bits.
func constBits(t types.Type, bits uint64) string {
	switch t := t.(type) {
	case *types.IntType:
		if t.BitSize == 1 {
			return strconv.FormatBool(bits&1 != 0)
		}
		shift := 64 - t.BitSize
		return strconv.FormatInt(int64(bits<<shift)>>shift, 10)
	case *types.FloatType:
		if t.Kind == types.FloatKindFloat {
			return floatText(math.Float32frombits(uint32(bits)))
		}
		return fmt.Sprintf("0x%016X", bits)
	}
	panic("BUG: no constant of type " + t.String())
}

// floatText writes a float as LLVM does: as the double of equal value, NaN payload included.
func floatText(f float32) string {
	b := math.Float32bits(f)
	if f != f {
		return fmt.Sprintf("0x%016X", uint64(b>>31)<<63|0x7ff<<52|uint64(b&0x7fffff)<<29)
	}
	return fmt.Sprintf("0x%016X", math.Float64bits(float64(f)))
}

// splat is a constant with the same bits in every lane.
func splat(t types.Type, w int, bits uint64) constant.Constant {
	c := constBits(t, bits)
	if w == 1 {
		return &raw{t, c}
	}
	lane := t.String() + " " + c
	return &raw{wide(t, w), "<" + strings.Repeat(lane+", ", w-1) + lane + ">"}
}

// laneNumbers is the vector 0, 1, 2, … of integers.
func laneNumbers(t types.Type, w int) constant.Constant {
	if w == 1 {
		return &raw{t, "0"}
	}
	parts := make([]string, w)
	for i := range parts {
		parts[i] = fmt.Sprintf("%s %d", t, i)
	}
	return &raw{wide(t, w), "<" + strings.Join(parts, ", ") + ">"}
}

func ci(n int) value.Value   { return constant.NewInt(i64, int64(n)) }
func ci32(n int) value.Value { return constant.NewInt(i32, int64(n)) }

// module collects the functions of one kernel.
type module struct {
	*ir.Module
	decls   map[string]*ir.Func // intrinsics
	helpers map[string]*ir.Func // see helperTexts
}

func newModule() *module {
	return &module{ir.NewModule(), map[string]*ir.Func{}, map[string]*ir.Func{}}
}

// fn is a function under construction: instructions go to the end of block b, allocas to the entry block.
type fn struct {
	m      *module
	f      *ir.Func
	entry  *ir.Block
	b      *ir.Block
	blocks int
}

func (m *module) newFunc(name string, ret types.Type, params ...*ir.Param) *fn {
	f := m.NewFunc(name, ret, params...)
	f.FuncAttrs = append(f.FuncAttrs, enum.FuncAttrNoUnwind)
	e := f.NewBlock("entry")
	return &fn{m: m, f: f, entry: e, b: f.NewBlock("body")}
}

// done ends the function.
func (f *fn) done(ret value.Value) {
	f.b.NewRet(ret)
	f.entry.NewBr(f.f.Blocks[1])
}

func (f *fn) block(name string) *ir.Block {
	f.blocks++
	return f.f.NewBlock(fmt.Sprintf("%s%d", name, f.blocks))
}

// intrinsic calls an LLVM intrinsic with these operand types. All names come from this package, never from input.
func (f *fn) intrinsic(name string, ret types.Type, args ...value.Value) value.Value {
	d := f.m.decls[name]
	if d == nil {
		params := make([]*ir.Param, len(args))
		for i, a := range args {
			params[i] = ir.NewParam("", a.Type())
		}
		d = f.m.NewFunc(name, ret, params...)
		f.m.decls[name] = d
	}
	return f.b.NewCall(d, args...)
}

// mathOp calls an intrinsic that is overloaded on its operand type.
func (f *fn) mathOp(name string, x ...value.Value) value.Value {
	return f.intrinsic("llvm."+name+"."+suffix(x[0].Type()), x[0].Type(), x...)
}

// variable is a slot that sroa turns into SSA values.
type variable struct {
	f    *fn
	slot *ir.InstAlloca
}

func (f *fn) newVar(init value.Value) variable {
	v := variable{f, f.entry.NewAlloca(init.Type())}
	v.set(init)
	return v
}

func (v variable) get() value.Value  { return v.f.b.NewLoad(v.slot.ElemType, v.slot) }
func (v variable) set(x value.Value) { v.f.b.NewStore(x, v.slot) }

// scratch reserves aligned stack memory of n elements and returns it as bytes.
func (f *fn) scratch(t types.Type, n int) value.Value {
	a := f.entry.NewAlloca(types.NewArray(uint64(n), t))
	a.Align = 64
	return f.entry.NewBitCast(a, bytePtr)
}

func (f *fn) add(a, b value.Value) value.Value { return f.b.NewAdd(a, b) }
func (f *fn) sub(a, b value.Value) value.Value { return f.b.NewSub(a, b) }
func (f *fn) mul(a, b value.Value) value.Value { return f.b.NewMul(a, b) }

func (f *fn) less(a, b value.Value) value.Value { return f.b.NewICmp(enum.IPredSLT, a, b) }

func (f *fn) lessEqual(a, b value.Value) value.Value { return f.b.NewICmp(enum.IPredSLE, a, b) }

func (f *fn) min(a, b value.Value) value.Value { return f.b.NewSelect(f.less(a, b), a, b) }

// at moves a byte pointer.
func (f *fn) at(p, bytes value.Value) value.Value {
	return f.b.NewGetElementPtr(types.I8, p, bytes)
}

// load reads a value of type t at a byte pointer of the given alignment.
func (f *fn) load(t types.Type, p value.Value, align int) value.Value {
	l := f.b.NewLoad(t, f.b.NewBitCast(p, types.NewPointer(t)))
	l.Align = ir.Align(align)
	return l
}

func (f *fn) store(v, p value.Value, align int) {
	s := f.b.NewStore(v, f.b.NewBitCast(p, types.NewPointer(v.Type())))
	s.Align = ir.Align(align)
}

// loop runs body for i = lo, lo+step, … below hi and returns nothing; body may not change i.
func (f *fn) loop(lo, hi, step value.Value, body func(i value.Value)) {
	f.while(lo, func(i value.Value) value.Value { return f.less(i, hi) }, func(i value.Value) value.Value {
		body(i)
		return f.add(i, step)
	})
}

// while runs body from i = lo as long as cond holds; body gives the next i. The result is the last i.
func (f *fn) while(lo value.Value, cond, body func(i value.Value) value.Value) value.Value {
	pre := f.b
	head, in, out := f.block("head"), f.block("loop"), f.block("exit")
	pre.NewBr(head)
	i := head.NewPhi(ir.NewIncoming(lo, pre))
	f.b = head
	c := cond(i)
	f.b.NewCondBr(c, in, out)
	f.b = in
	next := body(i)
	f.b.NewBr(head)
	i.Incs = append(i.Incs, ir.NewIncoming(next, f.b))
	f.b = out
	return i
}

// when runs then if c holds, otherwise els, which may be nil.
func (f *fn) when(c value.Value, then, els func()) {
	t, j := f.block("then"), f.block("join")
	e := j
	if els != nil {
		e = f.block("else")
	}
	f.b.NewCondBr(c, t, e)
	f.b = t
	then()
	f.b.NewBr(j)
	if els != nil {
		f.b = e
		els()
		f.b.NewBr(j)
	}
	f.b = j
}

// spread copies one lane to all w.
func (f *fn) spread(x value.Value, w int) value.Value {
	if w == 1 {
		return x
	}
	vt := types.NewVector(uint64(w), x.Type())
	undef := constant.NewUndef(vt)
	ins := f.b.NewInsertElement(undef, x, ci32(0))
	return f.b.NewShuffleVector(ins, undef, constant.NewZeroInitializer(types.NewVector(uint64(w), i32)))
}

// perLane computes a vector lane by lane.
func (f *fn) perLane(t types.Type, w int, lane func(k int) value.Value) value.Value {
	if w == 1 {
		return lane(0)
	}
	var v value.Value = constant.NewUndef(types.NewVector(uint64(w), t))
	for k := range w {
		v = f.b.NewInsertElement(v, lane(k), ci32(k))
	}
	return v
}

// lane takes one lane out of a vector of w.
func (f *fn) lane(v value.Value, w, k int) value.Value {
	if w == 1 {
		return v
	}
	return f.b.NewExtractElement(v, ci32(k))
}
