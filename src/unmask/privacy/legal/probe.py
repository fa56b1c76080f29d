"""Inference: how well a simple probe reads an attribute from protected voices (spec, section 4).

The probe is a multinomial logistic regression with an L2 penalty; its folds split speakers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import FloatArray, IntArray, Sampling, Tabular
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Notice
from unmask.privacy.legal.conversations import refuse_zeros
from unmask.privacy.legal.curve import SCORE, risk_interval
from unmask.privacy.recordings import column_of, rows_by_content
from unmask.trials import Embeddings, Ids

_STOP = {"maxiter": 200, "ftol": 1e-6, "gtol": 1e-4}
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Inference(Tabular):
    """Accuracy of a probe for one attribute on protected speech.

    Made by :func:`attribute_inference`. ``chance`` is the share of the majority class.
    ``unprotected`` is the accuracy of the same probe on unprotected speech (NaN where none was
    given). ``balanced`` averages over classes. ``per_speaker`` holds each speaker's share of
    correct predictions.
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
    resampling: Sampling
    lone: tuple[str, ...] = ()

    @property
    def residual(self) -> float:
        """(accuracy − majority)/(1 − majority)."""
        return (self.value - self.chance) / (1 - self.chance)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What stands against reading the accuracy as it is."""
        said, weak = {}, not self.unprotected_low > self.chance
        if not self.low > self.chance:
            control = f"on unprotected speech it reaches {100 * self.unprotected:.0f} %"
            if weak:
                control = "with no control that succeeds this is uninformative"
            majority = f"the majority class ({self.majority})"
            said["chance"] = f"the probe is not clearly better than {majority}; {control}"
        if weak and np.isnan(self.unprotected):
            none = "no unprotected speech was given"
            said["no-control"] = f"{none}, so the probe's strength is not known"
        elif weak:
            said["weak-control"] = (
                "the probe is not clearly better than the majority class on unprotected speech"
                " either: too weak to be believed"
            )
        if self.lone:
            classes = ", ".join(self.lone)
            said["lone-class"] = f"classes of one speaker cannot be learnt from others: {classes}"
        about = f"inference of {self.attribute}"
        return tuple(Notice(code, about, sentence) for code, sentence in said.items())

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Accuracy on protected and, where given, on unprotected speech."""
        even = 1 / len(self.classes)
        rows = [
            ("inference", self.chance, self.value, self.low, self.high),
            ("inference_balanced", even, self.balanced, self.balanced_low, self.balanced_high),
        ]
        if not np.isnan(self.unprotected):
            control = self.unprotected, self.unprotected_low, self.unprotected_high
            rows.append(("inference_unprotected", self.chance, *control))
        how = self.resampling
        return tuple(
            Estimate(
                metric,
                value,
                "%",
                Interval(low, high, how.level, SCORE, 0, how.seed),
                chance,
                {"attacks": self.attacks, "speakers": len(self.speakers)},
                {"attribute": self.attribute, "folds": self.folds},
            )
            for metric, chance, value, low, high in rows
        )


