"""The boundary of the command line: whatever goes wrong is one line."""

import os
import signal
import subprocess
import sys
import time

import pytest
import typer

from unmask import cli
from unmask.cli import COMMANDS, app, common, main
from unmask.display import no_formula, one_line, visible


def run(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["unmask", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


@pytest.mark.parametrize("error", [ValueError(), RecursionError("deep\ndeeper"), KeyError("x")])
def test_what_nobody_expected_is_one_line_with_a_hint(monkeypatch, capsys, error):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr("unmask.cli.files.every_format", broken, raising=False)
    monkeypatch.setattr(cli, "app", broken)
    assert run(monkeypatch, "formats") == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"unmask: {type(error).__name__}: ")
    assert "--debug" in lines[0]


def test_debug_shows_where(monkeypatch):
    def broken(*_, **__):
        monkeypatch.setattr(cli, "_debug", True)
        raise KeyError("x")

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(KeyError):
        main()


def test_exit_codes(monkeypatch, capsys, sentences):
    assert run(monkeypatch, "formats") == 0
    assert run(monkeypatch, "formats", "--nope") == 2
    assert run(monkeypatch, "validate", "nowhere") == 1
    sentences.check(capsys.readouterr().err.splitlines()[-1])


def test_escapes_in_names_are_shown_and_not_obeyed(monkeypatch, capsys):
    assert run(monkeypatch, "validate", "no\x1b[2Jwhere\x07") == 1
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert "\x07" not in shown
    common.remark("a\x1b]0;title\x07b")
    assert "\x1b" not in capsys.readouterr().err


def test_text_that_is_only_shown():
    assert visible("a\x01\x1b\u202eb\n") == "a\ufffd\ufffd\ufffdb\n"
    assert one_line("a\n  b\tc") == "a b c"
    assert no_formula("=HYPERLINK()") == "'=HYPERLINK()"
    assert no_formula("speaker") == "speaker"


def unmask(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "unmask", *words],
        capture_output=True, check=False, timeout=60, **options,
    )  # fmt: skip


def test_closed_streams_and_narrow_terminals(tmp_path):
    scores = tmp_path / "s.txt"
    scores.write_text(
        "".join(f"a{i} b{i} {'target' if i % 2 else 'nontarget'} {i}\n" for i in range(40))
    )
    words = ["eval", str(scores), "--ci", "0"]
    plain = unmask(*words, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert plain.returncode == 0
    assert b"EER" in plain.stdout
    command = f"{sys.executable} -m unmask eval {scores} --ci 0"
    # A result that cannot be printed is not lost in silence.
    for closed, code in {"<&-": 0, ">&-": 1, "2>&-": 0, "<&- >&- 2>&-": 1}.items():
        done = subprocess.run(
            ["bash", "-c", f"{command} {closed}"], capture_output=True, check=False, timeout=60
        )
        assert done.returncode == code, closed
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_an_ended_run_says_so_in_one_line(tmp_path, number, code):
    os.mkfifo(tmp_path / "pipe")
    with (
        subprocess.Popen(
            [sys.executable, "-m", "unmask", "validate", str(tmp_path / "pipe")],
            stderr=subprocess.PIPE,
        ) as process,
        open(tmp_path / "pipe", "wb"),
    ):
        time.sleep(0.5)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert len(errors.splitlines()) == 1
    assert b"; run the same command again" in errors


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_finished_command_is_not_ended_by_a_signal_while_python_leaves_memory(tmp_path):
    """With torch loaded that takes seconds, in which Python has no handler of signals any more."""
    script = tmp_path / "late.py"
    script.write_text(
        "import os, signal, sys\n"
        "from unmask.__main__ import main\n"
        "class Last:\n"
        "    def __del__(self, kill=os.kill, number=os.getpid(), signal=signal.SIGINT):\n"
        "        kill(number, signal)\n"
        "last = Last()\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, script, "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("unmask ")
    assert not done.stderr


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (cli.Terminated, 143)])
def test_a_run_that_is_stopped_while_it_loads_loads_no_more(
    monkeypatch, capsys, error, code, sentences
):
    def loading(*_, **__):
        raise error

    monkeypatch.setattr(cli, "app", loading)
    monkeypatch.setitem(sys.modules, "unmask.base", None)
    assert run(monkeypatch, "formats") == code
    sentences.check(capsys.readouterr().err)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_command_says(name):
    command = typer.main.get_command(app).commands[name]
    assert command.loaded().help.splitlines()[0] == COMMANDS[name] == command.help


@pytest.mark.parametrize(("reason", "said"), [("", "nothing was free"), ("4 GB", "4 GB")])
def test_memory_that_ends_is_one_line(monkeypatch, capsys, reason, said):
    def full(*_, **__):
        raise MemoryError(*filter(None, [reason]))

    monkeypatch.setattr(cli, "app", full)
    assert run(monkeypatch, "formats") == 1
    line = f"unmask: memory ended: expected more, or fewer workers ({said})\n"
    assert capsys.readouterr().err == line


def test_a_panic_of_a_library_is_one_line(monkeypatch, capsys, sentences):
    class PanicException(BaseException):
        pass

    def panic(*_, **__):
        raise PanicException("PyObject pointer is null")

    monkeypatch.setattr(cli, "app", panic)
    assert run(monkeypatch, "formats") == 1
    sentences.check(capsys.readouterr().err)


@pytest.mark.parametrize("limited", [False, True])
def test_polars_starts_no_thread_where_memory_is_limited(monkeypatch, limited):
    resource = pytest.importorskip("resource")
    monkeypatch.delenv("_RJEM_MALLOC_CONF", raising=False)
    limits = (1 << 40, 1 << 40) if limited else (resource.RLIM_INFINITY,) * 2
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(cli, "app", lambda **_: 0)
    assert run(monkeypatch, "formats") == 0
    assert ("_RJEM_MALLOC_CONF" in os.environ) == limited
    monkeypatch.delenv("_RJEM_MALLOC_CONF", raising=False)
