// Package data feeds training loops: datasets of arrays, and a loader that shuffles, batches and prefetches.
//
// A Dataset holds named arrays whose first dimension counts samples. A Loader asks a function for one batch after another, by sample
// numbers, so it works with any kind of batch; a few batches are made ahead by goroutines, in order:
//
//	train, err := data.MNIST("mnist-train-10k.npz")
//	…
//	loader := data.Loader[data.Batch]{Len: train.Len(), BatchSize: 64, Shuffle: true, Seed: 1, Load: train.Load}
//	for batch, err := range loader.Epoch(ctx, epoch) {
//		…
//	}
package data
