import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def f(t: Tensor, l: List[Tensor]) -> Tensor:
    l.append(t)
    t += 1.0
    return t


def forward(x: Tensor):
    l: List[Tensor] = []
    y = f(x, l)
    z = f(x[0], l)
    y[2] = 0.0
    return x, y, z, l[0], l[1]

# out.0 = [3, 4] [3.0, 4.0, 5.0, 6.0, 6.0, 7.0, 8.0, 9.0, 0.0, 0.0, 0.0, 0.0]
# out.1 = [3, 4] [3.0, 4.0, 5.0, 6.0, 6.0, 7.0, 8.0, 9.0, 0.0, 0.0, 0.0, 0.0]
# out.2 = [4] [3.0, 4.0, 5.0, 6.0]
# out.3 = [3, 4] [3.0, 4.0, 5.0, 6.0, 6.0, 7.0, 8.0, 9.0, 0.0, 0.0, 0.0, 0.0]
# out.4 = [4] [3.0, 4.0, 5.0, 6.0]
