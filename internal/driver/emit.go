package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/codegen/ptx"
	"github.com/gtc-project/gtc/internal/atomicfile"
	"github.com/gtc-project/gtc/internal/pkgfile"
	"github.com/gtc-project/gtc/internal/safetensors"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
	"github.com/gtc-project/gtc/runtime"
)

// Emit says what Compile makes.
type Emit struct {
	Form   string // package, ir, obj, llvm, asm, ptx, go (so is not available yet); "" goes by Output's name
	Output string // "" is Stdout, for text only
	Observe
	Stdout io.Writer
}

// forms maps file extensions to forms.
var forms = map[string]string{".gtc": "package", ".gtir": "ir", ".so": "so", ".o": "obj", ".ll": "llvm", ".s": "asm", ".ptx": "ptx", ".go": "go"}

// Check settles the form and finds options that can never be right.
func (e *Emit) Check(o *Options) error {
	if e.Form == "" {
		ext := filepath.Ext(e.Output)
		if e.Form = forms[ext]; e.Form == "" && ext != "" {
			return fmt.Errorf("-o %s: the name does not say which form is meant; name it by --emit, or end the name in .gtc, .gtir, .ll, .s, .o, .ptx or .go", shortText(e.Output))
		}
		e.Form = cmp.Or(e.Form, "package")
	}
	if err := e.Observe.check(); err != nil {
		return err
	}
	switch e.Form {
	case "package", "so", "obj", "go":
		if e.Output == "" {
			return fmt.Errorf("--emit=%s needs -o FILE", e.Form)
		}
	case "ir", "llvm", "asm", "ptx":
	default:
		return fmt.Errorf("--emit=%s is not known; the forms are package, ir, so, obj, llvm, asm, ptx and go", shortText(e.Form))
	}
	return e.checkTarget(o)
}

// checkTarget finds a target or an architecture that does not go with the form.
func (e *Emit) checkTarget(o *Options) error {
	of := map[string]string{"so": TargetCPU, "obj": TargetCPU, "llvm": TargetCPU, "asm": TargetCPU, "ptx": TargetCUDA}[e.Form]
	switch {
	case of == "" && !o.nativeArch():
		return fmt.Errorf("--arch goes with machine code: --emit=llvm, asm, obj or ptx; a %s is compiled where it runs", e.Form)
	case of != "" && o.Target != "" && o.Target != of:
		return fmt.Errorf("--emit=%s goes with --target=%s", e.Form, of)
	}
	return nil
}

// Compile makes a file of a model.
func Compile(ctx context.Context, path string, o *Options, e *Emit) error {
	if e.Form == "so" {
		return errors.New("--emit=so is not available yet in this version; obj has the kernels, and go makes a Go package of the model")
	}
	load := loadShape
	if e.Form == "package" || e.Form == "go" {
		load = Load
	}
	m, err := load(path, o)
	if err != nil {
		return err
	}
	if err := m.checkBudget(o); err != nil {
		return err
	}
	switch e.Form {
	case "package", "ir", "go":
		err = m.emitIR(o, e)
	default:
		err = m.emitCode(ctx, o, e)
	}
	if err != nil {
		return err
	}
	return e.finish()
}

// checkBudget fails where a run of what is compiled takes more memory than the options allow.
func (m *Model) checkBudget(o *Options) error {
	if o.MemoryBudget == 0 {
		return nil
	}
	e, err := newEngine(o, false)
	if err != nil {
		return err
	}
	f, err := m.concrete(o, &Observe{}, "--memory-budget")
	if err != nil {
		return err
	}
	n, err := e.PlannedBytes(f)
	if err != nil {
		return err
	}
	return o.fits(e, int64(n))
}

