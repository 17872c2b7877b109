import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    a = [1, 2]
    l = [a, a]
    a.append(3)
    l[1].append(4)
    return len(l[0]), l[0][3], len(a)

# out.0 = [] [4.0]
# out.1 = [] [4.0]
# out.2 = [] [4.0]
