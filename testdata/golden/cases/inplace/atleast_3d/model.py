import torch
import math
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from typing import List, Tuple, Dict, Optional, NamedTuple, Any, Union


def forward(x: Tensor):
    y = x.clone()
    w = torch.atleast_3d(y)
    w[0] = 5
    y.mul_(2)
    return y, w
