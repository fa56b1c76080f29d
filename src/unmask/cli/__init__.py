"""The command line: thin files, loaded when called; everything is possible from Python as well."""

from __future__ import annotations

import csv
import errno
import io
import os
import re
import signal
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from unmask._extras import report_extra
from unmask._version import __version__
from unmask.errors import InputError

_ROWS: Final = csv.reader(
    Path(__file__).with_name("commands.csv").read_text(encoding="utf-8").splitlines()
)
_TABLE: Final = {name: (module, sentence, *lines) for name, module, sentence, *lines in _ROWS}
COMMANDS: Final = {name: row[1] for name, row in _TABLE.items()}
"""What there is, in the order of the help; the module is loaded when called."""
EXAMPLES: Final = {name: row[2:] for name, row in _TABLE.items()}
_PANELS: Final = {
    "What is read": "key speakers system by missing duplicates format_in columns scores_are",
    "Intervals": "ci level seed",
    "Where it runs": "on workers state",
    "What is written": "format output figures figure_formats width bare font force quiet",
}
_PANEL_OF: Final = {name: panel for panel, names in _PANELS.items() for name in names.split()}
_ORDER: Final = {name: place for place, name in enumerate(_PANEL_OF, 1)}


class Deferred(TyperCommand):
    """A command that is known by name and sentence until somebody calls it."""

    def loaded(self) -> Any:
        """The function of the same name, or the group of commands."""
        from unmask.cli.options import flat

        module = import_module(f"unmask.cli.{_TABLE[str(self.name)][0]}")
        if hasattr(signal, "siginterrupt"):
            # A library restarts what Ctrl-C interrupts: a read that waits would wait on.
            signal.siginterrupt(signal.SIGINT, True)
        command = getattr(module, "evaluate" if self.name == "eval" else str(self.name))
        if isinstance(command, typer.Typer):
            several: Any = typer.main.get_command(command)
            for one in (several, *several.commands.values()):
                one.get_params = partial(_without_types_of_flags, one.get_params)
            return several
        alone = typer.Typer(add_completion=False, context_settings=app.info.context_settings)
        shown = EXAMPLES[str(self.name)]
        epilog = "\n\n".join(["Examples:", *(f"  {line}" for line in shown)]) if shown else None
        sentence = command.__doc__ or COMMANDS[str(self.name)]
        alone.command(self.name, help=sentence, epilog=epilog)(flat(command))
        made: Any = typer.main.get_command(alone)
        made.params.sort(key=lambda each: _ORDER.get(str(each.name), 0))
        drawn = any(each.name == "ci" for each in made.params)
        for option in made.params:
            if isinstance(option, TyperOption) and (drawn or option.name != "seed"):
                option.rich_help_panel = _PANEL_OF.get(str(option.name))
        made.get_params = partial(_without_types_of_flags, made.get_params)
        return made

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        return self.loaded().make_context(info_name, args, parent, **extra)


def _without_types_of_flags(params: Callable[[Any], list[Any]], context: Any) -> list[Any]:
    """The parameters of a command; its flags, ``--help`` among them, take no value."""
    found = params(context)
    for option in found:
        if isinstance(option, TyperOption) and option.is_flag:
            option.metavar = ""
    return found


