from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.helpers.populations import named_speakers
from typer.testing import CliRunner

import unmask as um
from unmask.cli import app
from unmask.errors import InputError
from unmask.trials import read_embeddings, write

QUICK = ["--draws", "2", "--folds", "3", "--ci", "50", "--quiet"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("legal")
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(24, 12))
    gender = {"gender": np.repeat(np.where(centres[:, 0] > 0, "f", "m"), 6)}
    for name, noise in (("original", 0.4), ("informed", 1.5)):
        for side in ("enrol", "test"):
            names = {"speaker": "s{}", "utterance": f"{name}-{side}-{{row}}", "columns": gender}
            made = named_speakers(24, 6, 12, noise=noise, means=centres, draws=rng, **names)
            write(made, folder / f"{name}-{side}.npz")
    return folder


def run(files, *options, attackers=("original", "informed")):
    given = []
    for name in attackers:
        given += ["-a", f"{name}={files}/{name}-enrol.npz,{files}/{name}-test.npz"]
    return CliRunner().invoke(app, ["legal", *given, *QUICK, *options])


def test_json_holds_risk_interval_chance_and_attacker(files):
    result = run(files, "--counts", "5,20", "--lengths", "1,3", "--format", "json")
    assert result.exit_code == 0, result.output
    outcome = json.loads(result.stdout)
    rows = [
        r
        for r in outcome["results"]
        if r["metric"] == "linkability" and r["conditions"]["attacker"] == "informed"
    ]
    assert [(r["conditions"]["L"], r["conditions"]["N"]) for r in rows] == [
        ("1", "5"), ("1", "20"), ("3", "5"), ("3", "20"),
    ]  # fmt: skip
    low, high = rows[0]["interval"]
    assert low <= rows[0]["value"] <= high
    assert rows[0]["chance"] == pytest.approx(0.2)
    assert rows[0]["n"]["attacks"] == 24 * 6
    assert len(outcome["inputs"]) == 4
    assert {"singling_out", "one_minus_eer", "mean_d"} <= {r["metric"] for r in outcome["results"]}


@pytest.mark.parametrize("format", ["text", "csv", "md", "latex"])
def test_every_format(files, format):
    result = run(files, "--counts", "20", "--lengths", "1", "--format", format)
    assert result.exit_code == 0, result.output
    assert "informed" in result.stdout
    assert "anonymous" not in result.stdout.lower()
    if format == "text":
        for word in ("singling_out", "one minus eer", "length 1"):
            assert word not in result.stdout
        lines = result.stdout.splitlines()
        (chance,) = [line.split() for line in lines if line.startswith("chance")][:1]
        assert chance == ["chance", "20", "34.65", "5.00"]


def test_figures_output_and_attributes(files, tmp_path):
    result = run(
        files,
        *("--counts", "5,20", "--lengths", "1", "--attribute", "gender", "--asked", "informed"),
        *("--figures", str(tmp_path / "f"), "--figure-formats", "json"),
        *("-o", str(tmp_path / "out.md"), "--format", "md"),
    )
    assert result.exit_code == 0, result.output
    assert "gender" in (tmp_path / "out.md").read_text()
    drawn = {path.name for path in (tmp_path / "f").iterdir()}
    assert {"legal_panel.json", "rank_histograms.json"} <= drawn


