import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    y = x.clone()
    z = y[0]
    for i in range(n):
        for j in range(n):
            z += float(i * j)
            z = y[j]
        y[i] *= 2.0
    return y, z

# out.0 = [3, 4] [5.0, 7.0, 9.0, 11.0, 18.0, 20.0, 22.0, 24.0, 18.0, 20.0, 22.0, 24.0]
# out.1 = [4] [18.0, 20.0, 22.0, 24.0]
