package script

import (
	"fmt"
	"strings"

	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

const hiddenOrTorch = aten.Hidden | aten.Torch

// namespace resolves a dotted name under torch, math or typing.
func (l *lowering) namespace(path string, p Pos) value {
	switch path {
	case "torch", "torch.nn", "torch.nn.functional", "torch.linalg", "torch.special", "torch.autograd", "torch.jit", "torch.nn.init",
		"torch.random", "torch.utils", "torch.backends", "torch.cuda", "math", "typing", "torch.nn.modules", "torch.fft", "torch._C", "torch._C._nn":
		return &torchV{path}
	}
	base, name := path, ""
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		base, name = path[:i], path[i+1:]
	}
	switch base {
	case "torch":
		if v := l.torchConstant(name); v != nil {
			return v
		}
	case "math":
		if v, ok := mathConstants[name]; ok {
			return l.scalar(v)
		}
		if ir.LookupOp("math_"+name) != nil {
			return &builtinV{"math." + name}
		}
		l.fail(p, "module 'math' has no attribute '%s': the name is unknown", short(name))
	case "typing", "collections", "__future__", "torch.nn.modules":
		return &torchV{path}
	}
	if c := prelude().classes[strings.TrimPrefix(base, "torch.nn.")]; c != nil && strings.HasPrefix(base, "torch.nn.") {
		if d := c.method(name); d != nil && d.decorated("staticmethod") {
			return &funcV{d, nil}
		}
	}
	if strings.HasPrefix(path, "torch") {
		if specialFunctions[path] != nil || len(functionOverloads(path)) > 0 {
			return &torchV{path}
		}
		if base == "torch.nn" && knownLayer(name) || name != "" && strings.HasPrefix(base, "torch.nn.modules") {
			return &torchV{path}
		}
		l.fail(p, "module '%s' has no attribute '%s': the name is unknown or not supported", base, short(name))
	}
	l.fail(p, "module '%s' is not available in a script", short(path))
	return nil
}

// functionOverloads finds the functions that a dotted name may mean.
func functionOverloads(path string) []*aten.Fn {
	i := strings.LastIndexByte(path, '.')
	name := path[i+1:]
	var fns []*aten.Fn
	switch path[:i] {
	case "torch":
		fns = aten.Overloads(name, aten.Torch)
	case "torch.nn.functional", "torch._C._nn":
		fns = aten.Overloads(name, aten.NN)
		if len(fns) == 0 {
			switch name {
			case "sigmoid", "tanh", "softmax", "log_softmax", "relu", "conv1d", "conv2d", "conv3d", "pairwise_distance", "one_hot", "pdist", "bilinear", "prelu", "celu", "selu", "rrelu", "logsigmoid", "max_pool1d", "cosine_similarity", "pixel_shuffle", "channel_shuffle", "native_channel_shuffle":
				fns = aten.Overloads(name, aten.Torch)
			}
		}
	case "torch.linalg":
		if fns = aten.Overloads(name, aten.Linalg); len(fns) == 0 {
			fns = aten.Overloads("linalg_"+name, aten.Linalg)
		}
	case "torch.special":
		if fns = aten.Overloads(name, aten.Special); len(fns) == 0 {
			fns = aten.Overloads("special_"+name, aten.Special)
		}
	}
	if base, ok := strings.CutSuffix(path, "_"); ok && len(fns) == 0 && !strings.HasSuffix(base, "_") && !strings.HasSuffix(base, ".") {
		return functionOverloads(base) // torch.relu_: torchCall writes the result back
	}
	return fns
}

var dtypeNames = map[string]dtype.DType{
	"float32": dtype.F32, "float": dtype.F32, "float64": dtype.F64, "double": dtype.F64, "float16": dtype.F16, "half": dtype.F16,
	"bfloat16": dtype.BF16, "int64": dtype.I64, "long": dtype.I64, "int32": dtype.I32, "int": dtype.I32, "int16": dtype.I16,
	"short": dtype.I16, "int8": dtype.I8, "uint8": dtype.U8, "bool": dtype.Bool,
}

