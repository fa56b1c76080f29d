"""Two folders or files and one command: the config that is made, quick looks, sweeps."""

from __future__ import annotations

import json
import re

import pytest
from tests.helpers.populations import speakers_with_noise
from typer.testing import CliRunner

import unmask as um
from unmask.assessment import Beside, Config, Step, Work, assumptions, config_of
from unmask.assessment.folders import SWEPT
from unmask.cli import app
from unmask.cli.assess import _logged, versions
from unmask.cli.common import Terminal
from unmask.report import check_inputs, document
from unmask.report.words import note
from unmask.run import run_on
from unmask.scoring import BACKENDS
from unmask.speech import METADATA

PEOPLE, PER = 8, 4
FEW = [
    'frameworks=["similarity"]',
    "figures=[]",
    "intervals.replicates=9",
    "legal.lengths=[1]",
]


def voices(noise: float, seed: int = 0, people: str = "s", means: int = 7) -> um.Embeddings:
    vectors, owner = speakers_with_noise(PEOPLE, PER, 6, noise=noise, means=means, draws=seed)
    names = [f"{people}u{n}" for n in range(PEOPLE * PER)]
    return um.Embeddings(vectors, [f"{people}{n}" for n in owner], names)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, one in {
        "original": voices(0.2),
        "b2": voices(1.0, 1),
        "b2-again": voices(1.0, 2),
        "strangers": voices(0.2, 3, people="t"),
    }.items():
        um.write(one, tmp_path / f"{name}.npz")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    with run_on(workers=1):
        yield tmp_path


@pytest.fixture
def recorded(folder):
    """Files that sound, by name: nobody listens here."""
    for place in ("original", "protected", "0.7", "other"):
        for n in range(4):
            (folder / place / f"p{n}").mkdir(parents=True)
            (folder / place / f"p{n}" / f"p{n}-1.wav").touch()
    (folder / "text").touch()
    return folder


def told(**how):
    return [*(word for one in FEW for word in ("--set", one)), *how]


def run(*words):
    return CliRunner().invoke(app, ["assess", *map(str, words)])


def refused(*words):
    done = run(*words, "--validate")
    assert done.exit_code == 1
    return str(done.exception)


def test_two_files_become_a_report_and_the_config_of_the_same_report(folder, sentences):
    done = run("original.npz", "b2.npz", "-o", "report", *told())
    assert done.exit_code == 0, done.output
    said = done.stderr.splitlines()
    assert [line.partition(": ")[0] for line in said[:2]] == ["assumed"] * 2
    assert said[1].startswith("assumed: b2: ")
    assert re.search(r" \d+ s$", said[2])
    sentences.check(said[0], said[1], re.sub(r"\d+ s$", "<time>", said[2]))
    steps = [line for line in said if re.match(r" +\d+\.\d s  ", line)]
    assert all(float(line.split()[0]) >= 0.5 for line in steps)
    first = (folder / "report" / "results.json").read_bytes()
    again = run("report/settings.toml", "-o", "report")
    assert again.exit_code == 0, again.output
    assert "computed 0" in again.stderr
    assert (folder / "report" / "results.json").read_bytes() == first


def test_a_second_run_is_known_by_its_name_or_told(folder, sentences):
    by_name = config_of("original.npz", {"b2": "b2.npz", "b2-again": "b2-again.npz"})
    by_word = config_of("original.npz", {"b2": "b2.npz"}, Beside(again={"b2": "b2-again.npz"}))
    assert by_name == by_word
    assert [one.hidden for one in by_name.safeguards] == [False, True]
    sentences.check(*assumptions(by_name))
    done = run("original.npz", "b2.npz", "--again", "b2-again.npz", "--validate")
    assert "ignorant (cosine, wccn, whitened, length); informed (" in done.stdout
    (forecast,) = [line for line in done.stdout.splitlines() if re.search(r" \d+ s\.", line)]
    lacking = [line for line in done.stdout.splitlines() if "semi-informed" in line]
    assert lacking
    sentences.check(re.sub(r"\d+ s", "<time>", forecast), *lacking)
    assert "Hidden" not in done.stdout
    (folder / "copy.npz").write_bytes((folder / "b2.npz").read_bytes())
    done = run("original.npz", "b2.npz", "--again", "copy.npz", "--validate")
    assert "32 of 32 rows" in str(done.exception)
    sentences.check(str(done.exception))


