"""Numbers of conditions: definitions written out, pairing, intervals, files, refusals."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import unmask as um
from unmask.base import draws
from unmask.cli import app
from unmask.errors import InputError
from unmask.run import run_on
from unmask.speech import recordings
from unmask.utility import (
    COLUMNS,
    Measurements,
    measure,
    read_measurements,
    read_transcripts,
    utility_of,
    write_measurements,
)

RATE = 16000


def some(conditions=("original", "b2"), speakers=6, each=5, seed=0, **columns):
    rng = np.random.default_rng(seed)
    count = speakers * each
    values = {}
    for n, name in enumerate(conditions):
        values[name] = {c: np.full(count, np.nan) for c in COLUMNS}
        values[name]["words"] = np.full(count, 5.0)
        values[name]["word_errors"] = rng.binomial(5, 0.1 + 0.2 * n, count).astype(float)
        values[name]["rho_f0"] = np.ones(count) if not n else rng.uniform(0.5, 1, count)
        values[name] |= {c: v(n, count) for c, v in columns.items()}
    names = tuple(f"u{i}" for i in range(count))
    owner = tuple(f"s{i // each}" for i in range(count))
    return Measurements(names, owner, values, "somebody")


def test_wer_is_errors_over_words_and_differences_are_paired():
    given = some()
    result = utility_of(given, replicates=50, seed=3)
    error = {n: v["word_errors"] for n, v in given.values.items()}
    wer = {n: e.sum() / 150 for n, e in error.items()}
    assert result.estimate("b2", "wer").value == pytest.approx(wer["b2"])
    assert result.estimate("b2", "wer_unprotected").value == pytest.approx(wer["original"])
    assert result.estimate("b2", "wer_difference").value == pytest.approx(
        wer["b2"] - wer["original"]
    )
    assert result.estimate("b2", "wer").chance == 1.0
    assert dict(result.estimate("b2", "wer").n) == {"words": 150, "speakers": 6}
    times = draws(6, 50, 3)
    weights = times[:, np.repeat(np.arange(6), 5)]
    drawn = (weights @ (error["b2"] - error["original"])) / (weights @ np.full(30, 5.0))
    ends = result.estimate("b2", "wer_difference").interval
    centre = 2 * (wer["b2"] - wer["original"]) - drawn.mean()
    assert (ends.low + ends.high) / 2 == pytest.approx(centre)
    assert {row["condition"] for row in result.rows()} == {"original", "b2"}
    assert "weak-recogniser" not in {one.code for one in result.notices}
    assert "few-speakers" in {one.code for one in result.notices}


def test_what_one_condition_lacks_counts_in_none():
    given = some()
    given.values["b2"]["rho_f0"][0] = np.nan
    result = utility_of(given, replicates=0).estimate("b2", "rho_f0")
    assert result.value == pytest.approx(np.nanmean(given.values["b2"]["rho_f0"]))
    assert result.n["utterances"] == 29
    assert result.no_interval


def test_a_weak_recogniser_is_named():
    given = some(word_errors=lambda n, count: np.full(count, 3.0))
    notice = next(n for n in utility_of(given, replicates=0).notices if n.code == "weak-recogniser")
    assert "60 % of unprotected words" in notice.sentence


def test_a_melody_that_is_gone_is_told(sentences):
    given = some(rho_f0=lambda n, count: np.where(np.arange(count) < 4 * n, np.nan, 0.9))
    result = utility_of(given, replicates=0)
    assert dict(result.estimate("b2", "rho_f0").n) == {"utterances": 26, "speakers": 6}
    (notice,) = (one for one in result.notices if one.code == "no-pitch")
    assert notice.subject == "b2"
    sentences.check(notice.sentence)
    assert not any(one.code == "no-pitch" for one in utility_of(some(), replicates=0).notices)


def test_a_number_that_a_condition_lacks_is_told():
    given = some(words=lambda n, count: np.full(count, np.nan if n else 5.0))
    result = utility_of(given, replicates=0)
    assert result.estimate("original", "wer") is None
    assert [one.subject for one in result.notices if one.code == "not-compared"] == ["wer"]


def test_recall_of_conditions(sentences):
    given = some()
    truth = np.tile([0.0, 1.0, 1.0], 10)
    guess = {"original": truth, "b2": np.zeros(30)}
    whole = Measurements(
        given.utterances, given.speakers, given.values, "x", ("glad", "sad"), truth, guess
    )
    result = utility_of(whole, replicates=20)
    assert result.estimate("original", "uar").value == 1.0
    assert result.estimate("b2", "uar").value == 0.5
    assert result.estimate("b2", "uar").chance == 0.5
    assert result.estimate("b2", "uar_difference").value == -0.5
    assert not any(one.code == "empty-replicates" for one in result.notices)
    alone = np.where(np.arange(30) < 5, 0.0, 1.0)  # one speaker has all of a class
    few = replace(whole, labels=alone, predictions={"original": alone, "b2": alone})
    (notice,) = (n for n in utility_of(few, replicates=20).notices if n.code == "empty-replicates")
    assert notice.subject == "uar"
    sentences.check(notice.sentence)
    guess["b2"][:3] = 1.0  # of 10 glad ones 9 are right, of 20 sad ones 2
    again = utility_of(whole, replicates=0)
    assert again.estimate("b2", "uar").value == pytest.approx((9 / 10 + 2 / 20) / 2)


def test_files_go_and_come(tmp_path):
    given = some()
    write_measurements(given, tmp_path / "m.csv")
    back = read_measurements(tmp_path / "m.csv")
    assert (back.utterances, back.speakers, back.recogniser) == (
        given.utterances,
        given.speakers,
        "somebody",
    )
    for name, columns in given.values.items():
        for column, values in columns.items():
            np.testing.assert_allclose(back.values[name][column], values, rtol=1e-5)
    text = (tmp_path / "m.csv").read_text()
    for change, said in (
        (("original,u3,", "original,u2,"), "twice"),
        (("b2,u3,", "b2,u99,"), "b2: expected the originals' utterances"),
        (("word_errors", "word errors"), "expected the column word_errors"),
    ):
        (tmp_path / "bad.csv").write_text(text.replace(*change, 1))
        with pytest.raises(InputError, match=said):
            read_measurements(tmp_path / "bad.csv")


def test_a_document_in_every_format():
    document = um.document(utility_of(some(), replicates=10))
    assert "WER" in um.render(document, "latex")
    rows = json.loads(um.render(document, "json"))["results"]
    assert {row["metric"] for row in rows} >= {"wer", "wer_unprotected", "wer_difference", "rho_f0"}
    assert um.render(document, "csv").count("wer") >= 4


@pytest.fixture
def folders(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    rng = np.random.default_rng(0)
    for kind in ("original", "b2"):
        for speaker in ("anna", "bert"):
            folder = tmp_path / kind / speaker
            folder.mkdir(parents=True)
            for n in range(2):
                samples = 0.1 * rng.standard_normal(RATE // 4)
                soundfile.write(folder / f"{speaker}_{n}.wav", samples, RATE)
    names = [f"{speaker}_{n}" for speaker in ("anna", "bert") for n in range(2)]
    (tmp_path / "text").write_text("".join(f"{name} one two\n" for name in names))
    return tmp_path


class Listener:
    """Hears one word right, whatever is said."""

    name = "one"

    def hear(self, path):
        return "one" if "original" in path else "two two two"

    def unknown(self, words):
        return [word for word in words if word == "three"]


def measured(folders, **options):
    with run_on(workers=1):
        return measure(
            recordings(folders / "original"),
            {"b2": recordings(folders / "b2")},
            pitched=False,
            **options,
        )


def test_recordings_are_heard(folders, sentences):
    texts = dict.fromkeys(["anna_0", "anna_1", "bert_0", "bert_1"], "one two")
    outcome = measured(folders, transcripts=texts, recogniser=Listener())
    result = utility_of(outcome, replicates=0)
    assert result.estimate("original", "wer").value == 0.5
    assert result.estimate("b2", "wer").value == 1.0
    given = measured(
        folders,
        transcripts=texts,
        hypotheses={"original": texts, "b2": dict.fromkeys(texts, "")},
    )
    assert utility_of(given, replicates=0).estimate("b2", "wer").value == 1.0
    del texts["bert_0"]
    with pytest.raises(InputError) as error:
        measured(folders, transcripts=texts, recogniser=Listener())
    sentences.check(str(error.value))
    texts["bert_0"] = "three three three three three three three"
    with pytest.raises(InputError) as error:
        measured(folders, transcripts=texts, recogniser=Listener())
    sentences.check(str(error.value))


TEXTS = dict.fromkeys(["anna_0", "anna_1", "bert_0", "bert_1"], "one")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hypotheses": {"original": TEXTS}}, "hypotheses: expected those of every condition"),
        ({"hypotheses": {"b3": TEXTS}}, "conditions original, b2, found b3"),
        ({}, "transcripts: expected a recogniser or hypotheses, found neither"),
        ({"transcripts": None, "hypotheses": {"original": TEXTS, "b2": TEXTS}}, "transcripts to"),
        ({"labels": TEXTS, "recogniser": Listener()}, "found only one of both"),
        ({"predictions": {"original": TEXTS, "b2": TEXTS}}, "transcripts: expected|one of both"),
        ({"labels": TEXTS, "predictions": {"b2": TEXTS}}, "predictions: .* none of original"),
    ],
)
def test_what_would_be_compared_with_nothing_is_refused(folders, given, message):
    with pytest.raises(InputError, match=message):
        measured(folders, **{"transcripts": TEXTS, **given})


def test_bad_recordings_are_named(folders, sentences):
    import soundfile

    path = folders / "b2" / "bert" / "bert_1.wav"
    soundfile.write(path, np.zeros(4000), RATE)
    with pytest.raises(InputError) as error:
        measured(folders)
    sentences.check(str(error.value))
    soundfile.write(path, np.clip(np.sin(np.arange(4000) / 9) * 3, -1, 1), RATE, subtype="FLOAT")
    result = measured(folders)
    assert "bert_1.wav: " in next(n.sentence for n in result.notices if n.code == "clipped")
    path.rename(path.with_name("bert_9.wav"))
    with pytest.raises(InputError) as error:
        measured(folders)
    sentences.check(str(error.value))
    (folders / "original" / "bert" / "bert_1.wav").unlink()
    with pytest.raises(InputError) as error:
        measured(folders)
    sentences.check(str(error.value))


def test_the_command(folders, capsys):
    said = [f"--hypotheses={name}={folders / 'text'}" for name in ("original", "b2")]
    arguments = [str(folders / "original"), str(folders / "b2"), "-t", str(folders / "text"), *said]
    more = [
        "--no-melody",
        "--ci",
        "0",
        "-f",
        "json",
        "-m",
        str(folders / "m.csv"),
        "--heard",
        str(folders / "heard"),
        "--workers",
        "1",
    ]
    app(["utility", *arguments, *more], standalone_mode=False)
    assert read_transcripts(folders / "heard" / "b2.txt") == read_transcripts(folders / "text")
    results = json.loads(capsys.readouterr().out)["results"]
    wer = [one for one in results if one["metric"] == "wer"]
    assert [one["value"] for one in wer] == [0.0, 0.0]
    app(["utility", str(folders / "m.csv"), "--ci", "0", "-f", "csv"], standalone_mode=False)
    assert "wer" in capsys.readouterr().out


def test_the_bundled_numbers_belong_together():
    from unmask.speech import case_study_subset
    from unmask.utility import case_study_utility

    measured, voices = case_study_utility(), case_study_subset()
    assert measured.conditions == ("original", "b2", "b2r", "b2w", "b1", "pitch", "restate")
    for name in (*measured.conditions, "b1-again", "b2r-again", "b2w-again"):
        assert tuple(voices[name].utterances.to_series()) == measured.utterances
        assert tuple(voices[name].speakers.to_series()) == measured.speakers
    result = utility_of(measured, replicates=0)
    wer = [result.estimate(name, "wer").value for name in measured.conditions]
    assert wer[0] == min(wer) < 0.05
