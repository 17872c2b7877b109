package cpu

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"weak"

	"github.com/gtc-project/gtc/ir/scalar"
	"github.com/gtc-project/gtc/runtime/cache"
	"github.com/gtc-project/gtc/runtime/jit"
	"github.com/gtc-project/gtc/runtime/llvm"
	"github.com/gtc-project/gtc/runtime/pool"
)

// loaderABI goes into every cache key; it changes when the way kernels are called does.
const loaderABI = "1"

// Options configure New. The zero value means the defaults.
type Options struct {
	LLVM   *llvm.LLVM   // nil: llvm.Load
	Cache  *cache.Cache // nil: cache.Default
	Pool   *pool.Pool   // nil: pool.Default
	Target *llvm.Target // nil: the host
	// Record, where set, gets the text of every kernel instead of it being compiled; running one then does nothing.
	Record func(name, text string)
}

// Backend compiles and runs kernels. It is safe for concurrent use.
type Backend struct {
	llvm   *llvm.LLVM
	cache  *cache.Cache
	pool   *pool.Pool
	target llvm.Target
	passes string
	vector int  // bytes of a vector register
	fma    bool // the CPU has fused multiply-add
	record func(name, text string)

	mapFamilies    families[mapKernels]
	reduceFamilies families[reduceKernels]

	maps    sync.Map  // weak pointer to a scalar.Prog -> *mapKernels
	reduces sync.Map  // reduceKey -> *reduceKernels
	others  lazyFuncs // by gemmKey and gatherKey

	mu      sync.Mutex
	modules map[cache.Key]weak.Pointer[jit.Module] // code in use, by what it was made of
}

// New makes a backend. It fails where LLVM is missing or the platform cannot run the code.
func New(o Options) (*Backend, error) {
	if !jit.Supported {
		return nil, errors.New("cpu: this platform is not supported; use the reference evaluator (--target=interp)")
	}
	if o.LLVM == nil {
		l, err := llvm.Load()
		if err != nil {
			return nil, err
		}
		o.LLVM = l
	}
	if o.Cache == nil {
		o.Cache = cache.Default()
	}
	if o.Pool == nil {
		o.Pool = pool.Default()
	}
	b := &Backend{llvm: o.LLVM, cache: o.Cache, pool: o.Pool, target: o.LLVM.Host(), passes: llvm.Passes(o.LLVM.Version()), modules: map[cache.Key]weak.Pointer[jit.Module]{}}
	if o.Target != nil {
		b.target = *o.Target
	}
	b.record = o.Record
	b.fma = b.target.HasFeature("fma")
	switch {
	case b.target.HasFeature("avx512f"):
		b.vector = 64
	case b.target.HasFeature("avx"):
		b.vector = 32
	case b.target.HasFeature("sse4.1"):
		b.vector = 16
	default:
		return nil, fmt.Errorf("cpu: the CPU %s has no SSE4.1, which generated code needs; use the reference evaluator (--target=interp)", b.target.CPU)
	}
	return b, nil
}

// Default is the process's backend, or the error that New gives.
var Default = sync.OnceValues(func() (*Backend, error) { return New(Options{}) })

// Target is the machine that code is made for.
func (b *Backend) Target() llvm.Target { return b.target }

// compile gives the function with the given name in LLVM text. Code lives as long as a function of it does.
func (b *Backend) compile(text, name string) (jit.Func, error) {
	target := b.target
	if b.record != nil {
		b.record(name, text)
		text, name, target = emptyText, "empty", b.llvm.Host()
	}
	key := cache.MakeKey(text, target.Triple, target.CPU, target.Features, b.passes, b.llvm.Version().String(), loaderABI)
	b.mu.Lock()
	m := b.modules[key].Value()
	b.mu.Unlock()
	if m == nil {
		obj, err := b.cache.Do(key, func() ([]byte, error) { return b.llvm.Compile(text, target, b.passes, llvm.Object) })
		if err != nil {
			return jit.Func{}, fmt.Errorf("cpu: kernel %s: %w", name, err)
		}
		if m, err = jit.Load(obj); err != nil {
			return jit.Func{}, fmt.Errorf("cpu: kernel %s: %w", name, err)
		}
		b.mu.Lock()
		b.modules[key] = weak.Make(m)
		b.mu.Unlock()
		runtime.AddCleanup(m, b.forget, key)
	}
	return m.Lookup(name)
}

// emptyText is a kernel that does nothing.
const emptyText = "define void @empty(i64* %args) {\n  ret void\n}\n"

// forget drops the entry of code that is gone.
func (b *Backend) forget(key cache.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.modules[key].Value() == nil {
		delete(b.modules, key)
	}
}

// Emit compiles LLVM text of this package's kernels, for one or for several (Merge), to another form.
func (b *Backend) Emit(text string, out llvm.Output) ([]byte, error) {
	return b.llvm.Compile(text, b.target, b.passes, out)
}

// lanesFor chooses how many elements a program computes at once: one vector register of its widest type.
func (b *Backend) lanesFor(p *scalar.Prog) int {
	size := 1
	for r := range p.NumRegs() {
		if c := r - len(p.In); c >= 0 && p.Code[c].Op == scalar.Fault {
			continue
		}
		size = max(size, p.TypeOf(scalar.Reg(r)).Size())
	}
	return b.vector / size
}
