import torch
import math
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from typing import List, Tuple, Dict, Optional, NamedTuple, Any, Union


def forward(x: Tensor):
    y = x.clone()
    w = y[1:].as_strided([2], [2])
    w.mul_(3)
    return y, w
