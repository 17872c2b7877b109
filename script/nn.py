"""The layers of torch.nn as scripts see them: constructors run when a model is built, forward methods are lowered like the user's own.

_uniform, _normal, _full and _buffer make parameters and buffers; _ntuple repeats a number.
"""
import math
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Identity(Module):
    def __init__(self, *, unused: int = 0):
        self.unused = unused

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        self.in_features = in_features
        self.out_features = out_features
        bound = 1.0 / math.sqrt(in_features) if in_features > 0 else 0.0
        self.weight = _uniform(bound, (out_features, in_features), dtype)
        self.bias = _uniform(bound, (out_features,), dtype) if bias else None

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)


class Bilinear(Module):
    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        bound = 1.0 / math.sqrt(in1_features)
        self.weight = _uniform(bound, (out_features, in1_features, in2_features), dtype)
        self.bias = _uniform(bound, (out_features,), dtype) if bias else None

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)


class Embedding(Module):
    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False, device=None, dtype=None):
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.weight = _normal(1.0, (num_embeddings, embedding_dim), dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx)


class EmbeddingBag(Module):
    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode='mean', sparse=False):
        self.mode = mode
        self.weight = _normal(1.0, (num_embeddings, embedding_dim))

    def forward(self, input: Tensor, offsets: Optional[Tensor] = None) -> Tensor:
        return F.embedding_bag(input, self.weight, offsets, mode=self.mode)


class _Conv(Module):
    def __init__(self, dims, transposed, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, output_padding, dtype):
        if in_channels % groups != 0:
            raise ValueError('in_channels must be divisible by groups')
        if out_channels % groups != 0:
            raise ValueError('out_channels must be divisible by groups')
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _ntuple(kernel_size, dims)
        self.stride = _ntuple(stride, dims)
        self.padding = padding if isinstance(padding, str) else _ntuple(padding, dims)
        self.dilation = _ntuple(dilation, dims)
        self.output_padding = _ntuple(output_padding, dims)
        self.groups = groups
        self.padding_mode = padding_mode
        around = []
        if padding_mode != 'zeros':
            for i in range(dims):
                total = self.dilation[dims - 1 - i] * (self.kernel_size[dims - 1 - i] - 1)
                if padding == 'same':
                    around += [total // 2, total - total // 2]
                elif padding == 'valid':
                    around += [0, 0]
                else:
                    around += [self.padding[dims - 1 - i], self.padding[dims - 1 - i]]
        self.around = around
        fan = out_channels if transposed else in_channels
        other = in_channels if transposed else out_channels
        size = 1
        for k in self.kernel_size:
            size *= k
        bound = 1.0 / math.sqrt(fan // groups * size)
        self.weight = _uniform(bound, (other, fan // groups) + self.kernel_size, dtype)
        self.bias = _uniform(bound, (out_channels,), dtype) if bias else None


class Conv1d(_Conv):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode='zeros', device=None, dtype=None):
        super().__init__(1, False, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, 0, dtype)

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != 'zeros':
            return F.conv1d(F.pad(input, self.around, self.padding_mode), self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return F.conv1d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(_Conv):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode='zeros', device=None, dtype=None):
        super().__init__(2, False, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, 0, dtype)

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != 'zeros':
            return F.conv2d(F.pad(input, self.around, self.padding_mode), self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return F.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv3d(_Conv):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode='zeros', device=None, dtype=None):
        super().__init__(3, False, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, 0, dtype)

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != 'zeros':
            return F.conv3d(F.pad(input, self.around, self.padding_mode), self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return F.conv3d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class ConvTranspose1d(_Conv):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None):
        super().__init__(1, True, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, output_padding, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.conv_transpose1d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)


class ConvTranspose2d(_Conv):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None):
        super().__init__(2, True, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, output_padding, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)


class ConvTranspose3d(_Conv):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None):
        super().__init__(3, True, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, output_padding, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.conv_transpose3d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)


class _Norm(Module):
    def __init__(self, num_features, eps, momentum, affine, track_running_stats, dtype):
        self.num_features = num_features
        self.eps = eps
        self.momentum = 0.1 if momentum is None else momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.weight = _full(1.0, (num_features,), dtype) if affine else None
        self.bias = _full(0.0, (num_features,), dtype) if affine else None
        if track_running_stats:
            self.register_buffer('running_mean', torch.zeros(num_features))
            self.register_buffer('running_var', torch.ones(num_features))
            self.register_buffer('num_batches_tracked', torch.tensor(0, dtype=torch.long))
        else:
            self.running_mean = None
            self.running_var = None


class _BatchNorm(_Norm):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def forward(self, input: Tensor) -> Tensor:
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
        if self.track_running_stats:
            return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, self.training, self.momentum, self.eps)
        return F.batch_norm(input, None, None, self.weight, self.bias, True, self.momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    pass


class BatchNorm2d(_BatchNorm):
    pass


class BatchNorm3d(_BatchNorm):
    pass


class _InstanceNorm(_Norm):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def forward(self, input: Tensor) -> Tensor:
        if self.track_running_stats:
            return F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias, self.training, self.momentum, self.eps)
        return F.instance_norm(input, None, None, self.weight, self.bias, True, self.momentum, self.eps)


