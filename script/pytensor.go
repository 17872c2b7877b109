package script

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/passes"
)

// Tensors in constructors.

// scaledInit is a random tensor times a number; nil for other tensors.
func scaledInit(w *weight, s float64) *weight {
	kind, arg, _ := strings.Cut(w.init, ":")
	if kind != "normal" && kind != "uniform" && kind != "value" {
		return nil
	}
	var numbers []string
	for _, n := range strings.Split(arg, ",") {
		a, err := strconv.ParseFloat(n, 64)
		if err != nil {
			return nil
		}
		numbers = append(numbers, strconv.FormatFloat(a*s, 'g', -1, 64))
	}
	c := *w
	c.param, c.name = false, ""
	c.init = kind + ":" + strings.Join(numbers, ",")
	return &c
}

// tensorExpr evaluates an expression that computes with tensors: it is lowered and run.
func (fr *pyFrame) tensorExpr(e expr) any {
	out := fr.runLowered(e.at(), e, func(l *lowering) *ir.Value { return l.irOf(l.expr(e)) })
	switch v := out.(type) {
	case *ir.Array:
		return &weight{shape: v.Shape, dtype: v.DType, value: v, init: "value"}
	case int64, float64, bool, string, nil, dtype.DType:
		return v
	case ir.List:
		l := &pyList{}
		for _, x := range v.Elems() {
			if a, ok := x.(*ir.Array); ok {
				l.elems = append(l.elems, &weight{shape: a.Shape, dtype: a.DType, value: a, init: "value"})
				continue
			}
			l.elems = append(l.elems, x)
		}
		return l
	}
	fr.fail(e.at(), "this expression is not supported in a constructor")
	return nil
}

// tensorStmt runs an assignment to a part of the tensor w, which the variable root holds.
func (fr *pyFrame) tensorStmt(s *assignStmt, root string, w *weight) {
	if root == "" {
		fr.fail(s.pos, "assignment to a part of a tensor needs a variable here")
	}
	walk := &tupleExpr{node: s.node, elems: append([]expr{s.value}, s.targets...)}
	out := fr.runLowered(s.pos, walk, func(l *lowering) *ir.Value {
		l.assignment(s)
		return l.irOf(l.frame.vars[root])
	})
	if a, ok := out.(*ir.Array); ok {
		w.value, w.init = a, "value"
	}
}

var resolver = passes.NewResolver()

// runLowered lowers with the frame's variables as constants and runs the result.
func (fr *pyFrame) runLowered(p Pos, e expr, build func(l *lowering) *ir.Value) ir.Datum {
	limit := 100_000
	l := &lowering{file: fr.file, cells: map[*cell]cellState{}, sites: map[string]*cell{}, tagIDs: map[string]int{}, loops: map[string]*loopPlan{}, limit: &limit}
	l.mirror = mirrorPlan{used: map[string]bool{}}
	l.f = ir.NewFunc("constructor")
	l.b = ir.NewBuilder(l.f)
	l.frame = &frame{def: &funcDef{name: "constructor", file: fr.file}, vars: map[string]value{}, declared: map[string]ir.Type{}, gone: map[string]string{}}
	l.at(p)
	names := map[string]bool{}
	collectNames(e, names)
	for _, name := range sortedNames(names) {
		if v, ok := fr.vars[name]; ok {
			l.frame.vars[name] = l.pyValue(v, &attrExpr{node{p}, nil, name})
		}
	}
	out := build(l)
	l.try(func() { l.b.Return(out) })
	ev := &ir.Evaluator{Resolve: resolver.Resolve}
	rs, err := ev.Run(context.Background(), l.f)
	if err != nil {
		fr.fail(p, "%s", err)
	}
	return rs[0]
}

// array is the tensor's value; random ones are zeros here: their values come with the weights.
func (w *weight) array() *ir.Array {
	if w.value != nil {
		return w.value
	}
	fill := 0.0
	if v, ok := strings.CutPrefix(w.init, "value:"); ok {
		fill, _ = strconv.ParseFloat(v, 64)
	}
	a := ir.FromFloats(w.dtype, nil, []float64{fill})
	return a.View(append([]int{}, w.shape...), make([]int, len(w.shape)), 0)
}

// convert changes the dtype of a floating-point tensor.
func (w *weight) convert(d dtype.DType) {
	if !w.dtype.IsFloat() {
		return
	}
	if w.value != nil {
		w.value = ir.FromFloats(d, w.shape, w.value.Floats())
	}
	w.dtype = d
}

// newTensor is a tensor of a shape that an initialisation describes.
func newTensor(shape []int, d dtype.DType, init string) *weight {
	if d == dtype.Invalid {
		d = dtype.F32
	}
	return &weight{shape: shape, dtype: d, init: init}
}

func (fr *pyFrame) shapeOf(v any, p Pos) []int {
	var out []int
	elems := []any{v}
	if _, ok := v.(int64); !ok {
		elems = fr.elements(v, p)
	}
	n := 1
	for _, e := range elems {
		k, ok := e.(int64)
		if !ok || k < 0 {
			fr.fail(p, "a size must be a non-negative int, not %s", pyStr(e))
		}
		if k > 0 && n > (1<<40)/int(k) {
			fr.fail(p, "the tensor is too large: a shape with %v", append(out, int(k)))
		}
		n *= max(int(k), 1)
		out = append(out, int(k))
	}
	return out
}

