import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def f(a: int, b: int, c: int = 0) -> int:
    return a * 100 + b * 10 + c


def forward():
    t = (1, 2)
    return f(*t), f(*t, c=3), f(*[4, 5, 6])

# out.0 = [] [120.0]
# out.1 = [] [123.0]
# out.2 = [] [456.0]
