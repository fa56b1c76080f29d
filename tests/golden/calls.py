"""Every call of the package that the golden cases make: after a renaming only this file changes.

A workload takes plain arrays and gives plain names with numbers. ``at`` says where it runs.
"""

from __future__ import annotations

import contextlib
import importlib.util
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from studies.sholokhov2020 import simulate_worst_case
from tests.helpers import cpmap

import unmask as um
from unmask.base import Sampling
from unmask.engine import bootstrap, evaluation, pairing, streaming, units_of
from unmask.privacy.legal import linking as legal_links, verification as legal_verification
from unmask.privacy.similarity import kernels as similarity_passes
from unmask.privacy.similarity.distortion import cross_scores
from unmask.run import NUMPY, Place, run_on as opened_place, within
from unmask.stress import trial_bias
from unmask.stress.impostors import rates as worst_case_rates, voices as worst_case_voices
from unmask.trials import write

Numbers = dict[str, Any]
Options = dict[str, Any]

PLACES: dict[str, Options] = {
    "local-1": {"on": "local", "workers": 1},
    "local-3": {"on": "local", "workers": 3},
    "processes": {"on": "processes", "workers": 2},
    "dask": {"on": "dask", "workers": 2},
    "cuda": {"on": "cuda", "devices": ["cpu", "cpu"]},
}
OPENED: dict[str, Place] = {}
FEW_TRIALS = 2_000_000


# Places.


@contextlib.contextmanager
def places() -> Iterator[None]:
    """One pool of processes and one cluster for all workloads, which have several tasks each."""
    patches = [
        mock.patch.object(legal_links, "ROWS", 40),
        mock.patch.object(legal_verification, "ROWS", 256),
        mock.patch.object(similarity_passes, "TRIALS", 1),
        mock.patch.object(worst_case_voices, "ROWS", 40),
        mock.patch.object(worst_case_rates, "SCORES", 4000),
        mock.patch.object(worst_case_voices, "_DEVICE", 1000),
    ]
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        stack.callback(OPENED.clear)
        for name in PLACES:
            if name != "cuda" or importlib.util.find_spec("torch"):
                OPENED[name] = stack.enter_context(opened_place(**PLACES[name]))
        stack.enter_context(opened_place())
        yield


@contextlib.contextmanager
def run_on(name: str | None) -> Iterator[Options]:
    """Work happens there; ``cuda`` is two devices of torch on the CPU."""
    with within(OPENED[name]) if name else contextlib.nullcontext():
        yield {}


# What is picked from results.


def _estimates(estimates: Sequence[Any], at: str = "") -> Numbers:
    """Value, interval, chance, threshold and counts of estimates, by metric."""
    result: Numbers = {}
    seen: dict[str, int] = {}
    for estimate in estimates:
        seen[estimate.metric] = number = seen.get(estimate.metric, 0) + 1
        name = at + estimate.metric + (f"#{number}" if number > 1 else "")
        if isinstance(estimate.value, str):
            continue
        result[name] = estimate.value
        result |= _interval(estimate.interval, name)
        if estimate.chance is not None:
            result[f"{name}/chance"] = estimate.chance
        if estimate.threshold is not None:
            result[f"{name}/threshold"] = estimate.threshold
        result |= {f"{name}/n/{kind}": count for kind, count in estimate.n.items()}
    return result


def _interval(interval: Any, name: str) -> Numbers:
    if interval is None:
        return {}
    return {f"{name}/low": interval.low, f"{name}/high": interval.high}


def _fields(result: Any, names: Sequence[str], at: str = "") -> Numbers:
    return {at + name: getattr(result, name) for name in names}


def _under(at: str, numbers: Mapping[str, Any]) -> Numbers:
    return {f"{at}/{name}": value for name, value in numbers.items()}


def _roc(roc: Any, at: str = "roc/") -> Numbers:
    return _fields(roc, ["scores", "target", "equal", "between"], at)


