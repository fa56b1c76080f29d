"""Maps of several systems for tests, and what changes from one to the next."""

from __future__ import annotations

from itertools import pairwise

import unmask as um
from unmask.stress import CpRoadmap


def roadmap(systems, *, edges=None, **options):
    """Each system after the one before it, or ``edges``; all of them order the trials, or given
    hardness.
    """
    pairs = list(systems.values())
    given = {"target_hardness": [pair[0] for pair in pairs]}
    given |= {"nontarget_hardness": [pair[1] for pair in pairs]} | options
    maps = {name: um.cp_map(*pair, system=name, **given) for name, pair in systems.items()}
    steps = pairwise(maps) if edges is None else edges
    deltas = [um.delta_cp_map(maps[old], maps[new]) for old, new in steps]
    return CpRoadmap(tuple(maps.values()), tuple(deltas))
