import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    y = x.clone()
    for i in range(n):
        v = y[i]
        y = y + 1.0
        v += 100.0
        y[0] += v
    return y, x

# out.0 = [3, 4] [322.0, 326.0, 330.0, 334.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
# out.1 = [3, 4] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
