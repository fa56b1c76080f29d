"""The GPU's adapter, with the kernel replaced by its definition: torch on the CPU, no triton."""

from __future__ import annotations

import contextlib
import sys
import types

import numpy as np
import pytest

import unmask as um
from unmask.scoring import cross, on_cuda

torch = pytest.importorskip("torch")


def cross_pairing(*sets, **options):
    """With few replicates: their number is none of the questions here."""
    return um.cross_pairing(*sets, **{"replicates": 20, **options})


def count_nontargets(enrol, test, one, other, knots, *, symmetric, rows):
    """What the kernel counts, from the whole matrix."""
    scores = (enrol @ test.T).numpy()
    counted = (one[:, None] != other[None, :]).numpy()
    if symmetric:
        counted &= np.triu(np.ones_like(counted), 1)
    counted[: rows[0]] = counted[rows[1] :] = False
    found = np.sort(scores[counted])
    below = np.searchsorted(found, knots.numpy())
    upto = np.searchsorted(found, knots.numpy(), side="right")
    between = np.diff(np.concatenate([[0], np.stack([below, upto], 1).ravel(), [found.size]]))[::2]
    return types.SimpleNamespace(equal=upto - below, between=between)


@pytest.fixture
def devices(monkeypatch):
    kernel = types.ModuleType("unmask.scoring.cuda_roc")
    kernel.count_nontargets = count_nontargets
    monkeypatch.setitem(sys.modules, "unmask.scoring.cuda_roc", kernel)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())

    def use(number):
        for module in (on_cuda, cross):
            monkeypatch.setattr(module, "devices", lambda: ["cpu"] * number)

    return use


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("pairs", ["all", "enrolment-fixed"])
def test_all_devices_together_count_what_the_cpu_counts(embeddings, devices, pairs, number):
    devices(number)
    battery = um.Battery(p_target=(0.5, 0.45))
    wanted = cross_pairing(embeddings, pairs=pairs, battery=battery).results[0]
    found = cross_pairing(embeddings, pairs=pairs, battery=battery, on="cuda").results[0]
    assert found["eer"].n == wanted["eer"].n
    for one, other in zip(found.estimates, wanted.estimates, strict=True):
        assert one.no_interval == other.no_interval
        if one.metric != "tag":
            assert one.value == pytest.approx(other.value, abs=1e-6), one.metric
        if other.interval is not None:
            ends = one.interval.low, one.interval.high
            expected = other.interval.low, other.interval.high
            assert ends == pytest.approx(expected, abs=1e-5, nan_ok=True), one.metric


def test_llrs_have_no_bounds(embeddings, devices):
    devices(1)
    backend = um.Plda.fit(embeddings)
    wanted = cross_pairing(embeddings, backend=backend).results[0]
    found = cross_pairing(embeddings, backend=backend, on="cuda").results[0]
    for metric in ("eer", "act_dcf", "cllr", "min_dcf"):
        assert found[metric].value == pytest.approx(wanted[metric].value, abs=1e-5), metric