func (fr *pyFrame) create(name string, args []any, dt dtype.DType, p Pos) *weight {
	fill := map[string]string{"torch.zeros": "value:0", "torch.ones": "value:1", "torch.empty": "value:0", "torch.randn": "normal:1", "torch.rand": "uniform:0,1"}[name]
	if name == "torch.full" {
		v, ok := toFloat(args[len(args)-1])
		if !ok || len(args) != 2 {
			return nil
		}
		if _, isInt := args[1].(int64); isInt && dt == dtype.Invalid {
			dt = dtype.I64
		}
		return newTensor(fr.shapeOf(args[0], p), dt, "value:"+strconv.FormatFloat(v, 'g', -1, 64))
	}
	var shape any = pyTuple(args)
	if len(args) == 1 {
		shape = args[0]
	}
	return newTensor(fr.shapeOf(shape, p), dt, fill)
}

// initialise is a function of torch.nn.init, which changes how a tensor starts.
func (fr *pyFrame) initialise(name string, args []any, kws map[string]any, p Pos) any {
	if len(args) == 0 {
		return nil
	}
	if name == "calculate_gain" {
		activation, _ := args[0].(string)
		slope, given := toFloat(argOr(args, 1))
		if !given {
			slope = 0.01
		}
		return initGain(activation, slope)
	}
	w, ok := args[0].(*weight)
	if !ok {
		return nil
	}
	num := func(i int, key string, deflt float64) float64 {
		v := kws[key]
		if i < len(args) {
			v = args[i]
		}
		if f, ok := toFloat(v); ok {
			return f
		}
		return deflt
	}
	fanIn, fanOut := 1.0, 1.0
	if len(w.shape) > 1 {
		field := 1.0
		for _, n := range w.shape[2:] {
			field *= float64(n)
		}
		fanIn, fanOut = float64(w.shape[1])*field, float64(w.shape[0])*field
	}
	text := func(kind string, vs ...float64) {
		for i, v := range vs {
			if i > 0 {
				kind += ","
			}
			kind += strconv.FormatFloat(v, 'g', -1, 64)
		}
		w.init, w.value = kind, nil
	}
	switch strings.TrimSuffix(name, "_") {
	case "zeros":
		text("value:", 0)
	case "ones":
		text("value:", 1)
	case "constant":
		text("value:", num(1, "val", 0))
	case "normal", "trunc_normal":
		text("normal:", num(1, "mean", 0), num(2, "std", 1))
	case "uniform":
		text("uniform:", num(1, "a", 0), num(2, "b", 1))
	case "xavier_uniform":
		text("uniform:", num(1, "gain", 1)*math.Sqrt(6/(fanIn+fanOut)))
	case "xavier_normal":
		text("normal:", num(1, "gain", 1)*math.Sqrt(2/(fanIn+fanOut)))
	case "kaiming_uniform", "kaiming_normal":
		fan := fanIn
		if kws["mode"] == "fan_out" || len(args) > 2 && args[2] == "fan_out" {
			fan = fanOut
		}
		activation, _ := kws["nonlinearity"].(string)
		gain := initGain(activation, num(1, "a", 0))
		if strings.HasPrefix(name, "kaiming_n") {
			text("normal:", gain/math.Sqrt(fan))
		} else {
			text("uniform:", gain*math.Sqrt(3/fan))
		}
	case "eye":
		if len(w.shape) == 2 {
			w.value, w.init = ir.NewArray(w.dtype, w.shape...), "value"
			for i := range min(w.shape[0], w.shape[1]) {
				w.value.SetFloat(i*w.shape[1]+i, 1)
			}
		}
	case "orthogonal", "dirac", "sparse":
		text("normal:", 1/math.Sqrt(fanIn))
	default:
		fr.fail(p, "torch.nn.init.%s is not known", short(name))
	}
	return w
}

// initGain is torch.nn.init.calculate_gain; no activation means leaky_relu.
func initGain(activation string, slope float64) float64 {
	switch activation {
	case "tanh":
		return 5.0 / 3
	case "relu":
		return math.Sqrt2
	case "selu":
		return 0.75
	case "", "leaky_relu":
		return math.Sqrt(2 / (1 + slope*slope))
	}
	return 1
}

func (fr *pyFrame) weightMethod(w *weight, name string, args []any, kws map[string]any, e *callExpr) any {
	switch name {
	case "size":
		if len(args) == 1 {
			i, _ := args[0].(int64)
			if i < 0 {
				i += int64(len(w.shape))
			}
			if i >= 0 && i < int64(len(w.shape)) {
				return int64(w.shape[i])
			}
			fr.fail(e.pos, "dimension out of range")
		}
		return pyInts(w.shape)
	case "dim", "ndimension":
		return int64(len(w.shape))
	case "numel", "nelement":
		n := int64(1)
		for _, k := range w.shape {
			n *= int64(k)
		}
		return n
	case "normal_", "uniform_", "zero_", "fill_", "copy_", "ones_", "constant_":
		to := map[string]string{"zero_": "zeros_", "fill_": "constant_"}[name]
		if to == "" {
			to = name
		}
		if to == "copy_" {
			if o, ok := args[0].(*weight); ok {
				w.init, w.value = o.init, o.value
			}
			return w
		}
		return fr.initialise(to, append([]any{w}, args...), kws, e.pos)
	case "requires_grad_":
		w.frozen = len(args) > 0 && !fr.truth(args[0])
		return w
	case "half", "double", "bfloat16", "float":
		c := *w
		c.param, c.buffer, c.name = false, false, ""
		c.convert(map[string]dtype.DType{"float": dtype.F32, "double": dtype.F64, "half": dtype.F16, "bfloat16": dtype.BF16}[name])
		return &c
	case "contiguous", "detach", "clone":
		if name == "clone" {
			c := *w
			c.param, c.buffer, c.name = false, false, ""
			return &c
		}
		return w
	}
	return fr.tensorExpr(e)
}
