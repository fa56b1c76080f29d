"""Tests that lack what the Makefile installs fail where ``--required`` is given."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.conftest import required_skips

LACKING = {
    "could not import 'torch': No module named 'torch'": True,
    "/usr/bin/chromium is not installed": True,
    "axe-core is not installed: make test installs it": False,
    "pdflatex with booktabs is not installed": False,
    "the weights of campplus are not installed": False,
    "the real files are not at hand": False,
}


@pytest.mark.parametrize(("reason", "required"), LACKING.items())
def test_what_the_makefile_installs_is_required(reason, required):
    report = SimpleNamespace(nodeid="test", longrepr=("file", 1, f"Skipped: {reason}"))
    assert required_skips([report]) == ({"test": reason} if required else {})


def test_what_is_required_may_not_be_skipped(tmp_path):
    hooks = (Path(__file__).parent / "conftest.py").read_text(encoding="utf-8")
    hooks = hooks[: hooks.index("@pytest.fixture")]
    (tmp_path / "conftest.py").write_text(hooks, encoding="utf-8")
    (tmp_path / "test_one.py").write_text("import pytest\n\npytest.importorskip('nothing')\n")
    (tmp_path / "test_two.py").write_text("def test_two():\n    pass\n")
    words = [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", "--required"]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stdout
    assert "required, yet skipped: test_one.py: could not import 'nothing'" in ran.stdout
