import torch
import torch.nn.functional as F
from torch import Tensor
from typing import Dict, List, Optional, Tuple


def forward(n: int):
    d: Dict[str, int] = {}
    for i in range(n):
        d['k' + str(i)] = i * i
    d['k1'] += 5
    e = {'a': 1, 'b': 2}
    e.update({'c': 3})
    t = 0
    for k in e:
        t += e[k]
    for k, v in d.items():
        t += v * len(k)
    x = d.pop('k0')
    g = d.get('zz', -4)
    del e['a']
    return t, x, g, len(d), len(e), 'k2' in d, 'q' in d, sum(list(e.values()))

# out.0 = [] [26.0]
# out.1 = [] [0.0]
# out.2 = [] [-4.0]
# out.3 = [] [2.0]
# out.4 = [] [2.0]
# out.5 = [] [1.0]
# out.6 = [] [0.0]
# out.7 = [] [5.0]