class InstanceNorm1d(_InstanceNorm):
    pass


class InstanceNorm2d(_InstanceNorm):
    pass


class InstanceNorm3d(_InstanceNorm):
    pass


class LayerNorm(Module):
    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, device=None, dtype=None):
        self.normalized_shape = _ntuple(normalized_shape, 1)
        self.eps = eps
        self.weight = _full(1.0, self.normalized_shape, dtype) if elementwise_affine else None
        self.bias = _full(0.0, self.normalized_shape, dtype) if elementwise_affine else None

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class GroupNorm(Module):
    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None):
        if num_channels % num_groups != 0:
            raise ValueError('num_channels must be divisible by num_groups')
        self.num_groups = num_groups
        self.eps = eps
        self.weight = _full(1.0, (num_channels,), dtype) if affine else None
        self.bias = _full(0.0, (num_channels,), dtype) if affine else None

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class LocalResponseNorm(Module):
    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class _MaxPool(Module):
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode


class MaxPool1d(_MaxPool):
    def forward(self, input: Tensor):
        if self.return_indices:
            return F.max_pool1d_with_indices(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
        return F.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class MaxPool2d(_MaxPool):
    def forward(self, input: Tensor):
        if self.return_indices:
            return F.max_pool2d_with_indices(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
        return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class MaxPool3d(_MaxPool):
    def forward(self, input: Tensor):
        if self.return_indices:
            return F.max_pool3d_with_indices(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
        return F.max_pool3d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class AvgPool1d(Module):
    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPool(Module):
    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override


class AvgPool2d(_AvgPool):
    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)


class AvgPool3d(_AvgPool):
    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)


class _Adaptive(Module):
    def __init__(self, output_size):
        self.output_size = output_size


class AdaptiveAvgPool1d(_Adaptive):
    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_Adaptive):
    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_Adaptive):
    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class AdaptiveMaxPool1d(_Adaptive):
    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool1d(input, self.output_size)


class AdaptiveMaxPool2d(_Adaptive):
    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool2d(input, self.output_size)


class _Dropout(Module):
    def __init__(self, p=0.5, inplace=False):
        if p < 0 or p > 1:
            raise ValueError('dropout probability has to be between 0 and 1')
        self.p = float(p)


class Dropout(_Dropout):
    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training)


class Dropout1d(_Dropout):
    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training)


class Dropout2d(_Dropout):
    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training)


class Dropout3d(_Dropout):
    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training)


class AlphaDropout(_Dropout):
    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class _InPlace(Module):
    def __init__(self, inplace=False):
        self.inplace = inplace


