"""The command line: one file per command, thin; everything is possible from Python as well."""

from __future__ import annotations

import os
import sys

import typer

from unmask._version import __version__
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
) -> None:
    pass


def main() -> None:
    """Run a command; bad input is one line on stderr and exit code 1."""
    try:
        app()
    except InputError as error:
        print(f"unmask: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        print(f"unmask: {error.filename or 'input'}: {error.strerror}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("unmask: interrupted", file=sys.stderr)
        sys.exit(130)
