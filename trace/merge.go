package trace

import (
	"fmt"

	"github.com/gtc-project/gtc/ir"
)

// path is one recorded run of the function: straight-line code that holds while its guards do.
type path struct {
	f      *ir.Func
	guards []guard
	rets   []*ir.Value
}

// merge builds one function from paths of the same Go function: they agree up to a guard that read different values, where an if chooses.
// Its parameters are those of the first path; all paths have the same inputs and captures.
// prelude, where not nil, appends code at the beginning.
func merge(name string, paths []*path, prelude func(b *ir.Builder)) (*ir.Func, error) {
	f := ir.NewFunc(name)
	b := ir.NewBuilder(f)
	maps := make([]*ir.Cloner, len(paths))
	for i, p := range paths {
		maps[i] = ir.NewCloner(f)
		for k, param := range p.f.Body.Params {
			if i == 0 {
				f.Param(p.f.ParamNames[k], param.Type)
			}
			maps[i].Map[param] = f.Body.Params[k]
		}
	}
	if prelude != nil {
		prelude(b)
	}
	m := &merger{b: b}
	rets, err := m.emit(paths, maps, 0, 0)
	if err != nil {
		return nil, err
	}
	b.Return(rets...)
	return f, nil
}

type merger struct{ b *ir.Builder }

// emit appends the code of all paths from node number at and guard number g on, and gives the returned values.
func (m *merger) emit(paths []*path, maps []*ir.Cloner, at, g int) ([]*ir.Value, error) {
	first := paths[0]
	for {
		end := len(first.f.Body.Nodes)
		if g < len(first.guards) {
			end = first.guards[g].at
		}
		if err := m.common(paths, maps, at, end); err != nil {
			return nil, err
		}
		at = end
		if g == len(first.guards) {
			for k, p := range paths {
				if len(p.guards) > g || len(p.f.Body.Nodes) > end {
					return nil, m.diverged(p, end)
				}
				for i, v := range p.rets {
					if maps[k].Val(v) != maps[0].Val(first.rets[i]) {
						return nil, fmt.Errorf("two runs of the traced function with the same guards return different values as result %d%s", i, remedy)
					}
				}
			}
			return maps[0].Vals(first.rets), nil
		}
		for k, p := range paths {
			if g >= len(p.guards) || p.guards[g].at != at || maps[k].Val(p.guards[g].read) != maps[0].Val(first.guards[g].read) {
				return nil, fmt.Errorf("%s: one run of the traced function reads a value here, another with the same guards does not%s", first.guards[g].pos, remedy)
			}
		}
		groups := groupBy(paths, maps, g)
		if len(groups) > 1 {
			return m.choose(groups, at, g)
		}
		m.check(first.guards[g], maps[0])
		g++
	}
}

// common copies the nodes [at, end) of the first path; the other paths must have the same.
func (m *merger) common(paths []*path, maps []*ir.Cloner, at, end int) error {
	for i := at; i < end; i++ {
		n := paths[0].f.Body.Nodes[i]
		c := maps[0].Node(n)
		m.b.Block.Nodes = append(m.b.Block.Nodes, c)
		for k := 1; k < len(paths); k++ {
			if i >= len(paths[k].f.Body.Nodes) {
				return diverged(n, nil)
			}
			if o := paths[k].f.Body.Nodes[i]; !equal(c, o, maps[k]) {
				return diverged(n, o)
			}
		}
	}
	return nil
}

