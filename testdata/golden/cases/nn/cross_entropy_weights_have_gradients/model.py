import torch
import math
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from typing import List, Tuple, Dict, Optional, NamedTuple, Any, Union


def forward(x: Tensor, t: Tensor, w: Tensor, i: Tensor):
    return F.cross_entropy(x, t.softmax(1), w), F.cross_entropy(x, i, w, label_smoothing=0.3)
