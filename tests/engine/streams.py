"""Both ways of reading score files, side by side."""

from __future__ import annotations

import re

import pytest

import unmask as um
from unmask.engine import streaming, units_of
from unmask.trials import large
from unmask.trials.readers import files, tables

UNLIKE = r"; (read in batches|\d+ spoof trials, a third class)"


def make_batches_tiny(monkeypatch: pytest.MonkeyPatch, *, rows: int = 300) -> None:
    """Everything that is done in parts is done in several."""
    monkeypatch.setattr(tables, "BATCH", rows)
    monkeypatch.setattr(large, "ROWS", 7 * rows // 6)
    monkeypatch.setattr(large, "PARTITION", rows)
    monkeypatch.setattr(files, "HEAD", 4096)
    monkeypatch.setattr(streaming, "HELD", 50)
    blocks = files.Input.blocks
    monkeypatch.setattr(files.Input, "blocks", lambda self: blocks(self, 20 * rows))


def at_once(paths, *, systems=None, **options):
    """The table from files read as a whole, or the error; speakers are checked as for intervals."""
    try:
        tables = [um.read_scores(path, systems=systems, **options) for path in paths]
        merged = tables[0] if len(tables) == 1 else um.Scores.merged(*tables)
        result = um.evaluate(merged, replicates=0, spoof=False)
        units_of(merged)
        return result
    except um.InputError as error:
        return str(error)


def in_batches(paths, **options):
    """The table from files read in batches, or the error."""
    try:
        return um.evaluate(paths, stream=True, **{"replicates": 0, **options})
    except um.InputError as error:
        return str(error)


def content(outcome):
    """What two evaluations must have in common, to the last bit."""
    if isinstance(outcome, str):
        return outcome
    rows = [
        (
            result.system,
            [
                (e.metric, e.value, e.unit, dict(e.n), e.threshold, e.signature)
                for e in result.estimates
            ],
        )
        for result in outcome
    ]
    sources = [
        (s.name, s.sha256, s.format, s.target, s.nontarget, s.missing, s.duplicates, s.speakers)
        for s in outcome.sources
    ]
    text = [re.sub(UNLIKE, "", source.detected) for source in outcome.sources]
    return rows, sources, text, outcome.warnings


def compare(*paths, **options):
    """Both ways give the same; returned is what the second gave."""
    result = in_batches(list(paths), **options)
    assert content(result) == content(at_once(paths, **options))
    return result