def test_keyless_lets_attackers_make_the_same_run(folder, sentences):
    config = config_of("original.npz", {"b2": "b2.npz"}, Beside(keyless=True))
    assert config.safeguards[0].keyless
    assert assumptions(config)[1].startswith("assumed: b2: ")
    sentences.check(*assumptions(config))
    assert any("informed (" in line for line in check_inputs(config))


@pytest.mark.parametrize(
    ("drawn", "wanted"),
    [
        ({"coefficient": [0.7, 0.9], "per": "utterance"}, ("b2r", (0.7, 0.9), "utterance", False)),
        ({"coefficient": 0.6}, ("b2r", (0.6, 0.6), None, True)),
        ({"coefficient": "much"}, (None, None, None, False)),
    ],
)
def test_what_anonymise_wrote_beside_recordings_is_taken_up(recorded, drawn, wanted):
    (recorded / "protected" / METADATA).write_text(json.dumps({"method": "b2r", **drawn}))
    (one,) = config_of("original", {"p": "protected"}).safeguards
    assert (one.method, one.ends, one.per, one.keyless) == wanted
    told = Beside(safeguard="mine {input} {output}")
    (own,) = config_of("original", {"p": "protected"}, told).safeguards
    assert (own.method, own.ends, own.command) == (None, None, "mine {input} {output}")


def test_who_trains_on_other_people_learns_where_the_safeguard_can_be_run(recorded, sentences):
    told = Beside(train="other", safeguard="mine {input} {output} {key}", speakers="folder")
    config = config_of("original", {"p": "protected"}, told)
    assert config.training.audio == recorded / "other"
    assert [one.name for one in config.attackers if one.trains] == ["informed, encoder"]
    alone = config_of("original", {"p": "protected"}, Beside(train="other"))
    assert not [one for one in alone.attackers if one.trains]
    sentences.check(*assumptions(config))


def test_a_sweep_is_a_safeguard_at_each_value_and_measures_what_it_costs(recorded):
    config = config_of("original", {}, Beside(sweep="mcadams=0.6,0.8"))
    assert [(one.name, one.method, one.ends) for one in config.safeguards] == [
        ("mcadams 0.6", SWEPT["mcadams"], (0.6, 0.6)),
        ("mcadams 0.8", SWEPT["mcadams"], (0.8, 0.8)),
    ]
    assert all(one.made and one.given and one.keyless for one in config.safeguards)
    assert config.utility.dnsmos == 1
    named = config_of("original", versions(["0.7"]), Beside(sweep="depth", transcripts="text"))
    assert [one.name for one in named.safeguards] == ["depth 0.7"]
    assert named.utility.transcripts == recorded / "text"


def test_mistakes_are_one_line(recorded, sentences):
    (recorded / "empty").mkdir()
    (recorded / "a.toml").touch()
    for words, named in {
        ("original.npz",): "original.npz: ",
        ("original.npz", "nothing"): "nothing: ",
        ("original.npz", "protected"): "original.npz",
        ("original.npz", "strangers.npz"): "safeguards.strangers",
        ("original", "empty"): "empty",
        ("original", "p=original"): "original: ",
        ("original", "a.toml"): "a.toml",
        ("original", "--sweep", "depth=1"): "--sweep: ",
        ("original", "--sweep", "pitch=high"): "high",
        ("original.npz", "b2.npz", "--sweep", "x"): "--sweep: ",
        ("original.npz", "b2.npz", "-e", "x"): "--encoder: ",
        ("original.npz", "b2.npz", "c=b2-again.npz", "--again", "x=strangers.npz"): "--again: ",
        ("a.toml", "--keyless"): "--keyless: ",
        ("original.npz", "b2.npz", "--train", "x", "--quick"): "--train: ",
        ("original", "protected", "--grammar", "digits"): "--grammar: ",
        ("original", "protected", "-e", "os:listdir"): "--allow-code",
    }.items():
        error = refused(*words)
        assert named in error, words
        assert "\n" not in error
        sentences.check(error)
    assert not (recorded / "unmask-report").exists()


