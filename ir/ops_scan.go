package ir

import "github.com/gtc-project/gtc/ir/dtype"

// Scans: every element of the result depends on those up to it along one dim. They run sequentially along the dim; f32 accumulates in
// f32, halves accumulate in f32 and are rounded only where they are stored, integers wrap.

var (
	_ = register(&Op{
		Name: "cumsum", Doc: "Sums of the elements up to and including each one along dim.",
		Params: []string{"x", "dim"}, Class: Move,
		Infer: inferScan, Eval: evalScan(func(a, x float32) float32 { return a + x }, func(a, x float64) float64 { return a + x }, func(a, x int64) int64 { return a + x }),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			return only(2, 0, b.reversed(n.Args[1], func(g ...*Value) *Value { return b.Op("cumsum", g[0], n.Args[1]) }, ct[0]))
		},
	})
	_ = register(&Op{
		Name: "cumprod", Doc: "Products of the elements up to and including each one along dim.",
		Params: []string{"x", "dim"}, Class: Move,
		Infer: inferScan, Eval: evalScan(multiply[float32], multiply[float64], multiply[int64]),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			// y[i] = x[i]·y[i-1]: the cotangent of y[i] that comes from later ones obeys a linear recurrence, which zeros do not harm
			x, dim := n.Args[0], b.constInt(n.Args[1])
			before := b.exclusiveProd(x, dim, b.sizeAt(x, dim), false)
			return only(2, 0, b.Op("mul", b.backwardRecurrence(ct[0], x, dim), before))
		},
	})
	_ = register(&Op{
		Name: "linrec", Doc: "The linear recurrence y[i] = x[i] + a[i]·y[i-1] along dim, y[-1] = 0; a has x's shape.",
		Params: []string{"x", "a", "dim"}, Class: Move,
		Infer: inferLinrec, Eval: checked(evalLinrec),
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			dim := b.constInt(n.Args[2])
			gx := b.backwardRecurrence(ct[0], n.Args[1], dim)
			previous := b.shift(n.Results[0], dim, false)
			return []*Value{gx, b.Op("mul", gx, previous), nil}
		},
	})
	_ = register(&Op{
		Name: "cummax", Doc: "The maximum of the elements up to each one along dim and its i64 index, the last of equal ones; NaN wins.",
		Params: []string{"x", "dim"}, Class: Move,
		Infer: inferCumExtreme, Eval: evalCumExtreme(true), Grad: gradCumExtreme,
	})
	_ = register(&Op{
		Name: "cummin", Doc: "The minimum of the elements up to each one along dim and its i64 index, the last of equal ones; NaN wins.",
		Params: []string{"x", "dim"}, Class: Move,
		Infer: inferCumExtreme, Eval: evalCumExtreme(false), Grad: gradCumExtreme,
	})
)

func inferScan(c *Call) ([]Type, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	return []Type{x}, c.checkScan(x, 1)
}

func (c *Call) checkScan(x Type, dim int) error {
	if x.DType == dtype.Bool {
		return c.Errorf("expected a tensor of numbers, got %s: convert it first", x)
	}
	return c.checkAlong(x, dim)
}

// checkAlong checks operand dim as a dimension of x, which must not be 0-d.
func (c *Call) checkAlong(x Type, dim int) error {
	if x.Ranked && len(x.Dims) == 0 {
		return c.Errorf("expected a tensor with at least 1 dimension, got shape []")
	}
	_, _, err := c.dimArg(dim, x)
	return err
}

func inferLinrec(c *Call) ([]Type, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	a, err := c.tensor(1)
	if err != nil {
		return nil, err
	}
	d, err := c.sameDType(x, a)
	if err != nil {
		return nil, err
	}
	if x, err = meetShape(c, x, a); err != nil {
		return nil, err
	}
	return []Type{x.withDType(d)}, c.checkScan(x.withDType(d), 2)
}

func inferCumExtreme(c *Call) ([]Type, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	return []Type{x, x.withDType(dtype.I64)}, c.checkAlong(x, 1)
}

// lines calls f with the index of the first element of every line along dim of a contiguous array, and the step within lines.
func lines(shape []int, dim int, f func(start, step int)) {
	step := product(shape[dim+1:])
	for o := 0; o < product(shape[:dim]); o++ {
		for i := 0; i < step; i++ {
			f(o*shape[dim]*step+i, step)
		}
	}
}

func evalScan(f32 func(a, x float32) float32, f64 func(a, x float64) float64, i64 func(a, x int64) int64) func(c *EvalCall) ([]Datum, error) {
	return checked(func(c *EvalCall, out []Type) ([]Datum, error) {
		switch x := c.Array(0); {
		case x.DType == dtype.F64:
			return scan(c, out[0], f64)
		case x.DType.IsFloat():
			return scan(c, out[0], f32)
		}
		return scan(c, out[0], i64)
	})
}

