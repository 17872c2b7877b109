package ir

import "fmt"

// Host ops on sizes and strides. IR values have no strides; front ends that must know what PyTorch's memory layout would be, to
// tell whether x.view(…) is allowed or x.contiguous() is x itself, compute it with these.

var (
	_ = register(&Op{
		Name: "dense_strides", Doc: "The strides of a contiguous tensor of these sizes.", Params: []string{"shape"}, Class: Host, NoGrad: true,
		Infer: is(IntList),
		Eval: func(c *EvalCall) ([]Datum, error) {
			return one(Ints(denseStrides(c.Ints(0))...))
		},
	})
	_ = register(&Op{
		Name: "can_view", Doc: "Whether a tensor of these sizes and strides can be viewed with another shape.", Params: []string{"shape", "strides", "view"},
		Class: Host, NoGrad: true, Infer: is(BoolT),
		Eval: func(c *EvalCall) ([]Datum, error) {
			shape := c.Ints(0)
			if err := oneStrideEach(shape, c.Ints(1)); err != nil {
				return nil, err
			}
			return one(torchViewStrides(shape, c.Ints(1), fillShape(shape, c.Ints(2))) != nil)
		},
	})
	_ = register(&Op{
		Name: "expand_strides", Doc: "The strides of a tensor expanded to a shape: 0 along expanded dimensions.", Params: []string{"shape", "strides", "expanded"},
		Class: Host, NoGrad: true, Infer: is(IntList),
		Eval: func(c *EvalCall) ([]Datum, error) {
			shape, strides, to := c.Ints(0), c.Ints(1), c.Ints(2)
			if err := oneStrideEach(shape, strides); err != nil {
				return nil, err
			}
			out := make([]int, len(to))
			for i, off := 0, len(to)-len(shape); i < len(shape) && off >= 0; i++ {
				if shape[i] == to[off+i] {
					out[off+i] = strides[i]
				}
			}
			return one(Ints(out...))
		},
	})
	_ = register(&Op{
		Name: "view_strides", Doc: "The strides of a view with another shape; an error where there is none.", Params: []string{"shape", "strides", "view"},
		Class: Host, Effect: MayFail, NoGrad: true, Infer: is(IntList),
		Eval: func(c *EvalCall) ([]Datum, error) {
			shape := c.Ints(0)
			if err := oneStrideEach(shape, c.Ints(1)); err != nil {
				return nil, err
			}
			view := fillShape(shape, c.Ints(2))
			s := torchViewStrides(shape, c.Ints(1), view)
			if s == nil {
				return nil, fmt.Errorf("view size %v is not compatible with input tensor's size %v and stride %v (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.", view, shape, c.Ints(1))
			}
			return one(Ints(s...))
		},
	})
)

var (
	_ = register(&Op{
		Name: "index_strides", Doc: "The strides of a view, whose elements are the numbers of those of the tensor that it shows.", Params: []string{"index"},
		Class: Host, NoGrad: true, Infer: is(IntList),
		Eval: func(c *EvalCall) ([]Datum, error) {
			return one(Ints(numberedStrides(c.Array(0))...))
		},
	})
	_ = register(&Op{
		Name: "index_offset", Doc: "The place where a view starts, whose elements are the numbers of those of the tensor that it shows; 0 for an empty one.",
		Params: []string{"index"}, Class: Host, NoGrad: true, Infer: is(Int),
		Eval: func(c *EvalCall) ([]Datum, error) {
			x := c.Array(0)
			if x.Len() == 0 {
				return one(int64(0))
			}
			return one(x.Int(x.Offset))
		},
	})
	_ = register(&Op{
		Name: "no_overlap", Doc: "The index itself; an error where the elements along a dimension are all the same one, as those of an expanded tensor are.",
		Params: []string{"index"}, Class: Move, Effect: MayFail, NoGrad: true,
		Infer: func(c *Call) ([]Type, error) {
			x, err := c.tensor(0)
			return []Type{x}, err
		},
		Eval: func(c *EvalCall) ([]Datum, error) {
			x := c.Array(0)
			for d, s := range numberedStrides(x) {
				if x.Shape[d] > 1 && s == 0 && x.Len() > 0 {
					return nil, fmt.Errorf("unsupported operation: more than one element of the written-to tensor refers to a single memory location (dimension %d of shape %v). Please clone() the tensor before performing the operation.", d, x.Shape)
				}
			}
			return one(x)
		},
	})
)

// numberedStrides are the differences of neighbours along each dim of an array of element numbers; a dim of size one gets the stride of
// a dense tensor.
func numberedStrides(x *Array) []int {
	strides := make([]int, len(x.Shape))
	next := 1
	for d := len(x.Shape) - 1; d >= 0; d-- {
		strides[d] = next
		if x.Shape[d] > 1 && x.Len() > 0 {
			strides[d] = int(x.Int(x.Offset+x.Strides[d]) - x.Int(x.Offset))
		}
		next = max(x.Shape[d], 1) * strides[d]
	}
	return strides
}

func denseStrides(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= max(shape[i], 1)
	}
	return s
}

// fillShape replaces a -1; a shape that does not fit is left as it is, for the view itself to refuse.
func fillShape(shape, view []int) []int {
	n, known, at := 1, 1, -1
	for _, k := range shape {
		n *= k
	}
	for i, k := range view {
		if k < 0 {
			at = i
		} else {
			known *= k
		}
	}
	out := append([]int{}, view...)
	if at >= 0 && known > 0 {
		out[at] = n / known
	}
	return out
}

func oneStrideEach(shape, strides []int) error {
	if len(shape) != len(strides) {
		return fmt.Errorf("expected one stride for each size, got sizes %v and strides %v", shape, strides)
	}
	return nil
}

// torchViewStrides are the strides of a view of other sizes, nil where memory would have to be copied: every run of old dims that lies
// in one piece of memory is split into new dims on its own (as at::detail::computeStride of PyTorch does).
func torchViewStrides(shape, strides, view []int) []int {
	n, m := 1, 1
	for _, k := range shape {
		n *= k
	}
	for _, k := range view {
		m *= k
	}
	if n == 0 || n != m || len(shape) == 0 {
		return denseStrides(view)
	}
	out := make([]int, len(view))
	v := len(view) - 1
	base := strides[len(strides)-1]
	elems, seen := 1, 1
	for d := len(shape) - 1; d >= 0; d-- {
		elems *= shape[d]
		if d > 0 && (shape[d-1] == 1 || strides[d-1] == elems*base) {
			continue
		}
		for v >= 0 && (seen < elems || view[v] == 1) {
			out[v] = seen * base
			seen *= view[v]
			v--
		}
		if seen != elems {
			return nil
		}
		if d > 0 {
			base, elems, seen = strides[d-1], 1, 1
		}
	}
	if v != -1 {
		return nil
	}
	return out
}
