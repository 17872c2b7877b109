import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    a = x[0]
    b = x[1]
    c = x[2]
    for i in range(n):
        a, b, c = c, a, b
        a += 1.0
        b *= 2.0
    return x, a, b, c

# out.0 = [3, 4] [3.0, 5.0, 7.0, 9.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0, 26.0]
# out.1 = [4] [3.0, 5.0, 7.0, 9.0]
# out.2 = [4] [12.0, 14.0, 16.0, 18.0]
# out.3 = [4] [20.0, 22.0, 24.0, 26.0]
