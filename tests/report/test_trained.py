"""Attackers that train the extractor: from two folders of recordings to a report, killed or not."""

from __future__ import annotations

import json
import re
import shutil
import sys

import pytest
from fuzz.faults import state_of, watched
from tests.helpers.populations import hum
from typer.testing import CliRunner

from unmask.assessment import Beside, config_of as config_of_folders
from unmask.assessment.cache import Work
from unmask.assessment.inputs import read_inputs
from unmask.assessment.toml import check_config, load_config
from unmask.assessment.training import NOT_RUNNABLE
from unmask.cli import app
from unmask.errors import InputError
from unmask.report.assessment import run_assessment as assess
from unmask.report.writing import write_report
from unmask.run import run_on
from unmask.speech import Recipe, anonymise, recordings, safeguard, train

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("torch")

PEOPLE, PER = 8, 4
TINY = {
    "network": "tdnn", "channels": 16, "dimension": 16, "bins": 20, "crop": 0.5, "batch": 8,
    "steps": 4, "every": 2, "loss": "softmax",
}  # fmt: skip
CONFIG = """
figures = []
frameworks = ["legal"]
intervals = {{replicates = 20}}
legal = {{lengths = [1], draws = 1, folds = 2, metrics = ["linkability"], counts = [2, 4]}}
[original]
audio = "original"
encoder = "encoder"
[[safeguards]]
name = "B2r"
audio = "protected"
encoder = "encoder"
{how}
[training]
start = "scratch"
device = "cpu"
curve = {curve}
recipe = {recipe}
[[attackers]]
name = "original enrolment"
backends = ["cosine"]
[[attackers]]
name = "informed"
enrol = "own"
train = true
backends = ["cosine", "wccn"]
"""


@pytest.fixture(autouse=True, scope="module")
def alone():
    """One process: starting workers takes longer than these recordings."""
    with run_on(workers=1):
        yield


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    for person in range(PEOPLE):
        place = folder / "original" / f"p{person}"
        place.mkdir(parents=True)
        for i in range(PER):
            voice = hum(90.0 + 20 * person + i, 10 * person + i)
            soundfile.write(place / f"p{person}-{i}.wav", voice, 16_000)
    result = recordings(folder / "original", speakers="folder")
    anonymise(result, folder / "protected", safeguard("b2r", seed=1))
    train(result, folder / "encoder", recipe=Recipe.from_dict({**TINY, "held_out": 0}))
    return folder


def config_of(folder, how='method = "b2r"', curve="[]", name="study.toml"):
    recipe = "{" + ", ".join(f"{k} = {json.dumps(v)}" for k, v in TINY.items()) + "}"
    text = CONFIG.format(how=how, curve=curve, recipe=recipe)
    (folder / name).write_text(text, encoding="utf-8")
    return load_config(folder / name)


def test_two_folders_and_one_command_train_an_attacker(study, tmp_path, monkeypatch, sentences):
    """Training people are not attacked; a kill while training loses nothing."""
    config = config_of(study, curve="[0.5]")
    said = []
    calls = []

    def killed(*args, **kwargs):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return train(*args, **kwargs)

    monkeypatch.setattr("unmask.speech.train", killed)
    with pytest.raises(KeyboardInterrupt):
        assess(config, tmp_path / "out", cache=tmp_path / "cache", say=said.append)
    assert len(said) == 2
    assert "takes about" in said[0]
    assert "on cpu" in said[0]
    assert re.search(r" \d+ (s|min)$", said[1])
    sentences.check(re.sub(r"\d+ (s|min)$", "<time>", said[1]))
    runs = {p: p.stat().st_mtime_ns for p in (tmp_path / "cache" / "runs").rglob("*.flac")}
    assert len(runs) == PEOPLE * PER

    monkeypatch.setattr("unmask.speech.train", train)
    result = assess(config, tmp_path / "out", cache=tmp_path / "cache", say=said.append)
    assert result.reused > 0
    assert {p: p.stat().st_mtime_ns for p in runs} == runs
    assert "informed" in result.attackers
    assert result.extractor.startswith("Extractors were trained")
    assert "informed on B2r" in result.extractor
    sentences.check(result.extractor)
    facts = dict(result.facts)
    assert facts["Speakers"] == "4"
    sentences.check(facts["Attacker informed"])
    people = {row.conditions["speaker"] for row in result.least[0].rows} if result.least else set()
    assert len(people) in (0, 4)
    write_report(result, tmp_path / "out")
    results = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    named = {row["conditions"].get("attacker", "") for row in results["results"]}
    assert {"informed (cosine)", "informed (wccn)"} <= named
    assert str(tmp_path / "cache") not in (tmp_path / "out" / "report.html").read_text()
    again = assess(config, tmp_path / "out", cache=tmp_path / "cache", say=said.append)
    assert again.computed == 0
    assert len(said) == 5  # nothing is left to train


