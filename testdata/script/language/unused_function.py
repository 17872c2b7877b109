import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


@torch.jit.unused
def debug(x: Tensor) -> Tensor:
    return x.numpy()

def forward(x: Tensor, d: bool):
    if d:
        return debug(x)
    return x

# out.0 = [3, 4] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
