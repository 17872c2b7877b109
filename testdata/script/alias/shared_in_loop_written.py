import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    a = x.clone()
    b = x.clone()
    for i in range(n):
        a += 1.0
        t = a * 2.0
        a = t
        b = t
    b += 1.0
    return a, b

# error: 'a' and 'b' may share memory in some iterations of the loop at line 10, so the effect of this write cannot be tracked: write to a copy made with .clone()
