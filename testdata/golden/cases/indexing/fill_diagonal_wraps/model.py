import torch
import math
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from typing import List, Tuple, Dict, Optional, NamedTuple, Any, Union


def forward(x: Tensor):
    return torch.zeros(7, 3).fill_diagonal_(4, wrap=True) + x.sum()
