import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, c: bool):
    l = [x]
    if c:
        l.append(x * 2.0)
    m = l
    m.append(x * 3.0)
    return len(l), l[1], m[2]

# out.0 = [] [3.0]
# out.1 = [3, 4] [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0]
# out.2 = [3, 4] [3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0, 24.0, 27.0, 30.0, 33.0, 36.0]
