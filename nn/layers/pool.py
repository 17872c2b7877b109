"""Pooling."""
import math
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


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


class _MaxUnpool(Module):
    def __init__(self, kernel_size, stride=None, padding=0):
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding


class MaxUnpool1d(_MaxUnpool):
    def forward(self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpool):
    def forward(self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpool):
    def forward(self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


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


class _LPPool(Module):
    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        self.norm_type = float(norm_type)
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode


class LPPool1d(_LPPool):
    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPool):
    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class _Adaptive(Module):
    def __init__(self, dims, output_size):
        self.output_size = output_size
        self.dims = dims
        self.wanted = [-1 if s is None else s for s in _ntuple(output_size, dims)]

    def sizes(self, input: Tensor) -> List[int]:
        """The output size; -1 (None) stands for the input's own."""
        return [input.size(input.dim() - self.dims + d) if self.wanted[d] < 0 else self.wanted[d] for d in range(self.dims)]


class AdaptiveAvgPool1d(_Adaptive):
    def __init__(self, output_size):
        super().__init__(1, output_size)

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.sizes(input))


class AdaptiveAvgPool2d(_Adaptive):
    def __init__(self, output_size):
        super().__init__(2, output_size)

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.sizes(input))


class AdaptiveAvgPool3d(_Adaptive):
    def __init__(self, output_size):
        super().__init__(3, output_size)

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.sizes(input))


class _AdaptiveMax(_Adaptive):
    def __init__(self, dims, output_size, return_indices):
        super().__init__(dims, output_size)
        self.return_indices = return_indices


class AdaptiveMaxPool1d(_AdaptiveMax):
    def __init__(self, output_size, return_indices=False):
        super().__init__(1, output_size, return_indices)

    def forward(self, input: Tensor):
        if self.return_indices:
            return F.adaptive_max_pool1d_with_indices(input, self.sizes(input))
        return F.adaptive_max_pool1d(input, self.sizes(input))


class AdaptiveMaxPool2d(_AdaptiveMax):
    def __init__(self, output_size, return_indices=False):
        super().__init__(2, output_size, return_indices)

    def forward(self, input: Tensor):
        if self.return_indices:
            return F.adaptive_max_pool2d_with_indices(input, self.sizes(input))
        return F.adaptive_max_pool2d(input, self.sizes(input))


class AdaptiveMaxPool3d(_AdaptiveMax):
    def __init__(self, output_size, return_indices=False):
        super().__init__(3, output_size, return_indices)

    def forward(self, input: Tensor):
        if self.return_indices:
            return F.adaptive_max_pool3d_with_indices(input, self.sizes(input))
        return F.adaptive_max_pool3d(input, self.sizes(input))
