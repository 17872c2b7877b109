package tensor

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir"
)

// summariseAbove is the number of elements from which on only the edges of each dimension are printed, edge at either end.
const (
	summariseAbove = 1000
	edge           = 3
)

// String prints the values in nested brackets, aligned, with dtype (unless f32, i64 or bool) and whether a gradient is required. Large tensors are
// summarised.
func (t *Tensor) String() string {
	if t.err != nil {
		return "tensor(error: " + t.err.Error() + ")"
	}
	p := printer{a: t.arr, sum: t.arr.Len() > summariseAbove}
	p.measure()
	var sb strings.Builder
	sb.WriteString("tensor(")
	p.write(&sb, 0, t.arr.Offset, len("tensor("))
	if t.arr.Len() == 0 && len(t.arr.Shape) != 1 {
		fmt.Fprintf(&sb, ", shape=%v", t.arr.Shape)
	}
	if d := t.arr.DType; d != F32 && d != I64 && d != Bool {
		fmt.Fprintf(&sb, ", dtype=%s", d)
	}
	if t.NeedsGrad() {
		sb.WriteString(", requires_grad")
	}
	sb.WriteByte(')')
	return sb.String()
}

type printer struct {
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
		if p.sum && n > 2*edge && i == edge {
			out = append(out, -1)
			i = n - edge
		}
		out = append(out, i)
	}
	return out
}

// measure chooses the notation and the column width from the values that are printed.
func (p *printer) measure() {
	p.whole = true
	lo, hi := math.Inf(1), 0.0
	p.each(0, p.a.Offset, func(off int) {
		if f := math.Abs(p.a.Float(off)); p.a.DType.IsFloat() && !math.IsInf(f, 0) && !math.IsNaN(f) {
			p.whole = p.whole && f == math.Trunc(f)
			if f > 0 {
				lo, hi = min(lo, f), max(hi, f)
			}
		}
	})
	p.exp = hi >= 1e8 || hi > 0 && !p.whole && (lo < 1e-4 || hi/lo > 1000 && hi >= 1e5)
	p.each(0, p.a.Offset, func(off int) { p.width = max(p.width, len(p.elem(off))) })
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
	case d == Bool:
		return strconv.FormatBool(p.a.Int(off) != 0)
	case d.IsInt():
		return strconv.FormatInt(p.a.Int(off), 10)
	}
	f := p.a.Float(off)
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+")
	case p.exp:
		return strconv.FormatFloat(f, 'e', 4, 64)
	case p.whole:
		return strconv.FormatFloat(f, 'f', 0, 64) + "."
	}
	return strconv.FormatFloat(f, 'f', 4, 64)
}

func (p *printer) write(sb *strings.Builder, dim, off, indent int) {
	if dim == len(p.a.Shape) {
		s := p.elem(off)
		if len(p.a.Shape) > 0 {
			sb.WriteString(strings.Repeat(" ", p.width-len(s)))
		}
		sb.WriteString(s)
		return
	}
	last := dim == len(p.a.Shape)-1
	sb.WriteByte('[')
	for k, i := range p.indices(p.a.Shape[dim]) {
		if k > 0 {
			sb.WriteByte(',')
			if last {
				sb.WriteByte(' ')
			} else {
				sb.WriteString(strings.Repeat("\n", len(p.a.Shape)-1-dim) + strings.Repeat(" ", indent+1))
			}
		}
		if i < 0 {
			sb.WriteString("...")
			continue
		}
		p.write(sb, dim+1, off+i*p.a.Strides[dim], indent+1)
	}
	sb.WriteByte(']')
}
