import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def f(x: Tensor, n: int) -> Tensor:
    y = x.clone()
    for i in range(4):
        for j in range(4):
            y[i % 3, j] += 1.0
            if i * 4 + j > n * 2:
                return y[i % 3]
            if j > i:
                break
    return y


def forward(x: Tensor, n: int, z: int):
    a = f(x, n)
    b = f(x, 100)
    return a, b

# out.0 = [4] [10.0, 10.0, 11.0, 12.0]
# out.1 = [3, 4] [3.0, 4.0, 4.0, 5.0, 6.0, 7.0, 8.0, 8.0, 10.0, 11.0, 12.0, 13.0]
