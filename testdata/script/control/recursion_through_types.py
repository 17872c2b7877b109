import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    l = [(i, float(i) * 0.5) for i in range(n)]
    s = 0.0
    for i, f in l:
        s += f * float(i)
    a, b = l[1]
    return s, a, b

# out.0 = [] [2.5]
# out.1 = [] [1.0]
# out.2 = [] [0.5]
