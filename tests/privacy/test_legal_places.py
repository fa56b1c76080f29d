"""What is counted elsewhere, on other devices, or after a fault, is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from tests.helpers.populations import population

import unmask as um
from unmask.privacy.legal import (
    verification as legal_verification,
)
from unmask.privacy.legal.verification import ListCounts, _bins_of_codes
from unmask.run import NUMPY, Torch, executors, run_on

SPEAKERS = 1300
SWEEP = {
    "counts": [20, 500, SPEAKERS], "lengths": [1], "replicates": 40,
    "protocol": um.LegalProtocol(draws=2, folds=3, max_enrol=70, side=("gender",)),
    "attributes": ["gender"], "variants": ["plain", "negated"],
}  # fmt: skip


@pytest.fixture(scope="module")
def attackers():
    enrol = population(SPEAKERS, 1, noise=1.0, tag="e", columns=True)
    test = population(SPEAKERS, 2, noise=1.5, tag="t", columns=True)
    return {"original": um.Attacker(enrol, test)}


@pytest.fixture(scope="module")
def wanted(attackers):
    """Every estimate with its interval, to the last bit: more than one task for each metric."""
    with run_on(workers=1):
        return repr(um.assess_attackers(attackers, **SWEEP).estimates)


@pytest.mark.parametrize(
    "options",
    [{"workers": 3}, {"on": "processes", "workers": 2}, {"on": "dask", "workers": 2}],
    ids=lambda options: options.get("on", "local"),
)
def test_a_sweep_elsewhere_is_the_same_sweep(attackers, wanted, options, monkeypatch):
    if options.get("on") == "dask":
        pytest.importorskip("distributed")
    opened = []
    really = executors.Place._open
    monkeypatch.setattr(
        executors.Place, "_open", lambda self, n: opened.append(self.on) or really(self, n)
    )
    with run_on(**options):
        assert repr(um.assess_attackers(attackers, **SWEEP).estimates) == wanted
    elsewhere = [on for on in opened if on != "local"]
    assert len(elsewhere) == ("on" in options), "one place serves all jobs of a sweep"


@pytest.mark.parametrize("kept", [False, True])
def test_a_sweep_on_devices_is_the_same_sweep(attackers, wanted, kept, tmp_path):
    pytest.importorskip("torch")
    with run_on("cuda", devices=["cpu", "cpu"], state=tmp_path if kept else None):
        result = um.assess_attackers(attackers, **SWEEP)
    assert repr(result.estimates) == wanted
    assert not kept or len(list(tmp_path.iterdir())) == 4


KILLED = """
import os, signal, sys, time
from tests.helpers.populations import population
from tests.privacy.test_legal_places import SPEAKERS, SWEEP
import unmask as um
from unmask.privacy.legal.isolating_kernel import Attempts
from unmask.run import job, run_on

attack, tried = Attempts.attack, []


def dying(*arguments):
    tried.append(1)
    if len(tried) > 2:
        time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGKILL)
    return attack(*arguments)


Attempts.attack = dying
job.SAVE_EVERY = 0.0
enrol = population(SPEAKERS, 1, noise=1.0, tag="e", columns=True)
test = population(SPEAKERS, 2, noise=1.5, tag="t", columns=True)
metrics = ["linkability", "singling_out", "one_minus_eer"]
with run_on(workers=1, state=sys.argv[1]):
    um.assess_attackers({"original": um.Attacker(enrol, test)}, **SWEEP, metrics=metrics)
"""


def test_a_sweep_that_is_killed_goes_on(attackers, wanted, tmp_path):
    script, state = tmp_path / "killed.py", tmp_path / "state"
    script.write_text(textwrap.dedent(KILLED))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, script, state], env=environment)
    assert ended.returncode == -signal.SIGKILL
    done = {path: path.stat().st_mtime_ns for path in state.glob("*/results-*.npz")}
    assert len(done) == 4, "three tasks of Linkability and one of three of Singling Out"
    with run_on("processes", workers=1, state=state):
        result = um.assess_attackers(attackers, **SWEEP)
    assert repr(result.estimates) == wanted
    assert {path: path.stat().st_mtime_ns for path in done} == done


@pytest.mark.parametrize("sides", [False, True])
@pytest.mark.parametrize("levels", [None, 3])
def test_lists_are_counted_alike_on_a_device(sides, levels, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(legal_verification, "_DEVICE_SCORES", 5_000)
    rng = np.random.default_rng(2)
    enrol, test = rng.normal(size=(1100, 4)), rng.normal(size=(300, 4))
    if levels:
        enrol, test = np.round(enrol * levels), np.round(test * levels)
    place = np.sort(rng.choice(1100, 300, replace=False))
    codes = (rng.integers(0, 2, 300), rng.integers(0, 2, 1100)) if sides else None
    groups = rng.integers(0, 5, 1100)
    groups[:5] = np.arange(5)
    list_sizes = np.array([1, 19, 300, 1099])
    lists = ListCounts(
        enrol, test, codes and codes[::-1], true=place, list_sizes=list_sizes, enrol_group=groups
    )
    scores = test @ enrol.T
    if sides:
        scores[codes[0][:, None] != codes[1]] = -np.inf
    own = legal_verification.own_scores(NUMPY, lists, (0, 300))["own"]
    assert own == pytest.approx(scores[np.arange(300), place], abs=1e-12)
    there = legal_verification.own_scores(Torch("cpu"), lists, (0, 300))["own"]
    assert there == pytest.approx(own, abs=1e-12)
    knots, which = np.unique(own, return_inverse=True)
    lists = replace(lists, knots=knots, bin_of_code=_bins_of_codes(knots, which, 16))
    whole = legal_verification.count_lists(NUMPY, lists, (0, 300))
    pair_bins = 0
    for rows in [(0, 256), (256, 300)]:
        one = legal_verification.count_lists(NUMPY, lists, rows)
        other = legal_verification.count_lists(Torch("cpu"), lists, rows)
        pair_bins = pair_bins + one["pair_bins"].astype(int)
        for name in ("counts", "pair_bins", "joining_score"):
            assert one[name].tolist() == other[name].tolist(), name
    assert pair_bins.tolist() == whole["pair_bins"].tolist()
    assert whole["pair_bins"].sum(axis=(1, 2, 3)).tolist() == whole["counts"].sum(axis=1).tolist()
    others = scores.copy()
    others[np.arange(300), place] = np.nan
    for n, (start, stop) in enumerate([(0, 1), (1, 19), (19, 300), (300, 1099)]):
        part = others[:, start:stop]
        met = [int((part == knot).sum()) for knot in knots[:40]]
        assert whole["counts"][n, 1:80:2].tolist() == met
        assert whole["counts"][n].sum() == np.isfinite(part).sum() + (part == -np.inf).sum()
        assert (whole["joining_score"][n] >= 0).tolist() == (place < stop).tolist()
