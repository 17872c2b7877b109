import torch
import math
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from typing import List, Tuple, Dict, Optional, NamedTuple, Any, Union


def forward(x: Tensor):
    y = x.clone()
    a = torch.broadcast_tensors(y, torch.ones(4))[0]
    a.mul_(2)
    y.add_(1)
    return y, a
