from __future__ import annotations

import pytest
from typer.testing import CliRunner

from unmask.cli import app
from unmask.report.starter import SAFEGUARDS, demo_config
from unmask.trials import read_embeddings


def test_the_demo_is_an_assessment_of_the_bundled_voices(tmp_path):
    config = demo_config(tmp_path)
    assert [one.name for one in config.safeguards] == list(SAFEGUARDS)
    original = read_embeddings(tmp_path / "data" / "original.npz")
    assert (original.n_speakers, len(original)) == (60, 1200)
    assert "gender" in original.columns
    assert config.scores[0].files[0].is_file()


@pytest.mark.slow
def test_the_demo_leaves_a_report_and_prints_where(tmp_path):
    out = tmp_path / "here"
    done = CliRunner().invoke(app, ["demo", "--ci", "5", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == str(out / "report.html")
    assert "Pooling" in done.output
    assert "campplus" in done.output
    assert (out / "report.html").stat().st_size < 8_000_000
