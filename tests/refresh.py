"""``python -m tests.refresh [WORD]``: rewrite what pages and notebooks print.

Runs the Python blocks of every page (or of those with WORD in their path) and puts what they print
into the ``output`` blocks that follow, then does the same for the cells of notebooks. Read the
difference before you commit it: a number that moved needs its reason.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from tests.test_docs import BLOCK, PAGES, ROOT
from tests.test_notebooks import NOTEBOOKS, outputs


def refreshed_page(page: Path) -> str:
    """Run the blocks of a page in order and return its text with today's output."""
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": page.stem}
    printed = ""
    pieces: list[str] = []
    end = 0
    for match in BLOCK.finditer(text):
        language, body = match.groups()
        if language == "python":
            line = text[: match.start()].count("\n") + 2
            stream = io.StringIO()
            with contextlib.redirect_stdout(stream):
                exec(compile("\n" * (line - 1) + body, str(page), "exec"), namespace)
            printed = stream.getvalue()
        elif language == "output":
            start, stop = match.span(2)
            pieces += [text[end:start], printed.rstrip() + "\n"]
            end = stop
    return "".join([*pieces, text[end:]])


def refreshed_notebook(path: Path) -> str:
    """Run the cells of a notebook in order and return its text with today's outputs."""
    text = path.read_text(encoding="utf-8")
    notebook = json.loads(text)
    namespace: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        results = outputs("".join(cell["source"]), namespace)
        for stored, result in zip(cell["outputs"], results, strict=True):
            if result["output_type"] == "stream":
                stored["text"] = as_stored(result["text"], stored["text"])
            else:
                plain = result["data"]["text/plain"]
                stored["data"]["text/plain"] = as_stored(plain, stored["data"]["text/plain"])
    indent = re.search(r"\n( +)\"", text)
    width = len(indent.group(1)) if indent else None
    return json.dumps(notebook, ensure_ascii=False, indent=width) + "\n"


def as_stored(text: str, before: str | list[str]) -> str | list[str]:
    """Split a text into lines if the notebook stores lines."""
    return text if isinstance(before, str) else text.splitlines(keepends=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.refresh", description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only paths with this in them")
    word = parser.parse_args().word
    failed = 0
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UNMASK_DOCS_OUTPUT"] = folder
        for path in [*PAGES, *NOTEBOOKS]:
            name = path.relative_to(ROOT).as_posix()
            if word not in name:
                continue
            refresh = refreshed_notebook if path.suffix == ".ipynb" else refreshed_page
            try:
                text = refresh(path)
            except Exception:
                traceback.print_exc()
                print(f"{name}: failed")
                failed += 1
                continue
            if text != path.read_text(encoding="utf-8"):
                path.write_text(text, encoding="utf-8")
                print(f"{name}: rewritten")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
