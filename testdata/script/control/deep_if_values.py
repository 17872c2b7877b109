import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, c: bool, d: bool):
    if c:
        if d:
            y = x
            k = 1
        else:
            y = x + 1.0
            k = 2
        z = y * 2.0
    else:
        z = x
        k = 3
    return z, k

# out.0 = [3, 4] [4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0, 26.0]
# out.1 = [] [2.0]
