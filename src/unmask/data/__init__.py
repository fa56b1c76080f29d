"""Data that travel with the package, computed by it from open speech; provenance beside them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path


def demo_scores() -> AbstractContextManager[Path]:
    """Path of the demo's scores: three encoders on 108,000 trials of 60 AudioMNIST speakers."""
    return resources.as_file(resources.files("unmask.data").joinpath("demo", "audiomnist.parquet"))


def librispeech_readers() -> AbstractContextManager[Path]:
    """Path of CAM++ embeddings of 253 LibriSpeech readers, unprotected, three seconds each, with
    columns gender and subset: ``test-other`` has up to ten utterances of each of 10 of them,
    ``train-clean-100`` one utterance of each of 243, in up to three pieces.
    """
    place = resources.files("unmask.data").joinpath("librispeech", "campplus.npz")
    return resources.as_file(place)