func (l *lowering) torchConstant(name string) value {
	if d, ok := dtypeNames[name]; ok {
		return l.scalar(d)
	}
	switch name {
	case "pi", "e", "inf", "nan":
		return l.scalar(mathConstants[name])
	case "channels_last", "contiguous_format", "preserve_format", "channels_last_3d", "strided":
		return l.scalar("torch." + name)
	case "Tensor", "Size", "device", "dtype", "Generator":
		return &torchV{"torch." + name}
	}
	return nil
}

// knowsMethod reports whether tensors have a method.
func (l *lowering) knowsMethod(name string) bool {
	return len(aten.Overloads(name, aten.Method)) > 0 || specialMethods[name] != nil || len(aten.Overloads(strings.TrimSuffix(name, "_"), aten.Method)) > 0
}

// tensorMethod lowers x.name(…) on a tensor.
func (l *lowering) tensorMethod(r *refV, name string, args []value, kws []kwValue, p Pos) value {
	l.at(p)
	if f := specialMethods[name]; f != nil {
		if v := f(l, r, args, kws, p); v != nil {
			return v
		}
	}
	if strings.HasSuffix(name, "_") && !strings.HasSuffix(name, "__") {
		return l.inPlaceMethod(r, name, args, kws, p)
	}
	fns := aten.Overloads(name, aten.Method)
	if len(fns) == 0 {
		l.fail(p, "'Tensor' object has no attribute or method '%s'", short(name))
	}
	return l.dispatchAten(fns, append([]value{r}, args...), kws, p, "Tensor."+name)
}

// function lowers a call of an aten function by its base name.
func (l *lowering) function(name string, where aten.Where, args []value, kws []kwValue, p Pos, what string) value {
	fns := aten.Overloads(name, where)
	if len(fns) == 0 {
		l.fail(p, "unknown function '%s'", what)
	}
	return l.dispatchAten(fns, args, kws, p, what)
}

// callAten is function for torch functions that surely exist, with one tensor as the result.
func (l *lowering) callAten(name string, args []value, kws []kwValue) *ir.Value {
	return l.irOf(l.function(name, aten.Torch|aten.NN|aten.Hidden|aten.Method, args, kws, l.pos, name))
}

// dispatchAten picks the overload that the arguments fit and emits the call.
func (l *lowering) dispatchAten(fns []*aten.Fn, args []value, kws []kwValue, p Pos, what string) value {
	var reasons []string
	for level := 0; level < 2; level++ {
		for _, fn := range fns {
			bound, reason := bind(fn, args, kws, level)
			if reason == "" {
				return l.emitAten(fn, bound, p)
			}
			if level == 1 {
				reasons = append(reasons, reason)
			}
		}
	}
	if len(reasons) == 1 {
		l.fail(p, "%s(): %s", what, reasons[0])
	}
	msg := fmt.Sprintf("%s(): the arguments match none of its %d forms; expected one of:", what, len(fns))
	for i, fn := range fns {
		if i == 6 {
			msg += "\n      …"
			break
		}
		msg += fmt.Sprintf("\n      %s: %s", fn.Schema, reasons[i])
	}
	l.fail(p, "%s", msg)
	return nil
}

