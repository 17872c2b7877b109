import torch
import math
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from typing import List, Tuple, Dict, Optional, NamedTuple, Any, Union


def forward(x: Tensor):
    y = x.clone()
    w = y[None].expand(2, 3, 4)
    w.mul_(2)
    return y
