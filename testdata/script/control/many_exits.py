import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def f(a: int) -> int:
    t = 0
    for i in range(6):
        if i == a:
            continue
        if i > 3:
            if a % 2 == 0:
                t += 100
                break
            else:
                if a == 5:
                    return t
        t += i
        if t > 8:
            return -t
    t += 1000
    return t


def forward():
    return f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)

# out.0 = [] [1106.0]
# out.1 = [] [-9.0]
# out.2 = [] [1104.0]
# out.3 = [] [-12.0]
# out.4 = [] [1106.0]
# out.5 = [] [6.0]
# out.6 = [] [1106.0]
# out.7 = [] [-10.0]
