"""Attacks by words on the command line: transcripts, vectors of them, and what does not fit."""

from __future__ import annotations

import json

import numpy as np
import pytest

PEOPLE, EACH = 12, 6


@pytest.fixture
def folder(tmp_path):
    """Unrelated voices that keep the words of their owners."""
    rng = np.random.default_rng(0)
    names = np.repeat([f"s{p:02}" for p in range(PEOPLE)], EACH)
    text = {}
    for side in ("enrol", "test"):
        ids = [f"{side}-{name}-{n}" for n, name in enumerate(names)]
        for kind in ("o", "p"):
            voices = np.repeat(rng.normal(size=(PEOPLE, 8)), EACH, axis=0)
            vectors = voices + 0.3 * rng.normal(size=voices.shape)
            np.savez(
                tmp_path / f"{kind}-{side}.npz", vectors=vectors, speakers=names, utterances=ids
            )
        for name, speaker in zip(ids, names, strict=True):
            common = " ".join(rng.choice([f"word{n}" for n in range(60)], 6))
            text[name] = f"{speaker}topic {common}"
    both = {
        kind: [np.load(tmp_path / f"{kind}-{s}.npz") for s in ("enrol", "test")] for kind in "op"
    }
    for kind, (a, b) in both.items():
        np.savez(tmp_path / f"{kind}.npz", **{n: np.concatenate([a[n], b[n]]) for n in a})
    written(tmp_path / "text", text)
    rows = [
        rng.normal(size=4) + 9 * np.eye(PEOPLE, 4)[int(name.split("-")[1][1:])] for name in text
    ]
    np.savez(
        tmp_path / "said.npz",
        vectors=rows,
        speakers=[n.split("-")[1] for n in text],
        utterances=list(text),
    )
    return tmp_path


def written(path, text):
    path.write_text("".join(f"{name} {said}\n" for name, said in text.items()))


def read(path):
    return dict(line.split(" ", 1) for line in path.read_text().splitlines())


LEGAL = ("legal", "-a", "ignorant=o-enrol.npz,p-test.npz", "--lengths", "1,3", "--ci", "20", "-q")
PRIVACY = ("privacy", "--original", "o.npz", "--protected", "new=p.npz", "--ci", "20", "-q")


def test_legal_has_a_row_of_words_and_says_what_is_kept(unmask, sentences):
    done = unmask(*LEGAL, "--metrics", "linkability", "-t", "text")
    assert done.returncode == 0, done.stderr
    attackers = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert {"ignorant", "ignorant + words", "words"} <= set(attackers)
    said = done.stdout + done.stderr
    sentences.check(*(line for line in said.splitlines() if "words alone" in line))
    assert "strongest attacker words" not in said.split("by words alone")[0]


def test_vectors_of_a_language_model_take_the_place_of_transcripts(unmask):
    done = unmask(*LEGAL, "--metrics", "linkability", "--text-embeddings", "said.npz", "-f", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["results"]
    found = [
        r for r in rows if r["conditions"]["attacker"] == "words" and r["metric"] == "linkability"
    ]
    assert max(r["value"] for r in found) > 0.2


def test_privacy_has_a_row_of_words(unmask):
    done = unmask(*PRIVACY, "-t", "text", "-f", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["results"]
    found = {r["metric"]: r for r in rows if r["conditions"]["attacker"] == "words"}
    assert {"deid_words", "d_ece_words", "l_w_words", "tag_words", "eer_words"} <= set(found)
    assert found["deid_words"]["value"] < 0.5
    strongest = [r["conditions"]["attacker"] for r in rows if r["metric"] == "deid_strongest"]
    assert strongest[0].startswith("strongest of 16: no voice + words")


@pytest.mark.parametrize("command", [LEGAL, PRIVACY], ids=["legal", "privacy"])
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.pop("test-s01-6"),
        lambda text: text.update(nobody="hm"),
        lambda text: text.update({"test-s01-6": ""}),
        lambda text: [text.pop(name) for name in list(text) if name.startswith("test")],
        lambda text: text.clear(),
    ],
)
def test_transcripts_that_do_not_fit_are_refused_in_a_line(
    unmask, folder, command, change, sentences
):
    text = read(folder / "text")
    change(text)
    written(folder / "text", text)
    done = unmask(*command, "-t", "text")
    assert done.returncode == 1
    sentences.check(done.stderr.splitlines()[-1])
    assert done.stderr.count("\n") <= 3
    assert not done.stdout


def test_transcripts_or_vectors_and_only_with_embeddings(unmask):
    done = unmask(*LEGAL, "-t", "text", "--text-embeddings", "said.npz")
    assert (done.returncode, "found both" in done.stderr) == (1, True)
    done = unmask("privacy", "--scores", "a=1,2,3", "-t", "text")
    assert done.returncode != 0
    assert "needs embeddings" in done.stderr


CONFIG = """
title = "Words"
redact = true
figures = []
frameworks = ["legal", "similarity"]
intervals.replicates = 20
legal = {lengths = [1, 3], metrics = ["linkability"]}
original.embeddings = "o.npz"
safeguards = [{name = "new", embeddings = "p.npz"}]
words.transcripts = "text"
"""


def test_an_assessment_says_what_words_alone_give(unmask, folder):
    (folder / "a.toml").write_text(CONFIG)
    done = unmask("assess", "a.toml", "-o", "report", "--cache", "cache", "-q")
    assert done.returncode == 0, done.stderr
    page = (folder / "report" / "report.html").read_text()
    assert "give Linkability 9" in page or "give Linkability 100" in page
    assert "By words alone" in page
    assert "topic" not in page
    assert "s01" not in page
    rows = json.loads((folder / "report" / "results.json").read_text())
    text = json.dumps(rows)
    assert "original enrolment (cosine + words)" in text
    assert "deid_words" in text
    assert text.count('"point": "by words alone"') == 2  # a known person, within the release
    legal = unmask("legal", "-c", "a.toml", "-q", "-f", "json")
    assert legal.returncode == 0, legal.stderr
    assert '"words"' in legal.stdout


def test_an_assessment_refuses_transcripts_that_lack_utterances(unmask, folder, sentences):
    text = read(folder / "text")
    text.pop("test-s01-6")
    written(folder / "text", text)
    (folder / "a.toml").write_text(CONFIG.replace("redact = true\n", ""))
    done = unmask("assess", "a.toml", "-o", "report", "--cache", "cache", "-q")
    assert done.returncode == 1
    sentences.check(done.stderr.splitlines()[-1])
    assert not (folder / "report" / "report.html").exists()
