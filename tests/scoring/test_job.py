"""A job gives the same results in the same order wherever it runs, and goes on after a fault."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from functools import partial

import pytest
from jobs import NUMBERS, RANGES, Numbers, dies_late, fails_late, on_device, times, total

import unmask as um
from unmask.run import job
from unmask.run.cuda import on_devices
from unmask.run.job import Where, run


def sums(results):
    return [float(result["sum"]) for result in results]


@pytest.mark.parametrize("on", ["local", "processes", "dask"])
@pytest.mark.parametrize("kept", [False, True])
def test_all_places_give_the_same_in_order(on, kept, tmp_path):
    if on == "dask":
        pytest.importorskip("distributed")
    wanted = [float(NUMBERS.values[slice(*rows)].sum()) for rows in RANGES]
    told = []
    where = Where(on, 2, tmp_path if kept else None)
    found = run(total, NUMBERS, RANGES, where=where, progress=lambda *n: told.append(n))
    assert sums(found) == wanted
    assert told == [(n, len(RANGES)) for n in range(1, len(RANGES) + 1)]


def test_a_partial_finds_its_way(tmp_path):
    doubled = run(partial(times, 2.0), NUMBERS, RANGES, where=Where("processes", 1))
    single = run(partial(times, 1.0), NUMBERS, RANGES, where=Where(state=tmp_path))
    assert [2 * value for value in sums(single)] == sums(doubled)


def test_what_is_done_is_not_done_again(tmp_path):
    with pytest.raises(um.InputError, match=r"memory.*; (8|9) of 15 blocks are done") as told:
        list(run(fails_late, NUMBERS, RANGES, where=Where("local", 1, tmp_path)))
    assert "\n" not in str(told.value)
    folder = next(path for path in tmp_path.iterdir())
    done = len(list(folder.glob("result-*.npz")))
    assert done >= 8
    numbers = []
    with pytest.raises(um.InputError):
        list(
            run(
                fails_late, NUMBERS, RANGES, where=Where("local", 1, tmp_path),
                progress=lambda *n: numbers.append(n),
            )
        )  # fmt: skip
    assert not numbers or numbers[0][0] > done


@pytest.mark.parametrize("state", [True, False])
def test_a_killed_process_is_one_line_and_the_same_call_goes_on(state, tmp_path):
    kept = tmp_path / "state" if state else None
    work = partial(dies_late, str(tmp_path))
    where = Where("processes", 1, kept)
    with pytest.raises(um.InputError, match="the same command goes on from there"):
        list(run(work, NUMBERS, RANGES, where=where))
    told = []
    found = run(work, NUMBERS, RANGES, where=where, progress=lambda *n: told.append(n))
    assert sums(found) == sums(run(total, NUMBERS, RANGES))
    assert told[0][0] > 1


def test_the_whole_run_is_killed_and_goes_on(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, signal, sys
            sys.path[:0] = sys.argv[2:]
            from jobs import NUMBERS, RANGES, total
            from unmask.run.job import Where, run
            where = Where("local", 1, sys.argv[1])
            for n, _ in enumerate(run(total, NUMBERS, RANGES, where=where)):
                if n == 4:
                    os.kill(os.getpid(), signal.SIGKILL)
            """
        )
    )
    here = os.path.dirname(__file__)
    state = tmp_path / "state"
    path = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *sys.path])}
    ended = subprocess.run([sys.executable, script, state, here], env=path)
    assert ended.returncode == -signal.SIGKILL
    folder = next(path for path in state.iterdir())
    assert len(list(folder.glob("result-*.npz"))) >= 5
    found = run(total, NUMBERS, RANGES, where=Where("local", 1, state))
    assert sums(found) == sums(run(total, NUMBERS, RANGES))


def test_a_vanished_folder_is_named(tmp_path):
    job._opened.cache_clear()
    with pytest.raises(um.InputError, match="expected the arrays of a job, found none"):
        job._opened(Numbers, str(tmp_path))


def test_too_little_disk_is_known_before(monkeypatch, tmp_path):
    full = type("Usage", (), {"free": 10})
    monkeypatch.setattr("shutil.disk_usage", lambda folder: full)
    with pytest.raises(um.InputError, match=r"of free disk for the rows to work on, found 0.00 GB"):
        list(run(total, NUMBERS, RANGES, where=Where(state=tmp_path)))


def test_places_are_checked_when_they_are_named(monkeypatch):
    with pytest.raises(um.InputError, match="found moon"):
        Where("moon")
    with pytest.raises(um.InputError, match="workers: expected 1 or more"):
        Where(workers=0)
    monkeypatch.setattr(job, "devices", lambda: ["cuda:0"])
    with pytest.raises(um.InputError, match="found cuda"):
        list(run(total, NUMBERS, RANGES, where=Where("cuda")))


@pytest.mark.parametrize("kept", [False, True])
def test_several_devices_share_the_ranges(monkeypatch, kept, tmp_path):
    monkeypatch.setattr(job, "devices", lambda: ["one", "two", "three"])
    where = Where("cuda", None, tmp_path if kept else None)
    found = list(run(total, NUMBERS, RANGES, where=where, on_device=on_device))
    assert sums(found) == sums(run(total, NUMBERS, RANGES))
    assert {str(result["device"]) for result in found} <= {"one", "two", "three"}


def test_a_device_that_fails_is_heard():
    def broken(device):
        raise um.InputError("device: on fire")

    with pytest.raises(um.InputError, match="on fire"):
        list(on_devices(broken, RANGES, ["one", "two"]))


def test_one_run_at_a_time_in_a_state(tmp_path):
    first = run(total, NUMBERS, RANGES, where=Where(state=tmp_path))
    next(first)
    with pytest.raises(um.InputError, match="another run is at work there"):
        list(run(total, NUMBERS, RANGES, where=Where(state=tmp_path)))
    first.close()


@pytest.mark.parametrize("on", ["cuda", "dask://localhost:8786"])
def test_workers_without_effect_are_refused(on):
    with pytest.raises(um.InputError, match="which has workers of its own"):
        Where(on, 2)
