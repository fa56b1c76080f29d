"""Files are written whole or not at all; what is no plain file is never replaced."""

import os
import stat
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from unmask.errors import InputError
from unmask.run import files, overwriting, workplace
from unmask.run.files import atomic_file, atomic_path, write_whole


def writers():
    def through_file(path, content):
        with atomic_file(path) as file:
            file.write(content)

    def through_path(path, content):
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)

    return [write_whole, through_file, through_path]


@pytest.mark.parametrize("write", writers())
def test_a_pipe_is_written_through_and_stays_a_pipe(tmp_path, write):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write(pipe, b"numbers")
    reader.join(10)
    assert received == [b"numbers"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("write", writers())
def test_a_device_stays_a_device(write):
    write("/dev/null", b"numbers")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("write", writers())
def test_a_link_stays_a_link(tmp_path, write):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "real").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere" / "real")
    with overwriting():
        write(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "real").read_bytes() == b"new"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["elsewhere", "link"]


@pytest.mark.parametrize("write", writers())
@pytest.mark.parametrize("name", ["", ".", "folder"])
def test_a_folder_is_refused_in_one_line(tmp_path, monkeypatch, write, name):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="found a folder"):
        write(name, b"x")


def test_two_writers_never_share_a_temporary_file(tmp_path):
    path = tmp_path / "result"
    contents = [bytes([n]) * 4000 for n in range(4)]
    write_whole(path, contents[0])
    seen = []

    def write(content):
        for _ in range(40):
            write_whole(path, content)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        seen.append(path.read_bytes())
    assert set(seen) <= set(contents)
    assert [p.name for p in tmp_path.iterdir()] == ["result"]


def test_files_get_the_mode_that_the_user_asks_for(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "a", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    assert np.frombuffer((tmp_path / "a").read_bytes(), "u1").tolist() == [120]


def dead(folder):
    """What a killed run leaves: a folder whose lock nobody holds."""
    left = Path(tempfile.mkdtemp(prefix=".unmask-", dir=folder))
    (left / "inside").mkdir()
    (left / "lock").touch()
    (left / ".new.npz").write_bytes(b"half")


def test_what_dead_runs_left_is_cleared_and_what_live_ones_have_is_not(tmp_path):
    with atomic_path(tmp_path / "y") as live:
        live.write_bytes(b"half")
        dead(tmp_path)
        Path(tempfile.mkdtemp(prefix=".unmask-", dir=tmp_path))  # killed before it was locked
        open_to_all = Path(tempfile.mkdtemp(prefix=".unmask-", dir=tmp_path))
        open_to_all.chmod(0o777)
        foreign = tmp_path / ".unmask-data"
        foreign.mkdir()
        files._clear.cache_clear()
        write_whole(tmp_path / "x", b"whole")
        there = {live.parent, open_to_all, foreign, tmp_path / "x"}
        assert set(tmp_path.iterdir()) == there
        assert live.read_bytes() == b"half"
    assert set(tmp_path.iterdir()) == there - {live.parent} | {tmp_path / "y"}


def test_runs_that_clear_at_once_take_nothing_from_each_other(tmp_path):
    def write(number):
        for turn in range(30):
            files._clear.cache_clear()
            write_whole(tmp_path / f"{number}-{turn}", b"whole")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(list(tmp_path.iterdir())) == 120


def test_scratch_folders_are_closed_and_go(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead(tmp_path)
    with files.scratch_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert list(tmp_path.iterdir()) == [folder]
    assert not list(tmp_path.iterdir())


def test_a_long_name_and_an_odd_suffix_can_be_written(tmp_path):
    for name in ("x" * 255, "a." + "y" * 200, "a.ü", "a.b c"):
        write_whole(tmp_path / name, b"x")
        assert (tmp_path / name).read_bytes() == b"x"


def test_state_that_others_could_write_is_not_trusted(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(InputError, match="not trusted"), workplace("k", folder):
        pass
    folder.chmod(0o755)
    with workplace("k", folder) as place:
        assert place == folder


def test_state_that_nobody_came_back_for_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    day = 24 * 3600
    for days, letter in ((8, "a"), (6, "b"), (0, "c")):
        folder = tmp_path / f"unmask-{os.getuid()}-{letter * 16}"
        folder.mkdir(mode=0o700)
        (folder / "lock").touch()
        for path in (folder / "lock", folder):
            os.utime(path, (time.time() - days * day,) * 2)
    with workplace("0123456789abcdef", None):
        pass
    assert sorted(path.name[-1] for path in tmp_path.iterdir()) == ["b", "c"]