def test_the_config_of_an_assessment(files, tmp_path, sentences):
    path = tmp_path / "assessment.toml"
    path.write_text(
        'standard_attackers = false\n[original]\nembeddings = "original-test.npz"\n'
        '[[safeguards]]\nname = "mixed"\nembeddings = "original-enrol.npz"\nkeyless = true\n'
        '[[attackers]]\nname = "known"\nbackends = ["cosine"]\n'
        '[[attackers]]\nname = "own"\nenrol = "own"\ntrain = ["own"]\n'
        "[legal]\ncounts = [5, 20]\nlengths = [1]\ndraws = 2\nfolds = 3\n"
        'one_minus_eer_enrol = 2\nside = ["gender"]\nmetrics = ["linkability", "one_minus_eer"]\n'
        "attributes = { gender = [] }\n[intervals]\nreplicates = 50\n"
    )
    for name in ("enrol", "test"):
        with np.load(files / f"original-{name}.npz") as outcome:
            named = {**outcome, "utt_ids": [f"u{i}" for i in range(144)]}
        np.savez(tmp_path / f"original-{name}.npz", **named)
    what = ["legal", "--config", str(path), "--asked", "own (wccn)", "-q"]
    result = CliRunner().invoke(app, [*what, "--format", "json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["results"]
    names = {row["conditions"]["attacker"] for row in rows}
    release = {f"within the release ({one})" for one in ("cosine", "wccn", "whitened")}
    asked = {"original", "known (cosine)", "own (cosine)", "own (wccn)", *release}
    within = {f"{name[:-1]} by gender)" for name in asked if name.endswith(")") and "(" in name}
    by_length = {"known (length)", "own (length)", "within the release (length)"}
    assert names == asked | within | by_length
    assert {row["conditions"].get("attribute") for row in rows} == {None, "gender"}
    depth = {r["metric"]: r["params"].get("enrol_L") for r in rows if "N" in r["params"]}
    assert (depth["linkability"], depth["one_minus_eer"]) == ("all", 2)
    assert CliRunner().invoke(app, [*what, "--counts", "5"]).exit_code == 2
    path.write_text(path.read_text().replace("keyless = true", ""))
    said = CliRunner().invoke(app, ["legal", "--config", str(path), "-q"]).stdout.splitlines()
    assert said[-2].startswith("warning: mixed: ")
    sentences.check(said[-2])
    assert said[-1].startswith("warning: not tried: ")
    path.write_text("[legal]\nwhat = 1\n")
    refused = CliRunner().invoke(app, what)
    assert "what: unknown key" in str(refused.exception)


def test_it_ends_with_what_was_not_tried(files, sentences):
    short = ("--metrics", "linkability", "--counts", "20", "--lengths", "1")
    result = run(files, *short, "--backends", "cosine,whitened", "--variants", "plain,centred")
    assert result.exit_code == 0, result.output
    *_, attackers, others = result.stdout.splitlines()
    sentences.check(attackers, others)
    told = json.loads(run(files, *short, "--format", "json").stdout)["warnings"][-1]
    sentences.check(told)
    assert "scores read" not in told


def test_people_who_are_not_enrolled_are_counted(files, tmp_path, sentences):
    for side in ("enrol", "test"):
        voices = read_embeddings(files / f"informed-{side}.npz")
        kept = voices.speakers.to_series().is_in([f"s{i}" for i in range(4, 24)]).to_numpy()
        write(voices.select(kept) if side == "enrol" else voices, tmp_path / f"{side}.npz")
    given = f"a={tmp_path}/enrol.npz,{tmp_path}/test.npz"
    result = CliRunner().invoke(app, ["legal", "-a", given, *QUICK, "--lengths", "1"])
    assert result.exit_code == 0, result.output
    sentences.check(next(line for line in result.stdout.splitlines() if "4 of 24" in line))
    table = json.loads(
        CliRunner()
        .invoke(app, ["legal", "-a", given, *QUICK, "--lengths", "1", "--format", "json"])
        .stdout
    )
    counted = {r["metric"]: r["n"] for r in table["results"]}
    assert counted["linkability"]["speakers"] == 20
    assert counted["linkability"]["not_enrolled"] == 4
    assert counted["singling_out"]["speakers"] == 20


def test_what_attackers_enrol(files):
    what = ("--counts", "20", "--lengths", "1", "--metrics", "linkability", "--format", "json")
    one = f"x={files}/informed-test.npz,{files}/informed-test.npz"
    shared = ["legal", "-a", one, "--allow-shared-utterances", *what, *QUICK]
    text = [json.loads(CliRunner().invoke(app, shared + more).stdout)["warnings"] for more in (
        [], ["--enrols", "x=own"], ["--enrols", "x=attacked"], ["--enrols", "x=original"],
    )]  # fmt: skip
    assert [any("the release itself" in w for w in some) for some in text] == [
        True, False, True, False,
    ]  # fmt: skip
    assert CliRunner().invoke(app, [*shared, "--enrols", "y=own"]).exit_code == 2


def test_another_place_gives_the_same_table(files, tmp_path):
    what = ("--counts", "5,20", "--lengths", "1", "--format", "csv")
    wanted = run(files, *what)
    elsewhere = ("--on", "processes", "--workers", "1", "--state", str(tmp_path))
    result = run(files, *what, *elsewhere)
    assert result.exit_code == 0, result.output
    assert result.stdout == wanted.stdout
    assert len(list(tmp_path.glob("*/results-*.npz"))) == 3 * 3 * 2
    assert run(files, *what, "--state", str(tmp_path)).stdout == wanted.stdout
    for place, text in (("moon", "found moon"), ("cuda", "CUDA"), ("dask://127.0.0.1:1", "dask")):
        refused = run(files, *what, "--on", place)
        assert isinstance(refused.exception, InputError)
        assert text in str(refused.exception)
        assert "\n" not in str(refused.exception)


def test_enrolment_swap_and_variants(files):
    what = ("--counts", "20", "--lengths", "1", "--format", "json")
    usual = json.loads(run(files, *what).stdout)
    assert any(line.startswith("24 speakers: ") for line in usual["warnings"])

    def depth(result):
        return {
            r["metric"]: r["params"].get("enrol_L") for r in result["results"] if "N" in r["params"]
        }

    assert depth(usual)["linkability"] == depth(usual)["one_minus_eer"] == "all"
    assert depth(usual)["singling_out"] == 30
    options = ("--linkability-enrol", "2", "--singling-out-enrol", "all", "--swap")
    asked = json.loads(run(files, *what, *options, "--variants", "plain").stdout)
    assert depth(asked)["linkability"] == depth(asked)["one_minus_eer"] == 2
    assert depth(asked)["singling_out"] == "all"
    metrics = {r["metric"] for r in usual["results"]}
    assert {"linkability_negated", "linkability_centred", "linkability_centred_negated"} <= metrics
    assert "linkability_centred" not in {r["metric"] for r in asked["results"]}


def test_a_backend_is_one_option_away(files):
    train = f"{files}/informed-enrol.npz"
    informed = f"informed={train},{files}/informed-test.npz,{train}"
    what = ["--counts", "20", "--lengths", "1", "--metrics", "linkability", "--format", "csv"]
    backends = ["--backends", "cosine,wccn,plda"]
    result = CliRunner().invoke(app, ["legal", "-a", informed, *backends, *what, *QUICK])
    assert result.exit_code == 0, result.output
    for name in ("informed (cosine)", "informed (wccn)", "informed (plda)"):
        assert name in result.stdout


def test_bad_usage_and_bad_input(files, sentences):
    runner = CliRunner()
    assert runner.invoke(app, ["legal"]).exit_code == 2
    assert runner.invoke(app, ["legal", "-a", "x=only.npz"]).exit_code == 2
    assert run(files, "--counts", "many").exit_code == 2
    assert run(files, "--attribute", "age:old").exit_code == 2
    result = run(files, "--counts", "99")
    assert isinstance(result.exception, InputError)
    sentences.check(str(result.exception))


def test_alignments_and_pairs_from_files(tmp_path):
    """The fourth file is training speech as protected; procrustes and fusion learn from both."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    paths = {}
    for part, prefix in (("known", "s"), ("others", "t")):
        half = np.arange(80) % 4 < 2
        whole = named_speakers(20, 4, 8, noise=0.3, means=rng, speaker=f"{prefix}{{:02}}")
        turned = replace(whole, vectors=whole.vectors @ turn)
        sets = (whole.select(half), turned.select(~half)) if part == "known" else (whole, turned)
        for kind, one in zip(("plain", "turned"), sets, strict=True):
            paths[part, kind] = tmp_path / f"{part}-{kind}.npz"
            write(one, paths[part, kind])
    given = ",".join(str(path) for path in paths.values())
    asked = ["--attacker", f"x={given}", "--backends", "cosine,procrustes,fusion"]
    asked += [
        "--format",
        "json",
        "--metrics",
        "linkability",
        "--counts",
        "20",
        "--lengths",
        "1",
        "--ci",
        "0",
    ]
    result = CliRunner().invoke(app, ["legal", *asked, "--quiet"])
    values = {
        row["conditions"]["attacker"]: row["value"]
        for row in json.loads(result.stdout)["results"]
        if row["metric"] == "linkability"
    }
    assert values["x (procrustes)"] > 0.95
    assert values["x (cosine)"] < 0.5
    assert "x (fusion)" in values


def test_two_encoders_are_refused(files, tmp_path, sentences):
    for path in files.glob("*.npz"):
        encoder = "b" if path.name == "informed-test.npz" else "a"
        made = replace(read_embeddings(path), encoder=f"{encoder}:{encoder * 64}")
        write(made, tmp_path / path.name)
    assert run(tmp_path, attackers=["original"]).exit_code == 0
    refused = run(tmp_path)
    wanted = "test: expected vectors of the encoder of enrolment, a aaaaaaaa, found those of b"
    assert isinstance(refused.exception, InputError)
    assert wanted in str(refused.exception)
    trained = f"x={tmp_path}/original-enrol.npz,{tmp_path}/original-test.npz"
    given = ["legal", "-a", f"{trained},{tmp_path}/informed-test.npz", "--backends", "wccn"]
    refused = CliRunner().invoke(app, [*given, *QUICK])
    sentences.check(str(refused.exception))


def test_a_release_alone_is_linked_within_itself(files):
    path = files / "informed-test.npz"
    options = ("--counts", "20", "--lengths", "1", "--backends", "cosine,wccn", "--format", "json")
    result = CliRunner().invoke(app, ["legal", str(path), *QUICK, *options])
    assert result.exit_code == 0, result.output
    outcome = json.loads(result.stdout)
    release = read_embeddings(path)
    for backend in ("cosine", "wccn"):
        attacker = f"within the release ({backend})"
        sweep = um.assess_attackers(
            {attacker: um.within_release(release, backend)},
            counts=[20], lengths=[1], protocol=um.LegalProtocol(draws=2, folds=3), replicates=50,
        )  # fmt: skip
        for metric in ("linkability", "singling_out", "one_minus_eer"):
            (row,) = [
                r
                for r in outcome["results"]
                if r["metric"] == metric and r["conditions"]["attacker"] == attacker
            ]
            assert row["value"] == sweep[attacker, metric, 1].value[0]
    none = CliRunner().invoke(app, ["legal", *QUICK])
    assert none.exit_code != 0
    assert "expected PROTECTED, --attacker" in none.output
