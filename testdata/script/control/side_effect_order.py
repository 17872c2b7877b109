import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def bump(x: Tensor, v: float) -> Tensor:
    x += v
    return x * 1.0


def forward(x: Tensor):
    y = bump(x, 1.0) + bump(x, 10.0) * 2.0
    z = [bump(x, 1.0), x * 1.0]
    return x, y, z

# out.0 = [3, 4] [13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0, 24.0]
# out.1 = [3, 4] [26.0, 29.0, 32.0, 35.0, 38.0, 41.0, 44.0, 47.0, 50.0, 53.0, 56.0, 59.0]
# out.2 = [3, 4] [13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0, 24.0]
# out.3 = [3, 4] [13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0, 24.0]
