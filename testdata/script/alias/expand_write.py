import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(y: Tensor):
    z = y.clone()
    e = z.expand(3, 4)
    e[1, 2] = 5.0
    e[0, 1:3] = 8.0
    return z, e

# out.0 = [4] [0.0, 8.0, 8.0, 30.0]
# out.1 = [3, 4] [0.0, 8.0, 8.0, 30.0, 0.0, 8.0, 8.0, 30.0, 0.0, 8.0, 8.0, 30.0]
