package script

import (
	"fmt"
	"strings"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// Options steer lowering.
type Options struct {
	// Train runs module classes in training mode.
	Train bool
	// KeepGrad leaves torch.autograd.grad as grad nodes, for what runs programs on a tape.
	KeepGrad bool
}

// Param describes a parameter of the entry function, without self.
type Param struct {
	Name string
	Type ir.Type // tensors are ir.AnyTensor
	// HasDefault says that the argument may be missing; Default then is its value (None for an Optional).
	HasDefault bool
	Default    ir.Datum
}

// Weight describes a parameter or buffer of a module class: one more input of the lowered function, after the parameters of
// forward, named as in the state dict.
type Weight struct {
	Name   string
	Shape  []int
	DType  dtype.DType
	Buffer bool
	// Value is what the constructor gives the weight, where that is not random; nil otherwise.
	Value *ir.Array
	// Init says how PyTorch initialises it: see layers.Init.
	Init string
	// Frozen says that the constructor set requires_grad to False.
	Frozen bool
	// Also lists further names, of a weight that stands at several places: the state dict has them all.
	Also []string
}

// Signature describes a lowered function: its inputs are Params and then Weights; its results are given flattened depth first
// where the result is a tuple (Result tells the structure).
type Signature struct {
	Params  []Param
	Weights []Weight
	Result  ir.Type
	// Updated lists the buffers and parameters that the function changes (running statistics, the weight of an embedding with max_norm); their new values follow the results.
	Updated []string
}

// Layers is the file with the layers of torch.nn: its classes are entries.
func Layers() *File { return prelude() }

// Entries lists the functions and module classes that the file defines, in order.
func (f *File) Entries() []string { return append([]string{}, f.order...) }

// Lower turns an entry of the file into a generic function: "forward", the name of another function, "Class", or
// "Class(width=8)". Errors are *Error values with the place in the source.
func (f *File) Lower(entry string, opts *Options) (fn *ir.Func, sig *Signature, err error) {
	if opts == nil {
		opts = &Options{}
	}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			fn, sig, err = nil, nil, e
		}
	}()
	name, call, err := f.parseEntry(entry)
	if err != nil {
		return nil, nil, err
	}
	fn, sig, err = f.lower(name, call, opts, false)
	if e, ok := err.(*Error); ok && e.shared {
		// What shares memory may be decidable once each iteration of the short loops is on its own.
		if fn2, sig2, err2 := f.lower(name, call, opts, true); err2 == nil {
			fn, sig, err = fn2, sig2, nil
		}
	}
	if err == nil && !opts.KeepGrad {
		err = autograd.ExpandGradNodes(fn)
	}
	if err != nil {
		return nil, nil, err
	}
	return fn, sig, nil
}

// lower runs the two passes over an entry.
func (f *File) lower(name string, call *callExpr, opts *Options, unroll bool) (fn *ir.Func, sig *Signature, err error) {
	plan := mirrorPlan{used: map[string]bool{}}
	loops := map[string]*loopPlan{}
	views := false
	for pass := 0; pass < 2; pass++ {
		final := pass == 1
		if final && plan.used[needViews] && !views {
			// What is written is a view chosen at run time: find out anew, with the numbers that choose it carried instead.
			views, final, pass = true, false, 0
			clear(loops)
		}
		limit := maxNodes
		l := &lowering{file: f, cells: map[*cell]cellState{}, sites: map[string]*cell{}, tagIDs: map[string]int{}, loops: loops, limit: &limit, unrollAll: unroll}
		l.mirror = mirrorPlan{used: plan.used, final: final, views: views}
		if err := catch(func() { fn, sig = l.entry(name, call, opts) }); err != nil {
			return nil, nil, err
		}
	}
	return fn, sig, nil
}

