import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def f(k: int) -> str:
    if k == 0:
        return 'zero'
    elif k == 1:
        s = 'one'
    elif k == 2:
        s = 'two'
    else:
        return 'many'
    return s + '!'


def forward(k: int):
    a = 0
    for i in range(5):
        s = f(i)
        if s == 'one!' or s == 'two!':
            a += i * 10
        elif s == 'many' and i > 3:
            a += 1000
    return a, f(k) == 'two!'

# out.0 = [] [1030.0]
# out.1 = [] [1.0]
