from __future__ import annotations

from dataclasses import replace
from inspect import isfunction, signature
from pathlib import Path

import numpy as np
import pytest
from studies.coverage.strongest import COUNT, curves_of
from tests.helpers.notices import lines_of
from tests.helpers.populations import named_speakers, population

import unmask as um
from unmask.privacy import default_counts
from unmask.run import progress
from unmask.trials import Source

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "embeddings"


def attackers(**noises):
    return {
        name: um.Attacker(
            population(30, 8, noise=noise, tag=f"{name}-e", columns=True),
            population(30, 8, noise=noise, tag=f"{name}-t", columns=True),
        )
        for name, noise in noises.items()
    }


QUICK = um.LegalProtocol(draws=2, folds=4)
OPTIONS = {"protocol": QUICK, "replicates": 50}


@pytest.fixture(scope="module")
def sweep():
    return um.assess_attackers(
        attackers(original=0.5, ignorant=5.0, informed=1.5),
        counts=[5, 20, 30],
        lengths=[1, 4],
        asked="ignorant",
        attributes={"gender": ()},
        **OPTIONS,
    )


def test_one_result_holds_every_condition(sweep):
    assert sweep.attackers == ("original", "ignorant", "informed")
    assert sweep.protected == ("ignorant", "informed")
    assert sweep.lengths == (1, 4)
    assert len(sweep.curves) == 3 * 3 * 2 * 4
    assert ("informed, centred negated", "linkability", 4) in sweep.curves
    assert sweep.counts(1) == (5, 20, 30)
    same = um.linkability(
        population(30, 8, noise=1.5, tag="informed-e"),
        population(30, 8, noise=1.5, tag="informed-t"),
        counts=[5, 20, 30],
        replicates=50,
    )
    assert sweep.curves["informed", "linkability", 1].value == pytest.approx(same.value)
    metrics = {e.metric for e in sweep.estimates}
    assert {
        "singling_out",
        "linkability",
        "one_minus_eer",
        "linkability_residual",
        "linkability_worst_decile",
        "singling_out_negated",
        "mean_d",
        "max_d",
        "identification_rate",
        "inference",
    } <= metrics


def test_the_strongest_is_named_beside_the_one_asked_for(sweep):
    best = sweep.strongest("linkability", 1, 30)
    competing = sweep.competing("linkability", 1)
    assert best.attacker.startswith("informed")
    assert best.estimate.value == max(curve.value[-1] for curve in competing.values())
    line = next(text for text in sweep.sentences if text.startswith("Linkability, 1 utterance"))
    assert "strongest attacker informed" in line
    assert "asked for: ignorant" in line
    assert "chance 3.33 %" in line
    assert not any("anonymous" in text for text in (*sweep.sentences, *sweep.warnings))


def test_a_weak_attacker_is_not_believed(sweep, sentences):
    assert not any("weak attacker" in line for line in sweep.warnings)
    weak = um.assess_attackers(
        attackers(original=8.0, informed=9.0), counts=[20], lengths=[1], **OPTIONS
    )
    sentences.check(*lines_of(weak, "weak-control"))
    sentences.check(*lines_of(weak, "chance"))
    alone = um.assess_attackers(attackers(informed=1.0), counts=[20], lengths=[1], **OPTIONS)
    sentences.check(*lines_of(alone, "no-control"))
    assert alone.protected == ("informed",)


def test_reversed_evidence_is_told(sentences):
    one = attackers(x=0.5)["x"]
    turned = um.Embeddings(-one.test.vectors, one.test.speakers)
    result = um.assess_attackers(
        {"x": um.Attacker(one.enrol, turned)}, counts=[20], lengths=[1], **OPTIONS
    )
    sentences.check(*lines_of(result, "negated"))
    best = result.strongest("linkability", 1, 20)
    assert best.attacker in ("x, negated", "x, centred negated")
    assert best.of == 4
    assert float(best.estimate.value) > 0.9
    assert "negated" in result.sentences[0]
    detail = {e.metric: e for e in result.details("x", "linkability", 1, 20)}
    assert detail["linkability_negated"].interval is not None
    assert {"linkability_centred", "linkability_centred_negated"} <= set(detail)


