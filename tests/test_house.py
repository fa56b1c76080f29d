"""The house: data flow one way through the rooms, and no way leads back up."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.helpers.prose import assertions

import unmask
from unmask.scoring import backend

SOURCE = Path(unmask.__file__).parent
ROOMS = (
    "base",
    "run",
    "trials",
    "scoring",
    "engine",
    "speech",
    "privacy",
    "stress",
    "utility",
    "assessment",
    "figures",
    "report",
    "integrations",
    "cli",
)
ORDER = {room: rank for rank, room in enumerate(ROOMS, start=1)} | {"data": 0}


def modules() -> dict[str, ast.Module]:
    trees = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ["unmask", *path.relative_to(SOURCE).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


MODULES = modules()
PACKAGES = {
    ".".join(("unmask", *path.relative_to(SOURCE).parent.parts))
    for path in SOURCE.rglob("__init__.py")
}


def imports(tree: ast.AST, *, loading: bool, door: bool = False) -> Iterator[str]:
    """Modules of this package that a module imports; ``loading``: those needed to load it, or,
    through a ``door``, to give all its names.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("unmask"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("unmask"))
        elif loading and (
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and not door)
        ):
            continue
        else:
            yield from imports(node, loading=loading, door=door)


def room(module: str) -> int:
    parts = module.split(".")
    return ORDER.get(parts[1], 0) if len(parts) > 1 else len(ROOMS) + 1


def test_a_room_uses_only_rooms_above_it():
    upward = [
        (name, used)
        for name, tree in MODULES.items()
        if name not in ("unmask", "unmask.__main__")
        for used in imports(tree, loading=False)
        if used != "unmask" and room(used) > room(name)
    ]
    assert not upward


def test_no_room_is_loaded_by_name_from_above():
    upward = [
        (name, node.args[0].value)
        for name, tree in MODULES.items()
        if name != "unmask"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and "import_module" in ast.dump(node.func)
        and isinstance(node.args[0], ast.Constant)
        and room(node.args[0].value) > room(name)
        and node.args[0].value.startswith("unmask")
    ]
    assert not upward


def test_other_rooms_are_entered_through_a_door():
    """From another room one imports what a package exports, never from one of its modules."""
    past_the_door = [
        (name, node.module)
        for name, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module in MODULES
        and node.module not in PACKAGES
        and room(node.module) != room(name)
        and room(node.module)
    ]
    assert not past_the_door


def test_no_name_of_a_door_hides_a_module():
    """``import unmask.engine.roc`` gives the module, whatever the room exports."""
    hidden = [
        (package, alias.name)
        for package in PACKAGES
        for node in ast.walk(MODULES[package])
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if f"{package}.{alias.asname or alias.name}" in MODULES
    ]
    assert not hidden


def test_no_class_name_has_two_meanings():
    homes: dict[str, list[str]] = {}
    for name, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(name)
    assert not {name: where for name, where in homes.items() if len(where) > 1}


def test_no_module_needs_itself_to_load():
    needs = {
        name: set(imports(tree, loading=True, door=name in PACKAGES))
        & set(MODULES) - {name, "unmask"}
        for name, tree in MODULES.items()
    }
    done: set[str] = set()
    while ready := {name for name, used in needs.items() if name not in done and used <= done}:
        done |= ready
    assert not {name: sorted(used - done) for name, used in needs.items() if name not in done}


def test_public_names_are_there_once_and_are_no_modules():
    assert len(unmask.__all__) == len(set(unmask.__all__))
    assert {*unmask._ROOM_OF, "__version__"} == set(unmask.__all__)
    stub = (SOURCE / "__init__.pyi").read_text(encoding="utf-8")
    named = set(re.findall(r"\b(\w+) as \1\b", stub)) - set(unmask._ROOMS)
    assert named == set(unmask.__all__)
    missing = [name for name in unmask.__all__ if not hasattr(unmask, name)]
    assert not missing
    assert not [n for n in unmask.__all__ if isinstance(getattr(unmask, n), ModuleType)]


def test_every_public_name_is_on_the_page_of_the_python_api():
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^::: unmask\.(?:\w+\.)*(\w+)$", page, re.MULTILINE))
    assert not [name for name in unmask.__all__ if not name.startswith("_") and name not in named]


