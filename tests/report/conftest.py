from __future__ import annotations

import pytest
from report_study import make


@pytest.fixture
def study(tmp_path):
    """A folder with data and a config."""
    return make(tmp_path)


@pytest.fixture(scope="module", autouse=True)
def extrapolations_are_quick(quick_extrapolation):
    """Reports need an extrapolation, whichever."""
