"""Words as an attacker: TF-IDF by its definition, and the attacks that go by what is said."""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.notices import lines_of
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.errors import InputError
from unmask.privacy import Words, with_words, words as module
from unmask.privacy.words import hearing, spoken_in, tf_idf
from unmask.utility import read_words

PEOPLE, EACH = 24, 8
VPC = Path(__file__).parents[3] / "shared" / "data" / "vpc2020"


def talk(rng, *, topics=True):
    """Texts of people who have words of their own, or none, and who share many others."""
    own = [[f"own{p}x{n}" for n in range(6)] for p in range(PEOPLE)]
    common = [f"word{n}" for n in range(200)]
    return [
        " ".join(
            [*rng.choice(own[p], 3), *rng.choice(common, 9)] if topics else rng.choice(common, 9)
        )
        for p in range(PEOPLE)
        for _ in range(EACH)
    ]


def speech(rng, side, *, voices=None):
    means, names = rng if voices is None else voices, f"{side}-{{name}}-{{row}}"
    return named_speakers(PEOPLE, EACH, 16, noise=0.5, means=means, draws=rng, utterance=names)


def ids(*sets):
    return [name for one in sets for name in one.utterances.to_series()]


@pytest.fixture
def release():
    """Unrelated voices on either side, the words of the same people, and what is said."""
    rng = np.random.default_rng(0)
    enrol, test = speech(rng, "e"), speech(rng, "t")
    said = dict(zip(ids(enrol, test), talk(rng) + talk(rng), strict=True))
    return enrol, test, said


def definition(known, asked):
    """Rows of tf(t, d)·ln((1 + n)/df(t)) at length one, term by term."""

    def terms(text):
        found = Counter()
        for word in text.split():
            found["word " + word] += 1
            padded = " " + word + " "
            for n in (3, 4, 5):
                for start in range(len(padded)):
                    if start + n <= len(padded):
                        found["run " + padded[start : start + n]] += 1
        return found

    counts = [terms(text) for text in known]
    having = {t: sum(t in one for one in counts) for one in counts for t in one}
    order = sorted(having)
    rows = np.array(
        [[terms(text)[t] * np.log((1 + len(known)) / having[t]) for t in order] for text in asked]
    )
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)


KNOWN = ["the cat sat on the mat", "a dog sat", "the cat ran to a cat", "dogs run on"]


def test_rows_have_the_products_of_the_definition():
    asked = [*KNOWN, "a mat for the dogs", "cats", "the the the"]
    made, true = tf_idf(KNOWN, asked), definition(KNOWN, asked)
    np.testing.assert_allclose(made @ made.T, true @ true.T, atol=1e-12)
    assert made.shape[1] <= len(asked)


def test_a_text_without_a_known_term_has_a_row_and_resembles_nobody():
    made = tf_idf(KNOWN, [*KNOWN, "xyz", "qq"])
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1)
    np.testing.assert_allclose(made[4:] @ made[:4].T, 0, atol=1e-12)


def test_of_many_texts_the_terms_that_most_have_count(monkeypatch):
    rng = np.random.default_rng(1)
    texts = list(dict.fromkeys(talk(rng)))
    monkeypatch.setattr(module, "MOST", 50)
    made = tf_idf(texts[:80], texts)
    assert made.shape == (len(texts), 50)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1)
    words = Words.of({str(n): text for n, text in enumerate(texts)})
    told = words.told(
        um.Embeddings(np.ones((len(texts), 2)), ["a"] * len(texts), map(str, range(len(texts))))
    )
    assert f"{len(texts)} different texts" in words.limits("words", told)[0].sentence
    assert not words.limits("words", told.select(np.arange(2)))


def test_case_and_punctuation_are_not_words():
    words = Words.of({"a": "The cat, sat!", "b": "the CAT sat", "c": "a dog"})
    assert words.texts == ("the cat sat", "a dog")
    assert words.numbers.tolist() == [0, 0, 1]


def test_attacked_text_of_others_changes_no_score(release):
    enrol, test, said = release
    scores = []
    for text in (None, "entirely other things word1 own3x2"):
        changed = dict(said)
        for name in ids(test.select(np.arange(EACH, len(test)))) if text else ():
            changed[name] = f"{text} {name}"
        attacker = hearing(um.Attacker(enrol, test, "words"), Words.of(changed))
        scores.append(attacker.read().matrix()[:, :EACH])
    np.testing.assert_allclose(*scores, atol=1e-12)