class ReLU(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class ReLU6(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, inplace=self.inplace)


class SELU(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, inplace=self.inplace)


class SiLU(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


class Hardswish(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, inplace=self.inplace)


class Hardsigmoid(_InPlace):
    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, inplace=self.inplace)


class ELU(Module):
    def __init__(self, alpha=1.0, inplace=False):
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(Module):
    def __init__(self, alpha=1.0, inplace=False):
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(Module):
    def __init__(self, negative_slope=0.01, inplace=False):
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class Hardtanh(Module):
    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False):
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class Threshold(Module):
    def __init__(self, threshold, value, inplace=False):
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value)


class GELU(Module):
    def __init__(self, approximate='none'):
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class Sigmoid(Module):
    def forward(self, input: Tensor) -> Tensor:
        return torch.sigmoid(input)


class Tanh(Module):
    def forward(self, input: Tensor) -> Tensor:
        return torch.tanh(input)


class Softsign(Module):
    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class LogSigmoid(Module):
    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Module):
    def __init__(self, beta=1, threshold=20):
        self.beta = float(beta)
        self.threshold = float(threshold)

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class Softshrink(Module):
    def __init__(self, lambd=0.5):
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Hardshrink(Module):
    def __init__(self, lambd=0.5):
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class PReLU(Module):
    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        self.weight = _full(init, (num_parameters,), dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


class GLU(Module):
    def __init__(self, dim=-1):
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class Softmax(Module):
    def __init__(self, dim=None):
        self.dim = -1 if dim is None else dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class Softmin(Softmax):
    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(-input, self.dim)


class LogSoftmax(Softmax):
    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmax2d(Module):
    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, -3)


class Flatten(Module):
    def __init__(self, start_dim=1, end_dim=-1):
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    def __init__(self, dim, unflattened_size):
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)


class PixelShuffle(Module):
    def __init__(self, upscale_factor):
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    def __init__(self, downscale_factor):
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


class Unfold(Module):
    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Upsample(Module):
    def __init__(self, size=None, scale_factor=None, mode='nearest', align_corners=None):
        self.size = size
        self.scale_factor = float(scale_factor) if isinstance(scale_factor, int) else scale_factor
        self.mode = mode
        self.align_corners = align_corners

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners)


class UpsamplingNearest2d(Upsample):
    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, 'nearest')


class UpsamplingBilinear2d(Upsample):
    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, 'bilinear', True)


class _ConstantPad(Module):
    def __init__(self, dims, padding, value):
        self.padding = _ntuple(padding, 2 * dims)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, 'constant', self.value)


class ConstantPad1d(_ConstantPad):
    def __init__(self, padding, value):
        super().__init__(1, padding, value)


class ConstantPad2d(_ConstantPad):
    def __init__(self, padding, value):
        super().__init__(2, padding, value)


class ConstantPad3d(_ConstantPad):
    def __init__(self, padding, value):
        super().__init__(3, padding, value)


class ZeroPad2d(_ConstantPad):
    def __init__(self, padding):
        super().__init__(2, padding, 0.0)


class _ModePad(Module):
    def __init__(self, dims, mode, padding):
        self.padding = _ntuple(padding, 2 * dims)
        self.mode = mode

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)


class ReflectionPad1d(_ModePad):
    def __init__(self, padding):
        super().__init__(1, 'reflect', padding)


class ReflectionPad2d(_ModePad):
    def __init__(self, padding):
        super().__init__(2, 'reflect', padding)


class ReplicationPad1d(_ModePad):
    def __init__(self, padding):
        super().__init__(1, 'replicate', padding)


class ReplicationPad2d(_ModePad):
    def __init__(self, padding):
        super().__init__(2, 'replicate', padding)


