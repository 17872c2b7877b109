import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    a: List[Tuple[int, Tensor]] = []
    for i in range(n):
        a.append((i, x[i] * 2.0))
    t = torch.zeros(4)
    for i, v in a:
        t = t + v * float(i)
    return t, len(a)

# out.0 = [4] [46.0, 52.0, 58.0, 64.0]
# out.1 = [] [3.0]
