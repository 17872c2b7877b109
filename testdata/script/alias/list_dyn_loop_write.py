import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    bufs: List[Tensor] = []
    for i in range(n):
        bufs.append(torch.zeros(2))
    for i in range(n):
        bufs[i] += float(i)
        bufs[i][0] = 9.0
    return bufs

# out.0 = [2] [9.0, 0.0]
# out.1 = [2] [9.0, 1.0]
# out.2 = [2] [9.0, 2.0]