def test_a_quick_look_says_so_everywhere_and_shares_no_number_with_a_whole_run(folder, sentences):
    done = run("original.npz", "b2.npz", "--quick", "--file-copy", "-o", "report")
    assert done.exit_code == 0, done.output
    assert f"warning: {note('quick')}" in done.stdout
    assert "strongest of 6" in done.stdout
    sentences.check(note("quick"))
    results = json.loads((folder / "report" / "results.json").read_text(encoding="utf-8"))
    assert results["conditions"]["run"] == "quick"
    assert "|run:quick|" in results["signature"]
    assert all("|quick:True|" in one["signature"] for one in results["results"])
    assert {one["interval"] and one["level"] for one in results["results"]} == {None, 0.95}
    for name in ("report.html", "filing.html"):
        page = (folder / "report" / name).read_text(encoding="utf-8")
        title = re.search(r"<title>(.*?)</title>", page)[1]
        assert "Quick look" in title
        assert "b2" in title
        assert note("quick").partition(":")[0] in page
        assert "vega" not in page
    assert not list((folder / "report" / "figures").iterdir())
    assert "quick = true" in (folder / "report" / "settings.toml").read_text()
    step = Step("a number", [], {}, lambda: 1)
    whole, quick = Work(folder / "kept"), Work(folder / "kept", quick=True)
    assert [one.run(step) for one in (whole, quick)] == [1, 1]
    assert (whole.reused, quick.reused, quick.computed) == (0, 0, 1)


def test_a_quick_look_takes_an_own_run_and_says_what_it_did_not_try(folder, sentences):
    hidden = {"b2": voices(0.2, 1, means=8)}
    alone, keyless, again = (
        um.assess(voices(0.2), {**hidden, **more}, quick=True, **how)
        for more, how in (
            ({}, {}),
            ({}, {"keyless": True}),
            ({"b2-again": voices(0.2, 2, means=8)}, {}),
        )
    )
    assert alone.attackers == ("original enrolment",)
    assert alone.cards[0].extent == "chance"
    sentences.check(alone.cards[0].verdict)
    for one in (keyless, again):
        assert one.attackers == ("original enrolment", "informed")
        assert "strongest of 10" in str(one)
        assert re.findall(r"\d+", one.cards[0].verdict)[:4] == ["8", "8", "4", "8"]
        sentences.check(one.cards[0].verdict)
    assert "more rows" not in str(keyless)
    assert str(keyless).count("fewer than 30") == 1


def test_a_module_has_back_ends_of_its_own(folder):
    code = "import unmask as um\num.register_backend('of-a-module', um.Cosine)\n"
    (folder / "backends_here.py").write_text(code)
    mine = 'attackers=[{name="mine", backends=["of-a-module"]}]'
    sets = (word for one in ("standard_attackers=false", mine) for word in ("--set", one))
    words = ["assess", "original.npz", "b2.npz", "--quick", *sets, "-o", "r", "--validate"]
    assert "back-end: expected cosine" in str(CliRunner().invoke(app, words).exception)
    assert CliRunner().invoke(app, ["--import", "backends_here", *words]).exit_code == 0
    BACKENDS.pop("of-a-module")


def test_a_sweep_is_in_the_order_of_its_values():
    def swept(*names):
        made = [{"name": name, "embeddings": f"{name}.npz"} for name in names]
        return Config(original={"embeddings": "o.npz"}, safeguards=made).voices

    assert swept("pitch 10", "pitch 2.5", "pitch 9") == ("pitch 2.5", "pitch 9", "pitch 10")
    for others in (("pitch 3", "factor 2"), ("factor 3", "factor x", "factor 1"), ("B2", "A1")):
        assert swept(*others) == others


def test_only_steps_worth_a_line_are_told(monkeypatch, capsys):
    times = iter([0.0, 0.0, 0.2, 0.9])
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    listener = _logged(Terminal(quiet=False))
    for what in ("a", "b", "c"):
        listener(what, 0, 1)
    assert capsys.readouterr().err == "   0.7 s  b\n"


def test_python_takes_the_same_and_writes_where_it_is_told(folder, sentences):
    result = um.assess(voices(0.2), {"b2": voices(1.0, 1)}, quick=True, keyless=True)
    assert not list(folder.glob("*report*"))
    assert document(result) is result.document
    assert len(result.to_polars()) == len(result.estimates)
    page = result.write(folder / "later")
    assert page == folder / "later" / "report.html"
    config = config_of("original.npz", {"b2": "b2.npz"}, changes=FEW)
    kept = um.assess(config, folder / "out")
    assert (folder / "out" / "report.html").is_file()
    assert kept.asked == config
    said = []
    um.assess("original.npz", {"b2": "b2.npz"}, folder / "o", quick=True, say=said.append)
    assert said[0].count("assumed: ") == 2
    with pytest.raises(um.InputError) as error:
        um.assess(config, {"b2": "b2.npz"})
    sentences.check(str(error.value))
