"""Pairs of speakers from what users have: score lists with speaker ids, embeddings, arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.engine import group_masks
from unmask.errors import InputError
from unmask.scoring import Backend, backend_named
from unmask.stress.impostors.pair_scores import PairScores, from_zero
from unmask.trials import Embeddings, Scores

Data = Scores | Embeddings | PairScores | npt.ArrayLike


def pairs(
    data: Data,
    *,
    system: str | None = None,
    both_ways: bool = True,
    backend: Backend | str = "cosine",
    per_pair: int | None = None,
    targets: int | None = None,
    attack: BoolArray | None = None,
    skip_single: bool = False,
    min_impostors: int | None = None,
) -> PairScores:
    """Scores by (target speaker, impostor speaker) of ``data``.

    Of :class:`Scores` these are the nontarget scores of ``system`` by enrolled and test speaker;
    ``both_ways`` counts a score for either speaker as the target, which suits symmetric systems and
    lists that hold each pair of speakers once.

    Of :class:`Embeddings` these are the scores by ``backend`` of all utterances of every two
    speakers, or ``per_pair`` of them: similarities are mean scores over all utterances even so.
    ``targets`` takes that many of the speakers as targets, spread evenly over the set; all the
    others remain their impostors. Of the utterances, ``attack`` marks those whose scores are kept;
    those of the others then choose (all of a speaker who has no others).

    An array is targets × impostors × scores. From all kinds ``skip_single`` leaves out pairs with
    one score, and targets that then have fewer than ``min_impostors`` go, if that is given.
    """
    if isinstance(data, Scores):
        if data.enrol_speaker is None or data.test_speaker is None:
            raise InputError("worst case: expected the speaker of each side of a trial, found none")
        rows = np.flatnonzero(data.is_nontarget)
        sides = data.enrol_speaker.take(rows), data.test_speaker.take(rows)
        made = PairScores.from_trials(*sides, data.scores(system)[rows], both_ways=both_ways)
    elif isinstance(data, Embeddings):
        scorer = backend_named(backend)
        vectors = scorer.prepare(data.vectors)
        present, codes = np.unique(data.speakers.codes, return_inverse=True)
        names = [str(data.speakers.names[int(code)]) for code in present]

        def block(speaker: int) -> FloatArray:
            return np.asarray(scorer.score_block(vectors[codes == speaker], vectors), np.float64)

        chosen = None if targets is None else evenly(len(names), targets)
        made = pairs_of_blocks(
            block, codes, names, per_pair=per_pair, targets=chosen, attack=attack
        )
    else:
        made = data if isinstance(data, PairScores) else PairScores.from_array(data)
    if skip_single:
        made = made.without_single_scores()
    return made if min_impostors is None else made.with_impostors(min_impostors)


def pairs_of_blocks(
    score: Callable[[int], FloatArray],
    speakers: IntArray,
    names: Sequence[str],
    *,
    per_pair: int | None = None,
    targets: IntArray | None = None,
    attack: BoolArray | None = None,
) -> PairScores:
    """From embeddings' scores: ``score(k)`` gives utterances of speaker k × all utterances.

    ``speakers`` holds each utterance's speaker code. ``per_pair`` keeps that many scores of a
    pair, spread evenly over its utterance pairs, beside the mean of all; by default all are kept.
    ``targets`` are the codes of the speakers that are targets, by default all. ``attack`` marks the
    utterances whose scores are kept, by default all; the others choose.
    """
    kept_rows = np.ones(speakers.size, dtype=np.bool_) if attack is None else attack
    order = np.flatnonzero(kept_rows)[np.argsort(speakers[kept_rows], kind="stable")]
    sizes = np.bincount(speakers[kept_rows], minlength=len(names))
    edges = from_zero(sizes)
    chooses = np.ones(speakers.size, dtype=np.bool_)
    if attack is not None:
        alone = np.bincount(speakers[~attack], minlength=len(names)) == 0
        chooses = ~attack | alone[speakers]
    choosing = np.bincount(speakers[chooses], minlength=len(names))
    chosen = np.arange(len(names)) if targets is None else targets
    kept: list[FloatArray] = []
    counts: list[IntArray] = []
    means: list[FloatArray] = []
    for k in chosen:
        whole = np.asarray(score(int(k)), dtype=np.float64)
        own = speakers == k
        block = whole[kept_rows[own]][:, order]
        rows = block.shape[0]
        total = rows * sizes
        take = total if per_pair is None else np.minimum(total, per_pair)
        take = np.where(np.arange(len(names)) == k, 0, take)
        other = np.repeat(np.arange(len(names)), take)
        place = np.arange(other.size) - from_zero(take)[other]
        row, column = place // sizes[other], place % sizes[other]
        if per_pair is not None:
            # Down the diagonals: utterances recur on either side as late as possible.
            row = place % rows
            column = (place + place // np.lcm(rows, sizes[other])) % sizes[other]
        kept.append(block[row, edges[other] + column])
        counts.append(take)
        sums = np.bincount(
            speakers[chooses], whole[chooses[own]][:, chooses].sum(axis=0), minlength=len(names)
        )
        means.append(sums / np.maximum(choosing[k] * choosing, 1))
    take = np.stack(counts)
    target, impostor = np.nonzero(take)
    return PairScores(
        np.concatenate(kept),
        from_zero(take[target, impostor]),
        target,
        impostor,
        tuple(names[int(k)] for k in chosen),
        tuple(names),
        means=None if per_pair is None and attack is None else np.stack(means)[target, impostor],
    ).checked_numbers()


def evenly(size: int, chosen: int) -> IntArray:
    """``chosen`` of ``size`` numbers in even steps, the first and the last included."""
    if chosen < 1:
        raise InputError(f"targets: expected at least 1, found {chosen}")
    return np.unique(np.rint(np.linspace(0, size - 1, min(chosen, size))).astype(np.int64))


def groups_of(
    data: Scores | Embeddings, by: str | None
) -> tuple[Mapping[str, Scores | Embeddings], tuple[str, ...]]:
    """Trials or utterances within each group of the column ``by`` (all without one).

    Also the names of groups of :class:`Scores` that have no target trials and are left out.
    """
    if by is None:
        return {"all": data}, ()
    if isinstance(data, Embeddings):
        if by not in data.columns:
            known = ", ".join(data.columns) or "none"
            raise InputError(f"no column {by} to group by: the columns are {known}")
        column = data.columns[by]
        codes = {str(column.names[int(code)]): code for code in column.used}
        return {name: data.select(column.codes == codes[name]) for name in sorted(codes)}, ()
    parts = {group: data.select(mask) for group, mask in group_masks(data, by)}
    left = sorted(group for group, part in parts.items() if not part.is_target.any())
    if len(left) == len(parts):
        raise InputError(f"by {by}: expected a group with target trials, found none")
    return {group: part for group, part in parts.items() if group not in left}, tuple(left)
