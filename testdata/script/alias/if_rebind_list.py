import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, d: bool):
    l = [1, 2, 3]
    m = l
    if d:
        m = [4]
    m.append(9)
    return len(l), len(m), l[3]

# out.0 = [] [4.0]
# out.1 = [] [4.0]
# out.2 = [] [9.0]
