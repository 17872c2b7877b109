import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    a = x.reshape(4, 3)
    a[0] = 0.0
    b = x.t().reshape(-1)
    b += 50.0
    c = x[:, :2].reshape(-1)
    c += 7.0
    d = x.flatten()
    d[11] = -1.0
    e = x[1:].reshape(-1)
    e[0] = 77.0
    return x, a, b, c, d, e

# out.0 = [3, 4] [0.0, 0.0, 0.0, 4.0, 77.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, -1.0]
# out.1 = [4, 3] [0.0, 0.0, 0.0, 4.0, 77.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, -1.0]
# out.2 = [12] [50.0, 55.0, 59.0, 50.0, 56.0, 60.0, 50.0, 57.0, 61.0, 54.0, 58.0, 62.0]
# out.3 = [6] [7.0, 7.0, 12.0, 13.0, 16.0, 17.0]
# out.4 = [12] [0.0, 0.0, 0.0, 4.0, 77.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, -1.0]
# out.5 = [8] [77.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, -1.0]
