"""Examples in the docstrings of public names print what they say."""

import doctest

import pytest

import unmask as um
from unmask import _NAMES

PUBLIC = sorted(set(_NAMES["engine"].split()) - {"calibrate"})


@pytest.mark.parametrize("name", PUBLIC)
def test_example(name):
    public = getattr(um, name)
    text = public.__doc__
    for heading in ("Parameters\n", "Examples\n"):
        assert heading in text, heading
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
