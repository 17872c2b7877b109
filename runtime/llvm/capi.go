//go:build !nollvm && ((linux && (amd64 || arm64)) || darwin)

package llvm

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Handles of LLVM's objects. They are opaque pointers that LLVM owns.
type (
	context unsafe.Pointer
	module  unsafe.Pointer
	machine unsafe.Pointer
)

// capi holds the functions of LLVM's C API that are used, all of which exist in LLVM 14 and 19.
type capi struct {
	contextCreate               func() context
	contextDispose              func(context)
	contextSetDiagnosticHandler func(ctx context, handler uintptr, data uintptr)
	installFatalErrorHandler    func(handler uintptr)
	diagDescription             func(info unsafe.Pointer) unsafe.Pointer
	diagSeverity                func(info unsafe.Pointer) int32

	createBufferCopy  func(data unsafe.Pointer, n uintptr, name string) unsafe.Pointer
	bufferStart       func(unsafe.Pointer) unsafe.Pointer
	bufferSize        func(unsafe.Pointer) uintptr
	disposeBuffer     func(unsafe.Pointer)
	disposeMessage    func(unsafe.Pointer)
	errorMessage      func(unsafe.Pointer) unsafe.Pointer
	disposeErrMessage func(unsafe.Pointer)

	parseIR           func(ctx context, buffer unsafe.Pointer, m *module, msg *unsafe.Pointer) int32 // takes the buffer over
	verifyModule      func(m module, action int32, msg *unsafe.Pointer) int32
	printModule       func(module) unsafe.Pointer
	disposeModule     func(module)
	setTarget         func(m module, triple string)
	setDataLayout     func(m module, layout unsafe.Pointer)
	disposeDataLayout func(unsafe.Pointer)

	getDefaultTargetTriple func() unsafe.Pointer
	getHostCPUName         func() unsafe.Pointer
	getHostCPUFeatures     func() unsafe.Pointer
	targetFromTriple       func(triple string, t *unsafe.Pointer, msg *unsafe.Pointer) int32
	createTargetMachine    func(t unsafe.Pointer, triple, cpu, features string, opt, reloc, model int32) machine
	createDataLayout       func(machine) unsafe.Pointer
	emitToBuffer           func(tm machine, m module, kind int32, msg *unsafe.Pointer, buffer *unsafe.Pointer) int32

	createPassOptions  func() unsafe.Pointer
	disposePassOptions func(unsafe.Pointer)
	runPasses          func(m module, passes string, tm machine, options unsafe.Pointer) unsafe.Pointer
}

// bind looks up every function.
func (c *capi) bind(h uintptr) error {
	for _, f := range []struct {
		name string
		fn   any
	}{
		{"LLVMContextCreate", &c.contextCreate},
		{"LLVMContextDispose", &c.contextDispose},
		{"LLVMContextSetDiagnosticHandler", &c.contextSetDiagnosticHandler},
		{"LLVMInstallFatalErrorHandler", &c.installFatalErrorHandler},
		{"LLVMGetDiagInfoDescription", &c.diagDescription},
		{"LLVMGetDiagInfoSeverity", &c.diagSeverity},
		{"LLVMCreateMemoryBufferWithMemoryRangeCopy", &c.createBufferCopy},
		{"LLVMGetBufferStart", &c.bufferStart},
		{"LLVMGetBufferSize", &c.bufferSize},
		{"LLVMDisposeMemoryBuffer", &c.disposeBuffer},
		{"LLVMDisposeMessage", &c.disposeMessage},
		{"LLVMGetErrorMessage", &c.errorMessage},
		{"LLVMDisposeErrorMessage", &c.disposeErrMessage},
		{"LLVMParseIRInContext", &c.parseIR},
		{"LLVMVerifyModule", &c.verifyModule},
		{"LLVMPrintModuleToString", &c.printModule},
		{"LLVMDisposeModule", &c.disposeModule},
		{"LLVMSetTarget", &c.setTarget},
		{"LLVMSetModuleDataLayout", &c.setDataLayout},
		{"LLVMDisposeTargetData", &c.disposeDataLayout},
		{"LLVMGetDefaultTargetTriple", &c.getDefaultTargetTriple},
		{"LLVMGetHostCPUName", &c.getHostCPUName},
		{"LLVMGetHostCPUFeatures", &c.getHostCPUFeatures},
		{"LLVMGetTargetFromTriple", &c.targetFromTriple},
		{"LLVMCreateTargetMachine", &c.createTargetMachine},
		{"LLVMCreateTargetDataLayout", &c.createDataLayout},
		{"LLVMTargetMachineEmitToMemoryBuffer", &c.emitToBuffer},
		{"LLVMCreatePassBuilderOptions", &c.createPassOptions},
		{"LLVMDisposePassBuilderOptions", &c.disposePassOptions},
		{"LLVMRunPasses", &c.runPasses},
	} {
		p, err := purego.Dlsym(h, f.name)
		if err != nil {
			return fmt.Errorf("function %s is missing: %w", f.name, err)
		}
		purego.RegisterFunc(f.fn, p)
	}
	return nil
}

// take copies a message of LLVM's and gives it back.
func (c *capi) take(msg unsafe.Pointer) string {
	if msg == nil {
		return ""
	}
	s := cString(msg)
	c.disposeMessage(msg)
	return s
}

// takeError turns an LLVMErrorRef into a Go error; nil means success.
func (c *capi) takeError(e unsafe.Pointer) error {
	if e == nil {
		return nil
	}
	msg := c.errorMessage(e)
	defer c.disposeErrMessage(msg)
	return fmt.Errorf("%s", cString(msg))
}

// takeBuffer copies a memory buffer and gives it back.
func (c *capi) takeBuffer(b unsafe.Pointer) []byte {
	defer c.disposeBuffer(b)
	n := c.bufferSize(b)
	out := make([]byte, n)
	copy(out, unsafe.Slice((*byte)(c.bufferStart(b)), n))
	return out
}

// cString copies a NUL-terminated string.
func cString(p unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}
