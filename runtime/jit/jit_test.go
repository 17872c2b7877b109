package jit

import (
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/runtime/llvm"
)

// object compiles LLVM text, or skips where that or running code is impossible.
func object(t testing.TB, text string) []byte {
	if !Supported {
		t.Skip("no machine code on this platform")
	}
	l, err := llvm.Load()
	if err != nil {
		t.Skip(err)
	}
	obj, err := l.Compile(text, l.Host(), "", llvm.Object)
	require.NoError(t, err)
	return obj
}

const sumText = `
@table = internal constant [4 x i64] [i64 1, i64 10, i64 100, i64 1000]
@counter = internal global i64 0
@pointer = internal global i64* @counter
@visible = global i64 7
define internal i64 @entry(i64 %i) noinline {
  %p = getelementptr [4 x i64], [4 x i64]* @table, i64 0, i64 %i
  %v = load i64, i64* %p
  ret i64 %v
}
define void @sum(i64* %args) {
  %n = load i64, i64* %args
  %e = call i64 @entry(i64 %n)
  %q = load i64*, i64** @pointer
  %c = load i64, i64* %q
  %c1 = add i64 %c, 1
  store i64 %c1, i64* %q
  %w = load i64, i64* @visible
  %s = add i64 %e, %c1
  %s2 = add i64 %s, %w
  store i64 %s2, i64* %args
  ret void
}
`

func stack(t testing.TB) *Stack {
	s, err := NewStack()
	require.NoError(t, err)
	return s
}

// Code, constants, writable data, absolute pointers and the global offset table all work.
func TestLoadAndCall(t *testing.T) {
	m, err := Load(object(t, sumText))
	require.NoError(t, err)
	require.Equal(t, []string{"sum", "visible"}, m.Names())
	f, err := m.Lookup("sum")
	require.NoError(t, err)
	require.True(t, f.Valid())
	args := new([1]int64)
	for i, want := range []int64{1 + 1 + 7, 10 + 2 + 7, 100 + 3 + 7, 1000 + 4 + 7} {
		args[0] = int64(i)
		Call(f, unsafe.Pointer(args), stack(t))
		require.Equal(t, want, args[0])
	}
	_, err = m.Lookup("product")
	require.ErrorContains(t, err, `no function "product" in this module; it has sum`)
}

func TestUndefinedSymbolIsNamed(t *testing.T) {
	_, err := Load(object(t, "declare float @expf(float)\ndefine void @f(float* %p) {\n %x = load float, float* %p\n %y = call float @expf(float %x)\n store float %y, float* %p\n ret void }"))
	require.ErrorContains(t, err, `"expf"`)
}

// Whatever happens to an object file's bytes, Load returns.
func TestDamagedObjects(t *testing.T) {
	obj := object(t, sumText)
	for n := 0; n < len(obj); n += 7 {
		damaged(obj[:n])
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		b := append([]byte(nil), obj...)
		for range 1 + r.IntN(4) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		damaged(b)
	}
	for _, b := range [][]byte{nil, {}, []byte("\x7fELF"), make([]byte, 200)} {
		require.Error(t, damaged(b))
	}
}

// Sizes in section headers are not trusted: zeros that the object claims to want are not mapped.
func TestHugeZeroSectionsAreRefused(t *testing.T) {
	b := object(t, sumText)
	headers := binary.LittleEndian.Uint64(b[40:])
	text := headers + 64*2 // the first section with contents
	binary.LittleEndian.PutUint32(b[text+4:], uint32(elf.SHT_NOBITS))
	binary.LittleEndian.PutUint64(b[text+8:], uint64(elf.SHF_ALLOC))
	binary.LittleEndian.PutUint64(b[text+32:], 200<<20)

	require.ErrorContains(t, damaged(b), "too large")
}

func damaged(b []byte) error {
	_, err := Load(b)
	return err
}

func FuzzLoad(f *testing.F) {
	f.Add(object(f, sumText))
	f.Fuzz(func(t *testing.T, b []byte) { _ = damaged(b) })
}

// The garbage collector, stack growth and the profiler's and scheduler's signals leave running code alone.
func TestCallUnderSignalsAndCollection(t *testing.T) {
	m, err := Load(object(t, `define void @spin(i64* %args) {
entry:
  br label %loop
loop:
  %n = load volatile i64, i64* %args
  %n1 = sub i64 %n, 1
  store volatile i64 %n1, i64* %args
  %done = icmp eq i64 %n1, 0
  br i1 %done, label %exit, label %loop
exit:
  ret void
}`))
	require.NoError(t, err)
	f, err := m.Lookup("spin")
	require.NoError(t, err)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	s := stack(t)
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
		args := new([1]int64)
		args[0] = 20000
		Call(f, unsafe.Pointer(args), s)
		require.Zero(t, args[0])
	}
	close(stop)
	<-done
}

// A frame that is too large hits the guard page and ends the process instead of overwriting other memory.
func TestGuardPage(t *testing.T) {
	const env = "GTC_JIT_TEST_GUARD"
	if os.Getenv(env) == "" {
		object(t, sumText) // skips where nothing can run
		cmd := exec.Command(os.Args[0], "-test.run=^TestGuardPage$")
		cmd.Env = append(os.Environ(), env+"=1")
		out, err := cmd.CombinedOutput()
		require.ErrorContains(t, err, "segmentation fault")
		require.NotContains(t, string(out), "survived")
		return
	}
	m, err := Load(object(t, `define void @deep(i64* %p) {
  %a = alloca [262144 x i8]
  %q = getelementptr [262144 x i8], [262144 x i8]* %a, i64 0, i64 0
  store volatile i8 1, i8* %q
  ret void
}`))
	require.NoError(t, err)
	f, _ := m.Lookup("deep")
	Call(f, unsafe.Pointer(new([1]int64)), stack(t))
	t.Log("survived")
}

// Code is unmapped with its module, but not before its last Func.
func TestModulesAreCollected(t *testing.T) {
	obj := object(t, sumText)
	for range 200 {
		m, err := Load(obj)
		require.NoError(t, err)
		f, err := m.Lookup("sum")
		require.NoError(t, err)
		runtime.GC()
		args := new([1]int64)
		Call(f, unsafe.Pointer(args), stack(t))
		require.Equal(t, int64(1+1+7), args[0])
	}
}

func BenchmarkLoad(b *testing.B) {
	obj := object(b, sumText)
	for b.Loop() {
		if _, err := Load(obj); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	m, err := Load(object(b, "define void @f(i64* %p) { ret void }"))
	require.NoError(b, err)
	f, _ := m.Lookup("f")
	args, s := new([1]int64), stack(b)
	for b.Loop() {
		Call(f, unsafe.Pointer(args), s)
	}
}
