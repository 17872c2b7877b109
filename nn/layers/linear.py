"""Linear layers and embeddings."""
import math
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Identity(Module):
    def __init__(self, *args, **kwargs):
        pass

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


class NonDynamicallyQuantizableLinear(Linear):
    pass


class Bilinear(Module):
    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        bound = 1.0 / math.sqrt(in1_features)
        self.weight = _uniform(bound, (out_features, in1_features, in2_features), dtype)
        self.bias = _uniform(bound, (out_features,), dtype) if bias else None

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)


def _rows(num_embeddings, embedding_dim, padding_idx, given, dtype):
    """The weight of an embedding: normal, the row at padding_idx zero."""
    if given is not None:
        if list(given.shape) != [num_embeddings, embedding_dim]:
            raise ValueError('Shape of weight does not match num_embeddings and embedding_dim')
        return torch.nn.Parameter(given)
    return _normal(1.0, (num_embeddings, embedding_dim), dtype, padding_idx)


def _padding(padding_idx, num_embeddings):
    """padding_idx counted from the front."""
    if padding_idx is None:
        return None
    if padding_idx < -num_embeddings or padding_idx >= num_embeddings:
        raise ValueError('padding_idx must be within num_embeddings')
    return padding_idx + num_embeddings if padding_idx < 0 else padding_idx


def _limit(weight: Tensor, input: Tensor, max_norm: float, norm_type: float):
    """Scales the rows of weight that input names so that their norm is at most max_norm, in place."""
    with torch.no_grad():
        index = input.flatten()
        rows = weight.index_select(0, index)
        norms = rows.norm(norm_type, 1, True)
        weight.index_copy_(0, index, torch.where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows))


class Embedding(Module):
    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False, _weight=None, device=None, dtype=None):
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _padding(padding_idx, num_embeddings)
        self.max_norm = None if max_norm is None else float(max_norm)
        self.norm_type = float(norm_type)
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self.weight = _rows(num_embeddings, embedding_dim, self.padding_idx, _weight, dtype)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
        layer = cls(embeddings.shape[0], embeddings.shape[1], padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight=embeddings)
        layer.weight.requires_grad = not freeze
        return layer

    def forward(self, input: Tensor) -> Tensor:
        if self.max_norm is not None:
            _limit(self.weight, input, self.max_norm, self.norm_type)
        return F.embedding(input, self.weight, self.padding_idx, scale_grad_by_freq=self.scale_grad_by_freq)


class EmbeddingBag(Module):
    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode='mean', sparse=False, _weight=None, include_last_offset=False, padding_idx=None, device=None, dtype=None):
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = None if max_norm is None else float(max_norm)
        self.norm_type = float(norm_type)
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self.padding_idx = _padding(padding_idx, num_embeddings)
        self.weight = _rows(num_embeddings, embedding_dim, self.padding_idx, _weight, dtype)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode='mean', sparse=False, include_last_offset=False, padding_idx=None):
        layer = cls(embeddings.shape[0], embeddings.shape[1], max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx)
        layer.weight.requires_grad = not freeze
        return layer

    def forward(self, input: Tensor, offsets: Optional[Tensor] = None, per_sample_weights: Optional[Tensor] = None) -> Tensor:
        if self.max_norm is not None:
            _limit(self.weight, input, self.max_norm, self.norm_type)
        return F.embedding_bag(input, self.weight, offsets, None, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
                               per_sample_weights, self.include_last_offset, self.padding_idx)
