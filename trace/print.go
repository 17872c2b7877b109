package trace

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/tensor"
)

// Print writes its arguments, separated by spaces, and a newline to standard output; tensors are written with
// their values, as print in a script writes them. In a trace it records this: the
// program writes the values of each call, the trace itself writes nothing. Other arguments are written as fmt.Sprint gives them when the function is traced.
func Print(args ...any) {
	var r *recorder
	for _, a := range args {
		if t, ok := a.(*tensor.Tensor); ok && r == nil {
			r = recorderOf(t)
		}
	}
	if r == nil {
		parts := make([]string, len(args))
		for i, a := range args {
			parts[i] = fmt.Sprint(a)
			if t, ok := a.(*tensor.Tensor); ok && t.Err() == nil {
				parts[i] = ir.PyString(t.Array())
			}
		}
		fmt.Fprintln(os.Stdout, strings.Join(parts, " "))
		return
	}
	if err := r.ended(); err != nil {
		r.fail(err)
		return
	}
	r.b.Pos = callerPos()
	vs := make([]*ir.Value, len(args))
	for i, a := range args {
		if t, ok := a.(*tensor.Tensor); ok && t.Err() == nil {
			vs[i] = r.tensor(t)
		} else {
			vs[i] = r.b.Str(fmt.Sprint(a))
		}
	}
	r.b.Emit("print", vs...)
}

// silent is f without what it prints, for gradients, which compute it again.
func silent(f *ir.Func) *ir.Func {
	f = f.Clone()
	withoutPrints(f.Body)
	return f
}

func withoutPrints(b *ir.Block) {
	b.Nodes = slices.DeleteFunc(b.Nodes, func(n *ir.Node) bool { return n.Op.Name == "print" })
	for _, n := range b.Nodes {
		for _, inner := range n.Blocks {
			withoutPrints(inner)
		}
	}
}
