package cpu

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/value"

	"github.com/gtc-project/gtc/codegen/kernel"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// A gather kernel copies elements from where an index says. At every place of the result, the operand x has a place that does not depend on
// the index, and moves from there by the index times a stride. Its arguments:
//
//	word 0: number of rows; 1: elements per row; 2: fault code, set by the kernel; 3: size of the indexed dim; 4: its byte stride
//	then 3 pointers: x, index, result; 3 byte strides along a row; and a nest of the outer axes
//
// An index out of bounds is a fault, and nothing is read there.
const (
	gatherName   = "gather"
	gatherBound  = 3
	gatherStride = 4
	gatherPtrs   = 5
)

// gatherKey names a gather kernel.
type gatherKey struct {
	width  int // bytes of an element
	index  dtype.DType
	access string // of x, index, result along the rows
}

// gatherFault is the code of an index out of bounds; it is none of package scalar's.
const gatherFault = 1 << 20

// ErrIndex is the error of a gather for an index out of bounds.
var ErrIndex = errors.New("cpu: an index is out of bounds")

// Gather prepares out[i…] = x[i… with index[i…] in place of the index along dim] for operands that are laid out like these; as a
// Launch its operands are x, index, out. The index is i64 or i32. An index out of bounds is ErrIndex; which one it was, the reference evaluation says.
func (b *Backend) Gather(x, index, out *ir.Array, dim int) (Launch, error) {
	if len(index.Shape) != len(x.Shape) || dim < 0 || dim >= len(x.Shape) {
		return nil, fmt.Errorf("cpu: gather of shape %v with an index of shape %v along dim %d does not fit", x.Shape, index.Shape, dim)
	}
	strides := slices.Clone(x.Strides)
	strides[dim] = 0
	for d, n := range index.Shape {
		if d != dim && n > x.Shape[d] {
			return nil, fmt.Errorf("cpu: an index of shape %v reaches beyond shape %v", index.Shape, x.Shape)
		}
	}
	return b.gather(x, index, out, strides, index.Strides, x.Shape[dim], x.Strides[dim])
}

// Take prepares out[i…, r…] = x[index[i…], r…] for operands that are laid out like these; see Gather.
func (b *Backend) Take(x, index, out *ir.Array) (Launch, error) {
	if len(x.Shape) == 0 {
		return nil, fmt.Errorf("cpu: take from a tensor without dims")
	}
	xs := append(make([]int, len(index.Shape)), x.Strides[1:]...)
	is := append(slices.Clone(index.Strides), make([]int, len(x.Shape)-1)...)
	return b.gather(x, index, out, xs, is, x.Shape[0], x.Strides[0])
}

// gather is over the places of out; xs and is are the strides of x and index there.
func (b *Backend) gather(x, index, out *ir.Array, xs, is []int, bound, along int) (Launch, error) {
	if index.DType != dtype.I64 && index.DType != dtype.I32 || x.DType != out.DType {
		return nil, fmt.Errorf("cpu: gather from %s by %s into %s", x.DType, index.DType, out.DType)
	}
	if len(xs) != len(out.Shape) || len(is) != len(out.Shape) {
		return nil, fmt.Errorf("cpu: gather from shape %v by an index of shape %v into shape %v does not fit", x.Shape, index.Shape, out.Shape)
	}
	g := &grid{layouts: layoutsOf([]*ir.Array{x, index, out}), pool: b.pool, outs: 1}
	if out.Len() == 0 {
		return g, nil
	}
	outer := kernel.NewNest(out.Shape, xs, is, out.Strides)
	outer.SortFor(2)
	outer, inner := last(outer.Collapse(), 3)
	if len(outer) > maxAxes {
		return nil, fmt.Errorf("cpu: operands need more than %d nested loops; make them contiguous first", maxAxes+1)
	}
	key := gatherKey{x.DType.Size(), index.DType, classes(inner)}
	var err error
	if g.fn, err = b.shared(key, gatherName, func() string { return gatherText(b, key, inner.Strides) }); err != nil {
		return nil, err
	}
	sizes := []int{x.DType.Size(), index.DType.Size(), out.DType.Size()}
	rows := outer.Len()
	cost := 1.0
	if inner.Strides[1] == 0 {
		cost = 0.1 * float64(sizes[0])
	}
	rowsPer, pieces, piece := b.cutRows(cost, rows, inner.Size)
	g.units = (rows + rowsPer - 1) / rowsPer * pieces
	g.words = gatherPtrs + 6 + nestWords(3)
	g.ptr, g.fault = gatherPtrs, mapFault
	g.fill = func(u int, args []int64) {
		row, from := u/pieces*rowsPer, u%pieces*piece
		args[mapRows] = int64(min(rowsPer, rows-row))
		args[mapLen] = int64(min(piece, inner.Size-from))
		args[gatherBound], args[gatherStride] = int64(bound), int64(along*sizes[0])
		packNest(args[gatherPtrs+6:], outer, sizes, row, args[gatherPtrs:])
		for i := range 3 {
			step := int64(inner.Strides[i] * sizes[i])
			args[gatherPtrs+i] += int64(from) * step
			args[gatherPtrs+3+i] = step
		}
	}
	return g.ready(), nil
}

