from __future__ import annotations

import json
import os
import shutil
import tomllib

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


@pytest.fixture
def unlabelled(tmp_path):
    """A folder of a score file, and one of the key that it lacks."""
    folder, key = tmp_path / "data", tmp_path / "key"
    folder.mkdir()
    rows = [(f"a{k % 9}", f"b{k}", k % 3 == 0) for k in range(90)]
    scores = [f"{a} {b} {2 * same + (7 * k % 10) / 10}" for k, (a, b, same) in enumerate(rows)]
    (folder / "system.txt").write_text("\n".join(scores))
    key.write_text("\n".join(f"{a} {b} {('non', '')[same]}target" for a, b, same in rows))
    return folder, key


def test_scores_without_labels_are_told_when_a_config_is_begun(unlabelled, unmask):
    folder, key = unlabelled
    done = unmask("init", folder)
    assert done.returncode == 0
    assert done.stderr.strip() == 'no labels in system.txt: write key = "FILE" below its files'
    config = (folder / "assessment.toml").read_text()
    assert tomllib.loads(config)["scores"] == [{"name": "system", "files": ["system.txt"]}]
    assert '# key = "FILE"' in config
    refused = unmask("assess", folder / "assessment.toml", "--validate")
    assert refused.returncode == 1
    assert "key = in the config" in refused.stderr

    shutil.copy(key, folder / "trials")
    done = unmask("init", folder, "--force")
    assert done.stderr.strip() == "no labels in system.txt: taken from trials"
    assert unmask("assess", folder / "assessment.toml", "--validate").returncode == 0

    shutil.copy(key, folder / "trials2")
    done = unmask("init", folder, "--force")
    assert done.stderr.strip().endswith("below its files; found trials, trials2")

    labelled = folder.with_name("labelled")
    labelled.mkdir()
    (labelled / "system.txt").write_text("a x 2.0 target\na y 0.0 nontarget\n")
    assert not unmask("init", labelled).stderr


@pytest.mark.skipif(os.name == "nt", reason="names of files have no line ends there")
def test_line_ends_in_names_of_files_are_no_lines_of_a_config(unlabelled, unmask):
    folder, _ = unlabelled
    (folder / "system.txt").rename(folder / "s\nseed = 5.txt")
    (folder / "k\nseed = 6").write_text("what is this\n")
    assert unmask("init", folder).returncode == 0
    config = tomllib.loads((folder / "assessment.toml").read_text())
    assert config["seed"] == 0


def test_a_check_of_a_redacted_config_says_that_it_shows_real_names(folder, unmask):
    unmask("init", folder)
    plain = unmask("assess", folder / "assessment.toml", "--validate").stdout
    redacted = unmask("assess", folder / "assessment.toml", "--validate", "--redact").stdout
    told = "names in this check are the real ones of files, people and columns"
    assert told not in plain
    assert redacted.count(told) == 1