def attribute_inference(
    protected: Embeddings,
    attribute: str,
    *,
    unprotected: Embeddings | None = None,
    bands: Sequence[float] = (),
    folds: int = 5,
    penalty: float = 1.0,
    level: float = Sampling.level,
    replicates: int = Sampling.replicates,
    seed: int = 0,
) -> Inference:
    """Accuracy of a logistic-regression probe that reads an attribute from single utterances.

    Speakers are disjoint between training and test. Chance is the majority class. Score intervals
    are over speakers, wider by what folds share.

    Parameters
    ----------
    protected
        Speech that is attacked.
    attribute
        Column to infer.
    unprotected
        Speech with the same column, on which the probe is tried as a control.
    bands
        Cuts of a column of numbers, such as ages.
    folds
        Groups of speakers, each read by a probe that is trained on the others.
    penalty
        Weight of ‖weights‖²/2n in the loss.
    level, replicates, seed
        Level of the intervals, none where ``replicates`` is 0; ``seed`` draws the folds.

    Returns
    -------
    Inference
        Accuracy on protected and on unprotected speech beside chance, and notices.

    Examples
    --------
    >>> import numpy as np, unmask as um
    >>> rng = np.random.default_rng(0)
    >>> sex = np.repeat(["f", "m"], 60)
    >>> vectors = rng.normal(size=(120, 8)) + 2 * (sex == "f")[:, None]
    >>> names = np.repeat([f"s{n:02}" for n in range(30)], 4)
    >>> voices = um.Embeddings(vectors, names, columns={"sex": sex})
    >>> print(um.attribute_inference(voices, "sex")["inference"])
    inference 97.5 % [88.44, 99.5] (95 %), chance 50 %
    """
    how = Sampling(replicates, level, seed)
    options = (attribute, bands, folds, penalty, seed)
    attack = _predictions(protected, *options)
    control = (np.nan, np.nan, np.nan)
    if unprotected is not None:
        control = _accuracy(_predictions(unprotected, *options), folds, how)
    sizes, recordings = np.bincount(attack.labels), np.bincount(attack.owner)
    alone = np.unique(np.column_stack([attack.labels, attack.owner]), axis=0)[:, 0]
    lone = np.bincount(alone) == 1
    return Inference(
        attribute,
        attack.classes,
        *_accuracy(attack, folds, how),
        float(sizes.max() / sizes.sum()),
        *_balanced(attack, folds, how),
        *control,
        majority=attack.classes[int(sizes.argmax())],
        per_speaker=np.bincount(attack.owner, attack.right) / recordings,
        speakers=attack.speakers,
        attacks=len(attack.right),
        folds=folds,
        resampling=how,
        lone=tuple(name for name, one in zip(attack.classes, lone, strict=True) if one),
    )


class _Predictions(NamedTuple):
    """Which predictions are right (1 or 0), each with its class and speaker."""

    classes: tuple[str, ...]
    labels: IntArray
    speakers: pl.Series
    owner: IntArray
    right: FloatArray


def _predictions(
    embeddings: Embeddings,
    attribute: str,
    bands: Sequence[float],
    folds: int,
    penalty: float,
    seed: int,
) -> _Predictions:
    refuse_zeros(embeddings, "probe")
    column = _column(embeddings, attribute, bands)
    classes = tuple(str(name) for name in column.present)
    labels = np.searchsorted(column.used, column.codes)
    if len(classes) < 2:
        raise InputError(f"{attribute}: expected at least 2 values, found {len(classes)}")
    speakers, order = embeddings.speakers.alphabetical(), rows_by_content(embeddings, seed)
    owner, names = speakers.codes.astype(np.int64), speakers.names
    if not 2 <= folds <= len(names):
        raise InputError("folds", f"2 to the {len(names)} speakers there are", folds)
    vectors = np.asarray(embeddings.vectors, dtype=np.float64)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    _, first, kind = np.unique(labels[order], return_index=True, return_inverse=True)
    rng, fold = np.random.default_rng(np.random.SeedSequence(seed)), np.empty_like(order)
    fold[order] = speaker_folds(owner[order], first[kind], folds, rng)
    right = np.empty(len(labels))
    for test in (fold == held_out for held_out in np.unique(fold)):
        probe = Probe.fit(vectors[~test], labels[~test], len(classes), penalty=penalty)
        right[test] = probe.predict(vectors[test]) == labels[test]
    return _Predictions(classes, labels, names, owner, right)


def _accuracy(made: _Predictions, folds: int, how: Sampling) -> tuple[float, float, float]:
    """Share of right predictions, a ratio of sums over speakers, and its interval."""
    hits, sizes = np.bincount(made.owner, made.right), np.bincount(made.owner)
    value = float(hits.sum() / sizes.sum())
    return value, *_interval(value, (hits - value * sizes) / sizes.sum(), folds, how)


def _balanced(made: _Predictions, folds: int, how: Sampling) -> tuple[float, float, float]:
    """Mean over classes, and its interval from what speakers add beyond their classes' means."""
    sizes = np.bincount(made.labels)
    means = np.bincount(made.labels, made.right) / sizes
    shares = (made.right - means[made.labels]) / sizes[made.labels]
    apart = np.bincount(made.owner, weights=shares) / len(made.classes)
    value = float(means.mean())
    return value, *_interval(value, apart, folds, how)


