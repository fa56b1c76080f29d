from __future__ import annotations

import json

import pytest
from tests.helpers.populations import population
from typer.testing import CliRunner

from unmask.cli import app, main
from unmask.trials import write


@pytest.fixture
def folder(tmp_path):
    for name, noise in (("original", 0.3), ("hidden", 1.5)):
        write(population(8, 4, noise=noise, tag="u", dimension=10), tmp_path / f"{name}.npz")
    return tmp_path


def test_from_a_folder_to_a_report(folder, sentences):
    runner = CliRunner()
    made = runner.invoke(app, ["init", str(folder)])
    assert made.exit_code == 0, made.output
    config = made.output.strip()
    checked = runner.invoke(app, ["assess", config, "--validate"])
    assert checked.output.endswith(f"{config}: fine\n")
    sentences.check(next(line for line in checked.output.splitlines() if "original: " in line))
    options = ["--set", 'frameworks=["similarity"]', "--set", "figures=[]"]
    done = runner.invoke(
        app, ["assess", config, *options, "--set", "intervals.replicates=9", "-o", f"{folder}/out"]
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == f"{folder}/out/report.html"
    assert "DeID" in done.output
    results = json.loads((folder / "out" / "results.json").read_text(encoding="utf-8"))
    assert results["results"][0]["metric"] == "deid"
    again = runner.invoke(app, ["init", str(folder)])
    assert again.exit_code != 0


def test_the_schema_is_printed():
    done = CliRunner().invoke(app, ["assess", "--schema"])
    assert json.loads(done.output)["title"] == "Config"


def test_a_mistake_is_one_line_and_exit_code_1(folder, monkeypatch, capsys):
    (folder / "a.toml").write_text("sead = 1\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["unmask", "assess", str(folder / "a.toml")])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 1
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert "sead: unknown key" in text