def test_training_text_is_fitted_on_and_versions_of_tests_are_not(release):
    enrol, test, said = release
    train = replace(test, speakers=um.Ids.from_strings(["other"] * len(test)))

    def scores(train):
        told = hearing(um.Attacker(enrol, test, "words", train), Words.of(said))
        return told.read().matrix()

    alone = scores(None)
    assert np.abs(scores(train) - alone).max() > 1e-3
    np.testing.assert_allclose(scores(test), alone, atol=1e-12)


def assessed(enrol, test, said, **options):
    attackers = with_words(
        {"ignorant": um.Attacker(enrol, test, enrols="original")}, Words.of(said)
    )
    return um.assess_attackers(attackers, counts=[20], lengths=[1, 4], replicates=0, **options)


def test_words_link_where_voices_are_unrelated(release, sentences):
    found = assessed(*release)
    assert found.words == ("words",)
    assert found.protected == ("ignorant", "ignorant + words", "no voice + words")
    names = ("ignorant", "ignorant + words", "words")
    voice, both, alone = (found.worst("linkability", [one]) for one in names)
    assert (voice.attacker, both.attacker.split(",")[0]) != ("words", "words")
    assert not voice.luck.beyond
    assert both.luck.beyond
    assert alone.estimate.value > 0.9
    assert found["linkability"].value == max(both.estimate.value, alone.estimate.value)
    (told,) = lines_of(found, "words")
    sentences.check(told)
    assert {metric for name, metric, _ in found.curves if name == "words"} == set(found.metrics)


def test_identical_texts_link_and_the_same_text_of_all_links_nobody(release):
    enrol, test, _ = release
    own = {name: f"this is what {name.split('-')[1]} says" for name in ids(enrol, test)}
    assert assessed(enrol, test, own).worst("linkability", ["words"]).estimate.value == 1
    same = dict.fromkeys(own, "all say the same")
    # Everybody ties: whoever guesses among them is right by chance.
    guessed = assessed(enrol, test, same).worst("linkability", ["words"]).estimate
    assert guessed.value == pytest.approx(guessed.chance)


def test_the_headline_is_never_weaker_than_words_alone(release):
    """A voice of strangers next to a word of one's own took a part of it away at equal weights."""
    enrol, test, _ = release
    rng = np.random.default_rng(6)
    common = [f"word{n}" for n in range(60)]
    said = {}
    for name in ids(enrol, test):
        mine = [f"own{name.split('-')[1]}"] if rng.random() < 0.8 else []
        said[name] = " ".join([*mine, *rng.choice(common, 6)])
    found = assessed(enrol, test, said)
    fused, alone, silent = (
        found.strongest("linkability", 1, attackers=[name]).estimate
        for name in ("ignorant + words", "words", "no voice + words")
    )
    assert fused.value < alone.value
    assert silent.value == alone.value
    assert found.strongest("linkability", 1).estimate.value >= alone.value
    assert found.strongest("linkability", 1).estimate.luck.attacks > silent.luck.attacks


