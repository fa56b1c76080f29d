"""Measure how recognisable a voice is: verification, its worst case, and anonymisation.

Numbers of arrays, data and their files, back-ends, one function for each question, and where work
runs. What else there is lies in the rooms ``trials``, ``speech``, ``engine``, ``privacy``,
``stress``, ``utility``, ``assessment`` and ``report``. A name is loaded with its room at first
use: nobody waits for charts who wants an EER. ``__init__.pyi`` says the same to type checkers.
"""

import warnings
from functools import wraps
from importlib import import_module
from inspect import signature
from types import FunctionType
from typing import Any

from unmask._drawing import DRAWERS as _DRAWERS, WRITERS as _WRITERS
from unmask._extras import (
    MissingExtra as _MissingExtra,
    report_extra as _report_extra,
    told_when_called as _told_when_called,
)
from unmask._version import __version__ as __version__
from unmask.errors import InputError as _InputError, UnmaskWarning as UnmaskWarning
from unmask.notices import told as _told

_ROOMS = ("assessment", "engine", "privacy", "report", "speech", "stress", "trials", "utility")
_NAMES = {
    "assessment": "load_config",
    "engine": """
        Battery Roc act_dcf calibrate cllr compare d_sys detection ece eer evaluate forensic fuse
        group_gaps min_cllr min_dcf operating_point tpr_at_fpr zebra
    """,
    "errors": "InputError UnmaskWarning",
    "estimate": "Estimate Interval",
    "privacy": """
        Attacker LegalProtocol assess_attackers attribute_inference compare_safeguards
        compare_sessions extrapolate_linkability linkability linkability_from_scores
        pseudonymisation singling_out within_release zoo
    """,
    "report": "assess document render",
    "run": "overwriting progress run_on",
    "scoring": "Backend Cosine Plda Sides Whitening register_backend score",
    "stress": """
        CpMetric ImpostorProtocol cp_map cp_maps delta_cp_map extrapolate worst_case
        worst_case_false_alarms worst_case_study
    """,
    "trials": """
        Embeddings Ids Scores Trials make_trials read_embeddings read_key read_scores write
    """,
}
_ROOM_OF = {name: f"unmask.{room}" for room, names in _NAMES.items() for name in names.split()}

_FRAMES = ("DataFrame", "LazyFrame")
_ELSEWHERE = dict.fromkeys(("n_boot", "n_bootstrap", "n_resamples", "bootstrap"), "replicates") | {
    "random_state": "seed",
    "rng": "seed",
    "confidence_level": "level",
}

__all__ = sorted([*_ROOM_OF, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"unmask.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'unmask' has no attribute {name!r}")
    try:
        with _report_extra():
            value = getattr(import_module(_ROOM_OF[name]), name)
    except _MissingExtra as error:
        return _told_when_called(error)
    globals()[name] = _telling(value) if isinstance(value, FunctionType) else value
    return globals()[name]


def _telling(function: Any) -> Any:
    """A function that tells its result's warnings as Python does, and refuses options it lacks."""
    name = function.__name__
    of_voices = _ROOM_OF.get(name) == "unmask.privacy" or name == "score"

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if of_voices and any(type(arg).__name__ in _FRAMES for arg in args):
            cure = "a data frame (um.read_embeddings(frame) turns it into embeddings)"
            raise _InputError(name, "embeddings", cure)
        try:
            result = function(*args, **options)
        except AttributeError:
            # A number has none of the attributes of voices or scores.
            bad = next((arg for arg in args if isinstance(arg, (int, float))), None)
            if bad is None:
                raise
            raise _InputError(name, "voices or scores", repr(bad)) from None
        except TypeError as error:
            unknown = str(error).partition("unexpected keyword argument ")[2].strip("'")
            if unknown not in options:
                raise
            raise TypeError(
                f"{name}() has no option {unknown!r}{_near(function, unknown)}"
            ) from None
        notices = getattr(result, "notices", ())
        for line in _told(notice for notice in notices if notice.severity == "warning"):
            warnings.warn(line, UnmaskWarning, stacklevel=2)
        return result

    call.__module__ = __name__
    return call


def _near(function: Any, unknown: str) -> str:
    """The option that somebody may have meant who knows other packages, or mistyped; all options
    where none is near.
    """
    from difflib import get_close_matches

    parameters = signature(function).parameters
    known = [name for name in parameters if name != "options"]
    nested = {}
    for name in ("battery", "protocol"):
        if name in parameters:
            kind = str(parameters[name].annotation).partition(" ")[0]
            of = globals()["__getattr__"](kind) if kind in _ROOM_OF else None
            fields = getattr(of, "__dataclass_fields__", {})
            nested |= dict.fromkeys(fields, f"{name}=um.{kind}")
    near = get_close_matches(unknown, [*known, *nested], 1)
    meant = _ELSEWHERE.get(unknown) or next(iter(near), None)
    if meant in nested:
        return f"; did you mean {nested[meant]}({meant}=…)?"
    options = ", ".join(name for name in known if parameters[name].kind.name == "KEYWORD_ONLY")
    return f"; did you mean {meant!r}?" if meant in known else f"; it has {options}"


def _figures_of(result: Any, layout: dict[str, Any], **options: Any) -> list[Any]:
    """Charts of a result; the report and its charts are loaded when somebody asks."""
    with _report_extra():
        charts = import_module("unmask.figures")
        with charts.layout(**layout):
            drawn = list(import_module("unmask.report").figures_of(result, **options))
        if any(figure.layout != charts.Layout(**layout) for figure in drawn):
            raise _InputError("figures: a report is drawn already: lay out those of each result")
        return drawn


def _document_of(result: Any) -> Any:
    """The document of a result; the room that writes is loaded when somebody asks."""
    with _report_extra():
        return import_module("unmask.report").document(result)


_DRAWERS.append(_figures_of)
_WRITERS.append(_document_of)


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
