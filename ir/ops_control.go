package ir

// The ops that structure a program: literals, tuples and lists of operands, control flow, terminators, and the generic calls that
// are expanded once operand types are known.

// OpConst and the others here are the rows that passes and builders refer to by name.
var (
	OpConst = register(&Op{
		Name: "const", Doc: "A literal.", Class: Host, NoGrad: true,
		Infer: func(c *Call) ([]Type, error) { return t1(TypeOf(c.Attrs.Value)) },
		Eval:  func(c *EvalCall) ([]Datum, error) { return one(c.Node.Attrs.Value) },
	})
	OpList = register(&Op{
		Name: "list", Doc: "The list of its operands.", Params: []string{"elems..."}, Class: Host,
		Infer: func(c *Call) ([]Type, error) { return t1(ListOf(joinTypes(c.Args))) },
		Eval:  func(c *EvalCall) ([]Datum, error) { return one(NewList(append([]Datum{}, c.Args...)...)) },
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			out := make([]*Value, len(n.Args))
			for i := range n.Args {
				out[i] = b.Op("list_get", ct[0], b.Int(i))
			}
			return out
		},
	})
	OpTuple = register(&Op{
		Name: "tuple", Doc: "The tuple of its operands.", Params: []string{"elems..."}, Class: Host,
		Infer: func(c *Call) ([]Type, error) { return t1(TupleOf(append([]Type{}, c.Args...)...)) },
		Eval:  func(c *EvalCall) ([]Datum, error) { return one(append(Tuple{}, c.Args...)) },
		Grad: func(b *Builder, n *Node, ct []*Value) []*Value {
			out := make([]*Value, len(n.Args))
			for i := range n.Args {
				out[i] = b.Op("tuple_get", ct[0], b.Int(i))
			}
			return out
		},
	})

	OpYield  = register(&Op{Name: "yield", Doc: "Ends a nested block with its results.", Params: []string{"vals..."}, Class: Terminator, NoGrad: true, Infer: noTypes})
	OpReturn = register(&Op{Name: "return", Doc: "Ends a function with its results.", Params: []string{"vals..."}, Class: Terminator, NoGrad: true, Infer: noTypes})

	// OpIf runs Blocks[0] where cond is true and Blocks[1] otherwise; the results are what that block yields.
	OpIf = register(&Op{Name: "if", Doc: "Runs one of two blocks.", Params: []string{"cond"}, Class: Control, NoGrad: true})
	// OpWhile carries its operands: Blocks[0] yields a bool, and while that is true Blocks[1] yields the next carried values.
	OpWhile = register(&Op{Name: "while", Doc: "Repeats a block while a condition block yields true.", Params: []string{"init..."}, Class: Control, NoGrad: true})
	// OpFor runs Blocks[0] trip times (not at all where trip <= 0) on the iteration number and the carried values.
	OpFor = register(&Op{Name: "for", Doc: "Repeats a block a number of times known at entry.", Params: []string{"trip", "init..."}, Class: Control, NoGrad: true})

	// OpAten calls the aten function Attrs.Callee on operands in the order of its schema.
	OpAten = register(&Op{Name: "aten", Doc: "Calls a PyTorch function by its name.", Params: []string{"args..."}, Class: Generic, Effect: MayFail, NoGrad: true})
	// OpVjp is the gradient, Attrs.Order times, of the aten function Attrs.Callee. Write F0 for the function and F(k) for the
	// vector-Jacobian product of F(k-1): its operands are those of F(k-1) and then one cotangent per result of F(k-1) (None means
	// zero); its results are one gradient per operand of F(k-1), None for an operand that has none. A list operand's gradient is a
	// list (its elements None where they have none); the cotangent of a list result is a list.
	OpVjp = register(&Op{Name: "vjp", Doc: "The gradient of a PyTorch function.", Params: []string{"args..."}, Class: Generic, Effect: MayFail, NoGrad: true})
	// OpGrad is torch.autograd.grad: the first Attrs.Count operands are outputs, then as many grad_outputs (None: ones), the rest
	// are inputs; one result per input (None where no output depends on it). The autograd package expands it.
	OpGrad = register(&Op{Name: "grad", Doc: "torch.autograd.grad: gradients of outputs with respect to inputs.", Params: []string{"args..."}, Class: Generic, Effect: MayFail, NoGrad: true})
	// OpFused runs Blocks[0], whose parameters are the operands, as one kernel: elementwise, view and reduce nodes only.
	OpFused = register(&Op{Name: "fused", Doc: "Runs a block of elementwise nodes and reductions as one kernel.", Params: []string{"args..."}, Class: Control, NoGrad: true})
)

func noTypes(*Call) ([]Type, error) { return nil, nil }

func joinTypes(ts []Type) Type {
	t := Any
	for i, u := range ts {
		if i == 0 {
			t = u
		} else {
			t = t.Join(u)
		}
	}
	return t
}
