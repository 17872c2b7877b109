import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(x: Tensor, n: int):
    d: Dict[str, List[int]] = {'a': [1], 'b': [2]}
    d['a'].append(5)
    d['b'] = d['a'] + [9]
    for i in range(n):
        d['a'].append(i)
    return len(d['a']), len(d['b']), d['a'][-1]

# out.0 = [] [5.0]
# out.1 = [] [3.0]
# out.2 = [] [2.0]
