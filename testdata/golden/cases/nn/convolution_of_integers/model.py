import torch
import math
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from typing import List, Tuple, Dict, Optional, NamedTuple, Any, Union


def forward(x: Tensor, w: Tensor):
    return F.conv2d(x, w, padding=1), F.conv_transpose2d(x, w)
