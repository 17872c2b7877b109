package nn

import "github.com/gtc-project/gtc/tensor"

// The frequent layers by name; New makes all others. The names are all one type: they say in a struct what stands there.
type (
	Linear                  = Layer
	Bilinear                = Layer
	Embedding               = Layer
	Conv1d                  = Layer
	Conv2d                  = Layer
	Conv3d                  = Layer
	ConvTranspose1d         = Layer
	ConvTranspose2d         = Layer
	ConvTranspose3d         = Layer
	BatchNorm1d             = Layer
	BatchNorm2d             = Layer
	BatchNorm3d             = Layer
	LayerNorm               = Layer
	GroupNorm               = Layer
	Dropout                 = Layer
	MaxPool1d               = Layer
	MaxPool2d               = Layer
	AvgPool1d               = Layer
	AvgPool2d               = Layer
	AdaptiveAvgPool2d       = Layer
	RNN                     = Layer
	LSTM                    = Layer
	GRU                     = Layer
	MultiheadAttention      = Layer
	TransformerEncoderLayer = Layer
	TransformerDecoderLayer = Layer
)

// with is New with optional keywords behind the arguments.
func with(class string, options []Kw, args ...any) *Layer {
	for _, o := range options {
		args = append(args, o)
	}
	return New(class, args...)
}

// NewLinear computes x·Wᵀ + b on the last dimension: [..., in] → [..., out]. Keyword: bias.
func NewLinear(in, out int, options ...Kw) *Linear { return with("Linear", options, in, out) }

// NewConv1d is a convolution of sequences: [N, in, L] → [N, out, L']. Keywords: stride, padding, dilation, groups, bias, padding_mode.
func NewConv1d(in, out, kernel int, options ...Kw) *Conv1d {
	return with("Conv1d", options, in, out, kernel)
}

// NewConv2d is a convolution of images with a square kernel: [N, in, H, W] → [N, out, H', W']. Keywords: stride, padding, dilation, groups, bias, padding_mode; kernels
// that are not square are made with New("Conv2d", in, out, []int{h, w}).
func NewConv2d(in, out, kernel int, options ...Kw) *Conv2d {
	return with("Conv2d", options, in, out, kernel)
}

// NewConvTranspose2d is the transpose of a convolution. Keywords: stride, padding, output_padding, dilation, groups, bias.
func NewConvTranspose2d(in, out, kernel int, options ...Kw) *ConvTranspose2d {
	return with("ConvTranspose2d", options, in, out, kernel)
}

// NewBatchNorm1d normalises every channel of [N, C] or [N, C, L]; see NewBatchNorm2d.
func NewBatchNorm1d(channels int, options ...Kw) *BatchNorm1d {
	return with("BatchNorm1d", options, channels)
}

// NewBatchNorm2d normalises every channel of [N, C, H, W] over the batch in training, where it also updates its buffers running_mean, running_var and
// num_batches_tracked, and by these in evaluation. Keywords: eps, momentum, affine, track_running_stats.
func NewBatchNorm2d(channels int, options ...Kw) *BatchNorm2d {
	return with("BatchNorm2d", options, channels)
}

// NewLayerNorm normalises over the last len(shape) dimensions, which are of that shape.
func NewLayerNorm(shape ...int) *LayerNorm { return New("LayerNorm", shape) }

// NewGroupNorm normalises groups of channels of [N, C, …]. Keywords: eps, affine.
func NewGroupNorm(groups, channels int, options ...Kw) *GroupNorm {
	return with("GroupNorm", options, groups, channels)
}

// NewEmbedding looks rows up: I64 indices of any shape S → S+[dim]; an index out of range is an error. Keywords: padding_idx, max_norm.
func NewEmbedding(num, dim int, options ...Kw) *Embedding {
	return with("Embedding", options, num, dim)
}

// NewDropout zeroes elements with probability p in training and scales the others by 1/(1-p), with a new mask at each call; in evaluation it does nothing.
func NewDropout(p float64) *Dropout { return New("Dropout", p) }

// NewMaxPool2d takes the largest element of each window of [N, C, H, W]. Keywords: stride (the kernel's size where absent), padding, dilation, ceil_mode.
func NewMaxPool2d(kernel int, options ...Kw) *MaxPool2d { return with("MaxPool2d", options, kernel) }

// NewAvgPool2d takes the mean of each window of [N, C, H, W]. Keywords: stride (the kernel's size where absent), padding, ceil_mode, count_include_pad.
func NewAvgPool2d(kernel int, options ...Kw) *AvgPool2d { return with("AvgPool2d", options, kernel) }

// NewAdaptiveAvgPool2d takes means so that an image of height × width remains.
func NewAdaptiveAvgPool2d(height, width int) *AdaptiveAvgPool2d {
	return New("AdaptiveAvgPool2d", []int{height, width})
}

// NewLSTM is a long short-term memory over [L, N, input]. Call(x) or Call(x, []any{h, c}) gives the output, h and c. Keywords: num_layers, bias, batch_first, dropout,
// bidirectional, proj_size.
func NewLSTM(input, hidden int, options ...Kw) *LSTM { return with("LSTM", options, input, hidden) }

// NewGRU is a gated recurrent unit over [L, N, input]. Call(x) or Call(x, h) gives the output and h. Keywords as of NewLSTM, without proj_size.
func NewGRU(input, hidden int, options ...Kw) *GRU { return with("GRU", options, input, hidden) }

// NewRNN is an Elman network over [L, N, input]; see NewGRU. Further keyword: nonlinearity ("tanh" or "relu").
func NewRNN(input, hidden int, options ...Kw) *RNN { return with("RNN", options, input, hidden) }

// NewMultiheadAttention attends with heads of size embed/heads. Call(query, key, value) gives the output and the weights. Keywords: dropout, bias, add_bias_kv,
// add_zero_attn, kdim, vdim, batch_first; of the call: key_padding_mask, need_weights, attn_mask, average_attn_weights.
func NewMultiheadAttention(embed, heads int, options ...Kw) *MultiheadAttention {
	return with("MultiheadAttention", options, embed, heads)
}

// NewTransformerEncoderLayer is self-attention and a feed-forward network. Keywords: dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first.
func NewTransformerEncoderLayer(model, heads int, options ...Kw) *TransformerEncoderLayer {
	return with("TransformerEncoderLayer", options, model, heads)
}

// NewTransformerDecoderLayer is self-attention, attention to a memory, and a feed-forward network; see NewTransformerEncoderLayer. Call(target, memory).
func NewTransformerDecoderLayer(model, heads int, options ...Kw) *TransformerDecoderLayer {
	return with("TransformerDecoderLayer", options, model, heads)
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
