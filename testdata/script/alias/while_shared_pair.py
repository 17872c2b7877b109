import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    a = x.clone()
    b = a
    for i in range(n):
        a += 1.0
        b = b * 1.0
        b[0] = 0.0
    return a, b

# out.0 = [3, 4] [4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
# out.1 = [3, 4] [0.0, 0.0, 0.0, 0.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0]
