"""Voice similarity matrices, what is read off them, and their views."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import count
from typing import Any

import numpy as np
from scipy.special import expit

from unmask.base import FloatArray, IntArray
from unmask.engine import LARGEST_D_ECE, Roc, Zebra, zebra_of
from unmask.errors import InputError
from unmask.privacy.luck import Permuted
from unmask.privacy.similarity.intervals import Ends, Setup, Statistic, ratio, same
from unmask.privacy.similarity.kernels import PairSums, halved, pooled, statistic_of, sums_of
from unmask.privacy.similarity.renamed import Renamed, renamed
from unmask.privacy.similarity.resampling import Binned, PairDraws, resampled
from unmask.run import check_memory, part
from unmask.scoring import PairGrid

LEAST_DOMINANCE = 1e-12
CELL = 48
MOST_SPEAKERS = 300
ORDERS = ("given", "cluster")
HALVES = ("first", "second")


def similarity(count: IntArray, log_sigmoid: FloatArray, llr: FloatArray, mean: str) -> FloatArray:
    """Sim(i, j) of every pair of speakers; NaN where two speakers were not compared.

    ``geometric``: the geometric mean of σ(llr) (Noé 2022, eq. 6). ``arithmetic``: σ of the mean LLR
    (Noé 2020, eq. 2).
    """
    with np.errstate(invalid="ignore"):
        if mean == "geometric":
            return np.asarray(np.exp(log_sigmoid / count))
        return np.asarray(expit(llr / count))


def dominance(matrix: FloatArray) -> float:
    """Mean of the diagonal minus mean of the rest, signed (Noé 2022, eq. 8 without the modulus).

    Pairs of speakers that were not compared (NaN) do not count. What rounding leaves of a uniform
    matrix is 0.
    """
    off = ~np.eye(matrix.shape[0], dtype=bool) & ~np.isnan(matrix)
    difference = float(np.diag(matrix).mean() - matrix[off].mean())
    return 0.0 if abs(difference) < LEAST_DOMINANCE else difference


def speaker_dominance(matrix: FloatArray) -> FloatArray:
    """Each speaker's own share: Sim(i, i) minus the mean of the speaker's row and column.

    Every comparison of two speakers belongs half to either, so the values average to
    :func:`dominance` where all speakers were compared.
    """
    off = ~np.eye(matrix.shape[0], dtype=bool)
    other = np.where(off, (matrix + matrix.T) / 2, np.nan)
    return np.asarray(np.diag(matrix) - np.nanmean(other, axis=1))


@dataclass(frozen=True, eq=False)
class SimilaritySet:
    """One of OO, OP and PP: its matrix, and the statistic of its comparisons.

    A part of every result of this package. The matrix takes every ordered
    pair of segments, as the papers write it; ``roc`` counts every comparison once. ``negated`` is
    the matrix that the negated scores give, where it was asked for. Resamples of the speakers
    calibrate anew in ``bins`` bins of the scores, with ``partners`` others per speaker (0: all).
    """

    name: str
    speakers: tuple[str, ...]
    mean: str
    sums: PairSums = field(repr=False)
    roc: Roc = field(repr=False)
    negated: FloatArray | None = field(default=None, repr=False)
    bins: int = 0
    partners: int = 0

    @cached_property
    def matrix(self) -> FloatArray:
        """Sim(i, j), rows and columns in the order of ``speakers``."""
        return similarity(self.sums.count, self.sums.log_sigmoid, self.sums.llr, self.mean)

    @cached_property
    def signed(self) -> float:
        """Mean self-similarity minus mean similarity of different speakers."""
        return dominance(self.matrix)

    @property
    def d_diag(self) -> float:
        """D_diag, its absolute value (Noé 2022, eq. 8)."""
        return abs(self.signed)

    @cached_property
    def log_matrix(self) -> FloatArray:
        """log2 Sim(i, j) in bits, the negative of Noé 2022, eq. 7."""
        if self.mean == "geometric":
            with np.errstate(invalid="ignore"):
                return np.asarray(self.sums.log_sigmoid / self.sums.count / np.log(2))
        return np.asarray(np.log2(self.matrix))

    @property
    def signed_log(self) -> float:
        """The same difference of log2 similarities, in bits (the paper's future work)."""
        return dominance(self.log_matrix)

    @property
    def d_diag_log(self) -> float:
        """D_diag in the log domain: how many bits the diagonal stands out."""
        return abs(self.signed_log)

    @property
    def self_similarity(self) -> FloatArray:
        """Sim(i, i) of each speaker."""
        return np.diag(self.matrix).copy()

    @cached_property
    def zebra(self) -> Zebra:
        """D_ECE, l_w and tag of the set."""
        return zebra_of(self.roc)

    @cached_property
    def speaker_d_ece(self) -> FloatArray:
        """D_ECE of each speaker's trials under the calibration of the whole set, in bits.

        (mean Z(a) over the speaker's own trials + mean Z(−b) over those with others, on either
        side)/(2 ln 2): with equally many trials per speaker the values average to D_ECE. Below 0
        the pooled evidence misleads about this speaker.
        """
        own = np.diag(self.sums.disclosure) / np.diag(self.sums.count)
        both = self.sums.disclosure + self.sums.disclosure.T
        number = self.sums.count + self.sums.count.T
        off = ~np.eye(both.shape[0], dtype=bool)
        other = (both * off).sum(axis=1) / (number * off).sum(axis=1)
        return np.asarray((own + other) / (2 * np.log(2)))

    @cached_property
    def speaker_l_w(self) -> FloatArray:
        """Largest |LLR| in base 10 among each speaker's trials; the largest of them is l_w."""
        extreme = self.sums.extreme
        return np.asarray(np.nanmax(np.fmax(extreme, extreme.T), axis=1) / np.log(10))


@dataclass(frozen=True, eq=False)
class AttackedMatrix:
    """One way to read the scores of a set, as they are or negated: its matrix, and what resamples
    of the speakers give for it. ``rocs`` are the statistics of its scores, two where an attack was
    fitted on either half of the utterances; ``permuted`` has what it reads with the names of the
    speakers permuted, put together of ``renamed``.
    """

    matrix: FloatArray
    rocs: tuple[Roc, ...]
    resampled: PairDraws | None = None
    renamed: Renamed | None = None
    permuted: Permuted | None = None

    @cached_property
    def signed(self) -> float:
        return dominance(self.matrix)

    @cached_property
    def d_ece(self) -> float:
        """D_ECE, the mean of both ways."""
        return float(np.mean([roc.d_ece() for roc in self.rocs]))

    @cached_property
    def eer(self) -> float:
        """EER, the mean of both ways."""
        return float(np.mean([roc.eer() for roc in self.rocs]))

    @property
    def separates_everybody(self) -> bool:
        """Whether less than one comparison within a speaker lies on the wrong side, each way.

        Then resamples move by Laplace's rule and a stray comparison, and tell of no spread.
        """
        return all(roc.eer() * roc.targets < 1 for roc in self.rocs)

    @cached_property
    def worst(self) -> Zebra:
        """The way with the larger l_w."""
        return max((zebra_of(roc) for roc in self.rocs), key=lambda one: one.l_w)

    @property
    def draws(self) -> PairDraws:
        """The resamples, of which there are some."""
        assert self.resampled is not None
        return self.resampled

    def with_other(self, other: AttackedMatrix) -> AttackedMatrix:
        """One attack in two ways: logarithms of similarities averaged cell by cell."""
        matrices = self.matrix, other.matrix
        whole = np.exp(np.mean(np.log(matrices), axis=0))
        resampled, renamed = self.resampled, self.renamed
        if resampled is not None and other.resampled is not None:
            both = resampled.joined(lambda one, two: (one + two) / 2, other.resampled)
            moved = dominance(whole) - np.mean([dominance(matrix) for matrix in matrices])
            shares = speaker_dominance(whole) - np.mean(
                [speaker_dominance(matrix) for matrix in matrices], axis=0
            )
            share = (both.share + shares).astype(np.float32)
            resampled = replace(both, signed=both.signed + moved, share=share)
        if renamed is not None and other.renamed is not None:
            renamed = renamed.with_other(other.renamed)
        return AttackedMatrix(whole, (*self.rocs, *other.rocs), resampled, renamed)


@dataclass(frozen=True, eq=False)
class Comparisons:
    """All similarity sets of an assessment by name, under one setup, and their ``readings``: the
    scores as they are and, where wanted, negated. An attack that was fitted on either half of the
    utterances has two sets, and readings of both together under its own name. The scores of attacks
    that are ``one_way`` are log-likelihood ratios: they are not read negated.
    """

    setup: Setup
    sets: dict[str, SimilaritySet] = field(default_factory=dict)
    readings: dict[str, tuple[AttackedMatrix, ...]] = field(default_factory=dict)
    one_way: frozenset[str] = frozenset()

    def check_original(self, *names: str, why: str = "") -> None:
        """Original voices can be told apart by their scores, or nothing can be said of others."""
        for name in names:
            if self.sets[name].d_diag == 0:
                apart = "D_diag is 0, original voices cannot be told apart"
                raise InputError(f"{name.upper()}: {apart}{why}")

    def over_oo(
        self,
        value: float,
        drawn: FloatArray,
        read: Callable[[Ends], Ends] = same,
        oo: str = "oo",
        *,
        separates_everybody: bool = False,
    ) -> Statistic:
        """A number over the dominance of OO, from which an interval is made."""
        whole = self.readings[oo][0]
        number = ratio(value, whole.signed, drawn, whole.draws.signed)
        return Statistic(
            *number, self.setup.replicates, read, separates_everybody=separates_everybody
        )

    def disclosed(self, attack: AttackedMatrix) -> tuple[Statistic, Statistic]:
        """D_ECE and EER of an attack, which reach chance where its dominance does."""
        number, drawn = self.setup.replicates, attack.draws
        alike = Statistic(attack.signed, drawn.signed, number, bounds=(-1.0, 1.0))
        bits = Statistic(attack.d_ece, drawn.d_ece, number, same, (0.0, LARGEST_D_ECE), alike)
        return bits, Statistic(attack.eer, drawn.eer, number, same, (0.0, 0.5), alike, 0.5)

    def read(
        self,
        name: str,
        speakers: tuple[str, ...],
        sums: PairSums,
        roc: Roc,
        *,
        negated: tuple[FloatArray, FloatArray] | None = None,
        binned: Binned | None = None,
        renamed: tuple[Renamed, Renamed] | None = None,
    ) -> list[AttackedMatrix]:
        """A set from its sums, and its readings, with resamples where scores were counted in bins;
        ``negated`` are the sums of log σ and of the LLRs of the negated scores, ``renamed`` the set
        with the names of the speakers permuted.
        """
        mean, other = self.setup.mean, negated
        if self.setup.mirror:
            sums, other = sums.mirrored(), other and (pooled(other[0]), pooled(other[1]))
        matrix = None if other is None else similarity(sums.count, *other, mean)
        bins, partners = (0, 0) if binned is None else (binned.own.shape[1], binned.partners)
        self.sets[name] = own = SimilaritySet(
            name, speakers, mean, sums, roc, matrix, bins, partners
        )
        made, logs = [AttackedMatrix(own.matrix, (roc,))], [own.log_matrix]
        if matrix is not None:
            made.append(AttackedMatrix(matrix, (roc.negated(),)))
            logs.append(np.log2(matrix))
        times = self.setup.weights(speakers)
        if binned is None or times is None:
            return made
        coarse, drawn = (
            resampled(binned, one, mean=mean, negated=matrix is not None)
            for one in (np.ones((1, len(speakers))), times)
        )
        names = renamed or (None, None)
        return [
            replace(one, resampled=all_drawn.moved(_exact(one, log), whole), renamed=blind)
            for one, log, all_drawn, whole, blind in zip(
                made, logs, drawn, coarse, names, strict=False
            )
        ]

    def keep(self, name: str, *ways: list[AttackedMatrix]) -> None:
        """The readings of a set, or of an attack in two ways."""
        joined = [reduce(AttackedMatrix.with_other, each) for each in zip(*ways, strict=True)]
        self.readings[name] = tuple(
            replace(one, renamed=None, permuted=one.renamed and one.renamed.permuted())
            for one in joined
        )


def _exact(reading: AttackedMatrix, logs: FloatArray) -> PairDraws:
    """All speakers as they are, by every score."""
    (roc,) = reading.rocs
    values = reading.signed, dominance(logs), roc.d_ece(), roc.min_cllr(), roc.eer()
    return PairDraws(*[*np.array(values)[:, None], speaker_dominance(reading.matrix)[None]])


def similarity_sets(
    pairs: Mapping[str, Sequence[PairGrid]],
    setup: Setup,
    *,
    negated: Collection[str] = (),
    once: Collection[str] = (),
) -> Comparisons:
    """Calibrate each set on its own (PAV with Laplace, pooled) and average per pair of speakers,
    set after set: the counts in bins of one are gone before the next begins.

    An attack that was fitted on either half of the utterances has two grids of ``pairs``. The
    matrices of the negated scores are made for those named in ``negated``. The sets named in
    ``once`` hold every comparison in both orders, which their statistic counts once.
    """
    total = sum(map(len, pairs.values()))
    speakers = max(own.enrol.size for grids in pairs.values() for own in grids)
    check_memory(
        total * CELL * speakers**2,
        f"{speakers} speakers",
        f"matrices of {speakers} × {speakers} pairs of speakers",
    )
    made, number = Comparisons(setup), count()
    for name, grids in pairs.items():
        ways = [name] if len(grids) == 1 else [f"{name}, {half} half" for half in HALVES]
        readings = []
        for way, own in zip(ways, grids, strict=True):
            with part(next(number), total):
                with part(0, 2):
                    roc = statistic_of(own, way.upper())
                with part(1, 2):
                    sums, opposite, binned = sums_of(
                        own, roc, setup, negated=name in negated, once=name in once
                    )
                roc = halved(roc) if name in once else roc
                other = None
                if name in negated and name not in once and setup.renames:
                    other = renamed(own, mean=setup.mean, seed=setup.seed)
                about: dict[str, Any] = {"negated": opposite, "binned": binned, "renamed": other}
                readings.append(made.read(way, own.enrol.names, sums, roc, **about))
                del binned, about
        made.keep(name, *readings)
    return made


@dataclass(frozen=True, eq=False)
class MatrixView:
    """A square of similarities; each of ``parts`` (original, protected) takes an equal share of the
    rows and of the columns.

    ``labels`` name the speakers of one part, or the first and last speaker of each bin of
    ``per_bin`` speakers. A bin on the diagonal shows the mean self-similarity, any other bin the
    mean similarity of different speakers. ``read_by`` is the attacker of the lower left quarter,
    where it is not the plain score.
    """

    values: FloatArray
    labels: tuple[str, ...]
    parts: tuple[str, ...]
    per_bin: int = 1
    read_by: str = ""


def single(
    similarity: SimilaritySet, *, order: str = "given", most: int = MOST_SPEAKERS
) -> MatrixView:
    """One set alone."""
    matrix, parts = similarity.matrix, (similarity.name.upper(),)
    return view_of([[matrix]], [matrix], similarity.speakers, parts, order, most)


def view_of(
    squares: list[list[FloatArray]],
    alike: list[FloatArray],
    speakers: tuple[str, ...],
    parts: tuple[str, ...],
    order: str,
    most: int,
) -> MatrixView:
    """Matrices side by side, the speakers in the order of those that tell who are ``alike``."""
    arranged = _arranged(alike, order)
    step = -(-len(speakers) // most)
    values = np.block(
        [[_binned(m[np.ix_(arranged, arranged)], step) for m in row] for row in squares]
    )
    names = [speakers[i] for i in arranged]
    bins = [names[i : i + step] for i in range(0, len(names), step)]
    labels = (one[0] if len(one) == 1 else f"{one[0]} … {one[-1]}" for one in bins)
    return MatrixView(values, tuple(labels), parts, step)


def _arranged(matrices: list[FloatArray], order: str) -> IntArray:
    size = matrices[0].shape[0]
    if order not in ORDERS:
        raise InputError(f"order: expected given or cluster, found {order}")
    if order == "given" or size < 3:
        return np.arange(size)
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    alike = sum(matrix + matrix.T for matrix in matrices) / (2 * len(matrices))
    distance = 1 - np.asarray(alike)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=size <= 300)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def _binned(matrix: FloatArray, step: int) -> FloatArray:
    if step == 1:
        return matrix
    first = np.arange(0, matrix.shape[0], step)
    off = ~np.eye(matrix.shape[0], dtype=bool)

    def summed(values: FloatArray) -> FloatArray:
        return np.add.reduceat(np.add.reduceat(values, first, axis=0), first, axis=1)

    binned = summed(matrix * off) / np.maximum(summed(off.astype(np.float64)), 1.0)
    own = np.add.reduceat(np.diag(matrix), first) / np.diff(np.append(first, matrix.shape[0]))
    np.fill_diagonal(binned, own)
    return np.asarray(binned)
