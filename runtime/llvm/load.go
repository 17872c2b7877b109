//go:build !nollvm && ((linux && (amd64 || arm64)) || darwin)

package llvm

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/ebitengine/purego"
)

// LLVM is a loaded library. It is safe for concurrent use: every compilation has a context of its own.
type LLVM struct {
	c       capi
	path    string
	version Version
	host    Target

	nvptx func() error // registers the NVPTX back end once

	mu       sync.Mutex
	machines map[Target][]machine // idle target machines
}

// Load finds and opens libLLVM once; later calls return the same result. The error lists the names tried and how to install it.
func Load() (*LLVM, error) { return loadOnce() }

var loadOnce = sync.OnceValues(func() (*LLVM, error) { return Open(Options{}) })

// candidates are the names of libLLVM in order of preference; 19 makes PTX too, the others are good for CPU code.
func candidates() []string {
	if runtime.GOOS == "darwin" {
		return []string{"/opt/homebrew/opt/llvm@19/lib/libLLVM.dylib", "/usr/local/opt/llvm@19/lib/libLLVM.dylib",
			"/opt/homebrew/opt/llvm@14/lib/libLLVM.dylib", "libLLVM.dylib"}
	}
	names := []string{"libLLVM.so.19.1", "libLLVM-19.so.1", "libLLVM-19.so"}
	for _, v := range []int{18, 17, 16, 15, 14} {
		if v == 18 {
			names = append(names, "libLLVM.so.18.1")
		}
		names = append(names, fmt.Sprintf("libLLVM-%d.so.1", v), fmt.Sprintf("libLLVM-%d.so", v))
	}
	return names
}

// Open opens a libLLVM without the process-wide cache of Load.
func Open(o Options) (*LLVM, error) {
	if o.Path == "none" {
		return nil, fmt.Errorf("llvm: switched off (path \"none\"); %s", installHint)
	}
	names := candidates()
	if o.Path != "" {
		names = []string{o.Path}
	}
	var tried []string
	for _, name := range names {
		l, err := open(name)
		if err == nil {
			return l, nil
		}
		tried = append(tried, fmt.Sprintf("  %s: %v", name, err))
	}
	return nil, fmt.Errorf("llvm: no usable libLLVM found; tried\n%s\n%s", strings.Join(tried, "\n"), installHint)
}

func open(name string) (*LLVM, error) {
	h, err := purego.Dlopen(name, purego.RTLD_LAZY|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	l := &LLVM{path: name, machines: map[Target][]machine{}}
	if err := l.c.bind(h); err != nil {
		return nil, err
	}
	l.version = l.findVersion(h)
	if l.version.Major < 14 {
		return nil, fmt.Errorf("version %v is too old: 14 or later is needed", l.version)
	}
	backend := map[string]string{"amd64": "X86", "arm64": "AArch64"}[runtime.GOARCH]
	if err := initBackend(h, backend); err != nil {
		return nil, err
	}
	l.nvptx = sync.OnceValue(func() error { return initBackend(h, "NVPTX") })
	l.c.installFatalErrorHandler(fatalHandler())
	l.host = Target{
		Triple:   l.c.take(l.c.getDefaultTargetTriple()),
		CPU:      l.c.take(l.c.getHostCPUName()),
		Features: l.c.take(l.c.getHostCPUFeatures()),
	}
	return l, nil
}

var majorInName = regexp.MustCompile(`(?:-|\.so\.|@)(\d+)`)

// findVersion asks the library, or, before LLVM 16, reads the number in its file name.
func (l *LLVM) findVersion(h uintptr) Version {
	if p, err := purego.Dlsym(h, "LLVMGetVersion"); err == nil {
		var get func(major, minor, patch *uint32)
		purego.RegisterFunc(&get, p)
		v := new([3]uint32)
		get(&v[0], &v[1], &v[2])
		return Version{int(v[0]), int(v[1]), int(v[2])}
	}
	name := l.path
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	if m := majorInName.FindStringSubmatch(filepath.Base(name)); m != nil {
		n, _ := strconv.Atoi(m[1])
		return Version{Major: n}
	}
	return Version{Major: 14} // every function that open needs was found, and none that came later
}

// initBackend registers one of LLVM's back ends; doing so twice is harmless.
func initBackend(h uintptr, name string) error {
	if name == "" {
		return fmt.Errorf("no LLVM back end is known for %s", runtime.GOARCH)
	}
	for _, part := range []string{"TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser"} {
		if name == "NVPTX" && part == "AsmParser" {
			continue // it has none
		}
		p, err := purego.Dlsym(h, "LLVMInitialize"+name+part)
		if err != nil {
			return fmt.Errorf("this libLLVM has no %s back end: %w", name, err)
		}
		var init func()
		purego.RegisterFunc(&init, p)
		init()
	}
	return nil
}

// Version is the library's version.
func (l *LLVM) Version() Version { return l.version }

// Path is the name under which the library was found.
func (l *LLVM) Path() string { return l.path }

// Host is the machine this process runs on, with all its CPU features.
func (l *LLVM) Host() Target { return l.host }
