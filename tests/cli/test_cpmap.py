"""``unmask cpmap`` as a user runs it."""

from __future__ import annotations

import json

import jsonschema
import polars as pl
import pytest
from tests.helpers.populations import two_systems
from typer.testing import CliRunner

import unmask as um
from unmask.cli import app


@pytest.fixture
def folder(tmp_path, monkeypatch):
    other, lines, key = two_systems(3, 12, 5, noise=1)
    (tmp_path / "old").write_text("\n".join(lines) + "\n")
    (tmp_path / "new").write_text("\n".join(other[::-1]) + "\n")
    (tmp_path / "trials").write_text("\n".join(key) + "\n")
    (tmp_path / "mine").write_text("\n".join(key[::4]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


FILES = ("cpmap", "old", "new", "-k", "trials", "-s", "pattern:^(s[0-9]+)-", "--grid", "8")


def run(*arguments):
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done


def test_tables_of_maps_configs_and_comparisons(folder):
    done = run(*FILES, "-r", "old", "--ci", 10, "--subset", "mine")
    assert "old → new" in done.stdout
    assert "mine" in done.stdout
    assert "enrolment-fixed" in done.stdout
    said = " ".join(done.stdout.split())
    assert "(10 bootstrap replicates" in said
    assert " 8 x 8 cells" in said


def test_json_equals_the_python_api(folder):
    done = run(
        *FILES, "-r", "old", "-r", "new", "--combine", "rank", "--ci", 10, "-f", "json", "-q"
    )
    result = json.loads(done.stdout)
    jsonschema.validate(result, um.report.json_schema())
    scores = um.Scores.merged(
        *(
            um.read_scores(name, key="trials", speakers="pattern:^(s[0-9]+)-")
            for name in ("old", "new")
        )
    )
    expected = um.cp_maps(scores, references=["old", "new"], combine="rank", grid=8, replicates=10)
    values = {
        (r["conditions"].get("system", ""), r["metric"]): r["value"]
        for r in result["results"]
        if "trials" not in r["conditions"]
    }
    assert values["new", "cp_mean"] == expected.maps["new"].summary().mean
    assert values["", "cp_win"] == expected.deltas[0].win


def test_files_of_cells_figures_and_output(folder):
    run(
        *FILES, "--delta", "new:old", "--metric", "min_dcf", "--ci", 0, "--cells", "cells.csv",
        "--figures", "figures", "--figure-formats", "json", "-o", "table.md", "-f", "md",
    )  # fmt: skip
    cells = pl.read_csv(folder / "cells.csv")
    assert cells.height == 3 * 64
    assert cells["system"].unique().sort().to_list() == ["new", "new → old", "old"]
    assert {"min_dcf", "rcr", "targets", "well_defined"} <= set(cells.columns)
    assert sorted(p.name for p in (folder / "figures").iterdir()) == [
        "cp_map.json",
        "cp_roadmap.json",
        "delta_cp_map.json",
        "trial_bias_1.json",
        "trial_bias_2.json",
    ]
    assert "minDCF" in (folder / "table.md").read_text()


def test_a_tree_of_comparisons_and_both_metrics(folder):
    third = [line.rsplit(" ", 1) for line in (folder / "old").read_text().splitlines()]
    moved = (f"{trial} {float(score) + (i % 3):.4f}" for i, (trial, score) in enumerate(third))
    (folder / "third").write_text("\n".join(moved) + "\n")
    done = run(
        "cpmap", "old", "new", "third", *FILES[3:], "--delta", "old:new", "--delta", "old:third",
        "--metric", "eer", "--metric", "min_dcf", "--ci", 2, "--figures", "figures",
        "--figure-formats", "json", "--cells", "cells.csv", "-f", "json", "-q",
    )  # fmt: skip
    result = json.loads(done.stdout)
    jsonschema.validate(result, um.report.json_schema())
    steps = [
        (r["conditions"]["systems"], r["conditions"]["by"])
        for r in result["results"]
        if r["metric"] == "cp_win"
    ]
    pairs = ("old → new", "old → third")
    assert steps == [(pair, metric) for metric in ("eer", "min_dcf") for pair in pairs]
    assert all(r["interval"] for r in result["results"] if r["metric"].startswith("cp_mean"))
    drawn = {path.stem for path in (folder / "figures").iterdir()}
    assert {"cp_roadmap_eer", "cp_roadmap_min_dcf", "delta_cp_map", "cp_map_eer"} <= drawn
    cells = pl.read_csv(folder / "cells.csv")
    assert set(cells["metric"].unique()) == {"eer", "min_dcf"}
    text = run(
        *("cpmap", "old", "new", *FILES[3:], "--metric", "eer", "--metric", "min_dcf", "--ci", 0)
    )
    assert "min_dcf" in text.stdout


def test_who_orders_is_warned_about(folder, sentences):
    one = run(*FILES, "-r", "old", "--ci", 0)
    sentences.check(*(line for line in one.stdout.splitlines() if line.startswith("warning: ")))
    assert "orders the trials" not in run(*FILES, "--ci", 0).stdout


def test_a_reference_may_be_a_file_of_its_own(folder):
    options = ("-k", "trials", "-s", "pattern:^(s[0-9]+)-", "--grid", "8", "--ci", 0, "-f", "csv")
    by_file = run("cpmap", "old", "-r", "new", *options)
    by_column = run("cpmap", "old", "new", "--system", "old", "-r", "new", *options)
    assert by_file.stdout == by_column.stdout
    assert "hardness:new" in by_file.stdout
    lines = (folder / "new").read_text().splitlines()
    (folder / "short").write_text("\n".join(lines[:-5]) + "\n")
    done = CliRunner().invoke(app, ["cpmap", "old", "-r", "short", *map(str, options)])
    assert isinstance(done.exception, um.InputError)
    assert "5 of the" in str(done.exception)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--grid", "0"),
        ("--reference", "x"),
        ("--delta", "old:x"),
        ("--delta", "old"),
        ("--system", "x"),
    ],
)
def test_bad_requests_are_one_line(folder, arguments, sentences):
    done = CliRunner().invoke(app, [*FILES, *arguments])
    assert isinstance(done.exception, um.InputError)
    sentences.check(str(done.exception))
    assert "\n" not in str(done.exception)


def test_systems_on_different_lists_are_refused_with_counts(folder, sentences):
    for name, first in (("one", 0), ("two", 3)):
        lines = (f"e{i % 9} u{i} {i / 7:.3f} {('target', 'nontarget')[i % 2]}" for i in range(90))
        (folder / name).write_text("\n".join(list(lines)[first:]) + "\n")
    done = CliRunner().invoke(app, ["cpmap", "one", "two"])
    assert isinstance(done.exception, um.InputError)
    sentences.check(str(done.exception))