def _rates(roc: Any, at: str) -> Numbers:
    """What does not depend on how the last bits of products part equal scores."""
    result = _fields(roc, ["targets", "nontargets"], at)
    for name in ("eer", "min_cllr", "d_ece", "l_w"):
        result[at + name] = getattr(roc, name)()
    result |= {f"{at}min_dcf/{p}": roc.min_dcf(p_target=p) for p in (0.01, 0.3)}
    shares = np.linspace(0.02, 0.98, 25)
    return result | {f"{at}tpr": [roc.tpr_at_fpr(share) for share in shares]}


def _evaluation(evaluation: Any, of_roc: Any = _roc) -> Numbers:
    outcome: Numbers = {}
    for result in evaluation.results:
        name = f"{result.system}/{result.group or 'all'}/"
        outcome |= _estimates(result.estimates, name) | of_roc(result.roc, f"{name}roc/")
    return outcome


# Data.


def voices(data: Mapping[str, Any]) -> um.Embeddings:
    """Embeddings of arrays: vectors, speakers, utterances, sessions, columns."""
    return um.Embeddings(
        data["vectors"],
        data["speakers"],
        data.get("utterances"),
        data.get("sessions"),
        columns=data.get("columns", {}),
    )


def trials(data: Mapping[str, Any]) -> um.Scores:
    """Scores of systems on one list of trials."""
    ids = {
        name: um.Ids.from_strings(data[name])
        for name in ("enrol", "test", "enrol_speaker", "test_speaker")
        if name in data
    }
    columns = {k: um.Ids.from_strings(v) for k, v in data.get("columns", {}).items()}
    label = np.asarray(data["target"]).astype(np.int8)
    every = {"enrol": None, "test": None, "enrol_speaker": None, "test_speaker": None} | ids
    return um.Scores(label=label, columns=columns, systems=dict(data["systems"]), **every)


def backend(name: str, data: Mapping[str, Any]) -> Any:
    """A back-end, trained on the voices given where it needs training."""
    if name == "plda":
        return um.Plda.fit(voices(data))
    if name == "plda-lda":
        return um.Plda.fit(voices(data), lda=6, iterations=4)
    if name in ("within", "total"):
        return um.Whitening.fit(voices(data), covariance=name)
    return name


# Detection.


def metrics(target: Any, nontarget: Any) -> Numbers:
    """Every metric of two score arrays, and the points at which they are."""
    result = um.detection(target, nontarget, p_target=0.05, fpr=(0.1, 0.01))
    names = ["eer", "eer_raw", "min_dcf", "act_dcf", "cllr", "min_cllr", "d_ece", "l_w", "d_sys"]
    numbers = _fields(result, [*names, "targets", "nontargets"])
    numbers |= {f"tpr_at_fpr/{fpr}": value for fpr, value in result.tpr_at_fpr.items()}
    names = {"eer": "eer", "min_dcf@0.05": "min_dcf", "act_dcf@0.05": "act_dcf"}
    names |= {f"tpr@{fpr:g}": f"tpr_at_fpr_{fpr:g}" for fpr in result.tpr_at_fpr}
    for name, point in ((name, result.points[key]) for key, name in names.items()):
        numbers |= {
            f"points/{name}/value": point.value,
            f"points/{name}/threshold": point.threshold,
        }
    zebra = um.zebra(target, nontarget)
    numbers |= _fields(zebra, ["d_ece", "l_w", "negated_d_ece", "negated_l_w"], "zebra/")
    numbers["ece"] = um.ece(target, nontarget, log_odds=np.linspace(-4, 4, 9))
    return numbers


