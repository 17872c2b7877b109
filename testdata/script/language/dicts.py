import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def forward(n: int):
    d = {3: 1, 1: 2}
    d[0] = n
    last, value = d.popitem()
    other = d.pop(9, 7)
    pairs = dict([(1, 2.5), (2, 3.5)])
    order = [k for k in d]
    return last, value, other, order, pairs[2], d.setdefault(5, 50), len(d)

# out.0 = [] [3.0]
# out.1 = [] [1.0]
# out.2 = [] [7.0]
# out.3 = [] [1.0]
# out.4 = [] [0.0]
# out.5 = [] [3.5]
# out.6 = [] [50.0]
# out.7 = [] [3.0]
