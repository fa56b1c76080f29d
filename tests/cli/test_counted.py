"""``unmask eval --pairs`` and ``--stream`` as a user runs them."""

import json

import numpy as np
import pytest
from tests.helpers.populations import named_speakers

import unmask as um


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    names = {"speaker": "s{}", "utterance": "u{row}", "dtype": np.float32}
    um.write(named_speakers(20, 5, 16, noise=0.8, means=rng, **names), tmp_path / "set.npz")
    lines = [
        f"{rng.normal(2 if i % 9 == 0 else 0):.3f} {'target' if i % 9 == 0 else 'nontarget'}"
        for i in range(500)
    ]
    (tmp_path / "scores").write_text("\n".join(lines) + "\n")
    put_named_scores(tmp_path, rng)
    return tmp_path


def put_named_scores(path, rng):
    """Scores of named trials, by two systems, and their key; one file lacks a trial."""
    speakers = [f"s{i}" for i in range(20)]
    trials = [(a, f"{b}-{i}") for a in speakers for i, b in enumerate(speakers * 2)]
    trials = [trials[i] for i in rng.permutation(len(trials))[:500]]
    key = [f"{a} {b} {'' if b.startswith(a + '-') else 'non'}target" for a, b in trials]
    scores = [[f"{a} {b} {rng.normal():.3f}" for a, b in trials] for _ in range(2)]
    names = sorted({b for _, b in trials})
    files = {
        "named": scores[0],
        "other": scores[1][::-1],
        "fewer": scores[0][:-1],
        "twice": [*scores[0], scores[1][7]],
        "key": key,
        "key twice": [*key, key[3]],
        "utt2spk": [f"{name} {name.split('-')[0]}" for name in names],
    }
    for name, lines in files.items():
        (path / name).write_text("\n".join(lines) + "\n")


def test_cross_paired_embeddings_equal_the_python_api(folder, unmask):
    done = unmask(
        "eval", "--pairs", "all", "set.npz", "-f", "json", "--figures", "drawn",
        "--figure-formats", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    wanted = um.engine.cross_pairing(folder / "set.npz").results[0]
    eer = next(row for row in result["results"] if row["metric"] == "eer")
    assert eer["value"] == wanted["eer"].value
    assert eer["n"] == {"target": 200, "nontarget": 4750, "speakers": 20}
    assert {path.name for path in (folder / "drawn").iterdir()} == {"det.json"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["scores"],
        ["named", "--key", "key"],
        ["named", "other", "--key", "key", "--speakers", "utt2spk"],
        ["fewer", "--key", "key", "--missing", "skip", "--speakers", "pattern:^(s[0-9]+)"],
        ["twice", "--key", "key", "--duplicates", "skip"],
        ["named", "--key", "key twice", "--duplicates", "skip"],
    ],
)
def test_streamed_scores_equal_the_whole_file(unmask, arguments):
    tables = [
        unmask("eval", *arguments, *more) for more in (["--stream", "--ci", "0"], ["--ci", "0"])
    ]
    assert [done.returncode for done in tables] == [0, 0], tables[0].stderr
    rows = [done.stdout.split("\n\n")[0] for done in tables]
    assert rows[0] == rows[1]
    assert "in batches" in tables[0].stderr
    counts = [done.stdout.split("\n\n")[1].split(", trial list")[0] for done in tables]
    assert counts[0] == counts[1]
    assert ("20 speakers" in counts[0]) == ("--speakers" in arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--pairs", "all", "--on", "dask://127.0.0.1", "set.npz"],
        ["--pairs", "all", "--on", "mars", "set.npz"],
        ["--pairs", "all", "--on", "dask://127.0.0.1:1", "set.npz"],
        ["--pairs", "few", "set.npz"],
        ["--pairs", "all", "--by", "sex", "set.npz"],
        ["--pairs", "all", "--key", "scores", "set.npz"],
        ["--stream", "--by", "sex", "scores"],
        ["--stream", "--speakers", "pattern:(.)", "scores"],
        ["--stream", "--key", "absent", "named"],
        ["--pairs", "all", "--missing", "skip", "set.npz"],
        ["--pairs", "all", "--duplicates", "skip", "set.npz"],
        ["--on", "dask", "--stream", "scores"],
        ["--on", "mars", "scores"],
        ["--stream", "scores", "scores"],
        ["--stream", "--key", "key", "--missing", "skip", "named", "fewer"],
        ["--stream", "--key", "key", "fewer"],
        ["--stream", "twice", "--key", "key"],
        ["--pairs", "all", "--backend", "set.npz", "set.npz"],
    ],
)
def test_bad_use_is_one_line(unmask, arguments, sentences):
    done = unmask("eval", *arguments)
    assert done.returncode == 1
    sentences.check(done.stderr.splitlines()[-1])
    assert done.stderr.count("\n") == 1, done.stderr
