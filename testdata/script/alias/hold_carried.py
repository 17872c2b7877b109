import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    h = torch.zeros(4)
    outs: List[Tensor] = []
    for i in range(n):
        h += x[i]
        h = h * 2.0
        outs.append(h)
    return torch.stack(outs)

# error: an element of this list shares memory with a tensor that was modified in place after it was stored; store a copy instead: write .clone() where it is added
