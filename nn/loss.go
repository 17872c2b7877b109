package nn

import "github.com/gtc-project/gtc/tensor"

// CrossEntropyLoss is the mean over N of -log softmax(scores)[target]: scores [N, C], target I64 [N].
func CrossEntropyLoss(scores, target *tensor.Tensor) *tensor.Tensor {
	return tensor.Call("cross_entropy", scores, target)
}

// MSELoss is the mean of squared differences.
func MSELoss(x, target *tensor.Tensor) *tensor.Tensor { return tensor.Call("mse_loss", x, target) }

// L1Loss is the mean of absolute differences.
func L1Loss(x, target *tensor.Tensor) *tensor.Tensor { return tensor.Call("l1_loss", x, target) }

// NLLLoss is the mean of -logProbs[n, target[n]].
func NLLLoss(logProbs, target *tensor.Tensor) *tensor.Tensor {
	return tensor.Call("nll_loss", logProbs, target)
}

// BCEWithLogitsLoss is the mean binary cross entropy of sigmoid(logits).
func BCEWithLogitsLoss(logits, target *tensor.Tensor) *tensor.Tensor {
	return tensor.Call("binary_cross_entropy_with_logits", logits, target)
}
