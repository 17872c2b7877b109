import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    y = x.clone()
    for i in range(10):
        y[0] += 1.0
        if i == n:
            break
        if i % 2 == 1:
            continue
        y[1] *= 2.0
    return y

# out.0 = [3, 4] [5.0, 6.0, 7.0, 8.0, 20.0, 24.0, 28.0, 32.0, 9.0, 10.0, 11.0, 12.0]