@pytest.mark.parametrize(
    ("letters", "first"),
    [("中", 0x4E00), ("か", 0x3041), ("ก", 0x0E01), ("ក", 0x1780), ("ກ", 0x0E94), ("က", 0x1000)],
)
def test_scripts_without_blanks_count_single_characters_and_pairs(release, letters, first):
    """Everybody says a name of two characters of his own within text without blanks."""
    enrol, test, _ = release
    rng = np.random.default_rng(7)
    shared = [chr(first + 10 + n) for n in range(8)]
    said = {}
    for name in ids(enrol, test):
        person = int(name.split("-")[1][1:])
        mine = chr(first + person % 5) + chr(first + 5 + person // 5)
        text = [*rng.choice(shared, 30)]
        text.insert(int(rng.integers(30)), mine)
        said[name] = "".join(text)
    assert assessed(enrol, test, said).worst("linkability", ["words"]).estimate.value > 0.9


def test_terms_of_scripts_without_blanks_are_characters_and_pairs():
    known, asked = ["我是小明", "他是小红"], ["我是小明", "他是小红", "小 明", "かな"]
    made = tf_idf(known, asked)

    def terms(text):
        found = Counter()
        for word in text.split():
            padded = f" {word} "
            found.update(["word " + word, *word])
            for n in (2,):
                found.update(f"pair {word[i : i + n]}" for i in range(len(word) - n + 1))
            for n in (3, 4, 5):
                found.update(f"run {padded[i : i + n]}" for i in range(len(padded) - n + 1))
        return found

    having = Counter(term for text in known for term in terms(text))
    order = sorted(having)
    rows = np.array([[terms(t)[x] * np.log(3 / having[x]) for x in order] for t in asked])
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    true = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    np.testing.assert_allclose((made @ made.T)[:3, :3], (true @ true.T)[:3, :3], atol=1e-12)
    assert made[3] @ made[0] == pytest.approx(0)


def test_words_without_topics_are_at_chance(release):
    enrol, test, said = release
    rng = np.random.default_rng(2)
    texts = talk(rng, topics=False) + talk(rng, topics=False)
    alone = assessed(enrol, test, dict(zip(said, texts, strict=True))).worst(
        "linkability", ["words"]
    )
    assert not alone.luck.beyond
    # The same words under permuted names.
    order = np.random.default_rng(3).permutation(PEOPLE)
    names = np.repeat([f"s{p:02}" for p in order], EACH)
    shuffled = um.Embeddings(test.vectors, names, ids(test))
    assert not assessed(enrol, shuffled, said).worst("linkability", ["words"]).luck.beyond


def test_weights_come_from_other_people_or_are_equal(release):
    enrol, test, said = release
    rng = np.random.default_rng(4)
    train = speech(rng, "o")
    train = replace(
        train, speakers=um.Ids.from_strings([f"o{s}" for s in train.speakers.to_series()])
    )
    said |= dict(zip(ids(train), talk(rng), strict=True))
    words = Words.of(said)

    def weights(**more):
        told = hearing(um.Attacker(enrol, test, "cosine + words", **more), words)
        return told.read().ready.backend_in_use

    equal = weights()
    rows = [
        one.enrol
        for one in (
            equal.sides(
                hearing(um.Attacker(enrol, test, "cosine + words"), words).ready().enrol.vectors
            ),
        )
    ]
    who = enrol.speakers.codes
    strangers = who[:, None] != who
    unit = enrol.normalised().vectors
    spread = (unit @ unit.T)[strangers].std()
    assert equal.weights[0] == pytest.approx(1 / spread)
    text = rows[0][:, 16:] / equal.weights[1]
    assert equal.weights[1] == pytest.approx(1 / (text @ text.T)[strangers].std())
    learnt = weights(train=train).weights
    assert (learnt > 0).all()
    assert learnt[0] / learnt[1] != pytest.approx(equal.weights[0] / equal.weights[1], rel=0.02)


def test_the_fused_score_is_the_weighted_sum_of_averages(release):
    enrol, test, said = release
    told = hearing(um.Attacker(enrol, test, "cosine + words"), Words.of(said))
    fused = told.read().matrix()
    w = told.ready().backend_in_use.weights
    voice = replace(told, backend="cosine").read().matrix()
    alone = replace(told, backend="words").read().matrix()
    np.testing.assert_allclose(fused, w[0] * voice + w[1] * alone, atol=1e-10)


@pytest.mark.parametrize("backend", ["wccn", "plda", "whitened"])
def test_any_back_end_of_voices_has_words_beside_it(release, backend):
    enrol, test, said = release
    told = hearing(um.Attacker(enrol, test, f"{backend} + words", enrol), Words.of(said))
    scores, fused = told.read().matrix(), told.ready().backend_in_use
    assert scores.shape == (PEOPLE, len(test))
    assert fused.name == f"{backend} + words"


def test_vectors_of_texts_take_the_place_of_terms(release):
    enrol, test, said = release
    words = Words.of(said)
    told = hearing(um.Attacker(enrol, test, "words"), words)
    rows = np.concatenate(words.rows([told.enrol], told.enrol, told.test))
    by_vector = Words.of(um.Embeddings(3 * rows, ["x"] * len(rows), ids(enrol, test)))
    again = hearing(um.Attacker(enrol, test, "words"), by_vector)
    np.testing.assert_allclose(again.read().matrix(), told.read().matrix(), atol=1e-12)


def test_within_a_release_words_link_both_ways(release):
    enrol, _, said = release
    attackers = with_words(
        {"release": um.within_release(enrol)}, Words.of({n: said[n] for n in ids(enrol)})
    )
    found = um.assess_attackers(
        attackers, counts=[20], lengths=[1], metrics=["linkability"], replicates=0
    )
    assert found.words == ("words",)
    assert found.release == ("release", "release + words", "no voice + words")
    assert found.worst("linkability", ["words"]).estimate.value > 0.7


def test_deid_by_words_is_fitted_on_the_other_half_and_does_not_compete():
    rng = np.random.default_rng(5)
    original, protected = speech(rng, "u"), speech(rng, "u")
    words = Words.of(dict(zip(ids(original), talk(rng), strict=True)))
    table = um.compare_safeguards(original, {"new": protected}, words=words, replicates=50)
    result = table["new"].result
    assert "words" not in result.attacks
    assert {"cosine + words", "no voice + words"} <= set(result.attacks)
    assert result.attacker.startswith(("cosine + words", "no voice + words"))
    found = {one.metric: one for one in result.estimates if one.params["attacker"] == "words"}
    assert set(found) == {"deid_words", "d_ece_words", "l_w_words", "tag_words", "eer_words"}
    assert found["deid_words"].value < 0.6
    assert found["eer_words"].interval.high < 0.5
    assert found["deid_words"].luck.beyond
    plain = um.compare_safeguards(original, {"new": protected}, replicates=50)["new"].result
    assert plain.estimates[0] == result.estimates[0]
    attacker = hearing(um.Attacker(original, protected, "words"), words)
    rows, first = np.arange(len(original)), np.arange(len(original)) % 2 == 0
    sides = attacker.read().crossed(rows, rows, first)[0]
    texts = np.array(words.texts)[spoken_in(attacker.enrol)]
    true = definition(list(dict.fromkeys(texts[first])), list(texts))
    np.testing.assert_allclose(sides.enrol @ sides.test.T, true[first] @ true[~first].T, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda said: said.pop("t-s03-27"), "found none of 1 (first: t-s03-27)"),
        (lambda said: said.update(nobody="hm"), "found 1 others (first: nobody)"),
        (lambda said: said.update({"t-s03-27": " ,. "}), "expected words of t-s03-27, found none"),
        (lambda said: [said.pop(n) for n in list(said) if n[0] == "t"], "found none of 192"),
    ],
)
def test_transcripts_that_do_not_fit(release, change, line):
    enrol, test, said = release
    change(said)
    with pytest.raises(InputError, match=line.replace("(", r"\(").replace(")", r"\)")):
        with_words({"ignorant": um.Attacker(enrol, test)}, Words.of(said))


