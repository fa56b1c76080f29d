"""Scorers of scikit-learn and the metric of torchmetrics; `make integrations` runs this."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from torch import distributed, multiprocessing

import unmask as um
from unmask.integrations import METRICS, DetectionMetric, detection_metric, scorer

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 400)
X = RNG.normal(size=(400, 3)) + LABELS[:, None]
SCORES = RNG.normal(size=400) + LABELS


@pytest.mark.parametrize("metric", METRICS)
def test_a_scorer_gives_the_number_of_the_package(metric):
    options = {"fpr": 0.1} if metric == "tpr_at_fpr" else {}
    model = LogisticRegression().fit(X, LABELS)
    scores = model.decision_function(X)
    expected = METRICS[metric](scores[LABELS == 1], scores[LABELS == 0], **options)
    sign = 1 if metric in ("tpr_at_fpr", "d_sys") else -1
    made = scorer(metric, **options)
    assert made(model, X, LABELS) == pytest.approx(sign * expected)
    assert "detection_metric" in repr(made)
    assert pickle.loads(pickle.dumps(made))(model, X, LABELS) == made(model, X, LABELS)


def test_posteriors_become_llrs_at_their_prior():
    words = np.where(LABELS, "target", "nontarget")
    model = GaussianNB(priors=[0.9, 0.1]).fit(X, words)
    wanted = model.predict_log_proba(X)
    llr = wanted[:, 1] - wanted[:, 0] - np.log(0.1 / 0.9)
    own = model.classes_[1] == words
    expected = um.cllr(llr[own], llr[~own])
    assert scorer("cllr", prior=0.1)(model, X, words) == pytest.approx(-expected)


def test_searches_and_folds_take_it():
    assert (cross_val_score(LogisticRegression(), X, LABELS, scoring=scorer("eer")) < 0).all()
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, scoring=scorer("min_cllr"))
    assert search.fit(X, LABELS).best_score_ < 0


def test_one_class_is_refused():
    with pytest.raises(um.InputError, match="two classes"):
        detection_metric([1, 1], [0.5, 0.1])


def whole():
    return um.detection(SCORES[LABELS == 1], SCORES[LABELS == 0])


def test_batches_are_all_scores_together():
    metric = DetectionMetric()
    for part in np.array_split(RNG.permutation(400), 7):
        metric.update(torch.tensor(SCORES[part], requires_grad=True), torch.tensor(LABELS[part]))
    found = metric.compute()
    assert found["eer"].item() == whole().eer
    assert found["min_dcf@0.01"].item() == whole().min_dcf
    assert found["cllr"].item() == pytest.approx(whole().cllr, rel=1e-14)
    metric.reset()
    metric.update(torch.tensor([1.0, 0.0], dtype=torch.bfloat16), torch.tensor([True, False]))
    assert metric.compute()["eer"].item() == 0


def _process(rank, file, results):
    distributed.init_process_group("gloo", f"file://{file}", rank=rank, world_size=2)
    metric = DetectionMetric()
    half = slice(0, 130) if rank == 0 else slice(130, 400)
    metric.update(torch.tensor(SCORES[half]), torch.tensor(LABELS[half]))
    results[rank] = {key: value.item() for key, value in metric.compute().items()}
    distributed.destroy_process_group()


def test_two_processes_give_the_bits_of_one(tmp_path):
    metric = DetectionMetric()
    metric.update(torch.tensor(SCORES), torch.tensor(LABELS))
    alone = {key: value.item() for key, value in metric.compute().items()}
    with multiprocessing.Manager() as manager:
        results = manager.dict()
        multiprocessing.spawn(_process, (str(tmp_path / "meet"), results), nprocs=2)
        assert dict(results) == {0: alone, 1: alone}


def test_forensic_numbers_are_those_of_lir():
    lir = pytest.importorskip("lir")
    from lir.algorithms.bayeserror import elub
    from lir.data.models import LLRData
    from lir.metrics import cllr, cllr_cal, cllr_min
    from lir.metrics.devpav import devpav

    assert lir
    for seed in range(5):
        rng = np.random.default_rng(seed)
        target, nontarget = rng.normal(1.2, 1, 188), rng.normal(-1.4, 1.1, 477)
        llrs = np.concatenate([target, nontarget])
        labels = np.repeat([1, 0], [188, 477])
        data = LLRData(features=llrs, labels=labels)
        ours = um.forensic((target, nontarget), scores_are="log10", replicates=0)
        theirs = {
            "cllr": cllr(data),
            "min_cllr": cllr_min(data),
            "cllr_cal": cllr_cal(data),
            "dev_pav": devpav(llrs, labels),
        }
        for name, expected in theirs.items():
            assert ours[name].value == pytest.approx(expected, abs=1e-6), name
        bounds = [ours[name].value for name in ("lr_smallest", "lr_largest")]
        assert bounds == pytest.approx(elub(llrs.copy(), labels), abs=1e-9)
