import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def forward(x: Tensor, n: int):
    groups: Dict[str, List[Tensor]] = {}
    groups["a"] = []
    for i in range(n):
        groups["a"].append(x[i])
    return torch.stack(groups["a"])

# out.0 = [3, 4] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
