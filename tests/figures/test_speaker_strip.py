from __future__ import annotations

import numpy as np
import pytest

from unmask.figures.legal import Strip, speaker_strip


def dots(risks):
    """Rows of the chart: one dot per speaker."""
    strips = [
        Strip(name, "a", [f"s{n}" for n in range(len(r))], np.array(r), np.full(len(r), 10), 0.1)
        for name, r in risks.items()
    ]
    spec = speaker_strip(strips, colours=dict.fromkeys(risks, "#000000")).spec()
    return next(iter(spec["datasets"].values())), spec["spec"]["layer"][1]["encoding"]


def test_dots_stand_exactly_at_their_risk_and_stack_upwards():
    risks = {"all": [1.0] * 60, "few": [0.0] * 33 + [0.1] * 15 + [0.2] * 8 + [0.6, 0.3, 0.33, 0.34]}
    rows, encoding = dots(risks)
    assert encoding["x"]["field"] == "risk"
    for name, expected in risks.items():
        own = [row for row in rows if row["system"] == name]
        assert [row["risk"] for row in own] == pytest.approx(expected)
    places = {(row["system"], row["risk"], row["lift"]) for row in rows}
    assert len(places) == len(rows)
    assert max(row["lift"] for row in rows) <= encoding["y"]["scale"]["domain"][1]


def test_a_number_counts_dots_that_overlap():
    rows, _ = dots({"all": [1.0] * 60})
    assert sorted(row["stack"] for row in rows)[-2:] == [0, 60]
    rows, _ = dots({"some": [0.1, 0.1, 0.5]})
    assert [row["stack"] for row in rows] == [0, 0, 0]
