"""Pseudo-voices over sessions: distinct within one, not linkable between two.

Both papers name this as open: within a session (one teleconference) protected voices should stay
distinct, between sessions they should not be linkable to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, Groups, IntArray, Vectors, in_order
from unmask.engine import negated_notices
from unmask.errors import InputError
from unmask.estimate import Estimate, Luck, Notice
from unmask.privacy.attack import (
    ALIGNMENTS,
    CENTRED,
    LEAST_SPEAKERS,
    NEGATED,
    PLAIN,
    Attacker,
    with_backends,
    within_release,
)
from unmask.privacy.luck import Permuted, best_by_luck
from unmask.privacy.recordings import ExchangedPeople, Parts, of_people
from unmask.privacy.similarity.attackers import LEAST_DIFFERENCE
from unmask.privacy.similarity.intervals import (
    Ends,
    Setup,
    Statistic,
    decibels,
    gain,
    lost,
)
from unmask.privacy.similarity.matrix import AttackedMatrix, Comparisons, similarity_sets
from unmask.privacy.similarity.pairs import Segments, prepared
from unmask.privacy.similarity.renamed import SIGNED, renamed_between
from unmask.privacy.similarity.result import SimilarityResult
from unmask.scoring import (
    Alignment,
    Backend,
    PairGrid,
    Rule,
    Sides,
    backend_named,
    centring,
    sides_of,
    wasserstein_procrustes,
    whitening,
)
from unmask.trials import Embeddings, Ids

if TYPE_CHECKING:
    from unmask.privacy.legal import Strongest


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SessionAssessment(SimilarityResult):
    """Voice distinctiveness within sessions and linkability between them.

    :func:`compare_sessions` makes it. ``sets`` holds the similarity sets of original (``oo``) and
    protected (``pp``) segments over the pairs ``within`` a session and ``between`` two, each
    calibrated on its own: ``oo_within``, …. ``attacks`` has unlinkability for every way to read the
    scores between sessions: plain, negated, each session about its own mean, whitened, and turned
    onto the largest. ``linked`` is Linkability between sessions, each person leaving out whole
    sessions in turn, ``linked_within`` that among the recordings of the largest, each under its
    strongest attack; ``luck`` what the least unlinkability of all attacks reads with names permuted
    in each session.
    """

    sessions: int
    attacks: Mapping[str, float]
    linked: Strongest | None = None
    linked_within: Strongest | None = None
    luck: Luck | None = None
    notes: tuple[Notice, ...] = ()

    @property
    def attacker(self) -> str:
        """The reading that leaves least unlinkability."""
        return min(self.attacks, key=lambda name: self.attacks[name])

    @property
    def g_vd_within(self) -> float:
        """10·log10(D_diag(PP)/D_diag(OO)) over pairs of one session, in dB: should stay near 0."""
        return float(gain(self.sets["pp_within"].d_diag, self.sets["oo_within"].d_diag))

    @property
    def unlinkability_between(self) -> float:
        """1 − D_diag(PP)/D_diag(OO) over pairs of two sessions: should reach 1."""
        return 1 - self.sets["pp_between"].d_diag / self.sets["oo_between"].d_diag

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Distinctiveness within, unlinkability between, and what pairs between disclose."""
        between = self.sets["pp_between"]
        return (
            self._estimate("g_vd_within", self.g_vd_within, "dB", "pp_within"),
            self._estimate("unlinkability_between", self.unlinkability_between, "%", "pp_between"),
            replace(
                self._estimate(
                    "unlinkability_strongest",
                    self.attacks[self.attacker],
                    "%",
                    "pp_between",
                    attacker=self.attacker,
                    tried=len(self.attacks),
                ),
                luck=self.luck,
            ),
            *_linked(within=self.linked_within, between=self.linked),
            self._estimate("d_ece_between", between.zebra.d_ece, "bit", "pp_between", 0.0),
            self._estimate("l_w_between", between.zebra.l_w, "", "pp_between", 0.0),
            self._estimate("tag_between", between.zebra.tag, "", "pp_between"),
            self._estimate("eer_between", between.roc.eer(), "%", "pp_between", 0.5),
        )

    def _estimate(
        self,
        metric: str,
        value: float | str,
        unit: str,
        name: str,
        chance: float | None = None,
        **told: str | int,
    ) -> Estimate:
        own = self.sets[name]
        params = {
            **told,
            "set": name,
            "mean": own.mean,
            "backend": self.backend,
            "bins": own.bins or None,
            "partners": own.partners or None,
        }
        compared = int((own.sums.count > 0).sum()) - len(own.speakers)
        n = {"sessions": self.sessions, "speaker_pairs": compared}
        return self._number(metric, value, unit, own, chance, params, **n)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Negated scores that disclose more, pairs of speakers who share no session, and few
        speakers.
        """
        notices = []
        for name, own in self.sets.items():
            notices += [notice.about(name) for notice in negated_notices(own.roc)]
            speakers = len(own.speakers)
            missing = int((own.sums.count == 0).sum())
            if missing:
                sentence = (
                    f"{missing} of {speakers * (speakers - 1)} ordered pairs of speakers have no"
                    " comparison and do not count"
                )
                notices.append(Notice("not-compared", name, sentence))
        lowest = self.attacks[self.attacker]
        if self.unlinkability_between - lowest >= LEAST_DIFFERENCE:
            sentence = (
                f"read {self.attacker}, unlinkability is {100 * lowest:.1f} % instead of"
                f" {100 * self.unlinkability_between:.1f} %"
            )
            notices.append(Notice("stronger-reading", "between sessions", sentence))
        return (*notices, *self.notes, *self._few())


def _linked(**found: Strongest | None) -> Iterator[Estimate]:
    """Linkability within and between sessions, with the names of the strongest attacks."""
    for where, strongest in found.items():
        if strongest is not None:
            params = {**strongest.estimate.params, "attacker": strongest.attacker}
            yield replace(strongest.estimate, metric=f"linkability_{where}", params=params)


def compare_sessions(
    original: Embeddings,
    protected: Embeddings,
    *,
    backend: Backend | str = "cosine",
    mean: str = "geometric",
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> SessionAssessment:
    """Assess pseudo-voices within and between the sessions named on the protected segments.

    G_VD over pairs of one session, and unlinkability 1 − D_diag(PP)/D_diag(OO) over pairs of two
    (Noé 2022, eq. 8 to 10). The original segments of the same pairs are the reference, so that what
    sessions do to unprotected speech (room, day, microphone) is not laid to the safeguard.

    Parameters
    ----------
    original, protected
        Embeddings; every speaker needs two segments in one session and segments in two sessions.
    backend, mean, replicates, level, seed
        Those of :func:`pseudonymisation`.

    Returns
    -------
    SessionAssessment
        ``g_vd_within`` (dB) should stay near 0, ``unlinkability_between`` should reach 1.

    Examples
    --------
    >>> import numpy as np
    >>> import unmask as um
    >>> rng = np.random.default_rng(0)
    >>> who, when = np.repeat(list("abcdefgh"), 6), np.tile(list("xxxyyy"), 8)
    >>> voices = rng.normal(size=(8, 16)).repeat(6, axis=0)
    >>> pseudo = rng.normal(size=(16, 16)).repeat(3, axis=0)  # another voice in each session
    >>> original, protected = (
    ...     um.Embeddings(voice + rng.normal(size=(48, 16)) / 2, who, sessions=when)
    ...     for voice in (voices, pseudo)
    ... )
    >>> result = um.compare_sessions(original, protected, replicates=0)
    >>> print(f"{result.g_vd_within:.2f} dB, {result.unlinkability_between:.2f}")
    -0.02 dB, 0.98
    """
    setup = Setup(replicates, level, seed, mean)
    scorer = backend_named(backend)
    if protected.sessions is None:
        raise InputError("sessions: expected a session for every protected segment, found none")
    both = np.stack([protected.sessions.codes, protected.speakers.codes])
    if np.unique(both, axis=1).shape[1] == protected.sessions.n_unique:
        raise InputError(
            "sessions: expected two speakers or more in some session, found one in each: voices"
            " within a session cannot be compared"
        )
    segments, order, o, p = prepared(scorer, original, protected)
    codes = protected.sessions.alphabetical().codes[order].astype(np.int64)
    _refuse_missing(segments, codes)
    rules = {"within": Rule(codes, "=="), "between": Rule(codes, "!=")}
    pairs = {
        f"{name}_{kind}": [segments.pairs(own, rule)]
        for kind, rule in rules.items()
        for name, own in (("oo", o), ("pp", p))
    }
    rows = protected.vectors[order]
    read, notes = _readings(rows, codes, segments.codes)
    for reading, vectors in read.items():
        sides = sides_of(backend_named("cosine"), vectors)
        pairs[f"pp_between, {reading}"] = [segments.pairs(sides, rules["between"])]
    attacked = [name for name in pairs if name.startswith("pp_between")]
    made = similarity_sets(pairs, setup, negated=attacked, once=tuple(pairs))
    made.check_original("oo_within", "oo_between")
    whole = made.sets["oo_between"].d_diag
    read_so: dict[str, AttackedMatrix] = {}
    for name in attacked:
        label = name.removeprefix("pp_between, ") if name != "pp_between" else str(PLAIN)
        opposite = str(NEGATED) if label == PLAIN else f"{label} {NEGATED}"
        read_so |= zip((label, opposite), made.readings[name], strict=True)
    strongest = max(read_so.values(), key=lambda matrix: abs(matrix.signed))
    luck, statistics = None, {}
    if replicates:
        luck = _luck([pairs[name][0] for name in attacked], codes, whole, mean, seed)
        statistics = _statistics(made, strongest)
    linked_within, linked = _linked_largest(protected, protected.sessions, setup)
    return SessionAssessment(
        sets=made.sets,
        intervals=setup.intervals(statistics, segments.size),
        attacks={label: 1 - abs(matrix.signed) / whole for label, matrix in read_so.items()},
        linked=linked,
        linked_within=linked_within,
        luck=luck,
        notes=notes,
        backend=scorer.name,
        sessions=protected.sessions.n_unique,
        **setup.options,
    )


def _luck(
    attacks: Sequence[PairGrid], sessions: IntArray, whole: float, mean: str, seed: int
) -> Luck | None:
    """What luck reads of the least unlinkability: names are permuted in each session by itself."""
    # Names are drawn in their own order, not in that of rows.
    speakers = in_order(attacks[0].enrol.names)[attacks[0].enrol.codes]
    order = np.lexsort((sessions, speakers))
    both = np.stack([speakers[order], sessions[order]])
    units, codes = np.unique(both, axis=1, return_inverse=True)
    blind: list[Permuted] = []
    for one in attacks:
        assert isinstance(one.source, Sides)
        rule, groups = Rule(sessions[order], "!="), Groups(codes.reshape(-1))
        grid = replace(one, source=one.source.take(order), enrol=groups, test=groups, which=rule)
        blind += renamed_between(grid, *units, mean=mean, seed=seed) or ()
    if not blind:
        return None
    most = np.max([permuted.values[:, SIGNED] for permuted in blind], axis=0)
    return best_by_luck(1 - most / whole, blind, least=True)


def _readings(
    vectors: Vectors, sessions: IntArray, speakers: npt.NDArray[np.integer[Any]]
) -> tuple[dict[str, FloatArray], tuple[Notice, ...]]:
    """Protected vectors with each session centred, whitened, or turned onto the largest."""
    names, sizes = np.unique(sessions, return_counts=True)
    people = [len(np.unique(speakers[sessions == name])) for name in names]
    if min(people) < LEAST_SPEAKERS:
        sentence = (
            f"sessions of fewer than {LEAST_SPEAKERS} speakers cannot be read about their own mean:"
            " scores between sessions are read plain and negated only"
        )
        return {}, (Notice("not-centred", "between sessions", sentence),)
    largest = vectors[sessions == names[int(sizes.argmax())]]
    read: dict[str, Callable[[Vectors], Alignment]] = {
        str(CENTRED): centring,
        "whitened": whitening,
        "wasserstein": lambda rows: wasserstein_procrustes(rows, largest),
    }
    made = {name: np.empty(vectors.shape) for name in read}
    for (name, fit), session in product(read.items(), names):
        here = sessions == session
        made[name][here] = fit(vectors[here]).apply(vectors[here])
    return made, ()


def _linked_largest(
    protected: Embeddings, sessions: Ids, setup: Setup
) -> tuple[Strongest | None, Strongest | None]:
    """Linkability from one recording by the strongest attack, within the largest session and
    between sessions; None where too few have two there.

    Between sessions everybody leaves out whole sessions in turn; the two largest are also compared
    with each other, both ways, since an attacker may take the mean off each by itself.
    """
    from unmask.privacy.legal import assess_attackers

    largest = _largest(sessions)[:2]
    sides = [protected.select(sessions.codes == one) for one in largest]
    attacks: list[dict[str, Attacker]] = [{}, {}]
    if (np.unique(sides[0].speakers.codes, return_counts=True)[1] > 1).sum() > 1:
        attacks[0]["within"] = within_release(sides[0])
    pairs = np.unique(np.stack([protected.speakers.codes, sessions.codes]), axis=1)
    if (np.bincount(pairs[0]) > 1).sum() > 1:
        attacks[1]["sessions"] = within_release(protected, parts=Parts.SESSIONS)
    shared = set(sides[0].speakers.present) & set(sides[1].speakers.present)
    exchanged = ExchangedPeople.of(protected)
    for a, b in ((0, 1), (1, 0)) if len(shared) > 1 else ():
        label = " to ".join(str(sessions.names[int(largest[one])]) for one in (a, b))
        enrol, test = sides[a], of_people(sides[b], shared)
        # The same people are exchanged in all attacks: the largest of them is chosen.
        attacks[1][label] = Attacker(enrol, test, release=True, split=exchanged)
    found: list[Strongest | None] = []
    for some in attacks:
        tried = with_backends(some, ("cosine", *ALIGNMENTS))
        how: Any = {"lengths": [1], "metrics": ["linkability"], **setup.options}
        found.append(assess_attackers(tried, **how).worst("linkability") if tried else None)
    return found[0], found[1]


def _largest(sessions: Ids) -> list[int]:
    """Sessions from most to fewest recordings, equal ones by name."""
    sizes, names = np.bincount(sessions.codes, minlength=len(sessions.names)), sessions.names
    return sorted(range(len(names)), key=lambda code: (-int(sizes[code]), str(names[code])))


def _statistics(made: Comparisons, strongest: AttackedMatrix) -> dict[str, Statistic]:
    """What intervals are made from, by metric."""
    within, own = (made.readings[f"pp_{kind}"][0] for kind in ("within", "between"))

    def over(one: AttackedMatrix, kind: str, read: Callable[[Ends], Ends]) -> Statistic:
        drawn, separates = one.draws.signed, one.separates_everybody
        return made.over_oo(one.signed, drawn, read, f"oo_{kind}", separates_everybody=separates)

    return {
        "g_vd_within": over(within, "within", decibels),
        "unlinkability_between": over(own, "between", lost),
        "unlinkability_strongest": over(strongest, "between", lost),
        **dict(zip(("d_ece_between", "eer_between"), made.disclosed(own), strict=True)),
    }


def _refuse_missing(segments: Segments, codes: IntArray) -> None:
    """Every speaker needs two segments in one session, and segments in two sessions."""
    each = np.stack([segments.codes, codes])
    (speaker, _), counts = np.unique(each, axis=1, return_counts=True)
    most = np.zeros(segments.size, dtype=np.int64)
    np.maximum.at(most, speaker, counts)
    for needed, missing in (
        ("two segments in one session", most < 2),
        ("segments in two sessions", np.bincount(speaker) < 2),
    ):
        if missing.any():
            first = segments.names[int(missing.argmax())]
            raise InputError(f"speaker {first} lacks {needed} ({missing.sum()} such speakers)")
