import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def forward(n: int):
    table: List[List[int]] = []
    for i in range(n):
        row = [0]
        table.append(row)
        row.append(i)
    return table

# out.0 = [] [0.0]
# out.1 = [] [0.0]
# out.2 = [] [0.0]
# out.3 = [] [1.0]
# out.4 = [] [0.0]
# out.5 = [] [2.0]
