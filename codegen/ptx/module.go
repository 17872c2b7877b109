package ptx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// blockSize is the number of threads of a block of every kernel.
const blockSize = 256

// maxBlocks bounds grids: enough to fill any GPU, and every kernel loops over the rest.
const maxBlocks = 1 << 16

// maxParams bounds a kernel's parameters: 4,096 bytes is what every arch takes.
const maxParams = 4096 / 8

// module is LLVM text under construction: kernels, the tables they read, and what they declare.
type module struct {
	declared []string
	globals  []string
	tables   map[string]tableRef // by contents
	constant int                 // bytes of constant memory in use
	kernels  []*function
	byKey    map[string]*function
	names    map[string]bool
}

func newModule() *module {
	return &module{tables: map[string]tableRef{}, byKey: map[string]*function{}, names: map[string]bool{}}
}

// declare adds a declaration, once.
func (m *module) declare(text string) {
	if !slices.Contains(m.declared, text) {
		m.declared = append(m.declared, text)
	}
}

// constantBytes is how much constant memory a module has.
const constantBytes = 60 << 10

// tableRef is where a table lies: in constant memory (address space 4), or in global memory (1).
type tableRef struct {
	name  string
	space int
}

// table adds a table to constant memory, or to global memory once that is full. Equal tables are one.
func (m *module) table(t string, vals []uint64) tableRef {
	text := make([]string, len(vals))
	for i, v := range vals {
		text[i] = t + " " + constant(t, v)
	}
	key := strings.Join(text, ", ")
	if ref, ok := m.tables[key]; ok {
		return ref
	}
	ref := tableRef{m.unique("table"), 4}
	if size := len(vals) * bitsOf(t) / 8; m.constant+size <= constantBytes {
		m.constant += size
	} else {
		ref.space = 1
	}
	m.tables[key] = ref
	m.globals = append(m.globals, fmt.Sprintf("@%s = internal addrspace(%d) constant [%d x %s] [%s], align 8", ref.name, ref.space, len(vals), t, key))
	return ref
}

// data adds a constant array to global memory and gives its symbol, which the host looks up.
func (m *module) data(name string, bytes []byte) string {
	name = m.unique(name)
	var sb strings.Builder
	for _, b := range bytes {
		fmt.Fprintf(&sb, "\\%02X", b)
	}
	m.globals = append(m.globals, fmt.Sprintf(`@%s = addrspace(1) constant [%d x i8] c"%s", align 16`, name, len(bytes), sb.String()))
	return name
}

// unique makes a symbol of a hint: letters, digits and underscores, in no other use. It ends in a number, so that it is no word of PTX.
func (m *module) unique(hint string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, hint)
	if len(clean) > 60 {
		clean = clean[:60]
	}
	if clean == "" || clean[0] <= '9' {
		clean = "k" + clean
	}
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s_%d", clean, i)
		if !m.names[name] {
			m.names[name] = true
			return name
		}
	}
}

// function is one kernel: an entry of the module.
type function struct {
	name  string
	text  string
	fault bool // takes the fault word
}

// function finds the kernel of a key or makes it.
func (m *module) function(key, hint string, write func(name string) *function) *function {
	k := m.byKey[key]
	if k == nil {
		k = write(m.unique(hint))
		m.byKey[key] = k
		m.kernels = append(m.kernels, k)
	}
	return k
}

// text is the whole module.
func (m *module) text() string {
	var sb strings.Builder
	sb.WriteString("target triple = \"nvptx64-nvidia-cuda\"\n\n")
	for _, g := range m.globals {
		sb.WriteString(g + "\n")
	}
	for _, k := range m.kernels {
		sb.WriteString("\n" + k.text)
	}
	sb.WriteString("\n")
	for _, d := range m.declared {
		sb.WriteString(d + "\n")
	}
	var refs []string
	for i, k := range m.kernels {
		refs = append(refs, fmt.Sprintf("!%d", i))
		fmt.Fprintf(&sb, "!%d = !{ptr @%s, !\"kernel\", i32 1, !\"maxntidx\", i32 %d}\n", i, k.name, blockSize)
	}
	fmt.Fprintf(&sb, "!nvvm.annotations = !{%s}\n", strings.Join(refs, ", "))
	return sb.String()
}

// entry collects a kernel's parameters and writes its frame.
type entry struct {
	lane
	params []string
}

func (m *module) newEntry() *entry {
	return &entry{lane: lane{writer: &writer{block: "entry"}, m: m}}
}

// address adds a parameter that is the address of an array.
func (e *entry) address(name string) string {
	e.params = append(e.params, "ptr addrspace(1) %"+name)
	return "%" + name
}

// number adds a parameter that is a size or a stride.
func (e *entry) number(name string) string {
	e.params = append(e.params, "i64 %"+name)
	return "%" + name
}

// finish gives the kernel.
func (e *entry) finish(name string) *function {
	text := fmt.Sprintf("define void @%s(%s) {\nentry:\n%s  ret void\n}\n", name, strings.Join(e.params, ", "), e.text)
	return &function{name: name, text: text, fault: e.fault != ""}
}

// thread gives the number of this thread in the grid and the number of threads in the grid.
func (e *entry) thread() (id, count string) {
	tid, ctaid := e.special("tid.x"), e.special("ctaid.x")
	ntid, nctaid := e.special("ntid.x"), e.special("nctaid.x")
	return e.val("add i64 %s, %s", e.val("mul i64 %s, %s", ctaid, ntid), tid), e.val("mul i64 %s, %s", nctaid, ntid)
}

// special reads a special register.
func (e *entry) special(name string) string {
	return e.val("zext i32 %s to i64", e.call(e.m, "i32", "llvm.nvvm.read.ptx.sreg."+name))
}

// mayFault adds the fault word's parameter for a program that needs it.
func (e *entry) mayFault(p *scalar.Prog) {
	if p.MayFault() {
		e.fault = e.address("fault")
	}
}

// progKey tells programs apart, tables included.
func progKey(p *scalar.Prog) string { return fmt.Sprint(p.In, p.Code, p.Out, p.Tables) }

// access is how a kernel finds an operand's elements.
type access uint8

const (
	packed   access = iota // element i at i
	repeated               // always the first element
	strided                // by the indices and strides of all axes
	index                  // no memory: the offset itself is the (i64) value
)

func (a access) letter() string { return string("prsi"[a]) }

// element is a value of an operand at an offset.
func (e *entry) element(d dtype.DType, a access, base, offset string) string {
	if a == index {
		return offset
	}
	return e.load(d, base, offset)
}

// unravel turns a row-major index into offsets, one per operand: the sum of the indices times the operand's strides. sizes hold the axes,
// outermost first; strides one list per operand, nil for operands that need no offset.
func (e *entry) unravel(i string, sizes []string, strides [][]string) []string {
	offsets := make([]string, len(strides))
	for k := range offsets {
		offsets[k] = "0"
	}
	for d := len(sizes) - 1; d >= 0; d-- {
		at := i
		if d > 0 {
			at = e.val("urem i64 %s, %s", i, sizes[d])
			i = e.val("udiv i64 %s, %s", i, sizes[d])
		}
		for k, s := range strides {
			if s == nil {
				continue
			}
			offsets[k] = e.val("add i64 %s, %s", offsets[k], e.val("mul i64 %s, %s", at, s[d]))
		}
	}
	return offsets
}
