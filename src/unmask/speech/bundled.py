"""The bundled case study: 60 voices, original and protected, through two encoders."""

from __future__ import annotations

import io
import json
from importlib import resources
from typing import Any

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.trials import Embeddings

ENCODERS = ("campplus", "resemblyzer")
CONDITIONS = ("original", "b2", "b2r", "b2r-again", "b2w", "b2w-again", "pooling", "pooling-again")


def case_study(encoder: str = "campplus") -> dict[str, Embeddings]:
    """Embeddings of an ``encoder`` (campplus or resemblyzer) by condition: ``original``, ``b2``,
    two runs of ``b2r``, ``b2w`` and ``pooling``.

    1,200 utterances of 60 AudioMNIST speakers, in the same order in every condition, with the
    columns gender, age, accent and room. Second runs (``-again``) have other keys; ``b2`` has none.
    :func:`case_study_provenance` tells how they were made.
    """
    if encoder not in ENCODERS:
        raise InputError(f"case study: expected {' or '.join(ENCODERS)}, found {encoder}")
    arrays, people = _arrays(f"{encoder}.npz"), _people()
    return {name: _voices(arrays[name], people) for name in CONDITIONS}


def trained_case_study() -> dict[str, Embeddings]:
    """Embeddings of a CAM++ that was trained on speech protected with B2w, by condition:
    ``original``, the attacked run ``b2w``, and ``b2w-again``, the attacker's own.

    400 utterances of the 20 AudioMNIST speakers that it was not trained on, the same recordings as
    in :func:`case_study`; docs/case-study.md tells how it was trained.
    """
    arrays = _arrays("trained.npz")
    people = _people()[arrays["rows"]]
    return {name: _voices(arrays[name], people) for name in ("original", "b2w", "b2w-again")}


def case_study_provenance() -> dict[str, Any]:
    """Source, licence, tool version, seeds and hashes."""
    return dict(json.loads(_content("provenance.json")))


def _content(name: str) -> bytes:
    return resources.files("unmask.data").joinpath("case_study", name).read_bytes()


def case_study_subset() -> dict[str, Embeddings]:
    """CAM++ embeddings of the first utterances of every speaker, of all safeguards that make audio:
    those of :func:`case_study`, and ``b1`` (two runs) and ``pitch``.

    Fewer than the case study has, the same in every condition: those whose utility was measured.
    """
    whole, arrays, people = case_study(), _arrays("subset.npz"), _people()
    each = len(arrays["b1"]) // whole["original"].n_speakers
    first = people.select(pl.int_range(pl.len()).over("speaker") < each).to_series()
    some = {n: one.select(first.to_numpy()) for n, one in whole.items() if n[:4] != "pool"}
    return some | {name: _voices(vectors, people.filter(first)) for name, vectors in arrays.items()}


def _people() -> pl.DataFrame:
    return pl.read_csv(io.BytesIO(_content("people.csv")), infer_schema=False)


def _arrays(name: str) -> dict[str, Any]:
    with np.load(io.BytesIO(_content(name)), allow_pickle=False) as arrays:
        return dict(arrays)


def _voices(vectors: Any, people: pl.DataFrame) -> Embeddings:
    return Embeddings(
        vectors.astype(np.float32),
        people["speaker"],
        people["utterance"],
        columns={name: people[name] for name in ("gender", "age", "accent", "room")},
    )
