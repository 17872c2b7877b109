//go:build !nollvm && ((linux && (amd64 || arm64)) || darwin)

package llvm

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// Compile parses LLVM text, runs the passes ("" for none) and emits it for the target. Whatever LLVM finds wrong with text, target
// or pass string is returned as an error with LLVM's own words. Code is position independent, in the small code model.
//
// An operation that the target cannot lower at all ends the process from inside LLVM; callers emit only what is known to lower.
func (l *LLVM) Compile(text string, t Target, passes string, out Output) ([]byte, error) {
	if strings.HasPrefix(t.Triple, "nvptx") {
		if l.version.Major < 19 {
			return nil, fmt.Errorf("llvm: PTX needs LLVM 19, but %s is version %v; %s", l.path, l.version, installHint)
		}
		if err := l.nvptx(); err != nil {
			return nil, fmt.Errorf("llvm: %w", err)
		}
	}
	tm, err := l.machine(t)
	if err != nil {
		return nil, err
	}
	defer l.release(t, tm)

	ctx := l.c.contextCreate()
	defer l.c.contextDispose(ctx)
	diags := newDiagnostics(&l.c)
	defer diags.close()
	l.c.contextSetDiagnosticHandler(ctx, diagnosticHandler(), diags.id)

	m, err := l.parse(ctx, text)
	if err != nil {
		return nil, errors.Join(err, diags.err())
	}
	defer l.c.disposeModule(m)
	b, err := l.emit(m, tm, t, passes, out)
	if err = errors.Join(err, diags.err()); err != nil {
		return nil, err
	}
	return b, nil
}

// parse reads and verifies a module.
func (l *LLVM) parse(ctx context, text string) (module, error) {
	data := append([]byte(text), 0)
	buf := l.c.createBufferCopy(unsafe.Pointer(&data[0]), uintptr(len(text)), "kernel")
	runtime.KeepAlive(data)
	m, msg := new(module), new(unsafe.Pointer)
	if l.c.parseIR(ctx, buf, m, msg) != 0 {
		return nil, fmt.Errorf("llvm: cannot parse: %s", strings.TrimSpace(l.c.take(*msg)))
	}
	const returnStatus = 2
	bad := l.c.verifyModule(*m, returnStatus, msg)
	text = strings.TrimSpace(l.c.take(*msg))
	if bad != 0 {
		l.c.disposeModule(*m)
		return nil, fmt.Errorf("llvm: the module is not valid: %s", text)
	}
	return *m, nil
}

// emit optimises the module and writes it in the wanted form.
func (l *LLVM) emit(m module, tm machine, t Target, passes string, out Output) ([]byte, error) {
	layout := l.c.createDataLayout(tm)
	l.c.setDataLayout(m, layout)
	l.c.disposeDataLayout(layout)
	l.c.setTarget(m, t.Triple)
	if passes != "" {
		opts := l.c.createPassOptions()
		err := l.c.takeError(l.c.runPasses(m, passes, tm, opts))
		l.c.disposePassOptions(opts)
		if err != nil {
			return nil, fmt.Errorf("llvm: passes %q: %w", passes, err)
		}
	}
	kind := int32(0)
	switch out {
	case IR:
		return []byte(l.c.take(l.c.printModule(m))), nil
	case Object:
		kind = 1
	}
	msg, buf := new(unsafe.Pointer), new(unsafe.Pointer)
	if l.c.emitToBuffer(tm, m, kind, msg, buf) != 0 {
		return nil, fmt.Errorf("llvm: cannot emit code for %s (%s): %s", t.Triple, t.CPU, l.c.take(*msg))
	}
	return l.c.takeBuffer(*buf), nil
}

// machine takes an idle target machine or makes one; making one costs about as much as compiling a small kernel.
func (l *LLVM) machine(t Target) (machine, error) {
	l.mu.Lock()
	if idle := l.machines[t]; len(idle) > 0 {
		tm := idle[len(idle)-1]
		l.machines[t] = idle[:len(idle)-1]
		l.mu.Unlock()
		return tm, nil
	}
	l.mu.Unlock()
	target, msg := new(unsafe.Pointer), new(unsafe.Pointer)
	if l.c.targetFromTriple(t.Triple, target, msg) != 0 {
		return nil, fmt.Errorf("llvm: target %q: %s", t.Triple, strings.TrimSpace(l.c.take(*msg)))
	}
	const optAggressive, relocPIC, modelSmall, modelDefault = 3, 2, 3, 0
	model := int32(modelSmall)
	if strings.HasPrefix(t.Triple, "nvptx") {
		model = modelDefault
	}
	tm := l.c.createTargetMachine(*target, t.Triple, t.CPU, t.Features, optAggressive, relocPIC, model)
	if tm == nil {
		return nil, fmt.Errorf("llvm: no target machine for %+v", t)
	}
	return tm, nil
}

func (l *LLVM) release(t Target, tm machine) {
	l.mu.Lock()
	l.machines[t] = append(l.machines[t], tm)
	l.mu.Unlock()
}
