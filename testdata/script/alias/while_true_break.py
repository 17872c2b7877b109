import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    i = 0
    s = 0
    while True:
        i += 1
        if i > 20:
            break
        if i % 3 == 0:
            continue
        s += i
    return i, s

# out.0 = [] [21.0]
# out.1 = [] [147.0]
