package passes

import "github.com/gtc-project/gtc/ir"

// Fuel counts the rewrites that passes make, and stops them after so many: the same function on the same arguments is rewritten in the same order every
// time, so that halving finds the first rewrite that changes a result. Expansions of calls are no rewrites: nothing runs without them.
type Fuel struct {
	Limit int    // rewrites that may be made
	Used  int    // rewrites that were made
	Last  string // the last one: pass, kind, op and place in the source

	pass string
}

// Take asks for one more rewrite of a node; a nil Fuel never ends.
func (f *Fuel) Take(kind string, n *ir.Node) bool {
	switch {
	case f == nil:
		return true
	case f.Used >= f.Limit:
		return false
	}
	f.Used++
	if f.Used == f.Limit {
		f.Last = "pass " + f.pass + ": " + kind + " " + n.Op.Name
		if n.Attrs.Callee != "" {
			f.Last += " " + n.Attrs.Callee
		}
		if !n.Pos.IsZero() {
			f.Last += " at " + n.Pos.String()
		}
	}
	return true
}

// in names the pass that takes from now on.
func (f *Fuel) in(pass string) {
	if f != nil {
		f.pass = pass
	}
}
