// Package optim holds optimisers: they change parameters in place from the gradients that Backward accumulated.
//
//	opt := optim.NewSGD(nn.Parameters(model), optim.SGD{LR: 0.1, Momentum: 0.9})
//	for … {
//		opt.ZeroGrad()
//		if err := loss.Backward(); err != nil { … }
//		if err := opt.Step(); err != nil { … }
//	}
//
// The update rules are PyTorch's, in its order of operations.
package optim
