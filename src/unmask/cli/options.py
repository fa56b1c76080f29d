"""Options of commands: those that several share are declared once, as fields of a dataclass; what
the help says of each stands in ``options.csv``, by the command or dataclass that has it.
"""

from __future__ import annotations

import csv
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo, ParameterInfo

from unmask.errors import InputError
from unmask.run import check_output, command_files

with Path(__file__).with_name("options.csv").open(encoding="utf-8") as _file:
    _WORDS = {(of, row["option"]): row for row in csv.DictReader(_file) for of in row["of"].split()}


Check = Callable[[Any], None]
"""Refuses an output that may not be written."""


def option(*names: str, default: Any = None, **more: Any) -> Any:
    """An option of a command, by its parameter's name unless ``names`` has others; a letter among
    them, such as ``-o``, stands beside that name. A plain default is an option as well.

    ``more`` goes to :func:`typer.Option`. A parameter of type ``tuple[X, ...]`` may be repeated;
    one that is False unless given can be switched on only.
    """
    return typer.Option(default, *names, **more)


def argument(*, default: Any = ..., **more: Any) -> Any:
    """A word of a command that is no option; ``more`` goes to :func:`typer.Argument`."""
    return typer.Argument(default, **more)


def output_file(*names: str, default: Any = None, **more: Any) -> Any:
    """An option whose value is a file to write; see :func:`option`."""
    return writes(option(*names, default=default, **more), check_output)


def output_folder(
    *names: str, default: Any = None, check: Check = check_output, **more: Any
) -> Any:
    """An option whose value is a folder to write into; ``check`` refuses folders of others."""
    return writes(option(*names, default=default, **more), check)


def writes(parameter: Any, check: Check) -> Any:
    """A parameter whose value is written; every other one is an input, and never overwritten."""
    parameter.check_output = check
    return parameter


def group(**options: Any) -> Any:
    """Default of a parameter whose type is a dataclass, made of its options.

    Offered are the fields of which the table has words, of the command or of the dataclass, unless
    the command has such a parameter itself; one named here with a plain value has that value.
    """
    return options


def rate(value: Any) -> float:
    """Read a rate that is given as a share or in per cent: 0.01, 1% and "1 %" are equal."""
    text = str(value).strip()
    number, is_percent = text.removesuffix("%"), text.endswith("%")
    try:
        # Decimals, since 0.1 / 100 is not the number that 0.001 is.
        return float(Decimal(number.strip()).scaleb(-2)) if is_percent else float(text)
    except (ArithmeticError, ValueError):
        raise typer.BadParameter(f"expected a rate such as 0.01 or 1%, found {value}") from None


_PARSERS: dict[str | None, Callable[[Any], Any]] = {"RATE": rate}
"""How values are read, by the word that stands for them in the help."""


def _worded(name: str, value: Any, homes: Iterable[str]) -> Any:
    """A parameter with the words of the first of its ``homes`` that has some; else as it is."""
    words = next((_WORDS[home, name] for home in homes if (home, name) in _WORDS), None)
    if words is None:
        return value
    usual = (list(value) or None) if isinstance(value, tuple) else value
    made = copy(value) if isinstance(value, ParameterInfo) else typer.Option(usual)
    # Help is shown with markup, where a word in brackets is a style.
    made.help = re.sub(r"\[(?=[a-z#/@])", r"\\[", words["help"])
    made.metavar = words["metavar"] or made.metavar
    made.show_default = words["default"] or made.show_default
    made.parser = _PARSERS.get(words["metavar"], made.parser)
    return made


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of its groups one by one, as typer wants them."""
    offered: dict[str, tuple[Any, Any]] = {}
    groups: dict[str, tuple[Any, dict[str, Any], list[str]]] = {}
    parameters = inspect.signature(command, eval_str=True).parameters
    own = [name for name, one in parameters.items() if not is_dataclass(one.annotation)]
    for name, parameter in parameters.items():
        kind, default = parameter.annotation, parameter.default
        if name in own:
            offered[name] = kind, _worded(name, default, [command.__name__])
        else:
            changes = {} if default is parameter.empty else default
            members, fixed = _members(kind, changes, command.__name__)
            members = {each: member for each, member in members.items() if each not in own}
            groups[name] = kind, fixed, list(members)
            offered |= members
    outputs = {
        name: default.check_output
        for name, (_, default) in offered.items()
        if hasattr(default, "check_output")
    }
    if outputs and "force" not in offered:
        offered["force"] = bool, _worded("force", False, ["output"])
    repeated = {name for name, (kind, _) in offered.items() if get_origin(kind) is tuple}
    given = {
        name: (list[get_args(kind)[0]] if name in repeated else kind, default)  # type: ignore[misc]
        for name, (kind, default) in offered.items()
    }
    for name, (_, default) in given.items():
        if isinstance(default, OptionInfo) and (default.param_decls or default.default is False):
            letters = tuple(default.param_decls or ())
            if not any(letter.startswith("--") for letter in letters):
                default.param_decls = (f"--{name.replace('_', '-')}", *letters)

    def run(**values: Any) -> None:
        values |= {name: tuple(values[name] or ()) for name in repeated}
        inputs = [value for name, value in values.items() if name not in outputs]
        with command_files(_files_named(inputs), force=bool(values.get("force"))):
            for name, check in outputs.items():
                if values[name] is not None:
                    check(values[name])
            _refuse_shared(values, outputs)
            made = {
                name: kind(**fixed, **{each: values[each] for each in names})
                for name, (kind, fixed, names) in groups.items()
            }
            command(**{name: values[name] for name in own}, **made)

    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=kind)
            for name, (kind, value) in given.items()
        ]
    )
    run.__annotations__ = {name: kind for name, (kind, _) in given.items()}
    run.__doc__ = command.__doc__
    run.outputs = tuple(outputs)  # type: ignore[attr-defined]
    return run


def _refuse_shared(values: Mapping[str, Any], outputs: Iterable[str]) -> None:
    """Refuse a file or folder that two options write: the second one would replace the first."""
    places = set()
    for name in outputs:
        if values[name] is None or str(values[name]) == "-":
            continue
        place = os.path.realpath(values[name])
        if place in places:
            problem = "is given for two outputs, of which one would replace the other"
            raise InputError(f"{values[name]}: {problem}; name another")
        places.add(place)


def _files_named(values: Iterable[Any]) -> Iterator[str]:
    """The files and folders that words name: PATH, NAME=PATH, or several with commas."""
    for value in values:
        words = value if isinstance(value, tuple | list) else (value,)
        for word in words:
            if not isinstance(word, str | Path):
                continue
            text = str(word)
            path = text.partition("=")[2]
            yield from (part for part in (text, path, *text.split(","), *path.split(",")) if part)


def _members(
    kind: Any, changes: dict[str, Any], command: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of a group, with types, and the values of its fields that are not offered."""
    hints, offered, fixed = get_type_hints(kind), {}, {}
    homes = (command, *(one.__name__ for one in kind.__mro__))
    for field in fields(kind):
        name, usual = field.name, field.default
        value = changes.get(name, usual)
        if name in changes and not isinstance(value, OptionInfo):
            fixed[name] = value
        elif isinstance(made := _worded(name, value, homes), OptionInfo):
            if made.default is None and not isinstance(usual, OptionInfo):
                made.default = (list(usual) or None) if isinstance(usual, tuple) else usual
            offered[name] = hints[name], made
    return offered, fixed
