"""What luck reads of the strongest attack: permuted names are what renaming the speech gives."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.engine import Roc
from unmask.estimate import Luck
from unmask.privacy import strongest_of
from unmask.privacy.legal import permuted
from unmask.privacy.legal.permuted import above_and_tied
from unmask.privacy.luck import Permuted, Renaming, best_by_luck, luck_of
from unmask.privacy.similarity.renamed import (
    D_ECE,
    EER,
    L_W,
    SIGNED,
    lucks_of_trials,
    quantiles,
    renamed_list,
    renamed_trials,
)

pytestmark = pytest.mark.filterwarnings("ignore::unmask.UnmaskWarning")


def speech(rng, people, each, tag, *, own=None, dim=16, noise=0.8):
    means = rng if own is None else own
    names = f"{tag}{{row:04}}"
    return named_speakers(people, each, dim, noise=noise, means=means, draws=rng, utterance=names)


def test_all_permutations_of_up_to_five_people_are_tried_and_200_of_more():
    for people, number in ((1, 1), (2, 2), (3, 6), (4, 24), (5, 120), (6, 200)):
        renaming = Renaming.of(people, 0)
        assert renaming.exhaustive == (people < 6)
        assert renaming.rows.shape == (number + 1, people)
        assert renaming.rows[0].tolist() == list(range(people))
        if people < 6:
            assert {tuple(row) for row in renaming.rows[1:]} == set(permutations(range(people)))


def test_names_stay_within_their_groups():
    groups = np.array([0, 1, 0, 1, 1, 0, 2])
    rows = Renaming.of(7, 3, groups).rows
    assert (groups[rows] == groups).all()
    few = Renaming.of(4, 3, np.array([0, 0, 1, 1]))
    assert not few.exhaustive
    assert len(few.rows) == 25


def test_permutations_of_some_people_are_even_and_keep_what_they_can():
    renaming = replace(Renaming.of(4, 0), rows=np.array(list(permutations(range(4)))))
    kept = np.array([0, 2, 3])
    rows = renaming.among(kept)
    assert set(Counter(map(tuple, rows.tolist())).values()) == {4}
    for whole, part in zip(renaming.rows, rows, strict=True):
        for i, person in enumerate(kept):
            if whole[person] != 1:
                assert kept[part[i]] == whole[person]


@pytest.mark.parametrize("tolerance", [0.0, 0.25])
def test_ties_are_counted_under_both_signs_and_never_with_who_is_ruled_out(tolerance):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 5, (40, 9)) + 0.1 * rng.integers(0, 3, (40, 9))
    scores[rng.random(scores.shape) < 0.2] = -np.inf
    scores[3] = -np.inf
    columns = np.array([0, 4, 8])
    both = above_and_tied(scores, columns, tolerance)
    for sign, (above, tied) in zip((1, -1), both, strict=True):
        for row, (one, more, equal) in enumerate(zip(scores, above, tied, strict=True)):
            for place, column in enumerate(columns):
                if one[column] == -np.inf:
                    assert (more[place], equal[place]) == (8, 0)
                    continue
                others = np.delete(one, column)
                gaps = sign * (others[others > -np.inf] - one[column])
                assert more[place] == (gaps > tolerance).sum(), (row, place)
                assert equal[place] == (np.abs(gaps) <= tolerance).sum(), (row, place)


@pytest.mark.parametrize("side", [(), ("sex",)])
def test_permuted_names_of_linkability_are_those_of_renamed_speech(side):
    rng = np.random.default_rng(1)
    people = 8
    enrol, test = (speech(rng, people + extra, 5, tag) for extra, tag in ((4, "e"), (0, "t")))
    sexes = {f"s{i:02d}": "fm"[i % 2] for i in range(people + 4)}
    enrol, test = (
        um.Embeddings(
            one.vectors,
            one.speakers,
            one.utterances,
            columns={"sex": [sexes[name] for name in one.speakers.to_series()]},
        )
        for one in (enrol, test)
    )
    how = {"counts": [3, 12], "length": 2, "protocol": um.LegalProtocol(side=side)}
    curve = um.linkability(enrol, test, **how)
    assert curve.permuted is not None
    groups = np.array([i % 2 for i in range(people)]) if side else None
    renaming = Renaming.of(people, 0, groups)
    outcomes = curve.permuted.values
    assert outcomes[0] == pytest.approx(curve.value, abs=1e-12)
    names = [f"s{i:02d}" for i in range(people)]
    for row in (5, 60, 177):
        given = {names[i]: names[j] for i, j in enumerate(renaming.rows[row])}
        # Conversations are drawn by name: renaming the enrolment leaves those of the test alone.
        back = {new: old for old, new in given.items()}
        called = [back.get(name, name) for name in enrol.speakers.to_series()]
        other = um.linkability(
            replace(enrol, speakers=um.trials.Ids.from_strings(called)), test, **how
        )
        assert outcomes[row] == pytest.approx(other.value, abs=1e-12)
        assert curve.negated is not None
        assert curve.negated.permuted.values[row] == pytest.approx(other.negated.value, abs=1e-12)


def test_chance_is_one_of_all_candidates_unless_the_others_are_recorded_otherwise():
    rng = np.random.default_rng(2)
    alike = um.linkability(speech(rng, 12, 4, "e"), speech(rng, 12, 4, "t"), counts=[4, 12])
    assert alike.chance == pytest.approx([1 / 4, 1 / 12], abs=1e-12)
    known, far = speech(rng, 12, 4, "e"), speech(rng, 24, 4, "f")
    room = 4 * rng.normal(size=16)
    both = um.Embeddings(
        np.concatenate([known.vectors + room, far.vectors[48:]]),
        [*known.speakers.to_series(), *far.speakers.to_series()[48:]],
    )
    test = speech(rng, 12, 4, "t")
    told = um.linkability(both, replace(test, vectors=test.vectors + room), counts=[4, 20])
    assert (told.chance > [1 / 4 + 0.05, 1 / 20 + 0.02]).all()
    assert told.residual == pytest.approx((told.value - told.chance) / (1 - told.chance))


def test_people_who_are_many_are_drawn_and_the_first_row_is_theirs(monkeypatch):
    rng = np.random.default_rng(3)
    own = rng.normal(size=(60, 16))
    enrol, test = speech(rng, 60, 3, "e", own=own), speech(rng, 60, 3, "t", own=own)
    monkeypatch.setattr(permuted, "MOST_PEOPLE", 20)
    some = um.linkability(enrol, test, counts=[20])
    assert some.permuted.people == 20
    found = strongest_of({"a": some}).estimate
    assert found.luck.p == pytest.approx(1 / 201)
    assert "from 20 people" in found.by_luck


def test_a_deal_leaves_the_scores_and_isolates_as_singling_out_does():
    rng = np.random.default_rng(4)
    own = rng.normal(size=(24, 16))
    enrol, test = speech(rng, 24, 6, "e", own=own), speech(rng, 24, 9, "t", own=own)
    few = test.select(np.arange(len(test)) % 9 < np.repeat(np.arange(24) % 4 + 4, 9))
    for tested in (test, few):
        curve = um.singling_out(enrol, tested, counts=[10, 24])
        for one in (curve, curve.negated):
            assert one.permuted.values[0, 0] == pytest.approx(one.value[0], abs=1e-12)
            assert np.isnan(one.permuted.values[:, 1]).all()
            assert one.permuted.values[1:, 0].mean() < 0.45
        assert curve.details(0)[-1].metric == "singling_out_own"
        assert float(curve.details(0)[-1].value) > 0.9
        assert curve.details(0)[-1].luck.beyond
    strangers = um.singling_out(speech(rng, 24, 6, "e"), test, counts=[10])
    assert strangers.value[0] > strangers.permuted.values[1:].max()
    own_share = strangers.details(0)[-1]
    assert own_share.chance == pytest.approx(1 / 10)
    assert not own_share.luck.beyond


@pytest.mark.parametrize("side", [(), ("sex",)])
def test_a_pool_of_people_tells_the_same_chance_as_everybody(side, monkeypatch):
    """The conversations of 60 of 300 people are dealt among them: the mean is that of dealing all,
    within the noise of 19 deals, and what isolates as it is remains.
    """
    rng = np.random.default_rng(13)
    each = rng.integers(3, 11, 300)
    owner = np.repeat(np.arange(300), each)
    voices = rng.normal(size=(300, 12))
    names = np.array([f"s{n:03}" for n in range(300)])
    # Nine sexes: the lot has few people of each, whom the enrolled then join.
    sexes = np.array(list("abcdefghi"))[np.arange(300) % 9]
    test = um.Embeddings(
        voices[owner] + rng.normal(size=(owner.size, 12)),
        names[owner],
        [f"u{n}" for n in range(owner.size)],
        columns={"sex": list(sexes[owner])},
    )
    enrol = um.Embeddings(voices[:80], names[:80], columns={"sex": list(sexes[:80])})
    how = {"counts": [10], "protocol": um.LegalProtocol(side=side), "replicates": 0}
    whole = um.singling_out(enrol, test, **how)
    monkeypatch.setattr(permuted, "POOL", 60)
    pooled = um.singling_out(enrol, test, **how)
    for one, other in ((whole, pooled), (whole.negated, pooled.negated)):
        assert other.value == one.value
        assert other.permuted.values[0] == one.permuted.values[0]
        assert other.hits.values == pytest.approx(one.hits.values, abs=1e-12)
        means = [each.permuted.values[1:].mean() for each in (one, other)]
        spreads = [each.permuted.values[1:].std(ddof=1) for each in (one, other)]
        # With side information each deal draws other people, who are alike more or less often.
        error = max(spreads) / (1 if side else np.sqrt(19))
        assert means[1] == pytest.approx(means[0], abs=4 * error)


def test_trials_with_permuted_names_are_those_of_renamed_models():
    rng = np.random.default_rng(5)
    people, each = 7, 4
    own = np.repeat(np.arange(people), each)
    scores = rng.normal(size=(people + 2, people * each)).round(1)
    scores[own, np.arange(own.size)] += 0.7
    tested = np.append(own[:-1], -1)
    permuted = renamed_trials(scores, tested, seed=0)
    renaming = Renaming.of(people, 0)
    for row in (0, 1, 150):
        bears = np.where(tested >= 0, renaming.rows[row][tested], -1)
        target = np.arange(people + 2)[:, None] == bears
        roc = Roc.from_scores(scores[target], scores[~target])
        laplace = np.abs(roc.pav_laplace.llr).max() / np.log(10)
        wanted = {D_ECE: roc.d_ece(), L_W: laplace, EER: roc.eer()}
        for column, value in wanted.items():
            assert permuted.values[row, column] == pytest.approx(value, abs=1e-9), column


@pytest.mark.parametrize("mean", ["geometric", "arithmetic"])
def test_matrices_with_permuted_names_are_those_of_renamed_lists(mean):
    rng = np.random.default_rng(6)
    people, each = 6, 3
    codes = np.repeat(np.arange(people), each)
    enrol, test = np.repeat(codes, codes.size), np.tile(codes, codes.size)
    scores = (rng.normal(size=enrol.size) + (enrol == test)).round(1)
    plain, negated = (one.permuted() for one in renamed_list(
        scores, enrol, test, people, mean=mean, seed=0
    ))  # fmt: skip
    renaming = Renaming.of(people, 0)
    for row in (0, 3, 99):
        back = np.argsort(renaming.rows[row])
        for sign, renamed in ((1, plain), (-1, negated)):
            values, called = sign * scores, back[test]
            same = enrol == called
            roc = Roc.from_scores(values[same], values[~same])
            llr = roc.pav_laplace.apply(values)
            matrix = np.empty((people, people))
            for i in range(people):
                for j in range(people):
                    cell = llr[(enrol == i) & (called == j)]
                    if mean == "geometric":
                        matrix[i, j] = np.exp(-np.logaddexp(0, -cell).mean())
                    else:
                        matrix[i, j] = 1 / (1 + np.exp(-cell.mean()))
            off = ~np.eye(people, dtype=bool)
            signed = abs(np.diag(matrix).mean() - matrix[off].mean())
            assert renamed.values[row, SIGNED] == pytest.approx(signed, abs=1e-5)
            assert renamed.values[row, D_ECE] == pytest.approx(roc.d_ece(), abs=1e-9)
            assert renamed.values[row, EER] == pytest.approx(roc.eer(), abs=1e-9)


def test_p_counts_what_was_found_among_the_permutations():
    values = np.array([[3.0], [1.0], [3.0], [2.0]])
    one, other = Permuted(values, 9), Permuted(values - 1, 9)
    assert luck_of([(one, 0), (other, 0)]).p == pytest.approx(2 / 4)
    assert luck_of([(one, 0)]).value == pytest.approx(2.0)
    assert luck_of([(replace(one, exhaustive=True), 0)]).p == pytest.approx(1 / 3)
    assert best_by_luck(values[:, 0], [one], least=True).p == 1.0
    assert luck_of([(one, 0), (Permuted(values[:3], 9), 0)]) is None
    assert luck_of([(Permuted(np.full((3, 1), np.nan), 9), 0)]) is None


def test_l_w_of_luck_is_that_of_the_attack_with_the_largest_d_ece():
    values = np.zeros((2, 3, 4))
    values[:, :, D_ECE] = [[3, 1, 2], [1, 2, 1]]
    values[:, :, L_W] = [[9, 8, 7], [6, 5, 4]]
    luck = lucks_of_trials([Permuted(one, 9) for one in values])["l_w"]
    assert luck.value == pytest.approx((5 + 7) / 2)


def test_three_people_cannot_show_anything_and_four_can():
    rng = np.random.default_rng(7)
    for people, beyond in ((3, False), (4, True)):
        own = rng.normal(size=(people, 16))
        sets = (speech(rng, people, 5, tag, own=own, noise=0.1) for tag in "et")
        found = strongest_of({"a": um.linkability(*sets)}).estimate
        assert found.value == 1.0
        assert found.luck.beyond == beyond
        assert ("3 people cannot reach 0.05" in found.by_luck) == (not beyond)


def attacks(rng, owned):
    own = rng.normal(size=(20, 16))
    original, protected = (
        speech(rng, 20, 12, tag, own=voices)
        for tag, voices in (
            ("e", own),
            ("t", owned * own + np.sqrt(1 - owned**2) * rng.normal(size=own.shape)),
        )
    )
    return {
        name: um.Attacker(original, protected, name, train=original, enrols="original")
        for name in ("cosine", "wccn", "whitened", "wasserstein")
    }


def test_the_strongest_of_many_is_beyond_chance_where_voices_are_left_and_only_there(sentences):
    rng = np.random.default_rng(8)
    how = {"metrics": ["linkability", "singling_out"], "replicates": 20}
    blind = um.assess_attackers(attacks(rng, 0.0), **how).worst("linkability")
    assert blind.luck.attacks == 36
    assert blind.luck.value > 0.08
    assert not blind.luck.beyond
    leak = um.assess_attackers(attacks(rng, 0.7), **how)
    assert leak.worst("linkability").luck.p == pytest.approx(1 / 201)
    assert leak.worst("singling_out").luck.permutations == 19
    sentences.check(leak.sentences[0])
    row = um.document(leak).to_dict()
    assert "p = 0.005" in " ".join(row["notes"])


def test_deid_and_evidence_of_the_strongest_say_what_luck_reads():
    rng = np.random.default_rng(9)
    for owned, beyond in ((0.0, False), (0.7, True)):
        own = rng.normal(size=(20, 16))
        original = speech(rng, 20, 6, "u", own=own)
        new = owned * own + np.sqrt(1 - owned**2) * rng.normal(size=own.shape)
        protected = speech(rng, 20, 6, "u", own=new)
        result = um.pseudonymisation(original, protected, replicates=20)
        for metric in ("deid_strongest", "d_ece_strongest", "eer_strongest"):
            assert result[metric].luck.beyond == beyond, metric
        assert result["deid_strongest"].luck.value > 0.9
        assert result["deid"].luck is None
        upper = um.pseudonymisation(original, protected, replicates=20, pairs="upper")
        assert not upper.lucks
        assert "no-luck" in [notice.code for notice in upper.notices]


def test_between_sessions_names_are_permuted_in_each():
    rng = np.random.default_rng(10)
    codes, day = np.repeat(np.arange(12), 6), np.tile(np.repeat([0, 1], 3), 12)
    names, spoken = [f"s{code:02d}" for code in codes], [f"u{i}" for i in range(codes.size)]

    def made(voices):
        vectors = voices + 0.8 * rng.normal(size=voices.shape)
        return um.Embeddings(vectors, names, spoken, sessions=[f"d{one}" for one in day])

    own, new, other = rng.normal(size=(3, 12, 16))
    stable, changed = new[codes], np.where(day[:, None] == 0, new[codes], other[codes])
    for voices, beyond in ((stable, True), (changed, False)):
        result = um.compare_sessions(made(own[codes]), made(voices), replicates=20)
        assert result["unlinkability_strongest"].luck.beyond == beyond
        assert result["linkability_between"].luck.beyond == beyond
        assert result.luck.value > 0.85


def test_a_reading_that_luck_explains_is_called_so():
    rng = np.random.default_rng(11)
    original, protected = speech(rng, 8, 5, "u"), speech(rng, 8, 5, "u")
    result = um.pseudonymisation(original, protected, replicates=50)
    assert not result["deid_strongest"].luck.beyond
    assert "stronger-reading" not in {notice.code for notice in result.notices}


def test_a_leak_does_not_raise_its_own_chance_where_few_of_the_enrolled_are_tested():
    rng = np.random.default_rng(12)
    own = rng.normal(size=(60, 16))
    enrol, test = speech(rng, 60, 3, "e", own=own), speech(rng, 60, 3, "t", own=own, noise=0.3)
    few = test.select(test.speakers.codes < 6)
    curve = um.linkability(enrol, few, counts=[20])
    assert curve.value[0] > 0.9
    assert curve.chance[0] == pytest.approx(1 / 20, abs=0.02)


def test_people_who_were_drawn_and_show_nothing_do_not_speak_for_all():
    luck = Luck(0.06, 0.3, 4, 200, 76)
    assert luck.decides(76)
    assert not luck.decides(4949)
    assert replace(luck, p=0.005).decides(4949)


@pytest.mark.parametrize("size", [1, 7, 1023, 1025, 5000])
def test_bins_are_quantiles_by_the_inverted_distribution(size):
    scores = np.random.default_rng(size).normal(size=size).round(2)
    shares = np.linspace(0, 1, 1025)[1:-1]
    wanted = np.unique(np.quantile(scores, shares, method="inverted_cdf"))
    np.testing.assert_array_equal(quantiles(scores), wanted)
