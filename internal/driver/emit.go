package driver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/internal/atomicfile"
	"github.com/gtc-project/gtc/internal/pkgfile"
	"github.com/gtc-project/gtc/internal/safetensors"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
)

// Emit says what Compile makes.
type Emit struct {
	Form       string // package, ir, so, obj, llvm, asm, ptx, go; "" goes by Output's name
	Output     string // "" is Stdout, for text only
	Passes     string
	PrintAfter string
	TimePasses bool
	Stdout     io.Writer
	Stderr     io.Writer
}

// forms maps file extensions to forms.
var forms = map[string]string{".gtc": "package", ".gtir": "ir", ".so": "so", ".o": "obj", ".ll": "llvm", ".s": "asm", ".ptx": "ptx", ".go": "go"}

// Check settles the form and finds options that can never be right.
func (e *Emit) Check() error {
	if e.Form == "" {
		if e.Form = forms[filepath.Ext(e.Output)]; e.Form == "" {
			e.Form = "package"
		}
	}
	if e.PrintAfter != "" && e.PrintAfter != "all" {
		if _, err := passesUpTo(e.PrintAfter); err != nil {
			return err
		}
	}
	switch e.Form {
	case "package", "so", "obj":
		if e.Output == "" {
			return fmt.Errorf("--emit=%s needs -o FILE", e.Form)
		}
	case "ir", "llvm", "asm", "ptx", "go":
	default:
		return fmt.Errorf("--emit=%s is not known; the forms are package, ir, so, obj, llvm, asm, ptx and go", shortText(e.Form))
	}
	return nil
}

// Compile makes a file of a model.
func Compile(ctx context.Context, path string, o *Options, e *Emit) error {
	if e.Form != "package" && e.Form != "ir" && e.Form != "ptx" {
		return fmt.Errorf("--emit=%s is not available yet in this version; package, ir and ptx are", e.Form)
	}
	load := Load
	if e.Form == "ir" || e.Form == "ptx" {
		load = loadShape
	}
	m, err := load(path, o)
	if err != nil {
		return err
	}
	if e.Form == "ptx" {
		text, err := m.ptx(o, e)
		if err != nil {
			return err
		}
		return e.write(text)
	}
	f, err := m.shape(o, e.Passes, e.observe())
	if err != nil {
		return err
	}
	if e.Form == "package" {
		return m.writePackage(e.Output, f)
	}
	return e.write(printIR(f))
}

// write writes text to where the options want it.
func (e *Emit) write(text string) error {
	if e.Output != "" {
		return atomicfile.WriteBytes(e.Output, []byte(text))
	}
	_, err := io.WriteString(e.Stdout, text)
	return err
}

// writePackage packs f, which is a form of the model's function, with the weights.
func (m *Model) writePackage(output string, f *ir.Func) error {
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
	return pkgfile.Write(output, manifest, printIR(f), weights)
}

// shape gives the model's function as the options want it: differentiated with Grad, specialised where there is a signature, optimised
// where passes are named or it is specialised.
func (m *Model) shape(o *Options, names string, po passes.Options) (*ir.Func, error) {
	f := m.Func
	if o.Grad {
		var wrt []int
		for i, p := range f.Body.Params {
			if ir.MayCarryGradient(p.Type) {
				wrt = append(wrt, i)
			}
		}
		g, err := autograd.Grad(f, wrt, nil)
		if err != nil {
			return nil, err
		}
		f = g
	}
	if len(o.Input) > 0 || o.Inputs != "" {
		types, err := Signature(m.Params, o)
		if err != nil {
			return nil, err
		}
		for _, w := range m.Weights {
			types = append(types, w.Array.Type())
		}
		for _, p := range f.Body.Params[len(types):] {
			types = append(types, p.Type) // cotangents
		}
		if f, err = specialise(f, types); err != nil {
			return nil, err
		}
	}
	if names == "" && po.After == nil {
		return f, nil
	}
	return runPasses(f.Clone(), names, po)
}

// observe makes the pass driver print what the options ask for.
func (e *Emit) observe() passes.Options {
	if !e.observing() {
		return passes.Options{}
	}
	return passes.Options{After: func(p *passes.Pass, f *ir.Func, took time.Duration) {
		if e.TimePasses {
			fmt.Fprintf(e.Stderr, "%-14s %10.3f ms\n", p.Name, ms(took))
		}
		if e.PrintAfter == "all" || e.PrintAfter == p.Name {
			fmt.Fprintf(e.Stderr, "// after %s\n%s", p.Name, printIR(f))
		}
	}}
}

// observing reports whether the pass driver has anything to print.
func (e *Emit) observing() bool { return e.PrintAfter != "" || e.TimePasses }

// passesUpTo names the passes of the default pipeline up to and with one, or that one alone where it is no part of it.
func passesUpTo(last string) (string, error) {
	if last == "" {
		return "", nil
	}
	var names, all []string
	for _, p := range passes.Table {
		all = append(all, p.Name)
		if p.Default || p.Name == last {
			names = append(names, p.Name)
		}
		if p.Name == last {
			return strings.Join(names, ","), nil
		}
	}
	return "", fmt.Errorf("there is no pass %q; the passes are %s", last, strings.Join(all, ", "))
}

// Drawing says how Draw draws.
type Drawing struct {
	After  string // a pass
	Format string // dot, svg, png; "" goes by Output's name
	Output string // "" only returns the drawing
}

// Check settles the format.
func (d *Drawing) Check() error {
	if d.Format == "" {
		d.Format = strings.TrimPrefix(filepath.Ext(d.Output), ".")
	}
	switch d.Format {
	case "":
		d.Format = "dot"
	case "gv":
		d.Format = "dot"
	case "dot", "svg", "png":
	default:
		return fmt.Errorf("format %q is not known; the formats are dot, svg and png", shortText(d.Format))
	}
	return nil
}

// Draw draws a model's graph.
func Draw(ctx context.Context, path string, o *Options, d *Drawing) ([]byte, error) {
	m, err := loadShape(path, o)
	if err != nil {
		return nil, err
	}
	names, err := passesUpTo(d.After)
	if err != nil {
		return nil, err
	}
	f, err := m.shape(o, names, passes.Options{})
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := ir.WriteDot(&text, f); err != nil {
		return nil, err
	}
	data := text.Bytes()
	if d.Format != "dot" {
		if data, err = graphviz(ctx, data, d.Format); err != nil {
			return nil, err
		}
	}
	if d.Output != "" {
		return data, atomicfile.WriteBytes(d.Output, data)
	}
	return data, nil
}

func graphviz(ctx context.Context, text []byte, format string) ([]byte, error) {
	bin, err := exec.LookPath("dot")
	if err != nil {
		return nil, fmt.Errorf("the format %s needs Graphviz's dot: apt-get install graphviz, or write --format dot", format)
	}
	c := exec.CommandContext(ctx, bin, "-T"+format)
	c.Stdin = strings.NewReader(string(text))
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("dot failed: %w: %s", err, shortText(errs.String()))
	}
	return out, nil
}
