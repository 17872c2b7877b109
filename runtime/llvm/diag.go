//go:build !nollvm && ((linux && (amd64 || arm64)) || darwin)

package llvm

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// diagnostics collects what LLVM reports while one context is in use. LLVM is given the id, not a Go pointer.
type diagnostics struct {
	id   uintptr
	c    *capi
	mu   sync.Mutex
	errs []error
}

var (
	diagMu   sync.Mutex
	diagLast uintptr
	diagByID = map[uintptr]*diagnostics{}
)

func newDiagnostics(c *capi) *diagnostics {
	diagMu.Lock()
	defer diagMu.Unlock()
	diagLast++
	d := &diagnostics{id: diagLast, c: c}
	diagByID[d.id] = d
	return d
}

func (d *diagnostics) close() {
	diagMu.Lock()
	delete(diagByID, d.id)
	diagMu.Unlock()
}

// err joins the errors reported so far.
func (d *diagnostics) err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.errs...)
}

// diagnosticHandler is the C callback for every context: without one LLVM prints an error and ends the process.
var diagnosticHandler = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(info unsafe.Pointer, id uintptr) {
		diagMu.Lock()
		d := diagByID[id]
		diagMu.Unlock()
		const severityError = 0
		if d == nil || d.c.diagSeverity(info) != severityError {
			return
		}
		err := fmt.Errorf("llvm: %s", d.c.take(d.c.diagDescription(info)))
		d.mu.Lock()
		d.errs = append(d.errs, err)
		d.mu.Unlock()
	})
})

// fatalHandler is the C callback for what LLVM cannot survive. LLVM's code is in an unknown state then, so the process ends.
var fatalHandler = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(reason unsafe.Pointer) {
		fmt.Fprintf(os.Stderr, "gtc: LLVM cannot go on: %s\ngtc: this is a bug in gtc's code generation; --target=interp avoids LLVM\n", cString(reason))
		os.Exit(2)
	})
})
