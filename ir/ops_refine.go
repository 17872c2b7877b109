package ir

import "errors"

// Ops that front ends need to state what they know about a value, or to keep a gradient apart from a value.

var (
	// OpUnwrap is what remains of an Optional once the program has checked that it is not None.
	OpUnwrap = register(&Op{
		Name: "unwrap", Doc: "a, which is not None.", Params: []string{"a"}, Class: Host, Effect: MayFail,
		Infer: func(c *Call) ([]Type, error) {
			switch c.Args[0].Kind {
			case KOptional:
				return t1(c.Args[0].Elems[0])
			case KNone:
				return t1(Any)
			}
			return t1(c.Args[0])
		},
		Eval: func(c *EvalCall) ([]Datum, error) {
			if c.Args[0] == nil {
				return nil, errors.New("Unwrapping null optional: the value is None")
			}
			return one(c.Args[0])
		},
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value { return []*Value{ct[0]} },
	})
	// OpGraft is how a write that autograd does not see changes a tensor: through detach() or under no_grad.
	OpGraft = register(&Op{
		Name: "graft", Doc: "The value of x, a tensor, with the gradient of like, a tensor of the same dtype and shape.",
		Params: []string{"x", "like"}, Class: Host,
		Infer: func(c *Call) ([]Type, error) { return t1(c.Args[0]) },
		Eval:  func(c *EvalCall) ([]Datum, error) { return one(c.Args[0]) },
		Grad:  func(b *Builder, n *Node, ct []*Value) []*Value { return []*Value{nil, ct[0]} },
	})
)
