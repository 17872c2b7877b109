import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    x[:, 1:] += x[:, :-1]
    x[0] = x[1] + x[0]
    x[1:] = x[:-1]
    return x

# out.0 = [3, 4] [6.0, 14.0, 18.0, 22.0, 6.0, 14.0, 18.0, 22.0, 5.0, 11.0, 13.0, 15.0]
