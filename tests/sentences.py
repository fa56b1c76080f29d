"""Sentences for people, held with their values in one file, ``tests/golden/sentences.json``.

A test asserts the *code* of a notice, or the number that a sentence tells. The sentence itself it
hands to the fixture ``sentences``::

    def test_few_people_are_named(sentences):
        result = um.linkability(...)
        assert [notice.code for notice in result.notices] == ["few-speakers"]
        sentences.check(*result.warnings)

The first run with ``--pin-sentences`` writes what was found, later runs compare. Whoever changes
words runs ``pytest --pin-sentences`` and reads the difference of one file: a wrong name or number
in it is as visible as in an assertion.
"""

from __future__ import annotations

import difflib
import fcntl
import json
from pathlib import Path

PINNED = Path(__file__).parent / "golden" / "sentences.json"


def read_pinned() -> dict[str, list[str]]:
    """Return the pinned sentences of every test that has some."""
    return json.loads(PINNED.read_text(encoding="utf-8")) if PINNED.exists() else {}


def write_pinned(found: dict[str, list[str]]) -> None:
    """Replace the sentences of the tests in ``found``; leave those of other tests as they are.

    Several workers of one run may write at once, so the file is locked meanwhile. Others read it
    without the lock, so the new text takes its place in one step.
    """
    with PINNED.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pinned = {**read_pinned(), **found}
        kept = {name: pinned[name] for name in sorted(pinned) if pinned[name]}
        text = json.dumps(kept, ensure_ascii=False, indent=1)
        new = PINNED.with_suffix(".new")
        new.write_text(text + "\n", encoding="utf-8")
        new.replace(PINNED)


class Sentences:
    """The sentences of one test, compared in order with those pinned for it.

    Attributes
    ----------
    test : str
        File and name of the test: the key in the file of pinned sentences.
    replaced : dict of str to str
        What differs between runs, such as a temporary folder, and the word that stands for it.
    is_pinning : bool
        Whether what is found replaces what is pinned.
    """

    def __init__(self, test: str, replaced: dict[str, str], is_pinning: bool) -> None:
        self.test = test
        self.replaced = replaced
        self.is_pinning = is_pinning
        self.found: list[str] = []
        self.pinned = read_pinned().get(test, [])

    def check(self, *texts: str) -> None:
        """Compare the next sentences of this test with those that are pinned for it."""
        for text in texts:
            for varying, word in self.replaced.items():
                text = text.replace(varying, word)
            position = len(self.found)
            self.found.append(text)
            if self.is_pinning:
                continue
            expected = self.pinned[position] if position < len(self.pinned) else "(none)"
            assert text == expected, self._difference(expected, text)

    def check_all(self) -> None:
        """Fail if sentences are pinned that the test did not show; pin what it showed if asked."""
        if self.is_pinning:
            write_pinned({self.test: self.found})
            return
        missing = self.pinned[len(self.found) :]
        assert not missing, f"{self.test}: pinned, but not found: {missing}"

    def _difference(self, expected: str, found: str) -> str:
        lines = difflib.ndiff(expected.splitlines(), found.splitlines())
        return "\n".join(
            [
                f"{self.test}: a sentence moved; if it should, pytest --pin-sentences takes it",
                *lines,
            ]
        )
