import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def forward(c: bool, n: int):
    return c + n

# error: convert the bool with int()
