"""Worst-case false alarms counted elsewhere are the same, and go on after a fault."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.worst_case import COUNTS, FEW, MANY, same, voices

import unmask as um
from unmask.run import progress, run_on
from unmask.stress.impostors import rates as worst_case_rates, voices as worst_case_voices

OPTIONS = {"counts": COUNTS, "protocol": um.ImpostorProtocol(split=False)}


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    monkeypatch.setattr(worst_case_voices, "ROWS", 40)
    monkeypatch.setattr(worst_case_rates, "SCORES", 4000)
    monkeypatch.setattr(worst_case_voices, "_DEVICE", 1000)


def straight(data, thresholds=FEW, **options):
    return um.worst_case(data, thresholds, **(OPTIONS | options))


def in_memory(data, thresholds=FEW, **options):
    return um.worst_case(um.stress.speaker_pairs(data), thresholds, **(OPTIONS | options))


@pytest.mark.parametrize("way", [straight, in_memory])
@pytest.mark.parametrize("thresholds", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("twins", [True, False])
def test_a_device_counts_and_ranks_the_same(monkeypatch, way, thresholds, twins):
    pytest.importorskip("torch")
    monkeypatch.setattr(worst_case_voices, "FEW_SPEAKERS", 3)
    data = voices()
    if not twins:
        name = data.speakers.to_series().to_numpy()
        data = data.select(~np.isin(name, ["s1", "s5"]))
    with run_on("cuda", devices=["cpu"]):
        result = way(data, thresholds)
    same(result, way(data, thresholds), tolerance=1e-9)


def test_a_device_keeps_to_a_proxy_a_plda_and_pairs_with_two_scores():
    pytest.importorskip("torch")
    data = voices(least=1, most=3, seed=8)
    options = {
        "counts": [1, 9],
        "proxy": voices(dimension=7, seed=3),
        "protocol": um.ImpostorProtocol(backend=um.Plda.fit(data), skip_single=True),
    }
    wanted = um.worst_case(data, [-2.0, 1.0], **options)
    with run_on("cuda", devices=["cpu"]):
        result = um.worst_case(data, [-2.0, 1.0], **options)
    same(result, wanted, tolerance=1e-9)


@pytest.mark.parametrize("way", [straight, in_memory])
def test_a_run_that_was_stopped_goes_on(way, tmp_path):
    data = voices()

    def unplug(done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), run_on(workers=1, state=tmp_path), progress(unplug):
        way(data)
    seen = []
    with run_on(state=tmp_path), progress(lambda *numbers: seen.append(numbers)):
        result = way(data)
    same(result, way(data), tolerance=0)
    assert seen[0][0] >= 3
    assert seen[-1][0] == seen[-1][1]


def test_progress_counts_the_tasks_whatever_the_workers():
    data = voices()
    numbers = []
    for workers in (1, 3):
        seen = []
        with run_on(workers=workers), progress(lambda *n, seen=seen: seen.append(n)):
            straight(data)
        numbers.append(seen)
    assert numbers[0] == numbers[1]
    assert numbers[0][-1] == (len(numbers[0]),) * 2