// integerOf is a dtype of the given size whose elements may have any bits.
func integerOf(bytes int) dtype.DType {
	return []dtype.DType{dtype.I8, dtype.I16, dtype.I32, dtype.I64}[bits.TrailingZeros(uint(bytes))]
}

// gatherText is the kernel's LLVM text. Where one index serves a whole row, the row is copied in vectors.
func gatherText(b *Backend, key gatherKey, strides []int) string {
	mod := newModule()
	f, args := mod.kernelFunc(gatherName)
	elem := integerOf(key.width)
	fault := f.newVar(ci(0))
	nest := &nestCode{fn: f, args: args, base: gatherPtrs + 6}
	ops := []operand{{dtype: elem}, {dtype: key.index}, {dtype: elem}}
	for i := range ops {
		ops[i].access = kernel.AccessOf(strides[i])
		if ops[i].access == kernel.Strided {
			ops[i].stride = f.word(args, gatherPtrs+3+i)
		}
		nest.ptrs = append(nest.ptrs, f.newVar(f.b.NewIntToPtr(f.word(args, gatherPtrs+i), bytePtr)))
	}
	rows, n, bound, along := f.word(args, mapRows), f.word(args, mapLen), f.word(args, gatherBound), f.word(args, gatherStride)
	one, many := &lanes{fn: f, w: 1}, &lanes{fn: f, w: b.vector / key.width}
	// source is where x begins for element i of the index; a bad index counts as 0.
	source := func(base, i value.Value) value.Value {
		v := one.loadLanes(ops[1], i)
		if key.index != dtype.I64 {
			v = f.b.NewSExt(v, i64)
		}
		ok := f.b.NewICmp(enum.IPredULT, v, bound)
		fault.set(f.b.NewSelect(ok, fault.get(), ci(gatherFault)))
		return f.at(base, f.mul(f.b.NewSelect(ok, v, ci(0)), along))
	}
	f.loop(ci(0), rows, ci(1), func(value.Value) {
		for i := range ops {
			ops[i].base = nest.ptrs[i].get()
		}
		x := ops[0]
		copyFrom := func(l *lanes, lo, hi value.Value) {
			f.loop(lo, hi, ci(l.w), func(i value.Value) { l.storeLanes(ops[2], i, l.loadLanes(x, i)) })
		}
		if ops[1].access == kernel.Repeat {
			x.base = source(x.base, ci(0))
			most := f.b.NewAnd(n, ci(-many.w))
			copyFrom(many, ci(0), most)
			copyFrom(one, most, n)
		} else {
			f.loop(ci(0), n, ci(1), func(i value.Value) {
				at := x
				at.base = source(x.base, i)
				one.storeLanes(ops[2], i, one.loadLanes(at, i))
			})
		}
		nest.advance()
	})
	f.b.NewStore(fault.get(), f.b.NewGetElementPtr(i64, args, ci(mapFault)))
	f.done(nil)
	return mod.text()
}
