import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    a = x.clone()
    d = {'a': a}
    a.add_(1.0)
    return d['a'].clone()

# out.0 = [3, 4] [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0]
