import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def more(l: List[int], n: int) -> bool:
    l.append(len(l))
    return len(l) < n


def forward(n: int):
    l: List[int] = []
    c = 0
    while more(l, n + 2):
        c += l[-1]
    return l, c

# out.0 = [] [0.0]
# out.1 = [] [1.0]
# out.2 = [] [2.0]
# out.3 = [] [3.0]
# out.4 = [] [4.0]
# out.5 = [] [6.0]
