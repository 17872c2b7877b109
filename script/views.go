package script

import (
	"fmt"

	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/ir"
)

// viewRules gives for each view function what is known of the memory layout of its result.
var viewRules = map[string]func(l *lowering, r *refV, args []*ir.Value) tri{
	"select.int": firstDim, "slice.Tensor": firstDimStep, "narrow": firstDim, "unbind": nil,
	"unsqueeze": keepLayout, "squeeze": keepLayout, "squeeze.dim": keepLayout, "view": keepLayout, "view_as": keepLayout, "view.dtype": keepLayout,
	"atleast_1d": keepLayout, "atleast_2d": keepLayout, "atleast_3d": keepLayout,
	"unflatten": keepLayout, "detach": keepLayout, "alias": keepLayout, "positive": keepLayout,
}

func keepLayout(_ *lowering, r *refV, _ []*ir.Value) tri { return r.contiguous }

func firstDim(_ *lowering, r *refV, args []*ir.Value) tri {
	if d, ok := args[1].Const(); ok && d == int64(0) {
		return r.contiguous
	}
	return no
}

func firstDimStep(l *lowering, r *refV, args []*ir.Value) tri {
	if d, ok := args[4].Const(); ok && d == int64(1) {
		return firstDim(l, r, args)
	}
	return no
}

// listViews are the functions that give lists of views, and how the pieces go together again.
var listViews = map[string]func(args []*ir.Value) func(l *lowering, list *ir.Value) *ir.Value{}

func init() {
	cat := func(dim int) func(args []*ir.Value) func(l *lowering, list *ir.Value) *ir.Value {
		return func(args []*ir.Value) func(l *lowering, list *ir.Value) *ir.Value {
			return func(l *lowering, list *ir.Value) *ir.Value { return l.aten1("cat", list, args[dim]) }
		}
	}
	for _, name := range []string{"split.Tensor", "split.sizes", "split.torch", "split.torch_sizes", "split_with_sizes", "chunk", "unsafe_chunk", "unsafe_split",
		"tensor_split.sections", "tensor_split.indices", "tensor_split.sections_method", "tensor_split.indices_method"} {
		listViews[name] = cat(2)
	}
	for i, name := range []string{"vsplit", "hsplit", "dsplit"} {
		stack := []string{"vstack", "hstack", "dstack"}[i]
		joined := func([]*ir.Value) func(l *lowering, list *ir.Value) *ir.Value {
			return func(l *lowering, list *ir.Value) *ir.Value { return l.aten1(stack, list) }
		}
		listViews[name+".int"], listViews[name+".array"] = joined, joined
	}
	listViews["unbind"] = func(args []*ir.Value) func(l *lowering, list *ir.Value) *ir.Value {
		return func(l *lowering, list *ir.Value) *ir.Value { return l.aten1("stack", list, args[1]) }
	}
}

// emitView lowers a function whose result shares memory with its first argument.
func (l *lowering) emitView(fn *aten.Fn, base *refV, args []*ir.Value) value {
	if len(fn.Returns) == 1 && fn.Returns[0].Kind == ir.KList {
		return l.emitPieces(fn, base, args)
	}
	switch fn.Name {
	case "view", "view_as":
		l.checkView(fn.Name, base, args)
	case "as_strided": // counts in the storage, whatever view of it this is
		if len(base.path) > 0 && unwrapped(base.cell.t).Kind == ir.KTensor {
			if d, ok := args[3].Const(); ok && d == nil {
				args[3] = l.storageOffset(base)
			}
			base = &refV{t: base.t, cell: base.cell}
		}
	}
	layout := no
	if rule := viewRules[fn.Name]; rule != nil {
		layout = rule(l, base, args)
	}
	return l.view(base, viewStep(fn.Name, args[1:]), layout)
}

func (l *lowering) emitPieces(fn *aten.Fn, base *refV, args []*ir.Value) value {
	join := listViews[fn.Name]
	t := ir.ListOf(ir.AnyTensor)
	list := l.aten(fn.Name, []ir.Type{t}, args...)[0]
	if join == nil {
		out := l.fresh(list, t)
		l.addHolds(out.cell, []hold{l.holdOn(base)})
		return out
	}
	p := &pieces{base: base, fn: fn.Name, args: args[1:], list: list, at: l.stampOf(base.cell), join: join(args)}
	return &refV{t: t, cell: l.newCell(t, p)}
}

