"""Speaker encoders: recordings to vectors."""

from unmask.speech.encoders.loading import fingerprint_of, runs_code
from unmask.speech.encoders.weights import WEIGHTS, install, installed, weights_path

__all__ = [
    "WEIGHTS",
    "fingerprint_of",
    "install",
    "installed",
    "runs_code",
    "weights_path",
]
