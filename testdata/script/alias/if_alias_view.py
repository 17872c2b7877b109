import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, c: bool, d: bool):
    if c:
        y = x[0]
    else:
        y = x[1]
    y.mul_(10.0)
    if d:
        z = x[:, 1]
    else:
        z = x[:, 2].clone()
    z.add_(100.0)
    x[0, 0] = -1.0
    return x, y, z

# out.0 = [3, 4] [-1.0, 20.0, 30.0, 40.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
# out.1 = [4] [-1.0, 20.0, 30.0, 40.0]
# out.2 = [3] [130.0, 107.0, 111.0]
