package driver

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/internal/pth"
	"github.com/gtc-project/gtc/internal/safetensors"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/nn/layers"
)

// WeightSpec is an entry of a module's state dict.
type WeightSpec struct {
	Also   []string // further names, of a parameter that stands at several places; a file needs one of them
	Name   string   // weight names as in PyTorch: "conv1.weight"
	DType  dtype.DType
	Shape  []int
	Buffer bool      // no gradient: running statistics and the like
	Value  *ir.Array // what the constructor gives it, where that is not random; else nil
	Init   string    // how random:SEED makes it (see layers.Init); "" goes by shape and name
}

// LoadWeights gives every entry of a state dict its value, from a file (.safetensors, .pth or .npz, told apart by content) or at random
// (random:SEED). Missing, extra and misshapen entries are one error that lists all of them.
func LoadWeights(source string, specs []WeightSpec) ([]Weight, error) {
	if seed, ok := strings.CutPrefix(source, "random:"); ok {
		n, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("--weights %s: the seed is no number; write for example random:1", shortText(source))
		}
		return randomWeights(specs, n)
	}
	if source == "" {
		if !slices.ContainsFunc(specs, func(s WeightSpec) bool { return s.Value == nil }) {
			return randomWeights(specs, 0) // there is nothing random about them
		}
		return nil, fmt.Errorf("the module has %d weights (%s, …); give them with --weights FILE.safetensors, FILE.pth, FILE.npz or random:SEED", len(specs), specs[0].Name)
	}
	file, done, err := openWeights(source)
	if err != nil {
		return nil, err
	}
	defer done()
	return readWeights(source, file, specs)
}

// openWeights opens a file of named arrays by its content.
func openWeights(path string) (Arrays, func(), error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open weights: %w", err)
	}
	var start [4]byte
	_, err = io.ReadFull(f, start[:])
	f.Close()
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, nil, fmt.Errorf("cannot read weights: %w", err)
	}
	if string(start[:2]) == "PK" || string(start[:2]) == "\x80\x02" {
		p, err := pth.Open(path)
		if err == nil {
			return p, func() { _ = p.Close() }, nil
		}
		if !errors.Is(err, pth.ErrNoPickle) {
			return nil, nil, err
		}
		z, err := npz.Open(path)
		if err != nil {
			return nil, nil, err
		}
		return z, func() { _ = z.Close() }, nil
	}
	s, err := safetensors.Open(path)
	if err != nil {
		return nil, nil, err
	}
	return s, func() { _ = s.Close() }, nil
}

func readWeights(path string, file Arrays, specs []WeightSpec) ([]Weight, error) {
	var problems []string
	extra := map[string]bool{}
	for _, n := range file.Names() {
		extra[n] = true
	}
	out := make([]Weight, 0, len(specs))
	for _, s := range specs {
		name := ""
		for _, n := range append([]string{s.Name}, s.Also...) {
			if extra[n] && name == "" {
				name = n
			}
			delete(extra, n)
		}
		if name == "" {
			problems = append(problems, "missing: "+s.Name)
			continue
		}
		if err := checkShape(file, name, s); err != nil { // before anything large is read
			problems = append(problems, s.Name+": "+err.Error())
			continue
		}
		a, err := file.Read(name)
		if err != nil {
			return nil, err
		}
		if a, err = fit(a, s); err != nil {
			problems = append(problems, s.Name+": "+err.Error())
			continue
		}
		out = append(out, Weight{Name: s.Name, Array: a, Trainable: !s.Buffer && s.DType.IsFloat()})
	}
	for _, n := range file.Names() {
		if extra[n] {
			problems = append(problems, "not in the module: "+shortText(n))
		}
	}
	if len(problems) > 0 {
		const most = 50
		if n := len(problems); n > most {
			problems = append(problems[:most], fmt.Sprintf("and %d more", n-most))
		}
		return nil, fmt.Errorf("%s: the weights do not fit the module:\n  %s", path, strings.Join(problems, "\n  "))
	}
	return out, nil
}

// checkShape compares the shape of an entry with the module's where the file tells it without reading the entry.
func checkShape(file Arrays, name string, s WeightSpec) error {
	shape, ok := s.Shape, true
	switch f := file.(type) {
	case *pth.File:
		shape, ok = f.Shape(name)
	case *npz.File:
		_, sh, err := f.Info(name)
		shape, ok = sh, err == nil
	case *safetensors.File:
		var t safetensors.Tensor
		t, ok = f.Info(name)
		shape = t.Shape
	}
	if ok && !slices.Equal(shape, s.Shape) {
		return fmt.Errorf("the shape is %v, the module's is %v", shape, s.Shape)
	}
	return nil
}

// fit converts an array between floating-point types, as loading a state dict in PyTorch does, and checks the rest.
func fit(a *ir.Array, s WeightSpec) (*ir.Array, error) {
	if !slices.Equal(a.Shape, s.Shape) {
		return nil, fmt.Errorf("the shape is %v, the module's is %v", a.Shape, s.Shape)
	}
	switch {
	case a.DType == s.DType:
		return a, nil
	case a.DType.IsFloat() && s.DType.IsFloat():
		return ir.FromFloats(s.DType, s.Shape, a.Floats()), nil
	}
	return nil, fmt.Errorf("the dtype is %s, the module's is %s", a.DType.Torch(), s.DType.Torch())
}

// randomWeights initialises weights as their modules do.
func randomWeights(specs []WeightSpec, seed uint64) ([]Weight, error) {
	rng := newRandom(seed)
	out := make([]Weight, len(specs))
	for i, s := range specs {
		a, err := s.Value, error(nil)
		if a == nil {
			if a, err = ir.TryNewArray(s.DType, s.Shape); err != nil {
				return nil, fmt.Errorf("weight %s: %w", s.Name, err)
			}
			if err := initialise(a, s, rng); err != nil {
				return nil, err
			}
		}
		out[i] = Weight{Name: s.Name, Array: a, Trainable: !s.Buffer && s.DType.IsFloat()}
	}
	return out, nil
}

func initialise(a *ir.Array, s WeightSpec, rng *random) error {
	in, err := layers.ParseInit(cmp.Or(s.Init, guessInit(s)))
	if err != nil {
		return fmt.Errorf("weight %s: %w", s.Name, err)
	}
	row := 0
	if len(s.Shape) > 0 && s.Shape[0] > 0 {
		row = a.Len() / s.Shape[0]
	}
	for k := range a.Len() {
		v := in.A
		switch in.Kind {
		case "uniform":
			v += (in.B - in.A) * rng.unit()
		case "normal":
			v += in.B * rng.normal()
		}
		if in.ZeroRow >= 0 && k/max(row, 1) == in.ZeroRow {
			v = 0
		}
		a.SetFloat(k, v)
	}
	return nil
}

// guessInit keeps activations in bounds where nothing is said: matrices uniform within ±1/sqrt(fan in), scales of norms and variances
// one, everything else zero.
func guessInit(s WeightSpec) string {
	last := s.Name[strings.LastIndexByte(s.Name, '.')+1:]
	switch {
	case !s.DType.IsFloat():
	case len(s.Shape) > 1:
		fanIn := 1
		for _, n := range s.Shape[1:] {
			fanIn *= n
		}
		return fmt.Sprintf("uniform:%g", 1/math.Sqrt(float64(max(fanIn, 1))))
	case last == "weight" || last == "running_var":
		return "ones"
	}
	return "zeros"
}
