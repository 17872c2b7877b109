import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(k: int, n: int):
    a = 'x' if k > n else ('y' if k == 2 else 'z')
    return 1 if a == 'y' else 0, (k if k > n else n) * 2

# out.0 = [] [1.0]
# out.1 = [] [6.0]
