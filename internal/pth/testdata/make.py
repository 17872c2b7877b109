"""Makes mixed.pth: run with PyTorch, in this folder."""
import torch

w = torch.arange(12.0).reshape(3, 4)
state = {
    "transposed": w.t(),
    "part": w[1:],
    "f16": w.half(),
    "bf16": w.bfloat16(),
    "f64": w.double() / 3,
    "ints": torch.arange(3),
    "flag": torch.tensor(True),
    "parameter": torch.nn.Parameter(w),
    "empty": torch.zeros(0, 3),
}
torch.save({"epoch": 3, "lr": 0.1, "state_dict": state}, "mixed.pth")
