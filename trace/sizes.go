package trace

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/tensor"
)

// Symbolic sizes. Go code computes with sizes as plain ints, which a trace cannot follow. So the function is traced at several sizes: the runs
// must do the same operations, and each constant in which they differ must be a simple function of the sizes. A Function traces once at each new
// size before it relies on that; an artefact was traced at all of the probes.

// symbolSize is a symbolic size with its name and places.
type symbolSize struct {
	name   string
	places []Dynamic
}

// differing are the sizes in which shapes of the runs' inputs differ; those that are always equal are one.
func differing(shapes [][][]int) []symbolSize {
	var out []symbolSize
	for i, s := range shapes[0] {
		for d := range s {
			column := func(p Dynamic) []int {
				c := make([]int, len(shapes))
				for k := range shapes {
					c[k] = shapes[k][p.Input][p.Dim]
				}
				return c
			}
			p := Dynamic{i, d}
			c := column(p)
			if slices.Min(c) == slices.Max(c) {
				continue
			}
			k := slices.IndexFunc(out, func(s symbolSize) bool { return slices.Equal(column(s.places[0]), c) })
			if k < 0 {
				k = len(out)
				out = append(out, symbolSize{name: fmt.Sprintf("s%d", k)})
			}
			out[k].places = append(out[k].places, p)
		}
	}
	return out
}

// symbolic makes one program of runs on inputs of different sizes; nonzero has it refuse the size 0.
func symbolic(opts Options, runs []*recorder, shapes [][][]int, sizes []symbolSize, nonzero bool) (*Program, error) {
	p, paths, err := prepare(opts, len(shapes[0]), runs)
	if err != nil {
		return nil, err
	}
	f := ir.NewFunc(runs[0].name)
	z := &sizer{b: ir.NewBuilder(f), maps: make([]*ir.Cloner, len(paths))}
	for i := range paths {
		z.maps[i] = ir.NewCloner(f)
	}
	for k, param := range paths[0].f.Body.Params {
		t := param.Type
		if k < len(shapes[0]) {
			t = ir.TensorDims(t.DType, t.Dims)
			for _, s := range sizes {
				for _, place := range s.places {
					if place.Input == k {
						t.Dims[place.Dim] = ir.Dim{N: -1, Sym: s.name}
					}
				}
			}
		}
		v := f.Param(paths[0].f.ParamNames[k], t)
		for i, q := range paths {
			z.maps[i].Map[q.f.Body.Params[k]] = v
		}
	}
	for _, s := range sizes {
		at := s.places[0]
		v := variable{name: s.name, value: z.b.Op("size", f.Body.Params[at.Input], z.b.Int(at.Dim))}
		for _, shape := range shapes {
			v.at = append(v.at, shape[at.Input][at.Dim])
		}
		z.vars = append(z.vars, v)
		if nonzero {
			z.b.Emit("assert", z.b.Op("py_ne", v.value, z.b.Int(0)), z.b.Str(fmt.Sprintf("dimension %d of %s must not be 0: the traced function does something else there", at.Dim, p.Inputs[at.Input])))
		}
		for _, other := range s.places[1:] {
			same := z.b.Op("py_eq", v.value, z.b.Op("size", f.Body.Params[other.Input], z.b.Int(other.Dim)))
			z.b.Emit("assert", same, z.b.Str(fmt.Sprintf("dimension %d of %s must have the size of dimension %d of %s: the program was traced so", other.Dim, p.Inputs[other.Input], at.Dim, p.Inputs[at.Input])))
		}
	}
	blocks := make([]*ir.Block, len(paths))
	for i, q := range paths {
		blocks[i] = q.f.Body
	}
	one := &path{f: f}
	z.guards = func(at int) error { return z.keepGuards(one, paths, at) }
	if err := z.block(blocks, true); err != nil {
		return nil, err
	}
	for i, v := range paths[0].rets {
		one.rets = append(one.rets, z.maps[0].Val(v))
		for k, q := range paths {
			if z.maps[k].Val(q.rets[i]) != one.rets[i] {
				return nil, fmt.Errorf("result %d is another value for other sizes", i)
			}
		}
	}
	p.Func, err = merge(runs[0].name, []*path{one}, p.fixedSizes(runs))
	return p, err
}

