import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def f(x: Tensor, b: Optional[Tensor]) -> Tensor:
    if b is not None:
        b += 1.0
        x = x + b
    return x


def forward(x: Tensor, y: Tensor):
    a = f(x, None)
    c = f(x, y)
    return a, c, y

# out.0 = [3, 4] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
# out.1 = [3, 4] [2.0, 13.0, 24.0, 35.0, 6.0, 17.0, 28.0, 39.0, 10.0, 21.0, 32.0, 43.0]
# out.2 = [4] [1.0, 11.0, 21.0, 31.0]