class CosineSimilarity(Module):
    def __init__(self, dim=1, eps=1e-8):
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class _Cell(Module):
    def __init__(self, gates, input_size, hidden_size, bias, dtype):
        self.input_size = input_size
        self.hidden_size = hidden_size
        bound = 1.0 / math.sqrt(hidden_size)
        self.weight_ih = _uniform(bound, (gates * hidden_size, input_size), dtype)
        self.weight_hh = _uniform(bound, (gates * hidden_size, hidden_size), dtype)
        self.bias_ih = _uniform(bound, (gates * hidden_size,), dtype) if bias else None
        self.bias_hh = _uniform(bound, (gates * hidden_size,), dtype) if bias else None


class LSTMCell(_Cell):
    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(4, input_size, hidden_size, bias, dtype)

    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
        if hx is None:
            zeros = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype)
            hx = (zeros, zeros)
        h, c = hx
        gates = F.linear(input, self.weight_ih, self.bias_ih) + F.linear(h, self.weight_hh, self.bias_hh)
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class GRUCell(_Cell):
    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(3, input_size, hidden_size, bias, dtype)

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        if hx is None:
            hx = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype)
        xr, xz, xn = F.linear(input, self.weight_ih, self.bias_ih).chunk(3, 1)
        hr, hz, hn = F.linear(hx, self.weight_hh, self.bias_hh).chunk(3, 1)
        r = torch.sigmoid(xr + hr)
        z = torch.sigmoid(xz + hz)
        n = torch.tanh(xn + r * hn)
        return (hx - n) * z + n


class RNNCell(_Cell):
    def __init__(self, input_size, hidden_size, bias=True, nonlinearity='tanh', device=None, dtype=None):
        super().__init__(1, input_size, hidden_size, bias, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        if hx is None:
            hx = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype)
        y = F.linear(input, self.weight_ih, self.bias_ih) + F.linear(hx, self.weight_hh, self.bias_hh)
        return torch.tanh(y) if self.nonlinearity == 'tanh' else torch.relu(y)


class _Recurrent(Module):
    def __init__(self, gates, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype):
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        directions = 2 if bidirectional else 1
        self.states = num_layers * directions
        bound = 1.0 / math.sqrt(hidden_size)
        self.layers = []
        for layer in range(num_layers):
            runs = []
            for direction in range(directions):
                suffix = '_l' + str(layer) + ('_reverse' if direction == 1 else '')
                inputs = input_size if layer == 0 else hidden_size * directions
                setattr(self, 'weight_ih' + suffix, _uniform(bound, (gates * hidden_size, inputs), dtype))
                setattr(self, 'weight_hh' + suffix, _uniform(bound, (gates * hidden_size, hidden_size), dtype))
                setattr(self, 'bias_ih' + suffix, _uniform(bound, (gates * hidden_size,), dtype) if bias else None)
                setattr(self, 'bias_hh' + suffix, _uniform(bound, (gates * hidden_size,), dtype) if bias else None)
                runs.append((layer * directions + direction, direction == 1, 'weight_ih' + suffix, 'weight_hh' + suffix, 'bias_ih' + suffix, 'bias_hh' + suffix))
            self.layers.append((layer + 1 == num_layers, runs))

    def zeros(self, x: Tensor) -> Tensor:
        return torch.zeros(self.states, x.size(1), self.hidden_size, dtype=x.dtype)

    def flatten_parameters(self) -> None:
        pass


