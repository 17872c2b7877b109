import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    a = x.clone()
    b = x.clone()
    for i in range(n):
        t = a * 2.0
        a = t
        b = t
    return a, b

# out.0 = [3, 4] [8.0, 16.0, 24.0, 32.0, 40.0, 48.0, 56.0, 64.0, 72.0, 80.0, 88.0, 96.0]
# out.1 = [3, 4] [8.0, 16.0, 24.0, 32.0, 40.0, 48.0, 56.0, 64.0, 72.0, 80.0, 88.0, 96.0]
