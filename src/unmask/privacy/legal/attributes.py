"""Inference: how well a simple probe reads an attribute from protected voices (spec, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval
from unmask.privacy.legal.conversations import source_name
from unmask.privacy.legal.curve import SCORE, Resampling, risk_interval
from unmask.privacy.legal.inputs import refuse_zeros
from unmask.privacy.legal.probe import cross_validated, speaker_folds
from unmask.trials import Embeddings, Ids


@dataclass(frozen=True, eq=False)
class Inference:
    """Accuracy of a probe for one attribute on protected speech.

    ``chance`` is the share of the majority class. ``unprotected`` is the accuracy of the same probe
    on unprotected speech (NaN where none was given). ``balanced`` averages over classes.
    ``per_speaker`` holds each speaker's share of correct predictions.
    """

    attribute: str
    classes: tuple[str, ...]
    value: float
    low: float
    high: float
    chance: float
    balanced: float
    balanced_low: float
    balanced_high: float
    unprotected: float
    unprotected_low: float
    unprotected_high: float
    majority: str
    per_speaker: FloatArray
    speakers: pl.Series
    attacks: int
    folds: int
    resampling: Resampling
    lone: tuple[str, ...] = ()

    @property
    def residual(self) -> float:
        """(accuracy − majority)/(1 − majority)."""
        return (self.value - self.chance) / (1 - self.chance)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What stands against reading the accuracy as it is."""
        lines = []
        if not self.low > self.chance:
            control = f"on unprotected speech it reaches {100 * self.unprotected:.0f} %"
            if not self.unprotected_low > self.chance:
                control = "with no control that succeeds this is uninformative"
            lines.append(
                f"inference of {self.attribute}: the probe is no better than the majority class"
                f" ({self.majority}); {control}"
            )
        if np.isnan(self.unprotected):
            lines.append(
                f"inference of {self.attribute}: no unprotected speech was given, so the probe's"
                " strength is not known"
            )
        elif not self.unprotected_low > self.chance:
            lines.append(
                f"inference of {self.attribute}: the probe is no better than the majority class on"
                " unprotected speech either: too weak to be believed"
            )
        if self.lone:
            lines.append(
                f"inference of {self.attribute}: classes of one speaker cannot be learnt from"
                f" others: {', '.join(self.lone)}"
            )
        return tuple(lines)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Accuracy on protected and, where given, on unprotected speech."""
        found = [
            self._estimate("inference", self.value, (self.low, self.high)),
            self._estimate(
                "inference_balanced", self.balanced, (self.balanced_low, self.balanced_high)
            ),
        ]
        if not np.isnan(self.unprotected):
            limits = (self.unprotected_low, self.unprotected_high)
            found.append(self._estimate("inference_unprotected", self.unprotected, limits))
        return tuple(found)

    def _estimate(self, metric: str, value: float, limits: tuple[float, float] | None) -> Estimate:
        how = self.resampling
        return Estimate(
            metric,
            value,
            "%",
            None if limits is None else Interval(*limits, how.level, SCORE, 0, how.seed),
            1 / len(self.classes) if metric == "inference_balanced" else self.chance,
            {"attacks": self.attacks, "speakers": len(self.speakers)},
            {"attribute": self.attribute, "folds": self.folds},
        )


def inference(
    protected: Embeddings,
    attribute: str,
    *,
    unprotected: Embeddings | None = None,
    bands: Sequence[float] = (),
    folds: int = 5,
    penalty: float = 1.0,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> Inference:
    """Accuracy of a logistic-regression probe that predicts ``attribute`` from single utterances.

    Speakers are disjoint between training and test (``folds``-fold cross-validation over speakers).
    ``bands`` cuts a column of numbers at these values (age bands). Chance is the majority class.
    """
    fold_seed = np.random.SeedSequence(seed)
    how = Resampling(level, replicates, seed)
    attack = _Attack.run(protected, attribute, bands, folds, penalty, fold_seed)
    low, high = attack.interval(how)
    balanced, (balanced_low, balanced_high) = attack.balanced, attack.balanced_interval(how)
    bare, bare_low, bare_high = np.nan, np.nan, np.nan
    if unprotected is not None:
        control = _Attack.run(unprotected, attribute, bands, folds, penalty, fold_seed)
        bare, (bare_low, bare_high) = control.accuracy, control.interval(how)
    shares = attack.class_sizes / attack.class_sizes.sum()
    return Inference(
        attribute=attribute,
        classes=attack.classes,
        value=attack.accuracy,
        low=low,
        high=high,
        chance=float(shares.max()),
        balanced=balanced,
        balanced_low=balanced_low,
        balanced_high=balanced_high,
        unprotected=bare,
        unprotected_low=bare_low,
        unprotected_high=bare_high,
        majority=attack.classes[int(shares.argmax())],
        per_speaker=attack.hits / attack.sizes,
        speakers=attack.speakers,
        attacks=int(attack.sizes.sum()),
        folds=folds,
        resampling=how,
        lone=attack.lone,
    )


@dataclass(frozen=True, eq=False)
class _Attack:
    """Correct predictions by speaker and by class."""

    classes: tuple[str, ...]
    hits: FloatArray
    sizes: FloatArray
    class_hits: FloatArray
    class_sizes: FloatArray
    apart: FloatArray
    speakers: pl.Series
    lone: tuple[str, ...]

    @classmethod
    def run(
        cls,
        embeddings: Embeddings,
        attribute: str,
        bands: Sequence[float],
        folds: int,
        penalty: float,
        seed: np.random.SeedSequence,
    ) -> _Attack:
        refuse_zeros(embeddings, "probe")
        column = _column(embeddings, attribute, bands)
        used = column.used
        classes = tuple(str(name) for name in column.names.gather(used))
        labels = np.searchsorted(used, column.codes)
        if len(classes) < 2:
            raise InputError(f"{attribute}: expected at least 2 values, found {len(classes)}")
        codes = embeddings.speakers.codes
        present, owner = np.unique(codes, return_inverse=True)
        if not 2 <= folds <= len(present):
            raise InputError(
                f"folds: expected 2 to the {len(present)} speakers there are, found {folds}"
            )
        vectors = np.asarray(embeddings.vectors, dtype=np.float64)
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        fold = speaker_folds(codes, labels, folds, np.random.default_rng(seed))
        predicted = cross_validated(vectors, labels, len(classes), fold, penalty=penalty)
        right = (predicted == labels).astype(np.float64)
        class_hits = np.bincount(labels, right, len(classes))
        class_sizes = np.bincount(labels, minlength=len(classes))
        shares = (right - (class_hits / class_sizes)[labels]) / class_sizes[labels]
        pairs = np.unique(np.column_stack([labels, owner]), axis=0)
        lone = np.bincount(pairs[:, 0], minlength=len(classes)) == 1
        return cls(
            classes,
            np.asarray(np.bincount(owner, weights=right), dtype=np.float64),
            np.bincount(owner).astype(np.float64),
            np.asarray(class_hits, dtype=np.float64),
            class_sizes.astype(np.float64),
            np.asarray(np.bincount(owner, weights=shares) / len(classes), dtype=np.float64),
            embeddings.speakers.names.gather(present),
            tuple(name for name, alone in zip(classes, lone, strict=True) if alone),
        )

    @property
    def balanced(self) -> float:
        return float((self.class_hits / self.class_sizes).mean())

    def balanced_interval(self, how: Resampling) -> tuple[float, float]:
        """Score interval of the mean over classes, ``apart`` what each speaker adds to it beyond
        its classes' means.
        """
        return _interval(self.balanced, self.apart, how)

    @property
    def accuracy(self) -> float:
        return float(self.hits.sum() / self.sizes.sum())

    def interval(self, how: Resampling) -> tuple[float, float]:
        """Score interval over speakers: the accuracy is a ratio of sums over them, its variance
        that of their deviations from it.
        """
        apart = (self.hits - self.accuracy * self.sizes) / self.sizes.sum()
        return _interval(self.accuracy, apart, how)


def _interval(value: float, apart: FloatArray, how: Resampling) -> tuple[float, float]:
    """Score interval of a number to which each speaker adds ``apart`` beyond its expectation."""
    count = len(apart)
    if count < 2:
        return np.nan, np.nan
    variance = count / (count - 1) * float((apart**2).sum())
    low, high = risk_interval(np.array([value]), np.array([variance]), count, how)
    return float(low[0]), float(high[0])


def _column(embeddings: Embeddings, attribute: str, bands: Sequence[float]) -> Ids:
    """The attribute of every utterance, cut into bands where asked for."""
    if attribute not in embeddings.columns:
        known = ", ".join(embeddings.columns) or "none"
        raise InputError(f"{source_name(embeddings)}: expected a column {attribute}, found {known}")
    column = embeddings.columns[attribute]
    if not len(bands):
        return column
    cuts = sorted(float(cut) for cut in bands)
    numbers = column.names.cast(pl.Float64, strict=False)
    unclear = numbers.is_null() | numbers.is_nan()
    if unclear.any():
        raise InputError(
            f"{attribute}: expected numbers to cut into bands, found {int(unclear.sum())} other"
            f" values (first: {column.names.filter(unclear)[0]})"
        )
    names = [
        f"below {cuts[0]:g}",
        *(f"{low:g} to below {high:g}" for low, high in pairwise(cuts)),
        f"{cuts[-1]:g} and above",
    ]
    band = np.searchsorted(cuts, numbers.to_numpy(), side="right")
    return Ids(band[column.codes].astype(np.int32), pl.Series(names, dtype=pl.String))
