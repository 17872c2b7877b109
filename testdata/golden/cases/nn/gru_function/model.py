import torch
import math
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from typing import List, Tuple, Dict, Optional, NamedTuple, Any, Union


def forward(x: Tensor, h: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor):
    return torch.gru(x, h, [a, b, c, d], True, 1, 0.0, False, False, True)
