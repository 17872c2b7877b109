package tensor

import (
	"encoding/binary"
	"fmt"

	"github.com/gtc-project/gtc/ir"
)

// In-place operations. Each computes its new value out of place, then writes it through the view: source and destination may overlap. The gradient
// history of a storage that was written to is a flat tensor (views.base): a write scatters the new value's history into it, and every handle of
// the storage reads its own history out of it again (Tensor.history), whichever view it is.

// InPlace runs the aten function name out of place on t and args and writes the result into t, as PyTorch's t.name_(…) does: the result is converted to t's
// dtype, which must be of no lower category, and broadcast to t's shape. It gives t, or a tensor that holds the error.
func (t *Tensor) InPlace(name string, args ...any) *Tensor {
	r := Call(name, append([]any{t}, args...)...)
	if r.err != nil {
		return r
	}
	if err := t.keepSaved(r); err != nil {
		return failed(err)
	}
	return t.assign(name+"_", r)
}

// keepSaved copies what the gradient of r, which is about to be written to t, reads of t's storage.
func (t *Tensor) keepSaved(r *Tensor) error {
	if r.hist == nil || r.hist.entry == nil || r.store == t.store {
		return nil
	}
	e, k := r.hist.entry, 0
	var err error
	for i, a := range e.args {
		eachTensor([]any{a}, func(x *Tensor) {
			if x.store == t.store && err == nil && e.reads(i) {
				c := Call("clone", NoGrad(x))
				if err = c.err; err == nil {
					x.arr, x.store, e.versions[k] = c.arr, c.store, 0
				}
			}
			k++
		})
	}
	return err
}

// CopyFrom writes src, converted and broadcast, into t; it gives t.
func (t *Tensor) CopyFrom(src *Tensor) *Tensor { return t.InPlace("copy", src) }

// Fill writes one number to all elements of t; it gives t.
func (t *Tensor) Fill(v any) *Tensor { return t.InPlace("fill", v) }

// assign writes r into t.
func (t *Tensor) assign(op string, r *Tensor) *Tensor {
	fail := func(format string, args ...any) *Tensor {
		return failed(&opError{op: op, where: callerLine(), err: fmt.Errorf(format, args...)})
	}
	switch {
	case r.arr.DType.Category() > t.arr.DType.Category():
		return fail("result type %s can't be cast to the desired output type %s", r.arr.DType, t.arr.DType)
	case !sameShape(r.arr.Shape, t.arr.Shape):
		return fail("output with shape %v doesn't match the broadcast shape %v", t.arr.Shape, r.arr.Shape)
	case t.leafView && !t.scope.off():
		return fail("a view of a leaf tensor that requires a gradient is being used in an in-place operation: use NoGrad(t), or clone it")
	case t.leaf != nil && !t.scope.off():
		return fail("a leaf tensor that requires a gradient is being used in an in-place operation: use NoGrad(t), or clone it")
	case repeats(t.arr):
		return fail("unsupported operation: more than one element of the written-to tensor refers to a single memory location: clone it before writing")
	}
	if r.arr.DType != t.arr.DType {
		if r = r.To(t.arr.DType); r.err != nil {
			return r
		}
	}
	if err := t.writeHistory(r); err != nil {
		return failed(err)
	}
	copyInto(t.arr, r.arr)
	t.store.version.Add(1)
	t.store.origin.write(r.store.origin.drawn.Load())
	tr := t.scope.Tracer()
	if tr == nil { // what is written comes out of a trace: the trace must know where it went
		tr = r.scope.Tracer()
	}
	if tr != nil {
		if err := tr.Write(t, r); err != nil {
			return failed(err)
		}
	}
	return t
}

// writeHistory records how the storage's value now depends on r's.
func (t *Tensor) writeHistory(r *Tensor) error {
	if t.scope.off() {
		return nil
	}
	if t.views == nil {
		t.views = newViews(t.store.size)
		t.views.root = t.frozen()
	}
	rh := r.history()
	if rh == nil && t.history() == nil && t.views.base == nil && t.views.root == nil {
		return nil
	}
	if t.coversStorage() { // everything is overwritten: the old history ends here
		flat := r
		if rh != nil {
			flat = Call("reshape", r, []int{-1})
		}
		if flat.err != nil {
			return flat.err
		}
		t.version = t.views.set(flat.history())
		t.hist = rh
		return nil
	}
	next := Call("as_strided_scatter", t.baseTensor(), r, t.arr.Shape, t.arr.Strides, t.arr.Offset)
	if next.err != nil {
		return next.err
	}
	// other handles, and t itself, read their history out of the base from now on
	t.version = t.views.set(next.hist)
	t.hist = t.viewOf(next)
	return nil
}

// copyInto writes src's elements to dst's places; both have one dtype and shape. src is read completely first where the memories overlap.
func copyInto(dst, src *ir.Array) {
	if len(dst.Data) > 0 && len(src.Data) > 0 && &dst.Data[0] == &src.Data[0] {
		src = src.Copy()
	}
	src = src.Contiguous()
	from, size, i := src.Bytes(), dst.DType.Size(), 0
	dst.EachRow(func(off, n, stride int) {
		if stride == 1 {
			copy(dst.Data[off*size:(off+n)*size], from[i*size:])
			i += n
			return
		}
		for k := 0; k < n; k++ {
			copyElem(dst.Data[off*size:], from[i*size:], size)
			off += stride
			i++
		}
	})
}

func copyElem(dst, src []byte, size int) {
	switch size {
	case 4:
		binary.LittleEndian.PutUint32(dst, binary.LittleEndian.Uint32(src))
	case 8:
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(src))
	default:
		copy(dst[:size], src[:size])
	}
}
