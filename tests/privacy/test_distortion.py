"""C_ECE goes one way: learnt on the attacker's own run, judged on the published one."""

import numpy as np
import pytest
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.privacy.similarity.distortion import cross_scores


def test_the_map_is_learnt_on_the_attackers_run_and_judged_on_the_published_one():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(12, 8))
    original, published, own = (
        named_speakers(12, 5, 8, noise=noise, means=means, draws=rng, utterance="u{row}")
        for noise in (0.3, 0.6, 3.0)
    )
    (row,) = um.compare_safeguards(original, {"x": published}, again={"x": own}, replicates=0)
    linear = row.distortions[0]
    runs = [cross_scores(original, run) for run in (own, published)]
    wanted = um.privacy.calibration_distortion(*runs, replicates=0)
    assert linear.c_ece == pytest.approx(wanted.c_ece)
    assert linear.c_ece <= linear.second.zebra.d_ece
    backwards = um.privacy.calibration_distortion(*reversed(runs), replicates=0)
    assert linear.c_ece > backwards.c_ece
