"""``unmask eval`` of lists with spoof trials, as a user runs it."""

import json

import numpy as np
import pytest
from tests.engine.test_spoofing import three_classes

WORDS = {1: "target", 0: "nontarget", -1: "spoof"}


@pytest.fixture
def folder(tmp_path):
    scores = three_classes()
    names = [ids.to_series().to_list() for ids in (scores.enrol_speaker, scores.test_speaker)]
    attack = scores.columns["attack"].to_series().to_list()
    head = "enrol,test,enrol_spk,test_spk,attack,label,asv,my-cm"
    rows = [
        f"e{i},t{i},{one},{other},{kind},{WORDS[int(label)]},{asv},{cm}"
        for i, (one, other, kind, label, asv, cm) in enumerate(
            zip(*names, attack, scores.label, *scores.systems.values(), strict=True)
        )
    ]
    (tmp_path / "three.csv").write_text("\n".join([head, *rows]) + "\n")
    two = [row for row in rows if ",spoof," not in row]
    (tmp_path / "two.csv").write_text("\n".join([head, *two]) + "\n")
    gap = [row if i != 7 else row.rpartition(",")[0] + ",nan" for i, row in enumerate(rows)]
    (tmp_path / "gap.csv").write_text("\n".join([head, *gap]) + "\n")
    return tmp_path


