"""Exports five models of PyTorch with inputs and the outputs of PyTorch, each also with one weight changed.

    python3 exported.py FOLDER        (in a Python that has torch and openvino)
"""

import sys
from pathlib import Path

import numpy as np
import openvino as ov
import torch
from torch import nn

N = 32
torch.manual_seed(1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(N, 3 * N), nn.Linear(N, N)

    def forward(self, x):
        q, k, v = self.qkv(x).view(x.shape[0], -1, 3, 4, N // 4).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(N, N, 2, batch_first=True), nn.Linear(N, 5)

    def forward(self, x):
        return self.out(self.lstm(x)[0])


class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.block = nn.Embedding(50, N), nn.TransformerEncoderLayer(N, 4, 64, batch_first=True, norm_first=True)

    def forward(self, ids):
        return self.block(self.table(ids))


conv = lambda a, b, stride: nn.Sequential(nn.Conv2d(a, b, 3, stride, 1), nn.BatchNorm2d(b), nn.SiLU())
MODELS = {
    "convolutions": (nn.Sequential(conv(3, 8, 2), conv(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)), torch.randn(2, 3, 32, 32)),
    "upsampling": (nn.Sequential(conv(3, 8, 1), nn.Upsample(scale_factor=2, mode="bilinear"), nn.ConvTranspose2d(8, 4, 4, 2, 1), nn.GroupNorm(2, 4), nn.GELU()), torch.randn(1, 3, 12, 12)),
    "attention": (Attention(), torch.randn(2, 9, N)),
    "recurrent": (Recurrent(), torch.randn(2, 7, N)),
    "embedded": (Embedded(), torch.randint(0, 50, (2, 11))),
}


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name, (model, example) in MODELS.items():
        model.eval()
        with torch.no_grad():
            np.savez(folder / f"{name}.inputs.npz", example.numpy())
            np.savez(folder / f"{name}.outputs.npz", model(example).numpy())
            for kind in ("", "_changed"):
                if kind:
                    weights = [it for it in model.parameters() if it.dim() > 1]
                    weights[len(weights) // 2] *= 1.5
                ov.save_model(ov.convert_model(model, example_input=example), folder / f"{name}{kind}.xml", compress_to_fp16=False)


if __name__ == "__main__":
    main()
