import torch
import math
from enum import Enum
from torch import Tensor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union


def forward(n: int):
    words: List[int] = []
    vocab: Dict[str, int] = {}
    for part in " The quick,the  slow ".lower().replace(",", " ").split():
        if part not in vocab:
            vocab[part] = len(vocab)
        words.append(vocab[part])
    code = 0
    for ch in "ab" + str(n):
        code = code * 2 + ord(ch)
    text = "{}={}".format("n", n) + f"/{n}" + "%d" % n
    return words, code, len(text), text[-1] == "3", text.find("/"), "x".join(["a", "b"]) == "axb"

# out.0 = [] [0.0]
# out.1 = [] [1.0]
# out.2 = [] [0.0]
# out.3 = [] [2.0]
# out.4 = [] [635.0]
# out.5 = [] [6.0]
# out.6 = [] [1.0]
# out.7 = [] [3.0]
# out.8 = [] [1.0]
