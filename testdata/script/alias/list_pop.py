import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    l = [x[0], x[1], x[2]]
    a = l.pop()
    a += 1.0
    b = l.pop(0)
    b += 10.0
    l.insert(0, a)
    l[0][0] = 0.0
    return x, len(l), l[0]

# error: an element of this list or dict shares memory with a tensor that is used elsewhere, so the effect of this write cannot be tracked; store a copy instead: write .clone() where it is added