// emitIR writes the model's function as text, packed with its weights, or as a Go package.
func (m *Model) emitIR(o *Options, e *Emit) error {
	names := e.names()
	if names == nil && e.Form != "ir" {
		names = []string{"expand-grad", "specialise"} // kernels are chosen where it runs
	}
	f, err := m.shape(o, names, &e.Observe)
	switch {
	case err != nil:
		return err
	case e.Form == "go" && !o.hasSignature():
		return fmt.Errorf("--emit=go needs a signature: give --input NAME=f32[2,3] for every tensor, or --inputs FILE.npz; a name such as N leaves a size open")
	case e.Form == "package":
		return m.writePackage(e.Output, f)
	case e.Form == "go":
		return m.writeGo(e.Output, f)
	}
	return e.write([]byte(printIR(f)))
}

// emitCode writes the kernels of the function for the signature that the options give.
func (m *Model) emitCode(ctx context.Context, o *Options, e *Emit) error {
	f, err := m.concrete(o, &e.Observe, "--emit="+e.Form)
	if err != nil {
		return err
	}
	var code []byte
	if e.Form == "ptx" {
		arch := o.Arch
		if o.nativeArch() {
			arch = ptx.DefaultArch
		}
		var text string
		text, err = ptx.Module(f, arch)
		code = []byte(text)
	} else {
		code, err = runtime.Emit(ctx, f, o.Arch, e.Form)
	}
	if err != nil {
		return err
	}
	return e.write(code)
}

// write writes data to where the options want it.
func (e *Emit) write(data []byte) error {
	if e.Output != "" {
		return atomicfile.WriteBytes(e.Output, data)
	}
	_, err := e.Stdout.Write(data)
	return err
}

// hasSignature reports whether the options say with which types the model is compiled.
func (o *Options) hasSignature() bool { return len(o.Input) > 0 || o.Inputs != "" }

// concrete gives the function as it runs on arguments such as the options name: specialised for their sizes and for the values of numbers, with
// the gradient if that is asked for, and with fused kernels. what is the option that wants it, for messages.
func (m *Model) concrete(o *Options, e *Observe, what string) (*ir.Func, error) {
	if !o.hasSignature() {
		return nil, fmt.Errorf("%s needs a signature: give --input NAME=f32[2,3] for every tensor, or --inputs FILE.npz", what)
	}
	types, err := Signature(m.Params, o)
	if err != nil {
		return nil, err
	}
	for i, t := range types {
		if t.IsTensor() && t.Ranked && !t.Static() {
			return nil, fmt.Errorf("%s: %s has type %s, but machine code needs every size; give --input %[2]s=f32[2,3] or the like", what, m.Params[i].Name, t)
		}
	}
	plain := *o
	plain.Grad = false
	bound, err := Arguments(m.Params, &plain)
	if err != nil {
		return nil, err
	}
	args := m.arguments(bound)
	var grad *autograd.Options
	if o.Grad {
		grad = &autograd.Options{}
		for i := range args {
			if m.wantsGradient(i, args[i]) {
				grad.Wrt = append(grad.Wrt, i)
			}
		}
	}
	e.start(m.Func)
	return passes.Compile(m.Func, args, grad, passes.Options{Passes: laterPasses(e.names()), After: e.after()})
}

// arguments are the arguments of the model's function: those of a call, and the weights.
func (m *Model) arguments(bound *Bound) []ir.Datum {
	args := slices.Clone(bound.Args)
	for _, w := range m.Weights {
		args = append(args, w.Array)
	}
	return args
}

// shape gives the model's function as the options want it: specialised where there is a signature, differentiated with Grad, and with the named
// passes applied. nil names the default ones, but leaves a function without a signature as it is unless somebody looks on.
func (m *Model) shape(o *Options, names []string, e *Observe) (*ir.Func, error) {
	f := m.Func.Clone()
	e.start(f)
	if !o.hasSignature() && !o.Grad && len(names) == 0 && !e.looking() {
		return f, nil
	}
	if !o.hasSignature() && !o.Grad {
		return runPasses(f, names, e)
	}
	if err := autograd.ExpandGradNodes(f); err != nil {
		return nil, err
	}
	if !o.hasSignature() {
		g, err := m.differentiate(f, f)
		if err != nil || len(names) == 0 && !e.looking() {
			return g, err
		}
		return runPasses(g, names, e)
	}
	types, err := Signature(m.Params, o)
	if err != nil {
		return nil, err
	}
	for _, w := range m.Weights {
		types = append(types, w.Array.Type())
	}
	begin := time.Now()
	s, err := specialise(f, types)
	if err == nil && o.Grad {
		s, err = m.differentiate(s, f)
	}
	if err != nil {
		return nil, err
	}
	if e.looking() {
		e.show("specialise", s, time.Since(begin))
	}
	return runPasses(s, laterPasses(names), e)
}

