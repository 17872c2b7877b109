package passes

import "github.com/gtc-project/gtc/ir"

// forget drops what only matters for gradients: detach and graft give their first operand. It is for functions that are about to run, as these
// would be differentiated wrongly afterwards; so it is no pass of Table.
func forget(f *ir.Func) {
	subst := map[*ir.Value]*ir.Value{}
	f.Body.Walk(func(n *ir.Node) {
		if n.Op == opDetach || n.Op == ir.OpGraft {
			subst[n.Results[0]] = n.Args[0]
		}
	})
	if len(subst) > 0 {
		f.Replace(subst)
		f.Sweep(keeps)
	}
}

var opDetach = ir.LookupOp("detach")
