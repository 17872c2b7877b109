import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def scale(x, n, k=2):
    # type: (Tensor, int, int) -> Tensor
    return x * n + k

def forward(x: Tensor, n: int):
    seen: List[int] = []
    for i in range(n):
        seen.append(i)
    return scale(x[0], n), seen

# out.0 = [4] [5.0, 8.0, 11.0, 14.0]
# out.1 = [] [0.0]
# out.2 = [] [1.0]
# out.3 = [] [2.0]
