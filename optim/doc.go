// Package optim holds optimisers: they change parameters in place from the gradients that Backward accumulated.
//
//	opt := optim.NewSGD(nn.Parameters(model), optim.SGD{LR: 0.1, Momentum: 0.9})
//	for … {
//		opt.ZeroGrad()
//		if err := loss.Backward(); err != nil { … }
//		if err := opt.Step(); err != nil { … }
//	}
//
// The update rules are PyTorch's, in its order of operations. Groups of parameters have learning rates and weight decays of their own; State and LoadState carry
// what an optimiser remembers from one run to the next; a Schedule gives the learning rate's factor as a function of the step.
package optim