// parseEntry splits "Class(width=8)" into the name and the call.
func (f *File) parseEntry(entry string) (string, *callExpr, error) {
	src := newSource("--entry", entry)
	toks, err := scan(src, entry)
	if err != nil {
		return "", nil, err
	}
	var e expr
	err = catch(func() {
		p := &parser{src: src, toks: toks}
		e = p.expr()
		if p.cur().kind != tNewline {
			p.unexpected("the end")
		}
	})
	if err != nil {
		return "", nil, err
	}
	call, isCall := e.(*callExpr)
	if isCall {
		e = call.fn
	}
	n, ok := e.(*nameExpr)
	if !ok {
		return "", nil, fmt.Errorf("--entry %q is not a function or class name, or a class with arguments such as 'Net(width=8)'", short(entry))
	}
	if f.funcs[n.name] == nil && f.classes[n.name] == nil {
		have := strings.Join(f.order, ", ")
		if have == "" {
			have = "nothing"
		}
		return "", nil, fmt.Errorf("%s: no function or class '%s'; the file defines %s", f.src.name, short(n.name), short(have))
	}
	return n.name, call, nil
}

// catch runs f and gives the *Error that it stopped with.
func catch(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	f()
	return nil
}

// entry lowers the entry into a new function.
func (l *lowering) entry(name string, call *callExpr, opts *Options) (*ir.Func, *Signature) {
	l.f = ir.NewFunc(name)
	l.b = ir.NewBuilder(l.f)
	def := l.file.funcs[name]
	if c := l.file.classes[name]; c != nil {
		return l.entryClass(c, call, opts)
	}
	if call != nil {
		l.file.fail(def.pos, "'%s' is a function: its arguments are the inputs, not given in --entry", short(name))
	}
	sig := &Signature{}
	l.frame = &frame{def: def, vars: map[string]value{}, declared: map[string]ir.Type{}, gone: map[string]string{}, key: name}
	l.at(def.pos)
	l.checkDecorators(def)
	l.entryParams(def.params, def, sig)
	if def.ret != nil {
		t := l.annotation(def.ret)
		l.frame.ret = &t
	}
	l.finish(def.body)
	l.results(sig)
	return l.f, sig
}

func (f *File) fail(p Pos, format string, args ...any) { panic(f.src.errorf(p, format, args...)) }

// entryParams makes the function's inputs.
func (l *lowering) entryParams(params []param, def *funcDef, sig *Signature) {
	for _, prm := range params {
		t := ir.AnyTensor
		if prm.typ != nil {
			t = l.annotation(prm.typ)
		}
		p := Param{Name: prm.name, Type: t}
		if prm.deflt != nil {
			p.HasDefault, p.Default = true, l.constDefault(prm, t)
		} else if isOptional(t) {
			p.HasDefault = true
		}
		sig.Params = append(sig.Params, p)
		v := l.f.Param(prm.name, t)
		l.at(prm.pos)
		l.frame.vars[prm.name] = l.valueOf(v, t)
	}
}

// constDefault evaluates a default, which must be a constant.
func (l *lowering) constDefault(prm param, t ir.Type) ir.Datum {
	var v value
	blk := &ir.Block{}
	l.in(blk, func() {
		v = l.coerce(l.typed(prm.deflt, t), t, prm.deflt.at(), "default value of '"+short(prm.name)+"'")
		if d, ok := l.irOf(v).Const(); ok {
			v = d
			return
		}
		l.fail(prm.deflt.at(), "the default value of '%s' must be a constant", short(prm.name))
	})
	return v
}

// results emits the return node: the result flattened through tuples.
func (l *lowering) results(sig *Signature) {
	ret, ok := l.frame.vars["$ret"]
	if !ok {
		ret = l.none()
		if l.frame.ret != nil {
			ret = l.dummy(*l.frame.ret)
		}
	}
	t, _ := typeOf(ret)
	sig.Result = t
	if leaves(ret) > maxLeaves {
		l.fail(l.pos, "the result is too large: a tuple of more than %d elements", maxLeaves)
	}
	var outs []*ir.Value
	var flatten func(v value)
	flatten = func(v value) {
		if u, t, ok := isUnionValue(v); ok {
			tag, known := u.elems[0].(*scalarV).v.Const()
			if !known {
				l.fail(l.pos, "the function's result may be of several types, %s, depending on run-time values", typeName(t))
			}
			v = u.elems[1+int(tag.(int64))]
		}
		if tup, ok := v.(*tupleV); ok {
			for _, e := range tup.elems {
				flatten(e)
			}
			return
		}
		outs = append(outs, l.irOf(v))
	}
	flatten(ret)
	outs = append(outs, l.updatedBuffers(sig)...)
	l.try(func() { l.b.Return(outs...) })
}
