from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from typer.testing import CliRunner

from unmask.assessment import starter
from unmask.assessment.starter import demo_config
from unmask.cli import app
from unmask.data import demo_scores
from unmask.report import writing
from unmask.speech import case_study, case_study_subset
from unmask.trials import read_embeddings, read_scores, write


def test_the_demo_is_an_assessment_of_the_bundled_voices(tmp_path):
    config = demo_config(tmp_path)
    names = ["B2", "B2r", "B2w", "Pooling", "B1", "Pitch", "Restate"]
    assert [one.name for one in config.safeguards] == names
    original = read_embeddings(tmp_path / "data" / "original.npz")
    assert (original.n_speakers, len(original)) == (60, 1200)
    assert "gender" in original.columns
    assert config.scores[0].files[0].is_file()


@pytest.fixture
def some_voices(monkeypatch, tmp_path):
    """A dozen of the sixty with every second utterance, three of the safeguards and one encoder:
    the report is that of all in small. Files of figures stay empty.
    """
    monkeypatch.setattr(writing, "images", lambda _, kinds: dict.fromkeys(kinds, b""))
    voices = case_study()
    names = sorted(set(voices["original"].speakers.to_series()))[::5]
    kept = voices["original"].speakers.to_series().is_in(names).to_numpy()
    kept &= np.arange(kept.size) % 2 == 0
    with demo_scores() as path:
        scores = read_scores(path)
    sides = scores.enrol_speaker, scores.test_speaker
    both = np.logical_and(*(side.to_series().is_in(names).to_numpy() for side in sides))
    write(scores.select_systems(["campplus"]).select(both), tmp_path / "scores.parquet")

    @contextmanager
    def thinned():
        yield tmp_path / "scores.parquet"

    monkeypatch.setattr(starter, "demo_scores", thinned)
    raw = starter.demo_values()
    monkeypatch.setattr(
        starter, "demo_values", lambda: {**raw, "safeguards": raw["safeguards"][4:]}
    )
    some = {
        name: one.select(one.speakers.to_series().is_in(names).to_numpy())
        for name, one in case_study_subset().items()
    }
    monkeypatch.setattr(starter, "case_study_subset", lambda: some)
    monkeypatch.setattr(
        starter, "case_study", lambda: {name: one.select(kept) for name, one in voices.items()}
    )


@pytest.mark.slow
@pytest.mark.usefixtures("some_voices")
def test_the_demo_leaves_a_report_and_prints_where(tmp_path):
    out = tmp_path / "here"
    done = CliRunner().invoke(app, ["demo", "--ci", "5", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == str(out / "report.html")
    assert all(name in done.output for name in ("B1", "Pitch", "Restate"))
    assert "campplus" in done.output
    assert (out / "report.html").stat().st_size < 8_000_000
