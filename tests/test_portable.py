"""Systems without ``/proc``, ``fcntl``, ``resource``, users or groups of processes: nothing that
Linux alone has is needed. Simulated here; the workflows run the core on macOS and Windows.
"""

import builtins
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.helpers.populations import named_speakers

from unmask.cli import _memory_is_limited
from unmask.errors import InputError
from unmask.run import executors, files
from unmask.trials import write

# threadpoolctl asks for the maps where there is Linux, and for something else elsewhere.
WITHOUT = """
import builtins, io, os, signal, sys
for name in ("fcntl", "resource", "pwd", "grp"):
    sys.modules[name] = None
for home, names in ((os, "getuid geteuid sysconf killpg"),
                    (signal, "siginterrupt pthread_sigmask SIGHUP")):
    for name in names.split():
        delattr(home, name)
plain = io.open
def opened(name, *words, **options):
    if str(name).startswith(("/proc", "/sys")) and str(name) != "/proc/self/maps":
        raise FileNotFoundError(2, "no such file", str(name))
    return plain(name, *words, **options)
builtins.open = io.open = opened
"""


@pytest.fixture
def bare(monkeypatch):
    """No ``/proc`` and ``/sys``, no locks, no limits, no users."""
    plain = io.open

    def opened(name, *words, **options):
        if str(name).startswith(("/proc", "/sys")):
            raise FileNotFoundError(2, "no such file", str(name))
        return plain(name, *words, **options)

    monkeypatch.setattr(builtins, "open", opened)
    monkeypatch.setattr(io, "open", opened)
    for module in ("fcntl", "resource"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(files, "_USERS", False)
    for name in ("getuid", "sysconf", "sched_getaffinity"):
        monkeypatch.delattr(os, name)


@pytest.mark.usefixtures("bare")
def test_memory_is_taken_to_be_plenty_where_nobody_tells():
    assert files.memory_left() == 1 << 62
    files.check_memory(1 << 40, "file", "rows")


@pytest.mark.usefixtures("bare")
def test_memory_is_not_limited_where_limits_are_unknown():
    assert not _memory_is_limited()


@pytest.mark.usefixtures("bare")
def test_processors_are_counted_where_nobody_says_which_may_be_used():
    assert executors.available(None) == os.cpu_count()


@pytest.mark.usefixtures("bare")
def test_what_running_processes_made_stays_where_no_lock_tells(tmp_path):
    with files.atomic_path(tmp_path / "one") as mine:
        mine.write_bytes(b"half")
        files._clear.cache_clear()
        files.write_whole(tmp_path / "other", b"whole")
        assert mine.read_bytes() == b"half"
    assert {path.name for path in tmp_path.iterdir()} == {"one", "other"}


@pytest.mark.usefixtures("bare")
def test_folders_are_used_without_locks_and_modes(tmp_path):
    tmp_path.chmod(0o777)
    assert files.is_own(tmp_path)
    assert files.private_folder(tmp_path) == tmp_path
    with files.locked(tmp_path), files.locked(tmp_path):
        files.write_whole(tmp_path / "file", b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert files._kept("key") == "unmask-user-key"


def test_a_lock_that_the_system_lacks_is_none(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with open(tmp_path / "lock", "w") as one, open(tmp_path / "lock", "w") as other:
        assert files.lock(one.fileno()) is None
        assert files.lock(other.fileno()) is None


def test_a_command_is_ended_where_there_are_no_groups_of_processes(monkeypatch):
    from unmask.speech.safeguards import run_command

    monkeypatch.delattr(os, "killpg", raising=False)
    began = time.monotonic()
    command = f'"{sys.executable}" -c "import time; time.sleep(60)"'
    with pytest.raises(InputError, match="timed out"):
        run_command("voice.wav", command, {"{input}": "x"}, 0.5)
    assert time.monotonic() - began < 30


def test_interrupts_are_left_alone_where_they_cannot_be_blocked(monkeypatch):
    monkeypatch.delattr(signal, "pthread_sigmask", raising=False)
    with executors._interrupts_blocked():
        pass


def test_a_command_runs_without_what_linux_alone_has(tmp_path):
    write(named_speakers(6, 5, 4, noise=0.5, means=0), tmp_path / "o.npz")
    program = WITHOUT + (
        "from unmask.cli import main\n"
        "sys.argv = 'unmask eval --pairs all o.npz --ci 20 --state kept -o table'.split()\n"
        "main()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "EER" in Path(tmp_path / "table").read_text(encoding="utf-8")
