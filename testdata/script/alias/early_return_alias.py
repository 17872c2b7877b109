import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def f(x: Tensor, c: bool) -> Tensor:
    if c:
        return x
    return x * 1.0


def forward(x: Tensor, c: bool, d: bool):
    a = f(x, c)
    a += 1.0
    b = f(x, d)
    b += 10.0
    return x, a, b

# out.0 = [3, 4] [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0]
# out.1 = [3, 4] [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0]
# out.2 = [3, 4] [12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0]
