"""A refinement loop that stops as soon as it is sure: the number of steps depends on the data."""
import torch
from torch import Tensor


def forward(x: Tensor, w: Tensor, threshold: float = 0.25):
    h = x
    steps = 0
    for i in range(20):
        h = torch.tanh(h @ w) + 0.5 * h
        steps += 1
        confidence = torch.softmax(h, 1).max(1)[0].mean()
        if confidence > threshold:
            break
    return torch.log_softmax(h, 1), steps
