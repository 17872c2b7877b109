import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(k: int, n: int):
    a = -7 // k
    b = -7 % n
    c = 7 & 3 | 8
    d = 1 << 4 >> 1
    e = ~5
    f = 2 ** n
    g = abs(-3) + min(k, n, 1) + max([4, 9, 2])
    h = int(3.9) + int(-3.9) + round(2.5)
    i = divmod(17, 5)
    j = 5 if k > n else 6
    return a, b, c, d, e, f, g, h, i, j, 7 / 2, float(k) ** 0.5, not k, k == 2 and n == 3

# out.0 = [] [-4.0]
# out.1 = [] [2.0]
# out.2 = [] [11.0]
# out.3 = [] [8.0]
# out.4 = [] [-6.0]
# out.5 = [] [8.0]
# out.6 = [] [13.0]
# out.7 = [] [2.0]
# out.8 = [] [3.0]
# out.9 = [] [2.0]
# out.10 = [] [6.0]
# out.11 = [] [3.5]
# out.12 = [] [1.4142135623730951]
# out.13 = [] [0.0]
# out.14 = [] [1.0]