type sizer struct {
	b      *ir.Builder
	maps   []*ir.Cloner
	vars   []variable
	guards func(at int) error
	next   int // guard
}

// variable is a symbolic size: its value and what it is in each run.
type variable struct {
	name  string
	value *ir.Value
	at    []int
}

// keepGuards moves the guards at a node of the paths to the common path.
func (z *sizer) keepGuards(one *path, paths []*path, at int) error {
	for ; z.next < len(paths[0].guards) && paths[0].guards[z.next].at == at; z.next++ {
		g := paths[0].guards[z.next]
		for _, p := range paths {
			if z.next >= len(p.guards) || !sameDatum(p.guards[z.next].want, g.want) {
				return fmt.Errorf("%s: the function reads a value into Go here that differs between sizes: write the branch with trace.If", g.pos)
			}
		}
		g.at, g.read = len(z.b.Block.Nodes), z.maps[0].Val(g.read)
		one.guards = append(one.guards, g)
	}
	return nil
}

// block merges the nodes of blocks into the current one.
func (z *sizer) block(blocks []*ir.Block, body bool) error {
	for i, n := range blocks[0].Nodes {
		if body {
			if err := z.guards(i); err != nil {
				return err
			}
		}
		nodes := make([]*ir.Node, len(blocks))
		for k, b := range blocks {
			if i >= len(b.Nodes) {
				return fmt.Errorf("%s: the function does less for other sizes: a loop over a size must be written with trace.For, or the size be fixed", n.Pos)
			}
			nodes[k] = b.Nodes[i]
		}
		if err := z.node(nodes); err != nil {
			return err
		}
	}
	for _, b := range blocks {
		if len(b.Nodes) > len(blocks[0].Nodes) {
			return fmt.Errorf("%s: the function does more for other sizes: a loop over a size must be written with trace.For, or the size be fixed", b.Nodes[len(blocks[0].Nodes)].Pos)
		}
	}
	if body {
		return z.guards(len(blocks[0].Nodes))
	}
	return nil
}

func (z *sizer) node(nodes []*ir.Node) error {
	n := nodes[0]
	z.b.Pos = n.Pos
	values := make([]ir.Datum, len(nodes))
	differ := false
	for k, o := range nodes {
		if o.Op != n.Op || o.Attrs.Callee != n.Attrs.Callee || o.Attrs.Order != n.Attrs.Order || len(o.Results) != len(n.Results) || len(o.Args) != len(n.Args) || len(o.Blocks) != len(n.Blocks) {
			return fmt.Errorf("%s: for some sizes the function does %s here, for others %s", n.Pos, describe(n), describe(o))
		}
		values[k] = o.Attrs.Value
		differ = differ || !sameDatum(values[k], values[0])
	}
	if n.Op == ir.OpConst && differ {
		v, err := z.formula(values)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Pos, err)
		}
		for k, o := range nodes {
			z.maps[k].Map[o.Results[0]] = v
		}
		return nil
	}
	types := make([]ir.Type, len(n.Results))
	for i, r := range n.Results {
		types[i] = r.Type
	}
	c := z.b.Func.NewNode(n.Op, z.maps[0].Vals(n.Args), types, n.Pos)
	c.Attrs = n.Attrs
	for k, o := range nodes {
		for i, a := range o.Args {
			if z.maps[k].Val(a) != c.Args[i] {
				return fmt.Errorf("%s: an operand of %s is another tensor for other sizes: a constant that Go code makes of a size must come from a function of this package, or from a tensor of the trace", n.Pos, describe(n))
			}
		}
		for i, r := range o.Results {
			z.maps[k].Map[r] = c.Results[i]
		}
	}
	for i := range n.Blocks {
		inner := make([]*ir.Block, len(nodes))
		for k, o := range nodes {
			inner[k] = o.Blocks[i]
		}
		blk := &ir.Block{}
		for j, p := range inner[0].Params {
			v := z.b.Func.BlockParam(blk, p.Type)
			for k := range inner {
				z.maps[k].Map[inner[k].Params[j]] = v
			}
		}
		outer := z.b.Block
		z.b.Block = blk
		err := z.block(inner, false)
		z.b.Block = outer
		if err != nil {
			return err
		}
		c.Blocks = append(c.Blocks, blk)
	}
	z.b.Block.Nodes = append(z.b.Block.Nodes, c)
	return nil
}