def test_why_no_extractor_was_trained_is_said(study, tmp_path):
    config = config_of(study, how="", name="plain.toml")
    result = assess(config, tmp_path / "out", cache=tmp_path / "cache")
    assert result.attackers == ("original enrolment",)
    assert NOT_RUNNABLE in result.extractor
    assert [n for n in result.cards[0].notices if NOT_RUNNABLE in n.sentence]


def test_a_command_runs_only_with_leave(study, tmp_path, sentences):
    mark = tmp_path / "ran"
    how = f"command = \"sh -c 'touch {mark}; cp {{input}} {{output}}; : {{key}}'\""
    config = config_of(study, how=how, name="command.toml")
    with pytest.raises(InputError, match="--allow-code") as error:
        assess(config, tmp_path / "out", cache=tmp_path / "cache")
    sentences.check(str(error.value))
    assert not mark.exists()


def test_train_true_is_short_for_an_extractor_on_own_speech(sentences):
    raw = {
        "original": {"embeddings": "a.npz"},
        "safeguards": [{"name": "x", "embeddings": "b.npz"}],
        "attackers": [{"name": "informed", "train": True}],
    }
    attacker = {one.name: one for one in check_config(raw).attackers}["informed"]
    assert attacker.train == ("own",)
    assert attacker.trains
    assert attacker.needs == ("own",)
    raw["safeguards"][0] |= {"method": "b2", "command": "x {input} {output}"}
    with pytest.raises(InputError, match="safeguards") as error:
        check_config(raw)
    sentences.check(str(error.value))


def test_people_who_are_attacked_train_nobody(study, tmp_path, sentences):
    config = config_of(study, name="shared.toml")
    changed = config.model_copy(
        update={"training": config.training.model_copy(update={"audio": study / "original"})}
    )
    with pytest.raises(InputError, match=r"found 8\b") as error:
        assess(changed, tmp_path / "out", cache=tmp_path / "cache")
    sentences.check(str(error.value))


def test_a_kill_at_any_stage_ends_with_the_same_bytes(study, tmp_path):
    """What a kill leaves while protecting, training or embedding is put in place; it goes on."""
    config, cache = config_of(study, name="killed.toml"), tmp_path / "cache"
    left = {
        "protecting": "runs/*/*/*.flac",
        "training": "**/checkpoint*",
        "embedding": "*/*/card*",
    }
    changes = dict.fromkeys(left, 0)

    def keep():
        there = [stage for stage, file in left.items() if any(cache.glob(file))]
        for stage in there[-1:]:
            changes[stage] += 1
            if changes[stage] == 3:
                shutil.copytree(cache, tmp_path / stage)

    def run():
        read_inputs(config, Work(cache), base=study)
        kept, began = (".flac", ".safetensors", ".npz"), ".unmask-"
        result = state_of(cache).items()
        return {name: sha for name, sha in result if name.endswith(kept) and began not in name}

    cache.mkdir(mode=0o700)
    with watched(cache, keep):
        whole = run()
    for stage in left:
        shutil.rmtree(cache)
        shutil.copytree(tmp_path / stage, cache)
        assert run() == whole, stage


def test_safeguards_of_a_sweep_are_made_on_the_way(study, tmp_path, sentences):
    told = Beside(encoder=str(study / "encoder"), sweep="mcadams=0.6,0.9")
    few = ['frameworks=["similarity"]', "figures=[]", "intervals.replicates=9", "utility.dnsmos=0"]
    config = config_of_folders(study / "original", {}, told, changes=few)
    said = []
    result = assess(config, tmp_path / "out", cache=tmp_path / "cache", say=said.append)
    assert {card.safeguard for card in result.cards} == {"mcadams 0.6", "mcadams 0.9"}
    assert len(list((tmp_path / "cache" / "runs").rglob("*.flac"))) == 2 * PEOPLE * PER
    assert re.search(r" \d+ (s|min)$", said[-1])
    sentences.check(re.sub(r"\d+ (s|min)$", "<time>", said[-1]))
    assert all(one.audio is None for one in result.asked.safeguards)
    again = assess(config, tmp_path / "out", cache=tmp_path / "cache")
    assert again.computed == 0


