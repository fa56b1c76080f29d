"""Fits within groups: who is compared, what chance is, what they undo and what they do not."""

from __future__ import annotations

import gzip
from dataclasses import replace
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.helpers.notices import lines_of
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.engine import Roc
from unmask.errors import InputError
from unmask.privacy.legal import (
    BACKENDS,
    Attacker,
    LegalProtocol,
    assess_attackers,
    pooled,
    with_groups,
)
from unmask.privacy.legal.isolating import mean_calibrated_chance
from unmask.privacy.legal.linking import Above
from unmask.privacy.similarity import compare_safeguards
from unmask.scoring import ByGroup, Cosine, Plda, Rule, sides_of
from unmask.trials import Embeddings, Ids

PUBLIC = Path(__file__).parents[2] / ".." / "shared" / "data" / "vpc2020"
SPEAKERS, PER, D = 24, 8, 16
SEX = ("sex",)
FITTED = tuple(name for name in BACKENDS if name not in ("cosine", "centred"))


def voices(seed, tag="", *, prefix="s", shift=0.0, names=("f", "m"), unrelated=False):
    """Twelve women and twelve men; ``shift`` moves either sex by a vector of its own."""
    rng = np.random.default_rng(seed)
    means = rng if unrelated else 7 + 100 * (prefix != "s")
    who = np.repeat(np.arange(SPEAKERS), PER) % 2
    more = {"columns": {"sex": np.array(names)[who]}, "speaker": f"{prefix}{{:02}}"}
    more["utterance"] = f"{{name}}-{tag}{{n}}"
    made = named_speakers(SPEAKERS, PER, D, noise=0.5, means=means, draws=rng, **more)
    moved = np.random.default_rng(9).normal(size=(2, D)) * shift
    return replace(made, vectors=made.vectors + moved[who])


def of(sets, prefix="x"):
    """An attacker with all that any back-end needs."""
    others = voices(3, prefix=prefix), voices(4, prefix=prefix)
    return Attacker(*sets, train=pooled(others), parallel=others, release=False)


def linked(attacker, **options):
    how = {"counts": [SPEAKERS], "lengths": [1], "metrics": ["linkability"], "replicates": 0}
    return assess_attackers({"x": attacker}, **how, **options).curves


def value(attacker, reading="plain"):
    name = "x" if reading == "plain" else f"x, {reading}"
    return linked(attacker)[name, "linkability", 1].value[0]


@pytest.mark.parametrize("backend", FITTED)
def test_with_one_group_a_fit_by_group_is_the_fit_of_all(backend):
    whole = of((voices(1, "e", names=("f", "f")), voices(2, "t", names=("f", "f"))))
    everybody = [
        replace(x, columns={"sex": ["f"] * len(x)}) for x in (whole.train, *whole.parallel)
    ]
    whole = replace(
        whole, backend=backend, train=everybody[0], parallel=(everybody[1], everybody[2])
    )
    plain, group = whole.read().matrix(), replace(whole, by=SEX).read().matrix()
    np.testing.assert_allclose(plain, group, atol=1e-9)


