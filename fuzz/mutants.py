"""``python -m fuzz.mutants [--sample N] [--seed S] [--reached FILE …] [ROOM …]``: do tests
notice wrong code?

Single places of rooms of ``src/unmask`` (``engine``, ``privacy/legal``, ``report/table.py``) are
changed (a comparison turned, a bound moved by one, a sign, a constant, an operand) in a copy, and
the tests that reach the place are run against it, the quickest first; ``fuzz.reached`` finds
them, at once or before. A change that no test notices survives: it needs a test, or is equivalent
and stands in ``mutants.txt``, by module, function and what was changed, with the reason.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parent.parent
PACKAGE = Path("src/unmask")
KNOWN = Path(__file__).with_suffix(".txt")
LONGEST = 180.0
_COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_COMBINED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Mutant:
    """One change: where, which lines a test must reach to meet it (of what is run at import, any of
    its function or module), in which function, and what became of what.
    """

    path: Path
    line: int
    lines: range
    function: str
    change: str
    source: str

    @property
    def name(self) -> str:
        """How it is known, whatever line it is in."""
        module = self.path.relative_to(PACKAGE).with_suffix("").as_posix()
        return f"{module} {self.function}: {self.change}"


def mutant(path: Path, n: int) -> Mutant:
    """The ``n``-th change of one place of a module."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    function, node, change = next(p for i, p in enumerate(_places(tree)) if i == n)
    inside = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef) and one.lineno <= node.lineno <= (one.end_lineno or 0)
    ]
    own = max(inside, key=lambda one: one.lineno, default=None)
    lines = range(1, 1 << 20) if own is None else range(own.lineno, (own.end_lineno or 0) + 1)
    if own is not None and node.lineno >= own.body[0].lineno:
        lines = range(node.lineno, node.end_lineno + 1)
    around = _around(tree, node)
    before = ast.unparse(around)
    change()
    both = f"{before} → {ast.unparse(around)}"
    return Mutant(path, node.lineno, lines, function, both, ast.unparse(tree))


class Reached:
    """Which tests reach a line, of files that ``fuzz.reached`` wrote."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[int, set[str]]] = {}
        for file in files:
            found = json.loads(file.read_text(encoding="utf-8"))
            self.seconds |= found["seconds"]
            tests = list(found["seconds"])
            for path, lines in found["lines"].items():
                own = self.lines.setdefault(path, {})
                for line, who in lines.items():
                    named = (tests[one] if isinstance(one, int) else one for one in who)
                    own.setdefault(int(line), set()).update(named)

    def tests(self, mutant: Mutant, enough: float) -> tuple[list[str], int]:
        """Tests that reach a change, the quickest first, that take up to some seconds, and how many
        reach it; where none does in this process, those of its room.
        """
        lines = self.lines.get(mutant.path.as_posix(), {})
        found = set().union(*(who for line, who in lines.items() if line in mutant.lines))
        room = f"tests/{mutant.path.relative_to(PACKAGE).parts[0]}/"
        found = found or {one for one in self.seconds if one.startswith(room)}
        found |= {one for one in self.seconds if one.partition("::")[0] in found}
        names = [one for one in self.seconds if one in found and "::" in one]
        shared = {one: self.seconds.get(one.partition("::")[0], 0.0) for one in names}
        names.sort(key=lambda one: (shared[one] // 2, self.seconds[one]))
        chosen: list[str] = []
        for one in names:
            file = one.partition("::")[0]
            first = not any(other.startswith(f"{file}::") for other in chosen)
            enough -= self.seconds[one] + first * shared[one]
            if enough < 0 and chosen:
                break
            chosen.append(one)
        return chosen, len(names)


def _around(tree: ast.AST, node: ast.AST) -> ast.AST:
    """The smallest expression around a node that is long enough to be told by."""
    parents = {
        id(child): parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)
    }
    while len(ast.unparse(node)) < 16 and isinstance(
        parents[id(node)], ast.expr | ast.keyword | ast.Assign | ast.Return
    ):
        node = parents[id(node)]
    return node


def _places(tree: ast.AST, function: str = "module") -> Iterator[tuple]:  # type: ignore[type-arg]
    """Nodes that can be changed, the function around each, and what changes it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            inner = node.name if function == "module" else f"{function}.{node.name}"
            for part in node.body:
                if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)):
                    yield from _places(ast.Module([part], []), inner)
            continue
        if isinstance(node, (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)):
            continue
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from _places(ast.Module([ast.Expr(node.value)], []), function)
            continue
        yield from _changes(node, function)
        yield from _places(node, function)


