import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor):
    d = {'a': x.clone(), 'b': x * 2.0}
    d['a'] += 1.0
    d['b'][0] = 7.0
    d['a'].mul_(2.0)
    return d['a'], d['b']

# out.0 = [3, 4] [4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0, 26.0]
# out.1 = [3, 4] [7.0, 7.0, 7.0, 7.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0]