// formula computes a constant that differs between the runs from the sizes.
func (z *sizer) formula(values []ir.Datum) (*ir.Value, error) {
	switch values[0].(type) {
	case int64:
		ints := make([]int, len(values))
		for k, v := range values {
			n, ok := v.(int64)
			if !ok {
				return nil, z.unexplained(values)
			}
			ints[k] = int(n)
		}
		if v := z.integer(ints); v != nil {
			return v, nil
		}
	case float64:
		fs := make([]float64, len(values))
		for k, v := range values {
			x, ok := v.(float64)
			if !ok {
				return nil, z.unexplained(values)
			}
			fs[k] = x
		}
		if v := z.float(fs); v != nil {
			return v, nil
		}
	case ir.List:
		first := values[0].(ir.List)
		elems := make([]*ir.Value, first.Len())
		for i := range elems {
			column := make([]ir.Datum, len(values))
			differ := false
			for k, v := range values {
				l, ok := v.(ir.List)
				if !ok || l.Len() != first.Len() {
					return nil, fmt.Errorf("a list has another length for other sizes: %s and %s", ir.FormatDatum(values[0]), ir.FormatDatum(v))
				}
				column[k] = l.Elems()[i]
				differ = differ || !sameDatum(column[k], column[0])
			}
			if !differ {
				elems[i] = z.b.Const(column[0])
				continue
			}
			v, err := z.formula(column)
			if err != nil {
				return nil, err
			}
			elems[i] = v
		}
		return z.b.List(elems...), nil
	}
	return nil, z.unexplained(values)
}

func (z *sizer) unexplained(values []ir.Datum) error {
	var vs, names []string
	for _, v := range values {
		vs = append(vs, ir.FormatDatum(v))
	}
	for _, v := range z.vars {
		names = append(names, fmt.Sprintf("%s=%v", v.name, v.at))
	}
	return fmt.Errorf("the constant %s here depends on sizes (%s) in a way that the trace cannot follow: use -1 in View or Reshape, compute it with operations, or fix the size", strings.Join(vs, ", "), strings.Join(names, ", "))
}

// integer finds a formula for ints: a size times a number plus a number, products of two sizes, and sizes divided with rounding down or up.
func (z *sizer) integer(want []int) *ir.Value {
	for i, v := range z.vars {
		if a, c, ok := linear(v.at, want); ok {
			return z.plus(z.times(v.value, a), c)
		}
		for _, w := range z.vars[i:] {
			product := make([]int, len(want))
			for k := range want {
				product[k] = v.at[k] * w.at[k]
			}
			if a, c, ok := linear(product, want); ok {
				return z.plus(z.times(z.b.Op("py_mul", v.value, w.value), a), c)
			}
		}
	}
	for _, v := range z.vars {
		for q := 2; q <= 64; q++ {
			for _, shift := range []int{0, q - 1, -1, 1} { // floor, ceiling, and what convolutions give
				quotient := make([]int, len(want))
				for k := range want {
					quotient[k] = floorDiv(v.at[k]+shift, q)
				}
				if slices.Min(quotient) == slices.Max(quotient) {
					continue
				}
				if a, c, ok := linear(quotient, want); ok {
					return z.plus(z.times(z.b.Op("py_floordiv", z.plus(v.value, shift), z.b.Int(q)), a), c)
				}
			}
		}
	}
	return z.combination(want)
}

