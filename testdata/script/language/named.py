import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


class Color(Enum):
    RED = 1
    GREEN = 2

class Point(NamedTuple):
    at: Tensor
    weight: int

def forward(x: Tensor, n: int):
    points: List[Point] = []
    for i in range(n):
        points.append(Point(x[i], i))
    total = x[0] * 0
    for p in points:
        total = total + p.at * p.weight
    color = Color.RED
    if n > 2:
        color = Color.GREEN
    return total, color.value, color == Color.GREEN

# out.0 = [4] [23.0, 26.0, 29.0, 32.0]
# out.1 = [] [2.0]
# out.2 = [] [1.0]
