package driver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/internal/gotrace"
	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/trace"
)

// TraceGo records the Go function or module that ref names, on the inputs that the options give, as a package.
func TraceGo(ctx context.Context, ref string, o *Options, output string, check bool) error {
	t, err := gotrace.Find(ctx, ref)
	if err != nil {
		return err
	}
	arrays, err := InputArrays(t.Params, o)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp("", "gtc-inputs-*.npz")
	if err != nil {
		return err
	}
	tmp.Close()
	defer os.Remove(tmp.Name())
	if err := npz.Write(tmp.Name(), arrays); err != nil {
		return err
	}
	cfg := trace.ToolConfig{Source: ref, Inputs: tmp.Name(), Train: o.Train, NoCheck: !check}
	if cfg.Dynamic, err = dynamicSizes(t.Params, arrays, o); err != nil {
		return err
	}
	if cfg.Output, err = filepath.Abs(output); err != nil {
		return err
	}
	if o.Weights != "" {
		if strings.HasPrefix(o.Weights, "random:") {
			return fmt.Errorf("--weights %s: a Go model has the weights that its constructor gives it, or those of a .safetensors file", shortText(o.Weights))
		}
		if cfg.Weights, err = filepath.Abs(o.Weights); err != nil {
			return err
		}
	}
	return t.Run(ctx, cfg)
}

// dynamicSizes are the sizes that --dynamic NAME:DIM and --input NAME=f32[N,3] make symbolic.
func dynamicSizes(names []string, arrays []npz.Named, o *Options) ([]trace.NamedDynamic, error) {
	var out []trace.NamedDynamic
	for _, s := range o.Dynamic {
		name, dim, err := parseDynamic(s)
		if err != nil {
			return nil, err
		}
		i := slices.Index(names, name)
		switch {
		case i < 0:
			return nil, fmt.Errorf("--dynamic %s: there is no input %s; the function takes %s", s, name, strings.Join(names, ", "))
		case dim >= len(arrays[i].Array.Shape):
			return nil, fmt.Errorf("--dynamic %s: %s has %d dimensions", s, name, len(arrays[i].Array.Shape))
		}
		out = append(out, trace.NamedDynamic{Param: name, Dim: dim})
	}
	for _, s := range o.Input {
		name, value, _ := strings.Cut(s, "=")
		t, err := ParseType(value)
		if err != nil {
			continue // a file
		}
		for dim, d := range t.Dims {
			if !d.Known() {
				out = append(out, trace.NamedDynamic{Param: name, Dim: dim, Name: d.Sym})
			}
		}
	}
	return out, nil
}

// loadGo traces a Go model and loads the package. Weights that the options name replace those that the constructor gave.
func loadGo(ref string, o *Options) (*Model, error) {
	dir, err := os.MkdirTemp("", "gtc-trace-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	pkg := filepath.Join(dir, "model.gtc")
	plain := *o
	plain.Weights = ""
	if err := TraceGo(context.Background(), ref, &plain, pkg, false); err != nil {
		return nil, err
	}
	plain = *o
	plain.Train = false // the trace has its mode built in
	m, err := loadPackage(pkg, &plain)
	if err != nil {
		return nil, err
	}
	m.Path, m.Kind = ref, Go
	return m, nil
}