// emitViewsOf lowers a function of a list of tensors that gives a view of each; nil for other functions and for lists of unknown length.
func (l *lowering) emitViewsOf(fn *aten.Fn, bound []value, args []*ir.Value) value {
	var view func(r *refV, i, n int) *refV
	switch fn.Base {
	case "broadcast_tensors", "meshgrid":
		list := l.aten(fn.Name, []ir.Type{ir.ListOf(ir.AnyTensor)}, args...)[0]
		xy := false
		if len(args) > 1 {
			mode, _ := args[1].Const()
			xy = mode == "xy"
		}
		view = func(r *refV, i, n int) *refV {
			if fn.Base == "meshgrid" {
				at := i
				if xy && n > 1 && i < 2 {
					at = 1 - i
				}
				sizes := make([]*ir.Value, n)
				for k := range sizes {
					sizes[k] = l.int(1)
				}
				sizes[at] = l.int(-1)
				r = l.step(r, "view", l.list(sizes, ir.Int))
			}
			return l.step(r, "expand", l.op("shape", l.op("list_get", list, l.int(i))), l.constant(false))
		}
	case "atleast_1d", "atleast_2d", "atleast_3d":
		view = func(r *refV, _, _ int) *refV { return l.step(r, fn.Base) }
	default:
		return nil
	}
	if len(bound) == 0 {
		return nil
	}
	var elems []value
	switch x := bound[0].(type) {
	case *varArgs:
		elems = x.elems
	case *tupleV:
		elems = x.elems
	case *refV:
		if s, ok := l.static(x); ok {
			elems = s.elems
		}
	}
	if len(elems) == 0 {
		return nil
	}
	out := make([]value, len(elems))
	for i, e := range elems {
		r, ok := isTensor(e)
		if !ok {
			return nil
		}
		out[i] = view(r, i, len(elems))
	}
	return l.freshList(ir.ListOf(ir.AnyTensor), out)
}

// storageOffset is the place in its storage where what r refers to starts.
func (l *lowering) storageOffset(r *refV) *ir.Value {
	l.sync(r.cell)
	numbers := l.aten1("write_index", l.asIR(r.cell, l.state(r.cell).content))
	for _, s := range r.path {
		numbers = s.read(l, numbers)
	}
	return l.op("index_offset", numbers)
}

// unbind is the list of the slices of a tensor along its first dimension.
func (l *lowering) unbind(r *refV) *refV {
	return l.function("unbind", aten.Method, []value{r}, nil, l.pos, "unbind").(*refV)
}

// strides gives the sizes and PyTorch's strides of what r refers to, as IR lists; ok is false where they are not known.
func (l *lowering) strides(r *refV) (shape, strides *ir.Value, ok bool) {
	if r.cell.content == nil || len(r.cell.mirrors) > 0 {
		return nil, nil, false
	}
	l.sync(r.cell)
	cur, isTensor := l.state(r.cell).content.(*ir.Value)
	if !isTensor || unwrapped(r.cell.t).Kind != ir.KTensor {
		return nil, nil, false
	}
	storage := cur
	strides = l.op("dense_strides", l.op("shape", cur))
	for _, s := range r.path {
		if s.name == "unwrap" {
			cur = s.read(l, cur)
			storage = cur
			continue
		}
		if strides, ok = l.stepStrides(s, cur, strides); !ok {
			return l.numberedStrides(storage, r.path)
		}
		cur = s.read(l, cur)
	}
	return l.op("shape", cur), strides, true
}

// numberedStrides is strides for any views: the storage's element numbers, seen through the same views, tell.
func (l *lowering) numberedStrides(storage *ir.Value, path []*step) (shape, strides *ir.Value, ok bool) {
	numbers := l.aten1("write_index", storage)
	for _, s := range path {
		switch s.name {
		case "unwrap":
		case "view.dtype":
			return nil, nil, false
		default:
			numbers = s.read(l, numbers)
		}
	}
	return l.op("shape", numbers), l.op("index_strides", numbers), true
}