func scan[T number](c *EvalCall, t Type, f func(a, x T) T) ([]Datum, error) {
	y, err := tensorOf(t)
	if err != nil {
		return nil, err
	}
	v, dim := load[T](c.Array(0)), c.Int(1)
	lines(y.Shape, dim, func(start, step int) {
		for k, p := 1, start+step; k < y.Shape[dim]; k, p = k+1, p+step {
			v[p] = f(v[p-step], v[p])
		}
	})
	store(y, v)
	return one(y)
}

func evalLinrec(c *EvalCall, out []Type) ([]Datum, error) {
	switch x := c.Array(0); {
	case x.DType == dtype.F64:
		return linrec[float64](c, out[0])
	case x.DType.IsFloat():
		return linrec[float32](c, out[0])
	}
	return linrec[int64](c, out[0])
}

func linrec[T number](c *EvalCall, t Type) ([]Datum, error) {
	y, err := tensorOf(t)
	if err != nil {
		return nil, err
	}
	v, a, dim := load[T](c.Array(0)), load[T](c.Array(1)), c.Int(2)
	lines(y.Shape, dim, func(start, step int) {
		for k, p := 1, start+step; k < y.Shape[dim]; k, p = k+1, p+step {
			v[p] += T(a[p] * v[p-step])
		}
	})
	store(y, v)
	return one(y)
}

func evalCumExtreme(largest bool) func(c *EvalCall) ([]Datum, error) {
	return checked(func(c *EvalCall, out []Type) ([]Datum, error) {
		switch x := c.Array(0); {
		case x.DType == dtype.F64:
			return cumExtreme[float64](c, out, largest)
		case x.DType.IsFloat():
			return cumExtreme[float32](c, out, largest)
		}
		return cumExtreme[int64](c, out, largest)
	})
}

func cumExtreme[T number](c *EvalCall, out []Type, largest bool) ([]Datum, error) {
	vals, err := tensorOf(out[0])
	if err != nil {
		return nil, err
	}
	inds, err := tensorOf(out[1])
	if err != nil {
		return nil, err
	}
	v, dim := load[T](c.Array(0)), c.Int(1)
	lines(vals.Shape, dim, func(start, step int) {
		best := 0
		for k, p := 0, start; k < vals.Shape[dim]; k, p = k+1, p+step {
			old := v[start+best*step]
			if k == 0 || isNaN(v[p]) || !isNaN(old) && (largest && v[p] >= old || !largest && v[p] <= old) {
				best = k
			}
			inds.SetInt(p, int64(best))
			v[p] = v[start+best*step]
		}
	})
	store(vals, v)
	return []Datum{vals, inds}, nil
}

// gradCumExtreme adds the cotangents at the elements that were chosen.
func gradCumExtreme(b *Builder, n *Node, ct []*Value) []*Value {
	if ct[0] == nil {
		return make([]*Value, 2)
	}
	return only(2, 0, b.Op("scatter_reduce", b.fullLike(n.Args[0], 0), n.Args[1], n.Results[1], ct[0], b.Str("add"), b.Bool(true)))
}

func (b *Builder) sizeAt(v *Value, dim int) *Value {
	b.NeedRank(v)
	return b.SizeOf(v, dim)
}

// reversed applies f to values flipped along dim and flips the result back.
func (b *Builder) reversed(dim *Value, f func(vs ...*Value) *Value, vs ...*Value) *Value {
	dims := b.List(dim)
	flipped := make([]*Value, len(vs))
	for i, v := range vs {
		flipped[i] = b.Op("flip", v, dims)
	}
	return b.Op("flip", f(flipped...), dims)
}

// shift moves elements by one along dim, zero coming in: towards higher indices, or with down to lower ones.
func (b *Builder) shift(v *Value, dim int, down bool) *Value {
	lo := make([]int, b.NeedRank(v))
	hi := make([]int, len(lo))
	size := b.SizeOf(v, dim)
	from := b.Int(0)
	if down {
		hi[dim] = 1
		from = b.Int(1)
	} else {
		lo[dim] = 1
	}
	return b.Op("slice", b.Op("pad", v, b.Ints(lo...), b.Ints(hi...), b.Int(0)), b.Int(dim), from, b.addInt(from, size), b.Int(1))
}

// backwardRecurrence is s with s[i] = g[i] + a[i+1]·s[i+1].
func (b *Builder) backwardRecurrence(g, a *Value, dim int) *Value {
	d := b.Int(dim)
	return b.reversed(d, func(v ...*Value) *Value { return b.Op("linrec", v[0], v[1], d) }, g, b.shift(a, dim, true))
}