class LSTM(_Recurrent):
    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0, device=None, dtype=None):
        if proj_size != 0:
            raise ValueError('LSTM with proj_size is not supported')
        super().__init__(4, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype)

    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        x = input.transpose(0, 1) if self.batch_first else input
        if hx is None:
            h0 = self.zeros(x)
            c0 = self.zeros(x)
        else:
            h0, c0 = hx
        hs: List[Tensor] = []
        cs: List[Tensor] = []
        for last, runs in self.layers:
            outs: List[Tensor] = []
            for index, reverse, w_ih, w_hh, b_ih, b_hh in runs:
                xs = F.linear(x, getattr(self, w_ih), getattr(self, b_ih))
                h = h0[index]
                c = c0[index]
                ys: List[Tensor] = []
                steps = x.size(0)
                for s in range(steps):
                    t = steps - 1 - s if reverse else s
                    i, f, g, o = (xs[t] + F.linear(h, getattr(self, w_hh), getattr(self, b_hh))).chunk(4, 1)
                    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                    h = torch.sigmoid(o) * torch.tanh(c)
                    ys.append(h)
                if reverse:
                    ys.reverse()
                outs.append(torch.stack(ys))
                hs.append(h)
                cs.append(c)
            x = torch.cat(outs, 2) if self.bidirectional else outs[0]
            if self.training and self.dropout > 0.0 and not last:
                x = F.dropout(x, self.dropout, True)
        y = x.transpose(0, 1) if self.batch_first else x
        return y, (torch.stack(hs), torch.stack(cs))


class GRU(_Recurrent):
    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None):
        super().__init__(3, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype)

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        x = input.transpose(0, 1) if self.batch_first else input
        if hx is None:
            h0 = self.zeros(x)
        else:
            h0 = hx
        hs: List[Tensor] = []
        for last, runs in self.layers:
            outs: List[Tensor] = []
            for index, reverse, w_ih, w_hh, b_ih, b_hh in runs:
                xs = F.linear(x, getattr(self, w_ih), getattr(self, b_ih))
                h = h0[index]
                ys: List[Tensor] = []
                steps = x.size(0)
                for s in range(steps):
                    t = steps - 1 - s if reverse else s
                    xr, xz, xn = xs[t].chunk(3, 1)
                    hr, hz, hn = F.linear(h, getattr(self, w_hh), getattr(self, b_hh)).chunk(3, 1)
                    r = torch.sigmoid(xr + hr)
                    z = torch.sigmoid(xz + hz)
                    n = torch.tanh(xn + r * hn)
                    h = (h - n) * z + n
                    ys.append(h)
                if reverse:
                    ys.reverse()
                outs.append(torch.stack(ys))
                hs.append(h)
            x = torch.cat(outs, 2) if self.bidirectional else outs[0]
            if self.training and self.dropout > 0.0 and not last:
                x = F.dropout(x, self.dropout, True)
        y = x.transpose(0, 1) if self.batch_first else x
        return y, torch.stack(hs)


