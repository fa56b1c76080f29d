from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.helpers.notices import lines_of
from tests.helpers.populations import population

import unmask as um
from unmask.base import Groups
from unmask.errors import InputError
from unmask.privacy.legal import isolating_kernel, one_minus_eer
from unmask.privacy.legal.conversations import Rows
from unmask.privacy.legal.isolating import calibrated_chance, mean_calibrated_chance
from unmask.privacy.legal.isolating_kernel import (
    Attempts,
    Best,
    Draws,
    single_out,
    test_slots as fold_slots,
)

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "embeddings"


def brute(scores, population, order, folds, count):
    """The definition, one fold and one speaker after another."""
    speakers = order[:count]
    won = []
    for slots in folds:
        calibration, entries = [], []
        for speaker in speakers:
            start, size = population.first[speaker], population.counts[speaker]
            for slot in range(size):
                group = entries if slot == slots[speaker] else calibration
                group.append(scores[start + slot])
        k = population.counts[order[0]] - 1
        ordered = sorted(calibration, reverse=True)
        threshold = (ordered[k - 1] + ordered[k]) / 2
        won.append(sum(score > threshold for score in entries) == 1)
    return np.mean(won)


def draws_of(people, speaker, number, folds, seed=0):
    """Orders of all people, the speaker first, and the test entries of every fold."""
    how = um.LegalProtocol(folds=folds, draws=number), np.random.SeedSequence(seed)
    attempts = Attempts.of(people, np.array([speaker]), np.array([2]), *how)
    order = attempts.draws(np.array([0])).order[0]
    return list(zip(order, attempts.slots, strict=True))


def shares(scores, people, exact, margin, draws, counts):
    return tried(scores, people, exact, margin, draws, counts)[0].mean(axis=0)


def tried(scores, people, exact, margin, draws, counts):
    """The predicate of one enrolment speaker."""
    order, slots = map(np.stack, zip(*draws, strict=True))
    rank = int(people.counts[order[0, 0]]) - 1
    best = Best(scores[None].astype(np.float32), people, Draws(order[None]))
    won, *changes = single_out(best, lambda _, c: exact(c), np.array([margin]), slots, rank, counts)
    return won[:, 0], *changes


@pytest.mark.parametrize("levels", [5, 60, None])
@pytest.mark.parametrize("sizes", [[10] * 400, [2] * 300, [2, 3, 7, 10] * 90])
def test_equals_the_definition(sizes, levels):
    people = Groups(np.repeat(np.arange(len(sizes)), sizes))
    rng = np.random.default_rng(len(sizes))
    scores = rng.normal(size=len(people.codes))
    if levels is not None:
        scores = np.round(scores * levels / 4) / levels
    counts = np.array([2, 3, 20, 150, len(sizes)])
    draws = draws_of(people, 7, 3, 10)
    result = shares(scores, people, scores.take, 1e-6, draws, counts)
    expected = [[brute(scores, people, *draw, n) for n in counts] for draw in draws]
    assert result.tolist() == expected


def test_a_threshold_has_the_precision_of_the_scores():
    step = np.finfo(np.float32).eps
    scores = np.array([[1 + 2 * step], [1 + 2 * step], [1 + step]], dtype=np.float32)
    is_test = np.array([True, False, False])[None, :, None]
    for kind, won in ((np.float32, False), (np.float64, True)):  # halfway rounds up to 1 + 2 steps
        found = isolating_kernel.isolated(scores.astype(kind), is_test, ~is_test, 1)
        assert found[0].tolist() == [[won]]
        assert found[1].dtype == kind


def test_side_information_equals_the_definition():
    people = Groups(np.repeat(np.arange(300), 5))
    rng = np.random.default_rng(0)
    vectors, enrol = rng.normal(size=(1500, 8)), rng.normal(size=8)
    for share in (0.5, 0.02):
        allowed = (rng.random(300) < share)[people.codes]
        scores = np.where(allowed, vectors @ enrol, -np.inf)
        rows = Rows(enrol[None], vectors, (np.ones(1), allowed.astype(int)))
        exact = lambda c, rows=rows: rows.exact(np.zeros(len(c), dtype=int), c)  # noqa: E731
        draws = draws_of(people, 0, 2, 4)
        counts = np.array([2, 30, 300])
        result = shares(scores, people, exact, 1e-4, draws, counts)
        assert result.tolist() == [[brute(scores, people, *d, n) for n in counts] for d in draws]


