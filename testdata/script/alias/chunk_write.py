import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    a, b = x.chunk(2, 1)
    a += 1.0
    b.mul_(2.0)
    p = x.split(1)
    p[2].zero_()
    for r in x.unbind(0):
        r[0] = -5.0
    return x, a, b, p[0]

# out.0 = [3, 4] [-5.0, 3.0, 6.0, 8.0, -5.0, 7.0, 14.0, 16.0, -5.0, 0.0, 0.0, 0.0]
# out.1 = [3, 2] [-5.0, 3.0, -5.0, 7.0, -5.0, 0.0]
# out.2 = [3, 2] [6.0, 8.0, 14.0, 16.0, 0.0, 0.0]
# out.3 = [1, 4] [-5.0, 3.0, 6.0, 8.0]
