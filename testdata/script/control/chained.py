import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(k: int, n: int):
    return 1 < k < n, k < n < 3, 0 <= k <= 2 <= n, k != n != 3

# out.0 = [] [1.0]
# out.1 = [] [0.0]
# out.2 = [] [1.0]
# out.3 = [] [0.0]
