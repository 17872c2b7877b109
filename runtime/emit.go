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
func Emit(ctx context.Context, f *ir.Func, arch, form string) ([]byte, error) {
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
	d := &dryRun{ctx: ctx, vals: map[*ir.Value]ir.Datum{}, index: map[string]int{}}
	b, err := cpu.New(cpu.Options{LLVM: lib, Target: &target, Record: d.record})
	if err != nil {
		return nil, err
	}
	d.kernels = &cpuKernels{backend: b}
	for i, p := range f.Body.Params {
		if p.Type.IsTensor() && !p.Type.Static() {
			return nil, fmt.Errorf("parameter %s has type %s: kernels are chosen by sizes, so every size must be given", f.ParamNames[i], p.Type)
		}
	}
	if err := d.block(f.Body); err != nil {
		return nil, err
	}
	if len(d.texts) == 0 {
		return nil, fmt.Errorf("@%s has no kernels: all of it runs on the host", f.Name)
	}
	code, err := b.Emit(cpu.Merge(d.texts), out)
	if err != nil || form == "obj" {
		return code, err
	}
	comment := "; "
	if form == "asm" {
		comment = "# "
	}
	return append([]byte(d.header(f, target, comment)), code...), nil
}

// dryRun walks a function as the evaluator does, every block once, with kernels that do nothing: what it is after is which they are. Tensors
// hold zeros; other values are known where they do not depend on tensors or parameters.
type dryRun struct {
	ctx     context.Context
	kernels *cpuKernels
	vals    map[*ir.Value]ir.Datum
	texts   []string       // of the kernels
	names   []string       // in their texts
	index   map[string]int // into texts
	used    []int          // the kernels that the present node ran, where they were new
	notes   []string       // a line per node
	host    []string
}

// record is told of every kernel, once per kernel.
func (d *dryRun) record(name, text string) {
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

func (d *dryRun) block(b *ir.Block) error {
	for _, p := range b.Params {
		if err := d.sample(p); err != nil {
			return err
		}
	}
	for _, n := range b.Nodes {
		if n.Op.Class == ir.Terminator {
			continue
		}
		if err := d.node(n); err != nil {
			return err
		}
	}
	return nil
}

// sample gives a value zeros of its type, where it is a tensor of known sizes.
func (d *dryRun) sample(vs ...*ir.Value) error {
	for _, v := range vs {
		if !v.Type.IsTensor() || !v.Type.Static() {
			continue
		}
		a, err := ir.TryNewArray(v.Type.DType, v.Type.Shape())
		if err != nil {
			return err
		}
		d.vals[v] = a
	}
	return nil
}

func (d *dryRun) node(n *ir.Node) error {
	if n.Op != ir.OpFused && len(n.Blocks) > 0 {
		for _, b := range n.Blocks {
			if err := d.block(b); err != nil {
				return err
			}
		}
		return d.sample(n.Results...)
	}
	args, known := make([]ir.Datum, len(n.Args)), true
	tensors := false
	for i, a := range n.Args {
		args[i], known = d.vals[a], known && d.has(a)
		tensors = tensors || a.Type.IsTensor()
	}
	switch {
	case n.Op == ir.OpConst:
		d.vals[n.Results[0]] = n.Attrs.Value
		return nil
	case !known:
		d.onHost(n, " (expanded when it runs)")
		return d.sample(n.Results...)
	case n.Op.Class == ir.View, n.Op.Class == ir.Host && !tensors && n.Op.Effect == ir.Pure:
		if out, err := n.Op.Eval(&ir.EvalCall{Node: n, Args: args, Ctx: d.ctx}); err == nil {
			return d.set(n.Results, out)
		}
		return d.sample(n.Results...)
	}
	d.used = nil
	out, ok, err := d.kernels.Kernel(d.ctx, n, args)
	if err != nil {
		return err
	}
	switch {
	case ok && len(d.used) == 0:
		d.notes = append(d.notes, "kernels from above for "+describe(n))
	case len(d.used) > 0:
		names := make([]string, len(d.used))
		for i, k := range d.used {
			names[i] = cpu.Symbol(d.names[k], k)
		}
		d.notes = append(d.notes, strings.Join(names, ", ")+" for "+describe(n))
	}
	if ok {
		return d.set(n.Results, out)
	}
	d.onHost(n, "")
	return d.sample(n.Results...)
}

func (d *dryRun) has(v *ir.Value) bool { _, ok := d.vals[v]; return ok }

func (d *dryRun) set(vs []*ir.Value, out []ir.Datum) error {
	for i, v := range vs {
		d.vals[v] = out[i]
	}
	return nil
}

// onHost notes a node on tensors that no kernel computes.
func (d *dryRun) onHost(n *ir.Node, why string) {
	switch n.Op.Class {
	case ir.View, ir.Generate:
		return
	}
	for _, r := range n.Results {
		if r.Type.IsTensor() {
			d.host = append(d.host, describe(n)+why)
			return
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

func (d *dryRun) header(f *ir.Func, t llvm.Target, comment string) string {
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
