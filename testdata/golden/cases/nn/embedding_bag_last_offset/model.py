import torch
import math
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from typing import List, Tuple, Dict, Optional, NamedTuple, Any, Union


def forward(w: Tensor, j: Tensor, o: Tensor):
    return F.embedding_bag(j, w, o, mode="mean", include_last_offset=True)
