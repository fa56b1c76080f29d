"""Evidence next to the direction of a vector: channels of few raw columns, scored by an LLR.

A channel gives each utterance a row of raw numbers, such as the log length of its vector. In few
dimensions the size of a row is half of the evidence, so a cosine is wrong: of one column it leaves
2/N' whatever the data. Rows are scored by the two-covariance log-likelihood ratio of the mean of
n_e enrolment utterances against the mean of n_t test utterances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.privacy.attack import Attacker
from unmask.privacy.recordings import of_people
from unmask.scoring import LENGTH, Sides, SpeakerMoments, shrunk
from unmask.trials import Embeddings

LEAST_TRAINING_PEOPLE = 30
"""Training people join the fit from this number on; fewer add noise."""
SHRINKAGE, SHRINKAGE_OF_FEW = 0.05, 0.1
FEW_PER_COLUMN = 10
"""With fewer utterances a column the within-person covariance is shrunk by more."""
LEAST_SPREAD = 2e-3
"""Vectors whose lengths differ by a smaller share are all of length one, but for rounding.

In half precision each number is off by up to 2^-11 of itself, and the length by as much.
"""
_NEGLIGIBLE = 1e-9
_CONSTANT = 1e-12


def log_lengths(speech: Embeddings) -> FloatArray:
    """The log length of each utterance's vector, as one column."""
    lengths = np.empty((len(speech), 1))
    for start, vectors in speech.slices():
        rows = np.linalg.norm(np.asarray(vectors, dtype=np.float64), axis=1)
        lengths[start : start + len(rows), 0] = np.log(np.maximum(rows, np.finfo(float).tiny))
    return lengths


CHANNELS: Mapping[str, Callable[[Embeddings], FloatArray]] = {LENGTH: log_lengths}
"""The raw columns of each channel, by its name."""


def lengths_vary(*sets: Embeddings) -> bool:
    """Tell whether the lengths of vectors differ in every set, by more than rounding."""
    return all(np.ptp(log_lengths(speech)) > LEAST_SPREAD for speech in sets)


@dataclass(frozen=True, eq=False)
class TwoCovariance:
    r"""A raw row is mean + person + residual, with person ~ N(0, B) and residual ~ N(0, W).

    Of one person the mean x of n_e rows and the mean y of n_t rows have covariances a = ψ + 1/n_e,
    b = ψ + 1/n_t and ψ between them, in the basis where W = I and B = diag(ψ); of two people they
    are independent. With D = a·b − ψ² the log-likelihood ratio, summed over directions, is

    .. math:: \frac{ψ x y}{D} − ½ \left(\frac{b}{D} − \frac1a\right) x²
        − ½ \left(\frac{a}{D} − \frac1b\right) y² − ½ \log\frac{D}{a b}.

    Rows reach it through averages of unit vectors: a standardised row z becomes (z, 1, rest) at
    length one, with a rest that gives all the same length, so that averages of these keep the mean
    of z as the ratio of the first parts (:meth:`packed`).

    Attributes
    ----------
    name
        The channel.
    mean, deviation
        Of the columns in the fit set; columns that do not vary there are dropped (``used``).
    used
        Which raw columns vary.
    variances
        ψ of each direction.
    basis
        Standardised columns to directions.
    """

    name: str
    mean: FloatArray
    deviation: FloatArray
    used: npt.NDArray[np.bool_]
    variances: FloatArray
    basis: FloatArray

    @classmethod
    def fit(
        cls, rows: FloatArray, speakers: IntArray, name: str, *, shrinkage: float | None = None
    ) -> TwoCovariance:
        """Estimate both covariances by moments from raw rows and the speaker of each.

        The within-person covariance is shrunk towards a multiple of the identity, by default by
        0.05, and by 0.1 where there are fewer than ten utterances a column.
        """
        spread = rows.std(axis=0)
        used = spread > _CONSTANT * np.maximum(np.abs(rows).max(axis=0), 1.0)
        if not used.any():
            raise InputError(f"back-end {name}", "columns that vary in enrolment", "none")
        mean, deviation = rows[:, used].mean(axis=0), spread[used]
        moments = SpeakerMoments.of((rows[:, used] - mean) / deviation, speakers)
        if shrinkage is None:
            few = len(rows) < FEW_PER_COLUMN * int(used.sum())
            shrinkage = SHRINKAGE_OF_FEW if few else SHRINKAGE
        within = shrunk(moments.within, shrinkage)
        if np.linalg.eigvalsh(within)[0] <= _NEGLIGIBLE:
            raise InputError(f"back-end {name}", "recordings of a person that differ", "equal ones")
        variances, basis = eigh(moments.between, within)
        kept = variances > _NEGLIGIBLE * max(float(variances[-1]), 1.0)
        if not kept.any():
            raise InputError(f"back-end {name}", "people who differ by more than chance", "none")
        return cls(name, mean, deviation, used, variances[kept], basis[:, kept])

    def standardised(self, rows: FloatArray) -> FloatArray:
        """Raw rows about the mean of the fit set, in its deviations."""
        return np.asarray((rows[:, self.used] - self.mean) / self.deviation)

    def packed(self, rows: FloatArray, radius: float) -> FloatArray:
        """Pack standardised rows into vectors of one length, whose averages keep their means.

        ``radius`` is at least the length of the longest row of all sets that are compared.
        """
        rest = np.sqrt(np.maximum(radius**2 - (rows * rows).sum(axis=1), 0.0))
        return np.column_stack([rows, np.ones(len(rows)), rest])

    def _directions(self, vectors: npt.ArrayLike) -> FloatArray:
        """Means of standardised rows, read off averages of packed vectors, in the basis."""
        given = np.asarray(vectors, dtype=np.float64)
        columns = int(self.used.sum())
        return np.asarray(given[:, :columns] / given[:, columns : columns + 1] @ self.basis)

    def sides(self, vectors: npt.ArrayLike) -> Sides:
        """Rows of single utterances."""
        once = np.ones(np.shape(vectors)[0], dtype=np.int64)
        return self.sides_of_means(vectors, once, vectors, once)

    def sides_of_means(
        self,
        enrol: npt.ArrayLike,
        enrol_counts: IntArray,
        test: npt.ArrayLike,
        test_counts: IntArray,
    ) -> Sides:
        """Rows of averages over so many utterances, whose inner products are LLRs.

        The coefficients depend on both counts. A test row has its terms (y, y², 1) in the columns
        of its own count and zeros elsewhere; an enrolment row has the coefficients for every count
        of the test side, of which there is hardly ever more than one.
        """
        known, tested = self._directions(enrol), self._directions(test)
        counts, block = np.unique(test_counts, return_inverse=True)
        psi, size = self.variances, known.shape[1]
        left, right = [], np.zeros((len(tested), len(counts), 2 * size + 1))
        terms = np.column_stack([tested, tested**2, np.ones(len(tested))])
        right[np.arange(len(tested)), block] = terms
        a = psi + 1 / np.asarray(enrol_counts, dtype=np.float64)[:, None]
        for count in counts:
            b = psi + 1 / count
            determinant = a * b - psi**2
            cross = psi * known / determinant
            square = -(a / determinant - 1 / b) / 2
            mine = (b / determinant - 1 / a) * known**2 + np.log(determinant / (a * b))
            left.append(np.column_stack([cross, square, -mine.sum(axis=1) / 2]))
        return Sides(np.hstack(left), right.reshape(len(tested), -1))


