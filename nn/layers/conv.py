"""Convolutions."""
import math
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


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
        self.transposed = transposed
        if padding_mode not in ('zeros', 'reflect', 'replicate', 'circular'):
            raise ValueError('padding_mode must be zeros, reflect, replicate or circular')
        if transposed and padding_mode != 'zeros':
            raise ValueError('Only "zeros" padding mode is supported for a transposed convolution')
        if padding == 'same' and any(s != 1 for s in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
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

    def extra(self, input: Tensor, output_size: Optional[List[int]]) -> List[int]:
        """The output_padding that gives output_size."""
        if output_size is None:
            return list(self.output_padding)
        dims = len(self.kernel_size)
        if len(output_size) == dims + 2 or len(output_size) == input.dim():
            output_size = output_size[len(output_size) - dims:]
        if len(output_size) != dims:
            raise ValueError('output_size has the wrong number of elements')
        out: List[int] = []
        for d in range(dims):
            least = (input.size(input.dim() - dims + d) - 1) * self.stride[d] - 2 * self.padding[d] + self.dilation[d] * (self.kernel_size[d] - 1) + 1
            if output_size[d] < least or output_size[d] > least + self.stride[d] - 1:
                raise ValueError('requested an output size that this convolution cannot give')
            out.append(output_size[d] - least)
        return out


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

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        return F.conv_transpose1d(input, self.weight, self.bias, self.stride, self.padding, self.extra(input, output_size), self.groups, self.dilation)


class ConvTranspose2d(_Conv):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None):
        super().__init__(2, True, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, output_padding, dtype)

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        return F.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding, self.extra(input, output_size), self.groups, self.dilation)


class ConvTranspose3d(_Conv):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None):
        super().__init__(3, True, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, output_padding, dtype)

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        return F.conv_transpose3d(input, self.weight, self.bias, self.stride, self.padding, self.extra(input, output_size), self.groups, self.dilation)


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
