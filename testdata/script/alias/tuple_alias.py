import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    t = (x, x[0], 3)
    a, b, k = t
    b += 1.0
    a[1] = 0.0
    return t[0], t[1], x

# out.0 = [3, 4] [2.0, 3.0, 4.0, 5.0, 0.0, 0.0, 0.0, 0.0, 9.0, 10.0, 11.0, 12.0]
# out.1 = [4] [2.0, 3.0, 4.0, 5.0]
# out.2 = [3, 4] [2.0, 3.0, 4.0, 5.0, 0.0, 0.0, 0.0, 0.0, 9.0, 10.0, 11.0, 12.0]
