package autograd

import "github.com/gtc-project/gtc/ir"

// varied reports whether v depends on what is differentiated for.
func (d *gen) varied(v *ir.Value) bool { return v.ID < len(d.active) && d.active[v.ID] }

// vary marks v where its type may carry a gradient, and reports whether that is news.
func (d *gen) vary(v *ir.Value) bool {
	if v.ID >= len(d.active) || d.active[v.ID] || !ir.MayCarryGradient(v.Type) {
		return false
	}
	d.active[v.ID] = true
	return true
}

// activity marks what depends on marked values, through all blocks; it reports whether anything is new.
func (d *gen) activity(b *ir.Block) bool {
	news := false
	for _, n := range b.Nodes {
		if d.nodeActivity(n) {
			news = true
		}
	}
	return news
}

func (d *gen) nodeActivity(n *ir.Node) bool {
	news := false
	flow := func(from, to []*ir.Value) {
		for k, v := range from {
			if d.varied(v) && d.vary(to[k]) {
				news = true
			}
		}
	}
	switch n.Op {
	case ir.OpIf:
		for _, b := range n.Blocks {
			news = d.activity(b) || news
			flow(b.Terminator().Args, n.Results)
		}
		return news
	case ir.OpFor, ir.OpWhile:
		body := bodyOf(n)
		init, params := carriedArgs(n), carriedParams(n)
		flow(init, params)
		for {
			changed := d.activity(body)
			for k, y := range body.Terminator().Args {
				if d.varied(y) && d.vary(params[k]) {
					changed = true
				}
			}
			if !changed {
				break
			}
			news = true
		}
		flow(params, n.Results)
		return news
	}
	if n.Op.NoGrad && n.Op != ir.OpAten && n.Op != ir.OpVjp || n.Attrs.Callee == "detach" {
		return false
	}
	for i, a := range n.Args {
		if d.varied(a) && !(n.Op == ir.OpGraft && i == 0) {
			for _, r := range n.Results {
				news = d.vary(r) || news
			}
			break
		}
	}
	return news
}

// bodyOf is the block that a loop repeats.
func bodyOf(n *ir.Node) *ir.Block { return n.Blocks[len(n.Blocks)-1] }

// carriedArgs are the initial values of what a loop carries.
func carriedArgs(n *ir.Node) []*ir.Value {
	if n.Op == ir.OpFor {
		return n.Args[1:]
	}
	return n.Args
}

// carriedParams are the body's parameters for what a loop carries.
func carriedParams(n *ir.Node) []*ir.Value {
	if n.Op == ir.OpFor {
		return n.Blocks[0].Params[1:]
	}
	return n.Blocks[1].Params
}

// demand finds which carried values of a loop get cotangents, given those of its results that have one, and which values from outside
// the body do, in order of first use.
func (d *gen) demand(n *ir.Node, need []bool) (outside []*ir.Value) {
	body, params := bodyOf(n), carriedParams(n)
	yields := body.Terminator().Args
	for {
		wanted := map[*ir.Value]bool{}
		for k, y := range yields {
			if need[k] && d.varied(y) {
				wanted[y] = true
			}
		}
		for i := len(body.Nodes) - 1; i >= 0; i-- {
			d.demandOf(body.Nodes[i], wanted)
		}
		changed := false
		for k, p := range params {
			if wanted[p] && !need[k] {
				need[k], changed = true, true
			}
		}
		if changed {
			continue
		}
		for _, c := range ir.Captures(body) {
			if wanted[c] {
				outside = append(outside, c)
			}
		}
		return outside
	}
}

func (d *gen) demandOf(n *ir.Node, wanted map[*ir.Value]bool) {
	any := false
	for _, r := range n.Results {
		any = any || wanted[r]
	}
	if !any {
		return
	}
	for _, a := range n.Args {
		if d.varied(a) {
			wanted[a] = true
		}
	}
	if len(n.Blocks) > 0 {
		for _, c := range ir.Captures(n.Blocks...) {
			if d.varied(c) {
				wanted[c] = true
			}
		}
	}
}
