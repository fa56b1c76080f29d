"""Every Python block of the documentation runs, and prints what the page says it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from unmask.figures import image
from unmask.scoring import BACKENDS

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md"])
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def no_names_left():
    """Back-ends that a page registers are forgotten after it."""
    yield
    for name in [name for name, one in BACKENDS.items() if not one.built_in]:
        del BACKENDS[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples(page, monkeypatch, tmp_path):
    text = page.read_text(encoding="utf-8")
    if "<!-- needs: shared -->" in text and not (ROOT / ".." / "shared").is_dir():
        pytest.skip("the page's data are not at hand")
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("UNMASK_DOCS_OUTPUT", str(tmp_path))
    # Charts are made, not rendered: test_save.py renders every kind of them.
    write = image._WRITERS["json"]
    monkeypatch.setattr(
        image, "images", lambda figure, kinds: {k: write(figure, "") for k in kinds}
    )
    namespace: dict[str, object] = {"__name__": page.stem}
    printed = ""
    for match in BLOCK.finditer(text):
        language, body = match.groups()
        line = text[: match.start()].count("\n") + 2
        if language == "python":
            out = io.StringIO()
            source = "\n" * (line - 1) + body
            with contextlib.redirect_stdout(out):
                exec(compile(source, str(page), "exec"), namespace)
            printed = out.getvalue()
        elif language == "output":
            assert printed.rstrip() == body.rstrip(), f"{page.name}, line {line}"
