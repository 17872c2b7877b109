import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    t = (1, 2.5, x)
    a, (b, c) = 1, (2, 3)
    u = t[:2] + (7,)
    p, q = (a, b), c
    return t[0] + u[2], t[-1], p, q, len(u), u[1]

# out.0 = [] [8.0]
# out.1 = [3, 4] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
# out.2 = [] [1.0]
# out.3 = [] [2.0]
# out.4 = [] [3.0]
# out.5 = [] [3.0]
# out.6 = [] [2.5]