// combination finds a sum of multiples of two sizes, or differences.
func (z *sizer) combination(want []int) *ir.Value {
	for i, v := range z.vars {
		for _, w := range z.vars[i+1:] {
			for _, a := range []int{1, -1, 2} {
				for _, b := range []int{1, -1, 2} {
					sum := make([]int, len(want))
					for k := range want {
						sum[k] = a*v.at[k] + b*w.at[k]
					}
					if m, c, ok := linear(sum, want); ok {
						return z.plus(z.times(z.b.Op("py_add", z.times(v.value, a), z.times(w.value, b)), m), c)
					}
				}
			}
		}
	}
	return nil
}

func floorDiv(a, b int) int { return int(math.Floor(float64(a) / float64(b))) }

// linear finds a and c with want = a*x + c for all runs.
func linear(x, want []int) (a, c int, ok bool) {
	j := slices.IndexFunc(x, func(v int) bool { return v != x[0] })
	if j < 0 || (want[j]-want[0])%(x[j]-x[0]) != 0 {
		return 0, 0, false
	}
	a = (want[j] - want[0]) / (x[j] - x[0])
	c = want[0] - a*x[0]
	for k := range x {
		if a*x[k]+c != want[k] {
			return 0, 0, false
		}
	}
	return a, c, true
}

func (z *sizer) times(v *ir.Value, a int) *ir.Value {
	if a == 1 {
		return v
	}
	return z.b.Op("py_mul", v, z.b.Int(a))
}

func (z *sizer) plus(v *ir.Value, c int) *ir.Value {
	if c == 0 {
		return v
	}
	return z.b.Op("py_add", v, z.b.Int(c))
}

// float finds c*n, c/n, c*sqrt(n) and c/sqrt(n).
func (z *sizer) float(want []float64) *ir.Value {
	for _, v := range z.vars {
		forms := []struct {
			at    func(n float64) float64
			build func(n *ir.Value) *ir.Value
		}{
			{func(n float64) float64 { return n }, func(n *ir.Value) *ir.Value { return z.b.Op("py_float", n) }},
			{math.Sqrt, func(n *ir.Value) *ir.Value { return z.b.Op("math_sqrt", z.b.Op("py_float", n)) }},
		}
		for _, f := range forms {
			if c, ok := constant(want, v.at, func(w, n float64) float64 { return w / f.at(n) }, func(c, n float64) float64 { return c * f.at(n) }); ok {
				return z.b.Op("py_mul", z.b.Float(c), f.build(v.value))
			}
			if c, ok := constant(want, v.at, func(w, n float64) float64 { return w * f.at(n) }, func(c, n float64) float64 { return c / f.at(n) }); ok {
				return z.b.Op("py_truediv", z.b.Float(c), f.build(v.value))
			}
		}
	}
	return nil
}

// constant is the number c of a formula: solve gives it in one run, and again must give what each run has. Numbers that are whole but for rounding are whole.
func constant(want []float64, at []int, solve, again func(x, n float64) float64) (float64, bool) {
	for k, n := range at {
		if n == 0 {
			continue
		}
		c := solve(want[k], float64(n))
		if r := math.Round(c); math.Abs(r-c) < 1e-9*math.Abs(c) {
			c = r
		}
		ok := true
		for j, m := range at {
			got := again(c, float64(m))
			ok = ok && (got == want[j] || math.IsNaN(got) && math.IsNaN(want[j]))
		}
		if ok {
			return c, true
		}
	}
	return 0, false
}

