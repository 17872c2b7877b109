import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    v = x.view(3, 2, 2).permute(2, 0, 1)
    v[0] += 100.0
    v[1, 2] = -1.0
    w = x.unsqueeze(0).transpose(0, 1).squeeze(1)
    w[0, 0] = 42.0
    return x, v, w

# out.0 = [3, 4] [42.0, 2.0, 103.0, 4.0, 105.0, 6.0, 107.0, 8.0, 109.0, -1.0, 111.0, -1.0]
# out.1 = [2, 3, 2] [42.0, 103.0, 105.0, 107.0, 109.0, 111.0, 2.0, 4.0, 6.0, 8.0, -1.0, -1.0]
# out.2 = [3, 4] [42.0, 2.0, 103.0, 4.0, 105.0, 6.0, 107.0, 8.0, 109.0, -1.0, 111.0, -1.0]
