package ir

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// progs caches the one-op programs of elementwise nodes by op and operand dtypes.
var progs sync.Map

// ElementwiseProg is the scalar program of one elementwise op on operands of these dtypes; to is the result dtype of convert and
// Invalid otherwise.
func ElementwiseProg(op *Op, to dtype.DType, operands ...dtype.DType) (*scalar.Prog, error) {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s:%d", op.Name, to)
	for _, d := range operands {
		fmt.Fprintf(&sb, ",%d", d)
	}
	if p, ok := progs.Load(sb.String()); ok {
		return p.(*scalar.Prog), nil
	}
	b := scalar.NewBuilder()
	ins := make([]scalar.Value, len(operands))
	for i, d := range operands {
		ins[i] = b.Input(d)
	}
	out, err := ApplyScalar(b, op, to, ins...)
	if err != nil {
		return nil, err
	}
	b.Output(out)
	p := b.Finish()
	progs.Store(sb.String(), p)
	return p, nil
}

// ApplyScalar appends the meaning of an elementwise op to a scalar program.
func ApplyScalar(b *scalar.Builder, op *Op, to dtype.DType, args ...scalar.Value) (scalar.Value, error) {
	if op.Name == "convert" {
		return b.Convert(to, args[0]), nil
	}
	return scalar.Apply(b, op.Name, args...)
}

// evalElementwise runs the node's scalar program over all elements.
func evalElementwise(n *Node, args []Datum) ([]Datum, error) {
	var to dtype.DType
	if n.Op.Name == "convert" {
		to = args[1].(dtype.DType)
		args = args[:1]
	}
	ins := make([]*Array, len(args))
	dts := make([]dtype.DType, len(args))
	for i, a := range args {
		x, ok := a.(*Array)
		if !ok { // operands of type any are only known here
			return nil, fmt.Errorf("operand %d is %s, want a tensor", i, TypeOf(a))
		}
		ins[i] = x
		dts[i] = ins[i].DType
		if !sameShape(ins[i].Shape, ins[0].Shape) {
			return nil, fmt.Errorf("operand shapes %v and %v differ", ins[0].Shape, ins[i].Shape)
		}
	}
	p, err := ElementwiseProg(n.Op, to, dts...)
	if err != nil {
		return nil, err
	}
	outs, err := RunProg(p, ins[0].Shape, ins)
	if err != nil {
		return nil, err
	}
	return []Datum{outs[0]}, nil
}

// RunProg interprets a scalar program at every index of the operands, which all have the given shape.
func RunProg(p *scalar.Prog, shape []int, ins []*Array) ([]*Array, error) {
	outs := make([]*Array, len(p.Out))
	for i, o := range p.Out {
		a, err := TryNewArray(o.DType, shape)
		if err != nil {
			return nil, err
		}
		outs[i] = a
	}
	fr := p.Frame()
	defer fr.Release()
	total := 1
	for _, s := range shape {
		total *= s
	}
	iters := make([]rowIter, len(ins))
	for i, a := range ins {
		iters[i] = newRowIter(a)
	}
	for done := 0; done < total; {
		n := min(scalar.Lanes, total-done)
		for i, a := range ins {
			iters[i].load(fr, i, a, n)
		}
		if code := fr.Run(n); code != scalar.NoFault {
			return nil, errors.New(fmt.Sprint(code))
		}
		for i, o := range outs {
			fr.Store(i, o.Data, done, 1, n)
		}
		done += n
	}
	return outs, nil
}

// rowIter walks the elements of an array in row-major order.
type rowIter struct {
	contiguous bool
	off        int   // of the next element
	idx        []int // of the next element
	offs       []int // scratch: offsets of one block
}

func newRowIter(a *Array) rowIter {
	it := rowIter{contiguous: a.IsContiguous(), off: a.Offset}
	if !it.contiguous {
		it.idx, it.offs = make([]int, len(a.Shape)), make([]int, scalar.Lanes)
	}
	return it
}

// load fills input i with the next n elements.
func (it *rowIter) load(fr *scalar.Frame, i int, a *Array, n int) {
	if it.contiguous {
		fr.Load(i, a.Data, it.off, 1, n)
		it.off += n
		return
	}
	for k := 0; k < n; k++ {
		it.offs[k] = it.off
		for d := len(it.idx) - 1; d >= 0; d-- {
			it.idx[d]++
			it.off += a.Strides[d]
			if it.idx[d] < a.Shape[d] {
				break
			}
			it.off -= it.idx[d] * a.Strides[d]
			it.idx[d] = 0
		}
	}
	fr.LoadAt(i, a.Data, it.offs[:n])
}

func sameShape(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
