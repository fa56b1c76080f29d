"""After a kill or a failed write the next run gives the same bytes (``fuzz.faults``)."""

import pytest
from fuzz.faults import TRIALS, Trial

from unmask.run import job, write_whole


@pytest.mark.parametrize(("name", "every"), [("embed", 3), ("anonymise", 5), ("state", 8)])
def test_after_a_kill_or_a_full_disk_the_next_run_gives_the_same_bytes(
    name, every, tmp_path, monkeypatch
):
    pytest.importorskip("soundfile")
    monkeypatch.setattr(job, "SAVE_EVERY", 0.0)
    trial = TRIALS[name](tmp_path)
    trial.killed(every)
    trial.failed(every)
    assert trial.faults == []
    assert trial.kills > 1
    assert trial.failures > 0


def test_a_run_that_writes_in_place_is_seen(tmp_path):
    out = tmp_path / "out"

    def run():
        if (out / "a").exists():
            return
        with open(out / "a", "wb") as file:
            file.write(b"half ")
            file.flush()
            write_whole(out / "b", b"x")
            file.write(b"whole")

    trial = Trial("in place", out, run)
    trial.killed()
    assert any("other bytes in a" in line for line in trial.faults)
