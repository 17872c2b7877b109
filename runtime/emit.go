//go:build !nollvm

package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/codegen/cpu"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/runtime/llvm"
)

// Emit gives the kernels that the cpu target makes for a compiled function (passes.Compile) as one module: as LLVM text ("llvm"), assembly text
// ("asm") or an object file ("obj"), for an architecture ("" is this machine's own). All tensors need static shapes. Text starts with
// comments that say which nodes run which kernel, and which run on the host. Every kernel is a void f(int64_t *args); what args holds, the
// package codegen/cpu says.
func Emit(_ context.Context, f *ir.Func, arch, form string) ([]byte, error) {
	outputs := map[string]llvm.Output{"llvm": llvm.IR, "asm": llvm.Assembly, "obj": llvm.Object}
	out, ok := outputs[form]
	if !ok {
		return nil, fmt.Errorf("kernels cannot be written as %q", form)
	}
	lib, err := llvm.Load()
	if err != nil {
		return nil, fmt.Errorf("machine code needs LLVM: %w", err)
	}
	target, err := cpu.Arch(arch, lib.Host())
	if err != nil {
		return nil, err
	}
	r := &recording{index: map[string]int{}}
	b, err := cpu.New(cpu.Options{LLVM: lib, Target: &target, Record: r.record})
	if err != nil {
		return nil, err
	}
	for i, p := range f.Body.Params {
		if p.Type.IsTensor() && !p.Type.Static() {
			return nil, fmt.Errorf("parameter %s has type %s: kernels are chosen by sizes, so every size must be given", f.ParamNames[i], p.Type)
		}
	}
	m := &machine{kernels: &cpuKernels{backend: b}}
	e, err := m.emit(f)
	if err != nil {
		return nil, err
	}
	e.walkLayouts(e.program.body.steps, map[int]*ir.Array{}, func(j *job, prepare func() error) {
		if err == nil {
			err = r.step(j.node, prepare)
		}
	})
	if err != nil {
		return nil, err
	}
	r.onHost(e.program.body)
	if len(r.texts) == 0 {
		return nil, fmt.Errorf("@%s has no kernels: all of it runs on the host", f.Name)
	}
	code, err := b.Emit(cpu.Merge(r.texts), out)
	if err != nil || form == "obj" {
		return code, err
	}
	comment := "; "
	if form == "asm" {
		comment = "# "
	}
	return append([]byte(r.header(f, target, comment)), code...), nil
}

// recording notes which kernels a program has.
type recording struct {
	texts []string       // of the kernels
	names []string       // in their texts
	index map[string]int // into texts
	used  []int          // the kernels that the present step prepared, where they were new
	notes []string       // a line per step
	host  []string
}

// record is told of every kernel, once per kernel.
func (d *recording) record(name, text string) {
	i, ok := d.index[text]
	if !ok {
		i = len(d.texts)
		d.index[text] = i
		d.texts, d.names = append(d.texts, text), append(d.names, name)
	}
	if !slices.Contains(d.used, i) {
		d.used = append(d.used, i)
	}
}

// step notes what the preparation of one launch for n needs.
func (d *recording) step(n *ir.Node, prepare func() error) error {
	d.used = nil
	if err := prepare(); err != nil {
		return ir.ErrorAt(n, err)
	}
	if len(d.used) == 0 {
		d.notes = append(d.notes, "kernels from above for "+describe(n))
		return nil
	}
	names := make([]string, len(d.used))
	for i, k := range d.used {
		names[i] = cpu.Symbol(d.names[k], k)
	}
	d.notes = append(d.notes, strings.Join(names, ", ")+" for "+describe(n))
	return nil
}

// onHost notes the nodes on tensors that no kernel computes.
func (d *recording) onHost(c *code) {
	note := func(j *job, why string) {
		if slices.ContainsFunc(j.node.Results, func(v *ir.Value) bool { return v.Type.IsTensor() }) {
			d.host = append(d.host, describe(j.node)+why)
		}
	}
	for _, s := range c.steps {
		switch s := s.(type) {
		case *hostStep:
			if class := s.node.Op.Class; class != ir.View && class != ir.Generate {
				note(s.job, "")
			}
		case *kernelStep:
			note(s.job, " (its kernel is chosen when it runs)")
		case *genericStep:
			note(s.job, " (expanded when it runs)")
		case *ifStep:
			d.onHost(s.then)
			d.onHost(s.otherwise)
		case *whileStep:
			d.onHost(s.cond)
			d.onHost(s.body)
		case *forStep:
			d.onHost(s.body)
		}
	}
}

// describe names a node and its place in the source.
func describe(n *ir.Node) string {
	s := n.Op.Name
	if n.Attrs.Callee != "" {
		s += " " + n.Attrs.Callee
	}
	if !n.Pos.IsZero() {
		s += " at " + n.Pos.String()
	}
	return s
}

func (d *recording) header(f *ir.Func, t llvm.Target, comment string) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s@%s: %d kernels for %s\n", comment, f.Name, len(d.texts), t.CPU)
	for _, l := range d.notes {
		fmt.Fprintf(&sb, "%s%s\n", comment, l)
	}
	for _, l := range d.host {
		fmt.Fprintf(&sb, "%son the host: %s\n", comment, l)
	}
	sb.WriteByte('\n')
	return sb.String()
}
