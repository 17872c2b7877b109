import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def side(l: List[int], v: int, r: bool) -> bool:
    l.append(v)
    return r


def forward():
    l: List[int] = []
    a = side(l, 1, False) and side(l, 2, True)
    b = side(l, 3, True) or side(l, 4, True)
    c = not (side(l, 5, True) and side(l, 6, False))
    if side(l, 7, False) or (side(l, 8, True) and side(l, 9, True)):
        l.append(10)
    return l, a, b, c

# out.0 = [] [1.0]
# out.1 = [] [3.0]
# out.2 = [] [5.0]
# out.3 = [] [6.0]
# out.4 = [] [7.0]
# out.5 = [] [8.0]
# out.6 = [] [9.0]
# out.7 = [] [10.0]
# out.8 = [] [0.0]
# out.9 = [] [1.0]
# out.10 = [] [1.0]
