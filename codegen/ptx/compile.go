package ptx

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/runtime/llvm"
)

// passes is LLVM's pipeline: the little that straight-line code needs. The back end folds and schedules by itself.
const passes = "function(early-cse)"

// Module is the PTX text of a specialised function for an architecture ("" is DefaultArch). See Compile.
func Module(f *ir.Func, arch string) (string, error) {
	p, err := Compile(f, arch)
	if err != nil {
		return "", err
	}
	return p.Text, nil
}

// Compile turns a specialised function, fused or not, into one PTX module and the launches that compute it. All tensors must have
// static shapes; parameters are contiguous. It fails on an unknown architecture, on operations without a CUDA kernel (one error that lists them all
// with their positions), and where LLVM 19 cannot be loaded.
func Compile(f *ir.Func, arch string) (*Program, error) {
	if arch == "" {
		arch = DefaultArch
	}
	t, err := target(arch)
	if err != nil {
		return nil, err
	}
	p, m, err := plan(f)
	if err != nil {
		return nil, err
	}
	text, err := assemble(m.text(), t)
	if err != nil {
		return nil, err
	}
	p.Text = p.header(f, arch) + text
	return p, nil
}

// assemble makes PTX of LLVM text.
func assemble(text string, t llvm.Target) (string, error) {
	l, err := llvm.Load()
	if err != nil {
		return "", fmt.Errorf("PTX is made by LLVM 19: %w", err)
	}
	out, err := l.Compile(text, t, passes, llvm.Assembly)
	return string(out), err
}

// plan lays out the launches of f and writes their kernels.
func plan(f *ir.Func) (*Program, *module, error) {
	p := &planner{Program: &Program{}, m: newModule(), vals: map[*ir.Value]ir.Datum{}, lazy: map[*ir.Value]*ir.Node{}, fname: f.Name}
	if err := p.params(f); err != nil {
		return nil, nil, err
	}
	p.block(f.Body.Nodes)
	if len(p.unsupported) == 0 {
		for _, v := range f.Returns() {
			d, ok := p.datum(v)
			if !ok {
				p.complain(fmt.Sprintf("in %s: a result of type %s depends on a number that is only known at run time", f.Name, v.Type))
				continue
			}
			p.result(d)
		}
	}
	if len(p.unsupported) > 0 {
		return nil, nil, fmt.Errorf("%s uses what --target=cuda has no kernel for:\n  %s\nuse --target=cpu for this function", f.Name, strings.Join(p.unsupported, "\n  "))
	}
	return p.Program, p.m, nil
}

// params makes the input buffers.
func (p *planner) params(f *ir.Func) error {
	var bad []error
	for i, v := range f.Body.Params {
		name := fmt.Sprintf("arg%d", i)
		if i < len(f.ParamNames) && f.ParamNames[i] != "" {
			name = f.ParamNames[i]
		}
		switch {
		case !v.Type.IsTensor():
			continue // a host value that is not known; what needs it is reported
		case !v.Type.Static():
			bad = append(bad, fmt.Errorf("parameter %s has type %s: CUDA modules need every size, give --input %s=f32[2,3] or the like", name, v.Type, name))
			continue
		}
		p.vals[v] = p.newBuffer(Input, word(name), v.Type.DType, v.Type.Shape())
	}
	return errors.Join(bad...)
}
