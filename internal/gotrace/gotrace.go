// Package gotrace traces functions of Go packages from outside: it checks the function's signature, writes a small program around it that calls
// trace.Tool, and runs that with the user's own go command in the user's module. The program exists in an overlay only; nothing is written into the module.
package gotrace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"golang.org/x/tools/go/packages"

	"github.com/gtc-project/gtc/trace"
)

// Target is a Go function or constructor that can be traced.
type Target struct {
	Dir     string   // of the module
	PkgPath string   // import path
	Name    string   // of the function
	Params  []string // names of the tensors that it takes
	pkgDir  string   // of the package
	call    string   // Go source that makes (trace.Func, model, error)
}

const tensorPath = "github.com/gtc-project/gtc/tensor"

// Find loads the package of "./models/lenet.New" or "example.com/models/lenet.New" and checks the function's signature.
func Find(ctx context.Context, ref string) (*Target, error) {
	dot := strings.LastIndexByte(ref, '.')
	if dot <= strings.LastIndexByte(ref, '/') || dot == len(ref)-1 {
		return nil, fmt.Errorf("%s: expected a package path, a dot and an exported name, such as ./models/lenet.New", ref)
	}
	path, name := ref[:dot], ref[dot+1:]
	cfg := &packages.Config{Context: ctx, Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedExportFile | packages.NeedModule}
	pkgs, err := packages.Load(cfg, path)
	if err != nil {
		return nil, fmt.Errorf("%s: the package cannot be loaded: %w", ref, err)
	}
	if len(pkgs) != 1 {
		return nil, fmt.Errorf("%s: the path matches %d packages, expected one", ref, len(pkgs))
	}
	p := pkgs[0]
	if len(p.Errors) > 0 {
		return nil, fmt.Errorf("%s: the package has errors: %w", ref, p.Errors[0])
	}
	if p.Module == nil {
		return nil, fmt.Errorf("%s: the package belongs to no module: run `go mod init` in it", ref)
	}
	if p.Name == "main" {
		return nil, fmt.Errorf("%s: a main package cannot be imported: move the model to a package of its own", ref)
	}
	fn, ok := p.Types.Scope().Lookup(name).(*types.Func)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s: package %s has no function %s; it exports %s", ref, p.PkgPath, name, exported(p.Types))
	case !fn.Exported():
		return nil, fmt.Errorf("%s: %s is not exported: its name must begin with an upper-case letter to be called from outside of package %s", ref, name, p.PkgPath)
	case fn.Signature().TypeParams().Len() > 0:
		return nil, fmt.Errorf("%s: a generic function cannot be traced: wrap it in one for certain types; %s", ref, accepted)
	}
	t := &Target{Dir: p.Module.Dir, PkgPath: p.PkgPath, pkgDir: filepath.Dir(p.GoFiles[0]), Name: name}
	return t, t.shape(fn)
}

// accepted says which functions can be traced.
const accepted = "what can be traced is func(x, y *tensor.Tensor) with results *tensor.Tensor (one, one and an error, or several) or []*tensor.Tensor (or that and an error); " +
	"or a constructor func() M or func() (M, error) of a model whose Forward is such a function"

