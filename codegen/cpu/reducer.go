package cpu

import (
	"fmt"
	"math"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/value"

	"github.com/gtc-project/gtc/ir/dtype"
)

// ReduceOp names a reduction as package ir's op table does.
type ReduceOp string

// The reductions.
const (
	Sum    ReduceOp = "sum"
	Prod   ReduceOp = "prod"
	Amax   ReduceOp = "amax"
	Amin   ReduceOp = "amin"
	Any    ReduceOp = "any"
	All    ReduceOp = "all"
	Argmax ReduceOp = "argmax"
	Argmin ReduceOp = "argmin"
)

// isArg: the result is an index.
func (op ReduceOp) isArg() bool { return op == Argmax || op == Argmin }

// needsElements: the reduction of nothing is an error.
func (op ReduceOp) needsElements() bool { return op.isArg() || op == Amax || op == Amin }

// Result is the dtype of the reduction of elements of dtype d, or an error where there is none.
func (op ReduceOp) Result(d dtype.DType) (dtype.DType, error) {
	switch op {
	case Sum, Prod:
		if d != dtype.Bool {
			return d, nil
		}
	case Amax, Amin:
		return d, nil
	case Any, All:
		if d == dtype.Bool {
			return d, nil
		}
	case Argmax, Argmin:
		return dtype.I64, nil
	}
	return dtype.Invalid, fmt.Errorf("cpu: no reduction %s of %s", op, d)
}

// reducer emits a reduction's steps on w lanes. Its state is the accumulated value; for argmax and argmin also its index, -1 while
// there is none.
type reducer struct {
	op  ReduceOp
	acc dtype.DType // register type of the elements
}

// state is what the reducer carries, one vector each.
type state []value.Value

// identityBits is the value that changes nothing.
func (r reducer) identityBits() uint64 {
	switch r.op {
	case Prod, All:
		return oneBits(r.acc)
	case Amax, Amin:
		sign := -1
		if r.op == Amin {
			sign = 1
		}
		switch {
		case r.acc.IsFloat():
			return floatBits(regType(r.acc), math.Inf(sign))
		case r.acc == dtype.U8, r.acc == dtype.Bool:
			return uint64(int64(min(sign, 0))+1) * math.MaxUint64
		}
		least := uint64(1) << (8*r.acc.Size() - 1)
		if sign > 0 {
			return least - 1
		}
		return least
	}
	return 0
}

func oneBits(d dtype.DType) uint64 {
	if d.IsFloat() {
		return floatBits(regType(d), 1)
	}
	return 1
}

func (r reducer) identity(w int) state {
	s := state{splat(regType(r.acc), w, r.identityBits())}
	if r.op.isArg() {
		s = append(s, splat(i64, w, math.MaxUint64))
	}
	return s
}

// update takes in one more element per lane, whose index is higher than those before.
func (r reducer) update(f *fn, s state, x, index value.Value) state {
	if !r.op.isArg() {
		return state{r.combine(f, s[0], x)}
	}
	unset := f.b.NewICmp(enum.IPredSLT, s[1], zeroLike(s[1]))
	take := f.b.NewOr(unset, r.better(f, x, s[0]))
	return state{f.b.NewSelect(take, x, s[0]), f.b.NewSelect(take, index, s[1])}
}

// merge joins the states of two sets of elements.
func (r reducer) merge(f *fn, a, b state) state {
	if !r.op.isArg() {
		return state{r.combine(f, a[0], b[0])}
	}
	zero := zeroLike(a[1])
	lower := f.b.NewICmp(enum.IPredSLT, b[1], a[1])
	worse := r.better(f, a[0], b[0])
	tie := f.b.NewAnd(f.b.NewXor(worse, trueLike(a[1])), lower)
	wins := f.b.NewOr(f.b.NewOr(f.b.NewICmp(enum.IPredSLT, a[1], zero), r.better(f, b[0], a[0])), tie)
	take := f.b.NewAnd(f.b.NewICmp(enum.IPredSGE, b[1], zero), wins)
	return state{f.b.NewSelect(take, b[0], a[0]), f.b.NewSelect(take, b[1], a[1])}
}

