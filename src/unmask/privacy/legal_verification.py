"""1 − EER on the conditions of Linkability (Vauquier 2025, 3.4), by the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray, IntArray
from unmask.detection import Roc
from unmask.detection.operating import equal_error
from unmask.privacy.conversations import EnrolLength, conversations, enrolment
from unmask.privacy.legal_backend import as_backend, inner_products
from unmask.privacy.legal_counts import Progress
from unmask.privacy.legal_curve import Curve, Resampling, one_speaker_note, percentiles
from unmask.privacy.legal_input import as_counts, check_pair, locate, pair_codes
from unmask.scoring import Backend
from unmask.trials import Embeddings

_BLOCK = 240
_BINS = 256
_REPLICATES = 64


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
    progress: Progress | None = None,
) -> Curve:
    """1 − EER (ROCCH) of every test speaker against N' enrolment speakers, itself among them.

    The others are the first N' − 1 of one random order of the enrolment speakers. The interval
    resamples test speakers on a ROC of 256 bins and is moved to the exact value.
    """
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
    sides = None if enrol_side is None else (enrol_side[order], test_side)
    how = Resampling(level, replicates, seed)
    value, negated, low, high = (np.empty(len(sizes)) for _ in range(4))
    ascending = np.argsort(sizes, kind="stable")
    walk = _nested(left[order], right, place, sides, sizes[ascending])
    for done, (at, (roc, histogram)) in enumerate(zip(ascending, walk, strict=True), 1):
        value[at], negated[at] = 1 - roc.eer(), 1 - roc.negated().eer()
        low[at], high[at] = _interval(histogram, float(value[at]), how)
        if progress is not None:
            progress(done, len(sizes))
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


def _nested(
    enrol: FloatArray,
    test: FloatArray,
    place: IntArray,
    sides: tuple[IntArray, IntArray | None] | None,
    counts: IntArray,
) -> Iterator[tuple[Roc, tuple[IntArray, FloatArray]]]:
    """For ascending counts: the statistic, and per test speaker its target's bin and its counts of
    nontargets per bin.
    """

    def block(start: int, stop: int) -> FloatArray:
        scores = np.asarray(enrol[start:stop] @ test.T)
        if sides is not None and sides[1] is not None:
            scores[sides[0][start:stop, None] != sides[1]] = -np.inf
        return scores

    everyone = np.arange(len(test))
    target = np.empty(len(test))
    for start in range(0, len(enrol), _BLOCK):
        here = (place >= start) & (place < start + _BLOCK)
        scores = block(start, start + _BLOCK)
        target[here] = scores[place[here] - start, everyone[here]]
    edges = np.unique(np.quantile(target, np.linspace(0, 1, _BINS), method="inverted_cdf"))
    at = np.searchsorted(edges, target, side="right")
    bins = np.zeros((len(test), len(edges) + 1))
    roc: Roc | None = None
    done = 0
    for count in counts:
        for start, stop in _pieces(done, int(count) - 1):
            first = start - start % _BLOCK
            scores = block(first, first + _BLOCK)[start - first : stop - first]
            within = np.flatnonzero((place >= start) & (place < stop))
            _count(bins, everyone, np.searchsorted(edges, scores, side="right"))
            bins[within, at[within]] -= 1
            other = np.ones(scores.shape, dtype=bool)
            other[place[within] - start, within] = False
            if other.any():
                part = Roc.from_scores(target, scores[other])
                roc = part if roc is None else roc + part
        done = int(count) - 1
        inside = np.flatnonzero(place < done)
        whole, spread = roc, bins
        if inside.size:
            # The own speaker takes one of the first N' − 1 places: the next in order fills in.
            first = done - done % _BLOCK
            extra = block(first, first + _BLOCK)[done - first, inside]
            part = Roc.from_scores(target, extra)
            whole = part if whole is None else whole + part
            spread = bins.copy()
            _count(spread, inside, np.searchsorted(edges, extra, side="right"))
        assert whole is not None
        yield whole, (at, spread)


def _pieces(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that do not cross the grid of blocks."""
    while start < stop:
        end = min(stop, start - start % _BLOCK + _BLOCK)
        yield start, end
        start = end


def _count(bins: FloatArray, owner: IntArray, which: IntArray) -> None:
    flat = owner * bins.shape[1] + which
    bins += np.bincount(flat.ravel(), minlength=bins.size).reshape(bins.shape)


def _interval(
    histogram: tuple[IntArray, FloatArray], value: float, how: Resampling
) -> tuple[float, float]:
    """Percentile interval of 1 − EER over test speakers drawn with replacement."""
    at, nontarget = histogram
    speakers, size = nontarget.shape
    if speakers < 2 or how.replicates < 1:
        return np.nan, np.nan
    rng = np.random.default_rng(np.random.SeedSequence(how.seed))
    own = np.zeros(nontarget.shape)
    own[np.arange(speakers), at] = 1.0
    scores, gaps = np.arange(size, dtype=np.float64), np.zeros(size + 1)

    def binned(times: FloatArray) -> list[float]:
        return [
            1 - equal_error(Roc(scores, target, weighted, gaps).hull)[0]
            for target, weighted in zip(times @ own, times @ nontarget, strict=True)
        ]

    replicates: list[float] = []
    while len(replicates) < how.replicates:
        rows = min(_REPLICATES, how.replicates - len(replicates))
        drawn = rng.integers(0, speakers, (rows, speakers)) + np.arange(rows)[:, None] * speakers
        times = np.bincount(drawn.ravel(), minlength=rows * speakers).reshape(rows, speakers)
        replicates += binned(times.astype(np.float64))
    low, high = percentiles(np.array(replicates)[:, None], how.level)
    move = value - binned(np.ones((1, speakers)))[0]
    return float(np.clip(low[0] + move, 0, 1)), float(np.clip(high[0] + move, 0, 1))
