"""Worst-case false alarms on a CUDA device, in plain torch: the same counts, ranks and weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unmask.run import Arrays, Range, ranges_of, tensor
from unmask.stress.worst_case.flat import FlatPairs
from unmask.stress.worst_case.kernels import Deleted, above_of, closest_weights
from unmask.stress.worst_case.voices import Likeness, Voices

SCORES = 1 << 26


def surfaces_of_pairs_on_device(pairs: FlatPairs, device: str) -> Callable[[Range], Arrays]:
    """Scores of pairs counted on the device; ranked here."""
    import torch

    levels, width = tensor(pairs.levels, device), pairs.levels.size + 1

    def compute(targets: Range) -> Arrays:
        begin, end = pairs.first[targets[0]], pairs.first[targets[1]]
        bounds = pairs.start[begin : end + 1]
        pair = torch.repeat_interleave(tensor(np.diff(bounds), device))
        scores = tensor(pairs.scores[bounds[0] : bounds[-1]], device)
        cell = torch.bucketize(scores, levels) + pair * width
        table = torch.bincount(cell, minlength=(end - begin) * width).cpu().numpy()
        above = above_of(table.reshape(-1, width))
        parts = np.split(above, pairs.first[targets[0] + 1 : targets[1]] - begin)
        ranked = (
            pairs.ranked(target, part) for target, part in zip(range(*targets), parts, strict=True)
        )
        return pairs.surfaces(ranked, targets)

    return compute


def similarity_range_on_device(likeness: Likeness, device: str) -> Callable[[Range], Arrays]:
    """Lowest and highest similarity of some targets' pairs."""
    similarity = _similarity(likeness, device)

    def compute(targets: Range) -> Arrays:
        import torch

        values, allowed = similarity(targets)
        return {
            "low": np.asarray(float(values.masked_fill(~allowed, torch.inf).min())),
            "high": np.asarray(float(values.masked_fill(~allowed, -torch.inf).max())),
        }

    return compute


def surfaces_of_voices_on_device(voices: Voices, device: str) -> Callable[[Range], Arrays]:
    """P_FA^N(τ) of some targets."""
    import torch

    others = tensor(voices.others, device)
    levels, width = tensor(voices.levels, device), voices.levels.size + 1
    speaker = torch.repeat_interleave(tensor(voices.sizes, device))
    sizes = tensor(voices.sizes, device)
    similarity = _similarity(voices, device)
    weights: dict[int, Any] = {}
    step = max(1, SCORES // len(voices.others))

    def count(targets: Range) -> Any:
        first, last = (int(edge) for edge in voices.edges[list(targets)])
        cells = (targets[1] - targets[0]) * voices.speakers * width
        table = torch.zeros(cells, dtype=torch.int64, device=device)
        for top, bottom in ranges_of(last - first, step):
            rows = slice(first + top, first + bottom)
            cell = torch.bucketize(tensor(voices.enrol[rows], device) @ others.T, levels)
            cell += speaker * width
            cell += (speaker[rows] - targets[0])[:, None] * (voices.speakers * width)
            table += torch.bincount(cell.view(-1), minlength=cells)
        exceeded = table.view(-1, voices.speakers, width).flip(2).cumsum(2)
        return exceeded[:, :, :-1].flip(2)

    def compute(targets: Range) -> Arrays:
        above = count(targets)
        values, allowed = similarity(targets)
        values.masked_fill_(~allowed, -torch.inf)
        ordered, order = values.sort(dim=1, descending=True)
        own = sizes[slice(*targets)]
        trials = own[:, None] * sizes[order]
        ranked = above.gather(1, order[:, :, None].expand_as(above))
        rates = _averaged(ranked.double() / trials[:, :, None], ordered, float(voices.tie))
        impostors = allowed.sum(dim=1)
        each = torch.empty((len(own), voices.counts.size, width - 1), dtype=torch.float64)
        for size in impostors.unique().tolist():
            if size not in weights:
                weights[size] = tensor(closest_weights(size, voices.counts), device)
            some = impostors == size
            each[some.cpu()] = (weights[size] @ rates[some, :size]).cpu()
        found = {"each": each.clamp(0, 1).numpy()}
        if voices.group is None or voices.fewer is None:
            return found
        deleted = Deleted(int(voices.group.max()) + 1, voices.fewer, width - 1)
        who, many = order.cpu().numpy(), impostors.cpu().tolist()
        for target, size, some in zip(range(*targets), many, rates.cpu().numpy(), strict=True):
            group = voices.group[who[target - targets[0], :size]]
            deleted.add(some[:size], group, int(voices.group[target]))
        return found | {"without": deleted.total}

    return compute


def _averaged(rates: Any, ordered: Any, tie: float) -> Any:
    """Rates (targets, ranks, levels) where every rank of equally close impostors has their mean."""
    import torch

    apart = ordered[:, :-1] - ordered[:, 1:] > tie
    if bool((apart | (ordered[:, 1:] == -torch.inf)).all()):
        return rates
    run = torch.nn.functional.pad(apart.cumsum(dim=1), (1, 0))
    size = torch.zeros_like(ordered).scatter_add_(1, run, torch.ones_like(ordered))
    wide = run[:, :, None].expand_as(rates)
    total = torch.zeros_like(rates).scatter_add_(1, wide, rates)
    return total.gather(1, wide) / size.gather(1, run)[:, :, None]


def _similarity(likeness: Likeness, device: str) -> Callable[[Range], tuple[Any, Any]]:
    """Mean scores of some targets with everybody, and who may be an impostor."""
    import torch

    target_means = tensor(likeness.target_means, device)
    impostor_means = tensor(likeness.impostor_means, device)
    sizes = tensor(likeness.paired, device)
    everybody = torch.arange(likeness.speakers, device=device)

    def compute(targets: Range) -> tuple[Any, Any]:
        some = slice(*targets)
        allowed = sizes[some, None] * sizes > 1
        allowed &= everybody[some, None] != everybody
        return target_means[some] @ impostor_means.T, allowed

    return compute