def weighted(
    target: Any, nontarget: Any, target_weights: Any, nontarget_weights: Any, thresholds: Any
) -> Numbers:
    """The ROC statistic of weighted scores and what is read off it."""
    roc = um.Roc.from_scores(
        target,
        nontarget,
        target_weights=target_weights,
        nontarget_weights=nontarget_weights,
        thresholds=thresholds,
        cllr=True,
    )
    return _roc(roc) | {
        "eer": roc.eer(),
        "eer_raw": roc.eer(estimator="raw"),
        "min_dcf": roc.min_dcf(p_target=0.1),
        "cllr": roc.cllr(),
        "min_cllr": roc.min_cllr(),
        "d_ece": roc.d_ece(),
        "d_sys": roc.d_sys(),
        "tpr_at_fpr": roc.tpr_at_fpr(0.05),
        "negated_eer": roc.negated().eer(),
        "at": [roc.at_threshold(threshold).value for threshold in thresholds],
    }


def blocks(target: Any, parts: Sequence[Any]) -> Numbers:
    """The ROC statistic of nontarget scores that come in blocks."""
    return _roc(um.Roc.from_blocks(target, parts, thresholds=[0.5]))


def calibrations(target: Any, nontarget: Any, scores: Any) -> Numbers:
    """Both calibrations, and what they make of scores."""
    linear, steps = um.calibrate(target, nontarget), um.calibrate(target, nontarget, "isotonic")
    return {
        "linear/scale": linear.scale,
        "linear/offset": linear.offset,
        "linear/llr": linear.apply(scores),
        "isotonic/score": steps.score,
        "isotonic/llr": steps.llr,
        "isotonic/applied": steps.apply(scores),
    }


@contextlib.contextmanager
def _many(few: bool) -> Iterator[None]:
    """Unless there are ``few`` trials, these are more than all are resampled of."""
    values = {"AUTO_TRIALS": FEW_TRIALS if few else 100, "AUTO_REPLICATES": 60}
    with contextlib.ExitStack() as stack:
        for module in (bootstrap, evaluation, pairing, streaming):
            for name, value in values.items():
                if hasattr(module, name):
                    stack.enter_context(mock.patch.object(module, name, value))
        yield


def evaluate(
    data: Mapping[str, Any], at: Options, *, by: str | None = None, few: bool = True
) -> Numbers:
    """All metrics with intervals; ``few`` speakers are resampled trial by trial, else in bins."""
    if few:
        return _evaluation(um.evaluate(trials(data), by=by, replicates=60, seed=3, **at))
    with _many(few):
        return _evaluation(um.evaluate(trials(data), by=by, seed=3, **at))


def compare(data: Mapping[str, Any], at: Options) -> Numbers:
    """Two systems: both sides, the difference, how often the second is better."""
    result = um.compare(trials(data), replicates=60, seed=5, **at)
    outcome: Numbers = {}
    for side in ("first", "second", "difference"):
        rows = [row if side == "difference" else getattr(row, side) for row in result.differences]
        outcome |= _estimates(rows, f"{side}/")
    outcome["second_better"] = [row.second_better for row in result.differences]
    return outcome


def cross_pairing(
    data: Mapping[str, Any],
    at: Options,
    *,
    scoring: str = "cosine",
    by_speaker: bool = False,
    **options: Any,
) -> Numbers:
    """All pairs of a set; ``by_speaker``: intervals from counts by speaker."""
    chosen = backend(scoring, data)
    with _many(not by_speaker):
        result = um.engine.cross_pairing(
            voices(data), backend=chosen, replicates=60, seed=2, block=256, **options, **at
        )
    outcome = _evaluation(result, _rates)
    return {name.split("/", 1)[1]: value for name, value in outcome.items()}


# Privacy.


def _similarity(result: Any) -> Numbers:
    outcome = _estimates(result.estimates) | _estimates(result.details, "details/")
    for name, own in result.sets.items():
        outcome[f"{name}/matrix"] = own.matrix
        if own.negated is not None:
            outcome[f"{name}/negated"] = own.negated
        outcome |= _rates(own.roc, f"{name}/roc/")
    return outcome


def _people(result: Any) -> Numbers:
    names = ["deid", "low", "high", "named", "d_ece", "l_w"]
    return _fields(result.per_speaker, names, "speakers/")


