import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(n: int):
    l = [3, 1, 2]
    l.sort()
    m = sorted([5, 4, 6], reverse=True)
    l.extend(m)
    l.insert(1, 100)
    p = l.pop()
    q = l.pop(0)
    l.reverse()
    i = l.index(100)
    c = l.count(2)
    l.remove(2)
    del l[0]
    k = l + [7] * 2
    e: List[int] = []
    for v in k[1:]:
        e.append(v)
    e[-1] = 0
    s = 0
    for idx, v in enumerate(e, 1):
        s += idx * v
    return p, q, i, c, len(k), s, sum(k), 100 in k, k[::2][0], any([v > 50 for v in k]), all([v > 0 for v in e])

# out.0 = [] [4.0]
# out.1 = [] [1.0]
# out.2 = [] [4.0]
# out.3 = [] [1.0]
# out.4 = [] [5.0]
# out.5 = [] [224.0]
# out.6 = [] [123.0]
# out.7 = [] [1.0]
# out.8 = [] [6.0]
# out.9 = [] [1.0]
# out.10 = [] [0.0]
