import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def forward(x: Tensor, n: int):
    rows: List[Tensor] = []
    h = x[0]
    for i in range(n):
        h = h * 2
        rows.append(h)
    h += 1
    return torch.stack(rows)

# error: store a copy instead
