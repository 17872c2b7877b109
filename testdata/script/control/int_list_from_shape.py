import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    s = x.shape
    n = 1
    for d in s:
        n *= d
    a, b = x.shape
    return n, a * 100 + b, s[-1], len(s), x.size()[0], list(s)

# out.0 = [] [12.0]
# out.1 = [] [304.0]
# out.2 = [] [4.0]
# out.3 = [] [2.0]
# out.4 = [] [3.0]
# out.5 = [] [3.0]
# out.6 = [] [4.0]
