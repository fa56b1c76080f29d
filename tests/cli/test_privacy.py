"""``unmask privacy`` as a user runs it."""

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from tests.helpers.populations import speakers_with_noise
from typer.testing import CliRunner

import unmask as um
from unmask.cli import app
from unmask.scoring import Cosine

SPEAKERS, EACH = 8, 5


def run(*arguments):
    return CliRunner().invoke(app, ["privacy", *map(str, arguments)], catch_exceptions=True)


def fails(*arguments):
    done = run(*arguments)
    assert isinstance(done.exception, um.InputError), done.output
    return str(done.exception)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    vectors, codes = speakers_with_noise(SPEAKERS, EACH, 6, noise=0.3, means=rng)
    noise = [vectors + rng.normal(size=vectors.shape) for _ in range(2)]
    for name, rows in (("o", vectors), ("p", noise[0]), ("again", noise[1]), ("q", -vectors)):
        np.savez(
            tmp_path / f"{name}.npz",
            embeddings=rows,
            utt_ids=[f"u{i}" for i in range(codes.size)],
            speaker_ids=[f"s{c}" for c in codes],
            gender=["f" if c % 2 else "m" for c in codes],
            session=[str(i % 2) for i in range(codes.size)],
        )
    o, p = Cosine().sides(vectors).enrol, Cosine().sides(noise[0]).enrol
    sets = {"oo": o @ o.T, "op": o @ p.T, "pp": p @ p.T}
    np.savez(tmp_path / "m.npz", spk=[f"s{c}" for c in codes], **sets)
    for name, scores in sets.items():
        lines = [
            f"s{codes[k]}-u{k} s{codes[m]}-u{m} {scores[k, m]:.17g}"
            for k in range(codes.size)
            for m in range(codes.size)
        ]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_table_of_two_safeguards(folder, sentences):
    done = run(
        "--original", "o.npz", "--protected", "noise=p.npz", "--protected", "turned=q.npz",
        "--again", "noise=again.npz", "--ci", 50, "--quiet",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    pairs = ("D_ECE, pairs [bit]", "C_ECE, pairs [bit]", "l_w, pairs", "Tag, pairs")
    for heading in ("DeID [%]", "G_VD [dB]", *pairs):
        assert heading in done.stdout
    sentences.check(next(x for x in done.stdout.splitlines() if "turned: OP, utterance pairs" in x))
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert any(row.startswith("turned cosine ") for row in rows)
    assert any(row.startswith("turned strongest of 10: ") for row in rows)
    assert done.stdout.count(" 8 speakers: ") == 1
    assert "each calibrated anew" in " ".join(done.stdout.split())


def test_a_known_column_lets_alignments_be_fitted_within_its_groups(folder, sentences):
    given = ("--original", "o.npz", "--protected", "a=p.npz", "--ci", 0, "--quiet")
    done = run(*given, "--side", "gender", "--format", "json", "--details")
    assert done.exit_code == 0, done.output
    names = {row["metric"] for row in json.loads(done.stdout)["results"]}
    assert {"deid_whitened_by_gender", "deid_wasserstein_by_gender"} < names
    refused = run(*given, "--side", "age")
    sentences.check(str(refused.exception))


def test_json_equals_the_python_api(folder):
    given = ("--original", "o.npz", "--protected", "a=p.npz", "--ci", 50, "--seed", 3)
    done = run(*given, "-f", "json", "-q")
    result = json.loads(done.stdout)
    jsonschema.validate(result, um.report.json_schema())
    sets = um.read_embeddings("o.npz"), um.read_embeddings("p.npz")
    rivals = {name: um.Attacker(*sets, name) for name in ("whitened", "wasserstein", "length")}
    expected = um.pseudonymisation(*sets, attackers=rivals, replicates=50, seed=3)
    (most, _), (least, _) = expected.most_evidence, expected.fewest_errors
    strongest = {
        "deid_strongest": expected.attacker,
        **dict.fromkeys(("d_ece_strongest", "l_w_strongest", "tag_strongest"), most),
        "eer_strongest": least,
    }
    by_name = {r["metric"]: r for r in result["results"] if r["conditions"]["system"] == "a"}
    anew = by_name.pop("g_vd_retrained")
    assert anew["conditions"]["attacker"] == "wccn retrained on protected speech"
    for metric, row in by_name.items():
        best = f"strongest of 10: {expected.named(strongest.get(metric, 'plain'))}"
        attacker = best if metric in strongest else "cosine"
        named = {"system": "a", "attacker": attacker, "trials": "utterance pairs"}
        assert row["conditions"] == named
    assert by_name["deid"]["value"] == expected.deid
    interval = expected.interval("deid")
    assert by_name["deid"]["interval"] == [interval.low, interval.high]
    assert by_name["tag"]["value"] == expected.sets["op"].zebra.tag
    assert [entry["name"] for entry in result["inputs"]] == ["o.npz", "p.npz"]


def test_matrices_lists_and_embeddings_agree(folder):
    ways = (
        ("--original", "o.npz", "--protected", "a=p.npz"),
        ("--matrices", "a=m.npz"),
        ("--scores", "a=oo,op,pp", "--speakers", "pattern:^(s[0-9]+)-"),
    )
    values = []
    for way in ways:
        done = run(*way, "-f", "json", "-q", "--details", "--ci", 20)
        assert done.exit_code == 0, done.output
        results = json.loads(done.stdout)["results"]
        values.append({r["metric"]: r["value"] for r in results if r["metric"] != "tag"})
    embedded, *given = values
    assert given[0] == pytest.approx(given[1], abs=1e-9)
    fitted = ("strongest", "centred", "whitened", "wasserstein", "length", "retrained")
    own, shared = (
        {metric: value for metric, value in one.items() if not any(f in metric for f in fitted)}
        for one in (embedded, given[0])
    )
    assert own == pytest.approx(shared, abs=1e-9)


def test_it_ends_with_what_was_not_tried(folder, sentences):
    def last(*args):
        done = run(*args, "-q", "--ci", 0)
        assert done.exit_code == 0, done.output
        told = json.loads(run(*args, "-q", "--ci", 0, "-f", "json").stdout)["warnings"][-1]
        line = [one for one in done.stdout.splitlines() if "not tried" in one][-1]
        assert line == done.stdout.splitlines()[-1] == f"warning: {told}"
        return line

    voices = ("--original", "o.npz", "--protected", "a=p.npz")
    line = last(*voices)
    assert "whitened" not in line
    assert "wasserstein" not in line
    sentences.check(line)
    line = last(*voices, "--backend", "wccn", "--train", "o.npz")
    sentences.check(line)
    assert "wccn" not in line
    sentences.check(last("--matrices", "a=m.npz"))


def test_names_of_numbers_tell_what_is_compared(folder):
    lists = ("--scores", "a=oo,op,pp", "--speakers", "pattern:^(s[0-9]+)-")
    done = run(*lists, "-q", "--ci", 0)
    assert "D_ECE, both sides [bit]" in done.stdout
    assert "given scores" in done.stdout
    rows = json.loads(run(*lists, "-q", "--ci", 0, "-f", "json").stdout)["results"]
    assert {row["conditions"]["trials"] for row in rows} == {"trials of people on both sides"}
    assert "D_ECE, pairs" in run("--matrices", "a=m.npz", "-q", "--ci", 0).stdout


def test_sets_sessions_and_details(folder):
    done = run(
        "--original", "o.npz", "--protected", "a=p.npz", "--by", "gender", "--sessions",
        "--details", "-f", "csv", "-q", "--ci", 20,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("set,system,attacker,trials,at,group,people,groups,metric,value")
    every = ("g_vd_within", "unlinkability_between", "deid_min_cllr")
    plain = [f"a,cosine,utterance pairs,,,,,{metric}" for metric in every]
    for text in (f"f,{plain[0]}", f"m,{plain[1]}", f"f,{plain[2]}", "m,original,cosine"):
        assert any(line.startswith(text) for line in lines), text


def test_trained_back_ends(folder):
    args = ("--original", "o.npz", "--protected", "a=p.npz", "-f", "json", "-q", "--ci", 0)
    plda = um.Plda.fit(um.read_embeddings("o.npz"))
    plda.save("plda.npz")
    trained = run(*args, "--backend", "plda", "--train", "o.npz")
    saved = run(*args, "--backend", "plda.npz")
    assert json.loads(trained.stdout)["results"] == json.loads(saved.stdout)["results"]
    assert run(*args, "--backend", "wccn", "--train", "o.npz").exit_code == 0
    assert "--train" in fails(*args, "--backend", "plda")


def test_figures_are_written(folder):
    done = run(
        "--original", "o.npz", "--protected", "a=p.npz", "--again", "a=again.npz",
        "--figures", "figures", "--figure-formats", "json", "-q", "--ci", 20, "-o", "t.md",
        "-f", "md",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    names = {path.stem for path in (folder / "figures").iterdir()}
    assert names == {
        "g_vd_deid",
        "similarity_matrices",
        "zebra_profiles",
        "speaker_protection",
        "zoo_original",
        "zoo_a",
        "calibration_distortion_a",
    }
    assert (folder / "t.md").read_text().startswith("| system | attacker | DeID [%] |")


def test_bad_options_are_told_in_one_line(folder, sentences):
    assert "--original with --protected" in fails()
    sentences.check(fails("--original", "o.npz"))
    both = ("--original", "o.npz", "--protected", "a=p.npz")
    assert "NAME=FILE" in fails("--original", "o.npz", "--protected", "p.npz")
    assert "found a twice" in fails(*both, "--protected", "a=q.npz")
    assert "no first run" in fails(*both, "--again", "b=q.npz")
    sentences.check(fails(*both, "--by", "age"))
    assert "expected three files" in fails("--scores", "a=oo,op")
    assert "need embeddings" in fails("--matrices", "a=m.npz", "--by", "gender")
    assert "need embeddings" in fails("--matrices", "a=m.npz", "--backend", "plda")
    assert "--again needs" in fails("--matrices", "a=m.npz", "--again", "a=m.npz")
    assert "no first run" in fails(
        "--scores", "a=oo,op,pp", "--again", "b=op", "--speakers", "pattern:^(s[0-9]+)-"
    )
    np.savez("bad.npz", oo=np.eye(3))
    sentences.check(fails("--matrices", "a=bad.npz"))
    np.savez("bad.npz", oo=np.eye(3), op=np.eye(3), pp=np.eye(4), spk=[1, 1, 2])
    assert "a: speaker 2 has 1 segment" in fails("--matrices", "a=bad.npz")
    (folder / "text.npz").write_text("no archive")
    sentences.check(fails("--matrices", "a=text.npz"))


def test_pairs_compared_elsewhere_give_the_same_table(folder):
    ways = (
        ("--original", "o.npz", "--protected", "a=p.npz", "--sessions", "--by", "gender"),
        ("--matrices", "a=m.npz"),
    )
    asked = ("-f", "json", "-q", "--details", "--ci", 20)
    for way in ways:
        here = run(*way, *asked)
        kept = run(*way, *asked, "--state", "state", "--workers", 2)
        again = run(*way, *asked, "--state", "state")
        assert here.exit_code == kept.exit_code == again.exit_code == 0, kept.output
        assert here.stdout == kept.stdout == again.stdout
    done = run(*ways[1], *asked, "--on", "processes", "--workers", 1)
    assert done.stdout == here.stdout


def test_places_are_refused_before_anything_is_read(folder, sentences):
    missing = ("--original", "no.npz", "--protected", "a=no.npz")
    sentences.check(fails(*missing, "--on", "moon"))
    assert "no CUDA device" in fails(*missing, "--on", "cuda")
    text = fails(*missing, "--on", "dask://localhost:1", "--workers", 2)
    assert text.startswith("workers: ")
    sentences.check(text)
    lists = ("--scores", "a=no,no,no")
    for option in (("--on", "processes"), ("--workers", 2), ("--state", "here")):
        text = fails(*lists, *option)
        assert text.startswith(f"{option[0]}: ")
        sentences.check(text)
    nobody = ("--original", "o.npz", "--protected", "a=p.npz", "--on", "dask://localhost:1")
    text = fails(*nobody)
    sentences.check(text.partition(" (")[0])
    assert "\n" not in text


def test_two_encoders_are_refused(folder):
    for name, encoder in (("o", "a"), ("p", "a"), ("again", "b"), ("q", "b")):
        made = um.read_embeddings(folder / f"{name}.npz")
        made = replace(made, encoder=f"{encoder}:{encoder * 64}", source=None)
        with um.overwriting():
            um.trials.write(made, folder / f"{name}.npz")
    given = ("--original", "o.npz", "--ci", 5, "--quiet")
    wanted = (
        "expected vectors of the encoder of the original, a aaaaaaaa, found those of b bbbbbbbb"
    )
    for more in (
        ("--protected", "V=q.npz"),
        ("--protected", "V=p.npz", "--again", "V=again.npz"),
        ("--protected", "V=p.npz", "--backend", "wccn", "--train", "q.npz"),
    ):
        assert wanted in fails(*given, *more)
    assert run(*given, "--protected", "V=p.npz").exit_code == 0
