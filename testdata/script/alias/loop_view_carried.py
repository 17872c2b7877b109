import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    r = x[0]
    for i in range(n):
        r += 1.0
        r = x[i]
    r += 100.0
    return x, r

# out.0 = [3, 4] [3.0, 4.0, 5.0, 6.0, 6.0, 7.0, 8.0, 9.0, 109.0, 110.0, 111.0, 112.0]
# out.1 = [4] [109.0, 110.0, 111.0, 112.0]
