import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    d = x[:, :3].diagonal()
    d += 100.0
    return x, d

# out.0 = [3, 4] [101.0, 2.0, 3.0, 4.0, 5.0, 106.0, 7.0, 8.0, 9.0, 10.0, 111.0, 12.0]
# out.1 = [3] [101.0, 106.0, 111.0]
