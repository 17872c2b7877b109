import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    s = 0.0
    for k in (1, 2, 3):
        s += float(x[0, k]) * float(k)
    return s

# out.0 = [] [20.0]
