import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(n: int):
    a = 0
    for i in range(n, -n, -2):
        a = a * 10 + i + 5
    b = 0
    for i in range(10, 0, -3):
        b += i
    for i in reversed(range(3)):
        b = b * 2 + i
    return a, b

# out.0 = [] [864.0]
# out.1 = [] [186.0]
