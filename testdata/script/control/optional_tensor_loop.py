import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    prev: Optional[Tensor] = None
    acc = torch.zeros(4)
    for i in range(n):
        if prev is not None:
            acc = acc + x[i] * prev
        prev = x[i]
    if prev is None:
        return acc
    return acc + prev

# out.0 = [4] [59.0, 82.0, 109.0, 140.0]
