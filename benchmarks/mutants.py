"""``python -m benchmarks.mutants [--sample N] [--seed S] [--processes P] [MODULE …]``: do tests
notice wrong code?

Single places of ``src/unmask/engine`` are changed (a comparison turned, a bound moved by one, a
sign, a constant, an operand) in a copy, and the fast tests of the engine are run against it. A
change that no test notices survives: it needs a test, or is equivalent and stands in
``mutants.txt``, by module, function and what was changed, with the reason.
"""

from __future__ import annotations

import argparse
import ast
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
ENGINE = Path("src/unmask/engine")
KNOWN = Path(__file__).with_suffix(".txt")
LONGEST = 300.0
TESTS = {
    "calibration": ("test_calibration",),
    "curves": ("test_curves",),
    "information": ("test_information", "test_calibration"),
    "metrics": ("test_roc",),
    "operating": ("test_roc",),
    "roc": ("test_roc",),
}
FAST = (
    "test_noticed",
    "test_roc",
    "test_information",
    "test_calibration",
    "test_curves",
    "test_oracles",
)
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
    """One change: where, in which function, and what became of what."""

    module: str
    line: int
    function: str
    change: str
    source: str

    @property
    def name(self) -> str:
        """How it is known, whatever line it is in."""
        return f"{self.module} {self.function}: {self.change}"


def mutants(path: Path) -> Iterator[Mutant]:
    """Every change of one place of a module."""
    text = path.read_text(encoding="utf-8")
    count = sum(1 for _ in _places(ast.parse(text)))
    for n in range(count):
        tree = ast.parse(text)
        function, node, change = next(p for i, p in enumerate(_places(tree)) if i == n)
        around = _around(tree, node)
        before = ast.unparse(around)
        change()
        both = f"{before} → {ast.unparse(around)}"
        yield Mutant(path.stem, node.lineno, function, both, ast.unparse(tree))


def _around(tree: ast.AST, node: ast.AST) -> ast.AST:
    """The smallest expression around a node that is long enough to be told by."""
    parents = {
        id(child): parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)
    }
    while len(ast.unparse(node)) < 16 and isinstance(
        parents[id(node)], ast.expr | ast.Assign | ast.Return
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


def survives(mutant: Mutant, copy: Path) -> bool:
    """Whether the tests of a module, then the other fast ones, pass on a copy with a change."""
    target = copy / "src/unmask/engine" / f"{mutant.module}.py"
    original = target.read_bytes()
    target.write_text(mutant.source, encoding="utf-8")
    try:
        near = TESTS[mutant.module]
        others = [name for name in FAST if name not in near]
        return _passes(near, copy) and _passes(others, copy)
    finally:
        target.write_bytes(original)


def _passes(tests: Sequence[str], copy: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += [f"tests/engine/{name}.py" for name in tests]
    options = {"PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, "OMP_NUM_THREADS": "1", **options},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def equivalent() -> set[str]:
    """Changes that change no result, by name; the reason stands behind ``#``."""
    lines = KNOWN.read_text(encoding="utf-8").splitlines() if KNOWN.exists() else []
    return {line.partition("  #")[0].strip() for line in lines if line and line[0] != "#"}


def _copied(copy: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__", "corpus")
    for part in ("src", "tests", "benchmarks"):
        shutil.copytree(ROOT / part, copy / part, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def main() -> None:
    words = argparse.ArgumentParser(prog="benchmarks.mutants", description=__doc__)
    words.add_argument("modules", nargs="*", help=f"of {', '.join(TESTS)}; all by default")
    words.add_argument("--sample", type=int, default=100, help="how many changes are tried")
    words.add_argument("--skip", type=int, default=0, help="how many of them are left out")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--processes", type=int, default=1, help="changes tried at a time")
    options = words.parse_args()
    wanted = options.modules or list(TESTS)
    every = [m for name in wanted for m in mutants(ROOT / ENGINE / f"{name}.py")]
    drawn = random.Random(options.seed).sample(every, min(options.sample, len(every)))
    chosen = drawn[options.skip :]
    known = equivalent()
    alive = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.processes) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for n in range(options.processes):
            copies.put(_copied(Path(folder) / str(n)))

        def tried(mutant: Mutant) -> bool:
            copy = copies.get()
            try:
                return mutant.name not in known and survives(mutant, copy)
            finally:
                copies.put(copy)

        for n, (mutant, lives) in enumerate(zip(chosen, pool.map(tried, chosen), strict=True), 1):
            if lives:
                alive.append(mutant)
                print(f"survived, line {mutant.line}: {mutant.name}", flush=True)
            if n % 20 == 0:
                print(f"{n} of {len(chosen)}, {time.monotonic() - began:.0f} s", flush=True)
    named = sum(mutant.name in known for mutant in chosen)
    print(
        f"{len(chosen)} of {len(every)} changes, seed {options.seed}: {len(alive)} survived,"
        f" {named} are known to be equivalent"
    )
    sys.exit(1 if alive else 0)


if __name__ == "__main__":
    main()