// laterPasses are those of the named passes, nil for the default ones, that follow the specialisation for a signature.
func laterPasses(names []string) []string {
	later := []string{}
	for _, p := range passes.Table {
		if p.Name != "expand-grad" && p.Name != "specialise" && (names == nil && p.Default || slices.Contains(names, p.Name)) {
			later = append(later, p.Name)
		}
	}
	return later
}

// differentiate gives the gradient of a specialised function with respect to every parameter that has one; where an op on the way needs types that
// only a run shows, that of the generic one, for the same types. Cotangents come before the weights, and new values of buffers last, as packages want it.
func (m *Model) differentiate(s, generic *ir.Func) (*ir.Func, error) {
	var wrt []int
	for i, p := range s.Body.Params {
		if ir.MayCarryGradient(p.Type) && (i < len(m.Params) || m.Weights[i-len(m.Params)].Trainable) {
			wrt = append(wrt, i)
		}
	}
	cts := autograd.HasCotangent(s)
	for i := len(cts) - m.Updated; i < len(cts); i++ {
		cts[i] = false
	}
	g, err := autograd.Grad(s, wrt, cts)
	if err != nil && s != generic {
		if g, err = autograd.Grad(generic, wrt, cts); err == nil {
			types := paramTypes(s)
			for i, t := range s.ResultTypes() {
				if cts[i] {
					types = append(types, t)
				}
			}
			g, err = specialise(g, types)
		}
	} else if err == nil && s != generic {
		g, err = specialise(g, paramTypes(g))
	}
	if err != nil {
		return nil, err
	}
	own := len(m.Params)
	rotate(g.Body.Params, own, own+len(m.Weights))
	rotate(g.ParamNames, own, own+len(m.Weights))
	rotate(g.Body.Terminator().Args, len(cts)-m.Updated, len(cts))
	return g, nil
}

func paramTypes(f *ir.Func) []ir.Type {
	types := make([]ir.Type, len(f.Body.Params))
	for i, p := range f.Body.Params {
		types[i] = p.Type
	}
	return types
}

// rotate moves s[from:to] to the end of s.
func rotate[T any](s []T, from, to int) {
	moved := slices.Clone(s[from:to])
	copy(s[from:], s[to:])
	copy(s[len(s)-len(moved):], moved)
}

// writePackage packs f, which is a form of the model's function, with the weights.
func (m *Model) writePackage(output string, f *ir.Func) error {
	manifest, weights := m.packed(f)
	return pkgfile.Write(output, manifest, printIR(f), weights)
}

// packed is what a package says and holds besides the function.
func (m *Model) packed(f *ir.Func) (pkgfile.Manifest, []safetensors.Named) {
	manifest := pkgfile.Manifest{Producer: "gtc", Source: filepath.Base(m.Path), Entry: f.Name, Updated: m.Updated}
	for _, p := range m.Params {
		if !p.HasDefault {
			continue
		}
		if manifest.Defaults == nil {
			manifest.Defaults = map[string]string{}
		}
		manifest.Defaults[p.Name] = ir.FormatDatum(p.Default)
	}
	weights := make([]safetensors.Named, len(m.Weights))
	for i, w := range m.Weights {
		weights[i] = safetensors.Named{Name: w.Name, Array: w.Array}
		if !w.Trainable {
			manifest.Buffers = append(manifest.Buffers, w.Name)
		}
	}
	return manifest, weights
}

// passNames lists all passes.
func passNames() string {
	var all []string
	for _, p := range passes.Table {
		all = append(all, p.Name)
	}
	return strings.Join(all, ", ")
}
