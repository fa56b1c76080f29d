"""Reference values that independent implementations agree on, where they are at hand."""

import json
from pathlib import Path

import numpy as np
import pytest

import unmask as um
from unmask.trials import read_scores

REFERENCE = Path(__file__).parents[1] / "reference"
SHARED = Path(__file__).parents[2] / ".." / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="reference data are not at hand")


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        pytest.param(SHARED / "oracles", "gauss_calibrated", marks=needs_shared),
        (REFERENCE, "ties_rounded"),
        (REFERENCE, "tiny"),
        (REFERENCE, "separated"),
    ],
    ids=["gauss_calibrated", "ties_rounded", "tiny", "separated"],
)
def test_reference_sets(folder, name):
    """ROCCH-EER, C_llr, minDCF across three implementations, D_ECE and l_w across two."""
    expected = json.loads((folder / "expected.json").read_text())[name]
    with np.load(folder / f"{name}.npz") as data:
        target, nontarget = data["tar"], data["non"]
    result = um.detection(target, nontarget)
    outcome = {
        "eer_rocch": result.eer,
        "cllr": result.cllr,
        "min_cllr": result.min_cllr,
        "d_ece": result.d_ece,
        "l_w": result.l_w,
        "min_dcf_0.01": result.min_dcf,
        "min_dcf_0.05": um.min_dcf(target, nontarget, p_target=0.05),
    }
    for metric, value in outcome.items():
        assert value == pytest.approx(expected[metric], abs=1e-9), metric
    assert result.tag == expected["tag"]


@needs_shared
@pytest.mark.parametrize(
    ("file", "published"),
    [
        ("voxsrc2021_val_baseline.tsv.gz", {"voxsrc2021_val_baseline": 5.18}),
        (
            "voxceleb1_o_3systems_cranDET.tsv.gz",
            {"lda_cosine": 9.67, "plda": 5.69, "lda_plda": 5.56},
        ),
    ],
)
def test_published_equal_error_rates(file, published):
    scores = read_scores(SHARED / "data" / "scores" / file)
    assert set(scores.systems) == set(published)
    for system, percent in published.items():
        value = um.eer(scores.targets(system), scores.nontargets(system), estimator="raw")
        assert round(100 * value, 2) == percent