def test_an_attack_by_words_needs_transcripts(release, sentences):
    with pytest.raises(InputError) as error:
        um.Attacker(*release[:2], "words").ready()
    sentences.check(str(error.value))


def test_lines_of_json_are_transcripts(tmp_path, sentences):
    path = tmp_path / "text.jsonl"
    path.write_text(
        '{"utterance": "a", "text": "One two"}\n\n{"utterance": "b.wav", "text": "three"}\n'
    )
    assert read_words(path).texts == ("one two", "three")
    assert read_words(path).names == ("a", "b")
    path.write_text('{"utterance": "a", "text": "x"}\n{"utterance": "b"}\n')
    with pytest.raises(InputError) as error:
        read_words(path)
    sentences.check(str(error.value))
    path.write_text("a one two\n")
    with pytest.raises(InputError) as error:
        read_words(path)
    sentences.check(str(error.value))


@pytest.mark.skipif(not VPC.is_dir(), reason="no VoicePrivacy 2020 data")
@pytest.mark.parametrize(("sex", "people", "ten"), [("f", 16, 0.50), ("m", 13, 0.49)])
def test_half_of_the_readers_of_librispeech_are_linked_by_ten_utterances(sex, people, ten):
    """field.md has 22–26 % from one utterance and 48–56 % from ten, among 13–16 people."""
    with gzip.open(VPC / "text.gz", "rt") as lines:
        said = dict(line.strip().split(" ", 1) for line in lines)
    with gzip.open(VPC / f"trials_{sex}.gz", "rt") as lines:
        models = {line.split()[0] for line in lines}
    enrol = um.read_embeddings(VPC / "xvectors_enrolls.npz")
    enrol = enrol.select(enrol.speakers.to_series().is_in(list(models)).to_numpy())
    test = um.read_embeddings(VPC / f"xvectors_trials_{sex}.npz")
    attacker = hearing(um.Attacker(enrol, test, "words"), Words.of(said)).ready()
    assert len(models) == people
    found = [
        um.linkability(
            attacker.enrol, attacker.test, counts=[people], length=10, replicates=0, seed=seed
        ).value[0]
        for seed in range(8)
    ]
    assert np.mean(found) == pytest.approx(ten, abs=0.03)
    assert spoken_in(attacker.test).max() < len(said)
