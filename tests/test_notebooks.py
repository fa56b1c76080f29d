"""Every notebook of the documentation runs, and shows what is stored in it."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted(ROOT.glob("docs/notebooks/*.ipynb"))


def outputs(source: str, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """What a cell prints and what its last expression is, as a notebook stores them."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    value = None
    with contextlib.redirect_stdout(out):
        exec(compile(tree, "cell", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
    made: list[dict[str, Any]] = []
    if out.getvalue():
        made.append({"output_type": "stream", "name": "stdout", "text": out.getvalue()})
    if value is not None:
        data = {"text/plain": repr(value)}
        made.append({"output_type": "execute_result", "data": data})
    return made


def text_of(output: dict[str, Any]) -> str:
    text = output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"]
    return text if isinstance(text, str) else "".join(text)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_shows_what_is_stored(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    namespace: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            result = outputs("".join(cell["source"]), namespace)
            assert [text_of(one) for one in result] == [text_of(one) for one in cell["outputs"]]


def test_one_for_each_kind_of_user():
    assert [path.stem for path in NOTEBOOKS] == [
        "bring-your-own",
        "challenge-participant",
        "data-protection-officer",
        "newcomer",
        "notebook-user",
        "researcher",
    ]
