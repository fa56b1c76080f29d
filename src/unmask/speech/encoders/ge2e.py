"""The GE2E encoder (Wan et al., 2018): a recurrent network over windows of a mel spectrogram.

Module names follow the tensor names of the published Resemblyzer weights.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class GE2E(nn.Module):
    """Mel spectrograms (batch, 160 frames, 40 bands) to unit vectors (batch, 256)."""

    def __init__(self, bands: int = 40, width: int = 256, layers: int = 3) -> None:
        super().__init__()
        self.lstm = nn.LSTM(bands, width, layers, batch_first=True)
        self.linear = nn.Linear(width, width)

    def forward(self, mels: Tensor) -> Tensor:
        _, (hidden, _) = self.lstm(mels)
        return functional.normalize(functional.relu(self.linear(hidden[-1])), dim=1)