func zeroLike(v value.Value) value.Value { return constant.NewZeroInitializer(v.Type()) }

func trueLike(v value.Value) value.Value { return splat(i1, width(v), 1) }

// combine is the reduction of two values; a is the accumulated one.
func (r reducer) combine(f *fn, a, x value.Value) value.Value {
	float, boolean := r.acc.IsFloat(), r.acc == dtype.Bool
	switch {
	case r.op == Sum && float:
		return f.b.NewFAdd(a, x)
	case r.op == Sum:
		return f.b.NewAdd(a, x)
	case r.op == Prod && float:
		return f.b.NewFMul(a, x)
	case r.op == Prod:
		return f.b.NewMul(a, x)
	case r.op == Any, r.op == Amax && boolean:
		return f.b.NewOr(a, x)
	case r.op == All, r.op == Amin && boolean:
		return f.b.NewAnd(a, x)
	}
	if float {
		// x > a, or x is NaN: not (x <= a), or a is NaN and x is not; but then a stays
		take := f.b.NewOr(f.b.NewFCmp(r.floatPred(), x, a), f.b.NewFCmp(enum.FPredUNO, x, x))
		return f.b.NewSelect(take, x, a)
	}
	return f.b.NewSelect(f.b.NewICmp(r.intPred(), x, a), x, a)
}

// better reports whether x replaces a: strictly beyond it, or the first NaN.
func (r reducer) better(f *fn, x, a value.Value) value.Value {
	if !r.acc.IsFloat() {
		return f.b.NewICmp(r.intPred(), x, a)
	}
	firstNaN := f.b.NewAnd(f.b.NewFCmp(enum.FPredUNO, x, x), f.b.NewFCmp(enum.FPredORD, a, a))
	return f.b.NewOr(f.b.NewFCmp(r.floatPred(), x, a), firstNaN)
}

func (r reducer) wantsLess() bool { return r.op == Amin || r.op == Argmin }

func (r reducer) floatPred() enum.FPred {
	if r.wantsLess() {
		return enum.FPredOLT
	}
	return enum.FPredOGT
}

func (r reducer) intPred() enum.IPred {
	unsigned := r.acc == dtype.U8 || r.acc == dtype.Bool
	switch {
	case unsigned && r.wantsLess():
		return enum.IPredULT
	case unsigned:
		return enum.IPredUGT
	case r.wantsLess():
		return enum.IPredSLT
	}
	return enum.IPredSGT
}

// tree merges the w lanes of a state pairwise, k with k+w/2 and so on, into one.
func (r reducer) tree(f *fn, s state, w int) state {
	for ; w > 1; w /= 2 {
		low, high := make(state, len(s)), make(state, len(s))
		for i, v := range s {
			low[i], high[i] = f.half(v, w, 0), f.half(v, w, w/2)
		}
		s = r.merge(f, low, high)
	}
	return s
}

// half is the w/2 lanes of v from the given one on; a single lane comes out as a scalar.
func (f *fn) half(v value.Value, w, from int) value.Value {
	if w == 2 {
		return f.lane(v, w, from)
	}
	idx := make([]constant.Constant, w/2)
	for i := range idx {
		idx[i] = constant.NewInt(i32, int64(from+i))
	}
	return f.b.NewShuffleVector(v, constant.NewUndef(v.Type()), constant.NewVector(nil, idx...))
}

// stateVar is a state in variables.
type stateVar []variable

func (f *fn) newState(s state) stateVar {
	v := make(stateVar, len(s))
	for i := range s {
		v[i] = f.newVar(s[i])
	}
	return v
}

func (v stateVar) get() state {
	s := make(state, len(v))
	for i := range v {
		s[i] = v[i].get()
	}
	return s
}

func (v stateVar) set(s state) {
	for i := range v {
		v[i].set(s[i])
	}
}