// stepStrides gives the strides after a view step.
func (l *lowering) stepStrides(s *step, base, strides *ir.Value) (*ir.Value, bool) {
	at := func(i *ir.Value) *ir.Value { return l.op("list_get", strides, i) }
	switch s.name {
	case "transpose.int", "swapaxes", "swapdims":
		a, b := s.args[0], s.args[1]
		return l.op("list_set", l.op("list_set", strides, a, at(b)), b, at(a)), true
	case "t", "numpy_T":
		return l.op("list_reverse", strides), true
	case "mT":
		a, b := l.int(-1), l.int(-2)
		return l.op("list_set", l.op("list_set", strides, a, at(b)), b, at(a)), true
	case "permute":
		if s.args[0].Def != nil && s.args[0].Def.Op == ir.OpList {
			var out []*ir.Value
			for _, d := range s.args[0].Def.Args {
				out = append(out, at(d))
			}
			return l.list(out, ir.Int), true
		}
	case "select.int":
		return l.op("list_remove", strides, s.args[0]), true
	case "slice.Tensor":
		return l.op("list_set", strides, s.args[0], l.op("py_mul", at(s.args[0]), s.args[3])), true
	case "narrow":
		return strides, true
	case "view", "view_as", "reshape", "reshape_as", "flatten", "unflatten", "ravel":
		return l.op("view_strides", l.op("shape", base), strides, l.op("shape", s.read(l, base))), true
	case "detach", "alias":
		return strides, true
	case "expand", "expand_as", "broadcast_to":
		return l.op("expand_strides", l.op("shape", base), strides, l.op("shape", s.read(l, base))), true
	case "unsqueeze":
		if d, ok := s.args[0].Const(); ok && d.(int64) >= 0 {
			return l.op("list_insert", strides, s.args[0], l.int(1)), true
		}
	}
	return nil, false
}

// checkView reports at run time a view that PyTorch's memory layout does not allow.
func (l *lowering) checkView(name string, r *refV, args []*ir.Value) {
	if r.contiguous == yes {
		return
	}
	shape, strides, ok := l.strides(r)
	if !ok {
		return
	}
	target := args[1]
	if name == "view_as" {
		target = l.op("shape", args[1])
	}
	l.op("view_strides", shape, strides, target)
}

// maybeAlias takes note that a function's result may be its argument itself, or a view of it, depending on run-time facts.
func (l *lowering) maybeAlias(fn *aten.Fn, base, out *refV, args []*ir.Value) {
	key := fmt.Sprintf("%s/%s%d:%d", l.frame.key, fn.Name, l.pos.Line, l.pos.Col)
	arg := func(name string) *ir.Value {
		for i, p := range fn.Params {
			if p.Name == name {
				return args[i]
			}
		}
		return nil
	}
	same := func(guard func() *ir.Value) { l.addMirror(out.cell, key, base, guard) }
	switch fn.Base {
	case "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout":
		training := arg("training")
		if training == nil {
			training = arg("train")
		}
		if training != nil {
			same(func() *ir.Value { return l.op("py_not", training) })
		}
	case "contiguous":
		if base.contiguous == yes && arg("memory_format").Def != nil && arg("memory_format").Def.Attrs.Value == nil {
			same(func() *ir.Value { return l.constant(true) })
			return
		}
		l.aliasIfContiguous(out, base, key)
	case "reshape", "reshape_as", "flatten", "ravel":
		l.aliasIfViewable(fn, out, base, args, key)
	default:
		if !fn.MayView {
			return
		}
		if c := arg("copy"); c != nil {
			if d, ok := c.Const(); ok && d == true {
				return
			}
		}
		same(func() *ir.Value { return l.op("py_eq", l.op("dtype_of", l.read(base)), l.op("dtype_of", l.read(out))) })
	}
}

func (l *lowering) aliasIfContiguous(out, base *refV, key string) {
	l.addMirror(out.cell, key, base, func() *ir.Value {
		shape, strides, ok := l.strides(base)
		if !ok {
			out.cell.poison = "this tensor may or may not share memory with the one it was made from: write to a copy made with .clone()"
			return l.constant(false)
		}
		// strides of dimensions of size one do not matter: a view of the same shape tells
		return l.op("can_view", shape, strides, l.list([]*ir.Value{l.int(-1)}, ir.Int))
	})
}

func (l *lowering) aliasIfViewable(fn *aten.Fn, out, base *refV, args []*ir.Value, key string) {
	s := viewStep(fn.Name, args[1:])
	through := &refV{t: ir.AnyTensor, cell: base.cell, path: append(append([]*step{}, base.path...), s)}
	if base.contiguous == yes {
		l.addMirror(out.cell, key, through, func() *ir.Value { return l.constant(true) })
		return
	}
	l.addMirror(out.cell, key, through, func() *ir.Value {
		shape, strides, ok := l.strides(base)
		if !ok {
			out.cell.poison = "this tensor may or may not share memory with the one it was made from: write to a copy made with .clone()"
			return l.constant(false)
		}
		return l.op("can_view", shape, strides, l.op("shape", l.read(out)))
	})
}
