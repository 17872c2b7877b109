import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    l = [1, 2]
    m = l
    m += [3]
    l[0] += 10
    return len(l), m[0]

# out.0 = [] [3.0]
# out.1 = [] [11.0]
