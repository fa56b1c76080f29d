"""A trained network as ONNX, for other programs and for machines without torch."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unmask.errors import InputError
from unmask.run import atomic_path
from unmask.speech.audio import needed
from unmask.speech.training.card import recipe_of

_FRAMES = 203
"""Frames of the example that is followed through the network; any other number works."""


def export_onnx(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    """Write the network in ``folder``, an encoder of :func:`~unmask.speech.train`, to ``path``.

    The model takes mean-normalised Kaldi filterbanks (batch, frames, bins) of samples in [−1, 1],
    and says so in its metadata (``unmask_scale``); ``load_encoder`` reads it. An i-vector extractor
    is no network and is refused.
    """
    needed("torch", "torch", "train")
    needed("onnx", "onnx", "train")
    needed("onnxscript", "onnxscript", "train")
    import torch

    from unmask.speech.encoders.trained import TrainedEncoder

    recipe = recipe_of(Path(folder))
    if recipe.network == "ivector":
        raise InputError(
            f"{folder}: expected a network, found an i-vector extractor: no ONNX of it"
        )
    encoder = TrainedEncoder(Path(folder))
    example = torch.zeros(2, _FRAMES, recipe.bins)
    with _quiet(), torch.inference_mode():
        program = torch.onnx.export(
            encoder.network,
            (example,),
            input_names=["features"],
            output_names=["vector"],
            dynamic_shapes=({0: torch.export.Dim("batch"), 1: torch.export.Dim("frames", min=8)},),
            dynamo=True,
            verbose=False,
        )
    program.model.metadata_props["unmask_scale"] = "1"
    program.model.metadata_props["unmask_network"] = recipe.network
    final = Path(path)
    with atomic_path(final) as temporary:
        program.save(str(temporary), external_data=False)
    return final


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter's remarks about itself are for its developers."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)
