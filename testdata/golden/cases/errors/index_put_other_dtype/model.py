import torch
import math
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from typing import List, Tuple, Dict, Optional, NamedTuple, Any, Union


def forward(x: Tensor, i: Tensor):
    y = x.clone()
    y[i] = torch.ones(4, dtype=torch.float64)
    return y
