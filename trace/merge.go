package trace

import (
	"fmt"

	"github.com/gtc-project/gtc/ir"
)

// path is one recorded run of the function: straight-line code that holds while its guards do.
type path struct {
	f      *ir.Func
	guards []guard
	rets   int
}

// merge builds one function from paths of the same Go function: they agree up to a guard that read different values, where an if chooses.
// Its parameters are those of the first path; all paths have the same inputs and captures.
func merge(name string, paths []*path) (*ir.Func, error) {
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
		end := len(first.f.Body.Nodes) - 1
		if g < len(first.guards) {
			end = first.guards[g].at
		}
		if err := m.common(paths, maps, at, end); err != nil {
			return nil, err
		}
		at = end
		if g == len(first.guards) {
			return maps[0].Vals(first.f.Returns()), nil
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
			o := paths[k].f.Body.Nodes[i]
			if o.Op != n.Op || o.Attrs.Callee != n.Attrs.Callee || len(o.Results) != len(n.Results) {
				return diverged(n, o)
			}
			for j, r := range o.Results {
				maps[k].Map[r] = c.Results[j]
			}
		}
	}
	return nil
}

func diverged(a, b *ir.Node) error {
	what := "nothing"
	if b != nil {
		what = b.Op.Name + " " + b.Attrs.Callee
	}
	return fmt.Errorf("%s: two runs of the traced function with the same guards did different things here (%s %s, then %s): it must depend on its tensors only, not on the clock, random numbers of Go, or global state", a.Pos, a.Op.Name, a.Attrs.Callee, what)
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
		if g >= len(p.guards) {
			continue
		}
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