class Commands(TyperGroup):
    """All commands, none of them loaded."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, sentence in COMMANDS.items():
            self.add_command(Deferred(name, help=sentence, rich_markup_mode=None))

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params, ctx)


app = typer.Typer(
    name="unmask",
    cls=Commands,
    help="Measure how recognisable a voice is: verification, its worst case, and anonymisation.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(show: bool) -> None:
    if show:
        print(f"unmask {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
    debug: bool = typer.Option(
        False, "--debug", help="Show the full traceback of unexpected errors."
    ),
    module: str = typer.Option(
        "", "--import", metavar="MODULE", help="Python to import first: registers back-ends."
    ),
) -> None:
    global _debug
    _debug = debug
    if module:
        import_module("unmask._plugins").imported(module)


_debug = False
_FULL = tuple(
    getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO") if hasattr(errno, name)
)
"""What writing fails with where there is no room."""
_INTERRUPTED = 130
_AGAIN = "run the same command again (assess, embed and train resume; others with --state)"
STOPPED = f"stopped; {_AGAIN}"


def options_of(name: str) -> set[str]:
    """The options that a command has; those of all its commands where it has several."""
    command = Deferred(name).loaded()
    every = getattr(command, "commands", {"": command}).values()
    params = [param for one in every for param in one.params]
    return {text for param in params for text in (*param.opts, *param.secondary_opts)} | _COMMON


_COMMON: Final = {"--help", "--version", "--debug", "--import"}


def _advised(message: str, words: list[str]) -> str:
    """A message with the options of the command that was called, and no others."""
    from unmask.cli.advice import as_options, fitting

    message = as_options(message)
    name = next((word for word in words if word in COMMANDS), None)
    if name is None or "--" not in message:
        return message
    has_config = name == "assess" and any(word.endswith(".toml") for word in words)
    return fitting(message, options_of(name), has_config=has_config)


class Terminated(BaseException):
    """The system asked this process to end; scratch folders are removed on the way out."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def main() -> None:
    """Run a command; bad input is one line on stderr and exit code 1, wrong usage 2, a gate that
    failed 3.
    """
    _prepare_streams()
    # Work is spread over processors by jobs: further threads of small products only wait.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if _memory_is_limited():
        # Polars would try to start such a thread again and again, and say each time that it cannot.
        os.environ.setdefault("_RJEM_MALLOC_CONF", "background_thread:false")
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _terminate)
    try:
        with report_extra():
            code = app(prog_name="unmask", standalone_mode=False)
    except InputError as error:
        _end(_advised(str(error), sys.argv[1:]), 1)
    except BrokenPipeError:
        _leave_pipe()
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except Terminated:
        _last(f"terminated by a signal; {_AGAIN}", 143)
    except SystemExit:
        raise
    except BaseException as error:  # where memory ends, libraries end by what is no Exception
        _foreign(error)
    if code == _INTERRUPTED:
        _last(STOPPED, code)
    sys.exit(code if isinstance(code, int) else 0)


def _memory_is_limited() -> bool:
    try:
        import resource
    except ImportError:
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _foreign(error: BaseException) -> NoReturn:
    """Say in one line what nobody expected; wrong usage shows how it is right."""
    if hasattr(error, "show") and hasattr(error, "exit_code"):
        if hasattr(error, "message"):
            error.message = str(error.message).removeprefix("Value error, ")
        error.show()
        sys.exit(error.exit_code)
    if _debug:
        raise error
    if isinstance(error, OSError):
        if "Broken pipe" in str(error):
            _leave_pipe()  # polars gives such an error no number
        # Reading names its file; what has no name and lacks room is a stream that is written.
        stream = "output" if error.errno in _FULL else "input"
        _end(f"{error.filename or stream}: {error.strerror or error}", 1)
    if isinstance(error, MemoryError):
        _end(
            f"memory ended: expected more, or fewer workers ({str(error) or 'nothing was free'})", 1
        )
    reason = str(error) or "no reason given"
    _end(f"{type(error).__name__}: {reason} (unmask --debug COMMAND … shows where)", 1)


def _leave_pipe() -> NoReturn:
    """End in silence: whoever reads the output has closed it, as head does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)


def _end(message: str, code: int) -> NoReturn:
    from unmask.base import one_line

    _last(one_line(message), code)


def _last(line: str, code: int) -> NoReturn:
    """Say a line and leave; nothing is loaded, which a stop while loading would break."""
    if sys.stderr is not None:
        print(f"unmask: {line}", file=sys.stderr)
    sys.exit(code)


class _Closed(io.TextIOBase):
    """Standard output that nobody opened: a result that goes there would be lost."""

    encoding = "utf-8"

    def write(self, text: str) -> NoReturn:
        raise InputError("standard output", "an open one", "it closed")

    @property
    def buffer(self) -> NoReturn:
        raise InputError("standard output", "an open one", "it closed")


def _prepare_streams() -> None:
    """A terminal that lacks a character shows another; messages for a closed one go nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None and name == "stdout":
            sys.stdout = _Closed()
        elif stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure") and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="replace")
