import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    best = None
    arg = -1
    for i in range(n):
        v = float(x[i, 0])
        if best is None or v > best:
            best = v
            arg = i
    assert best is not None
    return best, arg

# out.0 = [] [9.0]
# out.1 = [] [2.0]