def test_centred_scores_see_through_a_common_move():
    one = attackers(x=0.7)["x"]
    away = np.full(16, 12.0)
    moved = um.Embeddings(one.test.vectors + away, one.test.speakers, one.test.utterances)
    enrol = um.Embeddings(one.enrol.vectors - away, one.enrol.speakers, one.enrol.utterances)
    result = um.assess_attackers(
        {"x": um.Attacker(enrol, moved)}, counts=[20], lengths=[1], **OPTIONS
    )
    best = result.strongest("linkability", 1, 20)
    assert best.attacker == "x, centred"
    plain = result.curves["x", "linkability", 1].value[0]
    assert float(best.estimate.value) > plain + 0.1
    middle = um.privacy.centred(moved)
    assert np.abs(middle.vectors.mean(axis=0)).max() < 1e-12
    only = um.assess_attackers(
        {"x": um.Attacker(enrol, moved)}, counts=[20], lengths=[1], variants=["plain"], **OPTIONS
    )
    assert {name for name, _, _ in only.curves} == {"x"}


def test_everyone_with_the_same_voice_cannot_be_centred(sentences):
    same = um.Embeddings(np.ones((60, 4)), [str(i % 20) for i in range(60)])
    one = um.Attacker(same, same, release=False)
    result = um.assess_attackers({"x": one}, counts=[20], lengths=[1], metrics=["linkability"])
    sentences.check(*lines_of(result, "not-centred"))
    assert result.strongest("linkability", 1, 20).estimate.value == pytest.approx(1 / 20)


def test_the_interval_of_the_largest_of_many_risks_allows_for_luck():
    rng, held, alone = np.random.default_rng(0), 0, 0
    for _ in range(60):
        outcomes = (rng.random((12, 60)) < 0.2).astype(float)
        curves = curves_of(outcomes)
        best = um.privacy.strongest_of(curves, COUNT)
        assert best.estimate.value == outcomes.mean(axis=1).max()
        held += best.estimate.interval.low <= 0.2 <= best.estimate.interval.high
        own = curves[best.attacker].estimate(0).interval
        alone += own.low <= 0.2 <= own.high
    assert held >= 55 > alone


def test_one_strong_attacker_among_many_is_told_as_strong_as_it_is():
    """Attackers chosen on ten of twenty people are often other ones, who do less."""
    rng, values = np.random.default_rng(2), []
    for _ in range(40):
        share = np.full((20, 1), 0.05)
        share[7] = 0.3
        outcomes = (rng.random((20, 20)) < share).astype(float)
        values.append(float(um.privacy.strongest_of(curves_of(outcomes)).estimate.value))
    assert np.mean(values) > 0.3 - 0.02


def test_a_clearly_stronger_attacker_keeps_its_value(sentences):
    rng = np.random.default_rng(1)
    outcomes = (rng.random((3, 60)) < np.array([[0.1], [0.8], [0.2]])).astype(float)
    best = um.privacy.strongest_of(curves_of(outcomes))
    assert (best.attacker, best.chosen_share, best.of, best.corrected) == ("attack 1", 1.0, 3, True)
    assert best.estimate.value == pytest.approx(outcomes[1].mean())
    assert best.estimate.interval.method == "speaker,score,cross-fitted"
    sentences.check(best.note)
    alone = um.privacy.strongest_of({"a": curves_of(outcomes)["attack 1"]})
    assert not alone.corrected
    sentences.check(alone.note)
    with pytest.raises(um.InputError) as error:
        um.privacy.strongest_of(curves_of(outcomes), 7)
    sentences.check(str(error.value))


