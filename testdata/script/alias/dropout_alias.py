import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, c: bool):
    y = F.dropout(x, 0.5, False)
    y[0] = 0.0
    z = F.relu(x, inplace=True)
    z -= 3.0
    return x, y, z

# out.0 = [3, 4] [-3.0, -3.0, -3.0, -3.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
# out.1 = [3, 4] [-3.0, -3.0, -3.0, -3.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
# out.2 = [3, 4] [-3.0, -3.0, -3.0, -3.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
