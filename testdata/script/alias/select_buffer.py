import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    a = x.clone()
    b = x * 10.0
    cur = a
    for i in range(n):
        if i % 2 == 0:
            cur = a
        else:
            cur = b
        cur += float(i)
    return a, b, cur

# out.0 = [3, 4] [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0]
# out.1 = [3, 4] [11.0, 21.0, 31.0, 41.0, 51.0, 61.0, 71.0, 81.0, 91.0, 101.0, 111.0, 121.0]
# out.2 = [3, 4] [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0]
