package ptx

import (
	"fmt"
	"strings"

	"github.com/gtc-project/gtc/ir/scalar"
)

// elementwiseKernel computes a program at every index: one thread per element, any number of threads.
//
// Parameters: addresses of inputs (none for access index), of outputs, the fault word, n, and then, if any operand is strided, the sizes of
// rank axes and, per strided or index operand, its strides along them, inputs before outputs. An input of access index also has its first value,
// before its strides.
func (m *module) elementwiseKernel(hint string, p *scalar.Prog, ins, outs []access, rank int) *function {
	var layout strings.Builder
	for _, a := range append(append([]access{}, ins...), outs...) {
		layout.WriteString(a.letter())
	}
	key := fmt.Sprintf("elementwise %s %d %s", &layout, rank, progKey(p))
	return m.function(key, hint, func(name string) *function {
		e := m.newEntry()
		bases := make([]string, len(ins)+len(outs))
		all := append(append([]access{}, ins...), outs...)
		for k, a := range all {
			if a != index {
				bases[k] = e.address(operandName(k, len(ins)))
			}
		}
		e.mayFault(p)
		n := e.number("n")
		sizes := e.numbers("size", rank)
		strides := make([][]string, len(all))
		for k, a := range all {
			switch a {
			case index:
				bases[k] = e.number(operandName(k, len(ins)) + "_first")
				fallthrough
			case strided:
				strides[k] = e.numbers(operandName(k, len(ins))+"_stride", rank)
			}
		}
		id, count := e.thread()
		e.loop(id, n, count, nil, func(i string, _ []string) []string {
			offsets := e.unravel(i, sizes, strides)
			for k, a := range all {
				switch a {
				case packed:
					offsets[k] = i
				case index:
					offsets[k] = e.val("add i64 %s, %s", offsets[k], bases[k])
				}
			}
			vals := make([]string, len(ins))
			for k, a := range ins {
				vals[k] = e.element(p.In[k].DType, a, bases[k], offsets[k])
			}
			for k, v := range e.run(p, vals) {
				e.store(p.Out[k].DType, v, bases[len(ins)+k], offsets[len(ins)+k])
			}
			return nil
		})
		return e.finish(name)
	})
}

// operandName names operand k of a kernel with the given number of inputs.
func operandName(k, ins int) string {
	if k < ins {
		return fmt.Sprintf("in%d", k)
	}
	return fmt.Sprintf("out%d", k-ins)
}

// numbers adds n parameters that are sizes or strides.
func (e *entry) numbers(name string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = e.number(fmt.Sprintf("%s%d", name, i))
	}
	return out
}
