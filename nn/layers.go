package nn

import (
	"github.com/gtc-project/gtc/tensor"
)

// Linear computes x·Wᵀ + b on the last dimension: [..., in] → [..., out].
type Linear struct {
	Weight *tensor.Tensor `nn:"weight"` // [out, in]
	Bias   *tensor.Tensor `nn:"bias"`   // [out], or nil
}

// NewLinear draws weight and bias as torch.nn.Linear does.
func NewLinear(in, out int) *Linear {
	return &Linear{Weight: uniform(fanIn(in), out, in), Bias: uniform(fanIn(in), out)}
}

// Forward applies the layer.
func (l *Linear) Forward(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Call("linear", x, l.Weight, l.Bias)
}

// ConvOptions are the optional settings of a convolution; zero values mean stride 1, no padding, dilation 1, one group, with bias.
type ConvOptions struct {
	Stride, Padding, Dilation, Groups int
	NoBias                            bool
}

func (o ConvOptions) withDefaults() ConvOptions {
	for _, p := range []*int{&o.Stride, &o.Dilation, &o.Groups} {
		if *p == 0 {
			*p = 1
		}
	}
	return o
}

// Conv2d is a convolution of images: [N, in, H, W] → [N, out, H', W'].
type Conv2d struct {
	Weight *tensor.Tensor `nn:"weight"` // [out, in/groups, k, k]
	Bias   *tensor.Tensor `nn:"bias"`   // [out], or nil
	opts   ConvOptions
}

// NewConv2d makes a convolution with a square kernel, drawn as torch.nn.Conv2d does.
func NewConv2d(in, out, kernel int, options ...ConvOptions) *Conv2d {
	var o ConvOptions
	if len(options) > 0 {
		o = options[0]
	}
	o = o.withDefaults()
	fan := in / o.Groups * kernel * kernel
	c := &Conv2d{Weight: uniform(fanIn(fan), out, in/o.Groups, kernel, kernel), opts: o}
	if !o.NoBias {
		c.Bias = uniform(fanIn(fan), out)
	}
	return c
}

// Forward applies the convolution.
func (c *Conv2d) Forward(x *tensor.Tensor) *tensor.Tensor {
	o := c.opts.withDefaults()
	return tensor.Call("conv2d", x, c.Weight, c.Bias, o.Stride, o.Padding, o.Dilation, o.Groups)
}

// BatchNorm2d normalises every channel of [N, C, H, W] over the batch in training, and by running statistics in evaluation.
type BatchNorm2d struct {
	Mode
	Weight            *tensor.Tensor `nn:"weight"`              // [C]
	Bias              *tensor.Tensor `nn:"bias"`                // [C]
	RunningMean       *tensor.Tensor `nn:"running_mean,buffer"` // [C]
	RunningVar        *tensor.Tensor `nn:"running_var,buffer"`  // [C]
	NumBatchesTracked *tensor.Tensor `nn:"num_batches_tracked,buffer"`
	Momentum, Eps     float64
}

// NewBatchNorm2d has weight 1, bias 0, momentum 0.1 and eps 1e-5.
func NewBatchNorm2d(channels int) *BatchNorm2d {
	return &BatchNorm2d{
		Weight: constant(1, channels), Bias: constant(0, channels),
		RunningMean: tensor.Zeros(tensor.F32, channels), RunningVar: tensor.Ones(tensor.F32, channels),
		NumBatchesTracked: tensor.Zeros(tensor.I64), Momentum: 0.1, Eps: 1e-5,
	}
}

// Forward normalises; in training it also updates the running statistics.
func (n *BatchNorm2d) Forward(x *tensor.Tensor) *tensor.Tensor {
	if !n.Training() {
		return tensor.Call("batch_norm", x, n.RunningMean, n.RunningVar, n.Weight, n.Bias, false, n.Momentum, n.Eps)
	}
	y := tensor.Call("batch_norm", x, nil, nil, n.Weight, n.Bias, true, n.Momentum, n.Eps)
	if y.Err() != nil {
		return y
	}
	dims := []int{0, 2, 3}
	xs := tensor.NoGrad(x)
	// the statistics are written in the scope of x, so that a trace sees it
	mean := n.RunningMean.With(xs.Scope()).Mul_(1 - n.Momentum).Add_(xs.Mean(dims...).Mul(n.Momentum))
	variance := n.RunningVar.With(xs.Scope()).Mul_(1 - n.Momentum).Add_(tensor.Call("var", xs, dims, true).Mul(n.Momentum))
	batches := n.NumBatchesTracked.With(xs.Scope()).Add_(1)
	for _, t := range []*tensor.Tensor{mean, variance, batches} {
		if t.Err() != nil {
			return t
		}
	}
	return y
}

