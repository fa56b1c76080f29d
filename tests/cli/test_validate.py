from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import typer
from typer.testing import CliRunner

from unmask.cli.files import validate
from unmask.cli.options import flat
from unmask.errors import InputError

app = typer.Typer()
app.command()(flat(validate))


def run(*arguments: object, **options: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], **options)  # type: ignore[arg-type]
    assert result.exit_code == 0, result.exception
    return " ".join(result.stdout.split())


def test_scores_with_key_and_speakers(tmp_path: Path, sentences) -> None:
    (tmp_path / "s").write_text("a-1 a-2 0.5\na-1 b-1 0.5\na-1 b-2 0.25\n")
    (tmp_path / "k").write_text("a-1 b-1 nontarget\na-1 a-2 target\na-1 b-2 nontarget\n")
    text = run(tmp_path / "s", "--key", tmp_path / "k", "--speakers", "pattern:^(.)-")
    assert "kaldi-trials" in text
    sentences.check(re.sub("[0-9a-f]{64}", "<digest>", text))
    assert "speakers 2" in text


def test_skipping_is_told(tmp_path: Path, sentences) -> None:
    (tmp_path / "s").write_text("a b 0.5 1\na b 0.5 1\na c 0.25 0\n")
    text = run(tmp_path / "s", "--duplicates", "skip")
    sentences.check(re.sub("[0-9a-f]{64}", "<digest>", text))
    result = CliRunner().invoke(app, [str(tmp_path / "s")])
    assert isinstance(result.exception, InputError)
    assert result.stdout == ""


def test_key_and_stdin(tmp_path: Path) -> None:
    (tmp_path / "k").write_text("1 a b\n0 a c\n")
    text = run(tmp_path / "k")
    assert "voxceleb: 0|1 enrol test" in text
    assert "speakers not known" in text
    assert "trials 2" in run("-", input="a b target\na c nontarget\n")


def test_ambiguous_with_format(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a b 1\na c 0\n")
    result = CliRunner().invoke(app, [str(tmp_path / "x")])
    assert isinstance(result.exception, InputError)
    assert "kaldi-scores" in run(tmp_path / "x", "--format-in", "kaldi-scores")


def test_embeddings(tmp_path: Path, sentences) -> None:
    path = tmp_path / "x.npz"
    np.savez(
        path,
        embeddings=np.eye(3),
        utt_ids=list("xyz"),
        speaker_ids=list("aab"),
        session=list("ppq"),
    )
    text = run(path)
    sentences.check(re.sub("[0-9a-f]{64}", "<digest>", text))
