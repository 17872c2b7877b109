import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(n: int):
    s = 'a%d-%s' % (n, 'z')
    t = 'x{}y{}'.format(n, 2.5)
    u = f'{n}:{n + 1}'
    k = 0
    if s == 'a3-z':
        k += 1
    if t == 'x3y2.5':
        k += 10
    if u == '3:4':
        k += 100
    if '3' in u and 'q' not in u:
        k += 1000
    return k, len(s), str(n) + 'p' == '3p'

# out.0 = [] [1111.0]
# out.1 = [] [4.0]
# out.2 = [] [1.0]
