import torch
import math
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from typing import List, Tuple, Dict, Optional, NamedTuple, Any, Union


def forward(x: Tensor):
    return F.logsigmoid(x), F.smooth_l1_loss(x, x * 0), F.huber_loss(x, x * 0), x.pow(0)
