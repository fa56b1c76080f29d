"""A sweep told by a file: which attackers hold which embeddings, and what to compute."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unmask.errors import InputError
from unmask.privacy.legal.attackers import METRICS, Attacker, legal_sweep, with_backends
from unmask.privacy.legal.backends import NAMES
from unmask.privacy.legal.counts import Progress
from unmask.privacy.legal.sweep import LegalSweep
from unmask.privacy.legal.variants import VARIANTS
from unmask.run import Where
from unmask.trials import Embeddings, read_embeddings


class AttackerFiles(BaseModel):
    """Embeddings of one attacker: npz, parquet, Kaldi or HDF5 files; the rest as in
    :class:`unmask.Attacker`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    enrol: str
    test: str
    train: str | None = None
    enrols: Literal["original", "protected"] | None = None
    knows: Literal["original", "related", "same"] | None = None
    consistency: bool | None = None


class LegalConfig(BaseModel):
    """The same options as :func:`unmask.legal_sweep`, with files for the attackers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    attackers: dict[str, AttackerFiles] = Field(min_length=1)
    speakers: str | None = None
    backends: list[str] = ["cosine"]
    counts: list[int] | None = None
    lengths: list[int] | None = None
    metrics: list[str] = list(METRICS)
    original: str | None = None
    asked: str | None = None
    attributes: dict[str, list[float]] = Field(default_factory=dict)
    variants: list[str] = list(VARIANTS)
    linkability_enrol: int | Literal["all"] | None = None
    singling_out_enrol: int | Literal["all"] | None = None
    one_minus_eer_enrol: int | Literal["all"] | None = None
    swap: bool = False
    linkability_draws: int | None = None
    folds: int = 10
    draws: int = 5
    max_enrol: int = 495
    side: list[str] = Field(default_factory=list)
    allow_shared_utterances: bool = False
    level: float = 0.95
    replicates: int = 1000
    seed: int = 0


def read_legal_config(path: str | Path) -> LegalConfig:
    """Read a TOML file; paths in it are relative to the file."""
    place = Path(path)
    try:
        values = tomllib.loads(place.read_text(encoding="utf-8"))
        config = LegalConfig.model_validate(values)
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{place}: expected TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{place}: {where}: {first['msg']}") from None

    def beside(name: str | None) -> str | None:
        return None if name is None else str(place.parent / name)

    files = {
        name: a.model_copy(
            update={"enrol": beside(a.enrol), "test": beside(a.test), "train": beside(a.train)}
        )
        for name, a in config.attackers.items()
    }
    return config.model_copy(update={"attackers": files})


def legal_from_config(
    config: LegalConfig,
    *,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> LegalSweep:
    """Read the embeddings, each file once, and run the sweep."""
    Where(on, workers, state)
    for name in config.backends:
        if name not in NAMES:
            raise InputError(f"back-end: expected {', '.join(NAMES)}, found {name}")
    read: dict[str, Embeddings] = {}

    def load(path: str) -> Embeddings:
        if path not in read:
            read[path] = read_embeddings(path, speakers=config.speakers)
        return read[path]

    attackers = {
        name: Attacker(
            load(files.enrol),
            load(files.test),
            train=None if files.train is None else load(files.train),
            enrols=files.enrols,
            knows=files.knows,
            consistency=files.consistency,
        )
        for name, files in config.attackers.items()
    }
    _refuse_untrained(attackers, config.backends)
    chosen = with_backends(attackers, config.backends)
    return legal_sweep(
        chosen,
        original=_spelled(config.original, chosen),
        asked=_spelled(config.asked, chosen),
        **config.model_dump(exclude={"attackers", "speakers", "backends", "original", "asked"}),
        on=on,
        workers=workers,
        state=state,
        progress=progress,
    )


def _refuse_untrained(attackers: dict[str, Attacker], backends: list[str]) -> None:
    """A back-end that nobody can train was asked for in vain."""
    wanted = [name for name in backends if name != "cosine"]
    if wanted and all(attacker.train is None for attacker in attackers.values()):
        raise InputError(
            f"back-end {', '.join(wanted)}: expected training embeddings of an attacker, found none"
        )


def _spelled(name: str | None, attackers: dict[str, Attacker]) -> str | None:
    """A name given without its back-end stands for the first with it."""
    if name is None or name in attackers:
        return name
    return next((label for label in attackers if label.startswith(f"{name} (")), name)