// LayerNorm normalises over the last len(shape) dimensions.
type LayerNorm struct {
	Weight *tensor.Tensor `nn:"weight"`
	Bias   *tensor.Tensor `nn:"bias"`
	Eps    float64
	shape  []int
}

// NewLayerNorm has weight 1, bias 0 and eps 1e-5.
func NewLayerNorm(shape ...int) *LayerNorm {
	return &LayerNorm{Weight: constant(1, shape...), Bias: constant(0, shape...), Eps: 1e-5, shape: shape}
}

// Forward normalises.
func (n *LayerNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Call("layer_norm", x, n.shape, n.Weight, n.Bias, n.Eps)
}

// Embedding looks rows up: I64 indices of any shape S → S+[dim].
type Embedding struct {
	Weight *tensor.Tensor `nn:"weight"` // [num, dim]
}

// NewEmbedding draws the rows from the normal distribution.
func NewEmbedding(num, dim int) *Embedding {
	return &Embedding{Weight: tensor.Randn(tensor.F32, num, dim).RequiresGrad()}
}

// Forward looks the rows up; an index out of range is an error.
func (e *Embedding) Forward(index *tensor.Tensor) *tensor.Tensor {
	return tensor.Call("embedding", index, e.Weight)
}

// Dropout zeroes elements with probability P in training and scales the others by 1/(1-P); in evaluation it does nothing.
type Dropout struct {
	Mode
	P float64
}

// NewDropout makes a dropout layer.
func NewDropout(p float64) *Dropout { return &Dropout{P: p} }

// Forward draws a new mask at each call in training.
func (d *Dropout) Forward(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Call("dropout", x, d.P, d.Training())
}

// MaxPool2d takes the largest element of each window; stride 0 means the kernel size.
type MaxPool2d struct{ Kernel, Stride, Padding int }

// Forward applies the pooling to [N, C, H, W].
func (p *MaxPool2d) Forward(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Call("max_pool2d", x, p.Kernel, strideOr(p.Stride, p.Kernel), p.Padding)
}

// AvgPool2d takes the mean of each window; stride 0 means the kernel size.
type AvgPool2d struct{ Kernel, Stride, Padding int }

// Forward applies the pooling to [N, C, H, W].
func (p *AvgPool2d) Forward(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Call("avg_pool2d", x, p.Kernel, strideOr(p.Stride, p.Kernel), p.Padding)
}

func strideOr(stride, kernel int) int {
	if stride == 0 {
		return kernel
	}
	return stride
}

// Func is a module without parameters, such as an activation.
type Func func(x *tensor.Tensor) *tensor.Tensor

// Forward calls the function.
func (f Func) Forward(x *tensor.Tensor) *tensor.Tensor { return f(x) }

// The activations as modules, and Flatten, which keeps the batch dimension.
var (
	ReLU    = Func((*tensor.Tensor).Relu)
	GELU    = Func((*tensor.Tensor).Gelu)
	SiLU    = Func((*tensor.Tensor).Silu)
	Tanh    = Func((*tensor.Tensor).Tanh)
	Sigmoid = Func((*tensor.Tensor).Sigmoid)
	Flatten = Func(func(x *tensor.Tensor) *tensor.Tensor { return x.Flatten(1, -1) })
)

// Sequential applies modules one after another; their names are their indices.
type Sequential []Module

// Forward applies all modules.
func (s Sequential) Forward(x *tensor.Tensor) *tensor.Tensor {
	for _, m := range s {
		x = m.Forward(x)
	}
	return x
}
