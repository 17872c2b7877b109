import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def forward(n: int):
    zero = n - 3
    return n ** 2, 7 // -2, -7 % 3, 1.0 / zero > 1e300, math.sqrt(float(zero)), math.gcd(12, 18), int("12"), math.modf(2.5), round(2.5)

# out.0 = [] [9.0]
# out.1 = [] [-4.0]
# out.2 = [] [2.0]
# out.3 = [] [1.0]
# out.4 = [] [0.0]
# out.5 = [] [6.0]
# out.6 = [] [12.0]
# out.7 = [] [0.5]
# out.8 = [] [2.0]
# out.9 = [] [2.0]
