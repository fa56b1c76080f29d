"""1 − EER on the conditions of Linkability (Vauquier 2025, 3.4), by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray, IntArray
from unmask.detection import Roc
from unmask.privacy.conversations import EnrolLength, conversations, enrolment
from unmask.privacy.legal_backend import as_backend, inner_products
from unmask.privacy.legal_counts import Progress
from unmask.privacy.legal_curve import Curve, Resampling, one_speaker_note
from unmask.privacy.legal_input import as_counts, check_pair, locate, pair_codes
from unmask.privacy.legal_lists import (
    ROWS,
    Lists,
    count_lists,
    count_lists_on_device,
    own_scores,
    own_scores_on_device,
)
from unmask.privacy.legal_resampled import Resampled, Times, drawn_times
from unmask.scoring import Backend
from unmask.scoring.job import Where, run
from unmask.scoring.plan import ranges_of
from unmask.trials import Embeddings

_BINS = 256


def verification(
    enrol: Embeddings,
    test: Embeddings,
    *,
    counts: npt.ArrayLike,
    length: int = 1,
    seed: int = 0,
    enrol_length: EnrolLength = None,
    backend: Backend | str = "cosine",
    side: Sequence[str] = (),
    allow_shared_utterances: bool = False,
    level: float = 0.95,
    replicates: int = 1000,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> Curve:
    """1 − EER (ROCCH) of every test speaker against N' enrolment speakers, itself among them.

    The others are the first N' − 1 of one random order of the enrolment speakers. The interval
    resamples test speakers on a ROC of 256 bins and is moved to the exact value. ``on``,
    ``workers`` and ``state`` say where the scores are counted, as in :func:`unmask.cross_pairing`;
    the values are the same, but for the last bits of scores on a GPU.
    """
    where = Where(on, workers, state)
    check_pair(enrol, test, allow_shared_utterances=allow_shared_utterances)
    used = length if enrol_length is None else enrol_length
    seeds = np.random.SeedSequence(seed).spawn(3)
    known = enrolment(enrol, length=used, rng=np.random.default_rng(seeds[0]))
    asked = conversations(test, length=length, least=1, most=1, rng=np.random.default_rng(seeds[1]))
    true = locate(asked.names, known.names, who="test speakers", where="enrolment")
    sizes = as_counts(counts, speakers=len(known.names), least=2, where="enrolment")
    enrol_side, test_side = pair_codes((enrol, known.names), (test, asked.names), side)
    scorer = as_backend(backend)
    left, right = inner_products(scorer, known.vectors, asked.vectors)
    order = np.random.default_rng(seeds[2]).permutation(len(left))
    place = np.argsort(order)[true]
    turn, ascending = np.argsort(place), np.argsort(sizes, kind="stable")
    nothing = np.empty(0)
    lists = Lists(
        left[order], right[turn], place[turn], sizes[ascending] - 1, nothing, nothing.astype(int)
    )
    if enrol_side is not None and test_side is not None:
        lists = replace(lists, test_side=test_side[turn], enrol_side=enrol_side[order])
    how = Resampling(level, replicates, seed)
    resampled = replicates > 0 and len(true) > 1
    counted = _count(lists, bins=_BINS if resampled else 0, where=where, progress=progress)
    value, negated, low, high = (np.full(len(sizes), np.nan) for _ in range(4))
    value[ascending], negated[ascending] = counted.values()
    if resampled:
        times = drawn_times(len(true), how)[:, turn]
        low[ascending], high[ascending] = counted.resampled(times).intervals(
            value[ascending], level=level, workers=workers
        )
    return Curve(
        metric="one_minus_eer",
        counts=sizes,
        value=value,
        low=low,
        high=high,
        chance=np.full(len(sizes), 0.5),
        attacks=len(true) * sizes,
        negated=negated,
        speakers=asked.names,
        length=length,
        enrol_length=used,
        backend=scorer.name,
        side=tuple(side),
        left_out=asked.left_out,
        short=known.short,
        resampling=how,
        notes=one_speaker_note(len(true)),
    )


@dataclass(frozen=True, eq=False)
class _Counted:
    """What the test rows of a set of lists add up to, for every N' of it, ascending.

    ``counts`` holds how many nontargets have each code among the target scores; ``spread`` how
    many each test row has in each coarse bin, between one N' and the next; ``extra`` the code of
    the one that fills in for the own speaker, or −1.
    """

    lists: Lists
    own: IntArray
    counts: IntArray
    spread: npt.NDArray[np.unsignedinteger]
    extra: IntArray

    def values(self) -> tuple[FloatArray, FloatArray]:
        """1 − EER, and that of the negated score."""
        target = np.bincount(self.own, minlength=self.lists.knots.size).astype(np.float64)
        found = []
        for nontarget in self.counts.astype(np.float64):
            roc = Roc(self.lists.knots, target, nontarget[1::2], nontarget[::2])
            found.append((1 - roc.eer(), 1 - roc.negated().eer()))
        value, negated = np.array(found).T
        return value, negated

    def resampled(self, times: Times) -> Resampled:
        """The same in bins, each test row drawn as often as ``times`` says."""
        coarse = self.lists.coarse
        extra = np.where(self.extra < 0, -1, coarse[self.extra])
        return Resampled(times, coarse[2 * self.own + 1], self.spread, extra)


def _count(lists: Lists, *, bins: int, where: Where, progress: Progress | None) -> _Counted:
    """Find the target scores, on this machine, then count the others among them."""
    ranges = ranges_of(len(lists.test), ROWS)
    here = Where(where.on if where.on == "cuda" else "local", where.workers)
    found = run(own_scores, lists, ranges, where=here, on_device=own_scores_on_device)
    knots, own = np.unique(np.concatenate([part["own"] for part in found]), return_inverse=True)
    lists = replace(lists, knots=knots, coarse=_coarse(knots, own, bins))
    parts = list(
        run(
            count_lists, lists, ranges,
            where=where, on_device=count_lists_on_device, progress=progress,
        )
    )  # fmt: skip
    counts = np.cumsum(sum(part["counts"].astype(np.int64) for part in parts), axis=0)
    extra = np.concatenate([part["extra"] for part in parts], axis=1)
    for row, codes in zip(counts, extra, strict=True):
        row += np.bincount(codes[codes >= 0], minlength=row.size)
    return _Counted(lists, own, counts, np.concatenate([p["spread"] for p in parts], axis=1), extra)


def _coarse(knots: FloatArray, own: IntArray, bins: int) -> IntArray:
    """Bin of every code: how many of ``bins`` quantiles of the target scores it has reached.

    The last entry is for what is not counted, a bin after all others.
    """
    if not bins:
        return np.zeros(2 * knots.size + 2, dtype=np.int64)
    edges = np.quantile(knots[own], np.linspace(0, 1, bins), method="inverted_cdf")
    reached = np.concatenate([[0], np.cumsum(np.isin(knots, edges))])
    return np.append(np.repeat(reached, 2)[1:], reached[-1] + 1)
