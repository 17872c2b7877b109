import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(n: int):
    found = -1
    i = 0
    while i < 10 and found < 0:
        j = 0
        while j < 10:
            if i * j == n * 4:
                found = i * 100 + j
                break
            j += 1
        i += 1
    return found, i

# out.0 = [] [206.0]
# out.1 = [] [3.0]