def similarity(
    original: Mapping[str, Any],
    protected: Mapping[str, Any],
    at: Options,
    *,
    scoring: str = "cosine",
    **options: Any,
) -> Numbers:
    """Pseudonymisation from embeddings."""
    made = um.pseudonymisation(
        voices(original), voices(protected), backend=backend(scoring, original), replicates=40,
        seed=1, **options, **at,
    )  # fmt: skip
    return _similarity(made) | _people(made)


def similarity_of_matrices(
    matrices: Sequence[Any], speakers: Sequence[str], at: Options, **options: Any
) -> Numbers:
    """Pseudonymisation from matrices of scores."""
    made = um.pseudonymisation(*matrices, speakers, replicates=40, seed=1, **options, **at)
    return _similarity(made) | _people(made)


def similarity_of_scores(sets: Sequence[Mapping[str, Any]], **options: Any) -> Numbers:
    """Pseudonymisation from three lists of trials."""
    made = um.pseudonymisation(*(trials(data) for data in sets), replicates=40, seed=1, **options)
    return _similarity(made)


def safeguards(
    original: Mapping[str, Any], protected: Mapping[str, Any], again: Mapping[str, Any], at: Options
) -> Numbers:
    """A table of safeguards, by a column, with second runs and sessions."""
    made = um.compare_safeguards(
        voices(original),
        {name: voices(data) for name, data in protected.items()},
        again={name: voices(data) for name, data in again.items()},
        by="gender",
        with_sessions=True,
        replicates=40,
        seed=1,
        **at,
    )
    result: Numbers = {}
    for row in made:
        name = f"{row.system}/{row.dataset}/"
        result |= _estimates(row.estimates, name) | _estimates(row.details, f"{name}details/")
    return result


def sessions(
    original: Mapping[str, Any], protected: Mapping[str, Any], at: Options, **options: Any
) -> Numbers:
    """Within and between sessions."""
    made = um.compare_sessions(
        voices(original), voices(protected), replicates=40, seed=1, **options, **at
    )
    result = _estimates(made.estimates)
    for name, own in made.sets.items():
        result[f"{name}/matrix"] = own.matrix
    return result


def _curve(curve: Any, at: str = "") -> Numbers:
    names = ["counts", "value", "low", "high", "chance", "attacks", "left_out", "short"]
    result = _fields(curve, names, at)
    for name in ("per_speaker", "noise", "variance"):
        if getattr(curve, name, None) is not None:
            result[at + name] = getattr(curve, name)
    result |= _estimates(curve.estimates, f"{at}estimates/")
    for i in range(len(curve.counts)):
        result |= _estimates(curve.details(i), f"{at}details/{i}/")
    return result


def _ranks(ranks: Any, at: str = "ranks/") -> Numbers:
    names = ["ranks", "candidates", "distribution", "mean_d", "max_d", "identification_rate"]
    return _fields(ranks, names, at) | _estimates(ranks.estimates, f"{at}estimates/")


def linkability(
    enrol: Mapping[str, Any],
    test: Mapping[str, Any],
    at: Options,
    *,
    scoring: str = "cosine",
    **options: Any,
) -> Numbers:
    """Linkability with ranks: exact, or by ``draws``."""
    made = um.linkability(
        voices(enrol), voices(test), backend=backend(scoring, enrol), replicates=50, seed=4,
        **options, **at,
    )  # fmt: skip
    result = _curve(made)
    result |= {"at_or_above": made.above.at_or_above, "above": made.above.above}
    return result | (_ranks(made.ranks) if made.ranks is not None else {})


def linkability_of_scores(scores: Any, column: Any, counts: Any, matches: Any) -> Numbers:
    """Linkability and ranks of a matrix of scores."""
    return {
        "plain": um.linkability_from_scores(scores, column, counts=counts),
        "matched": um.linkability_from_scores(scores, column, counts=counts, matches=matches),
    } | _ranks(um.privacy.ranks_from_scores(scores, column, seed=3))


