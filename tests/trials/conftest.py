"""The command line in tests of files."""

import pytest
from tests.cli.conftest import command


@pytest.fixture
def unmask():
    """Runs a command; its exit code, what it wrote and what it said."""

    def run(*arguments):
        left = command(*arguments)
        return left.returncode, left.stdout, left.stderr

    return run