class RNN(_Recurrent):
    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity='tanh', bias=True, batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None):
        super().__init__(1, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        x = input.transpose(0, 1) if self.batch_first else input
        if hx is None:
            h0 = self.zeros(x)
        else:
            h0 = hx
        hs: List[Tensor] = []
        for last, runs in self.layers:
            outs: List[Tensor] = []
            for index, reverse, w_ih, w_hh, b_ih, b_hh in runs:
                xs = F.linear(x, getattr(self, w_ih), getattr(self, b_ih))
                h = h0[index]
                ys: List[Tensor] = []
                steps = x.size(0)
                for s in range(steps):
                    t = steps - 1 - s if reverse else s
                    a = xs[t] + F.linear(h, getattr(self, w_hh), getattr(self, b_hh))
                    h = torch.tanh(a) if self.nonlinearity == 'tanh' else torch.relu(a)
                    ys.append(h)
                if reverse:
                    ys.reverse()
                outs.append(torch.stack(ys))
                hs.append(h)
            x = torch.cat(outs, 2) if self.bidirectional else outs[0]
            if self.training and self.dropout > 0.0 and not last:
                x = F.dropout(x, self.dropout, True)
        y = x.transpose(0, 1) if self.batch_first else x
        return y, torch.stack(hs)


class NonDynamicallyQuantizableLinear(Linear):
    pass


class MultiheadAttention(Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None, batch_first=False, device=None, dtype=None):
        if embed_dim % num_heads != 0:
            raise ValueError('embed_dim must be divisible by num_heads')
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = float(dropout)
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        keys = embed_dim if kdim is None else kdim
        values = embed_dim if vdim is None else vdim
        self.separate = keys != embed_dim or values != embed_dim
        bound = math.sqrt(6.0 / (4 * embed_dim))
        self.q_proj_weight = None
        self.k_proj_weight = None
        self.v_proj_weight = None
        self.in_proj_weight = None
        if self.separate:
            self.q_proj_weight = _uniform(math.sqrt(6.0 / (embed_dim + embed_dim)), (embed_dim, embed_dim), dtype)
            self.k_proj_weight = _uniform(math.sqrt(6.0 / (embed_dim + keys)), (embed_dim, keys), dtype)
            self.v_proj_weight = _uniform(math.sqrt(6.0 / (embed_dim + values)), (embed_dim, values), dtype)
        else:
            self.in_proj_weight = _uniform(bound, (3 * embed_dim, embed_dim), dtype)
        self.in_proj_bias = _full(0.0, (3 * embed_dim,), dtype) if bias else None
        self.bias_k = _normal(1.0, (1, 1, embed_dim), dtype) if add_bias_kv else None
        self.bias_v = _normal(1.0, (1, 1, embed_dim), dtype) if add_bias_kv else None
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias)
        if bias:
            self.out_proj.bias = _full(0.0, (embed_dim,), dtype)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor] = None, need_weights: bool = True,
                attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True) -> Tuple[Tensor, Optional[Tensor]]:
        if self.batch_first:
            q = query.transpose(0, 1) if query.dim() == 3 else query
            k = key.transpose(0, 1) if key.dim() == 3 else key
            v = value.transpose(0, 1) if value.dim() == 3 else value
        else:
            q = query
            k = key
            v = value
        y, w = F.multi_head_attention_forward(
            q, k, v, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn,
            self.dropout, self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask, self.separate,
            self.q_proj_weight, self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights)
        if self.batch_first:
            y = y.transpose(0, 1) if query.dim() == 3 else y
        return y, w


class TransformerEncoderLayer(Module):
    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation='relu', layer_norm_eps=1e-5, batch_first=False, norm_first=False, device=None, dtype=None):
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first)
        self.linear1 = Linear(d_model, dim_feedforward)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = activation

    def attend(self, x: Tensor, mask: Optional[Tensor], padding: Optional[Tensor]) -> Tensor:
        y, w = self.self_attn(x, x, x, key_padding_mask=padding, need_weights=False, attn_mask=mask)
        return self.dropout1(y)

    def feed(self, x: Tensor) -> Tensor:
        y = self.linear1(x)
        y = F.gelu(y) if self.activation == 'gelu' else F.relu(y)
        return self.dropout2(self.linear2(self.dropout(y)))

    def forward(self, src: Tensor, src_mask: Optional[Tensor] = None, src_key_padding_mask: Optional[Tensor] = None) -> Tensor:
        x = src
        if self.norm_first:
            x = x + self.attend(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self.feed(x))


class _Loss(Module):
    def __init__(self, size_average=None, reduce=None, reduction='mean'):
        self.reduction = reduction


class L1Loss(_Loss):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class KLDivLoss(Module):
    def __init__(self, size_average=None, reduce=None, reduction='mean', log_target=False):
        self.reduction = reduction
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class SmoothL1Loss(Module):
    def __init__(self, size_average=None, reduce=None, reduction='mean', beta=1.0):
        self.reduction = reduction
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Module):
    def __init__(self, reduction='mean', delta=1.0):
        self.reduction = reduction
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class CrossEntropyLoss(Module):
    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', label_smoothing=0.0):
        self.register_buffer('weight', weight)
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction, label_smoothing=self.label_smoothing)


class NLLLoss(Module):
    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'):
        self.register_buffer('weight', weight)
        self.ignore_index = ignore_index
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class BCELoss(_Loss):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(input, target, reduction=self.reduction)
