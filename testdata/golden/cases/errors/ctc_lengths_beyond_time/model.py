import torch
import math
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from typing import List, Tuple, Dict, Optional, NamedTuple, Any, Union


def forward(x: Tensor, t: Tensor):
    return F.ctc_loss(x.log_softmax(2), t, torch.tensor([7, 6]), torch.tensor([3, 2]))
