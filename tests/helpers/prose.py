"""Assertions that hold prose: a sentence in one of them cannot change without a change of code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PROSE = 4
"""Words from which on a text counts as prose."""
TAG = re.compile(r"<[^<>]*>")
WORD = re.compile(r"(?<!\S)[(\[\"'“‘\\^]*[A-Za-z][A-Za-z’'/-]*[\\.,:;?!)\]\"'”’$]*(?!\S)")


def words(text: str) -> int:
    """Count the words of a text; numbers, code, tags of HTML and what a pattern adds are none."""
    return len(WORD.findall(TAG.sub(" ", text.replace(r"\s", " "))))


def texts(node: ast.AST) -> Iterator[str]:
    """Yield the literal texts below a node, those with values in them as one."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(p.value if isinstance(p, ast.Constant) else "0" for p in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from texts(child)


def has_prose(node: ast.AST) -> bool:
    """Return whether a text of four words or more stands below a node."""
    return any(words(text) >= PROSE for text in texts(node))


def prose_names(function: ast.AST) -> set[str]:
    """Return the names that a function, its parameters or its loops bind to prose."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Constant, ast.JoinedStr)):
            bound, value = node.targets, node.value
        elif isinstance(node, ast.For) and isinstance(node.iter, (ast.Tuple, ast.List)):
            bound, value = [node.target], node.iter
        elif isinstance(node, ast.For) and ast.unparse(node.iter).endswith(".items()"):
            pairs = node.iter.func.value
            if not isinstance(pairs, ast.Dict):
                continue
            rows = zip(pairs.keys, pairs.values, strict=True)
            bound, value = [node.target], ast.Tuple([ast.Tuple([*row]) for row in rows])
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.parametrize"):
            bound, value = node.args[:1], node.args[1]
        else:
            continue
        found |= _names_of_prose(bound, value)
    return found


def _names_of_prose(bound: list[ast.expr], value: ast.expr) -> set[str]:
    """Return which of the names on one side stand for prose on the other."""
    found: set[str] = set()
    rows = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
    for target in bound:
        if isinstance(target, ast.Name):
            names = [target.id]
        elif isinstance(target, ast.Constant):
            names = [name.strip() for name in str(target.value).split(",")]
        elif isinstance(target, (ast.Tuple, ast.List)):
            names = [ast.unparse(part).strip("'\"") for part in target.elts]
        else:
            continue
        for row in rows:
            cells = [row]
            if len(names) > 1 and isinstance(row, (ast.Tuple, ast.List)):
                cells = row.elts
            elif len(names) > 1 and isinstance(row, ast.Call):  # pytest.param
                cells = row.args
            found |= {name for name, cell in zip(names, cells, strict=False) if has_prose(cell)}
    return found


def _held(node: ast.AST) -> ast.AST | None:
    """Return what an assertion compares: the test of ``assert``, the ``match`` of ``raises``."""
    if isinstance(node, ast.Assert):
        return node.test
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("pytest.raises", "pytest.warns"):
        return next((k.value for k in node.keywords if k.arg == "match"), None)
    return None


def assertions(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and code of the assertions in a file that hold prose, or a name of some."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    seen: dict[int, str] = {}
    for function in [*functions, tree]:
        names = prose_names(function) if function is not tree else set()
        for node in ast.walk(function):
            held = _held(node)
            if held is None:
                continue
            used = {part.id for part in ast.walk(held) if isinstance(part, ast.Name)}
            if has_prose(held) or used & names:
                seen[node.lineno] = ast.unparse(node)
    yield from sorted(seen.items())
