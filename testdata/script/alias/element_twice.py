import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def forward(x: Tensor, n: int):
    xs = [x]
    for i in range(n):
        xs.append(xs[-1])
        xs.append(xs[-1] * 2)
    return torch.stack(xs).sum(0)

# out.0 = [3, 4] [22.0, 44.0, 66.0, 88.0, 110.0, 132.0, 154.0, 176.0, 198.0, 220.0, 242.0, 264.0]