@pytest.mark.parametrize("backend", ["wccn", "plda", "whitened", "procrustes", "asnorm"])
def test_a_fit_by_group_is_that_of_each_group_alone(backend):
    whole = replace(of((voices(1, "e"), voices(2, "t"))), backend=backend, by=SEX)
    made, (enrol, test) = whole.read().matrix(), whole.groups
    first = np.unique(whole.enrol.speakers.codes, return_index=True)[1]
    for sex in "fm":

        def among(data, sex=sex):
            return data.select(data.columns["sex"].to_series().to_numpy() == sex)

        alone = replace(
            whole,
            enrol=among(whole.enrol),
            test=among(whole.test),
            train=among(whole.train),
            parallel=tuple(map(among, whole.parallel)),
            by=(),
        )
        code = enrol[first][int(sex == "m")]
        block = made[np.ix_(enrol[first] == code, test == code)]
        np.testing.assert_allclose(block, alone.read().matrix(), atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(names=st.lists(st.text("abcz", min_size=1, max_size=3), min_size=2, max_size=2, unique=True))
def test_names_of_groups_do_not_matter(names):
    for backend, reading in (("whitened", "plain"), ("cosine", "centred")):
        sets = [
            (voices(1, "e", names=some), voices(2, "t", shift=3.0, names=some))
            for some in (("f", "m"), tuple(names))
        ]
        one, other = (Attacker(*both, backend, release=False, by=SEX) for both in sets)
        assert value(one, reading) == value(other, reading)


def test_a_shift_of_each_sex_is_undone_within_sex_and_not_by_one_fit():
    sets = voices(1, "e"), voices(2, "t", shift=5.0)
    for backend, reading in (("wasserstein", "plain"), ("cosine", "centred")):
        one = Attacker(*sets, backend, release=False)
        assert value(one, reading) < 0.7, backend
        assert value(replace(one, by=SEX), reading) > 0.97, backend
    o = voices(1)
    p = replace(voices(2, shift=5.0), utterances=o.utterances)
    result = compare_safeguards(o, {"P": p}, side=["sex"], replicates=0)["P"].result
    assert result.attacks["wasserstein by sex"] < 0.05 < 0.5 < result.attacks["wasserstein"]
    assert result.attacks["cosine by sex, centred"] < 0.05 < 0.5 < result.attacks["centred"]
    assert result.fewest_errors[1].eer < 0.02


def test_an_ideal_pseudonymiser_stays_at_the_chance_of_its_group():
    found = {}
    for seed in range(6):
        enrol, test = voices(1, "e"), voices(20 + seed, "t", unrelated=True)
        attackers = {
            name: replace(of((enrol, test)), backend=name)
            for name in ("cosine", "wccn", "plda", "whitened", "coral", "wasserstein", "procrustes")
        }
        swept = assess_attackers(
            attackers,
            protocol=LegalProtocol(side=SEX),
            counts=[20],
            lengths=[1],
            metrics=["linkability"],
            replicates=0,
        )
        for (name, _, _), curve in swept.curves.items():
            found.setdefault(name, []).append(curve.value[0])
            assert curve.side == SEX
            assert curve.chance[0] == pytest.approx(0.1, abs=0.001)
        assert not swept.skipped
    assert {"wccn by sex, centred", "procrustes by sex", "wasserstein by sex"} < set(found)
    for name, values in found.items():
        assert np.mean(values) == pytest.approx(0.1, abs=0.09), name
    assert np.mean(list(found.values())) == pytest.approx(0.1, abs=0.02)


def test_an_ideal_pseudonymiser_that_keeps_the_residual_is_de_identified_within_sex():
    found = {}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        who = np.repeat(np.arange(30), 10)
        residual = 0.5 * rng.normal(size=(300, D))
        original, protected = (
            Embeddings(
                rng.normal(size=(30, D))[who] + residual,
                [f"s{k:02}" for k in who],
                [f"u{i}" for i in range(300)],
                columns={"sex": np.array(["f", "m"])[who % 2]},
            )
            for _ in range(2)
        )
        result = compare_safeguards(original, {"P": protected}, side=["sex"], replicates=0)[
            "P"
        ].result
        for name, deid in result.attacks.items():
            found.setdefault(name, []).append(deid)
    assert {"wasserstein by sex", "whitened by sex negated", "cosine by sex, centred"} < set(found)
    for name, values in found.items():
        assert np.mean(values) > 0.97, name


def test_the_chance_of_a_link_is_one_among_those_who_are_left():
    counts = np.array([2, 3, 7])
    for others, allowed in ((6, 2), (6, 6), (6, 0), (8, 3)):
        sizes = counts[counts <= others + 1]
        above = Above(np.zeros(1, int), np.zeros(1, int), others, np.array([allowed]))
        brute = []
        for n in sizes:
            lists = list(combinations(range(others), int(n) - 1))
            brute.append(np.mean([1 / (1 + sum(j < allowed for j in one)) for one in lists]))
        np.testing.assert_allclose(above.chance(sizes)[0], brute, rtol=1e-12)
        m, a, n = others, allowed, sizes - 1
        closed = [((m + 1) / (k + 1) - comb(m - a, k + 1) / comb(m, k)) / (a + 1) for k in n]
        np.testing.assert_allclose(brute, closed, rtol=1e-12)
    lost = Above(np.zeros(1, int), np.zeros(1, int), 5, np.array([-1]))
    assert lost.chance(np.array([3])).tolist() == [[0.0]]


def test_without_information_every_metric_reaches_its_chance_within_groups():
    values = {metric: [] for metric in ("linkability", "singling_out", "one_minus_eer")}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        sex = np.where(np.arange(40) < 28, "f", "m")
        enrol, test = (
            Embeddings(
                rng.normal(size=(400, D)),
                [f"s{k:02}" for k in np.repeat(np.arange(40), 10)],
                [f"{tag}{i}" for i in range(400)],
                columns={"sex": np.repeat(sex, 10)},
            )
            for tag in "et"
        )
        swept = assess_attackers(
            {"x": Attacker(enrol, test, release=False)},
            counts=[5, 40], lengths=[1], protocol=LegalProtocol(side=SEX), variants=["plain"],
            replicates=0,
        )  # fmt: skip
        for metric, some in values.items():
            curve = swept.curves["x (cosine by sex)", metric, 1]
            some.append(curve.value - curve.chance)
    for metric, some in values.items():
        np.testing.assert_allclose(np.mean(some, axis=0), 0, atol=0.03, err_msg=metric)


def test_who_is_alone_is_singled_out():
    alone = mean_calibrated_chance(np.full(9, 3), np.arange(9), np.array([4]), np.zeros(9, int))
    assert alone.tolist() == [1.0]
    every = [
        mean_calibrated_chance(np.full(9, 3), np.arange(9), np.array([4, 9]), some)
        for some in (None, np.full(9, 8))
    ]
    assert every[0].tolist() == every[1].tolist()


def test_rows_of_a_back_end_for_each_group():
    rng = np.random.default_rng(0)
    data = voices(5)
    members = [Cosine(), Plda.fit(data)]
    vectors = rng.normal(size=(7, D))
    group = np.array([0, 1, 1, 0, 1, 0, 1])
    told = np.column_stack([2 * vectors, group == 0, group == 1])
    made = sides_of(ByGroup(members, "x"), told)
    assert made.enrol.shape[1] == max(D, sides_of(members[1], vectors).enrol.shape[1])
    scores = made.enrol @ made.test.T
    for g, member in enumerate(members):
        own = sides_of(member, vectors[group == g])
        block = scores[np.ix_(group == g, group == g)]
        np.testing.assert_allclose(block, own.enrol @ own.test.T, atol=1e-9)
    one = sides_of(ByGroup(members, "x"), told[group == 0])
    assert one.enrol.shape[1] == made.enrol.shape[1]


def test_pairs_within_a_group():
    from unmask.run import NUMPY

    codes, groups = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    holds = Rule(codes, "<", groups)(NUMPY, (0, 4), (0, 4))
    wanted = (codes[:, None] < codes) & (groups[:, None] == groups)
    assert holds.tolist() == wanted.tolist()


def test_attackers_by_group_say_so():
    sets = voices(1, "e"), voices(2, "t")
    made = with_groups(
        {
            "original": Attacker(*sets),
            "original enrolment (procrustes)": Attacker(*sets, "procrustes"),
            "informed": Attacker(*sets, "wccn"),
            "whitened": Attacker(*sets, "whitened"),
            "mine": Attacker(*sets, Cosine()),
        },
        ("sex", "accent"),
        original="original",
    )
    assert list(made) == [
        "original",
        *("original enrolment (procrustes)", "original enrolment (procrustes by sex and accent)"),
        *("informed", "informed (wccn by sex and accent)"),
        *("whitened", "whitened by sex and accent", "mine"),
    ]
    assert made["whitened by sex and accent"].by == ("sex", "accent")


def test_groups_that_cannot_be_fitted_cost_themselves(sentences):
    enrol, test = voices(1, "e"), voices(2, "t")
    lone = [
        replace(x, columns={"sex": np.where(x.speakers.to_series() == "s00", "x", "m")})
        for x in (enrol, test)
    ]
    curves = linked(Attacker(*lone, "whitened", release=False), protocol=LegalProtocol(side=SEX))
    assert {name for name, _, _ in curves} == {"x", "x, negated"}
    swept = assess_attackers(
        {"x": Attacker(*lone, "whitened")},
        protocol=LegalProtocol(side=SEX),
        lengths=[1],
        replicates=0,
    )
    told = "whitened by sex: expected 2 people or more in each group on both sides, found 1 of x"
    assert any(told in notice.sentence for notice in swept.skipped)
    for sets, told in (
        ((enrol, replace(test, columns={})), "embeddings: expected a column sex, found none"),
        ((replace(enrol, columns={}), test), "embeddings: expected a column sex, found none"),
        (
            (enrol, replace(test, columns={"sex": ["x"] * len(test)})),
            "sex: expected one value for a person in all sets, found f and x for s00",
        ),
        (
            (enrol, replace(test, columns={"sex": ["f", "m"] * (len(test) // 2)})),
            "sex: expected one value per speaker, found several for 24 speakers",
        ),
    ):
        with pytest.raises(InputError, match=told):
            Attacker(*sets, "whitened", by=SEX).ready()
    bare = replace(voices(3, prefix="x"), columns={})
    with pytest.raises(InputError) as error:
        Attacker(enrol, test, "wccn", bare, by=SEX).ready()
    sentences.check(str(error.value))
    women = of((enrol, test)).train
    women = women.select(women.columns["sex"].to_series().to_numpy() == "f")
    with pytest.raises(InputError) as error:
        Attacker(enrol, test, "wccn", women, by=SEX).ready()
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        compare_safeguards(enrol, {"P": enrol}, side=["accent"])
    sentences.check(str(error.value))
    only = compare_safeguards(enrol, {"P": replace(enrol, columns={})}, side=["sex"], replicates=0)
    lines = [note.line for note in only["P"].result.notes]
    assert len(lines) == 3
    sentences.check(*lines)


def test_people_of_a_group_that_nobody_tests_stay_candidates():
    enrol, test = voices(1, "e"), voices(2, "t")
    women = test.select(test.columns["sex"].to_series().to_numpy() == "f")
    for backend in ("whitened", "wccn"):
        one = replace(of((enrol, women)), backend=backend, by=SEX)
        curve = linked(one)["x", "linkability", 1]
        assert curve.value[0] > 0.95
        assert curve.chance[0] == pytest.approx(2 / SPEAKERS)


def test_pairs_of_enrolled_people_are_enrolment(sentences):
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(D, D)))[0]

    def protect(data, seed):
        noise = 0.1 * np.random.default_rng(seed).normal(size=data.vectors.shape)
        return replace(data, vectors=data.vectors @ turn + noise)

    enrol, test = voices(1, "e"), protect(voices(2, "t"), 5)
    own = enrol, protect(enrol, 6)
    attack = Attacker(enrol, test, "procrustes", parallel=own, release=False)
    assert value(attack) > 0.97
    assert value(replace(attack, by=SEX)) > 0.97
    assert value(replace(attack, backend="cosine")) < 0.3
    leaky = pooled([enrol]), replace(enrol, utterances=test.utterances)
    with pytest.raises(InputError) as error:
        replace(attack, parallel=leaky).ready()
    sentences.check(str(error.value))
    o = voices(1)
    p = protect(replace(voices(2), utterances=o.utterances), 5)
    rival = Attacker(o, p, "procrustes", parallel=(o, protect(o, 6)), release=False)
    result = um.pseudonymisation(o, p, attackers={"procrustes": rival}, replicates=0)
    assert result.attacks["procrustes"] < 0.05 < 0.9 < result.attacks["plain"]


def test_where_vectors_cannot_be_centred(sentences):
    enrol, test = voices(1, "e"), voices(2, "t")
    two = enrol.speakers.codes < 2
    for one, why in (
        (Attacker(enrol, test, Plda.fit(enrol)), "back-end plda was trained elsewhere"),
        (Attacker(enrol, test.select(two)), "test has fewer than 3 speakers"),
        (Attacker(enrol.select(enrol.speakers.codes < 4), test, by=SEX), "3 speakers in a group"),
    ):
        assert why in one.uncentred
        assert one.readings == ("plain", "negated")
        assert one.centred() is None
        with pytest.raises(InputError) as error:
            one.read("centred").matrix()
        sentences.check(str(error.value))
        swept = assess_attackers({"x": one}, lengths=[1], metrics=["linkability"], replicates=0)
        (told,) = (note for note in swept.notices if one.uncentred in note.sentence)
        assert told.subject == "x"
        sentences.check(told.line)
    whole = enrol.speakers.codes == 0
    many = enrol.select(np.concatenate([np.flatnonzero(whole), np.flatnonzero(~whole)[::30]]))
    assert list(Attacker(many, test).talkative()) == ["s00 in enrolment"]
    swept = assess_attackers(
        {"x": Attacker(many, test)}, counts=[4], lengths=[1], metrics=["linkability"], replicates=0
    )
    sentences.check(*lines_of(swept, "talkative"))


def public(name):
    arrays = np.load(PUBLIC / f"xvectors_{name}.npz")
    sexes = dict(line.split() for line in (PUBLIC / "spk2gender").read_text().splitlines())
    speakers = arrays["speakers"].tolist()
    return Embeddings(
        arrays["vectors"],
        speakers,
        arrays["utterances"],
        columns={"sex": [sexes[one] for one in speakers]},
    )


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the x-vectors of the challenge are not here")
def test_public_x_vectors_of_b1_within_sex():
    enrol, own = public("enrolls"), public("enrolls_anon")
    lists = {sex: public(f"trials_{sex}_anon") for sex in "fm"}
    test = Embeddings(
        np.concatenate([one.vectors for one in lists.values()]),
        [name for one in lists.values() for name in one.speakers.to_series()],
        [name for one in lists.values() for name in one.utterances.to_series()],
        columns={"sex": [sex for sex, one in lists.items() for _ in range(len(one))]},
    )
    attack = Attacker(enrol, test, "procrustes", parallel=(enrol, own), release=False)
    model = {str(enrol.speakers.names[int(c)]): i for i, c in enumerate(enrol.speakers.used)}
    column = {name: i for i, name in enumerate(test.utterances.to_series())}

    def errors(attacker):
        matrix = attacker.read().matrix()
        for sex in "fm":
            with gzip.open(PUBLIC / f"trials_{sex}.gz", "rt") as lines:
                trials = [line.split() for line in lines]
            scores = np.array([matrix[model[e], column[t]] for e, t, _ in trials])
            target = np.array([label == "target" for _, _, label in trials])
            yield 100 * Roc.from_scores(scores[target], scores[~target]).eer()

    within, together = (list(errors(one)) for one in (replace(attack, by=SEX), attack))
    assert max(within) <= 25
    np.testing.assert_allclose(within, [22.6, 24.1], atol=0.1)
    np.testing.assert_allclose(together, [32.5, 31.6], atol=0.1)


@pytest.mark.parametrize("by", [(), SEX])
def test_centred_has_one_meaning_for_every_back_end_fitted_by_name(by):
    whole = of((voices(1, "e"), voices(2, "t", shift=2.0)))

    def about_its_mean(data):
        unit = data.vectors / np.linalg.norm(data.vectors, axis=1, keepdims=True)
        sex = data.columns["sex"].to_series().to_numpy()
        for here in [sex == "f", sex == "m"] if by else [slice(None)]:
            unit[here] -= unit[here].mean(axis=0)
        return replace(data, vectors=unit / np.linalg.norm(unit, axis=1, keepdims=True))

    sets = {name: about_its_mean(getattr(whole, name)) for name in ("enrol", "test", "train")}
    bare = Attacker(whole.enrol, whole.test, train=replace(whole.train, columns={}), by=by)
    np.testing.assert_allclose(
        bare.read("centred").matrix(), replace(whole, by=by).read("centred").matrix()
    )
    for backend in ("cosine", "wccn", "lda", "plda", "asnorm"):
        one = replace(whole, backend=backend, by=by)
        made, wanted = one.read("centred").matrix(), replace(one, **sets).read().matrix()
        np.testing.assert_allclose(made, wanted, atol=1e-9)
        np.testing.assert_allclose(one.read("centred negated").matrix(), -wanted, atol=1e-9)


def test_risks_and_deid_by_group(sentences):
    """One group keeps more of its voice: it is linked more often, and DeID is lower."""
    rng = np.random.default_rng(0)
    people = [f"s{k:02}" for k in range(40)]
    voices = rng.normal(size=(40, 16))
    sexes = np.array(["f", "m"])[np.arange(40) % 4 // 2]
    kept = np.where(sexes == "m", 0.9, 0.3)

    def said(kept, seed, tag=""):
        more = {"utterance": f"{tag}{{name}}-{{n}}", "columns": {"sex": np.repeat(sexes, 6)}}
        means = kept[:, None] * voices
        return named_speakers(40, 6, 16, noise=1.0, means=means, draws=seed, **more)

    original, protected = said(np.full(40, 1.5), 1), said(kept, 2)
    held = {"ignorant": um.Attacker(said(np.full(40, 1.5), 3, "e"), protected, enrols="original")}
    options = {"metrics": ["linkability", "singling_out"], "lengths": [1], "replicates": 50}
    sweep = um.privacy.risk_gaps(um.assess_attackers(held, **options), held, "sex")
    assert [one.groups[1].estimates[0].metric for one in sweep.gaps] == [
        "linkability",
        "singling_out",
    ]
    linked, isolated = sweep.gaps
    men = {n for n, sex in zip(people, sexes, strict=True) if sex == "m"}
    (row,) = [row for row in linked.groups if row.name == "m"]
    variant = row.attacker.partition(", ")[2] or "plain"
    way = held["ignorant"].read(variant).ready.among(men)
    again = um.linkability(way.enrol, way.test, counts=[20], backend=way.backend_in_use)
    assert linked.of("linkability")["m"].value == again.value[0]
    assert linked.of("linkability")["m"].chance == pytest.approx(1 / 20)
    assert linked.ends("linkability") == ("f", "m")
    assert linked["linkability_gap"].luck.beyond
    assert isolated.gaps == ()
    assert isolated.of("singling_out")["m"].interval is not None
    shown = um.render(um.document(sweep))
    assert "chance" in shown
    assert "without information" in shown
    table = um.compare_safeguards(original, {"a": protected}, by="sex", replicates=50)
    (gaps,) = table.gaps
    rates = {row.dataset: row.result.strongest.deid.value for row in table}
    assert {name: estimate.value for name, estimate in gaps.of("deid").items()} == rates
    assert gaps.ends("deid") == ("m", "f")
    assert gaps["deid_gap"].luck.beyond
    assert gaps.figures()
    with pytest.raises(um.InputError) as error:
        um.privacy.risk_gaps(sweep, held, "age")
    sentences.check(str(error.value))
    single = replace(protected, columns={"sex": Ids.from_strings(["f"] * 240)})
    with pytest.raises(um.InputError) as error:
        um.privacy.risk_gaps(sweep, {"ignorant": replace(held["ignorant"], test=single)}, "sex")
    sentences.check(str(error.value))
