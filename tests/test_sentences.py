"""Sentences that tests pin: one that moves is shown, one that is missing as well."""

from __future__ import annotations

import pytest
from tests import sentences as pinning
from tests.sentences import Sentences


@pytest.fixture
def pinned(tmp_path, monkeypatch):
    """A file of pinned sentences of its own, with two of one test."""
    monkeypatch.setattr(pinning, "PINNED", tmp_path / "sentences.json")
    first = Sentences("a.py::test", {"/today/x": "<folder>"}, is_pinning=True)
    first.check("5 of 60 people", "/today/x/a.txt: no such file")
    first.check_all()


@pytest.mark.usefixtures("pinned")
def test_the_same_sentences_pass_wherever_the_folder_is():
    again = Sentences("a.py::test", {"/else": "<folder>"}, is_pinning=False)
    again.check("5 of 60 people")
    again.check("/else/a.txt: no such file")
    again.check_all()


@pytest.mark.usefixtures("pinned")
def test_a_wrong_name_or_number_in_a_sentence_is_shown():
    again = Sentences("a.py::test", {}, is_pinning=False)
    with pytest.raises(AssertionError, match=r"- 5 of 60 people[\s\S]*\+ 6 of 60 people"):
        again.check("6 of 60 people")


@pytest.mark.usefixtures("pinned")
def test_a_sentence_that_is_missing_or_new_fails():
    fewer = Sentences("a.py::test", {}, is_pinning=False)
    fewer.check("5 of 60 people")
    with pytest.raises(AssertionError, match="pinned, but not found"):
        fewer.check_all()
    more = Sentences("a.py::other", {}, is_pinning=False)
    with pytest.raises(AssertionError, match="none"):
        more.check("never pinned")


@pytest.mark.usefixtures("pinned")
def test_pinning_one_test_leaves_others_alone():
    other = Sentences("b.py::test", {}, is_pinning=True)
    other.check("something")
    other.check_all()
    assert set(pinning.read_pinned()) == {"a.py::test", "b.py::test"}