def test_every_class_that_a_public_function_returns_is_on_the_page_of_results():
    docs = Path(__file__).parents[1] / "docs"
    pages = "".join((docs / name).read_text(encoding="utf-8") for name in ("results.md", "api.md"))
    listed = set(re.findall(r"^::: unmask\.(?:\w+\.)*(\w+)$", pages, re.MULTILINE))
    returned = {
        name
        for function in (getattr(unmask, name) for name in unmask.__all__)
        if inspect.isfunction(function)
        for name in str(inspect.signature(function).return_annotation).split(" | ")
        if name[0].isupper() and name.isidentifier() and name not in ("FloatArray", "None")
    }
    assert returned > {"Evaluation", "LegalSweep", "WorstCaseStudy", "Assessment"}
    assert not returned - listed


def test_every_parameter_of_a_public_function_is_in_its_docstring():
    unsaid = [
        (name, parameter.name)
        for name in unmask.__all__
        if inspect.isfunction(function := getattr(unmask, name))
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
        and parameter.name not in (inspect.getdoc(function) or "")
    ]
    assert not unsaid


def parameters(name: str) -> list[str]:
    """What somebody who calls a public name may give."""
    try:
        signature = inspect.signature(getattr(unmask, name))
    except ValueError:  # of a class of Python's own
        return []
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in signature.parameters.values() if one.kind not in kinds]


def sections(text: str) -> dict[str, list[str]]:
    """The lines of each numpydoc section; those before the first have no name."""
    found: dict[str, list[str]] = {"": []}
    lines = inspect.cleandoc(text).splitlines()
    name = ""
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line and below == "-" * len(line):
            found[name := line] = []
        elif line != "-" * len(name) or not name:
            found[name].append(line)
    return found


def lacks(name: str) -> Iterator[str]:
    """What the docstring of a public name lacks of numpydoc."""
    value = getattr(unmask, name)
    parts = sections(value.__doc__ or "")
    if not parts[""] or not parts[""][0].endswith(".") or (parts[""] + [""])[1]:
        yield "a summary of one line"
    heads = [line for line in parts.get("Parameters", []) if line[:1].strip()]
    told = [one.strip() for line in heads for one in line.partition(":")[0].split(",")]
    told = [one for one in told if not one.startswith("*")]
    if sorted(told) != sorted(parameters(name)):
        yield f"parameters: told {told}, found {parameters(name)}"
    gives = inspect.isfunction(value) and inspect.signature(value).return_annotation != "None"
    if gives and not {"Returns", "Yields"} & parts.keys():
        yield "what is returned"
    if ">>>" not in "\n".join(parts.get("Examples", [])):
        yield "an example"


def test_every_public_name_has_numpydoc_sections_and_an_example():
    public = set(unmask.__all__) - {"__version__"}
    faults = {name: found for name in public if (found := list(lacks(name)))}
    assert faults == {}


def written() -> list[str]:
    """Public names whose docstring has an example."""
    docs = {name: getattr(unmask, name).__doc__ or "" for name in unmask.__all__}
    return sorted(name for name in docs if name != "__version__" and ">>>" in docs[name])


@pytest.mark.parametrize("name", written())
def test_examples_of_public_names_print_what_they_say(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(backend, "BACKENDS", dict(backend.BACKENDS))
    text = inspect.cleandoc(getattr(unmask, name).__doc__)
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    lines: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=lines.append)
    assert not lines, "".join(lines)


def test_no_public_function_has_more_than_twelve_parameters():
    long = [name for name in unmask.__all__ if name != "__version__" and len(parameters(name)) > 12]
    assert long == []


