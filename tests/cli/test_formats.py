from __future__ import annotations

import typer
from typer.testing import CliRunner

from unmask.cli.files import formats
from unmask.errors import InputError
from unmask.trials import FORMATS

app = typer.Typer()
app.command()(formats)


def test_every_format_is_listed() -> None:
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    for entry in FORMATS:
        assert entry.name in result.stdout


def test_by_kind() -> None:
    result = CliRunner().invoke(app, ["--kind", "key"])
    assert "voxceleb" in result.stdout
    assert "wespeaker" not in result.stdout
    result = CliRunner().invoke(app, ["--kind", "nothing"])
    assert isinstance(result.exception, InputError)