def test_the_largest_equal_error_rate_says_that_it_is_not_corrected(sweep):
    best = sweep.strongest("one_minus_eer", 1, 30)
    assert not best.corrected
    assert "which is conservative" in best.note


def test_attacks_are_ranked_at_twenty_speakers_over_all_lengths(sweep, sentences):
    worst = sweep.worst("linkability")
    assert (worst.length, worst.count) == (4, 20)
    every = [float(sweep.strongest("linkability", length, 20).estimate.value) for length in (1, 4)]
    assert worst.estimate.value == max(every)
    sentences.check(sweep.sentences[0])


def test_enrolment_depth_is_that_of_the_paper_unless_asked_for(sentences):
    one = attackers(x=1.5)
    usual = um.assess_attackers(one, counts=[20], lengths=[1], variants=["plain"], **OPTIONS)
    depth = {m: usual.curves["x", m, 1].enrol_length for m in usual.metrics}
    assert depth == {"singling_out": 30, "linkability": "all", "one_minus_eer": "all"}
    assert "short-enrolment" not in {notice.code for notice in usual.notices}
    asked = um.assess_attackers(
        one,
        counts=[20],
        lengths=[1],
        variants=["plain"],
        protocol=replace(
            QUICK, linkability_enrol=2, singling_out_enrol="all", one_minus_eer_enrol=9
        ),
    )
    depth = {m: asked.curves["x", m, 1].enrol_length for m in usual.metrics}
    assert depth == {"singling_out": "all", "linkability": 2, "one_minus_eer": 9}
    sentences.check(*lines_of(asked, "short-enrolment"))


def test_singling_out_with_sides_swapped():
    one = attackers(x=1.5)["x"]
    options = {"counts": [20], "lengths": [1], "variants": ["plain"], **OPTIONS}
    usual = um.assess_attackers({"x": um.Attacker(one.test, one.enrol)}, **options)
    swapped = um.assess_attackers({"x": one}, **options | {"protocol": replace(QUICK, swap=True)})
    plain = um.assess_attackers({"x": one}, **options)
    key = ("x", "singling_out", 1)
    assert swapped.curves[key].value == usual.curves[key].value
    key = ("x", "linkability", 1)
    assert swapped.curves[key].value == plain.curves[key].value
    kept = um.assess_attackers(
        {"x": um.Attacker(one.enrol, one.test, enrols="original")},
        **options | {"protocol": replace(QUICK, swap=True)},
    )
    key = ("x", "singling_out", 1)
    assert kept.curves[key].value == plain.curves[key].value


def pseudonyms(key, tag, speakers=60, each=8):
    """Every speaker gets an unrelated new voice that a secret key decides."""
    draws = np.random.default_rng([key, ord(tag)])
    names = {"speaker": "s{}", "utterance": f"{key}{tag}{{row}}"}
    return named_speakers(speakers, each, 16, noise=0.1, means=key, draws=draws, **names)


def test_an_ideal_pseudonymiser_protects_against_every_attacker(sentences):
    original = [population(60, 8, noise=0.3, tag=t) for t in "et"]
    attacked, own = pseudonyms(1, "t"), pseudonyms(2, "e")
    result = um.assess_attackers(
        {
            "original": um.Attacker(*original),
            "original enrolment": um.Attacker(original[0], attacked, enrols="original"),
            "ignorant": um.Attacker(own, attacked, enrols="protected", knows="original"),
            "informed": um.Attacker(
                own, attacked, "wccn", pseudonyms(3, "r"), enrols="protected", knows="same"
            ),
            "pseudonyms": um.Attacker(pseudonyms(1, "e"), attacked, release=True),
        },
        counts=[20, 60],
        lengths=[1],
        protocol=QUICK,
        replicates=100,
    )
    assert result.release == ("pseudonyms",)
    assert result.protected == ("original enrolment", "ignorant", "informed")
    assert result.curves["pseudonyms", "linkability", 1].value[1] > 0.95
    for count in (20, 60):
        assert result.strongest("linkability", 1, count).estimate.interval.low <= 1 / count
        assert result.strongest("one_minus_eer", 1, count).estimate.value < 0.62
    at_chance = lines_of(result, "chance")
    for name in result.protected:
        assert any(line.startswith(f"{name}, 1 utterance: ") for line in at_chance)
    sentences.check(*at_chance, *lines_of(result, "release"))
    within = [line for line in result.sentences if "within the release" in line]
    assert len(within) == len(result.metrics)
    assert any("Linkability" in line and "pseudonyms, " in line for line in within)
    sentences.check(*lines_of(result, "isolated"))


