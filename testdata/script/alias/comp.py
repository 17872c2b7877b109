import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    l = [x[i] for i in range(n)]
    l[0] += 1.0
    q = [i * i for i in range(n)]
    r = [v + 1 for v in q if v > 0]
    return x, l[0], q[2], len(r), r[0]

# error: an element of this list or dict shares memory with a tensor that is used elsewhere, so the effect of this write cannot be tracked; store a copy instead: write .clone() where it is added
