package ir

import "github.com/gtc-project/gtc/ir/dtype"

// bitcast copies: its result must not share memory with an operand of another element size.
var _ = register(&Op{
	Name: "bitcast", Doc: "The bytes of x as another dtype; where the sizes of an element differ, the last dim shrinks or grows accordingly.",
	Params: []string{"x", "dtype"}, Class: Move, NoGrad: true,
	Infer: inferBitcast,
	Eval: checked(func(c *EvalCall, out []Type) ([]Datum, error) {
		y, err := tensorOf(out[0])
		if err != nil {
			return nil, err
		}
		copy(y.Data, c.Array(0).Contiguous().Bytes())
		return one(y)
	}),
})

func inferBitcast(c *Call) ([]Type, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, err := c.tensor(0)
	if err != nil {
		return nil, err
	}
	d, err := c.dtypeArg(1)
	if err != nil || d == dtype.Invalid || x.DType == dtype.Invalid {
		return []Type{x.withDType(dtype.Invalid).unranked()}, err
	}
	if d == dtype.Bool || x.DType == dtype.Bool {
		if d != x.DType {
			return nil, c.Errorf("the bits of %s cannot be taken for %s: bool has only two values", x.DType, d)
		}
	}
	out := x.withDType(d)
	from, to := x.DType.Size(), d.Size()
	if from == to || !x.Ranked {
		return t1(out)
	}
	if len(x.Dims) == 0 {
		return nil, c.Errorf("a 0-d tensor of %s cannot become %s, whose elements have another size", x.DType, d)
	}
	last := len(x.Dims) - 1
	dims := append([]Dim{}, x.Dims...)
	dims[last] = Unknown
	if n := x.Dims[last].N; n >= 0 {
		if n*from%to != 0 {
			return nil, c.Errorf("the last dimension of shape %s, %d, must be divisible by %d to become %s", dimsString(x.Dims), n, to/from, d)
		}
		dims[last] = Dim{N: n * from / to}
	}
	return t1(out.withDims(dims))
}
