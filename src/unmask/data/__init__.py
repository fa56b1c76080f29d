"""Data that travel with the package, computed by it from open speech; provenance beside them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path


def demo_scores() -> AbstractContextManager[Path]:
    """Path of the demo's scores: three encoders on 108,000 trials of 60 AudioMNIST speakers."""
    return resources.as_file(resources.files("unmask.data").joinpath("demo", "audiomnist.parquet"))
