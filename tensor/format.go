package tensor

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir"
)

// PrintOptions say how values are printed; see Format.
type PrintOptions struct {
	Precision  int  // digits after the point
	Threshold  int  // tensors of more elements are summarised
	EdgeItems  int  // elements at either end of a summarised dimension
	LineWidth  int  // columns
	Scientific bool // always use scientific notation
}

// DefaultPrintOptions are those of String, and of PyTorch.
var DefaultPrintOptions = PrintOptions{Precision: 4, Threshold: 1000, EdgeItems: 3, LineWidth: 80}

// String prints the values as PyTorch does: in nested brackets, aligned, with four digits, or in scientific notation where the values call for it; large tensors
// are summarised. The dtype follows unless it is f32, i64 or bool, and whether a gradient is required.
func (t *Tensor) String() string { return t.print(DefaultPrintOptions) }

// Format makes %v and %s print as String does; a precision (%.2v) sets the digits after the point.
func (t *Tensor) Format(s fmt.State, verb rune) {
	o := DefaultPrintOptions
	if p, ok := s.Precision(); ok {
		o.Precision = p
	}
	if verb == 'e' {
		o.Scientific = true
	}
	fmt.Fprint(s, t.print(o))
}

func (t *Tensor) print(o PrintOptions) string {
	if t == nil {
		return "tensor(nil)"
	}
	if t.err != nil {
		return "tensor(error: " + t.err.Error() + ")"
	}
	const prefix = "tensor("
	p := printer{PrintOptions: o, a: t.arr, sum: t.arr.Len() > o.Threshold}
	var sb strings.Builder
	sb.WriteString(prefix)
	if t.arr.Len() == 0 {
		sb.WriteString("[]")
	} else {
		p.measure()
		p.write(&sb, 0, t.arr.Offset, len(prefix))
	}
	var notes []string
	if t.arr.Len() == 0 && len(t.arr.Shape) != 1 {
		notes = append(notes, "size="+tuple(t.arr.Shape))
	}
	if d := t.arr.DType; d != F32 && d != Bool && (d != I64 || t.arr.Len() == 0) {
		notes = append(notes, "dtype="+d.String())
	}
	if t.NeedsGrad() {
		notes = append(notes, "requires_grad")
	}
	line := sb.Len() - (strings.LastIndexByte(sb.String(), '\n') + 1)
	for _, n := range notes {
		if line+len(n)+len(", ") >= o.LineWidth {
			sb.WriteString(",\n" + strings.Repeat(" ", len(prefix)) + n)
			line = len(prefix) + len(n)
			continue
		}
		sb.WriteString(", " + n)
		line += len(", ") + len(n)
	}
	sb.WriteByte(')')
	return sb.String()
}

func tuple(shape []int) string {
	return "(" + strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", ", ") + ")"
}

type printer struct {
	PrintOptions
	a     *ir.Array
	sum   bool
	width int
	exp   bool // scientific notation
	whole bool // all finite values are whole numbers
}

// indices are those of a dimension that are printed; -1 stands for the gap.
func (p *printer) indices(n int) []int {
	var out []int
	for i := 0; i < n; i++ {
		if p.sum && n > 2*p.EdgeItems && i == p.EdgeItems {
			out = append(out, -1)
			i = n - p.EdgeItems
		}
		out = append(out, i)
	}
	return out
}

// measure chooses the notation and the column width from the values that are printed.
func (p *printer) measure() {
	p.whole = true
	lo, hi := math.Inf(1), 0.0 // of the magnitudes that are finite and not zero
	p.each(0, p.a.Offset, func(off int) {
		if f := math.Abs(p.a.Float(off)); p.a.DType.IsFloat() && f > 0 && !math.IsInf(f, 0) && !math.IsNaN(f) {
			p.whole = p.whole && f == math.Ceil(f)
			lo, hi = min(lo, f), max(hi, f)
		}
	})
	p.exp = p.Scientific && p.a.DType.IsFloat() || hi > 0 && (hi/lo > 1000 || hi > 1e8 || !p.whole && lo < 1e-4)
	p.each(0, p.a.Offset, func(off int) {
		// PyTorch measures only the finite values that are not zero, and ints and bools
		f := p.a.Float(off)
		if !p.a.DType.IsFloat() || f != 0 && !math.IsInf(f, 0) && !math.IsNaN(f) {
			p.width = max(p.width, len(p.elem(off)))
		}
	})
}

func (p *printer) each(dim, off int, f func(off int)) {
	if dim == len(p.a.Shape) {
		f(off)
		return
	}
	for _, i := range p.indices(p.a.Shape[dim]) {
		if i >= 0 {
			p.each(dim+1, off+i*p.a.Strides[dim], f)
		}
	}
}

func (p *printer) elem(off int) string {
	switch d := p.a.DType; {
	case d == Bool && p.a.Int(off) != 0:
		return "True"
	case d == Bool:
		return "False"
	case d.IsInt():
		return strconv.FormatInt(p.a.Int(off), 10)
	}
	f := p.a.Float(off)
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case p.exp:
		return strconv.FormatFloat(f, 'e', p.Precision, 64)
	case p.whole:
		return strconv.FormatFloat(f, 'f', 0, 64) + "."
	}
	return strconv.FormatFloat(f, 'f', p.Precision, 64)
}

// padded is an element in its column.
func (p *printer) padded(off int) string {
	s := p.elem(off)
	return strings.Repeat(" ", max(0, p.width-len(s))) + s
}

func (p *printer) write(sb *strings.Builder, dim, off, indent int) {
	switch {
	case len(p.a.Shape) == 0:
		sb.WriteString(p.padded(off))
		return
	case dim == len(p.a.Shape)-1:
		p.row(sb, off, indent)
		return
	}
	sb.WriteByte('[')
	gap := "," + strings.Repeat("\n", len(p.a.Shape)-1-dim) + strings.Repeat(" ", indent+1)
	for k, i := range p.indices(p.a.Shape[dim]) {
		if k > 0 {
			sb.WriteString(gap)
		}
		if i < 0 {
			sb.WriteString("...")
			continue
		}
		p.write(sb, dim+1, off+i*p.a.Strides[dim], indent+1)
	}
	sb.WriteByte(']')
}

// row writes the last dimension, broken into lines.
func (p *printer) row(sb *strings.Builder, off, indent int) {
	column := p.width + len(", ")
	perLine := max(1, (p.LineWidth-indent)/column)
	sb.WriteByte('[')
	for k, i := range p.indices(p.a.Shape[len(p.a.Shape)-1]) {
		switch {
		case k > 0 && k%perLine == 0:
			sb.WriteString(",\n" + strings.Repeat(" ", indent+1))
		case k > 0:
			sb.WriteString(", ")
		}
		if i < 0 {
			sb.WriteString(" ...")
			continue
		}
		sb.WriteString(p.padded(off + i*p.a.Strides[len(p.a.Shape)-1]))
	}
	sb.WriteByte(']')
}