def verification(
    enrol: Mapping[str, Any],
    test: Mapping[str, Any],
    at: Options,
    *,
    scoring: str = "cosine",
    **options: Any,
) -> Numbers:
    """1 − EER."""
    made = um.privacy.one_minus_eer(
        voices(enrol), voices(test), backend=backend(scoring, enrol), replicates=50, seed=4,
        **options, **at,
    )  # fmt: skip
    return _curve(made)


def singling_out(
    enrol: Mapping[str, Any],
    test: Mapping[str, Any],
    at: Options,
    *,
    scoring: str = "cosine",
    **options: Any,
) -> Numbers:
    """Singling Out."""
    made = um.singling_out(
        voices(enrol), voices(test), backend=backend(scoring, enrol), replicates=50, seed=4,
        **options, **at,
    )  # fmt: skip
    names = ["chance_exact", "threshold_rank"]
    return _curve(made) | _fields(made, names)


def singling_out_of_scores(scores: Any, enrol: Any, test: Any, counts: Any) -> Numbers:
    """Singling Out of a matrix of scores."""
    return {
        "value": um.privacy.singling_out_from_scores(
            scores, enrol, test, counts=counts, folds=4, draws=3, seed=2
        )
    }


def inference(
    data: Mapping[str, Any], unprotected: Mapping[str, Any] | None, attribute: str, bands: Any = ()
) -> Numbers:
    """Inference of an attribute."""
    made = um.attribute_inference(
        voices(data),
        attribute,
        unprotected=None if unprotected is None else voices(unprotected),
        bands=bands,
        replicates=50,
        seed=2,
    )
    return _estimates(made.estimates) | {"per_speaker": made.per_speaker}


def legal_sweep(
    sets: Mapping[str, tuple[Any, Any]],
    at: Options,
    *,
    backends: Sequence[str] = (),
    **options: Any,
) -> Numbers:
    """The whole sweep, with the strongest attackers."""
    attackers = {
        name: um.Attacker(voices(enrol), voices(test)) for name, (enrol, test) in sets.items()
    }
    if backends:
        attackers = um.privacy.with_backends(attackers, backends)
    made = um.assess_attackers(attackers, replicates=40, seed=6, **options, **at)
    result = _estimates(made.estimates)
    for (attacker, metric, length), curve in made.curves.items():
        result |= _curve(curve, f"{attacker}/{metric}/{length}/")
    for (attacker, length), ranks in made.ranks.items():
        result |= _ranks(ranks, f"{attacker}/{length}/ranks/")
    for metric in made.metrics:
        for length in made.lengths:
            for count in made.counts(length):
                best = made.strongest(metric, length, count)
                result |= _estimates([best.estimate], f"strongest/{metric}/{length}/{count}/")
    return result


def zebra_by_speaker(data: Mapping[str, Any]) -> Numbers:
    """Disclosure by speaker."""
    made = um.privacy.zebra_by_speaker(trials(data), system=next(iter(data["systems"])))
    return _fields(made, ["d_ece", "l_w", "targets", "nontargets"])


def zebra_profiles(data: Mapping[str, Any]) -> Numbers:
    """ECE profiles of all systems."""
    result: Numbers = {}
    for name, made in um.privacy.zebra_profiles(trials(data), points=41).items():
        names = ["min_cllr", "log_odds", "prior", "oracle"]
        result |= _fields(made, names, f"{name}/") | _estimates(made.estimates, f"{name}/")
        if made.actual is not None:
            result |= {f"{name}/actual": made.actual, f"{name}/cllr": made.cllr}
    return result


def _distortion(made: Any) -> Numbers:
    return _fields(made, ["c_ece", "cllr", "raw_cllr", "actual"]) | _estimates(
        made.estimates, "estimates/"
    )