def _interval(value: float, apart: FloatArray, folds: int, how: Sampling) -> tuple[float, float]:
    """Score interval of a number to which each speaker adds ``apart`` beyond what all do.

    Probes of k folds share most of their training speech: the variance over speakers is
    1 + k/(k − 1) times that of independent ones (Nadeau and Bengio 2003: 1/k + 1/(k − 1), not 1/k).
    """
    count = len(apart)
    shared = 1 + folds / (folds - 1)
    variance = shared * count / max(count - 1, 1) * (apart**2).sum()
    low, high = risk_interval(np.asarray(value), np.asarray(variance), count, how)
    return float(low), float(high)


def _column(embeddings: Embeddings, attribute: str, bands: Sequence[float]) -> Ids:
    """The attribute of every utterance, cut into bands where asked for."""
    column = column_of(embeddings, attribute)
    if not len(bands):
        return column
    cuts = sorted(float(cut) for cut in bands)
    numbers = column.names.cast(pl.Float64, strict=False)
    unclear = numbers.is_null() | numbers.is_nan()
    if unclear.any():
        actual = f"{unclear.sum()} other values (first: {column.names.filter(unclear)[0]})"
        raise InputError(attribute, "numbers to cut into bands", actual)
    names = [
        f"below {cuts[0]:g}",
        *(f"{low:g} to below {high:g}" for low, high in pairwise(cuts)),
        f"{cuts[-1]:g} and above",
    ]
    band = np.searchsorted(cuts, numbers.to_numpy(), side="right")
    return Ids(band[column.codes].astype(np.int32), pl.Series(names, dtype=pl.String))


@dataclass(frozen=True, eq=False)
class Probe:
    """Class scores x ↦ ((x − mean)/scale)·weights + bias."""

    mean: FloatArray
    scale: FloatArray
    weights: FloatArray
    bias: FloatArray

    @classmethod
    def fit(cls, vectors: FloatArray, labels: IntArray, classes: int, *, penalty: float) -> Probe:
        """Minimise the mean cross-entropy + penalty·‖weights‖²/(2n), features standardised.

        The bias is not penalised. A class that does not occur is never predicted.
        """
        from scipy.optimize import minimize

        mean, scale = vectors.mean(axis=0), vectors.std(axis=0)
        scale = np.where(scale > _NEGLIGIBLE, scale, 1.0)
        features = (vectors - mean) / scale
        size, dimension = features.shape
        present, dense = np.unique(labels, return_inverse=True)
        truth = np.zeros((size, len(present)))
        rows = np.arange(size)
        truth[rows, dense] = 1.0

        def loss(flat: FloatArray) -> tuple[float, FloatArray]:
            both = flat.reshape(dimension + 1, len(present))
            scores = features @ both[:-1] + both[-1]
            scores -= scores.max(axis=1, keepdims=True)
            odds = np.exp(scores)
            total = odds.sum(axis=1, keepdims=True)
            entropy = np.log(total).sum() - scores[rows, dense].sum()
            rest = (odds / total - truth) / size
            slope = np.vstack([features.T @ rest + penalty * both[:-1] / size, rest.sum(axis=0)])
            return (entropy + penalty * (both[:-1] ** 2).sum() / 2) / size, slope.ravel()

        start = np.zeros((dimension + 1) * len(present))
        best = minimize(loss, start, jac=True, method="L-BFGS-B", options=_STOP).x
        both = best.reshape(dimension + 1, len(present))
        weights, bias = np.zeros((dimension, classes)), np.full(classes, -np.inf)
        weights[:, present], bias[present] = both[:-1], both[-1]
        return cls(mean, scale, weights, bias)

    def predict(self, vectors: FloatArray) -> IntArray:
        """The most likely class of each vector."""
        scores = (vectors - self.mean) / self.scale @ self.weights + self.bias
        return np.asarray(scores.argmax(axis=1))


def speaker_folds(
    speakers: npt.NDArray[np.integer], labels: IntArray, folds: int, rng: np.random.Generator
) -> IntArray:
    """Fold of every row: all rows of a speaker share one, and classes are spread over folds."""
    names, first, dense = np.unique(speakers, return_index=True, return_inverse=True)
    order = rng.permutation(len(names))
    order = order[np.argsort(labels[first[order]], kind="stable")]
    fold = np.empty(len(names), dtype=np.int64)
    fold[order] = np.arange(len(names)) % folds
    return fold[dense]