// exported lists the functions of a package that might be meant.
func exported(p *types.Package) string {
	var names []string
	for _, n := range p.Scope().Names() {
		if fn, ok := p.Scope().Lookup(n).(*types.Func); ok && fn.Exported() {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return "no functions"
	}
	return strings.Join(names, ", ")
}

// shape decides how the function is called.
func (t *Target) shape(fn *types.Func) error {
	sig := fn.Signature()
	if sig.Params().Len() == 0 && sig.Results().Len() >= 1 && !isTensor(sig.Results().At(0).Type()) {
		return t.constructor(fn, sig)
	}
	results, err := resultsOf(sig)
	if err != nil {
		return fmt.Errorf("%s: %w", fn.FullName(), err)
	}
	args, err := t.params(sig)
	if err != nil {
		return fmt.Errorf("%s: %w", fn.FullName(), err)
	}
	t.call = fmt.Sprintf("return func(args ...*tensor.Tensor) ([]*tensor.Tensor, error) { %s }, nil, nil", wrap(results, "target."+t.Name+"("+args+")"))
	return nil
}

// constructor handles func() M and func() (M, error) where M has a Forward method on tensors.
func (t *Target) constructor(fn *types.Func, sig *types.Signature) error {
	res := sig.Results()
	failing := res.Len() == 2 && isError(res.At(1).Type())
	if res.Len() > 2 || res.Len() == 2 && !failing {
		return fmt.Errorf("%s: a constructor gives a model, or a model and an error; %s", fn.FullName(), accepted)
	}
	obj, _, _ := types.LookupFieldOrMethod(res.At(0).Type(), true, fn.Pkg(), "Forward")
	forward, ok := obj.(*types.Func)
	if !ok {
		return fmt.Errorf("%s: %s has no method Forward(x *tensor.Tensor) *tensor.Tensor; %s", fn.FullName(), res.At(0).Type(), accepted)
	}
	results, err := resultsOf(forward.Signature())
	if err != nil {
		return fmt.Errorf("%s: %w", forward.FullName(), err)
	}
	args, err := t.params(forward.Signature())
	if err != nil {
		return fmt.Errorf("%s: %w", forward.FullName(), err)
	}
	t.Name = strings.TrimPrefix(t.Name, "New")
	if t.Name == "" {
		t.Name = "forward"
	}
	build := "m := target." + fn.Name() + "()"
	if failing {
		build = "m, err := target." + fn.Name() + "()\n\t\tif err != nil {\n\t\t\treturn nil, nil, err\n\t\t}"
	}
	t.call = build + fmt.Sprintf("\n\t\treturn func(args ...*tensor.Tensor) ([]*tensor.Tensor, error) { %s }, m, nil", wrap(results, "m.Forward("+args+")"))
	return nil
}

// params gives the argument list for the call and records the parameter names.
func (t *Target) params(sig *types.Signature) (string, error) {
	if sig.Variadic() {
		return "", fmt.Errorf("a variadic function has no fixed inputs to trace: wrap it in one with named parameters; %s", accepted)
	}
	var args []string
	for i := range sig.Params().Len() {
		p := sig.Params().At(i)
		if !isTensor(p.Type()) {
			return "", fmt.Errorf("parameter %s is %s; a traced function takes *tensor.Tensor only: bind other values in a constructor; %s", p.Name(), p.Type(), accepted)
		}
		name := p.Name()
		if name == "" || name == "_" {
			name = fmt.Sprintf("x%d", i)
		}
		t.Params = append(t.Params, name)
		args = append(args, fmt.Sprintf("args[%d]", i))
	}
	return strings.Join(args, ", "), nil
}

type resultKind int

const (
	oneTensor resultKind = iota
	manyTensors
	sliceOfTensors
	oneAndError
	sliceAndError
)

func resultsOf(sig *types.Signature) (resultKind, error) {
	res := sig.Results()
	n := res.Len()
	failing := n > 1 && isError(res.At(n-1).Type())
	switch {
	case n == 1 && isTensor(res.At(0).Type()):
		return oneTensor, nil
	case n == 1 && isTensorSlice(res.At(0).Type()):
		return sliceOfTensors, nil
	case n == 2 && failing && isTensor(res.At(0).Type()):
		return oneAndError, nil
	case n == 2 && failing && isTensorSlice(res.At(0).Type()):
		return sliceAndError, nil
	}
	for i := range n {
		if !isTensor(res.At(i).Type()) {
			return 0, fmt.Errorf("result %d is %s; %s", i, res.At(i).Type(), accepted)
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("the function gives no result to trace; %s", accepted)
	}
	return manyTensors, nil
}

func wrap(k resultKind, call string) string {
	switch k {
	case oneTensor:
		return "y := " + call + "; return []*tensor.Tensor{y}, y.Err()"
	case sliceOfTensors:
		return "return " + call + ", nil"
	case oneAndError:
		return "y, err := " + call + "; return []*tensor.Tensor{y}, err"
	case sliceAndError:
		return "return " + call
	}
	return "return trace.Results(" + call + ")"
}

func isTensor(t types.Type) bool {
	p, ok := t.(*types.Pointer)
	if !ok {
		return false
	}
	n, ok := p.Elem().(*types.Named)
	return ok && n.Obj().Name() == "Tensor" && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == tensorPath
}

func isTensorSlice(t types.Type) bool {
	s, ok := t.(*types.Slice)
	return ok && isTensor(s.Elem())
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

var program = template.Must(template.New("main").Parse(`// Code generated by gtc trace; it exists in an overlay only. DO NOT EDIT.
package main

import (
	target {{printf "%q" .PkgPath}}

	"github.com/gtc-project/gtc/tensor"
	"github.com/gtc-project/gtc/trace"
)

var _ *tensor.Tensor

func main() {
	trace.Tool(func() (trace.Func, any, error) {
		{{.Call}}
	})
}
`))

// Run builds and runs the tracing program; what it prints goes to stderr.
func (t *Target) Run(ctx context.Context, c trace.ToolConfig) error {
	c.Name, c.Params = t.Name, t.Params
	tmp, err := os.MkdirTemp("", "gtc-trace-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	var src bytes.Buffer
	if err := program.Execute(&src, struct{ PkgPath, Call string }{t.PkgPath, t.call}); err != nil {
		return err
	}
	file := filepath.Join(tmp, "main.go")
	// the program stands below the traced package, so that packages below an internal folder can be traced too
	virtual := filepath.Join(t.pkgDir, "gtc_trace_main", "main.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {virtual: file}})
	if err != nil {
		return err
	}
	config, err := json.Marshal(c)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{file: src.Bytes(), filepath.Join(tmp, "overlay.json"): overlay, filepath.Join(tmp, "config.json"): config} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return err
		}
	}
	bin := filepath.Join(tmp, "tracer")
	if err := command(ctx, t.Dir, "go", "build", "-overlay", filepath.Join(tmp, "overlay.json"), "-o", bin, virtual); err != nil {
		return fmt.Errorf("the tracing program around %s.%s does not build: %w", t.PkgPath, t.Name, err)
	}
	return command(ctx, t.Dir, bin, filepath.Join(tmp, "config.json"))
}

// command runs a program; its standard error is the error's text when it fails.
func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = os.Stderr, &errs
	if err := cmd.Run(); err != nil {
		if msg := strings.TrimSpace(errs.String()); msg != "" {
			return fmt.Errorf("%s", msg)
		}
		return err
	}
	os.Stderr.Write(errs.Bytes())
	return nil
}