def distortion(first: Any, second: Any, method: str) -> Numbers:
    """Calibration of one run on another, from arrays."""
    return _distortion(um.privacy.calibration_distortion(first, second, method=method, points=41))


def distortion_of_scores(
    first: Mapping[str, Any], second: Mapping[str, Any], method: str
) -> Numbers:
    """The same from lists of trials, with intervals."""
    made = um.privacy.calibration_distortion(
        trials(first), trials(second), system=next(iter(first["systems"])), method=method,
        replicates=40, seed=1,
    )  # fmt: skip
    return _distortion(made)


def distortion_of_embeddings(original: Any, first: Any, second: Any, method: str) -> Numbers:
    """The same from embeddings, with intervals."""
    runs = [cross_scores(voices(original), voices(run)) for run in (first, second)]
    made = um.privacy.calibration_distortion(*runs, method=method, replicates=40, seed=1)
    return _distortion(made)


def _zoo(made: Any) -> Numbers:
    result = _fields(made, ["target", "impostor", "enrolled", "probing"])
    for name, corner in made.corners.items():
        result |= _fields(corner, ["count", "expected", "p_value"], f"{name}/")
    return result | {f"{name}/count": len(who) for name, who in made.animals.items()}


def zoo(data: Mapping[str, Any]) -> Numbers:
    """The zoo of a list of trials."""
    return _zoo(um.zoo(trials(data), system=next(iter(data["systems"]))))


def zoo_of_set(original: Mapping[str, Any], protected: Mapping[str, Any]) -> Numbers:
    """The zoo of a similarity matrix."""
    made = um.pseudonymisation(voices(original), voices(protected), replicates=0)
    return _zoo(um.zoo(made.sets["op"]))


# Stress.


def _map(made: Any, at: str = "") -> Numbers:
    names = ["values", "x", "y", "well_defined", "targets", "nontargets", "hardest_decile"]
    places = ["target_place", "nontarget_place"]
    return _fields(made, [*names, *places], at) | _estimates(made.estimates, f"{at}summary/")


def _metric(name: Any) -> Any:
    """A metric by name, or with its prior."""
    return um.CpMetric(*name) if isinstance(name, tuple) else name


def cp_map(target: Any, nontarget: Any, metric: Any = "eer", **options: Any) -> Numbers:
    """A C-P map."""
    return _map(um.cp_map(target, nontarget, grid=12, metric=_metric(metric), **options))


def cp_position(target: Any, nontarget: Any, chosen: Any, others: Any) -> Numbers:
    """Where a part of the trials stands on a map."""
    made = um.stress.cp_position(
        um.cp_map(target, nontarget, grid=12), target, nontarget, chosen, others
    )
    names = ["x", "y", "value", "cell", "gap", "targets", "nontargets", "easier", "misfit"]
    return _fields(made, names)


def _delta(made: Any, at: str = "") -> Numbers:
    result = _fields(made, ["rcr", "x", "y", "well_defined", "targets", "nontargets"], at)
    return result | _estimates(made.estimates, f"{at}summary/")


def roadmap(systems: Mapping[str, Any], metric: Any = "eer") -> Numbers:
    """Maps of several systems and what changes from one to the next."""
    made = cpmap.roadmap(systems, grid=12, metric=_metric(metric))
    result: Numbers = {}
    for number, one in enumerate(made.maps):
        result |= _map(one, f"map/{number}/")
    for number, delta in enumerate(made.deltas):
        result |= _delta(delta, f"delta/{number}/")
    return result


def delta_intervals(data: Mapping[str, Any]) -> Numbers:
    """Intervals of the shares of cells won, tied and lost."""
    scores = trials(data)
    pairs = [(scores.targets(name), scores.nontargets(name)) for name in list(scores.systems)[:2]]
    options = {"compared": [(0, 1)], "grid": 8, "sampling": Sampling(40, seed=1)}
    made = um.stress.cp_intervals(pairs, units_of(scores)[0], **options)
    result: Numbers = {}
    for name in ("win", "tie", "lose"):
        result |= _interval(getattr(made.deltas[0], name), name)
    return result | {"undefined": made.undefined}


