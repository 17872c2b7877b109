import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def f(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        r = x[i]
        if float(r[0]) > 4.0:
            return r
    return x[0]


def forward(x: Tensor, n: int):
    a = f(x, n)
    a += 1.0
    return x, a

# error: '$r0.r' may be a view of other memory in some iterations of the loop at line 8, so the effect of this write cannot be tracked: write to a copy made with .clone()
