"""Nothing that is given is overwritten: all commands, all options that write."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import typer

import unmask as um
from unmask.cli import COMMANDS, app
from unmask.cli.options import flat
from unmask.engine import read_map, save_map
from unmask.run import check_output_folder, is_written_by_unmask, outputs
from unmask.run.files import write_whole

SOURCE = Path(um.__file__).parent / "cli"
OUTPUTS = {
    "demo": {"output"},
    "init": {"output"},
    "assess": {"output", "cache", "state"},
    "eval": {"output", "figures", "state"},
    "compare": {"output", "figures", "state"},
    "score": {"output", "state"},
    "calibrate": {"output", "save", "state"},
    "forensic": {"output", "figures", "page", "state"},
    "fuse": {"output", "save", "state"},
    "privacy": {"output", "figures", "state"},
    "legal": {"output", "figures", "state"},
    "cpmap": {"output", "figures", "cells", "state"},
    "worstcase": {"output", "figures", "state"},
    "utility": {"output", "measurements", "heard", "report", "state"},
    "embed": {"output"},
    "train": {"output", "onnx"},
    "anonymise": {"output"},
    "convert": {"output", "key_out"},
    "trials": {"output"},
}
"""Every option that writes, by command; the others write nothing but the terminal."""
FOLDERS = {"figures", "state", "cache", "heard", "report"}
WRITES = re.compile(
    r"\b((?<!Format )(?<!System )to write|Write |Save |Draw the |Folder for|Checkpoint folder|"
    r"One page to file)"
)


def commands():
    with (SOURCE / "commands.csv").open(encoding="utf-8") as file:
        modules = {row[0]: row[1] for row in csv.reader(file)}
    for name in COMMANDS:
        module = import_module(f"unmask.cli.{modules[name]}")
        function = getattr(module, "evaluate" if name == "eval" else name)
        if not isinstance(function, typer.Typer):
            yield name, flat(function)


@pytest.fixture(scope="module")
def known():
    return dict(commands())


def test_every_option_that_writes_is_known(known):
    assert {name: set(run.outputs) for name, run in known.items() if run.outputs} == OUTPUTS


def test_what_the_help_calls_written_is_an_output(known):
    with (SOURCE / "options.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if WRITES.search(row["help"])]
    written = {(name, option) for name, options in OUTPUTS.items() for option in options}
    shared = {option for _, option in written}
    assert len(rows) > 12
    for row in rows:
        homes = {"eval" if home == "evaluate" else home for home in row["of"].split()}
        for home in homes:
            assert row["option"] in OUTPUTS.get(home, shared), row


CASES = [(name, option) for name, options in OUTPUTS.items() for option in sorted(options)]


def arguments(name: str, option: str, place: Path) -> list[str]:
    """All that a command needs and the option that writes, each the same file or folder."""
    group = typer.main.get_command(app)
    command = group.commands[name].loaded()
    words = [name, "--force"]
    for each in command.params:
        spelled = next((one for one in each.opts if one.startswith("--")), "")
        if each.param_type_name == "argument":
            words += [f"V={place}"] if each.name == "protected" else [str(place)]
        elif each.name == option:
            words += [spelled, str(place)]
        elif each.required:
            words += [spelled, str(place.parent / "new" if each.name == "output" else place)]
    if name == "trials":
        words.append("--balanced")
    return words


@pytest.mark.parametrize(("name", "option"), [one for one in CASES if one[0] != "demo"])
def test_an_output_that_is_an_input_is_always_refused(tmp_path, monkeypatch, unmask, name, option):
    """The same file by its name, by a link, and by a second name of the same inode."""
    folder = option in FOLDERS or (option == "output" and name in ("assess", "train", "anonymise"))
    given = tmp_path / ("given.html" if option == "page" else "given")
    if folder:
        given.mkdir()
        (given / "mine").write_text("mine")
    else:
        given.write_text("mine")
    aliases = [given, tmp_path / f"link{given.suffix}"]
    aliases[1].symlink_to(given)
    if not folder:
        aliases.append(tmp_path / f"second{given.suffix}")
        os.link(given, aliases[2])
    for alias in aliases:
        words = arguments(name, option, given)
        spelled = "given" if option == "output" and name == "convert" else f"--{option}"
        place = words.index(f"--{option.replace('_', '-')}") if spelled != "given" else 2
        words[place + 1] = str(alias)
        done = unmask(*words)
        code, err = done.returncode, done.stderr
        assert code == 1, (words, err)
        assert "is an input" in err, (words, err)
        assert "never overwritten" in err
    assert ((given / "mine") if folder else given).read_text() == "mine"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def scores(folder):
    rng = np.random.default_rng(0)
    with open("scores.txt", "w") as scores, open("trials", "w") as trials:
        for n in range(400):
            own = n % 4 == 0
            names = f"e{n % 10} t{n}"
            scores.write(f"{names} {rng.normal(2 * own):.4f}\n")
            trials.write(f"{names} {'' if own else 'non'}target\n")
    Path("utt2spk").write_text(
        "".join(f"e{n} s{n}\n" for n in range(10))
        + "".join(f"t{n} s{n % 10}\n" for n in range(400))
    )
    return folder


def failed(done):
    return done.returncode, done.stderr


EVAL = ("eval", "scores.txt", "-k", "trials", "--ci", "0", "-q")


def test_reviewed_commands_keep_their_inputs(scores, unmask, sentences):
    before = {path.name: path.read_bytes() for path in scores.iterdir()}
    for words in (
        (*EVAL, "-o", "scores.txt"),
        ("calibrate", "scores.txt", "-k", "trials", "-s", "utt2spk", "-o", "scores.txt"),
        ("calibrate", "scores.txt", "-k", "trials", "--save", "trials"),
        ("trials", "utt2spk", "-o", "utt2spk"),
        ("convert", "scores.txt", "scores.txt"),
        ("convert", "scores.txt", "x.tsv", "-k", "trials", "--key-out", "trials"),
        ("eval", "A=scores.txt", "-k", "trials", "-o", "./scores.txt"),
    ):
        for more in ((), ("--force",)):
            code, err = failed(unmask(*words, *more))
            assert code == 1, words
            assert "is an input" in err, (words, err)
    assert {path.name: path.read_bytes() for path in scores.iterdir()} == before
    # Of files that are read on the way, such as the speakers beside an archive.
    code, err = failed(unmask("trials", "utt2spk", "-o", "scores.txt"))
    assert code == 1
    sentences.check(err)


@pytest.mark.parametrize("ending", ["txt", "json", "csv", "md", "tex"])
def test_results_are_replaced_if_unmask_wrote_them(scores, unmask, ending):
    name = {"txt": "text", "tex": "latex"}.get(ending, ending)
    for _ in range(2):
        assert unmask(*EVAL, "-f", name, "-o", f"x.{ending}").returncode == 0
    Path(f"x.{ending}").write_text("mine")
    assert unmask(*EVAL, "-f", name, "-o", f"x.{ending}").returncode == 1
    assert Path(f"x.{ending}").read_text() == "mine"
    assert unmask(*EVAL, "-f", name, "-o", f"x.{ending}", "--force").returncode == 0


@pytest.mark.parametrize(
    "name", ["x.json", "x.md", "x.tex", "x.csv", "x.html", "x.svg", "x.png", "x.pdf", "x.npz",
             "x.parquet", "map.json", "x.toml"],
)  # fmt: skip
def test_marks_hold_where_the_file_system_keeps_none(scores, unmask, monkeypatch, name, sentences):
    def missing(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", missing, raising=False)
    monkeypatch.setattr(os, "getxattr", missing, raising=False)
    table = um.read_scores("scores.txt", key="trials", speakers="utt2spk")
    kinds = {".json": "json", ".md": "md", ".tex": "latex", ".csv": "csv"}
    path = Path(name)
    for _ in range(2):
        if name == "map.json":
            save_map(um.calibrate(table).map, path)
            assert read_map(path) is not None
        elif path.suffix in kinds:
            assert unmask(*EVAL, "-f", kinds[path.suffix], "-o", name).returncode == 0
        elif path.suffix in (".npz", ".parquet"):
            um.write(table, path)
            assert len(um.read_scores(path)) == 400
        elif path.suffix == ".toml":
            write_whole(path, b"seed = 1\n")
        else:
            pytest.importorskip("vl_convert")
            drawn = um.evaluate(table, replicates=0).figures()
            import_module("unmask.figures.image").save(next(iter(drawn.values())), path)
        assert is_written_by_unmask(path)
    # A list of scores has no room for a mark: the file counts as the user's.
    um.write(table, "y.txt", format="kaldi-scores")
    with pytest.raises(um.InputError) as error:
        um.write(table, "y.txt", format="kaldi-scores")
    sentences.check(str(error.value))
    with um.overwriting():
        um.write(table, "y.txt", format="kaldi-scores")


def test_lists_stay_as_kaldi_reads_them_and_changed_ones_are_the_users(scores, sentences):
    if not hasattr(os, "setxattr"):
        pytest.skip("no attributes of files here")
    table = um.read_scores("scores.txt", key="trials")
    um.write(table, "y.txt", format="kaldi-scores")
    assert [len(line.split()) for line in Path("y.txt").read_text().splitlines()] == [3] * 400
    if not is_written_by_unmask("y.txt"):
        pytest.skip("this file system keeps no attributes")
    um.write(table, "y.txt", format="kaldi-scores")
    with open("y.txt", "a") as file:
        file.write("e0 mine 1.0\n")
    with pytest.raises(um.InputError) as error:
        um.write(table, "y.txt", format="kaldi-scores")
    sentences.check(str(error.value))


def test_python_does_not_write_over_what_it_read(scores):
    table = um.read_scores("scores.txt", key="trials")
    with um.overwriting(), pytest.raises(um.InputError, match="is an input"):
        um.write(table, "scores.txt", format="kaldi-scores")
    np.savez("v.npz", embeddings=np.eye(2), utt_ids=["a", "b"], speaker_ids=["a", "b"])
    with um.overwriting(), pytest.raises(um.InputError, match="is an input"):
        um.write(um.read_embeddings("v.npz"), "v.npz")


def test_folders_of_figures_are_used_again_and_others_refused(scores, unmask, sentences):
    pytest.importorskip("vl_convert")
    drawn = (*EVAL, "--figures", "drawn", "--figure-formats", "svg,png,json,html")
    for _ in range(2):
        assert unmask(*drawn).returncode == 0
    (scores / "drawn" / "notes.txt").write_text("mine")
    code, err = failed(unmask(*drawn))
    assert code == 1
    sentences.check(err)
    assert unmask(*drawn, "--force").returncode == 0
    assert (scores / "drawn" / "notes.txt").read_text() == "mine"
    code, err = failed(unmask(*EVAL, "--figures", "."))
    assert code == 1


def test_states_are_used_again_and_others_refused(scores, unmask):
    (scores / "mine").mkdir()
    (scores / "mine" / "x.txt").write_text("mine")
    code, err = failed(unmask(*EVAL, "--state", "mine"))
    assert code == 1
    assert "mine: holds x.txt" in err
    (scores / "s").mkdir()
    (scores / "s" / "0123456789abcdef").mkdir()
    check = flat(import_module("unmask.cli.eval").evaluate)
    assert "state" in check.outputs
    assert unmask(*EVAL, "--state", "s").returncode == 0


def test_a_folder_of_inputs_and_files_of_unmask_is_fine(tmp_path):
    (tmp_path / "given.npz").write_bytes(b"mine")
    with pytest.raises(um.InputError, match=r"holds given\.npz"):
        check_output_folder(tmp_path)
    with outputs.command_files([str(tmp_path / "given.npz")]):
        check_output_folder(tmp_path)


def test_what_a_command_wrote_it_may_write_again(tmp_path):
    with outputs.command_files([]):
        for _ in range(2):
            write_whole(tmp_path / "x.json", b'{"tool": "unmask"}')
            outputs.remember_input(tmp_path / "x.json")


def test_a_link_to_itself_is_refused(scores, unmask, sentences):
    (scores / "loop").symlink_to(scores / "loop")
    code, err = failed(unmask(*EVAL, "-o", "loop"))
    assert code == 1
    sentences.check(err)
    assert (scores / "loop").is_symlink()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_full_or_closed_output_is_said(scores, sentences):
    command = [sys.executable, "-m", "unmask", *EVAL]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode != 0
    sentences.check(done.stderr.splitlines()[-1])
    closed = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True
    )
    assert closed.returncode == 1
    sentences.check(closed.stderr.splitlines()[-1])


def test_the_ending_of_a_parquet_file_keeps_its_columns(scores):
    um.write(um.read_scores("scores.txt", key="trials"), "x.parquet")
    assert pl.read_parquet_metadata("x.parquet")["tool"] == "written by unmask"
    assert json.loads(json.dumps(pl.read_parquet("x.parquet").columns))[:2] == ["enrol", "test"]


def test_the_demo_takes_its_own_folder_again_and_no_other(tmp_path, monkeypatch, sentences):
    """Also where the file system keeps no marks; data of others stay."""
    from unmask.assessment import demo_config
    from unmask.report import check_report_folder

    def missing(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", missing, raising=False)
    monkeypatch.setattr(os, "getxattr", missing, raising=False)
    for _ in range(2):
        check_report_folder(tmp_path / "demo")
        demo_config(tmp_path / "demo")
    mine = tmp_path / "demo" / "data" / "original.npz"
    mine.write_bytes(b"mine")
    with pytest.raises(um.InputError) as error:
        demo_config(tmp_path / "demo")
    sentences.check(str(error.value))
    assert mine.read_bytes() == b"mine"
