"""Normalisation."""
import math
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


class _Norm(Module):
    def __init__(self, num_features, eps, momentum, affine, track_running_stats, dtype):
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.weight = _full(1.0, (num_features,), dtype) if affine else None
        self.bias = _full(0.0, (num_features,), dtype) if affine else None
        if track_running_stats:
            self.register_buffer('running_mean', torch.zeros(num_features, dtype=dtype))
            self.register_buffer('running_var', torch.ones(num_features, dtype=dtype))
            self.register_buffer('num_batches_tracked', torch.tensor(0, dtype=torch.long))
        else:
            self.register_buffer('running_mean', None)
            self.register_buffer('running_var', None)
            self.register_buffer('num_batches_tracked', None)


class _BatchNorm(_Norm):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def normalise(self, input: Tensor) -> Tensor:
        if not self.track_running_stats:
            return F.batch_norm(input, None, None, self.weight, self.bias, True, 0.1 if self.momentum is None else self.momentum, self.eps)
        if self.training:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                # the cumulative average: what is new weighs 1/n
                share = 1.0 / self.num_batches_tracked
                mean = self.running_mean.clone()
                var = self.running_var.clone()
                y = F.batch_norm(input, mean, var, self.weight, self.bias, True, 1.0, self.eps)
                self.running_mean.add_((mean - self.running_mean) * share)
                self.running_var.add_((var - self.running_var) * share)
                return y
        return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, self.training, 0.0 if self.momentum is None else self.momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError('expected 2D or 3D input (got {}D input)'.format(input.dim()))
        return self.normalise(input)


class BatchNorm2d(_BatchNorm):
    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError('expected 4D input (got {}D input)'.format(input.dim()))
        return self.normalise(input)


class BatchNorm3d(_BatchNorm):
    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 5:
            raise ValueError('expected 5D input (got {}D input)'.format(input.dim()))
        return self.normalise(input)


class SyncBatchNorm(_BatchNorm):
    """On one machine, a BatchNorm of any number of dimensions."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return self.normalise(input)


class _InstanceNorm(_Norm):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def normalise(self, input: Tensor) -> Tensor:
        if self.track_running_stats:
            return F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias, self.training, 0.0 if self.momentum is None else self.momentum, self.eps)
        return F.instance_norm(input, None, None, self.weight, self.bias, True, 0.0 if self.momentum is None else self.momentum, self.eps)


class InstanceNorm1d(_InstanceNorm):
    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError('expected 2D or 3D input (got {}D input)'.format(input.dim()))
        if input.dim() == 2:
            return self.normalise(input.unsqueeze(0)).squeeze(0)
        return self.normalise(input)


class InstanceNorm2d(_InstanceNorm):
    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 3 and input.dim() != 4:
            raise ValueError('expected 3D or 4D input (got {}D input)'.format(input.dim()))
        if input.dim() == 3:
            return self.normalise(input.unsqueeze(0)).squeeze(0)
        return self.normalise(input)


class InstanceNorm3d(_InstanceNorm):
    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4 and input.dim() != 5:
            raise ValueError('expected 4D or 5D input (got {}D input)'.format(input.dim()))
        if input.dim() == 4:
            return self.normalise(input.unsqueeze(0)).squeeze(0)
        return self.normalise(input)


class LayerNorm(Module):
    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, device=None, dtype=None):
        self.normalized_shape = _ntuple(normalized_shape, 1)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight = _full(1.0, self.normalized_shape, dtype) if elementwise_affine else None
        self.bias = _full(0.0, self.normalized_shape, dtype) if elementwise_affine else None

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class GroupNorm(Module):
    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None):
        if num_channels % num_groups != 0:
            raise ValueError('num_channels must be divisible by num_groups')
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
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


class CrossMapLRN2d(LocalResponseNorm):
    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__(size, alpha, beta, float(k))
