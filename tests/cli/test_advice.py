"""Every message that names an option names one that the command has."""

import ast
import re
from pathlib import Path

import pytest

import unmask
import unmask as um
from unmask.cli import COMMANDS, _advised, options_of
from unmask.cli.advice import as_options, fitting
from unmask.data import demo_scores
from unmask.errors import InputError
from unmask.stress.impostors.pair_scores import check_single_scores

SOURCE = Path(unmask.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
FOREIGN = {"report/writing.py", "report/html.py"}
"""Where options of a browser and variables of CSS stand."""
OF_PIP = {"--no-deps", "--only-binary", "--dest"}


def messages():
    """Every text of the source but docstrings that names an option, with its module."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and id(node) not in said and name not in FOREIGN:
                text = as_options(node.value)
                if OPTION.search(text):
                    yield name, text


EVERY = {name: options_of(name) for name in COMMANDS}
SAID = list(messages())


def test_options_in_messages_exist():
    known = set().union(*EVERY.values()) | OF_PIP
    lost = [(name, found) for name, text in SAID for found in OPTION.findall(text)
            if found not in known]  # fmt: skip
    assert len(SAID) > 80
    assert not lost


def test_commands_name_their_own_options():
    modules = {}
    for row in (SOURCE / "cli" / "commands.csv").read_text(encoding="utf-8").splitlines():
        name, module = row.split(",")[:2]
        modules.setdefault(f"cli/{module}.py", set()).update(EVERY[name])
    for name, text in SAID:
        for found in OPTION.findall(text) if name in modules else ():
            assert found in modules[name], (name, text)


def test_no_command_hears_of_an_option_that_it_lacks():
    for command, options in EVERY.items():
        for name, text in SAID:
            if name.startswith("cli/"):
                continue
            shown = fitting(text, options)
            assert set(OPTION.findall(shown)) <= options, (command, text, shown)


def test_advice_fits_the_command(sentences):
    refused = "trials, line 7: expected each trial once; duplicates='skip' keeps the first"
    sentences.check(_advised(refused, ["eval", "x"]))
    sentences.check(_advised(refused, ["assess", "x"]))
    lacks = "x.tsv: the trials have no labels; give a key (--key)"
    assert _advised(lacks, ["eval", "x"]) == lacks
    sentences.check(_advised(lacks, ["assess", "a.toml"]))
    leak = "x; LegalProtocol(allow_shared_utterances=True) lets this leak pass"
    sentences.check(_advised(leak, ["legal"]))
    single = "x; um.ImpostorProtocol(skip_single=True) leaves them out"
    sentences.check(_advised(single, ["worstcase"]))


def test_python_is_told_python(sentences):
    with demo_scores() as path:
        scores = um.read_scores(path)
    with pytest.raises(InputError, match=r"protocol=um.ImpostorProtocol\(system=…\)"):
        um.worst_case_study(scores, population=100)
    with pytest.raises(InputError) as error:
        check_single_scores(2, 210, "a-b")
    sentences.check(str(error.value))
    assert um.ImpostorProtocol(system="x", skip_single=True).skip_single
    for option in ("system", "skip_single"):
        with pytest.raises(TypeError) as error:
            um.worst_case_study(scores, **{option: "x"})
        sentences.check(str(error.value))
    with pytest.raises(TypeError) as error:
        um.worst_case_study(scores, zzz=1)
    sentences.check(str(error.value))