// equal reports whether o is the same node as c, by the map that it completes.
func equal(c, o *ir.Node, to *ir.Cloner) bool {
	if o.Op != c.Op || o.Attrs.Callee != c.Attrs.Callee || o.Attrs.Order != c.Attrs.Order || !sameDatum(o.Attrs.Value, c.Attrs.Value) || len(o.Results) != len(c.Results) || len(o.Args) != len(c.Args) || len(o.Blocks) != len(c.Blocks) {
		return false
	}
	for i, a := range o.Args {
		if to.Val(a) != c.Args[i] {
			return false
		}
	}
	for i, b := range o.Blocks {
		d := c.Blocks[i]
		if len(b.Params) != len(d.Params) || len(b.Nodes) != len(d.Nodes) {
			return false
		}
		for k, p := range b.Params {
			to.Map[p] = d.Params[k]
		}
		for k, n := range b.Nodes {
			if !equal(d.Nodes[k], n, to) {
				return false
			}
		}
	}
	for i, r := range o.Results {
		to.Map[r] = c.Results[i]
	}
	return true
}

// sameDatum is equality for which NaN is NaN.
func sameDatum(a, b ir.Datum) bool {
	return ir.DatumEqual(a, b) || ir.FormatDatum(a) == ir.FormatDatum(b)
}

const remedy = ": it must depend on its tensors only, not on the clock, random numbers of Go, the order of a map, or global state"

func (m *merger) diverged(p *path, end int) error {
	if end < len(p.f.Body.Nodes) {
		return diverged(p.f.Body.Nodes[end], nil)
	}
	return fmt.Errorf("%s: one run of the traced function reads a value here, another with the same guards does not%s", p.guards[len(p.guards)-1].pos, remedy)
}

func diverged(a, b *ir.Node) error {
	return fmt.Errorf("%s: two runs of the traced function with the same guards did different things here (%s, then %s)%s", a.Pos, describe(a), describe(b), remedy)
}

func describe(n *ir.Node) string {
	switch {
	case n == nil:
		return "nothing"
	case n.Op == ir.OpConst:
		return "the constant " + ir.FormatDatum(n.Attrs.Value)
	case n.Attrs.Callee != "":
		return n.Attrs.Callee
	}
	return n.Op.Name
}

type group struct {
	paths []*path
	maps  []*ir.Cloner
}

// groupBy splits paths by what guard g read, in order of first recording.
func groupBy(paths []*path, maps []*ir.Cloner, g int) []group {
	var out []group
	index := map[ir.Datum]int{}
	for i, p := range paths {
		k, ok := index[p.guards[g].want]
		if !ok {
			k = len(out)
			index[p.guards[g].want] = k
			out = append(out, group{})
		}
		out[k].paths = append(out[k].paths, p)
		out[k].maps = append(out[k].maps, maps[i])
	}
	return out
}

// choose appends an if for the first group and the rest of the groups in its other side.
func (m *merger) choose(groups []group, at, g int) ([]*ir.Value, error) {
	first := groups[0]
	guard := first.paths[0].guards[g]
	if len(groups) == 1 {
		m.check(guard, first.maps[0])
		return m.emit(first.paths, first.maps, at, g+1)
	}
	var err error
	side := func(build func() ([]*ir.Value, error)) func() []*ir.Value {
		return func() []*ir.Value {
			vs, e := build()
			if e != nil && err == nil {
				err = e
			}
			return vs
		}
	}
	m.b.Pos = guard.pos
	is := m.b.Op("py_eq", first.maps[0].Val(guard.read), m.b.Const(guard.want))
	out := m.b.If(is,
		side(func() ([]*ir.Value, error) { return m.emit(first.paths, first.maps, at, g+1) }),
		side(func() ([]*ir.Value, error) { return m.choose(groups[1:], at, g) }))
	return out, err
}

// check appends the test that a guard holds.
func (m *merger) check(gd guard, c *ir.Cloner) {
	m.b.Pos = gd.pos
	ok := m.b.Op("py_eq", c.Val(gd.read), m.b.Const(gd.want))
	m.b.Emit("assert", ok, m.b.Str(fmt.Sprintf("%s: the traced function read %s here when it was traced, and what it does for another value is not known: trace it with such inputs too, or write the branch with trace.If", gd.pos, ir.FormatDatum(gd.want))))
}