// bind matches arguments with parameters; reason says why they do not fit.
func bind(fn *aten.Fn, args []value, kws []kwValue, level int) (bound []value, reason string) {
	params := fn.Params
	if fn.Random {
		params = params[:len(params)-1]
	}
	bound = make([]value, len(params))
	n := 0
	for n < len(args) {
		if n >= len(params) || params[n].KwOnly {
			count := 0
			for _, p := range params {
				if !p.KwOnly {
					count++
				}
			}
			return nil, fmt.Sprintf("expected at most %d arguments but %d were given", count, len(args))
		}
		last := n+1 == len(params) || params[n+1].KwOnly
		if last && params[n].Type.Kind == ir.KList && (len(args) > n+1 || params[n].IntOrList == 0) && allElements(args[n:], params[n].Type.Elems[0]) {
			bound[n] = &varArgs{args[n:]}
			break
		}
		bound[n] = args[n]
		n++
	}
	for _, k := range kws {
		i := paramNamed(params, k.name)
		if i < 0 {
			return nil, fmt.Sprintf("unknown keyword argument '%s'", short(k.name))
		}
		if bound[i] != nil {
			return nil, fmt.Sprintf("argument '%s' is specified twice", short(k.name))
		}
		bound[i] = k.v
	}
	for i, p := range params {
		if bound[i] == nil {
			if !p.HasDefault {
				return nil, fmt.Sprintf("missing value for argument '%s'", p.Name)
			}
			continue
		}
		if !fits(p, bound[i], level) {
			return nil, fmt.Sprintf("argument '%s': expected a value of type '%s' but found '%s'", p.Name, paramType(p), describe(bound[i]))
		}
	}
	return bound, ""
}

// paramAliases are names that eager PyTorch accepts for another.
var paramAliases = map[string]string{"axis": "dim", "keepdims": "keepdim", "x": "input", "input": "self", "x1": "self", "x2": "other", "data": "self"}

func paramNamed(params []aten.Param, name string) int {
	for try := name; try != ""; try = paramAliases[try] {
		for i, p := range params {
			if p.Name == try {
				return i
			}
		}
	}
	return -1
}

func paramType(p aten.Param) string {
	if p.Scalar {
		return "number"
	}
	return typeName(p.Type)
}

// varArgs are positional arguments that together are one list: x.view(2, 3).
type varArgs struct{ elems []value }

func allElements(vs []value, t ir.Type) bool {
	for _, v := range vs {
		u, ok := typeOf(v)
		if !ok || u.Kind != t.Kind || u.Kind != ir.KInt && u.Kind != ir.KTensor {
			return false
		}
	}
	return true
}

// fits reports whether v may be passed for p; level 1 allows numbers and tensors of one element to be converted.
func fits(p aten.Param, v value, level int) bool {
	if _, ok := v.(*varArgs); ok {
		return true
	}
	if r, ok := v.(*rangeV); ok {
		_ = r
		return unwrapped(p.Type).Kind == ir.KList && unwrapped(p.Type).Elems[0].Kind == ir.KInt
	}
	t, ok := typeOf(v)
	if !ok {
		tv, isTorch := v.(*torchV)
		return isTorch && unwrapped(p.Type).Kind == ir.KDType && tv.name == "torch.dtype"
	}
	if t.Kind == ir.KNone {
		return p.Optional
	}
	if isOptional(t) {
		if !p.Optional {
			return false
		}
		t = unwrapped(t)
	}
	want := unwrapped(p.Type)
	switch want.Kind {
	case ir.KTensor:
		return t.Kind == ir.KTensor
	case ir.KAny:
		if p.Scalar {
			return isNumber(t) || level == 1 && t.Kind == ir.KTensor
		}
		return true
	case ir.KInt:
		return t.Kind == ir.KInt || level == 1 && (t.Kind == ir.KBool || t.Kind == ir.KTensor || t.Kind == ir.KAny)
	case ir.KFloat:
		return t.Kind == ir.KFloat || level == 1 && (isNumber(t) || t.Kind == ir.KTensor)
	case ir.KBool:
		return t.Kind == ir.KBool || level == 1 && t.Kind == ir.KTensor
	case ir.KList:
		return fitsList(p, want, t, v)
	}
	return t.Kind == want.Kind
}