def test_every_conversation_is_tested_once_in_a_round():
    per_speaker = np.array([10, 10, 2, 3])
    slots = fold_slots(per_speaker, 10, np.random.SeedSequence(0))
    assert sorted(slots[:, 0]) == sorted(slots[:, 1]) == list(range(10))
    assert slots[:, 0].tolist() != slots[:, 1].tolist()
    for fold in range(0, 10, 2):
        assert sorted(slots[fold : fold + 2, 2]) == [0, 1]
    assert sorted(slots[:3, 3]) == [0, 1, 2]


def test_speaker_free_scores_land_below_the_random_predicate():
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(200), 10)
    scores = rng.normal(size=(150, 2000))
    value = um.privacy.singling_out_from_scores(scores, np.arange(150), owner, counts=[100, 200])
    assert value == pytest.approx([0.349, 0.349], abs=0.02)
    assert (value < np.exp(-1)).all()


def test_exchangeable_embeddings_are_flagged_with_three_chance_levels(sentences):
    enrol, test = (population(120, 10, noise=1.0, signal=0.0, tag=t) for t in "et")
    result = um.singling_out(enrol, test, counts=[20, 120])
    assert result.value == pytest.approx([0.357, 0.35], abs=0.03)
    assert result.chance_paper == pytest.approx(np.exp(-1))
    assert result.chance_exact == pytest.approx([(1 - 1 / n) ** (n - 1) for n in (20, 120)])
    assert result.chance == pytest.approx([0.3587, 0.3511], abs=2e-4)
    assert result.threshold_rank.tolist() == [9, 9]
    assert result.at_chance.all()
    sentences.check(*lines_of(result, "chance"))


def test_separable_is_certain():
    enrol, test = (population(60, 10, noise=1e-3, tag=t) for t in "et")
    result = um.singling_out(enrol, test, counts=[5, 20, 60], draws=2)
    assert result.value == pytest.approx([1, 1, 1])
    assert result.residual == pytest.approx([1, 1, 1])
    assert result.attacks.tolist() == [60 * 10 * 2] * 3


def test_unequal_conversations(sentences):
    sizes = [1] * 5 + [2] * 10 + [5] * 10 + [23] * 35
    enrol = population(60, 3, noise=1e-3, tag="e")
    test = population(60, sizes, noise=1e-3, tag="t")
    result = um.singling_out(enrol, test, counts=[10, 55])
    assert result.left_out == 5
    assert len(result.speakers) == 55
    assert result.threshold_rank == pytest.approx([(10 * 1 + 10 * 4 + 35 * 9) / 55] * 2)
    assert result.value == pytest.approx([1, 1])
    sentences.check(*lines_of(result, "left-out"))
    pairs = um.singling_out(enrol, population(60, 2, noise=1e-3, tag="t"), counts=[60])
    assert pairs.threshold_rank.tolist() == [1]
    assert pairs.value == pytest.approx([1])