SPLITTING = ("privacy", "assessment", "stress", "utility", "cli")
"""Rooms in which speech or people are split."""
NOT_BY_NAME = {
    "unmask.privacy.attack": {"n::folds"},  # people, permuted
    "unmask.privacy.legal.assessing": {"1::2"},  # of pairs (enrolment, test)
    "unmask.privacy.legal.isolating_kernel": {  # samples of scores and of conversations
        "::min(_SAMPLE, max(1, size // (8 * depth)))",
        "::step",
    },
    "unmask.privacy.legal.strongest": {"::step"},  # from one end of an order to the other
    "unmask.privacy.legal.verification": {"::2", "1::2"},  # counts between and at scores
    "unmask.privacy.luck": {"people % 2", "place % 2"},  # places in a row of pairs
    "unmask.privacy.recordings": {"turn % 2"},  # the one half, by content
    "unmask.privacy.similarity.renamed": {"::step"},  # a sample of strips
    "unmask.privacy.similarity.resampling": {"::sign"},
    "unmask.privacy.words": {"::-(-len(x) // _WEIGHED)"},  # a sample by content
    "unmask.stress.cpmap.maps": {":-1:columns"},
    "unmask.stress.extrapolation.base": {"::max(pairs.scores.size // _SAMPLE, 1)"},
}
"""Steps through a sequence, and tests for even numbers, that split nothing by name."""
HALVES = ("every_second", "first_half")
"""Names of the functions that halved speech by the names of recordings."""


def steps(tree: ast.Module) -> Iterator[str]:
    """Slices with a step forwards, and whether a number is even."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Slice) and node.step is not None:
            if ast.unparse(node.step) != "-1":
                yield ast.unparse(node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            yield from [ast.unparse(node)] * (ast.unparse(node.right) == "2")


def test_no_half_goes_by_name():
    """What is split is split by content (:mod:`unmask.privacy.recordings`): a safeguard that
    alternates two voices would be enrolled with one and tested with the other.
    """
    found = {}
    for name, tree in MODULES.items():
        parts = name.split(".")
        if len(parts) > 1 and parts[1] in SPLITTING and (stepped := set(steps(tree))):
            found[name] = stepped
    assert found == NOT_BY_NAME
    names = {node.id for tree in MODULES.values() for node in ast.walk(tree) if hasattr(node, "id")}
    assert not names & set(HALVES)


TESTS = Path(__file__).parent
WORDS_OF_ASSERTIONS = {
    ".": 8,
    "cli": 40,
    "engine": 11,
    "figures": 2,
    "privacy": 21,
    "report": 9,
    "scoring": 2,
    "speech": 10,
    "speech/training": 1,
    "stress": 5,
    "trials": 9,
    "utility": 4,
}
"""Assertions that hold four words or more, by directory: fewer is better, none elsewhere."""


def test_words_of_assertions_do_not_come_back():
    """Sentences stand in tests/golden/sentences.json, where words change without code."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("*.py")):
        place = path.relative_to(TESTS)
        lines = [f"{place}:{line}: {code}" for line, code in assertions(path)]
        found.setdefault(place.parent.as_posix(), []).extend(lines)
    above = {
        directory: lines
        for directory, lines in found.items()
        if len(lines) > WORDS_OF_ASSERTIONS.get(directory, 0)
    }
    assert above == {}


HELD = """
def test_held():
    assert "no speaker is in both" in text
    assert text == f"{name}: no {kind} of it is here"
    with pytest.raises(ValueError, match="nothing was found at all"):
        pass
    said = "nothing was found at all"
    assert said in text
    for words, number in (("nothing was found at all", 1), ("", 2)):
        assert words in text

@pytest.mark.parametrize(("number", "said"), [(1, "nothing was found at all")])
def test_given(number, said):
    assert said in text
"""
FREE = """
def test_free(sentences):
    assert [notice.code for notice in notices] == ["few-speakers"], "a message of many words"
    assert "5 of 60 people" in text
    assert '<th scope="row" class="wide cell">Purpose</th>' in page
    sentences.check("nothing was found at all")
    for words, number in (("nothing was found at all", 1), ("", 2)):
        assert number in numbers
"""


def test_words_of_assertions_are_counted_wherever_they_stand(tmp_path):
    (tmp_path / "held.py").write_text(HELD, encoding="utf-8")
    (tmp_path / "free.py").write_text(FREE, encoding="utf-8")
    held = [line for line, _ in assertions(tmp_path / "held.py")]
    assert held == [3, 4, 5, 8, 10, 14]
    assert not list(assertions(tmp_path / "free.py"))
