"""One release attacked by itself: in rounds, by content, each person's attempts averaged."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from math import comb

import numpy as np
import pytest

import unmask as um
from unmask.errors import InputError
from unmask.privacy.legal import Parts, one_minus_eer
from unmask.privacy.luck import Renaming
from unmask.privacy.recordings import ReleaseSplit, drawn_codes, half_by_content, rows_by_content

EACH = {"a": 1, "b": 2, "c": 3, "d": 5, "e": 6, "f": 9, "g": 4, "h": 4}
QUICK = {"protocol": um.LegalProtocol(folds=3, draws=2), "replicates": 50}
ALONE = {"counts": [20], "lengths": [1], "metrics": ["linkability"], "replicates": 0}
_WORD = 2**64 - 1


def release(each=EACH, *, noise=1.2, seed=0) -> um.Embeddings:
    rng = np.random.default_rng(seed)
    people = [name for name, number in each.items() for _ in range(number)]
    voices = {name: rng.normal(size=12) for name in each}
    vectors = np.stack([voices[name] for name in people]) + noise * rng.normal(
        size=(len(people), 12)
    )
    # Rows in no order: what is split goes by content.
    order = rng.permutation(len(people))
    place = [people[:i].count(name) for i, name in enumerate(people)]
    names = [f"{name}-{n}" for name, n in zip(people, place, strict=True)]
    return um.Embeddings(vectors[order], [people[i] for i in order], [names[i] for i in order])


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def drawn(vector, seed, *stream) -> int:
    """The number of a recording, written out: BLAKE2b of float32, then splitmix64's finaliser."""
    text = b"".join(struct.pack("<f", float(x)) for x in vector)
    code = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    state = int(np.random.SeedSequence(seed, spawn_key=stream).generate_state(1, np.uint64)[0])
    code ^= state
    code = (code ^ (code >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    code = (code ^ (code >> 27)) * 0x94D049BB133111EB & _WORD
    return code ^ (code >> 31)


def rounds_of(some: um.Embeddings, length: int = 1, most: int = 5, seed: int = 0):
    """Names that are tested in each round, by person and conversation, written out."""
    vectors = dict(zip(some.utterances.to_series(), some.vectors, strict=True))
    parts, starts = {}, {}
    for person in sorted(set(some.speakers.to_series())):
        own = some.utterances.to_series().filter(some.speakers.to_series() == person)
        spoken = sorted(own, key=lambda name: drawn(vectors[name], seed))
        talks = [spoken[n : n + length] for n in range(0, len(spoken) - length + 1, length)]
        number = min(most, len(talks))
        if len(talks) > 1 or (len(talks) == 1 and len(spoken) > length):
            parts[person] = [talks[n::number] for n in range(number)]
            starts[person] = drawn(vectors[spoken[0]], seed, 0x7374617274) % number
    for turn in range(max(map(len, parts.values()))):
        yield {p: own[(starts[p] + turn) % len(own)] for p, own in parts.items()}


def test_codes_are_those_of_their_definition():
    some = release()
    for seed in (0, 7):
        expected = [drawn(vector, seed) for vector in some.vectors]
        assert drawn_codes(some, seed).tolist() == expected
    single = replace(some, vectors=some.vectors.astype(np.float32))
    assert single.content_codes.tolist() == some.content_codes.tolist()
    assert some.normalised().content_codes.tolist() == some.content_codes.tolist()
    assert some.select([3, 1]).content_codes.tolist() == some.content_codes[[3, 1]].tolist()


@pytest.mark.parametrize("length", [1, 2, 3])
def test_everybody_leaves_out_the_next_part_in_each_round(length, sentences):
    some = release()
    attack = um.within_release(some)
    expected = list(rounds_of(some, length))
    made = attack.rounds(length)
    assert len(made) == len(expected)
    everything = set(some.utterances.to_series())
    for one, parts in zip(made, expected, strict=True):
        tested = set(one.test.utterances.to_series())
        assert tested == {name for part in parts.values() for talk in part for name in talk}
        assert set(one.enrol.utterances.to_series()) == everything - tested
        assert one.train is one.enrol
        assert one.is_release
    with pytest.raises(InputError) as error:
        um.within_release(release({"a": 1, "b": 1}))
    sentences.check(str(error.value))


def test_singling_out_tests_halves_with_two_conversations():
    some = release()
    made = um.within_release(some).rounds(1, most=2, least=2)
    assert len(made) == 2
    for one in made:
        counts = dict(one.test.speakers.to_series().value_counts().iter_rows())
        # Of three utterances the half of two is tested, in one of the rounds.
        assert set(counts) - {"c", "d"} == {"e", "f", "g", "h"}
        assert all(count >= 2 for count in counts.values())
    assert sum("c" in set(one.test.speakers.to_series()) for one in made) == 1


def said(some: um.Embeddings):
    """Who speaks and in which session, recording by recording."""
    return zip(some.speakers.to_series(), some.sessions.to_series(), strict=True)


def test_whole_sessions_are_left_out(sentences):
    some = release({"a": 8, "b": 8, "c": 4})
    day = [n.split("-") for n in some.utterances.to_series()]
    named = ["one" if s == "c" or int(n) < 5 else "two" for s, n in day]
    told = replace(some, sessions=um.Ids.from_strings(named))
    made = um.within_release(told, parts="sessions").rounds()
    assert len(made) == 2
    for one in made:
        enrolled = {"a": set(), "b": set(), "c": set()}
        for name, session in said(one.enrol):
            enrolled[name].add(session)
        assert all(len(enrolled[name]) == 1 for name in "abc")
        for name, session in said(one.test):
            assert session not in enrolled[name]
    # Utterances of one session are two records: rounds of the headline cut across sessions.
    across = um.within_release(told).rounds()
    kept = [set(one.test.utterances.to_series()) for one in across]
    assert kept == [
        set(one.test.utterances.to_series()) for one in um.within_release(some).rounds()
    ]
    with pytest.raises(InputError) as error:
        um.within_release(some, parts="sessions")
    sentences.check(str(error.value))


def brute(some: um.Embeddings, count: int) -> dict[str, list[float]]:
    """Attempts of each speaker: in every round all that is tested against all that is enrolled."""
    vectors = dict(zip(some.utterances.to_series(), unit(some.vectors), strict=True))
    outcomes: dict[str, list[float]] = {name: [] for name in EACH}
    for parts in rounds_of(some):
        tested = {s: [name for talk in part for name in talk] for s, part in parts.items()}
        models = {}
        for s in EACH:
            known = [n for n in vectors if n.startswith(f"{s}-") and n not in tested.get(s, [])]
            models[s] = unit(sum(vectors[n] for n in known))
        for s, names in tested.items():
            for n in names:
                scores = {t: vectors[n] @ model for t, model in models.items()}
                above = sum(scores[t] >= scores[s] for t in EACH if t != s)
                outcomes[s].append(comb(7 - above, count - 1) / comb(7, count - 1))
    return {s: tried for s, tried in outcomes.items() if tried}


def test_linkability_is_the_mean_over_speakers_of_all_attempts():
    some = release()
    sweep = um.assess_attackers(
        {"it": um.within_release(some)},
        counts=[3, 8], lengths=[1], metrics=["linkability"], variants=["plain"], **QUICK,
    )  # fmt: skip
    curve = sweep["it", "linkability", 1]
    for i, count in enumerate((3, 8)):
        tried = brute(some, count)
        outcomes = {s: np.mean(each) for s, each in tried.items()}
        assert curve.speakers.to_list() == list(outcomes)
        assert curve.per_speaker[:, i] == pytest.approx(list(outcomes.values()), abs=1e-12)
        assert curve.value[i] == pytest.approx(np.mean(list(outcomes.values())), abs=1e-12)
        # The first of the permutations has the names as they are: rounds are weighed alike.
        assert curve.permuted.values[0, i] == pytest.approx(curve.value[i], abs=1e-12)
        spread = np.var(list(outcomes.values()), ddof=1) / 7
        assert curve.variance[i] == pytest.approx(spread, abs=1e-12)
        assert curve.low[i] <= curve.value[i] <= curve.high[i]
    attempts = sum(map(len, tried.values()))
    assert curve.left_out == 1
    assert curve.attacks.tolist() == [attempts, attempts]
    # Attempts with one recording in two rounds are one recording.
    assert curve.recordings.tolist() == [2, 3, 5, 6, 9, 4, 4]
    assert sweep.release == ("it",)
    again = um.assess_attackers(
        {"it": um.within_release(some)},
        counts=[8], lengths=[3], metrics=["linkability"], variants=["plain"], **QUICK,
    )["it", "linkability", 3]  # fmt: skip
    # c has one conversation of three and nothing over; d, g and h one and an utterance over.
    assert again.speakers.to_list() == ["d", "e", "f", "g", "h"]
    assert again.left_out == 3


def test_every_metric_and_reading_is_the_mean_of_its_rounds():
    some = release(dict.fromkeys("abcdefgh", 8) | {"i": 1})
    attack = um.within_release(some)
    options = {"counts": [4, 8], "lengths": [1], **QUICK}
    whole = um.assess_attackers({"it": attack}, **options)
    assert len(whole.curves) == 4 * 3
    for metric, how in (
        ("linkability", {}),
        ("singling_out", {"most": 2, "least": 2}),
        ("one_minus_eer", {}),
    ):
        alone = {**options, "metrics": [metric]}
        rounds = [um.assess_attackers({"it": one}, **alone) for one in attack.rounds(1, **how)]
        for key, curve in whole.curves.items():
            if key[1] != metric:
                continue
            each = [one[key] for one in rounds]
            if metric == "linkability":  # of eight utterances three parts of five have two
                tried = np.array([one.per_speaker * one.recordings[:, None] for one in each])
                mean = (tried.sum(axis=0) / 8).mean(axis=0)
            else:
                mean = np.mean([one.value for one in each], axis=0)
            assert curve.value == pytest.approx(mean, abs=1e-12), key
            assert curve.attacks.tolist() == sum(one.attacks for one in each).tolist()
            assert (curve.low <= curve.value).all()
            assert (curve.value <= curve.high).all()
            assert curve.left_out == 1
            if metric == "singling_out":
                widest = np.mean([np.sqrt(one.variance) for one in each], axis=0) ** 2
                assert curve.variance == pytest.approx(widest, abs=1e-12)
    one = whole["it", "one_minus_eer", 1]
    alone = [one_minus_eer(w.enrol, w.test, counts=[4, 8], replicates=50) for w in attack.rounds()]
    assert one.value == pytest.approx(np.mean([a.value for a in alone], axis=0))
    assert one.low == pytest.approx(np.mean([a.low for a in alone], axis=0))


def test_people_without_a_second_conversation_have_a_worst_decile():
    """Two rounds are two recordings, by which luck is told from risk."""
    some = release(dict.fromkeys("abcdefghij", 2))
    sweep = um.assess_attackers(
        {"it": um.within_release(some)}, counts=[10], lengths=[1], metrics=["linkability"], **QUICK
    )
    assert np.isfinite(sweep["it", "linkability", 1].worst_decile).all()


def test_fits_see_names_of_what_is_enrolled_in_the_round_only():
    some = release(dict.fromkeys("abcdefgh", 8))
    for one in um.within_release(some, "wccn").rounds():
        assert one.backend == "wccn"
        trained = set(one.train.utterances.to_series())
        assert not trained & set(one.test.utterances.to_series())
    assert um.within_release(some, parts="record to record").train is None


def test_reverse_is_still_run_both_ways():
    some = release(dict.fromkeys("abcdef", 4))
    first = half_by_content(some, 0)
    sides = some.select(first), some.select(~first)
    back = um.Attacker(sides[1], sides[0], release=True)
    both = um.Attacker(*sides, release=True, reverse=back)
    assert [len(one.test) for one in both.rounds()] == [12, 12]
    options = {**ALONE, "counts": [6], "variants": ["plain"]}
    found = um.assess_attackers({"it": both}, **options)["it", "linkability", 1].value[0]
    each = [um.linkability(*pair).value[0] for pair in (sides, sides[::-1])]
    assert found == pytest.approx(np.mean(each))


PEOPLE, SPOKEN = 40, 12
OWNER = np.repeat(np.arange(PEOPLE), SPOKEN)
TURN = np.tile(np.arange(SPOKEN), PEOPLE)


def voiced(version, seed=0, sessions=None) -> um.Embeddings:
    """People with a voice of their own for each version."""
    rng = np.random.default_rng(seed)
    voices = rng.normal(size=(PEOPLE, int(version.max()) + 1, 32))[OWNER, version]
    vectors = voices + 0.5 * rng.normal(size=voices.shape)
    people = [f"p{n:02}" for n in OWNER]
    return um.Embeddings(vectors, people, [f"u{n:03}" for n in range(len(OWNER))], sessions)


def linked(attacker) -> um.privacy.legal.Strongest:
    return um.assess_attackers({"it": attacker}, **ALONE).worst("linkability")


@pytest.mark.parametrize(
    "version",
    [
        TURN % 2,
        TURN // 2 % 2,
        TURN // 6,
        np.random.default_rng(5).integers(0, 2, len(TURN)),
        TURN // 3 % 2,
    ],
    ids=["a b a b", "a a b b", "two blocks", "at random", "sessions A B A B"],
)
def test_two_voices_are_linked_however_they_take_turns(version):
    some = voiced(version)
    found = linked(um.within_release(some))
    assert found.estimate.value > 0.8
    assert found.luck.beyond
    records = linked(um.within_release(some, parts="record to record"))
    assert 0.4 < records.estimate.value < 0.65
    assert records.luck.beyond


def test_silence_of_every_second_recording_hides_nobody():
    some = voiced(np.zeros_like(TURN))
    vectors = np.array(some.vectors)
    silent = TURN % 2 == 1
    vectors[silent] = np.random.default_rng(1).normal(size=32)
    found = linked(um.within_release(replace(some, vectors=vectors)))
    # What is silent is guessed at best, half of all: the other half is linked.
    assert found.estimate.value > 0.45
    assert found.luck.beyond


def test_a_voice_for_each_utterance_is_at_chance():
    found = linked(um.within_release(voiced(TURN)))
    assert found.estimate.value < 0.1
    assert not found.luck.beyond


def test_sessions_that_take_turns_are_linked_between_sessions():
    sessions = [f"day{n}" for n in TURN // 3]
    some = voiced(TURN // 3 % 2, sessions=sessions)  # four sessions, voices A B A B
    assert linked(um.within_release(some)).estimate.value > 0.8
    between = linked(um.within_release(some, parts="sessions"))
    assert between.estimate.value > 0.6
    apart = voiced(TURN // 3, sessions=sessions)
    assert not linked(um.within_release(apart, parts=Parts.SESSIONS)).luck.beyond
    levels = um.compare_sessions(voiced(np.zeros_like(TURN), 3, sessions), some, replicates=0)
    assert levels.linked.estimate.value > 0.6


def test_names_and_order_of_rows_move_nothing():
    some = voiced(TURN % 2)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(some))
    others = [f"x{n}" for n in rng.permutation(len(some))]
    renamed = replace(some, utterances=um.Ids.from_strings(others))
    options = {"counts": [5, 20], "lengths": [1, 2], **QUICK}
    attacks = lambda data: {  # noqa: E731
        "utterances": um.within_release(data, "wccn"),
        "records": um.within_release(data, parts="record to record"),
    }
    expected = um.assess_attackers(attacks(some), **options)
    for other in (renamed, some.select(order), renamed.select(order)):
        found = um.assess_attackers(attacks(other), **options)
        for key, curve in expected.curves.items():
            assert found[key].value == pytest.approx(curve.value, abs=1e-9), key
            assert found[key].low == pytest.approx(curve.low, abs=1e-9), key
            if curve.permuted is not None:
                luck = found[key].permuted.values
                assert luck == pytest.approx(curve.permuted.values, abs=1e-9, nan_ok=True), key


def test_equal_recordings_keep_the_order_of_their_columns():
    vectors = np.tile(np.eye(2), (4, 1))
    columns = {"take": list("dcbahgfe")}
    some = um.Embeddings(vectors, ["x"] * 8, [f"u{n}" for n in range(8)], columns=columns)
    takes = some.columns["take"].to_series()
    expected = takes.gather(rows_by_content(some, 0)).to_list()
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(8)
        other = some.select(order)
        got = other.columns["take"].to_series().gather(rows_by_content(other, 0)).to_list()
        assert got == expected


def test_record_to_record_is_near_the_mean_of_all_choices():
    """The mean over all choices in closed form: e_{N'−1}(q)/C(M, N'−1), written out."""
    each = {f"p{n:02}": 6 for n in range(12)}
    some, count = release(each, noise=1.5), 5
    found = um.assess_attackers(
        {"it": um.within_release(some, parts="record to record")},
        **{**ALONE, "counts": [count], "variants": ["plain"]},
    )["it", "linkability", 1].value[0]
    vectors, owner = unit(some.vectors), some.speakers.alphabetical().codes
    scores = vectors @ vectors.T
    risks = []
    for x in range(len(vectors)):
        for y in np.flatnonzero((owner == owner[x]) & (np.arange(len(owner)) != x)):
            below = np.array(
                [(scores[x, owner == j] < scores[x, y]).mean() for j in range(12) if j != owner[x]]
            )
            symmetric = np.zeros(count)
            symmetric[0] = 1
            for share in below:
                symmetric[1:] = symmetric[1:] + share * symmetric[:-1]
            risks.append(symmetric[-1] / comb(11, count - 1))
    assert found == pytest.approx(np.mean(risks), abs=0.03)


def test_unequal_numbers_have_no_level_from_record_to_record():
    some = release({**EACH, **{f"p{n}": 4 for n in range(6)}})
    options = {**ALONE, "counts": [8]}
    attacks = {"it": um.within_release(some, parts=Parts.RECORDS)}
    assert um.assess_attackers(attacks, **options).worst("linkability").luck is None
    split = ReleaseSplit(some)
    assert split.exchanged.has_level
    assert not replace(split, parts=Parts.RECORDS).exchanged.has_level


def test_people_are_exchanged_in_pairs_of_like_number():
    many = np.repeat([2, 4, 16, 64, 3], 5)
    rows = Renaming.in_pairs(many, 0).rows
    assert rows.shape == (201, 25)
    assert (rows[0] == np.arange(25)).all()
    twice = np.take_along_axis(rows, rows, axis=1)
    assert (twice == np.arange(25)).all()
    alone = rows[1:] == np.arange(25)
    assert (alone.sum(axis=1) == 1).all()
    ratio = np.log2(many[rows[1:]] / many)
    # Neighbours of numbers plus one uniform: hardly ever further than a factor of four.
    assert np.abs(ratio).max() <= 3
    assert (np.abs(ratio) <= 1).mean() > 0.85
    groups = np.arange(25) % 3
    within = Renaming.in_pairs(many, 0, groups).rows
    assert (groups[within] == groups).all()
    assert (np.take_along_axis(within, within, axis=1) == np.arange(25)).all()
    assert [len(Renaming.in_pairs(np.full(n, 3), 0).rows) - 1 for n in range(2, 8)] == [
        1, 3, 3, 15, 15, 200,
    ]  # fmt: skip


def test_few_people_and_unlike_numbers_are_told(sentences):
    six = um.within_release(release(dict.fromkeys("abcdef", 6), noise=0.1))
    options = {**ALONE, "counts": [6]}
    found = um.assess_attackers({"it": six}, **options).worst("linkability")
    assert found.estimate.value == 1
    assert found.luck.p == pytest.approx(1 / 16)
    sentences.check(found.estimate.by_luck)
    unlike = um.within_release(release({f"p{n}": 2 + 3 * (n % 2) for n in range(10)}))
    found = um.assess_attackers({"it": unlike}, **options).worst("linkability")
    assert found.luck.is_unequal
    sentences.check(found.estimate.by_luck)


def test_null_level_of_pairs():
    """A voice for each utterance, 40 people with two: 60 sets (the study has 200 and more laws)."""
    p = []
    owner = np.repeat(np.arange(40), 2)
    people = [f"p{n:02}" for n in owner]
    for seed in range(60):
        rng = np.random.default_rng([seed, 40, 12])
        vectors = rng.normal(size=(80, 32)) + 0.7 * rng.normal(size=32)
        some = um.Embeddings(vectors, people)
        attack = {"it": um.within_release(some)}
        p.append(um.assess_attackers(attack, seed=seed, **ALONE).worst("linkability").luck.p)
    # One renaming for both ways reads 13 %; of 60 sets at 5 %, ten or more are seen once in 1,000.
    assert np.mean(np.array(p) <= 0.05) <= 0.15