@pytest.mark.parametrize(
    "sizes", [[10, 2] * 30, [10] * 6 + [2] * 54, list(range(2, 11)) * 6 + [2] * 6]
)
def test_separable_is_certain_however_unequal(sizes):
    enrol = population(60, 2, noise=1e-3, tag="e")
    test = population(60, sizes, noise=1e-3, tag="t")
    result = um.singling_out(enrol, test, counts=[2, 20, 60], draws=2)
    assert result.value.tolist() == [1, 1, 1]
    assert result.threshold_rank == pytest.approx([np.mean(sizes) - 1] * 3)
    assert (result.low < 1).all(), "no interval of zero width"
    given = um.privacy.singling_out_from_scores(
        (np.arange(60)[:, None] == np.repeat(np.arange(60), sizes)) * 1.0,
        np.arange(60),
        np.repeat(np.arange(60), sizes),
        counts=[60],
    )
    assert given.tolist() == [1]


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the real embeddings")
def test_real_voices_thinned_at_random_are_still_singled_out():
    voices = um.read_embeddings(SHARED / "audiomnist_1200_campplus192.npz")
    rng = np.random.default_rng(0)
    enrol, rest = voices.select(np.arange(1200) % 20 < 10), np.arange(1200) % 20 >= 10
    kept = rng.integers(2, 11, 60)
    rest &= np.arange(1200) % 20 < 10 + kept[np.arange(1200) // 20]
    result = um.singling_out(enrol, voices.select(rest), counts=[60])
    assert result.value[0] > 0.97


@pytest.mark.parametrize(("count", "rank"), [(20, 1), (60, 1), (60, 2), (40, 9)])
def test_calibrated_chance_is_what_exchangeable_scores_reach(count, rank):
    rng = np.random.default_rng(count + rank)
    times = 12_000
    calibration, entries = rng.random((times, count * rank)), rng.random((times, count))
    best = np.sort(np.partition(calibration, -rank - 1, axis=1)[:, -rank - 1 :], axis=1)
    threshold = best[:, :2].mean(axis=1)
    won = ((entries > threshold[:, None]).sum(axis=1) == 1).mean()
    expected = calibrated_chance(count, rank, count * rank)
    assert won == pytest.approx(expected, abs=4 * np.sqrt(0.25 / times))


def test_calibrated_chance_of_many_speakers():
    result = [calibrated_chance(10**6, k, k * 10**6) for k in (1, 2, 9)]
    assert result == pytest.approx([5 / 18, 0.30815, 0.34964], abs=1e-5)
    assert calibrated_chance(60, 2, 120) == pytest.approx(0.311, abs=1e-3)
    alike = mean_calibrated_chance(np.full(60, 3), np.arange(60), np.array([20, 60]))
    assert alike == pytest.approx([calibrated_chance(n, 2, 2 * n) for n in (20, 60)])


def test_calibrated_chance_of_unequal_speakers():
    rng = np.random.default_rng(4)
    sizes = np.array([2, 3, 6, 10] * 15)
    scores = rng.normal(size=(60 * 12, sizes.sum()))
    owner = np.repeat(np.arange(60), sizes)
    value = um.privacy.singling_out_from_scores(
        scores, np.tile(np.arange(60), 12), owner, counts=[20, 60], draws=2
    )
    expected = mean_calibrated_chance(sizes, np.arange(60), np.array([20, 60]))
    assert value == pytest.approx(expected, abs=0.02)


def test_what_becomes_of_a_success_without_a_speaker_equals_the_definition():
    sizes = np.array([2, 4, 5, 3] * 6)
    people = Groups(np.repeat(np.arange(24), sizes))
    rng = np.random.default_rng(1)
    scores = rng.normal(size=len(people.codes)) + 1.5 * (people.codes == 6)
    counts = np.array([8, 24])
    draws = draws_of(people, 6, 3, 5)
    _, absent, rise = tried(scores, people, scores.take, 1e-6, draws, counts)
    expected = np.zeros((2, 24), dtype=int)
    for c, count in enumerate(counts):
        for draw in draws[:2]:
            for j in draw[0][1:count]:
                fewer = np.where(people.codes == j, -np.inf, scores)
                change = brute(fewer, people, *draw, count) - brute(scores, people, *draw, count)
                expected[c, j] += round(5 * change)
    change = np.zeros(48, dtype=int)
    change[absent] = rise
    assert change.reshape(2, 24).tolist() == expected.tolist()
    assert (expected != 0).any()


def test_blocks_do_not_matter(monkeypatch):
    enrol, test = (population(40, 10, noise=1.0, tag=t) for t in "et")
    options = {"counts": [5, 20, 40], "draws": 2, "folds": 4, "seed": 5}
    results = []
    for size in (1, 7, 64):
        monkeypatch.setattr(isolating_kernel, "SPEAKERS", size)
        results.append(um.singling_out(enrol, test, **options))
    for other in results[1:]:
        assert other.per_speaker.tolist() == results[0].per_speaker.tolist()
        assert other.negated.value.tolist() == results[0].negated.value.tolist()
        assert other.high.tolist() == results[0].high.tolist()


# Counted once: neither blocks nor places may change them.
GOLDEN = {
    (): ([273, 204, 173], [162, 136, 135]),
    ("gender",): ([314, 230, 194], [209, 140, 131]),
}


@pytest.mark.parametrize("side", GOLDEN)
def test_a_seed_keeps_its_value(side):
    enrol = population(50, 6, noise=1.4, tag="e", columns=True)
    test = population(50, [2, 3, 5, 6, 9] * 10, noise=1.4, tag="t", columns=True)
    how = um.LegalProtocol(draws=3, folds=4, max_enrol=40, side=side)
    options = {"protocol": how, "seed": 11}
    result = um.singling_out(enrol, test, counts=[5, 20, 50], **options)
    won, negated = GOLDEN[side]
    assert (12 * result.per_speaker.sum(axis=0)).round(6).tolist() == won
    assert (12 * 40 * result.negated.value).round(6).tolist() == negated
    sizes = dict(zip([f"s{i}" for i in range(50)], [2, 3, 5, 6, 9] * 10, strict=True))
    rank = np.mean([sizes[name] - 1 for name in result.speakers])
    assert result.threshold_rank == pytest.approx([rank] * 3, abs=1e-12)
    scores = np.random.default_rng(3).normal(size=(30, 120))
    owner = np.repeat(np.arange(30), 4)
    given = um.privacy.singling_out_from_scores(
        scores, np.arange(30), owner, counts=[4, 30], draws=3, folds=4, seed=2**70 + 5
    )
    assert (12 * 30 * given).round(6).tolist() == [130, 124]


@pytest.mark.parametrize("seed", [0, 7, 2**32, 2**70 + 5, [3, 2**40]])
def test_draws_are_those_of_successive_spawns(seed):
    people = Groups(np.repeat(np.arange(30), 2))
    parent = np.random.SeedSequence(seed).spawn(4)[3]
    how = um.LegalProtocol(folds=2, draws=3)
    attempts = Attempts.of(people, np.arange(9), np.array([5]), how, parent)
    spawned = np.random.SeedSequence(seed).spawn(4)[3].spawn(2)[1].spawn(9)
    for e in (8, 0, 5):
        orders = attempts.draws(np.array([e])).order[0]
        for drawn, child in zip(orders, spawned[e].spawn(3), strict=True):
            order = np.random.default_rng(child).permutation(30)
            assert drawn.tolist() == [e, *order[order != e]]


def test_folds_draws_and_seeds_change_the_result():
    enrol, test = (population(40, 10, noise=1.5, tag=t) for t in "et")
    base = um.singling_out(enrol, test, counts=[40], draws=1, folds=1)
    other = um.singling_out(enrol, test, counts=[40], draws=1, folds=1, seed=1)
    folds = um.singling_out(enrol, test, counts=[40], draws=1, folds=10)
    assert (base.per_speaker != other.per_speaker).any()
    assert ((folds.per_speaker > 0) & (folds.per_speaker < 1)).any()


def test_an_independent_protocol_agrees():
    rng = np.random.default_rng(8)
    enrol, test = (population(50, 10, noise=1.2, tag=t) for t in "et")
    rows = test.vectors / np.linalg.norm(test.vectors, axis=1, keepdims=True)
    first = enrol.vectors[::10] / np.linalg.norm(enrol.vectors[::10], axis=1, keepdims=True)
    scores = (first @ rows.T).reshape(50, 50, 10)
    won = []
    for e in range(50):
        for _ in range(40):
            others = rng.choice(np.delete(np.arange(50), e), 19, replace=False)
            part = scores[e][np.append(others, e)]
            pick = rng.integers(0, 10, 20)
            entries = part[np.arange(20), pick]
            rest = np.sort(np.delete(part.ravel(), np.arange(20) * 10 + pick))[::-1]
            won.append((entries > (rest[8] + rest[9]) / 2).sum() == 1)
    value = um.privacy.singling_out_from_scores(
        scores.reshape(50, 500), np.arange(50), np.repeat(np.arange(50), 10), counts=[20], draws=20
    )
    assert value[0] == pytest.approx(np.mean(won), abs=0.04)


def test_at_most_so_many_enrolment_speakers():
    enrol, test = (population(40, 4, noise=1.0, tag=t) for t in "et")
    result = um.singling_out(enrol, test, counts=[20], max_enrol=7, draws=1)
    assert len(result.speakers) == 7
    assert result.per_speaker.shape == (7, 1)


def refused(match, **changes):
    options = {"counts": [10], **changes}
    enrol = options.pop("enrol", population(20, 4, noise=1.0, tag="e"))
    test = options.pop("test", population(20, 4, noise=1.0, tag="t"))
    with pytest.raises(um.InputError, match=match):
        um.singling_out(enrol, test, **options)


def test_bad_input_is_told_in_one_line():
    refused("at most the 20 speakers in test with 2 utterances, found 21", counts=[21])
    refused("at least 6 utterances, found at most 4", length=3)
    refused("whole numbers of at least 2, found 1", counts=[1])
    refused("folds: expected at least 1", folds=0)
    refused("max_enrol", max_enrol=0)
    strangers = um.Embeddings(np.ones((2, 16)), ["x", "y"])
    refused("found none of 2 .first: x", enrol=strangers)
    refused("80 in enrolment and in test", test=population(20, 4, noise=1.0, tag="e"))
    with pytest.raises(um.InputError, match=r"1 with one .first: 1"):
        um.privacy.singling_out_from_scores(np.zeros((1, 3)), [0], [0, 0, 1], counts=[2])
    with pytest.raises(um.InputError, match="1 absent"):
        um.privacy.singling_out_from_scores(np.zeros((1, 2)), [4], [0, 0], counts=[2])
    with pytest.raises(um.InputError, match="1 × 3"):
        um.privacy.singling_out_from_scores(np.zeros((1, 2)), [0], [0, 0, 1], counts=[2])


def test_side_information_by_column_and_by_pair():
    enrol, test = (population(60, 6, noise=1.5, tag=t, columns=True) for t in "et")
    options = {"counts": [20, 60], "draws": 2, "folds": 6}
    plain = um.singling_out(enrol, test, **options)
    known = um.singling_out(enrol, test, **options, protocol=um.LegalProtocol(side=["gender"]))
    assert known.estimates[0].params["side"] == "gender"
    assert known.per_speaker.tolist() != plain.per_speaker.tolist()
    assert np.isfinite(known.negated.value).all()
    owner = np.repeat(np.arange(60), 6)
    scores = np.random.default_rng(0).normal(size=(60, 360))
    own = np.arange(60)[:, None] == owner
    alone = um.privacy.singling_out_from_scores(
        scores, np.arange(60), owner, counts=[20, 60], matches=own
    )
    assert alone == pytest.approx([1, 1]), "an attribute that only the speaker has isolates"
    with pytest.raises(um.InputError, match="matches: expected shape"):
        um.privacy.singling_out_from_scores(
            scores, np.arange(60), owner, counts=[20], matches=own[:, 1:]
        )


def test_side_information_rules_out_pairs_of_different_codes():
    vectors, both = np.eye(3), np.arange(3)
    assert Rows(vectors, vectors).exact(both, both[::-1]).tolist() == [0.0, 1.0, 0.0]
    ruled = Rows(vectors, vectors, (both, both)).exact(both, both[::-1])
    assert ruled.tolist() == [-np.inf, 1.0, -np.inf]


@pytest.mark.parametrize("length", [1, 2])
def test_the_order_of_rows_changes_nothing(length):
    enrol, test = (
        population(20, 6, noise=1.5, tag=tag, columns=True, seed=seed)
        for seed, tag in enumerate("et")
    )
    rng = np.random.default_rng(0)
    shuffled = [one.select(rng.permutation(len(one))) for one in (enrol, test)]
    how = {"counts": [4, 12], "length": length}
    sexes = um.LegalProtocol(side=("gender",))
    for attack, options in (
        (um.singling_out, {"max_enrol": 9, "folds": 4, "draws": 2, "protocol": sexes}),
        (um.linkability, {"protocol": um.LegalProtocol(linkability_enrol=3)}),
        (one_minus_eer, {}),
    ):
        known, again = (attack(*sides, **how, **options) for sides in ((enrol, test), shuffled))
        assert again.speakers.to_list() == known.speakers.to_list()
        for name in ("value", "low", "high"):
            assert np.array_equal(getattr(again, name), getattr(known, name))
    known, again = (um.attribute_inference(one, "gender") for one in (test, shuffled[1]))
    assert [e.value for e in again.estimates] == pytest.approx([e.value for e in known.estimates])


def test_equal_scores_are_in_an_order_that_the_seed_and_the_conversation_give():
    """Five stored voices: one of many equal conversations is isolated as often as one of unequal
    ones, whatever the order of rows; another seed breaks the ties otherwise.
    """
    rng = np.random.default_rng(8)
    stored = rng.normal(size=(5, 12))
    owner = np.repeat(np.arange(40), 6)
    names = np.array([f"s{n:02}" for n in range(40)])
    enrol = um.Embeddings(stored[np.arange(40) % 5], names)
    voices, spoken = stored[owner % 5], np.array([f"u{n:03}" for n in range(owner.size)])
    values = {}
    for noise in (0.0, 1e-2):
        noisy = voices + noise * np.random.default_rng(9).normal(size=voices.shape)
        values[noise] = um.singling_out(
            enrol, um.Embeddings(noisy, names[owner], spoken), counts=[20], replicates=0
        )
    assert values[0.0].value[0] == pytest.approx(values[1e-2].value[0], abs=0.05)
    assert values[0.0].value[0] > 0.25
    moved = rng.permutation(owner.size)
    again = um.singling_out(
        enrol,
        um.Embeddings(voices[moved], names[owner][moved], spoken[moved]),
        counts=[20],
        replicates=0,
    )
    assert again.value == values[0.0].value
    scores = (stored @ stored.T)[np.arange(40) % 5][:, owner % 5].round(1)
    given = um.privacy.singling_out_from_scores(scores, np.arange(40), owner, counts=[20])
    assert given[0] == pytest.approx(values[1e-2].value[0], abs=0.05)


def test_lots_are_even_and_those_of_equal_rows_differ():
    rows = np.repeat(np.random.default_rng(0).normal(size=(500, 7)), 4, axis=0)
    drawn = isolating_kernel.lots(rows, 3)
    assert len(np.unique(drawn)) == 2000
    assert np.histogram(drawn, 10, (0, 1))[0] == pytest.approx(np.full(10, 200), abs=60)
    turned = isolating_kernel.lots(rows[::-1].copy(), 3)
    assert sorted(turned[::-1][:4]) == sorted(drawn[:4])
    assert (isolating_kernel.lots(rows, 4) != drawn).all()
    assert (isolating_kernel.lots(-0.0 * rows, 3) == isolating_kernel.lots(0.0 * rows, 3)).all()


def test_a_length_without_two_conversations_costs_singling_out_alone(sentences):
    """Four utterances of each person: one conversation of three for Linkability, not two."""
    rng = np.random.default_rng(0)
    names = np.repeat([f"s{n:02}" for n in range(30)], 4)
    means = np.repeat(rng.normal(size=(30, 8)), 4, axis=0)
    enrol, test = (um.Embeddings(means + rng.normal(size=means.shape), names) for _ in "et")
    attackers = {"a": um.Attacker(enrol, test, enrols="original")}
    found = um.assess_attackers(attackers, lengths=[1, 3], counts=[20], replicates=0)
    assert found.lengths_of("singling_out") == (1,)
    assert found.lengths_of("linkability") == (1, 3)
    (told,) = lines_of(found, "length-left-out")
    sentences.check(told)
    assert found.worst("singling_out").length == 1
    assert found.estimate("a", "singling_out", 3, 20) is None
    assert "legal_panel" in found.figures()
    assert {row.conditions["L"] for row in um.report.document(found).rows} == {"1", "3"}
    with pytest.raises(InputError) as error:
        um.assess_attackers(attackers, lengths=[3], counts=[20], metrics=["singling_out"])
    sentences.check(str(error.value))
