import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def f(l: List[int], n: int) -> None:
    if n > 2:
        l.append(1)
        return
    l.append(0)


def forward():
    l: List[int] = []
    f(l, 1)
    f(l, 5)
    return l

# out.0 = [] [0.0]
# out.1 = [] [1.0]
