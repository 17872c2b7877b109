import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def f(a: Optional[int], b: Optional[int] = None) -> int:
    if a is None and b is None:
        return -1
    if a is None or b is None:
        c = a if a is not None else b
        assert c is not None
        return c
    return a * b


def forward():
    return f(None), f(3), f(None, 4), f(3, 4)

# out.0 = [] [-1.0]
# out.1 = [] [3.0]
# out.2 = [] [4.0]
# out.3 = [] [12.0]
