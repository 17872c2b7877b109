package driver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir"
)

// Options are those that every command with a MODEL takes. The zero value runs the model's forward on the default target.
type Options struct {
	Entry        string   // a function, a class, or a class with constructor arguments: Net(width=8); "" is the model's own
	Weights      string   // a file of weights, or random:SEED
	Inputs       string   // a .npz file with one array per parameter
	Input        []string // name=FILE.npy, name=FILE.npz:KEY or name=f32[1,28,28]
	Dynamic      []string // name:DIM makes a size symbolic
	Target       string   // cpu, interp, cuda; "" is cpu, or interp with a warning where LLVM is missing
	Emulate      bool     // cuda without a GPU
	Arch         string   // of generated code: native, x86-64-v3, …
	Threads      int      // 0 is all processors
	Seed         uint64   // of the random stream
	MemoryBudget int64    // bytes; 0 is no limit
	Train        bool     // run module classes in training mode
	Eager        bool     // run a script op by op through the eager API
	Grad         bool     // also compute gradients

	anyWeights bool // Weights stand for those that a look at the model does not need

	// Warn gets progress and warnings, one line each; nil drops them.
	Warn func(line string)
}

func (o *Options) warn(format string, args ...any) {
	if o.Warn != nil {
		o.Warn(fmt.Sprintf(format, args...))
	}
}

// nativeArch reports whether no architecture was asked for.
func (o *Options) nativeArch() bool { return o.Arch == "" || o.Arch == "native" }

// The targets.
const (
	TargetCPU    = "cpu"
	TargetInterp = "interp"
	TargetCUDA   = "cuda"
)

// Check finds options that can never be right, before any work is done.
func (o *Options) Check() error {
	switch o.Target {
	case "", TargetCPU, TargetInterp, TargetCUDA:
	default:
		return fmt.Errorf("target %q is not known; the targets are cpu, interp and cuda", o.Target)
	}
	if o.Emulate && o.Target != TargetCUDA {
		return errors.New("--emulate goes with --target=cuda")
	}
	if o.Threads < 0 {
		return fmt.Errorf("--threads is %d; it must not be negative", o.Threads)
	}
	for _, in := range o.Input {
		if name, _, ok := strings.Cut(in, "="); !ok || name == "" {
			return fmt.Errorf("--input %q has not the form name=FILE.npy or name=f32[1,28,28]", shortText(in))
		}
	}
	for _, d := range o.Dynamic {
		if _, _, err := parseDynamic(d); err != nil {
			return err
		}
	}
	return nil
}

// parseDynamic reads name:DIM.
func parseDynamic(s string) (name string, dim int, err error) {
	name, number, ok := strings.Cut(s, ":")
	dim, err = strconv.Atoi(number)
	if !ok || name == "" || err != nil || dim < 0 {
		return "", 0, fmt.Errorf("--dynamic %q has not the form name:DIM, for example x:0", shortText(s))
	}
	return name, dim, nil
}

// ParseSize reads a number of bytes: 1000, 64KiB, 512MiB, 2GiB, 1GB.
func ParseSize(s string) (int64, error) {
	text := strings.TrimSpace(s)
	units := []struct {
		suffix string
		factor int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1}}
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || !(n >= 0) || n*float64(u.factor) >= 1<<62 {
			break
		}
		return int64(n * float64(u.factor)), nil
	}
	return 0, fmt.Errorf("%q is no size; write for example 512MiB", shortText(s))
}

// overlay is a set of arrays with a few replaced or added.
type overlay struct {
	base  Arrays // may be nil
	extra ArrayMap
	order []string
}

func (o overlay) Names() []string {
	var names []string
	if o.base != nil {
		for _, n := range o.base.Names() {
			if o.extra[n] == nil {
				names = append(names, n)
			}
		}
	}
	return append(names, o.order...)
}

func (o overlay) Read(name string) (*ir.Array, error) {
	if a := o.extra[name]; a != nil {
		return a, nil
	}
	return o.base.Read(name)
}
