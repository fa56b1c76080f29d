"""1 − EER on the conditions of Linkability (Vauquier 2025, 3.4), by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray
from unmask.engine import Roc
from unmask.privacy.legal.backends import as_backend, inner_products
from unmask.privacy.legal.conversations import EnrolLength, conversations, enrolment
from unmask.privacy.legal.counts import Progress
from unmask.privacy.legal.curve import Curve, Resampling, one_speaker_note
from unmask.privacy.legal.inputs import as_counts, check_pair, locate, pair_codes
from unmask.privacy.legal.lists import (
    ROWS,
    Lists,
    count_lists,
    count_lists_on_device,
    own_scores,
    own_scores_on_device,
)
from unmask.privacy.legal.resampled import Resampled, drawn_times
from unmask.run import Where, narrow, ranges_of, run
from unmask.scoring import Backend
from unmask.trials import Embeddings

_BINS = 256
_MOST_ALONE = 64
_GROUPS = 32
_METHOD = "enrolment and test speaker,corrected"


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

    The others are the first N' − 1 of one random order of the enrolment speakers. Enrolment
    averages ``enrol_length`` utterances, by default all there are. The interval draws speakers on
    both sides (in 32 groups where there are more than 64) on a ROC of 256 bins, less the bias of
    the hull. ``on``, ``workers`` and ``state`` say where the scores are counted, as in
    :func:`unmask.cross_pairing`; the values are the same, but for the last bits of scores on a GPU.
    """
    where = Where(on, workers, state)
    check_pair(enrol, test, allow_shared_utterances=allow_shared_utterances)
    used = "all" if enrol_length is None else enrol_length
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
    groups = _groups(place[turn], len(left))
    lists = Lists(
        left[order],
        right[turn],
        place[turn],
        sizes[ascending] - 1,
        nothing,
        nothing.astype(int),
        groups[place[turn]],
        groups,
    )
    if enrol_side is not None and test_side is not None:
        lists = replace(lists, test_side=test_side[turn], enrol_side=enrol_side[order])
    how = Resampling(level, replicates, seed)
    resampled = replicates > 0 and len(true) > 1
    counted = _count(lists, bins=_BINS if resampled else 0, where=where, progress=progress)
    found, low, high = (np.full((2, len(sizes)), np.nan) for _ in range(3))
    found[:, ascending] = counted.values()
    if resampled:
        low[:, ascending], high[:, ascending] = counted.resampled(how).intervals(
            found[:, ascending], level=level, workers=workers
        )

    def curve(s: int) -> Curve:
        return Curve(
            metric="one_minus_eer",
            counts=sizes,
            value=found[s],
            low=low[s],
            high=high[s],
            chance=np.full(len(sizes), 0.5),
            attacks=len(true) * sizes,
            speakers=asked.names,
            length=length,
            enrol_length=used,
            backend=scorer.name,
            side=tuple(side),
            left_out=asked.left_out,
            short=known.short,
            resampling=how,
            method=_METHOD,
            notes=one_speaker_note(len(true)),
        )

    return replace(curve(0), negated=replace(curve(1), variant="negated"))


def _groups(place: IntArray, speakers: int) -> IntArray:
    """Group of every enrolment speaker: each test speaker has its own, or one of 32 where there
    are many, and those who are not tested are spread over all of them.
    """
    size = len(place) if len(place) <= _MOST_ALONE else _GROUPS
    tested = np.zeros(speakers, dtype=bool)
    tested[place] = True
    groups = np.empty(speakers, dtype=np.int64)
    for some in (place, np.flatnonzero(~tested)):
        groups[some] = np.arange(len(some)) % size
    return groups


@dataclass(frozen=True, eq=False)
class _Counted:
    """What the test rows of a set of lists add up to, for every N' of it, ascending.

    ``counts`` holds how many nontargets have each code among the target scores; ``spread`` how
    many each pair of groups has in each coarse bin, between one N' and the next; ``extra`` the code
    of the one that fills in for the own speaker, or −1.
    """

    lists: Lists
    own: IntArray
    counts: IntArray
    spread: IntArray
    extra: IntArray

    def values(self) -> FloatArray:
        """1 − EER, and that of the negated score."""
        target = np.bincount(self.own, minlength=self.lists.knots.size).astype(np.float64)
        found = []
        for nontarget in self.counts.astype(np.float64):
            roc = Roc(self.lists.knots, target, nontarget[1::2], nontarget[::2])
            found.append((1 - roc.eer(), 1 - roc.negated().eer()))
        return np.array(found).T

    def resampled(self, how: Resampling) -> Resampled:
        """The same in bins, groups of speakers drawn as often as a replicate says."""
        lists = self.lists
        groups, bins = lists.groups, lists.bins
        target = np.zeros((groups, bins), dtype=np.int64)
        np.add.at(target, (lists.test_group, lists.coarse[2 * self.own + 1]), 1)
        nontarget = np.cumsum(self.spread, axis=0, dtype=np.int64)
        for n, (counted, codes) in enumerate(zip(nontarget, self.extra, strict=True)):
            more = codes >= 0
            joined = lists.enrol_group[lists.cuts[n]]
            np.add.at(counted, (lists.test_group[more], joined, lists.coarse[codes[more]]), 1)
        flat = nontarget.reshape(len(nontarget), groups * groups, bins)
        return Resampled(drawn_times(groups, how), target, narrow(flat))


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
    spread = sum(part["spread"].astype(np.int64) for part in parts)
    return _Counted(lists, own, counts, np.asarray(spread), extra)


def _coarse(knots: FloatArray, own: IntArray, bins: int) -> IntArray:
    """Bin of every code: two for each of ``bins``/2 quantiles of the target scores, one for scores
    that equal it and one from there to the next.

    The last entry is for what is not counted, a bin after all others.
    """
    if not bins:
        return np.zeros(2 * knots.size + 2, dtype=np.int64)
    edges = np.quantile(knots[own], np.linspace(0, 1, bins // 2), method="inverted_cdf")
    begins = np.zeros(2 * knots.size + 2, dtype=np.int64)
    at = np.flatnonzero(np.isin(knots, edges))
    begins[2 * at + 1] = begins[2 * at + 2] = begins[-1] = 1
    return np.cumsum(begins)
