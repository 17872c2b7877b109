"""Layers that move elements, and distances."""
import math
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


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


class ChannelShuffle(Module):
    def __init__(self, groups):
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)


class Upsample(Module):
    def __init__(self, size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None):
        self.size = size
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor = [float(s) for s in scale_factor]
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, recompute_scale_factor=self.recompute_scale_factor)


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


class ReflectionPad3d(_ModePad):
    def __init__(self, padding):
        super().__init__(3, 'reflect', padding)


class ReplicationPad1d(_ModePad):
    def __init__(self, padding):
        super().__init__(1, 'replicate', padding)


class ReplicationPad2d(_ModePad):
    def __init__(self, padding):
        super().__init__(2, 'replicate', padding)


class ReplicationPad3d(_ModePad):
    def __init__(self, padding):
        super().__init__(3, 'replicate', padding)


class CosineSimilarity(Module):
    def __init__(self, dim=1, eps=1e-8):
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        self.norm = float(p)
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
