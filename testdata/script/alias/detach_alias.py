import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    d = x[0].detach()
    d += 1.0
    with torch.no_grad():
        x[1] *= 2.0
    return x, d

# out.0 = [3, 4] [2.0, 3.0, 4.0, 5.0, 10.0, 12.0, 14.0, 16.0, 9.0, 10.0, 11.0, 12.0]
# out.1 = [4] [2.0, 3.0, 4.0, 5.0]
