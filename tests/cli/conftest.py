"""The command line as a user runs it, in this process: a new one takes a second to start."""

import contextlib
import io
import os
import sys
from functools import partial
from types import SimpleNamespace
from unittest import mock

import pytest

from unmask.cli import main


@pytest.fixture
def unmask(folder):
    """Runs a command in the folder of the test; what it leaves."""
    return partial(command, cwd=folder)


def command(*arguments, cwd=".", stdin=""):
    out, err = io.StringIO(), io.StringIO()
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.multiple(sys, argv=["unmask", *map(str, arguments)], stdin=given),
        mock.patch.dict(os.environ, {"NO_COLOR": "1"}),
        mock.patch("signal.signal"),
        pytest.raises(SystemExit) as left,
    ):
        main()
    return SimpleNamespace(returncode=left.value.code, stdout=out.getvalue(), stderr=err.getvalue())
