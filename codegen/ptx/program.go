package ptx

import (
	"fmt"
	"strconv"
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
	Results  []ir.Datum // per result of the function, lists and tuples flattened: an *ir.Array without Data whose Owner is a *Buffer, or a host value
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
	Name  string // an input's is its parameter's, quoted where it holds odd characters; a temp's starts with $; a constant's is its symbol
	DType dtype.DType
	Elems int
}

// Bytes is the buffer's size.
func (b *Buffer) Bytes() int { return b.Elems * b.DType.Size() }

// String is the buffer's name as it stands in the manifest: a symbol of the module has an & in front.
func (b *Buffer) String() string {
	if b.Kind == Constant {
		return "&" + b.Name
	}
	return b.Name
}

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
		return fmt.Sprintf("%s%+d", a.Buffer, a.Offset)
	}
	return a.Buffer.String()
}

// header is the manifest: everything that a host needs in order to run the module, as comments.
func (p *Program) header(f *ir.Func, arch string) string {
	var sb strings.Builder
	line := func(format string, args ...any) {
		sb.WriteString(strings.TrimRight("// "+fmt.Sprintf(format, args...), " ") + "\n")
	}
	line("gtc: CUDA module of %s for %s", plain(f.Name), arch)
	line("")
	line("buffers (kind, name, dtype, elements, bytes):")
	for _, b := range p.Buffers {
		line("  %s %s %s %d %d", b.Kind, b, b.DType, b.Elems, b.Bytes())
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
			line("  %d: %s", i, plain(ir.FormatDatum(r)))
			continue
		}
		line("  %d: %s %s%v strides %v offset %d", i, a.Owner.(*Buffer), a.DType, a.Shape, a.Strides, a.Offset)
	}
	return sb.String()
}

// plain is s itself, or quoted where it would not stay on its line or could be mistaken for something else.
func plain(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return strconv.QuoteToASCII(s)
	}
	return s
}

// word is s itself where it is a name of letters, digits, dots and underscores, else quoted.
func word(s string) string {
	odd := func(r rune) bool {
		return r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if s == "" || strings.ContainsFunc(s, odd) {
		return strconv.QuoteToASCII(s)
	}
	return s
}
