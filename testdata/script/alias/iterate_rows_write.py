import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    for r in x:
        r[1] = 0.0
    return x

# out.0 = [3, 4] [1.0, 0.0, 3.0, 4.0, 5.0, 0.0, 7.0, 8.0, 9.0, 0.0, 11.0, 12.0]
