"""Examples of docstrings run and print what they say."""

import doctest

import pytest

import unmask as um
from unmask.scoring import BACKENDS

NAMES = ["Backend", "Cosine", "Plda", "Sides", "Whitening", "calibrate", "fuse", "score"]
NAMES += ["register_backend"]


@pytest.mark.parametrize("name", NAMES)
def test_the_example_prints_what_it_says(name):
    (case,) = doctest.DocTestFinder(recurse=False).find(getattr(um, name), name, globs={})
    assert case.examples
    found = doctest.DocTestRunner().run(case)
    BACKENDS.pop("my-cosine", None)
    assert not found.failed
