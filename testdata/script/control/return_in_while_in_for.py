import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def f(x: Tensor, lim: float) -> Tuple[Tensor, int]:
    c = 0
    for i in range(3):
        s = 0.0
        while s < lim:
            s += float(x[i, 0])
            c += 1
            if c > 6:
                return x[i] * s, c
        x = x + s
    return x[0], -c


def forward(x: Tensor):
    return f(x, 3.0), f(x, 100.0)

# out.0 = [4] [32.0, 33.0, 34.0, 35.0]
# out.1 = [] [-5.0]
# out.2 = [4] [7.0, 14.0, 21.0, 28.0]
# out.3 = [] [7.0]