def cp_assessment(data: Mapping[str, Any], **options: Any) -> Numbers:
    """Maps, deltas, trial configs and their intervals of a list of trials."""
    made = um.cp_maps(trials(data), grid=10, replicates=30, seed=1, **options)
    result: Numbers = {}
    for name, one in made.maps.items():
        result |= _map(one, f"{name}/map/") | _estimates(made.estimates_of(name), f"{name}/")
        for position in made.positions.get(name, ()):
            rows = made.position_estimates(name, position)
            result |= _estimates(rows, f"{name}/{position.name}/")
        for config in made.bias.get(name, ()):
            names = ["edges", "target", "nontarget", "eer", "threshold"]
            result |= _fields(config, names, f"{name}/bias/{config.name}/")
    for number, delta in enumerate(made.deltas):
        result |= _delta(delta, f"delta/{number}/")
        result |= _estimates(made.delta_estimates(delta), f"delta/{number}/")
    return result


def bias(configs: Mapping[str, Any]) -> Numbers:
    """Densities of scores of trial configs."""
    result: Numbers = {}
    for made in trial_bias(configs, bins=12):
        result |= _fields(
            made, ["edges", "target", "nontarget", "eer", "threshold"], f"{made.name}/"
        )
    return result


def _worst(made: Any, at: str = "") -> Numbers:
    names = ["counts", "thresholds", "values", "low", "high", "targets", "impostors", "per_pair"]
    return _fields(made, names, at)


def worst_case(scores: Any, thresholds: Any, counts: Any) -> Numbers:
    """Worst-case false alarms of an array, by target, and simulated."""
    flat = worst_case_rates.FlatPairs.of(um.stress.speaker_pairs(scores), thresholds, counts)
    mean, spread = simulate_worst_case(scores, thresholds, counts=counts, simulations=50, seed=1)
    return {
        "exact": um.worst_case_false_alarms(scores, thresholds, counts=counts),
        "by_target": worst_case_rates.surfaces(NUMPY, flat, (0, len(scores)))["each"],
        "simulated": mean,
        "spread": spread,
    }


def worst_case_measured(
    data: Mapping[str, Any], thresholds: Any, counts: Any, at: Options, **protocol: Any
) -> Numbers:
    """The same with intervals, from the pairs of embeddings."""
    pairs, how = um.stress.speaker_pairs(voices(data)), um.ImpostorProtocol(**protocol)
    options = {"counts": counts, "seed": 1, "level": 0.99, "protocol": how}
    return _worst(um.worst_case(pairs, thresholds, **options))


def worst_case_of_scores(
    data: Mapping[str, Any], thresholds: Any, counts: Any, at: Options
) -> Numbers:
    """The same from a list of trials."""
    pairs = um.stress.speaker_pairs(trials(data), system=next(iter(data["systems"])))
    result = {"scores": pairs.scores, "start": pairs.start}
    return result | _worst(um.worst_case(pairs, thresholds, counts=counts, level=0.99))


def worst_case_of_embeddings(
    data: Mapping[str, Any],
    thresholds: Any,
    counts: Any,
    at: Options,
    *,
    scoring: str = "cosine",
    proxy: Any = None,
    **protocol: Any,
) -> Numbers:
    """The same straight from embeddings."""
    made = um.worst_case(
        voices(data),
        thresholds,
        counts=counts,
        proxy=None if proxy is None else voices(proxy),
        protocol=um.ImpostorProtocol(backend=backend(scoring, data), **protocol),
        seed=1,
        level=0.99,
    )
    return _worst(made)


