import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    l: List[List[int]] = []
    for i in range(n):
        row: List[int] = []
        for j in range(i + 1):
            row.append(j)
        l.append(row)
    s = 0
    for r in l:
        for v in r:
            s += v
    l[1][0] = 50
    return s, l[1][0], len(l)

# out.0 = [] [4.0]
# out.1 = [] [50.0]
# out.2 = [] [3.0]
