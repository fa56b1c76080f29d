"""What assessments keep: nobody else can read it, and a command lists and removes it."""

from __future__ import annotations

import os
import re
import shutil
import time

import pytest
from tests.helpers.populations import population

from unmask.assessment import kept_assessments
from unmask.assessment.cache import Step, Work
from unmask.assessment.toml import load_config
from unmask.errors import InputError
from unmask.report.assessment import run_assessment as assess
from unmask.report.writing import write_report
from unmask.run import run_on
from unmask.trials import write

CONFIG = """
figures = ["svg"]
frameworks = ["similarity"]
redact = true
intervals = {replicates = 20}
[original]
embeddings = "o.npz"
[[safeguards]]
name = "V"
embeddings = "p.npz"
"""


@pytest.fixture
def folder(tmp_path):
    for seed, name in enumerate("op"):
        made = population(6, 4, noise=1.0, tag="u", seed=seed, dimension=8)
        write(made, tmp_path / f"{name}.npz")
    (tmp_path / "a.toml").write_text(CONFIG)
    return tmp_path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr("unmask.assessment.cache.cache_directory", lambda: tmp_path / "kept")


def made(folder, name, **options):
    config = load_config(folder / "a.toml")
    with run_on(workers=1):
        result = assess(config, folder / name, **options)
    write_report(result, folder / name)
    return result.kept


def modes(folder):
    files = list(folder.rglob("*"))
    return {oct(path.stat().st_mode & 0o777) for path in [folder, *files] if path.is_dir()}, {
        oct(path.stat().st_mode & 0o777) for path in files if path.is_file()
    }


def test_nobody_else_reads_what_is_kept(folder):
    before = os.umask(0o022)
    try:
        kept = made(folder, "out")
        shared = folder / "shared"
        shared.mkdir(mode=0o755)
        inside = made(folder, "other", cache=shared)
        inside.chmod(0o755)
        assert made(folder, "other", cache=shared) == inside
        closed = folder / "closed"
        closed.mkdir(mode=0o700)
        assert made(folder, "third", cache=closed) == closed
        assert (folder / "third" / "report.html").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)
    assert inside == shared / "private"
    assert [path.name for path in shared.iterdir()] == ["private"]
    for one in (kept, inside, closed):
        assert modes(one) == ({"0o700"}, {"0o600"})


def test_a_state_that_others_can_read_holds_private_folders(folder):
    from unmask.engine import cross_pairing

    state = folder / "state"
    state.mkdir(mode=0o755)
    with run_on("local", workers=1, state=state):
        cross_pairing(folder / "o.npz")
    inside = [path for path in state.iterdir() if path.is_dir()]
    assert inside
    for one in inside:
        assert modes(one) == ({"0o700"}, {"0o600"})
        one.chmod(0o755)
    with run_on("local", workers=1, state=state):
        cross_pairing(folder / "o.npz")
    assert all(path.stat().st_mode & 0o077 == 0 for path in state.iterdir())


def test_lists_and_clears(folder, unmask, sentences):
    first, second = made(folder, "one"), made(folder, "two")
    shutil.rmtree(folder / "two")
    old = time.time() - 5 * 24 * 3600
    for path in first.rglob("*"):
        os.utime(path, (old, old))
    lines = unmask("cache", "list").stdout.splitlines()
    assert len(lines) == 2
    assert f"{first}: " in lines[0]
    assert lines[0].endswith(f"{folder / 'one'}")
    sentences.check(lines[0].replace(str(first), "<first>").partition(": ")[2].partition(" ")[2])
    assert lines[1].endswith(f", 0 hours old, of {folder / 'two'}, which is gone")
    assert unmask("cache", "list", "one").stdout.splitlines() == lines[:1]
    for words in ((), ("--gone", "--all"), ("one", "--all")):
        done = unmask("cache", "clear", *words)
        assert done.returncode == 1
        sentences.check(done.stderr.splitlines()[-1])
    sentences.check(unmask("cache", "list", "nowhere").stderr)
    assert unmask("cache", "clear", "--gone").stdout == f"removed {lines[1]}\n"
    assert not second.exists()
    third = made(folder, "three", cache=folder / "mine")
    (third / "precious").write_text("x")
    assert unmask("cache", "clear", "mine").stdout.startswith(f"removed {third.name}: ")
    assert [path.name for path in third.iterdir()] == ["precious"]
    assert unmask("cache", "clear", "one").returncode == 0
    made(folder, "one")
    assert unmask("cache", "clear", "--all").returncode == 0
    assert kept_assessments() == []


def test_what_cannot_be_written_is_known_before_any_work(folder, unmask, monkeypatch, sentences):
    (folder / "a-report").write_text("a file")
    done = unmask("assess", "a.toml")
    sentences.check(done.stderr.splitlines()[-1])
    monkeypatch.setattr("os.access", lambda path, mode: "mine" not in str(path))
    (folder / "mine").mkdir(mode=0o700)
    calls = []
    step = Step("slow", ["x"], {}, lambda: calls.append(1))
    with pytest.raises(InputError) as error:
        Work(folder / "mine").run(step)
    sentences.check(str(error.value))
    assert calls == []


def test_assess_names_the_command(folder, unmask, sentences):
    done = unmask("assess", "a.toml", "-o", "out", "--set", "figures=[]")
    (line,) = [line for line in done.stderr.splitlines() if "cache clear" in line]
    sentences.check(re.sub(r"out-[0-9a-f]+", "<kept>", line))
    (told,) = re.findall(r"to delete them: unmask (cache clear .+)", done.stderr)
    assert unmask(*told.split()).returncode == 0
