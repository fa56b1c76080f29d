"""Training of speaker encoders: networks by gradient descent, i-vectors by EM."""

from unmask.speech.training.card import read_card
from unmask.speech.training.export import export_onnx
from unmask.speech.training.fit import Trained, train, training_seconds
from unmask.speech.training.recipe import Recipe
from unmask.speech.training.status import Status

__all__ = ["Recipe", "Status", "Trained", "export_onnx", "read_card", "train", "training_seconds"]
