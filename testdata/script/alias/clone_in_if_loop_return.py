import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def f(x: Tensor, n: int) -> Tensor:
    best = x[0]
    for i in range(n):
        if float(x[i].sum()) > float(best.sum()):
            best = x[i]
        best += 1.0
    return best


def forward(x: Tensor, n: int):
    b = f(x, n)
    b *= 0.0
    return x, b

# out.0 = [3, 4] [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 0.0, 0.0, 0.0, 0.0]
# out.1 = [4] [0.0, 0.0, 0.0, 0.0]
