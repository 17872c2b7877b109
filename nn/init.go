package nn

import (
	"math"

	"github.com/gtc-project/gtc/tensor"
)

// uniform draws a parameter from [-bound, bound), from the default generator.
func uniform(bound float64, shape ...int) *tensor.Tensor {
	t := tensor.Rand(tensor.F32, shape...).Mul(2 * bound).Sub(bound)
	return t.RequiresGrad()
}

// fanIn is the bound 1/sqrt(n) that torch.nn.Linear and the convolutions draw weights and biases within (Kaiming uniform with a = sqrt 5).
func fanIn(n int) float64 { return 1 / math.Sqrt(float64(max(n, 1))) }

func constant(v float64, shape ...int) *tensor.Tensor {
	return tensor.Full(tensor.F32, v, shape...).RequiresGrad()
}
