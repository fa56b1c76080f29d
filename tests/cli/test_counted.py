"""``unmask eval --pairs`` and ``--stream`` as a user runs them."""

import json
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import unmask as um
from unmask.cli import main


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def unmask(folder, monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["unmask", *arguments])
        with pytest.raises(SystemExit) as exit:
            main()
        told = capsys.readouterr()
        return Done(exit.value.code or 0, told.out, told.err)

    return run


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    speaker = np.repeat(np.arange(20), 5)
    vectors = rng.normal(size=(20, 16))[speaker] + 0.8 * rng.normal(size=(100, 16))
    np.savez(
        tmp_path / "set.npz",
        embeddings=vectors.astype(np.float32),
        speaker_ids=np.array([f"s{code}" for code in speaker]),
        utt_ids=np.array([f"u{row}" for row in range(100)]),
    )
    lines = [
        f"{rng.normal(2 if i % 9 == 0 else 0):.3f} {'target' if i % 9 == 0 else 'nontarget'}"
        for i in range(500)
    ]
    (tmp_path / "scores").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_cross_paired_embeddings_equal_the_python_api(folder, unmask):
    done = unmask(
        "eval", "--pairs", "all", "set.npz", "-f", "json", "--figures", "drawn",
        "--figure-formats", "svg",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wanted = um.cross_pairing(folder / "set.npz").results[0]
    eer = next(row for row in found["results"] if row["metric"] == "eer")
    assert eer["value"] == wanted["eer"].value
    assert eer["n"] == {"target": 200, "nontarget": 4750, "speakers": 20}
    assert {path.name for path in (folder / "drawn").iterdir()} == {"det.svg", "roc_hull.svg"}


def test_streamed_scores_equal_the_whole_file(unmask):
    tables = [unmask("eval", "scores", *more) for more in (["--stream"], ["--ci", "0"])]
    rows = [done.stdout.split("\n\n")[0] for done in tables]
    assert rows[0] == rows[1]
    assert "in batches" in tables[0].stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--pairs", "all", "--on", "dask://127.0.0.1", "set.npz"],
            "expected local, processes, dask",
        ),
        (["--pairs", "all", "--on", "mars", "set.npz"], "expected local, processes, dask"),
        (["--pairs", "all", "--on", "dask://127.0.0.1:1", "set.npz"], "expected a dask scheduler"),
        (["--pairs", "few", "set.npz"], "expected all or enrolment-fixed, found few"),
        (["--pairs", "all", "--by", "sex", "set.npz"], "--by: needs all scores in memory"),
        (["--stream", "--ci", "10", "scores"], "--ci: needs all scores in memory"),
        (["--pairs", "all", "--key", "scores", "set.npz"], "--key: is for score files"),
        (["--stream", "--speakers", "pattern:(.)", "scores"], "--speakers: needs all scores"),
        (["--on", "dask", "--stream", "scores"], "--on: is not for files that are read in batches"),
        (["--on", "mars", "scores"], "expected local, processes, dask"),
        (["--stream", "scores", "scores"], "expected one score file"),
        (["--pairs", "all", "--backend", "set.npz", "set.npz"], "expected the format"),
    ],
)
def test_bad_use_is_one_line(unmask, arguments, told):
    done = unmask("eval", *arguments)
    assert done.returncode == 1
    assert told in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
