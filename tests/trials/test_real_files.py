"""The real files beside the project are read without options; skipped where they are absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from unmask.trials import read_embeddings, read_scores

SHARED = Path(__file__).resolve().parents[3] / "shared"
SCORES = {
    "asvspoof2019_la_dev_2asv_1cm": (1484, 5768, 22296, 3, 20),
    "audiomnist_60models_5enrol_3systems": (900, 53100, 0, 3, 60),
    "librispeech_test-other_pairs_3systems": (450, 4500, 0, 3, 10),
    "voxceleb1_o_3systems_cranDET": (18247, 18190, 0, 3, 40),
    "voxsrc2021_val_baseline": (29969, 30031, 0, 1, 1251),
}
EMBEDDINGS = {
    "audiomnist_1200_campplus192": (1200, 192, 60),
    "ecapa_voxceleb12_7204_speaker_prototypes192": (7204, 192, 7204),
    "librispeech_744_resemblyzer256": (744, 256, 261),
}
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the real files are not at hand")


@pytest.mark.parametrize("name", SCORES)
def test_scores(name: str) -> None:
    result = read_scores(SHARED / "data" / "scores" / f"{name}.tsv.gz")
    target, nontarget, other, systems, speakers = SCORES[name]
    assert result.counts == {"target": target, "nontarget": nontarget, "other": other}
    assert (len(result.systems), result.n_speakers) == (systems, speakers)


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings(name: str) -> None:
    result = read_embeddings(SHARED / "data" / "embeddings" / f"{name}.npz")
    assert (len(result), result.dimension, result.n_speakers) == EMBEDDINGS[name]


def test_oracles() -> None:
    result = read_scores(SHARED / "oracles" / "gauss_calibrated.npz")
    assert result.counts == {"target": 1000, "nontarget": 20000, "other": 0}
