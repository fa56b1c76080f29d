"""How many modules a number passes on its way through the house; ``pytest -s`` prints the way."""

from __future__ import annotations

import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.populations import write_release
from tests.test_house import ORDER, SOURCE

from unmask.cli import main

SMALL = ("errors.py", "_extras.py", "estimate.py", "notices.py", "arrays.py")
"""Entered from everywhere."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_release(tmp_path, np.random.default_rng(0), 6, 4, 4)
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


COMMANDS = {
    "eval": ("eval", "scores", "--key", "trials", "--ci", "10", "-q"),
    "privacy": ("privacy", "--original", "o.npz", "--protected", "a=p.npz", "--ci", "10", "-q"),
    "legal": ("legal", "-a", "a=o.npz,p.npz", "--metrics", "linkability", "--ci", "10", "--counts",
              "2,6", "--lengths", "1", "--allow-shared-utterances", "-q"),
}  # fmt: skip
LOADED = """
import sys
from unmask.cli import main
try:
    main()
except SystemExit as left:
    assert left.code == 0
print(*(name for name in sys.modules if name.startswith("unmask")), file=sys.stderr)
"""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("command", "most"), [("eval", 36), ("privacy", 53), ("legal", 41)])
def test_the_way_of_a_number_is_short(monkeypatch, command, most):
    way = walk(monkeypatch, *COMMANDS[command])
    rooms = [name.split("/")[0] for name in way if name.split("/")[0] in ORDER]
    changes = sum(one != other for one, other in pairwise(rooms))
    print(f"{command}: {len(way)} modules, {changes} changes of room: {' → '.join(way)}")
    assert len(way) <= most


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("command", "most"), [("eval", 61), ("privacy", 85), ("legal", 81)])
def test_a_table_loads_its_own_rooms_alone(command, most):
    run = [sys.executable, "-c", LOADED, *COMMANDS[command]]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    print(f"{command} loads {len(loaded)} modules: {' '.join(loaded)}")
    assert len(loaded) <= most
    assert not [name for name in loaded if name.split(".")[1:2] in (["figures"], ["speech"])]