func fitsList(p aten.Param, want, t ir.Type, v value) bool {
	if p.IntOrList > 0 && t.Kind == ir.KInt {
		return true
	}
	elem := want.Elems[0]
	ok := func(e ir.Type) bool {
		if isOptional(elem) {
			return e.Kind == ir.KNone || unwrapped(e).Kind == elem.Elems[0].Kind
		}
		if elem.Kind == ir.KList {
			return e.Kind == ir.KList && e.Elems[0].Kind == elem.Elems[0].Kind || e.Kind == ir.KTuple
		}
		return e.Kind == elem.Kind || elem.Kind == ir.KFloat && e.Kind == ir.KInt
	}
	switch t.Kind {
	case ir.KList:
		if r, isRef := v.(*refV); isRef && len(r.path) == 0 {
			if s, static := r.cell.content.(*staticList); static && len(s.elems) == 0 {
				return true
			}
		}
		return ok(t.Elems[0])
	case ir.KTuple:
		for _, e := range t.Elems {
			if !ok(e) {
				return false
			}
		}
		return true
	}
	return false
}

// operand converts a bound argument to the IR value of its parameter.
func (l *lowering) operand(p aten.Param, v value) *ir.Value {
	if v == nil {
		return l.constant(p.Default)
	}
	want := unwrapped(p.Type)
	switch x := v.(type) {
	case *varArgs:
		elems := make([]*ir.Value, len(x.elems))
		for i, e := range x.elems {
			elems[i] = l.irOf(e)
		}
		return l.list(elems, want.Elems[0])
	case *tupleV:
		if want.Kind == ir.KList {
			return l.operand(p, l.sequence(x.elems, want.Elems[0]))
		}
		return l.irOf(x)
	case *scalarV:
		return l.scalarOperand(p, want, x)
	case *refV:
		if x.t.Kind == ir.KTensor {
			switch want.Kind {
			case ir.KInt:
				return l.op("item_int", l.read(x))
			case ir.KFloat:
				return l.op("item_float", l.read(x))
			case ir.KBool:
				return l.op("item_bool", l.read(x))
			case ir.KAny:
				if p.Scalar {
					return l.op("item", l.read(x))
				}
			}
		}
		if s, ok := l.static(x); ok && want.Kind == ir.KList {
			return l.irOf(l.sequence(s.elems, want.Elems[0]))
		}
		return l.read(x)
	}
	return l.irOf(v)
}

// sequence makes a list of elements of a type, converting ints to floats.
func (l *lowering) sequence(elems []value, elem ir.Type) value {
	out := make([]value, len(elems))
	for i, e := range elems {
		out[i] = e
		switch {
		case elem.Kind == ir.KFloat:
			if s, ok := e.(*scalarV); ok && s.t.Kind == ir.KInt {
				out[i] = scalarOf(l.op("py_float", s.v))
			}
		case elem.Kind == ir.KList:
			if t, ok := e.(*tupleV); ok {
				out[i] = l.sequence(t.elems, elem.Elems[0])
			}
		}
	}
	return l.freshList(ir.ListOf(elem), out)
}

func (l *lowering) scalarOperand(p aten.Param, want ir.Type, s *scalarV) *ir.Value {
	switch {
	case want.Kind == ir.KFloat && s.t.Kind != ir.KFloat && isNumber(s.t):
		return l.op("py_float", s.v)
	case want.Kind == ir.KInt && (s.t.Kind == ir.KBool || s.t.Kind == ir.KAny):
		return l.op("py_int", s.v)
	case want.Kind == ir.KList && s.t.Kind == ir.KInt:
		elems := make([]*ir.Value, p.IntOrList)
		for i := range elems {
			elems[i] = s.v
		}
		return l.list(elems, want.Elems[0])
	}
	return s.v
}

