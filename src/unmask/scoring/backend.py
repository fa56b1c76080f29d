"""Back-ends that can be named: one table of how each is fitted, and of what that needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, length_normalised
from unmask.errors import InputError
from unmask.run import one_blas_thread, store
from unmask.scoring.alignment import (
    align_by_coral,
    align_by_pairs,
    align_by_wasserstein,
    align_by_whitening,
)
from unmask.scoring.cosine import AsNorm, Cosine, Projected, Whitening, as_vectors
from unmask.scoring.plda import Plda
from unmask.scoring.sides import Backend, Sides, sides_of
from unmask.trials import Embeddings

WORDS = "words"
"""The attack by words alone, and the column of embeddings that numbers what is said."""
BESIDE = f" + {WORDS}"
"""Ends the name of a back-end that compares voices, with words beside them."""
LENGTH = "length"
"""The attack by the length of the vectors, a channel next to their direction."""
NO_VOICE = f"no voice{BESIDE}"
"""Words next to a voice of weight 0: words alone, as an attack that competes."""
Needs = Literal["nothing", "training", "attacked", "pairs"]
Parallel = tuple[Embeddings, Embeddings]
"""Training speech as it is enrolled, and the same as it is protected."""
_MISSING = {
    "training": "embeddings to train on",
    "attacked": "enrolment speech and attacked speech",
    "pairs": "pairs of original and protected training speech",
}
_kept: dict[str, Any] = {}
"""What was fitted last, by the content of what it was fitted on."""
_MOST_KEPT = 8


@dataclass(frozen=True)
class Named:
    """A back-end by its name; ``needs`` says what ``fit`` is given (:func:`register_backend`).

    One that ``aligns`` gives two maps of vectors, of enrolment and of attacked speech. People whom
    it was trained on must not be attacked where they must be ``apart``. ``token`` tells apart what
    was registered under one name: nobody can see what a function will do.
    """

    name: str
    fit: Callable[..., Any]
    needs: Needs = "nothing"
    aligns: bool = False
    apart: bool = False
    token: str = ""

    @property
    def built_in(self) -> bool:
        """Whether it is of the package."""
        return not self.token

    @property
    def is_free(self) -> bool:
        """Whether it needs no training speech."""
        return self.needs in ("nothing", "attacked")


BACKENDS: dict[str, Named] = {
    one.name: one
    for one in (
        Named("cosine", Cosine),
        Named("centred", Projected.centred, "training"),
        Named("wccn", Whitening.fit, "training"),
        Named("lda", Projected.lda, "training"),
        Named("plda", Plda.fit, "training"),
        Named("whitened", align_by_whitening, "attacked", aligns=True),
        Named("coral", align_by_coral, "attacked", aligns=True),
        Named("wasserstein", align_by_wasserstein, "attacked", aligns=True),
        Named("procrustes", align_by_pairs, "pairs", aligns=True, apart=True),
        Named("asnorm", AsNorm.fit, "training", apart=True),
    )
}


def known_backend(name: str) -> Named:
    """The back-end of a name; with words beside the voice, what compares the voice."""
    if name in (NO_VOICE, LENGTH):
        return Named(name, Cosine)
    voice = name.removesuffix(BESIDE)
    if voice not in BACKENDS:
        raise InputError("back-end", f"{', '.join(BACKENDS)} or a file (npz)", name)
    return BACKENDS[voice] if voice == name else replace(BACKENDS[voice], name=name)


def register_backend(
    name: str,
    fit: Callable[..., Any],
    *,
    needs: Needs = "nothing",
    aligns: bool = False,
    apart: bool = False,
) -> None:
    """Let a back-end of one's own be named, in functions, attackers, config files and commands.

    Parameters
    ----------
    name : str
        Its name; one that was registered before is replaced, those of the package are not.
    fit : callable
        Gives a :class:`Backend`, called with what it needs.
    needs : {"nothing", "training", "attacked", "pairs"}
        ``training``: embeddings of the attacker's own, with names. ``attacked``: the embeddings
        that are enrolled, then the vectors that are attacked, without names. ``pairs``: both of
        these, then training embeddings (or None), then two sets of the same training utterances,
        as they are enrolled and as they are protected.
    aligns : bool
        ``fit`` gives two functions of vectors instead, for enrolment and for attacked speech: both
        are mapped, averaged and compared by cosine.
    apart : bool
        The training people must not be attacked.

    Examples
    --------
    >>> import unmask as um
    >>> um.register_backend("my-cosine", um.Cosine)
    >>> voices = um.Embeddings([[1, 0], [1, 1], [0, 1]], ["ann", "ann", "bob"])
    >>> um.evaluate(voices, backend="my-cosine", replicates=0)["eer"].n["target"]
    1
    """
    if name in BACKENDS and BACKENDS[name].built_in:
        raise InputError("back-end", "a name that is free", name)
    if needs not in ("nothing", *_MISSING):
        raise InputError("needs", f"nothing, {', '.join(_MISSING)}", needs)
    BACKENDS[name] = Named(name, fit, needs, aligns, apart or needs == "pairs", token_hex(8))


def fitted(
    name: str,
    *,
    train: Embeddings | None = None,
    enrol: Embeddings | None = None,
    test: Embeddings | None = None,
    pairs: Parallel | None = None,
    **options: Any,
) -> Any:
    """What the ``fit`` of a name gives: a back-end, or two maps where it aligns."""
    named = known_backend(name)
    attacked = None if test is None else test.vectors
    data: dict[str, tuple[Any, ...]] = {
        "nothing": (),
        "training": (train,),
        "attacked": (enrol, attacked),
        "pairs": (enrol, attacked, train, pairs),
    }
    given = data[named.needs]
    if given and given[-1] is None:
        raise InputError(f"back-end {name}", _MISSING[named.needs], "none")
    with one_blas_thread():
        if options or named.apart or not named.built_in:
            return named.fit(*given, **options)
        told = [(d.vectors, d.speakers.codes) if hasattr(d, "speakers") else d for d in given]
        key = store.digest(told, name)
        try:
            _kept[key] = made = _kept.pop(key, None) or named.fit(*given)
        except np.linalg.LinAlgError as error:
            wanted = "training speech that varies in every direction"
            raise InputError(f"back-end {name}", wanted, str(error)) from None
        for first in [*_kept][:-_MOST_KEPT]:
            _kept.pop(first, None)
        return made


def backend_named(
    backend: Backend | str | Path, train: Embeddings | None = None, **options: Any
) -> Backend:
    """A back-end as it is, one that was saved (npz), or one by name, trained on ``train`` where it
    needs that with the ``options`` of its ``fit``.
    """
    if not isinstance(backend, str | Path):
        if not all(hasattr(backend, part) for part in ("name", "sides")):
            wanted = "a name, a file, or an object with a name and sides(vectors)"
            raise InputError("back-end", wanted, type(backend).__name__)
        return backend
    if Path(backend).suffix == ".npz":
        return Plda.load(backend)
    made: Backend = fitted(str(backend), train=train, **options)
    return made


@dataclass(frozen=True, eq=False)
class Fused:
    """Σ w_k·s_k: the sum of the scores of ``members``, each times its weight.

    With ``ends`` each member compares its own columns, up to its end, of the vectors.
    """

    members: Sequence[Backend]
    weights: FloatArray
    name: str = "fusion"
    ends: Sequence[int] = ()

    def sides(self, vectors: npt.ArrayLike) -> Sides:
        """The rows of all members beside each other, those of enrolment times the weight."""
        parts: Sequence[npt.ArrayLike] = [vectors] * len(self.members)
        if self.ends:
            parts = np.split(as_vectors(vectors), self.ends[:-1], axis=1)
        rows = [sides_of(backend, part) for backend, part in zip(self.members, parts, strict=True)]
        left = [w * sides.enrol for w, sides in zip(self.weights, rows, strict=True)]
        return Sides(np.hstack(left), np.hstack([sides.test for sides in rows]))


@dataclass(frozen=True, eq=False)
class ByGroup:
    """A back-end for each group of people, which nobody shares scores with another by.

    A vector x of group g is given as (x/‖x‖, e_g), one more column for each of the ``members``: the
    average of utterances of one person keeps the direction of x and the group. Rows of different
    groups have no meaning beside each other.
    """

    members: Sequence[Backend]
    name: str

    def sides(self, vectors: npt.ArrayLike) -> Sides:
        """Rows of each group by its own back-end, filled up to one width."""
        given = as_vectors(vectors)
        size = given.shape[1] - len(self.members)
        own = given[:, size:] > 0
        # Where a group has no rows, another's tell how wide they are.
        rows = [np.flatnonzero(of) if of.any() else np.array([0]) for of in own.T]
        made = [
            sides_of(backend, length_normalised(given[some, :size]))
            for backend, some in zip(self.members, rows, strict=True)
        ]
        sides = np.zeros((2, len(given), max(one.enrol.shape[1] for one in made)))
        for of, some, one in zip(own.T, rows, made, strict=True):
            if of.any():
                sides[0, some, : one.enrol.shape[1]] = one.enrol
                sides[1, some, : one.test.shape[1]] = one.test
        return Sides(*sides)
