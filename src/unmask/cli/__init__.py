"""The command line: one file per command, thin; everything is possible from Python as well."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import typer

from unmask._version import __version__
from unmask.base import one_line
from unmask.cli.anonymise import anonymise
from unmask.cli.assess import assess
from unmask.cli.compare import compare
from unmask.cli.convert import convert
from unmask.cli.cpmap import cpmap
from unmask.cli.demo import demo
from unmask.cli.embed import embed
from unmask.cli.encoders import encoders
from unmask.cli.eval import evaluate
from unmask.cli.formats import formats
from unmask.cli.init import init
from unmask.cli.legal import legal
from unmask.cli.privacy import privacy
from unmask.cli.validate import validate
from unmask.cli.worstcase import worstcase
from unmask.errors import InputError

app = typer.Typer(
    name="unmask",
    help="Measure how recognisable a voice is: verification, its worst case, and anonymisation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("demo")(demo)
app.command("init")(init)
app.command("assess")(assess)
app.command("eval")(evaluate)
app.command("compare")(compare)
app.command("privacy")(privacy)
app.command("legal")(legal)
app.command("cpmap")(cpmap)
app.command("worstcase")(worstcase)
app.command("embed")(embed)
app.command("anonymise")(anonymise)
app.add_typer(encoders)
app.command("validate")(validate)
app.command("formats")(formats)
app.command("convert")(convert)


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
        False, "--debug", help="Where an error nobody expected came from, in full."
    ),
) -> None:
    global _debug
    _debug = debug


_debug = False
_INTERRUPTED = 130


class Terminated(BaseException):
    """The system asked this process to end; scratch folders are removed on the way out."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def main() -> None:
    """Run a command; whatever goes wrong is one line on stderr and exit code 1."""
    _prepare_streams()
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _terminate)
    if hasattr(signal, "siginterrupt"):
        # A library restarts what Ctrl-C interrupts: a read that waits would wait on.
        signal.siginterrupt(signal.SIGINT, True)
    try:
        code = app(standalone_mode=False)
    except InputError as error:
        _end(str(error), 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except Terminated:
        _end("ended by the system; the same command goes on where it can", 143)
    except Exception as error:
        _foreign(error)
    if code == _INTERRUPTED:
        _end("interrupted; the same command goes on where it can", code)
    sys.exit(code if isinstance(code, int) else 0)


def _foreign(error: Exception) -> NoReturn:
    """Say in one line what nobody expected; wrong usage shows how it is right."""
    if hasattr(error, "show") and hasattr(error, "exit_code"):
        error.show()
        sys.exit(error.exit_code)
    if _debug:
        raise error
    if isinstance(error, OSError):
        _end(f"{error.filename or 'input'}: {error.strerror or error}", 1)
    reason = str(error) or "no reason given"
    _end(f"{type(error).__name__}: {reason} (unmask --debug COMMAND … shows where)", 1)


def _end(message: str, code: int) -> NoReturn:
    if sys.stderr is not None:
        print(f"unmask: {one_line(message)}", file=sys.stderr)
    sys.exit(code)


def _prepare_streams() -> None:
    """A terminal that lacks a character shows another; a closed one is written to nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure") and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="replace")
