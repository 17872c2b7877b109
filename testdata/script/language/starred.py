import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def forward(n: int):
    first, *rest = (n, 2, 3)
    a, *b, c = (1, *rest, 9)
    return first, rest, a, b, c

# out.0 = [] [3.0]
# out.1 = [] [2.0]
# out.2 = [] [3.0]
# out.3 = [] [1.0]
# out.4 = [] [2.0]
# out.5 = [] [3.0]
# out.6 = [] [9.0]
