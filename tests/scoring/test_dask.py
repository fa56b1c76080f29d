"""Blocks on a real dask cluster: the same numbers, and what happens when parts of it die."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
from jobs import NUMBERS, hungry_once, starving
from tests.helpers.notices import steady

import unmask as um
from unmask.run import dask_cluster, progress, ranges_of, run, run_on
from unmask.run.executors import Lost

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")


def cross_pairing(*sets, on="local", state=None, listener=None, **options):
    """With few replicates: their number is none of the questions here."""
    with run_on(on, state=state), progress(listener):
        return um.engine.cross_pairing(*sets, **{"replicates": 20, **options})


def table(evaluation):
    return [
        (e.metric, e.value, repr(e.interval), dict(e.n)) for e in evaluation.results[0].estimates
    ]


@pytest.fixture(scope="module")
def cluster():
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as made,
    ):
        yield made


@pytest.fixture
def address(cluster):
    cluster.scheduler.allowed_failures = 1
    return cluster.scheduler_address.replace("tcp://", "dask://")


def test_a_killed_worker_changes_nothing(embeddings, cluster, address, tmp_path):
    killed = []

    def kill(done, total):
        if done == 2 and not killed:
            killed.append(next(iter(cluster.workers.values())).process.pid)
            os.kill(killed[0], 9)

    result = cross_pairing(embeddings, on=address, block=1024, state=tmp_path, listener=kill)
    assert killed
    assert table(result) == table(cross_pairing(embeddings))


def test_other_versions_are_refused_before_any_work(
    embeddings, address, monkeypatch, tmp_path, sentences
):
    monkeypatch.setattr(dask_cluster, "__version__", "99.0")
    with pytest.raises(um.InputError) as error:
        cross_pairing(embeddings, on=address, state=tmp_path)
    assert "expected unmask 99.0," in str(error.value)
    sentences.check(steady(error.value))


def test_a_folder_that_workers_do_not_see(address, tmp_path, sentences):
    with (
        run_on(address) as there,
        there.executor() as workers,
        pytest.raises(um.InputError) as error,
    ):
        workers.check_folder(tmp_path / "nowhere")
    sentences.check(steady(error.value))


def test_a_block_that_kills_every_worker_is_one_line(cluster, address):
    def dies(xp, task):
        os._exit(9)

    with (
        run_on(address) as there,
        there.executor() as workers,
        pytest.raises(Lost, match="again and again"),
    ):
        list(workers.each(dies, [(0, 1)]))


def test_no_scheduler_at_the_address(embeddings, monkeypatch, sentences):
    monkeypatch.setattr(dask_cluster, "PATIENCE", 0.5)
    with pytest.raises(um.InputError) as error:
        cross_pairing(embeddings, on=f"dask://127.0.0.1:{free_port()}")
    sentences.check(steady(error.value).partition(" (")[0])


def test_a_scheduler_that_disappears_leaves_a_state(embeddings, tmp_path, monkeypatch, sentences):
    monkeypatch.setattr(dask_cluster, "PATIENCE", 4 * dask_cluster.PATIENCE)
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    command = [sys.executable, "-m", "distributed.cli.dask_"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    host = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    scheduler = subprocess.Popen([*command[:2], command[2] + "scheduler", *host], env=path, **quiet)
    worker = subprocess.Popen(
        [*command[:2], command[2] + "worker", address, "--no-nanny", "--nthreads", "1"],
        env=path,
        **quiet,
    )
    try:
        wait_for(address)

        def kill(done, total):
            if done == 2:
                os.kill(scheduler.pid, 9)

        with pytest.raises(um.InputError) as text:
            cross_pairing(
                embeddings, on=f"dask://127.0.0.1:{port}", block=1024, state=tmp_path, listener=kill
            )
        assert re.search("[2-5] of 6 blocks", str(text.value))
        sentences.check(steady(text.value))
        assert "\n" not in str(text.value)
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()
    done = []
    result = cross_pairing(
        embeddings, block=1024, state=tmp_path, listener=lambda *numbers: done.append(numbers)
    )
    assert done[0][0] >= 2
    assert table(result) == table(cross_pairing(embeddings))


def free_port():
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


def wait_for(address, *, seconds=120):
    """Until the scheduler answers and has its worker: both are slow to start on a busy machine."""
    last = time.monotonic() + seconds
    while True:
        try:
            with distributed.Client(address, timeout=5, set_as_default=False) as client:
                client.wait_for_workers(1, timeout=seconds)
            return
        except OSError:
            if time.monotonic() > last:
                raise
            time.sleep(0.2)


def test_a_worker_out_of_memory_changes_nothing(tmp_path):
    numbers = (np.random.default_rng(0).normal(size=1000),)
    ranges = ranges_of(1000, 50)
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        memory_limit="700MB",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as cluster:
        first = {worker.process.pid for worker in cluster.workers.values()}
        there = cluster.scheduler_address.replace("tcp://", "dask://")
        with run_on(there, state=tmp_path / "s"):
            outcome = run(partial(hungry_once, str(tmp_path)), numbers, ranges)
            sums = [float(result["sum"]) for result in outcome]
        assert (tmp_path / "starved").exists()
        assert {worker.process.pid for worker in cluster.workers.values()} != first
    assert sums == [float(numbers[0][slice(*rows)].sum()) for rows in ranges]


def test_a_block_too_large_for_all_workers_is_one_line(address, tmp_path, sentences):
    with (
        run_on(address, state=tmp_path),
        pytest.raises(um.InputError) as error,
    ):
        list(run(starving, NUMBERS, [(0, 10)]))
    assert " 0 of 1 blocks" in str(error.value)
    sentences.check(steady(error.value))