// emitAten emits a call and makes values of its results, which may share memory with its first argument.
func (l *lowering) emitAten(fn *aten.Fn, bound []value, p Pos) value {
	l.at(p)
	for i, v := range bound {
		if fn.Params[i].Name != "return_indices" {
			continue
		}
		with := aten.Lookup(fn.Name + "_with_indices")
		if d, ok := l.operand(fn.Params[i], v).Const(); ok && d == true && with != nil {
			fn = with
		}
	}
	args := make([]*ir.Value, 0, len(fn.Params))
	inplace := false
	for i, v := range bound {
		a := l.operand(fn.Params[i], v)
		if fn.Params[i].Name == "inplace" {
			if d, ok := a.Const(); ok && d.(bool) {
				inplace = true
				a = l.constant(false)
			}
		}
		args = append(args, a)
	}
	if fn.Random {
		args = append(args, l.op("rng"))
	}
	l.at(p)
	if base, ok := bound0(bound); ok && (fn.View || viewRules[fn.Name] != nil) && base.t.Kind == ir.KTensor {
		return l.emitView(fn, base, args)
	}
	if views := l.emitViewsOf(fn, bound, args); views != nil {
		return views
	}
	name := fn.Name
	switch name {
	case "batch_norm", "instance_norm":
		return l.statsNorm(fn, bound, args)
	case "embedding", "embedding_bag":
		l.renormTable(bound, args)
	case "batch_norm.torch", "instance_norm.torch": // weight and bias come before the statistics
		fn = aten.Lookup(fn.Base)
		move := func(i int) int { return [...]int{0, 3, 4, 1, 2, 5, 6, 7}[i] }
		stats, statArgs := make([]value, 8), make([]*ir.Value, 8)
		for i := range stats {
			stats[i], statArgs[i] = bound[move(i)], args[move(i)]
		}
		return l.statsNorm(fn, stats, statArgs)
	}
	outs := l.aten(name, fn.Returns, args...)
	results := make([]value, len(outs))
	for i, o := range outs {
		results[i] = l.result(o, fn.Returns[i])
	}
	if base, ok := bound0(bound); ok && len(results) == 1 && base.t.Kind == ir.KTensor {
		if inplace {
			l.writeTensor(base, outs[0])
			return base
		}
		if out, ok := results[0].(*refV); ok && out.t.Kind == ir.KTensor {
			l.maybeAlias(fn, base, out, args)
		}
	}
	if len(results) == 1 {
		return results[0]
	}
	t := l.tuple(results)
	t.names = resultNames(fn.Base, len(results))
	return t
}

// renormTable does to an embedding's table what max_norm asks for: the rows that are looked up are scaled down in place first.
func (l *lowering) renormTable(bound []value, args []*ir.Value) {
	const index, table, maxNorm, normType = 0, 1, 3, 4
	r, ok := bound[table].(*refV)
	if d, known := args[maxNorm].Const(); !ok || known && d == nil {
		return
	}
	l.writeTensor(r, l.aten1("embedding_renorm", l.read(r), args[index], args[maxNorm], args[normType]))
	args[table], args[maxNorm] = l.read(r), l.constant(nil)
}

// resultNames are the field names of functions that give named tuples.
func resultNames(base string, n int) []string {
	names := map[string]string{
		"max": "values indices", "min": "values indices", "median": "values indices", "nanmedian": "values indices", "mode": "values indices",
		"sort": "values indices", "topk": "values indices", "kthvalue": "values indices", "cummax": "values indices", "cummin": "values indices",
		"aminmax": "min max", "frexp": "mantissa exponent", "slogdet": "sign logabsdet", "linalg_slogdet": "sign logabsdet", "qr": "Q R",
		"linalg_qr": "Q R", "svd": "U S V", "linalg_svd": "U S Vh", "linalg_eigh": "eigenvalues eigenvectors", "linalg_eig": "eigenvalues eigenvectors",
		"symeig": "eigenvalues eigenvectors", "triangular_solve": "solution cloned_coefficient", "histogram": "hist bin_edges",
		"linalg_lstsq": "solution residuals rank singular_values", "linalg_lu": "P L U", "linalg_inv_ex": "inverse info", "linalg_cholesky_ex": "L info",
	}[base]
	fields := strings.Fields(names)
	if len(fields) != n {
		return nil
	}
	return fields
}

