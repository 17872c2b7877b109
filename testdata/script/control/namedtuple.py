import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


from typing import NamedTuple


class P(NamedTuple):
    a: int
    b: float = 2.5


def mk(k: int) -> P:
    return P(k, b=float(k) * 2.0)


def forward(k: int):
    p = mk(k)
    q = P(7)
    return p.a, p.b, q.b, q[0] + p[0]

# out.0 = [] [2.0]
# out.1 = [] [4.0]
# out.2 = [] [2.5]
# out.3 = [] [9.0]
