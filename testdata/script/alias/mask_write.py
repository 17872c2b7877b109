import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    x[x > 6.0] = 0.0
    v = x[1]
    v[v < 6.0] = -1.0
    x[:, 1:3][x[:, 1:3] == 0.0] = 3.0
    return x, v

# out.0 = [3, 4] [1.0, 2.0, 3.0, 4.0, -1.0, 6.0, -1.0, -1.0, 0.0, 3.0, 3.0, 0.0]
# out.1 = [4] [-1.0, 6.0, -1.0, -1.0]
