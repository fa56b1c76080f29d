from __future__ import annotations

import pytest
from report_study import make

from unmask.report import headline


@pytest.fixture
def study(tmp_path):
    """A folder with data and a config."""
    return make(tmp_path)


@pytest.fixture
def noticed(monkeypatch):
    """Notices on what the latest assessment read: its report says them among the limits."""
    found = []

    def limits(cards, study, sections=()):
        found[:] = study.inputs.notices
        return headline.limits(cards, study, sections)

    monkeypatch.setattr("unmask.report.assessment.limits", limits)
    return found


@pytest.fixture(scope="module", autouse=True)
def extrapolations_are_quick(quick_extrapolation):
    """Reports need an extrapolation, whichever."""
