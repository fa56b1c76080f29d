"""The real files beside the project are read without options; skipped where they are absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from unmask.engine import Roc
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


def test_the_layout_of_voxsrc_gives_the_numbers_stated_with_it() -> None:
    folder = SHARED / "data" / "scores" / "voxsrc_layout"
    scores = read_scores(folder / "scores.txt.gz", key=folder / "veri_test.txt.gz")
    assert [one.format for one in scores.sources] == ["voxsrc", "voxceleb"]
    assert scores.n_speakers == 40
    roc = Roc.from_scores(scores.targets(), scores.nontargets())
    assert round(100 * roc.eer(estimator="raw"), 2) == 1.56
    assert round(roc.min_dcf(p_target=0.05), 3) == 0.104


def test_the_fusion_file_of_asvspoof_5_has_three_classes() -> None:
    path = SHARED / "data" / "scores" / "asvspoof5_fusion" / "dev_scores_label.csv.gz"
    scores = read_scores(path)
    assert scores.counts == {"target": 1484, "nontarget": 5768, "other": 22296}
    assert "22296 spoof trials" in scores.sources[0].detected
    roc = Roc.from_scores(scores.targets("asv_score"), scores.nontargets("asv_score"))
    assert round(100 * roc.eer(estimator="raw"), 2) == 1.86
