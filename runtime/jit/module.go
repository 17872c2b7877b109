package jit

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unsafe"
)

// Module is loaded code. Its pages are given back when neither it nor any Func of it is reachable.
type Module struct {
	mem   []byte
	funcs map[string]uint64
}

// Func is a machine-code function void f(void *args).
type Func struct {
	addr uintptr
	mod  *Module
}

// Valid reports whether f is a function; the zero Func is not.
func (f Func) Valid() bool { return f.addr != 0 }

// Load places object code in memory. Errors name the unsupported relocation, the undefined symbol or the damaged part.
func Load(obj []byte) (*Module, error) {
	im, place, err := link(obj)
	if err != nil {
		return nil, err
	}
	mem, err := mapPages(im.size)
	if err != nil {
		return nil, err
	}
	base := uint64(uintptr(unsafe.Pointer(&mem[0])))
	if err = place(mem, base); err == nil {
		err = protect(mem, im.segs)
	}
	if err != nil {
		unmapPages(mem)
		return nil, err
	}
	m := &Module{mem: mem, funcs: im.exports()}
	runtime.AddCleanup(m, unmapPages, mem)
	return m, nil
}

// Lookup finds a function by its symbol name.
func (m *Module) Lookup(name string) (Func, error) {
	off, ok := m.funcs[name]
	if !ok {
		return Func{}, fmt.Errorf("jit: no function %q in this module; it has %s", name, strings.Join(m.Names(), ", "))
	}
	return Func{addr: uintptr(unsafe.Pointer(&m.mem[off])), mod: m}, nil
}

// Names lists the functions in order of name.
func (m *Module) Names() []string {
	names := make([]string, 0, len(m.funcs))
	for n := range m.funcs {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Size is the number of bytes that the module's pages take.
func (m *Module) Size() int { return len(m.mem) }

// Call runs f(args) on stack s, which no other call may use meanwhile. args points to a heap-allocated flat struct; whatever it
// points to must be kept alive by the caller until Call returns.
func Call(f Func, args unsafe.Pointer, s *Stack) {
	call(f.addr, args, s.top)
	runtime.KeepAlive(f.mod)
	runtime.KeepAlive(s)
}
