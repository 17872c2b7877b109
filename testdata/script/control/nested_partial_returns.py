import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def f(a: int, b: int) -> int:
    if a > 0:
        if b > 0:
            return 1
        y = 2
    else:
        if b > 5:
            return 3
        y = 4
    if b == -1:
        return y * 10
    return y


def forward():
    return f(1, 1), f(1, 0), f(1, -1), f(0, 6), f(0, 0), f(0, -1)

# out.0 = [] [1.0]
# out.1 = [] [2.0]
# out.2 = [] [20.0]
# out.3 = [] [3.0]
# out.4 = [] [4.0]
# out.5 = [] [40.0]