def extrapolation(scores: Any, model: str, counts: Any, thresholds: Any) -> Numbers:
    """A fitted model: predictions with intervals, and a threshold."""
    made = um.extrapolate(scores, model=model, groups=5, split=False, seed=1)
    text = made.predict_interval(counts, thresholds, level=0.99)
    return {
        "predicted": made.predict(counts, thresholds),
        "values": text.values,
        "low": text.low,
        "high": text.high,
        "threshold": made.threshold_for(0.01, int(max(counts))),
    }


def model_comparison(scores: Any, models: Sequence[str]) -> Numbers:
    """Errors of models on held-out counts; not the seconds they took."""
    made = um.stress.compare_models(scores, models=models, split=False)
    result: Numbers = {"train_count": made.train_count, "counts": made.counts}
    for row in made.errors:
        result |= _fields(row, ["mae", "mae_hard", "by_count"], f"{row.model}/")
    return result


def worst_case_study(data: Mapping[str, Any], at: Options) -> Numbers:
    """A study of embeddings: exact rates, predictions, thresholds that would help."""
    made = um.worst_case_study(
        voices(data), model="gpd", population=1000, p_target=[0.05], target_rates=[0.05],
        protocol=um.ImpostorProtocol(per_pair=4, split=False), groups=5, seed=1, level=0.99,
    )  # fmt: skip
    result = _worst(made.empirical, "empirical/")
    result |= _fields(
        made.predicted, ["counts", "thresholds", "values", "low", "high"], "predicted/"
    )
    result |= {"levels": made.levels, "surface": made.surface}
    for number, needed in enumerate(made.needed):
        names = ["count", "rate", "threshold", "p_miss", "high", "safe_threshold"]
        result |= _fields(needed, names, f"needed/{number}/")
    return result | {f"limits/{rate}": values for rate, values in made.limits.items()}


# Files.


def read_scores(
    data: Mapping[str, Any], name: str, format: str | None = None, *, few: bool = True
) -> Numbers:
    """Scores written, read, and evaluated in a stream where the format allows that.

    Speakers and labels come from a mapping and a key.
    """
    scores = trials(data)
    owner = {
        utterance: speaker
        for side in ("enrol", "test")
        for utterance, speaker in zip(data[side], data[f"{side}_speaker"], strict=True)
    }
    system = next(iter(scores.systems))
    with tempfile.TemporaryDirectory() as folder:
        path, key = Path(folder, name), Path(folder, "trials")
        write(scores.select_systems([system]), path, format=format)
        write(scores, key, format="kaldi-trials")
        read = um.read_scores(path, key=key, speakers=owner)
        battery = um.Battery(p_target=(0.05,), fpr=(0.1,))
        options: Options = {"battery": battery, "replicates": 20 if few else None, "seed": 1}
        if path.suffix in (".npz", ".h5"):
            streamed = um.evaluate(read, **options)
        else:
            with _many(few):
                streamed = um.evaluate(path, stream=True, key=key, speakers=owner, **options)
    (values,) = read.systems.values()
    result: Numbers = {"scores": values, "label": read.label}
    assert read.enrol is not None
    assert read.test is not None
    assert read.enrol_speaker is not None
    for side in ("enrol", "test", "enrol_speaker", "test_speaker"):
        result[side] = getattr(read, side).alphabetical().codes
    rows = _evaluation(streamed)
    return result | {f"streamed/{k.split('/', 1)[1]}": v for k, v in rows.items()}


def read_embeddings(data: Mapping[str, Any], name: str) -> Numbers:
    """Embeddings written, read, and cross-paired from the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write(voices(data), path)
        read = um.read_embeddings(path)
        paired = um.engine.cross_pairing(path, replicates=20, seed=1)
    result: Numbers = {"vectors": read.vectors, "speakers": read.speakers.alphabetical().codes}
    if read.utterances is not None:
        result["utterances"] = read.utterances.alphabetical().codes
    if read.sessions is not None:
        result["sessions"] = read.sessions.alphabetical().codes
    rows = _evaluation(paired, _rates)
    return result | {f"paired/{k.split('/', 1)[1]}": v for k, v in rows.items()}
