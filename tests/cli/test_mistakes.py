"""Mistakes that ended in a foreign exception, in silence, or in a line without a cure."""

import json

import numpy as np
import pytest

import unmask as um
from unmask.assessment import config_of
from unmask.assessment.folders import Beside
from unmask.errors import InputError
from unmask.run import text_lines
from unmask.speech import METADATA
from unmask.trials import write

PEOPLE, EACH = 8, 5


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Scores of eight people with a key, and keys and scores that are wrong in one way each."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    trials = [(f"m{a}", f"u{b:02d}") for a in range(PEOPLE) for b in range(PEOPLE * EACH)]
    target = [int(a[1:]) == int(b[1:]) // EACH for a, b in trials]
    values = 2 * np.array(target) + rng.normal(size=len(trials))

    def lines(name, last, turned=False, between=" "):
        rows = (
            between.join([b, a, str(x)] if turned else [a, b, str(x)])
            for (a, b), x in zip(trials, last, strict=True)
        )
        (tmp_path / name).write_text("\n".join(rows) + "\n")

    lines("scores", values.round(4))
    lines("const", np.ones(len(trials)))
    lines("key", np.where(target, "target", "nontarget"))
    lines("turned", np.where(target, "target", "nontarget"), turned=True)
    lines("imposter", np.where(target, "target", "imposter"))
    lines("numbered", np.where(target, 1, 2))
    comma = (f"{a};{b};{int(t)};{v:.4f}".replace(".", ",")
             for (a, b), t, v in zip(trials, target, values, strict=True))  # fmt: skip
    (tmp_path / "comma.csv").write_text("enrol;test;label;score\n" + "\n".join(comma) + "\n")
    who = [f"m{a} p{a}\n" for a in range(PEOPLE)]
    who += [f"u{b:02d} p{b // EACH}\n" for b in range(PEOPLE * EACH)]
    (tmp_path / "who").write_text("".join(who))
    return tmp_path


@pytest.mark.parametrize("key", ["turned", "imposter", "numbered"])
def test_a_key_that_is_wrong_is_told_what_it_lacks(files, key, sentences):
    with pytest.raises(InputError) as refused:
        um.evaluate("scores", key=key, replicates=0)
    sentences.check(str(refused.value))


def test_decimal_commas_are_named(files, sentences):
    with pytest.raises(InputError) as error:
        um.read_scores("comma.csv")
    sentences.check(str(error.value))


def test_a_pattern_that_is_none_is_one_line_of_ours(files, sentences):
    with pytest.raises(InputError) as refused:
        um.read_scores("scores", key="key", speakers="pattern:([")
    sentences.check(str(refused.value))


def test_scores_that_tell_nobody_apart_are_told():
    with pytest.warns(um.UnmaskWarning, match="scores are 1:"):
        um.evaluate((np.ones(40), np.ones(90)), replicates=0)


def test_a_system_is_not_compared_with_itself_in_silence(files):
    with pytest.warns(um.UnmaskWarning, match="the same scores"):
        um.compare({"a": "scores", "b": "scores"}, key="key", speakers="who", replicates=20)


@pytest.mark.parametrize("population", [10**30, 1e19])
def test_more_people_than_there_can_be(files, population, sentences):
    scores = um.read_scores("scores", key="key", speakers="who")
    with pytest.raises(InputError) as error:
        um.worst_case_study(scores, population=population, groups=0)
    sentences.check(str(error.value))


def test_voices_are_needed_of_two_people_and_of_no_number(files, sentences):
    one = um.Embeddings(np.eye(4), ["a"] * 4, [f"u{n}" for n in range(4)])
    with pytest.raises(InputError) as error:
        um.assess_attackers({"x": um.Attacker(one, one, release=False)})
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        um.linkability(1, 2)
    sentences.check(str(error.value))


def test_a_method_without_a_key_needs_no_second_run(tmp_path, sentences):
    for name in ("o", "p", "again"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.wav").write_bytes(b"RIFF")
    said = json.dumps({"method": "b2", "coefficient": 0.8})
    (tmp_path / "p" / METADATA).write_text(said)
    with pytest.raises(InputError) as error:
        config_of(tmp_path / "o", {"p": tmp_path / "p"}, Beside(again={"p": tmp_path / "again"}))
    sentences.check(str(error.value))


def test_text_that_is_none_is_not_told_in_words_of_the_codec(files, sentences):
    write(um.Embeddings(np.eye(4), list("abcd")), files / "o.npz")
    with pytest.raises(InputError) as error:
        text_lines(files / "o.npz")
    sentences.check(str(error.value))
