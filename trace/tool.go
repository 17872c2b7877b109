package trace

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/nn"
	"github.com/gtc-project/gtc/runtime"
	"github.com/gtc-project/gtc/tensor"
)

// ToolConfig is what `gtc trace` tells the program that it builds around a Go function; see Tool.
type ToolConfig struct {
	Name    string   // the function's name in the package
	Source  string   // for the manifest
	Params  []string // parameter names of the function
	Inputs  string   // .npz with one array per parameter
	Weights string   // .safetensors to load into the model; may be empty
	Output  string   // the package to write
	Train   bool     // trace in training mode
	NoCheck bool
	Dynamic []NamedDynamic // the symbolic sizes
}

// NamedDynamic is a symbolic size of a parameter.
type NamedDynamic struct {
	Param string
	Dim   int
	Name  string
}

// Tool is the main function of the program that `gtc trace` builds: it traces what build gives and writes the package. The configuration is the JSON in the
// file named by the first argument. Failures are printed and exit with status 1.
func Tool(build func() (fn Func, model any, err error)) {
	if err := tool(build); err != nil {
		fmt.Fprintln(os.Stderr, "gtc trace:", err)
		os.Exit(1)
	}
}

func tool(build func() (Func, any, error)) error {
	raw, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	var c ToolConfig
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	fn, model, err := construct(build)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Source, err)
	}
	if model != nil {
		if c.Weights != "" {
			if err := nn.Load(model, c.Weights, true); err != nil {
				return err
			}
		}
		if c.Train {
			nn.Train(model)
		} else {
			nn.Eval(model)
		}
	}
	inputs, err := readInputs(c)
	if err != nil {
		return err
	}
	opts := Options{Name: c.Name, Model: model, Inputs: c.Params, NoCheck: c.NoCheck, Dynamic: map[Dynamic]string{}}
	for _, d := range c.Dynamic {
		opts.Dynamic[Dynamic{slices.Index(c.Params, d.Param), d.Dim}] = d.Name
	}
	p, err := Trace(fn, opts, inputs...)
	if err != nil {
		return err
	}
	for _, k := range p.Updates {
		fmt.Fprintf(os.Stderr, "gtc trace: warning: the function writes to %s in place; the package gives its results only\n", p.Func.ParamNames[k])
	}
	if !c.NoCheck {
		if err := check(p, fn, inputs); err != nil {
			return err
		}
	}
	return p.Save(c.Output, c.Source)
}

// construct calls build; a panic of the user's constructor is an error with its line.
func construct(build func() (Func, any, error)) (fn Func, model any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: the constructor panicked: %v", callerPos(), p)
		}
	}()
	return build()
}

func readInputs(c ToolConfig) ([]*tensor.Tensor, error) {
	f, err := npz.Open(c.Inputs)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var inputs []*tensor.Tensor
	for _, name := range c.Params {
		a, err := f.Read(name)
		if err != nil {
			return nil, fmt.Errorf("the input %s is missing: give it with --input %s=FILE.npy or --input %s=f32[1,3]: %w", name, name, name, err)
		}
		inputs = append(inputs, tensor.FromArray(a))
	}
	return inputs, nil
}

// check compares the traced function with the Go one, on the inputs and on scaled and shifted ones.
func check(p *Program, fn Func, inputs []*tensor.Tensor) error {
	perturbed := make([]*tensor.Tensor, len(inputs))
	for i, x := range inputs {
		perturbed[i] = x
		if x.DType().IsFloat() {
			perturbed[i] = x.Mul(-0.75).Add(0.125)
		}
	}
	for _, in := range [][]*tensor.Tensor{inputs, perturbed} {
		if err := p.Check(fn, runtime.Default(), 1e-4, 1e-5, in...); err != nil {
			return fmt.Errorf("check of the trace: %w", err)
		}
	}
	return nil
}
