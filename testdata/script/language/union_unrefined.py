import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def grow(v: Union[int, str]) -> int:
    return v + 1

def forward(n: int):
    return grow(n)

# error: unsupported operand types for +
