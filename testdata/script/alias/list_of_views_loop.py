import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def forward(x: Tensor):
    y = x.clone()
    rows: List[Tensor] = []
    for i in range(3):
        rows.append(y[i])
    y.add_(1)
    rows[1].mul_(2)
    return torch.stack(rows), y

# out.0 = [3, 4] [2.0, 3.0, 4.0, 5.0, 12.0, 14.0, 16.0, 18.0, 10.0, 11.0, 12.0, 13.0]
# out.1 = [3, 4] [2.0, 3.0, 4.0, 5.0, 12.0, 14.0, 16.0, 18.0, 10.0, 11.0, 12.0, 13.0]
