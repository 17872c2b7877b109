import torch
import math
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from typing import List, Tuple, Dict, Optional, NamedTuple, Any, Union


def forward(x: Tensor, r: Tensor):
    return F.fractional_max_pool2d(x, (2, 3), output_size=(3, 2), return_indices=True, _random_samples=r)
