package tensor

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gtc-project/gtc/ir"
)

// storage is the memory that views share.
type storage struct {
	version atomic.Uint64 // counts writes; the tape notices by it that a saved value was overwritten
	origin  origin
	size    int // elements
}

// views is what the tensors on one storage that are differentiated together have in common. What Detach gives shares the storage, but has views of its own.
type views struct {
	version atomic.Uint64 // counts the changes of base
	mu      sync.Mutex
	size    int    // elements of the storage
	base    *value // gradient history of the whole storage, flat; nil before the first in-place write
	// root is the tensor that the storage was made for, with the history that it had then.
	root   *Tensor
	cached map[string]*value // histories of views at the current version, by geometry
}

func newViews(size int) *views { return &views{size: size} }

// own gives t a storage and views of its own.
func (t *Tensor) own() {
	both := &struct {
		storage
		views
	}{}
	both.storage.size = len(t.arr.Data) / t.arr.DType.Size()
	both.views.size = both.storage.size
	both.storage.origin.created = clock.Load()
	t.store, t.views, t.version = &both.storage, &both.views, 0
}

func (v *views) current() uint64 {
	if v == nil {
		return 0
	}
	return v.version.Load()
}

// set makes base the history of the whole storage, and gives the new version.
func (v *views) set(base *value) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.base, v.cached = base, nil
	return v.version.Add(1)
}

// history is how the current value of t was computed. Where the storage was written to since the handle was made, that is a view of the storage's new history.
func (t *Tensor) history() *value {
	v := t.views
	if v == nil || t.version == v.version.Load() {
		return t.hist
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.base == nil {
		return nil
	}
	key := fmt.Sprint(t.arr.Shape, t.arr.Strides, t.arr.Offset)
	h, ok := v.cached[key]
	if !ok {
		b := FromArray(t.arr.View([]int{v.size}, []int{1}, 0))
		b.hist = v.base
		h = t.viewOf(b)
		if v.cached == nil {
			v.cached = map[string]*value{}
		}
		v.cached[key] = h
	}
	return h
}

// viewOf is t's history as a view of the flat storage base.
func (t *Tensor) viewOf(base *Tensor) *value {
	if base.hist == nil {
		return nil
	}
	return Call("as_strided", base, t.arr.Shape, t.arr.Strides, t.arr.Offset).hist
}

// coversStorage reports whether t is its whole storage in order.
func (t *Tensor) coversStorage() bool {
	return t.arr.Offset == 0 && t.arr.IsContiguous() && t.arr.Len() == t.store.size
}

// baseTensor is a copy of the whole storage as a flat tensor, with its gradient history.
func (t *Tensor) baseTensor() *Tensor {
	flat := t.arr.View([]int{t.store.size}, []int{1}, 0).Copy()
	b := FromArray(flat)
	b.scope = t.scope
	v := t.views
	v.mu.Lock()
	base, root := v.base, v.root
	v.mu.Unlock()
	switch {
	case base != nil:
		b.hist = base
		return b
	case root == nil:
		return b
	}
	// the first write: the history is that of the tensor that the storage was made for
	whole := FromArray(flat.View(root.arr.Shape, root.arr.Strides, root.arr.Offset))
	whole.scope, whole.hist = t.scope, root.hist
	if root.coversStorage() {
		return Call("reshape", whole, []int{-1})
	}
	return Call("as_strided_scatter", b, whole, root.arr.Shape, root.arr.Strides, root.arr.Offset)
}

// repeats reports whether one element of memory stands at several indices.
func repeats(a *ir.Array) bool {
	for i, n := range a.Shape {
		if n > 1 && a.Strides[i] == 0 {
			return true
		}
	}
	return false
}

func sameShape(a, b []int) bool {
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

// StorageView is the view of t's storage with the given sizes, strides and offset, in elements: what t itself is a view of.
func (t *Tensor) StorageView(shape, strides []int, offset int) *Tensor {
	if t.err != nil {
		return t
	}
	v := *t
	v.arr = t.arr.View(shape, strides, offset)
	v.hist, v.leaf, v.leafView = nil, nil, t.leaf != nil || t.leafView
	v.version = v.views.current()
	if t.NeedsGrad() {
		base := t
		if !t.coversStorage() {
			base = t.baseTensor()
		}
		v.hist = v.viewOf(base)
	}
	return &v
}
