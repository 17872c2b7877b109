package ir

// detach is the identity with no gradient: what torch.Tensor.detach means, and how expansions treat a value as a constant.
var _ = register(&Op{
	Name: "detach", Doc: "x itself, cut off from its gradient.", Params: []string{"x"}, Class: View, NoGrad: true,
	Infer: func(c *Call) ([]Type, error) {
		t, err := c.tensor(0)
		return []Type{t}, err
	},
	Eval: func(c *EvalCall) ([]Datum, error) { return one(c.Array(0)) },
})
