package tensor

import "fmt"

// Range is start:stop:step in an index; see At. A nil bound is the end of the dimension, and step 0 is 1.
type Range struct {
	Start, Stop any
	Step        int
}

// Marks in an index; see At.
var (
	All      = Range{}    // the whole dimension, ":"
	NewAxis  = newAxis{}  // a new dimension of size 1, "None"
	Ellipsis = ellipsis{} // all dimensions that the rest leaves, "..."
)

type (
	newAxis  struct{}
	ellipsis struct{}
)

// At is t[index…] as Python writes it: an int picks an element of a dimension, a Range a part of it; NewAxis and Ellipsis are None and "..."; a tensor of
// integers or of bools picks by number or by mask. Without tensors the result is a view, which shares t's storage; with tensors it is a copy.
func (t *Tensor) At(index ...any) *Tensor {
	v, tensors := t.view(index)
	if v.err != nil || tensors == nil {
		return v
	}
	return Call("index", v, tensors)
}

// SetAt writes value, a *Tensor or a number, to t[index…]; see At. It broadcasts and converts value as PyTorch does, and gives t.
func (t *Tensor) SetAt(value any, index ...any) *Tensor {
	v, tensors := t.view(index)
	if v.err != nil {
		return v
	}
	x, isTensor := value.(*Tensor)
	if !isTensor {
		if x = Call("full", []int{}, value, v.DType()); x.err != nil {
			return x
		}
	}
	if tensors != nil {
		v = v.InPlace("index_put", tensors, x.To(v.DType()), false)
	} else {
		v = v.CopyFrom(x)
	}
	if v.err != nil {
		return v
	}
	return t
}

// view applies what gives views, and collects the tensors as the function index takes them; nil where there are none.
func (t *Tensor) view(index []any) (v *Tensor, at []*Tensor) {
	masked := 0
	fail := func(format string, args ...any) (*Tensor, []*Tensor) {
		return failed(&opError{op: "index", where: callerLine(), err: fmt.Errorf(format, args...)}), nil
	}
	if t.err != nil {
		return t, nil
	}
	taken, dots := 0, 0
	for _, x := range index {
		switch x := x.(type) {
		case newAxis:
		case ellipsis:
			dots++
		case *Tensor:
			if x.err != nil {
				return x, nil
			}
			taken++
			if x.DType() == Bool {
				taken += x.Dim() - 1
			}
		default:
			taken++
		}
	}
	if rank := t.Dim(); taken > rank {
		return fail("too many indices for tensor of dimension %d: %d", rank, taken)
	}
	if dots > 1 {
		return fail("an index can only have a single Ellipsis")
	}
	v = t
	dim := 0 // of v
	for _, x := range index {
		keep := 1 // the dimensions that x leaves in v
		switch x := x.(type) {
		case int:
			v, keep = v.Select(dim, x), 0
		case Range:
			if x.Step == 0 {
				x.Step = 1
			}
			if x != (Range{Step: 1}) {
				v = Call("slice", v, dim, x.Start, x.Stop, x.Step)
			}
		case newAxis:
			v = v.Unsqueeze(dim)
		case ellipsis:
			keep = t.Dim() - taken
		case *Tensor:
			for len(at) < dim-masked {
				at = append(at, nil)
			}
			at = append(at, x)
			if x.DType() == Bool { // one entry for as many dimensions as the mask has
				keep = x.Dim()
				masked += keep - 1
			}
		default:
			return fail("%T is no index: use int, Range, All, NewAxis, Ellipsis or a *Tensor", x)
		}
		if v.err != nil {
			return v, nil
		}
		dim += keep
	}
	return v, at
}
