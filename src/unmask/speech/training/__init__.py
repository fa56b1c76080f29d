"""Training of speaker encoders: networks by gradient descent, i-vectors by EM."""

from unmask.speech.training.card import export_onnx as export_onnx, read_card as read_card
from unmask.speech.training.fit import (
    Trained as Trained,
    train as train,
    training_seconds as training_seconds,
)
from unmask.speech.training.recipe import Recipe as Recipe, Status as Status
