"""Dropout."""
import math
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


class _Dropout(Module):
    def __init__(self, p=0.5, inplace=False):
        if p < 0 or p > 1:
            raise ValueError('dropout probability has to be between 0 and 1')
        self.p = float(p)
        self.inplace = inplace


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


class FeatureAlphaDropout(_Dropout):
    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
