import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    i = torch.tensor([0, 2])
    x[i] = 5.0
    x[i, 1] = x[1, 1]
    x[:, i] += 1.0
    y = x[1]
    y[torch.tensor([1, 3])] *= 2.0
    return x, y

# out.0 = [3, 4] [6.0, 6.0, 6.0, 5.0, 6.0, 12.0, 8.0, 16.0, 6.0, 6.0, 6.0, 5.0]
# out.1 = [4] [6.0, 12.0, 8.0, 16.0]
