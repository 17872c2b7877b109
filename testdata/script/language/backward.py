import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def forward(x: Tensor, n: int):
    w = torch.zeros(4).requires_grad_()
    for i in range(n):
        loss = ((x @ w - 1) ** 2).mean()
        loss.backward()
        g = w.grad
        assert g is not None
        with torch.no_grad():
            w.sub_(g * 0.001)
            g.zero_()
    return w.detach()

# out.0 = [4] [0.01821, 0.02242, 0.02664, 0.03085]
