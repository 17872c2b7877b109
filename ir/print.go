package ir

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// String is the text form of the function; Parse reads it back. See README.md for the grammar.
func (f *Func) String() string {
	var sb strings.Builder
	WriteText(&sb, f) // a strings.Builder does not fail
	return sb.String()
}

// WriteText writes the text form of functions, separated by empty lines.
func WriteText(w io.Writer, fs ...*Func) error {
	bw := bufio.NewWriter(w)
	for i, f := range fs {
		if i > 0 {
			bw.WriteByte('\n')
		}
		p := &printer{w: bw, namer: newNamer()}
		p.function(f)
	}
	return bw.Flush()
}

// namer gives every value of a function a name of its own: its hint where that is not taken, else the hint with a number, and a
// plain number where there is no hint. Names are given in the order of the text.
type namer struct {
	names map[*Value]string
	taken map[string]int // name -> the last suffix tried
	next  int
}

func newNamer() *namer { return &namer{names: map[*Value]string{}, taken: map[string]int{}} }

// define names v, which prefers hint.
func (n *namer) define(v *Value, hint string) string {
	name := hint
	if hint == "" {
		name = strconv.Itoa(n.next)
		n.next++
	}
	for base := name; ; {
		if _, used := n.taken[name]; !used {
			break
		}
		n.taken[base]++
		name = base + "." + strconv.Itoa(n.taken[base])
	}
	n.taken[name] = 0
	if !(hint == "" || isDotted(name)) {
		name = strconv.Quote(name)
	}
	n.names[v] = "%" + name
	return n.names[v]
}

func (n *namer) use(v *Value) string {
	if v == nil {
		return "%nil"
	}
	if v.Def != nil && v.Def.Op == OpConst {
		return FormatDatum(v.Def.Attrs.Value)
	}
	if s, ok := n.names[v]; ok {
		return s
	}
	return "%undefined"
}

// isDotted reports whether s is written without quotes: a letter or _, then letters, digits, _ and dots.
func isDotted(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isLetter(s[i]) && (i == 0 || !isDigit(s[i]) && s[i] != '.') {
			return false
		}
	}
	return s != ""
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

type printer struct {
	w *bufio.Writer
	*namer
}

// dotted is a name, quoted where need be.
func dotted(s string) string {
	if isDotted(s) {
		return s
	}
	return strconv.Quote(s)
}

func (p *printer) function(f *Func) {
	p.w.WriteString("func @" + dotted(f.Name) + "(")
	for i, v := range f.Body.Params {
		if i > 0 {
			p.w.WriteString(", ")
		}
		name := v.Name
		if i < len(f.ParamNames) {
			name = f.ParamNames[i]
		}
		p.w.WriteString(p.define(v, name) + ": " + v.Type.String())
	}
	p.w.WriteString(") ")
	p.block(f.Body, 1)
	p.w.WriteByte('\n')
}

func (p *printer) indent(depth int) {
	for ; depth > 0; depth-- {
		p.w.WriteString("  ")
	}
}

func (p *printer) block(b *Block, depth int) {
	p.w.WriteString("{\n")
	for _, n := range b.Nodes {
		if n.Op == OpConst {
			continue // written at its uses
		}
		p.indent(depth)
		p.node(n, depth)
		p.w.WriteByte('\n')
	}
	p.indent(depth - 1)
	p.w.WriteByte('}')
}

func (p *printer) params(b *Block) {
	p.w.WriteByte('(')
	for i, v := range b.Params {
		if i > 0 {
			p.w.WriteString(", ")
		}
		p.w.WriteString(p.define(v, v.Name) + ": " + v.Type.String())
	}
	p.w.WriteString(") ")
}

// head is how a node's op is written, attributes included.
func (n *Node) head() string {
	a := n.Attrs
	switch n.Op {
	case OpAten:
		return "aten." + dotted(a.Callee)
	case OpVjp:
		return fmt.Sprintf("vjp[%d].aten.%s", a.Order, dotted(a.Callee))
	case OpGrad:
		return fmt.Sprintf("grad[%d]", a.Count)
	case OpFused:
		if a.Callee != "" {
			return "fused." + dotted(a.Callee)
		}
	}
	return n.Op.Name
}

func (p *printer) node(n *Node, depth int) {
	args := make([]string, len(n.Args))
	for i, a := range n.Args {
		args[i] = p.use(a)
	}
	results := make([]string, len(n.Results))
	for i, r := range n.Results {
		results[i] = p.define(r, r.Name) + ": " + r.Type.String()
	}
	if len(results) > 0 {
		p.w.WriteString(strings.Join(results, ", ") + " = ")
	}
	p.w.WriteString(n.head())
	switch {
	case n.Op.Class == Terminator && len(args) == 0:
	case n.Op.Class == Terminator && args[0][0] != '(':
		p.w.WriteString(" " + strings.Join(args, ", "))
	default:
		p.w.WriteString("(" + strings.Join(args, ", ") + ")")
	}
	p.blocks(n, depth)
	if !n.Pos.IsZero() {
		fmt.Fprintf(p.w, " @ %s:%d:%d", strconv.Quote(n.Pos.File), n.Pos.Line, n.Pos.Col)
	}
}

func (p *printer) blocks(n *Node, depth int) {
	for i, b := range n.Blocks {
		p.w.WriteByte(' ')
		switch {
		case n.Op == OpIf && i == 1:
			p.w.WriteString("else ")
		case n.Op == OpWhile && i == 0:
			p.w.WriteString("cond")
		case n.Op == OpWhile && i == 1:
			p.w.WriteString("body")
		}
		if n.Op != OpIf {
			p.params(b)
		}
		p.block(b, depth+1)
	}
}
