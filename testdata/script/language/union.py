import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def size(v: Union[int, Tensor, List[int]]) -> int:
    if isinstance(v, int):
        return v
    elif isinstance(v, Tensor):
        return v.numel()
    else:
        return len(v)

def forward(x: Tensor, n: int):
    v: Union[int, Tensor] = n
    if n > 2:
        v = x
    if isinstance(v, Tensor):
        n += v.size(0)
    return size(n), size(x), size([1, 2]), n

# out.0 = [] [6.0]
# out.1 = [] [12.0]
# out.2 = [] [2.0]
# out.3 = [] [6.0]
