"""Options of commands: those that several share are declared once, as fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo


def option(help: str, *names: str, default: Any = None, **more: Any) -> Any:
    """An option of a command, by its parameter's name unless ``names`` has others; a letter among
    them, such as ``-o``, stands beside that name.

    ``more`` goes to :func:`typer.Option`. A parameter of type ``tuple[X, ...]`` may be repeated;
    one that is False unless given can be switched on only.
    """
    return typer.Option(default, *names, help=help, **more)


def argument(help: str, metavar: str | None = None, *, default: Any = ..., **more: Any) -> Any:
    """A word of a command that is no option; ``more`` goes to :func:`typer.Argument`."""
    return typer.Argument(default, metavar=metavar, help=help, **more)


def group(**options: Any) -> Any:
    """Default of a parameter whose type is a dataclass, made of its options.

    Offered are the fields that are options where they are declared, and those named here; a field
    named here with a plain value has that value and is not offered.
    """
    return options


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of its groups one by one, as typer wants them."""
    offered: dict[str, tuple[Any, Any]] = {}
    groups: dict[str, tuple[Any, dict[str, Any], list[str]]] = {}
    own = []
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        kind, default = parameter.annotation, parameter.default
        if is_dataclass(kind):
            members, fixed = _members(kind, {} if default is parameter.empty else default)
            groups[name] = kind, fixed, list(members)
            offered |= members
        else:
            offered[name] = kind, default
            own.append(name)
    repeated = {name for name, (kind, _) in offered.items() if get_origin(kind) is tuple}
    given = {
        name: (list[get_args(kind)[0]] if name in repeated else kind, default)  # type: ignore[misc]
        for name, (kind, default) in offered.items()
    }
    for name, (_, default) in given.items():
        if isinstance(default, OptionInfo) and (default.param_decls or default.default is False):
            letters = tuple(default.param_decls or ())
            if not any(one.startswith("--") for one in letters):
                default.param_decls = (f"--{name.replace('_', '-')}", *letters)

    def run(**values: Any) -> None:
        values |= {name: tuple(values[name] or ()) for name in repeated}
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
    return run


def _members(kind: Any, changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of a group, with types, and the values of its fields that are not offered."""
    hints = get_type_hints(kind)
    known: dict[str, Any] = {field.name: field.default for field in fields(kind)}
    offered, fixed = {}, {}
    for name, value in (known | changes).items():
        if isinstance(value, OptionInfo):
            usual = known[name]
            if value.default is None and not isinstance(usual, OptionInfo):
                value = copy(value)
                value.default = (list(usual) or None) if isinstance(usual, tuple) else usual
            offered[name] = hints[name], value
        elif name in changes:
            fixed[name] = value
    return offered, fixed
