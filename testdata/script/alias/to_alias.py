import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    a = x.to(torch.float32)
    a[0] = 0.0
    b = x.float()
    b[1] = 0.0
    c = x.to(torch.float64)
    c[2] = 9.0
    return x, c

# out.0 = [3, 4] [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 9.0, 10.0, 11.0, 12.0]
# out.1 = [3, 4] [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0]
