import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    a = (x > 3.0).sum()
    n = 0
    if x[0, 0] > 0.0 and not x[0, 1] > 100.0:
        n += 1
    while x.sum() > 10.0:
        x = x * 0.5
        n += 1
    return n, int(a)

# out.0 = [] [4.0]
# out.1 = [] [9.0]