def test_an_unrelated_voice_isolates_consistent_pseudonyms_as_well_as_an_attacker():
    attacked = pseudonyms(1, "t")
    known = um.singling_out(pseudonyms(2, "e"), attacked, counts=[60], draws=2)
    blind = population(60, 8, noise=1.0, signal=0.0, tag="e")
    assert um.singling_out(blind, attacked, counts=[60], draws=2).value == pytest.approx(
        known.value, abs=0.1
    )


def test_enrolment_from_the_attacked_run_is_found_out():
    run = pseudonyms(1, "t")
    first = np.arange(len(run)) % 8 < 4
    source = Source("run.npz", "ab" * 32, "npz")
    text = um.Embeddings(run.vectors, run.speakers, run.utterances, source=source)
    assert um.Attacker(text.select(first), text.select(~first)).is_release
    assert not um.Attacker(text.select(first), text.select(~first), enrols="original").is_release
    assert not um.Attacker(text.select(first), text.select(~first), release=False).is_release
    assert um.Attacker(run, run.select(first)).is_release
    assert not um.Attacker(run.select(first), run.select(~first)).is_release


def test_few_speakers_are_told(sentences):
    one = {
        "x": um.Attacker(*(population(12, 6, noise=1.0, tag=t) for t in "et")),
    }
    result = um.assess_attackers(one, counts=[12], lengths=[1], **OPTIONS)
    sentences.check(*lines_of(result, "few-speakers"))


def test_counts_beyond_some_conditions_are_left_out_and_told(sentences):
    test = population(30, [1] * 10 + [8] * 20, noise=1.0, tag="t")
    enrol = population(30, 8, noise=1.0, tag="e")
    result = um.assess_attackers(
        {"a": um.Attacker(enrol, test)}, counts=[10, 25], lengths=[1], **OPTIONS
    )
    assert result.curves["a", "singling_out", 1].counts.tolist() == [10]
    sentences.check(*lines_of(result, "count-left-out"))
    with pytest.raises(um.InputError) as error:
        um.assess_attackers({"a": um.Attacker(enrol, test)}, counts=[31], lengths=[1], **OPTIONS)
    sentences.check(str(error.value))


def test_usual_counts_and_lengths():
    assert default_counts(22_024) == (
        20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 22_024,
    )  # fmt: skip
    assert default_counts(7) == (7,)
    result = um.assess_attackers(attackers(a=1.0), metrics=["linkability"], **OPTIONS)
    most = int(np.bincount(attackers(a=1.0)["a"].test.speakers.codes).max())
    assert result.lengths == (1, 3, most)
    said = "conversations of 30 utterances left out, no test speaker has enough: the longest"
    assert f"{said} are of {most}" in result.warnings


def test_backends_of_an_attacker_with_training_speech():
    one = attackers(informed=2.0)["informed"]
    train = population(30, 8, noise=2.0, tag="train", seed=5)
    trained = um.Attacker(one.enrol, one.test, train=train)
    outcome = um.privacy.with_backends(
        {"informed": trained, "ignorant": one, "original": trained}, ["cosine", "wccn", "plda"]
    )
    names = ["informed (cosine)", "informed (wccn)", "informed (plda)", "ignorant", "original"]
    assert list(outcome) == names
    result = um.assess_attackers(
        outcome, counts=[20], lengths=[1], metrics=["linkability"], **OPTIONS
    )
    used = [result.curves[name, "linkability", 1].backend for name in outcome]
    assert used == ["cosine", "wccn", "plda", "cosine", "cosine"]
    assert result.original == "original"
    assert result.strongest("linkability", 1, 20).attacker != "original"