func shapesOf(ts []*tensor.Tensor) [][]int {
	out := make([][]int, len(ts))
	for i, t := range ts {
		out[i] = t.Shape()
	}
	return out
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// traceDynamic traces fn at the sizes of the inputs and at others. Sizes that the function itself refuses are left out.
func traceDynamic(fn Func, opts Options, inputs []*tensor.Tensor) (*Program, error) {
	sizes, err := symbols(opts, inputs)
	if err != nil {
		return nil, err
	}
	first, err := record(fn, opts, inputs)
	if err != nil {
		return nil, err
	}
	runs, shapes := []*recorder{first}, [][][]int{shapesOf(inputs)}
	var refused error
	for k, s := range sizes {
		n, found := sizeAt(inputs, s), 0
		for _, m := range []int{n + 1, n + 2, n + 3, 2 * n, 2*n + 3, 4*n + 4, 1, 0, 37} {
			others := resized(inputs, s, m)
			for _, o := range sizes[:k] { // the sizes differ independently of each other
				others = resized(others, o, sizeAt(inputs, o)+m%2)
			}
			r, err := runOnce(fn, opts, others)
			if err != nil {
				refused = err
				continue
			}
			found++
			runs, shapes = append(runs, r), append(shapes, shapesOf(others))
		}
		if found < 2 {
			return nil, fmt.Errorf("the size %s cannot be symbolic, since the function works for too few sizes besides %d: %w", s.name, n, refused)
		}
	}
	p, err := symbolic(opts, runs, shapes, sizes, false)
	if err != nil { // with nothing in them, tensors have no memory that writes are seen in, and loops no first step
		runs, shapes = slices.Clone(runs), slices.Clone(shapes)
		for i := len(runs) - 1; i > 0; i-- {
			if slices.ContainsFunc(shapes[i], func(s []int) bool { return slices.Contains(s, 0) }) {
				runs, shapes = slices.Delete(runs, i, i+1), slices.Delete(shapes, i, i+1)
			}
		}
		if q, without := symbolic(opts, runs, shapes, sizes, true); without == nil {
			p, err = q, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("trace with symbolic sizes: %w", err)
	}
	return p, nil
}

// symbols groups the dynamic dimensions by name.
func symbols(opts Options, inputs []*tensor.Tensor) ([]symbolSize, error) {
	byName := map[string][]Dynamic{}
	for d, name := range opts.Dynamic {
		if d.Input < 0 || d.Input >= len(inputs) || d.Dim < 0 || d.Dim >= inputs[d.Input].Dim() {
			return nil, fmt.Errorf("there is no dimension %d of input %d to be symbolic", d.Dim, d.Input)
		}
		if name == "" {
			name = fmt.Sprintf("%s_%d", inputNames(opts, len(inputs))[d.Input], d.Dim)
		}
		byName[name] = append(byName[name], d)
	}
	var out []symbolSize
	for _, name := range sortedKeys(byName) {
		places := byName[name]
		sort.Slice(places, func(i, j int) bool {
			return places[i].Input < places[j].Input || places[i].Input == places[j].Input && places[i].Dim < places[j].Dim
		})
		s := symbolSize{name, places}
		for _, p := range places {
			if n := inputs[p.Input].Size(p.Dim); n != sizeAt(inputs, s) {
				return nil, fmt.Errorf("the size %s is %d in input %d and %d in input %d", name, sizeAt(inputs, s), places[0].Input, n, p.Input)
			}
		}
		out = append(out, s)
	}
	return out, nil
}

func sizeAt(inputs []*tensor.Tensor, s symbolSize) int {
	return inputs[s.places[0].Input].Size(s.places[0].Dim)
}

// resized gives the inputs with size n: their slices in turn, or zeros where there are none.
func resized(inputs []*tensor.Tensor, s symbolSize, n int) []*tensor.Tensor {
	out := append([]*tensor.Tensor{}, inputs...)
	for _, p := range s.places {
		x := tensor.NoGrad(out[p.Input])
		if old := x.Size(p.Dim); old > 0 {
			index := make([]int64, n)
			for i := range index {
				index[i] = int64(i % old)
			}
			at, _ := tensor.FromSlice(index, n)
			x = x.IndexSelect(p.Dim, at)
		} else {
			shape := x.Shape()
			shape[p.Dim] = n
			x = tensor.Zeros(x.DType(), shape...)
		}
		if inputs[p.Input].NeedsGrad() {
			x = x.Detach().RequiresGrad()
		}
		out[p.Input] = x.With(inputs[p.Input].Scope())
	}
	return out
}
