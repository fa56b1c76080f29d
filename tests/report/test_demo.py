from __future__ import annotations

from unmask.report.demo import SAFEGUARDS, demo_config
from unmask.trials import read_embeddings


def test_the_demo_is_an_assessment_of_the_bundled_voices(tmp_path):
    config = demo_config(tmp_path)
    assert [one.name for one in config.safeguards] == list(SAFEGUARDS)
    original = read_embeddings(tmp_path / "data" / "original.npz")
    assert (original.n_speakers, len(original)) == (60, 1200)
    assert "gender" in original.columns
    assert config.scores[0].files[0].is_file()
