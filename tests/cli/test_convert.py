from __future__ import annotations

from pathlib import Path

import numpy as np
import typer
from typer.testing import CliRunner

from unmask.cli.files import convert
from unmask.cli.options import flat
from unmask.errors import InputError
from unmask.trials import read_embeddings, read_scores

app = typer.Typer()
app.command()(flat(convert))
LONG = "enrol\ttest\tlabel\tplda\tcosine\na\tb\t1\t0.5\t1.5\na\tc\t0\t0.25\t2.5\n"


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, result.exception
    return result.stdout


def test_long_table_to_kaldi_and_back(tmp_path: Path) -> None:
    table = tmp_path / "x.tsv"
    table.write_text(LONG)
    out, key = tmp_path / "scores", tmp_path / "trials"
    assert not run(table, out, "--to", "kaldi-scores", "--system", "plda", "--key-out", key)
    assert out.read_text() == "a b 0.5\na c 0.25\n"
    assert key.read_text() == "a b target\na c nontarget\n"
    run(out, tmp_path / "y.parquet", "--key", key)
    assert read_scores(tmp_path / "y.parquet").digest == read_scores(table).digest


def test_text_to_stdout(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text(LONG)
    assert run(tmp_path / "x.tsv", "-", "--to", "voxceleb") == "1 a b\n0 a c\n"


def test_key_to_key(tmp_path: Path) -> None:
    (tmp_path / "k").write_text("1 a b\n0 a c\n")
    run(tmp_path / "k", tmp_path / "trials")
    assert (tmp_path / "trials").read_text() == "a b target\na c nontarget\n"


def test_embeddings(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", embeddings=np.eye(2), utt_ids=list("xy"), speaker_ids=list("ab"))
    run(tmp_path / "x.npz", tmp_path / "y.parquet")
    assert len(read_embeddings(tmp_path / "y.parquet")) == 2


def test_failures_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a b 0.5\n")
    np.savez(tmp_path / "e.npz", embeddings=np.eye(2), utt_ids=list("xy"), speaker_ids=list("ab"))
    for arguments in (
        ["x", "y.tsv", "--key-out", "k"],
        ["x", "y", "--to", "speechbrain"],
        ["x", "y.unknown"],
        ["x", "y", "--to", "unknown"],
        ["e.npz", "y.npz", "--key-out", "k"],
    ):
        paths = [str(tmp_path / a) if i < 2 or a == "k" else a for i, a in enumerate(arguments)]
        result = CliRunner().invoke(app, paths)
        assert isinstance(result.exception, InputError)
        assert result.stdout == ""
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["e.npz", "x"]