def _changes(node: ast.AST, function: str) -> Iterator[tuple]:  # type: ignore[type-arg]
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        other = _COMPARED[type(node.ops[0])]
        yield function, node, lambda: node.ops.__setitem__(0, other())
    elif isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)) and type(node.op) in _COMBINED:
        new = _COMBINED[type(node.op)]
        yield function, node, lambda: setattr(node, "op", new())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        plain = ast.UAdd() if isinstance(node.op, ast.USub) else None
        if plain is not None:
            yield function, node, lambda: setattr(node, "op", plain)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value = node.value
        yield function, node, lambda: setattr(node, "value", value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        flag = node.value
        yield function, node, lambda: setattr(node, "value", not flag)


def survives(mutant: Mutant, tests: Sequence[str], copy: Path) -> bool:
    """Whether tests pass on a copy with a change."""
    target = copy / mutant.path
    original = target.read_bytes()
    target.write_text(mutant.source, encoding="utf-8")
    try:
        return not tests or _passes(tests, copy)
    finally:
        target.write_bytes(original)


def _passes(tests: Sequence[str], copy: Path) -> bool:
    (copy / "chosen").write_text("\n".join(tests), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "@chosen"]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=_environment(copy),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _environment(copy: Path) -> dict[str, str]:
    options = {"PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, "OMP_NUM_THREADS": "1", **options}


def equivalent() -> set[str]:
    """Changes that change no result, by name; the reason stands behind ``#``."""
    lines = KNOWN.read_text(encoding="utf-8").splitlines() if KNOWN.exists() else []
    return {line.partition("  #")[0].strip() for line in lines if line and line[0] != "#"}


def _copied(copy: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__", "corpus")
    for part in ("src", "tests", "benchmarks", "studies", "fuzz"):
        shutil.copytree(ROOT / part, copy / part, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def main() -> None:
    words = argparse.ArgumentParser(prog="fuzz.mutants", description=__doc__)
    words.add_argument("rooms", nargs="*", default=["engine"], help="folders or files; engine")
    words.add_argument("--sample", type=int, default=100, help="how many changes are tried")
    words.add_argument("--skip", type=int, default=0, help="how many of them are left out")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--processes", type=int, default=1, help="changes tried at a time")
    words.add_argument("--enough", type=float, default=60, help="seconds of tests for a change")
    words.add_argument("--reached", type=Path, nargs="+", help="what fuzz.reached found")
    options = words.parse_args()
    near = list(dict.fromkeys(f"tests/{Path(one).parts[0]}" for one in options.rooms))
    if not options.reached and not all((ROOT / one).is_dir() for one in near):
        words.error(f"expected --reached or rooms with tests of their own, found {near}")
    rooms = [ROOT / PACKAGE / one for one in options.rooms]
    files = [f for room in rooms for f in (sorted(room.rglob("*.py")) or [room])]
    paths = [one.relative_to(ROOT) for one in files]
    parsed = {path: ast.parse((ROOT / path).read_text(encoding="utf-8")) for path in paths}
    every = [(path, n) for path, tree in parsed.items() for n, _ in enumerate(_places(tree))]
    drawn = random.Random(options.seed).sample(every, min(options.sample, len(every)))
    chosen = [mutant(*one) for one in drawn[options.skip :]]
    known = equivalent()
    alive = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.processes) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for n in range(options.processes):
            copies.put(copy := _copied(Path(folder) / str(n)))
        if not options.reached:
            options.reached = [copy / "reached.json"]
            look = ["-m", "fuzz.reached", *map(str, options.reached), *near]
            subprocess.run([sys.executable, *look], cwd=copy, env=_environment(copy), check=True)
        reached = Reached(options.reached)

        def tried(mutant: Mutant) -> tuple[bool, str]:
            tests, count = reached.tests(mutant, options.enough)
            copy = copies.get()
            try:
                lives = mutant.name not in known and survives(mutant, tests, copy)
                return lives, f"{len(tests)} of {count} tests"
            finally:
                copies.put(copy)

        for n, (one, (lives, by)) in enumerate(
            zip(chosen, pool.map(tried, chosen), strict=True), 1
        ):
            if lives:
                alive.append(one)
                print(f"survived {by}, line {one.line}: {one.name}", flush=True)
            if n % 5 == 0:
                print(f"{n} of {len(chosen)}, {time.monotonic() - began:.0f} s", flush=True)
    named = sum(one.name in known for one in chosen)
    print(
        f"{len(chosen)} of {len(every)} changes, seed {options.seed}: {len(alive)} survived,"
        f" {named} are known to be equivalent"
    )
    sys.exit(1 if alive else 0)


if __name__ == "__main__":
    main()