def test_progress_reaches_the_end():
    seen = []
    with progress(lambda done, total: seen.append(done / total)):
        um.assess_attackers(
            attackers(a=1.0), counts=[10], lengths=[1], attributes=["gender"], **OPTIONS
        )
    assert seen == [n / 7 for n in range(1, 8)]


def test_bad_names(sentences):
    with pytest.raises(um.InputError) as error:
        um.assess_attackers({})
    sentences.check(str(error.value))
    with pytest.raises(um.InputError) as error:
        um.assess_attackers(attackers(a=1.0), metrics=["eer"])
    sentences.check(str(error.value))
    with pytest.raises(um.InputError) as error:
        um.assess_attackers(attackers(a=1.0), asked="b")
    sentences.check(str(error.value))


def test_notices_are_told_by_code(sweep):
    assert sweep.warnings == tuple(notice.line for notice in sweep.notices)
    assert not any(notice.sentence.startswith(notice.subject or "?") for notice in sweep.notices)
    alone = um.assess_attackers(attackers(informed=1.0), counts=[20], lengths=[1], **OPTIONS)
    assert alone.notices[0].code == "no-control"
    weak = um.assess_attackers(
        attackers(original=8.0, informed=9.0), counts=[20], lengths=[1], **OPTIONS
    )
    text = {notice.code: notice for notice in weak.notices}
    assert text["weak-control"].sentence.startswith("weak attacker: ")
    assert text["chance"].subject == "informed, 1 utterance"


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the real embeddings")
def test_real_voices_are_linked_and_singled_out():
    voices = um.read_embeddings(SHARED / "audiomnist_1200_campplus192.npz")
    first = np.arange(len(voices)) % 20 < 5
    enrol, test = voices.select(first), voices.select(~first)
    linked = um.linkability(enrol, test, counts=[20, 60])
    assert linked.value.min() > 0.9
    isolated = um.singling_out(
        enrol, test, counts=[20, 60], draws=2, protocol=um.LegalProtocol(singling_out_enrol=5)
    )
    assert isolated.value.min() > 0.8
    assert isolated.left_out == 0


def test_no_function_of_the_room_takes_more_than_twelve_parameters():
    made = (getattr(um.privacy.legal, name) for name in um.privacy.legal.__all__)
    counts = {one.__name__: len(signature(one).parameters) for one in made if isfunction(one)}
    assert {"assess_attackers", "linkability", "one_minus_eer", "singling_out"} <= set(counts)
    assert {name: count for name, count in counts.items() if count > 12} == {}


def test_what_is_asked_of_a_metric_goes_before_the_protocol(sentences):
    enrol, test = (population(20, 4, noise=1.5, tag=t) for t in "et")
    how = um.LegalProtocol(folds=2, draws=1, max_enrol=6, linkability_draws=3)
    by_name = um.singling_out(enrol, test, counts=[10], folds=2, draws=1, max_enrol=6, seed=0)
    by_protocol = um.singling_out(enrol, test, counts=[10], protocol=how)
    assert by_name.per_speaker.tolist() == by_protocol.per_speaker.tolist()
    assert um.singling_out(enrol, test, counts=[10], folds=4, protocol=how).folds == 4
    assert um.linkability(enrol, test, counts=[10], protocol=how).draws == 3
    assert um.linkability(enrol, test, counts=[10], draws=7, protocol=how).draws == 7
    for name in ("folds", "draws", "max_enrol", "max_conversations"):
        with pytest.raises(um.InputError) as error:
            um.LegalProtocol(**{name: 0})
        sentences.check(str(error.value))
