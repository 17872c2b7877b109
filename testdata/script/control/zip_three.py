import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    s = 0.0
    for i, (a, b) in enumerate(zip([1.0, 2.0, 3.0], [4.0, 5.0])):
        s += a * b * float(i + 1)
    for r, k in zip(x, [1.0, 10.0, 100.0]):
        s += float(r[0]) * k
    return s

# out.0 = [] [975.0]
