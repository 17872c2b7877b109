import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def row(t: Tensor, i: int) -> Tensor:
    return t[i]


def forward(x: Tensor, k: int):
    r = row(x, k)
    r += 100.0
    row(x, 0).zero_()
    return x, r

# out.0 = [3, 4] [0.0, 0.0, 0.0, 0.0, 5.0, 6.0, 7.0, 8.0, 109.0, 110.0, 111.0, 112.0]
# out.1 = [4] [109.0, 110.0, 111.0, 112.0]
