import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def forward(n: int):
    if n > 2:
        a = 1
    else:
        a = "x"
    return n

# out.0 = [] [3.0]