PROTECT = """
import array, sys, wave
with wave.open(sys.argv[1]) as file:
    how, voice = file.getparams(), array.array("h", file.readframes(file.getnframes()))
step = 4 + int(sys.argv[3]) % 5
with wave.open(sys.argv[2], "wb") as file:
    file.setparams(how)
    file.writeframes(array.array("h", (v for n, v in enumerate(voice) if n % step)).tobytes())
"""
"""A safeguard without packages: one sample in so many is left out, as the key says."""


def test_a_recording_that_a_command_fails_on_is_left_out_by_name(study, tmp_path, sentences):
    """The attacker's own run lacks it; the assessment is made, and says so."""
    fails = "if 'p0-1' in sys.argv[1]:\n    sys.exit(3)\nwith wave.open(sys.argv[1])"
    (tmp_path / "protect.py").write_text(PROTECT.replace("with wave.open(sys.argv[1])", fails))
    command = f"{sys.executable} -S {tmp_path / 'protect.py'} {{input}} {{output}} {{key}}"
    told = Beside(encoder=str(study / "encoder"), safeguard=command)
    few = [
        'frameworks=["legal"]', "figures=[]", "intervals.replicates=9", "utility.dnsmos=0",
        "legal.lengths=[1]", 'legal.metrics=["linkability"]', "standard_attackers=false",
        "training.curve=[]", "quick=false",
        'attackers=[{name="informed", enrol="own", backends=["cosine"]}]',
    ]  # fmt: skip
    protected = {"protected": str(study / "protected")}
    config = config_of_folders(study / "original", protected, told, changes=few)
    result = assess(config, tmp_path / "out", cache=tmp_path / "cache", allow_code=True)
    made = sorted(one.stem for one in (tmp_path / "cache" / "runs").rglob("*.flac"))
    assert len(made) == PEOPLE * PER - 1
    assert "p0-1" not in made
    (notice,) = [one for one in result.notices if one.code == "not-made"]
    assert notice.line in result.warnings
    assert notice.sentence.startswith("1 recordings ")
    assert "p0-1" in notice.sentence
    shown = notice.line.replace(str(study), "<study>").replace(sys.executable, "<python>")
    sentences.check(re.sub(r"/[\w./-]*/runs/[\w./-]*", "<run>", shown))


def test_folders_a_command_and_other_people_make_an_attacker_that_learns(
    study, tmp_path, monkeypatch, sentences
):
    """The command is run under keys of the attacker's own on those attacked and on those who
    train; the config beside the report says how, and gives the same report again.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "protect.py").write_text(PROTECT)
    for person in range(4):
        place = tmp_path / "others" / f"q{person}"
        place.mkdir(parents=True)
        for i in range(PER):
            voice = hum(95.0 + 25 * person + i, 100 + 10 * person + i)
            soundfile.write(place / f"q{person}-{i}.wav", voice, 16_000)
    command = f"{sys.executable} -S {tmp_path / 'protect.py'} {{input}} {{output}} {{key}}"
    tiny = {f"training.recipe.{key}": value for key, value in TINY.items()}
    changes = {
        "figures": [], "frameworks": ["legal", "similarity"], "intervals.replicates": 20,
        "legal.lengths": [1],
        "legal.metrics": ["linkability"], "training.start": "scratch", "training.device": "cpu",
        "training.curve": [], "standard_attackers": False, **tiny,
    }  # fmt: skip
    told = [word for key, v in changes.items() for word in ("--set", f"{key}={json.dumps(v)}")]
    words = ["--train", "others", "--safeguard", command, "-e", str(study / "encoder")]
    both = [str(study / "original"), str(study / "protected")]
    to = ["-o", "report", "--cache", "cache"]
    done = CliRunner().invoke(app, ["assess", *both, *words, *told, *to])
    assert done.exit_code == 0, done.output
    assumed = [line for line in done.stderr.splitlines() if line.startswith("assumed: ")]
    assert any(line.startswith("assumed: protected: ") for line in assumed)
    sentences.check(*(line.replace(str(study), "<study>") for line in assumed))
    runs = sorted((tmp_path / "cache").glob("runs/*/*/*.flac"))
    assert len(runs) == (PEOPLE + 4) * PER
    lengths = {len(soundfile.read(one)[0]) for one in runs}
    assert len(lengths) == 1  # one key of the attacker's own
    results = json.loads((tmp_path / "report" / "results.json").read_text(encoding="utf-8"))
    named = {row["conditions"].get("attacker", "") for row in results["results"]}
    assert {"informed, encoder (cosine)", "informed, encoder (wccn)"} <= named
    assert any("by informed, encoder" in name for name in named)
    assert "not computed" not in done.output
    again = ["assess", "report/settings.toml", "--allow-code", *to]
    said = CliRunner().invoke(app, again).stderr
    assert "computed 0" in said
