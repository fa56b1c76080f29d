"""A job gives the same results in the same order wherever it runs, and goes on after a fault."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from functools import partial

import numpy as np
import pytest
from jobs import (
    NUMBERS,
    RANGES,
    add,
    broken,
    dies_late,
    fails_late,
    on_a_device,
    times,
    total,
)
from tests.helpers.notices import steady

import unmask as um
from unmask.run import accumulate, current_place, job, part, progress, run, run_on, store
from unmask.run.executors import available

WANTED = [float(NUMBERS[0][slice(*rows)].sum()) for rows in RANGES]


def sums(results):
    return [float(result["sum"]) for result in results]


def start():
    return {"sum": np.zeros(()), "rows": np.zeros((), np.int64)}


@pytest.mark.parametrize("on", ["local", "processes", "dask"])
@pytest.mark.parametrize("kept", [False, True])
def test_all_places_give_the_same_in_order(on, kept, tmp_path, shared_place):
    if on == "dask":
        pytest.importorskip("distributed")
    steps = []
    with (
        shared_place(on, tmp_path if kept else None),
        progress(lambda *step: steps.append(step)),
    ):
        assert sums(run(total, NUMBERS, RANGES)) == WANTED
        assert steps == [(n, len(RANGES)) for n in range(1, len(RANGES) + 1)]
        whole = accumulate(total, NUMBERS, RANGES, start(), add)
    assert (float(whole["sum"]), int(whole["rows"])) == (sum(WANTED), 100)


def test_parts_are_told_as_one():
    steps = []
    with progress(lambda *step: steps.append(step)):
        for index in range(2):
            with part(index, 2):
                list(run(total, NUMBERS, RANGES[:3]))
        with part(1, 2), part(0, 3), progress(None):
            list(run(total, NUMBERS, RANGES[:3]))
        with part(1, 2), part(0, 3):
            list(run(total, NUMBERS, RANGES[:1]))
    assert steps == [*((n, 6) for n in range(1, 7)), (4, 6)]


def test_a_partial_finds_its_way(tmp_path):
    with run_on("processes", workers=1):
        doubled = sums(run(partial(times, 2.0), NUMBERS, RANGES))
    with run_on(state=tmp_path):
        single = sums(run(partial(times, 1.0), NUMBERS, RANGES))
    assert [2 * value for value in single] == doubled


@pytest.mark.parametrize("every", [0.0, 5.0])
@pytest.mark.parametrize("summed", [False, True])
def test_what_is_done_is_not_done_again(every, summed, monkeypatch, tmp_path, sentences):
    monkeypatch.setattr(job, "SAVE_EVERY", every)

    def work(function):
        if summed:
            return accumulate(function, NUMBERS, RANGES, start(), add)
        return list(run(function, NUMBERS, RANGES))

    for _ in range(2):
        steps = []
        with (
            run_on(workers=1, state=tmp_path),
            progress(lambda *step: steps.append(step)),  # noqa: B023 - called within the turn
            pytest.raises(um.InputError) as raised,
        ):
            work(fails_late)
        assert re.search("(8|9) of 15 blocks", str(raised.value))
        sentences.check(steady(raised.value))
        assert "\n" not in str(raised.value)
    assert steps[0][0] >= 8


@pytest.mark.parametrize("state", [True, False])
def test_a_killed_process_is_one_line_and_the_same_call_goes_on(state, tmp_path, sentences):
    work = partial(dies_late, str(tmp_path))
    kept = tmp_path / "state" if state else None
    with (
        run_on("processes", workers=1, state=kept),
        pytest.raises(um.InputError) as error,
    ):
        list(run(work, NUMBERS, RANGES))
    sentences.check(steady(error.value))
    steps = []
    with run_on("processes", workers=1, state=kept), progress(lambda *step: steps.append(step)):
        assert sums(run(work, NUMBERS, RANGES)) == WANTED
    assert steps[0][0] > 1


def test_the_whole_run_is_killed_and_goes_on(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, signal, sys
            sys.path[:0] = sys.argv[2:]
            from jobs import NUMBERS, RANGES, total
            from unmask.run import job, run_on, run
            job.SAVE_EVERY = 0.0
            with run_on(workers=1, state=sys.argv[1]):
                for n, _ in enumerate(run(total, NUMBERS, RANGES)):
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
    steps = []
    with run_on(workers=1, state=state), progress(lambda *step: steps.append(step)):
        assert sums(run(total, NUMBERS, RANGES)) == WANTED
    assert steps[0][0] >= 5


def test_arrays_that_are_one_stay_one_and_are_mapped(tmp_path):
    values = np.arange(6.0).reshape(2, 3)
    shared = {"one": values, "two": (values, None, 0.5, float("inf"), "name")}
    store.write_folder(tmp_path, shared, "rows")
    again = store.read_folder(tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 1
    assert again["one"] is again["two"][0]
    assert again["two"][1:] == shared["two"][1:]
    assert not again["one"].flags.writeable


def test_a_vanished_folder_is_named(tmp_path, sentences):
    with pytest.raises(um.InputError) as error:
        store.read_folder(tmp_path)
    sentences.check(steady(error.value))


def test_too_little_disk_is_known_before(monkeypatch, sentences):
    full = type("Usage", (), {"free": 10})
    monkeypatch.setattr("shutil.disk_usage", lambda folder: full)
    with (
        run_on("processes", workers=1),
        pytest.raises(um.InputError) as error,
    ):
        list(run(total, NUMBERS, RANGES))
    sentences.check(steady(error.value))


def test_places_are_checked_when_they_are_named(sentences):
    with pytest.raises(um.InputError, match="found moon"), run_on("moon"):
        pass
    with pytest.raises(um.InputError) as error, run_on(workers=0):
        pass
    sentences.check(steady(error.value))
    assert current_place().on == "local"


@pytest.mark.parametrize("kept", [False, True])
def test_several_devices_share_the_ranges(kept, tmp_path):
    pytest.importorskip("torch")
    names = ["cpu", "cpu:0"]
    with run_on("cuda", devices=names, state=tmp_path if kept else None):
        results = list(run(on_a_device, NUMBERS, RANGES))
    np.testing.assert_allclose(sums(results), WANTED)
    assert {str(result["device"]) for result in results} <= set(names)


def test_a_device_that_fails_is_heard():
    pytest.importorskip("torch")
    with run_on("cuda", devices=["cpu"]), pytest.raises(um.InputError, match="on fire"):
        list(run(broken, NUMBERS, RANGES))


def test_one_run_at_a_time_in_a_state(tmp_path, sentences):
    with run_on(state=tmp_path):
        first = run(total, NUMBERS, RANGES)
        next(first)
        with pytest.raises(um.InputError) as error:
            list(run(total, NUMBERS, RANGES))
        sentences.check(steady(error.value))
        first.close()


@pytest.mark.parametrize("on", ["cuda", "dask://localhost:8786"])
def test_workers_without_effect_are_refused(on, sentences):
    with pytest.raises(um.InputError) as error, run_on(on, workers=2):
        pass
    sentences.check(steady(error.value))


def test_without_an_affinity_there_is_a_worker_for_each_processor(monkeypatch):
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert available(None) == 6
