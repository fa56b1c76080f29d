"""The level of a pseudonym: versions of the same speech, one table, what each lets be linked."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.helpers.populations import hum
from typer.testing import CliRunner

import unmask as um
from unmask.assessment import Beside, check_config, config_of
from unmask.cli import app
from unmask.errors import InputError
from unmask.report import run_assessment, summary_table
from unmask.report.words import note
from unmask.run import run_on

soundfile = pytest.importorskip("soundfile")

PEOPLE, EACH, SIZE = 16, 8, 32
WHO = np.repeat([f"s{n:02d}" for n in range(PEOPLE)], EACH)
WHEN = np.tile(np.repeat(["monday", "tuesday"], EACH // 2), PEOPLE)
NAMES = [f"u{n:03d}" for n in range(PEOPLE * EACH)]
LEVELS = ("global", "speaker", "session", "utterance")
FEW = ["intervals.replicates=50", "figures=[]", 'frameworks=["legal", "similarity"]']
FEW += ["legal.lengths=[1]", 'legal.metrics=["linkability"]', "legal.extrapolate=0"]


def ideal(level: str, seed: int, sessions=WHEN) -> um.Embeddings:
    """Voices that have nothing to do with anybody, one for all that share one at this level."""
    rng = np.random.default_rng(seed)
    own = {
        "global": np.zeros(len(WHO), str),
        "speaker": WHO,
        "session": np.char.add(WHO, WHEN),
        "utterance": NAMES,
    }[level]
    codes = np.unique(own, return_inverse=True)[1]
    voices = rng.normal(size=(codes.max() + 1, SIZE))[codes]
    return um.Embeddings(voices + 0.6 * rng.normal(size=voices.shape), WHO, NAMES, sessions)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    um.write(ideal("speaker", 0), tmp_path / "original.npz")
    for seed, level in enumerate(LEVELS, start=1):
        um.write(ideal(level, seed), tmp_path / f"{level}.npz")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    with run_on(workers=1):
        yield tmp_path


def test_ideal_pseudonyms_at_each_level(folder):
    versions = {level: f"{level}.npz" for level in LEVELS}
    config = config_of("original.npz", versions, Beside(levels=",".join(LEVELS)), changes=FEW)
    assert config.levels == LEVELS
    done = run_assessment(config, folder / "out")
    assert [one.key for one in done.sections] == ["levels", "legal", "similarity"]
    rows = [row for row in done.document.rows if row.conditions["framework"] == "levels"]
    table = {row.conditions["level"]: {e.metric: e for e in row.estimates} for row in rows}
    assert tuple(table) == LEVELS
    value = {level: {m: e.value for m, e in own.items()} for level, own in table.items()}
    little = 0.35
    for level in LEVELS:
        assert value[level]["deid_strongest"] > 0.85
        assert value[level]["linked_known"] < little
        for estimate in table[level].values():
            assert estimate.interval is not None
        for where in ("known", "release", "within", "between"):
            assert table[level][f"linked_{where}"].chance == pytest.approx(1 / PEOPLE)
    linked = {
        (level, where)
        for level in LEVELS
        for where in ("release", "within", "between")
        if value[level][f"linked_{where}"] > little
    }
    assert linked == {
        ("speaker", "release"),
        ("speaker", "within"),
        ("speaker", "between"),
        ("session", "release"),  # rounds cut across sessions
        ("session", "within"),
    }
    assert all(value[level]["g_vd_within"] > -0.5 for level in ("speaker", "session"))
    assert all(value[level]["g_vd_within"] < -10 for level in ("global", "utterance"))
    printed = summary_table(done)
    assert printed.count("level ") == 1
    assert note("of_levels") in " ".join(printed.split())
    said = done.sections[0].answer
    assert any(one.startswith("speaker: linked") and "100 % within the rel" in one for one in said)


def test_without_sessions_one_line_says_so_and_nothing_is_between(folder, sentences):
    for level in ("speaker", "utterance"):
        um.write(ideal(level, 9, None), f"{level}.npz")
    versions = {level: f"{level}.npz" for level in ("speaker", "utterance")}
    config = config_of("original.npz", versions, Beside(levels="speaker,utterance"), changes=FEW)
    section = run_assessment(config, folder / "out").sections[0]
    assert note("without_sessions") in section.tables[0].note
    assert {e.metric for e in section.rows[0].estimates} == {
        "deid_strongest", "g_vd", "linked_known", "linked_release"
    }  # fmt: skip
    um.write(ideal("session", 9, None), "session.npz")
    said = refused("original.npz", "speaker.npz", "session.npz", "--levels", "speaker,session")
    assert said.startswith("safeguards.session: ")
    sentences.check(said)


def test_a_file_names_sessions_of_embeddings(folder):
    um.write(ideal("speaker", 1, None), "speaker.npz")
    um.write(ideal("session", 2, None), "session.npz")
    lines = [f"{name} {when}\n" for name, when in zip(NAMES, WHEN, strict=True)]
    (folder / "sessions").write_text("".join(lines))
    versions = {level: f"{level}.npz" for level in ("speaker", "session")}
    told = Beside(levels="speaker,session", sessions="sessions")
    section = run_assessment(
        config_of("original.npz", versions, told, changes=FEW), folder / "out"
    ).sections[0]
    assert "g_vd_within" in {e.metric for e in section.rows[0].estimates}


def test_sessions_of_one_person_each_are_compared_by_their_place(folder, sentences):
    """As in LibriSpeech, whose chapters have one reader."""
    own = np.char.add(np.char.add(WHO, "-"), WHEN)
    own[:EACH] = "s00-monday"
    for level in ("speaker", "session"):
        um.write(ideal(level, 5, own), f"{level}.npz")
    versions = {level: f"{level}.npz" for level in ("speaker", "session")}
    config = config_of("original.npz", versions, Beside(levels="speaker,session"), changes=FEW)
    done = run_assessment(config, folder / "out")
    values = {e.metric: e for row in done.sections[0].rows[1:] for e in row.estimates}
    assert values["linked_within"].value > 0.9
    assert values["linked_between"].value < 0.35
    every = [notice for section in done.sections for notice in section.notices]
    notices = {notice.code: notice for notice in every if notice.subject.endswith("sessions")}
    assert {"sessions-numbered", "left-out"} <= set(notices)
    for code in ("sessions-numbered", "left-out"):
        assert any(line.endswith(notices[code].line) for line in done.document.warnings)
        sentences.check(notices[code].line)
    assert notices["left-out"].sentence.startswith("1 people ")


def refused(*words: str) -> str:
    done = CliRunner().invoke(app, ["assess", *words])
    assert done.exit_code == 1
    assert isinstance(done.exception, InputError), done.output
    return str(done.exception)


def test_mistakes_are_one_line(folder, sentences):
    two = ("original.npz", "speaker.npz", "global.npz", "--levels")
    for words, named in {
        (*two, "speaker,person"): "session and utterance",
        (*two, "speaker"): "--levels: ",
        (*two, "speaker,speaker"): "--levels: ",
        (*two, "speaker,session"): "LEVEL=PATH",
        (*two, "speaker,global,session"): "--method: ",
        (*two, "speaker,global,session", "--method", "b2"): "found b2",
        (*two, "speaker,global,session", "--method", "b2r"): "session=PATH",
        (*two[:-1], "--method", "b2r"): "--method: ",
    }.items():
        error = refused(*words)
        assert named in error, words
        sentences.check(error)
    (folder / "sessions").write_text("u000 monday\n")
    error = refused(*two, "speaker,global", "--sessions", "sessions")
    assert error.endswith(" u001")
    sentences.check(error)
    assert not (folder / "unmask-report").exists()


def test_levels_are_a_property_of_the_config_and_others_have_none():
    def levels(*safeguards):
        voices = [{"embeddings": "x.npz", **one} for one in safeguards]
        return check_config({"original": {"embeddings": "o.npz"}, "safeguards": voices}).levels

    named = [{"name": level, "per": level} for level in LEVELS]
    assert levels(*named) == LEVELS
    assert levels(*named[:1]) == ()
    assert levels(*named, {"name": "B2", "per": "speaker"}) == ()
    assert levels(*named[:2], {"name": "again", "hidden": True}) == LEVELS[:2]


def spectrum(samples: np.ndarray) -> np.ndarray:
    """Stands for an encoder: the long-term spectrum."""
    power = np.abs(np.fft.rfft(samples[:6_400])) ** 2
    return np.log(np.add.reduceat(power, np.arange(0, power.size, 100)) + 1e-9)


def test_a_method_makes_the_levels_of_recordings(tmp_path, monkeypatch, sentences):
    for n in range(4):
        for session in ("x", "y"):
            folder = tmp_path / "original" / f"s{n}" / session
            folder.mkdir(parents=True)
            for i in range(2):
                voice = hum(100 + 30 * n + i, 10 * n + i, seconds=0.4)
                soundfile.write(folder / f"s{n}{session}{i}.wav", voice, 16_000)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    few = [part for one in FEW for part in ("--set", one)]
    words = [
        "original",
        "--levels",
        ",".join(LEVELS),
        "--method",
        "b2r",
        "-e",
        f"{__name__}:spectrum",
    ]
    with run_on(workers=1):
        done = CliRunner().invoke(app, ["assess", *words, "--allow-code", *few, "-o", "out"])
    assert done.exit_code == 0, done.output
    results = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    rows = [one for one in results["results"] if one["conditions"]["framework"] == "levels"]
    assert {one["conditions"]["level"] for one in rows} == set(LEVELS)
    assert {"g_vd_within", "linked_between"} <= {one["metric"] for one in rows}
    flat = tmp_path / "flat" / "s0"
    flat.mkdir(parents=True)
    soundfile.write(flat / "a.wav", hum(100, 1, seconds=0.4), 16_000)
    said = refused("flat", "--levels", "speaker,session", "--method", "b2r")
    assert "safeguards.session: " in said
    sentences.check(said)


def test_a_manifest_keeps_sessions_where_a_safeguard_puts_its_output(tmp_path):
    soundfile.write(tmp_path / "a.wav", hum(100, 1, seconds=0.4), 16_000)
    (tmp_path / "metadata.csv").write_text("file_name,speaker,session\na.wav,ann,monday\n")
    (one,) = um.speech.recordings(tmp_path)
    assert one.place.as_posix() == "ann/monday/a"
