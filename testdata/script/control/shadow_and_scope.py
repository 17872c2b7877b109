import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def g(x: int, y: int = 5) -> int:
    x += y
    return x


def forward(k: int):
    x = 1
    y = g(x)
    z = g(x, y=k)
    w = g(y=1, x=10)
    return x, y, z, w

# out.0 = [] [1.0]
# out.1 = [] [6.0]
# out.2 = [] [3.0]
# out.3 = [] [11.0]