def numbers(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_spoof_trials_are_found_and_judged(folder, unmask):
    made = numbers(unmask("eval", "three.csv", "--ci", 20, "-f", "json", "--by", "attack"))
    found = {
        (one["conditions"]["system"], one["conditions"]["group"], one["metric"]): one
        for one in made["results"]
    }
    for metric in ("a_dcf", "sv_eer", "spf_eer", "sasv_eer", "t_eer", "min_t_dcf"):
        for group in ("all", "A01", "A02"):
            one = found["asv", group, metric]
            assert one["interval"][0] <= one["value"] <= one["interval"][1]
            assert one["chance"] in (0.5, 1.0)
            assert one["n"]["spoof"] == (72 if group == "all" else 36)
    assert found["my-cm", "A01", "cm_eer"]["value"] == found["my-cm", "A01", "eer"]["value"]
    assert not any("set aside" in line for line in made["warnings"])
    assert "priors:0.9/0.05/0.05|costs:1/10/20" in found["asv", "all", "a_dcf"]["signature"]


def test_every_format_has_the_spoofing_table(folder, unmask, sentences):
    assert unmask("eval", "two.csv", "--ci", 0).returncode == 0  # its table is known first
    for format in ("text", "csv", "md", "latex"):
        done = unmask("eval", "three.csv", "--ci", 0, "-f", format)
        assert done.returncode == 0
        assert ("a_dcf" if format == "csv" else "a-DCF") in done.stdout
    text = unmask("eval", "three.csv", "--ci", 0).stdout
    assert "72 spoof" in text
    sentences.check(*(line for line in text.splitlines() if line.endswith(".")))


def test_who_does_not_judge_them_says_how_many(folder, unmask, sentences):
    for command in (("eval", "--no-spoof"), ("eval", "--stream", "--ci", "0")):
        done = unmask(command[0], "three.csv", *command[1:], "-f", "json", "-q")
        sentences.check(*(line for line in numbers(done)["warnings"] if "72 spoof trials" in line))
    done = unmask("compare", "three.csv")
    assert done.returncode == 1
    sentences.check(done.stderr.splitlines()[-1])


def test_bona_fide_against_spoof_alone_is_a_countermeasure(folder, unmask):
    lines = (folder / "three.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines]
    alone = [
        ",".join([*row[:4], {"spoof": "spoof", "label": "label"}.get(row[5], "bonafide"), row[7]])
        for row in rows
    ]
    (folder / "alone.csv").write_text("\n".join(alone).replace("my-cm", "score") + "\n")
    for replicates in (0, 20):
        made, whole = (
            numbers(unmask("eval", name, "--ci", replicates, "-f", "json", "-q"))["results"]
            for name in ("alone.csv", "three.csv")
        )
        want = next(one for one in whole if one["metric"] == "cm_eer")
        assert [made[0]["metric"], made[0]["value"]] == ["cm_eer", want["value"]]
        assert made[0]["interval"] == want["interval"]
        assert made[0]["n"]["spoof"] == 72
    done = unmask("eval", "alone.csv", "--ci", 0, "--figures", "drawn", "--figure-formats", "json")
    assert done.returncode == 0, done.stderr


def test_costs_roles_and_conventions(folder, unmask):
    def value(*options, metric="a_dcf", system="asv"):
        made = numbers(unmask("eval", "three.csv", "--ci", 0, "-f", "json", "-q", *options))
        rows = (one for one in made["results"] if one["conditions"]["system"] == system)
        return next(one for one in rows if one["metric"] == metric)

    usual = value()["value"]
    assert value("--a-dcf", "0.9,0.05,0.05,1,10,20")["value"] == usual
    assert value("--a-dcf", "0.5,0.25,0.25,1,1,1")["value"] != usual
    assert value("--role", "asv", system="my-cm")["value"] > 0
    assert value("--role", "asv=cm", "--role", "my-cm=asv", metric="cm_eer")["value"] > 0
    by = {name: value("--convention", name, metric="min_t_dcf")["params"]
          for name in ("asvspoof2019", "asvspoof5")}  # fmt: skip
    assert [by["asvspoof2019"][name] for name in ("form", "asv")] == ["2019", "asvspoof"]
    assert [by["asvspoof5"][name] for name in ("form", "asv")] == ["2020", "organisers"]
    assert value("--t-dcf", "0.9,0.05,0.05,1,10,10", metric="min_t_dcf")["params"]["form"] == "2020"


@pytest.mark.parametrize(
    "arguments",
    [
        ("two.csv", "--spoof"),
        ("two.csv", "--role", "cm"),
        ("gap.csv",),
        ("three.csv", "--system", "asv", "--t-dcf", "0.9,0.05,0.05,1,10,10"),
        ("three.csv", "--role", "pad"),
        ("three.csv", "--role", "x=cm"),
        ("three.csv", "--a-dcf", "1,2"),
        ("three.csv", "--a-dcf", "a"),
        ("three.csv", "--convention", "asvspoof5", "--a-dcf", "0.9,0.05,0.05,1,10,20"),
        ("three.csv", "--spoof", "--stream"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(folder, unmask, arguments, sentences):
    before = sorted(folder.iterdir())
    done = unmask("eval", *arguments, "--ci", 0, "-o", "made.json")
    assert done.returncode == 1
    sentences.check(done.stderr.splitlines()[-1])
    assert len(done.stderr.strip().splitlines()) == 1
    assert not done.stdout
    assert sorted(folder.iterdir()) == before


def test_track_1_of_asvspoof_5_has_a_score_and_a_label_for_each_file(folder, unmask):
    rng = np.random.default_rng(0)
    names = [f"E_{k:03d}" for k in range(90)]
    kinds = ["bonafide" if k % 3 else "spoof" for k in range(90)]
    rows = [f"{n}\t{rng.normal(2 * (k == 'bonafide'))}" for n, k in zip(names, kinds, strict=True)]
    (folder / "t1.tsv").write_text("\n".join(["filename\tcm-score", *rows]))
    key = [f"{name}\t{kind}" for name, kind in zip(names, kinds, strict=True)]
    (folder / "key.tsv").write_text("\n".join(["filename\tcm-label", *reversed(key)]))
    words = ("eval", "t1.tsv", "--key", "key.tsv", "--convention", "asvspoof5")
    made = numbers(unmask(*words, "--ci", 20, "-f", "json", "-q"))
    found = {one["metric"]: one for one in made["results"]}
    assert found["cm_eer"]["n"]["spoof"] == 30
    assert (
        found["min_dcf"]["params"] | {"p_target": 0.95, "c_miss": 1.0, "c_fa": 10.0}
        == (found["min_dcf"]["params"])
    )
    assert found["act_dcf"]["threshold"] == pytest.approx(np.log(10 * 0.05 / 0.95))
    text = unmask(*words, "--ci", 0).stdout
    assert "C_miss 1 and C_fa 10" in " ".join(text.split())


def test_charts_of_spoofs(folder, unmask):
    done = unmask("eval", "three.csv", "--ci", 0, "--figures", "drawn", "--figure-formats", "json")
    assert done.returncode == 0, done.stderr
    drawn = {path.stem: json.loads(path.read_text()) for path in (folder / "drawn").iterdir()}
    assert {"det_spoof", "a_dcf", "t_eer_path", "det", "score_histograms"} <= set(drawn)
    made = numbers(unmask("eval", "three.csv", "--ci", 0, "-f", "json", "-q"))
    values = {one["metric"]: one["value"] for one in made["results"][:6]}
    rows = [row for data in drawn["a_dcf"]["datasets"].values() for row in data]
    costs = [row["cost"] for row in rows if row.get("part") == "a-DCF"]
    assert min(costs) == pytest.approx(values["a_dcf"], abs=1e-5)
    rows = [row for data in drawn["t_eer_path"]["datasets"].values() for row in data]
    dot = next(row for row in rows if "error" in row and "share" not in row)
    assert dot["error"] == pytest.approx(values["t_eer"], abs=1e-5)
    near = [abs(row["error"] - dot["error"]) for row in rows
            if row.get("share") and row["error"] and row["score"] == dot["score"]]  # fmt: skip
    assert np.max(near) < 0.03


def test_a_countermeasure_without_spoofs_is_told(folder, unmask, sentences):
    for more in (("--no-spoof",), ("--stream", "--ci", "0")):
        notes = numbers(unmask("eval", "three.csv", *more, "-f", "json", "-q"))["notes"]
        (told,) = (note for note in notes if note.endswith(": my-cm."))
        sentences.check(told)
    assert "without spoofs" not in unmask("eval", "three.csv", "--ci", "0").stdout
