"""Files that once showed a fault, and a few seconds of new ones (``python -m fuzz``)."""

import time

import pytest
from fuzz.__main__ import CORPUS, Hunt, case, hunted, replay
from fuzz.targets import left_out, targets

from unmask.trials.readers import guard


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_kept_files_are_read_without_fault(path, tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "PATIENCE", 0.5)
    if path.name.split("-")[0] in targets():
        tries = 2 if path.name.startswith(("hdf5", "parquet")) else 6
        assert replay(path, tmp_path / "files", tries=tries) == ""


def test_a_case_is_known_by_its_number():
    (one, data, _), (other, same, _) = case(3, 41, ()), case(3, 41, ())
    assert (one.name, data) == (other.name, same)
    assert case(4, 41, ())[1] != data


def test_new_damage_shows_no_fault():
    names = [name for name in targets() if name not in ("hdf5", "card", "weights")]
    hunts = [Hunt(2026, names, quiet=True) for _ in range(2)]
    hunted(hunts, cases=701, seconds=60.0)
    assert [hunt.faults for hunt in hunts] == [[], []]
    assert [hunt.cases for hunt in hunts] == [350, 351]
    assert all(hunt.accepted + hunt.refused == hunt.cases for hunt in hunts)


def test_kinds_whose_library_is_missing_are_left_out_by_name(monkeypatch):
    monkeypatch.setattr("fuzz.targets.installed", lambda name: name != "safetensors")
    assert left_out() == {"card": "safetensors", "weights": "safetensors"}
    assert not {"card", "weights"} & targets().keys()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("time.sleep(60)", "no end after"),
        ("os.kill(os.getpid(), 11)", "the child ended: -11"),
        ("print(json.dumps([first, 'lost']), flush=True)", "lost"),
    ],
)
def test_hangs_and_crashes_are_seen_and_the_hunt_goes_on(tmp_path, monkeypatch, body, said):
    script = tmp_path / "child.py"
    script.write_text(
        "import json, os, struct, sys, time\n"
        "_, _, folder, state, seed, first, last = sys.argv\nfirst, last = int(first), int(last)\n"
        "open(state, 'wb').write(struct.pack('<qqqd', first, 0, 0, time.time()))\n"
        f"if first == 0:\n    {body}\n"
        "open(state, 'wb').write(struct.pack('<qqqd', last, 1, 2, time.time()))\n"
    )
    import fuzz.__main__ as fuzz

    started = fuzz.subprocess.Popen

    def start(command, **options):
        return started([command[0], str(script), *command[3:]], **options)

    monkeypatch.setattr(fuzz.subprocess, "Popen", start)
    monkeypatch.setattr(fuzz, "LONGEST", 1.0)
    hunt = Hunt(0, [], tmp_path / "kept", quiet=True)
    hunt.run(0, 3, time.monotonic() + 30.0)
    assert [number for number, _ in hunt.faults] == [0]
    assert said in hunt.faults[0][1]
    assert hunt.cases == 3
    assert len(list((tmp_path / "kept").iterdir())) == 1
    assert hunt.accepted == 1
