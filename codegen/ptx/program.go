package ptx

import (
	"fmt"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// Program is a compiled function: PTX text, and how to run it.
type Program struct {
	Text     string // the module, with the rest of this structure as comments at its head
	Buffers  []*Buffer
	Launches []Launch
	Results  []ir.Datum // per result of the function: an *ir.Array without Data whose Owner is a *Buffer, or a host value
	Fault    bool       // some kernel takes the fault word
}

// BufferKind says where a buffer's memory comes from.
type BufferKind uint8

// The kinds of buffer.
const (
	Input    BufferKind = iota // a tensor that the caller passes, contiguous
	Temp                       // memory that the caller provides; results lie in such, too
	Constant                   // a symbol of the module
)

// String names the kind.
func (k BufferKind) String() string { return [...]string{"input", "temp", "constant"}[k] }

// Buffer is a piece of device memory.
type Buffer struct {
	Kind  BufferKind
	Name  string // of a constant: its symbol
	DType dtype.DType
	Elems int
}

// Bytes is the buffer's size.
func (b *Buffer) Bytes() int { return b.Elems * b.DType.Size() }

// Launch is one kernel launch. Launches run in order; each sees what those before it wrote.
type Launch struct {
	Kernel      string
	Grid, Block int // blocks, and threads per block, along x
	Args        []Arg
}

// Arg is one 64-bit argument: an address in a buffer, the address of the fault word, or a number.
type Arg struct {
	Buffer *Buffer
	Offset int // into Buffer, in bytes
	Fault  bool
	Number int64
}

func (a Arg) String() string {
	switch {
	case a.Fault:
		return "fault"
	case a.Buffer == nil:
		return fmt.Sprint(a.Number)
	case a.Offset != 0:
		return fmt.Sprintf("%s%+d", a.Buffer.Name, a.Offset)
	}
	return a.Buffer.Name
}

// header is the manifest: everything that a host needs in order to run the module, as comments.
func (p *Program) header(f *ir.Func, arch string) string {
	var sb strings.Builder
	line := func(format string, args ...any) {
		sb.WriteString(strings.TrimRight("// "+fmt.Sprintf(format, args...), " ") + "\n")
	}
	line("gtc: CUDA module of %s for %s", f.Name, arch)
	line("")
	line("buffers (kind, name, dtype, elements, bytes):")
	for _, b := range p.Buffers {
		line("  %s %s %s %d %d", b.Kind, b.Name, b.DType, b.Elems, b.Bytes())
	}
	if p.Fault {
		line("  fault: one .u32, zero before the first launch; afterwards %d means %s", scalar.FaultZero, scalar.FaultZero)
	}
	line("launches, in order; every argument has 64 bits, offsets are in bytes:")
	for i, l := range p.Launches {
		args := make([]string, len(l.Args))
		for k, a := range l.Args {
			args[k] = a.String()
		}
		line("  %d: %s grid %d block %d (%s)", i, l.Kernel, l.Grid, l.Block, strings.Join(args, ", "))
	}
	line("results (strides and offset in elements):")
	for i, r := range p.Results {
		a, ok := r.(*ir.Array)
		if !ok {
			line("  %d: %s", i, oneLine(ir.FormatDatum(r)))
			continue
		}
		line("  %d: %s %s%v strides %v offset %d", i, a.Owner.(*Buffer).Name, a.DType, a.Shape, a.Strides, a.Offset)
	}
	return sb.String()
}

func oneLine(s string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) }
