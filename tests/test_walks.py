"""How many modules a number passes on its way through the house; ``pytest -s`` prints the way."""

from __future__ import annotations

import sys
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.test_house import ORDER, SOURCE

from unmask.cli import main

SMALL = ("errors.py", "estimate.py", "notices.py", "arrays.py")
"""Entered from everywhere."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(6), 4)
    vectors = rng.normal(size=(6, 4))[codes] + 0.5 * rng.normal(size=(codes.size, 4))
    names = {
        "utt_ids": [f"u{i}" for i in range(codes.size)],
        "speaker_ids": [f"s{c}" for c in codes],
    }
    for name, noise in (("o", 0.0), ("p", 0.7)):
        np.savez(
            tmp_path / name, embeddings=vectors + noise * rng.normal(size=vectors.shape), **names
        )
    trials = [(i, j) for i in range(codes.size) for j in range(i)]
    key = [f"u{i} u{j} {'' if codes[i] == codes[j] else 'non'}target" for i, j in trials]
    scores = [f"u{i} u{j} {vectors[i] @ vectors[j]:.4f}" for i, j in trials]
    (tmp_path / "trials").write_text("\n".join(key) + "\n")
    (tmp_path / "scores").write_text("\n".join(scores) + "\n")
    monkeypatch.chdir(tmp_path)


def walk(monkeypatch, *arguments: str) -> list[str]:
    """Modules in the order in which a command first enters one of their functions."""
    entered: dict[str, None] = {}
    source = f"{SOURCE}/"

    def enter(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_name[0] != "<" and code.co_filename.startswith(source):
            entered.setdefault(code.co_filename.removeprefix(source))

    monkeypatch.setattr(sys, "argv", ["unmask", *arguments])
    for profile in (None, enter):  # the first time modules are loaded
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            with pytest.raises(SystemExit) as left:
                main()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        assert left.value.code == 0
    return [name for name in entered if Path(name).name not in SMALL]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("most", "arguments"),
    [
        (35, ("eval", "scores", "--key", "trials", "--ci", "10", "-q")),
        (46, ("privacy", "--original", "o.npz", "--protected", "a=p.npz", "--ci", "10", "-q")),
        (
            37,
            ("legal", "-a", "a=o.npz,p.npz", "--metrics", "linkability", "--ci", "10", "--counts",
             "2,6", "--lengths", "1", "--allow-shared-utterances", "-q"),
        ),
    ],
    ids=["eval", "privacy", "linkability"],
)  # fmt: skip
def test_the_way_of_a_number_is_short(monkeypatch, most, arguments):
    way = walk(monkeypatch, *arguments)
    rooms = [name.split("/")[0] for name in way if name.split("/")[0] in ORDER]
    changes = sum(one != other for one, other in pairwise(rooms))
    print(f"{arguments[0]}: {len(way)} modules, {changes} changes of room: {' → '.join(way)}")
    assert len(way) <= most