def compare_channel(attacker: Attacker) -> Attacker:
    """Make an attacker by a channel ready: its rows packed as vectors, its back-end fitted.

    The fit sees enrolment with names, and training speech of other people where there are 30.
    """
    name = str(attacker.backend)
    columns = CHANNELS[name]
    enrolled, tested = columns(attacker.enrol), columns(attacker.test)
    rows, speakers = [enrolled], [attacker.enrol.speakers.to_series()]
    others = _other_people(attacker)
    if others is not None:
        rows.append(columns(others))
        speakers.append(others.speakers.to_series())
    names = np.concatenate([some.to_numpy() for some in speakers])
    codes = np.unique(names.astype(str), return_inverse=True)[1]
    backend = TwoCovariance.fit(np.concatenate(rows), codes, name)
    known, attacked = backend.standardised(enrolled), backend.standardised(tested)
    radius = max(float(np.linalg.norm(side, axis=1).max()) for side in (known, attacked))
    return replace(
        attacker,
        enrol=attacker.enrol.with_vectors(backend.packed(known, radius + 1)),
        test=attacker.test.with_vectors(backend.packed(attacked, radius + 1)),
        backend=backend,
    )


def centred_columns(attacker: Attacker) -> Attacker:
    """Take the mean of each side's raw columns off, before anything is fitted.

    Log lengths less their mean are those of the same vectors over their geometric mean length.
    """

    def about_mean(speech: Embeddings) -> Embeddings:
        return speech.with_vectors(speech.vectors / np.exp(log_lengths(speech).mean()))

    train = attacker.train if attacker.train is None else about_mean(attacker.train)
    return replace(
        attacker, enrol=about_mean(attacker.enrol), test=about_mean(attacker.test), train=train
    )


def with_length(
    attackers: Mapping[str, Attacker], *, original: str | None = "original"
) -> dict[str, Attacker]:
    """Add to ``attackers`` on protected speech the same by the length of the vectors.

    Only where lengths vary on both sides: many encoders give vectors of length one. The attacker on
    unprotected speech, called ``original``, stays as it is.
    """
    chosen = dict(attackers)
    for name, attacker in attackers.items():
        usual = isinstance(attacker.backend, str) and not attacker.listens and not attacker.by
        if name == original or not usual or attacker.channel:
            continue
        base = name.removesuffix(f"({attacker.backend})").rstrip()
        label = f"{base} ({LENGTH})"
        if label not in chosen and lengths_vary(attacker.enrol, attacker.test):
            chosen[label] = replace(attacker, backend=LENGTH)
    return chosen


def lengths_left_out(attackers: Iterable[Attacker]) -> str | None:
    """Say why some of the ``attackers`` do not compare the length of vectors that has evidence.

    None where lengths are compared, or vary on no side.
    """
    voices = [one for one in attackers if not one.listens and not one.by]
    compared = {(id(one.enrol), id(one.test)) for one in voices if one.channel}
    others = {(id(one.enrol), id(one.test)): one for one in voices}
    reasons = set()
    for sides, one in others.items():
        # Of one vector it is not known whether lengths vary.
        if sides in compared or min(len(one.enrol), len(one.test)) < 2:
            continue
        enrolled_vary, tested_vary = lengths_vary(one.enrol), lengths_vary(one.test)
        if enrolled_vary and tested_vary:
            reasons.add("not asked for")
        elif enrolled_vary or tested_vary:
            reasons.add("all equal on one side only")
    return "; ".join(sorted(reasons)) or None


def _other_people(attacker: Attacker) -> Embeddings | None:
    """Training speech of people who are neither enrolled nor attacked, if there are enough."""
    if attacker.train is None:
        return None
    known = {*attacker.enrol.speakers.present, *attacker.test.speakers.present}
    if len(set(attacker.train.speakers.present) - known) < LEAST_TRAINING_PEOPLE:
        return None
    return of_people(attacker.train, known, inside=False)
