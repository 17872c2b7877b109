import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    cur = x.clone()
    nxt = torch.zeros_like(x)
    i = 0
    while i < n:
        nxt.copy_(cur * 2.0)
        nxt[0, 0] = float(i)
        cur, nxt = nxt, cur
        i += 1
    return cur, nxt

# out.0 = [3, 4] [2.0, 16.0, 24.0, 32.0, 40.0, 48.0, 56.0, 64.0, 72.0, 80.0, 88.0, 96.0]
# out.1 = [3, 4] [1.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0, 32.0, 36.0, 40.0, 44.0, 48.0]