func bound0(bound []value) (*refV, bool) {
	if len(bound) == 0 {
		return nil, false
	}
	r, ok := bound[0].(*refV)
	return r, ok
}

// result makes a value of what an op gave. Under no_grad it is cut off from its gradient.
func (l *lowering) result(v *ir.Value, t ir.Type) value {
	if l.noGrad > 0 && t.Kind == ir.KTensor {
		v = l.op("detach", v)
	}
	return l.valueOf(v, t)
}

// writeTensor writes a value of the same shape and dtype to what r refers to. Under no_grad the write leaves the gradient alone.
func (l *lowering) writeTensor(r *refV, v *ir.Value) {
	if l.noGrad > 0 {
		v = l.op("graft", v, l.read(r))
	}
	l.write(r, v)
}

// statsNorm lowers a normalisation that updates running statistics in place while training.
func (l *lowering) statsNorm(fn *aten.Fn, bound []value, args []*ir.Value) value {
	mean, okM := bound[1].(*refV)
	variance, okV := bound[2].(*refV)
	training := l.constant(true)
	for i, p := range fn.Params {
		if p.Name == "training" || p.Name == "use_input_stats" {
			training = args[i]
		}
	}
	d, static := training.Const()
	if !okM && !okV || static && !d.(bool) {
		return l.result(l.aten(fn.Name, fn.Returns, args...)[0], ir.AnyTensor)
	}
	opt := ir.OptionalOf(ir.AnyTensor)
	outs := l.aten(fn.Name+"_stats", []ir.Type{ir.AnyTensor, opt, opt}, args...)
	for i, r := range []*refV{mean, variance} {
		if r == nil {
			continue
		}
		if r.t.Kind == ir.KOptional {
			l.fail(l.pos, "running statistics that may be None are not supported while training: check 'is not None' first")
		}
		next := l.op("unwrap", outs[i+1])
		if !static {
			old := l.read(r)
			next = l.choose(training, func() content { return next }, func() content { return old }, ir.AnyTensor)
		}
		l.write(r, l.op("detach", next))
	}
	return l.result(outs[0], ir.AnyTensor)
}

// inPlaceMethod lowers x.op_(…): x becomes x.op(…).
func (l *lowering) inPlaceMethod(r *refV, name string, args []value, kws []kwValue, p Pos) value {
	base := strings.TrimSuffix(name, "_")
	fns := aten.Overloads(base, aten.Method)
	if len(fns) == 0 {
		l.fail(p, "'Tensor' object has no attribute or method '%s'", short(name))
	}
	return l.writeBack(r, fns, name, args, kws, p)
}

// writeBack lowers a call whose result is written back to its first argument, r.
func (l *lowering) writeBack(r *refV, fns []*aten.Fn, name string, args []value, kws []kwValue, p Pos) value {
	base := strings.TrimSuffix(name, "_")
	switch base {
	case "t", "transpose", "squeeze", "unsqueeze", "swapaxes", "swapdims", "resize", "as_strided":
		l.fail(p, "%s() changes the shape of its tensor in place, which is not supported: write x = x.%s(…)", name, base)
	}
	now := &refV{t: r.t, cell: r.cell, path: r.path, cached: r.cached, stamp: r.stamp, contiguous: r.contiguous}
	v := l.dispatchAten(fns, append([]value{now}, args...), kws, p, "Tensor."+name)
	out, ok := v.(*refV)
	if !ok || out.t.Kind != ir.KTensor {
		l.fail(p, "'Tensor' object has no method '%s'", short(name))
	}
	l.at(p)
	l.writeTensor(r, l.aten1("write_result", l.read(r), l.read(out)))
	return r
}
