"""Pseudo-voices over sessions: distinct within one, not linkable between two.

Both papers name this as open: within a session (one teleconference) protected voices should stay
distinct, between sessions they should not be linkable to each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.engine import negated_notices
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice
from unmask.privacy.similarity.matrix import Comparisons, similarity_sets
from unmask.privacy.similarity.pairs import Segments, prepared
from unmask.privacy.similarity.result import Assessment
from unmask.privacy.similarity.statistic import (
    LARGEST_D_ECE,
    Setup,
    Statistic,
    decibels,
    gain,
    lost,
    ratio,
)
from unmask.scoring import Backend, Rule, backend_named
from unmask.trials import Embeddings


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SessionAssessment(Assessment):
    """Voice distinctiveness within sessions and linkability between them; made by :func:`sessions`.

    ``sets`` holds the similarity sets of original (``oo``) and protected (``pp``) segments over the
    pairs ``within`` a session and ``between`` two, each calibrated on its own: ``oo_within``, ….
    """

    sessions: int

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
            self._estimate("d_ece_between", between.zebra.d_ece, "bit", "pp_between", 0.0),
            self._estimate("l_w_between", between.zebra.l_w, "", "pp_between", 0.0),
            self._estimate("tag_between", between.zebra.tag, "", "pp_between"),
            self._estimate("eer_between", between.roc.eer(), "%", "pp_between", 0.5),
        )

    def _estimate(
        self, metric: str, value: float | str, unit: str, name: str, chance: float | None = None
    ) -> Estimate:
        own = self.sets[name]
        params = {
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
        return (*notices, *self._few())


def sessions(
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

    Every speaker needs two segments in one session and segments in two sessions. The ``original``
    segments of the same pairs are the reference, so that what sessions do to unprotected speech
    (room, day, microphone) is not laid to the safeguard. ``backend``, ``mean``, ``replicates``,
    ``level`` and ``seed`` as in :func:`pseudonymisation`.
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
    codes = protected.sessions.codes[order].astype(np.int64)
    _refuse_missing(segments, codes)
    rules = {"within": Rule(codes, "=="), "between": Rule(codes, "!=")}
    pairs = {
        f"{name}_{kind}": segments.pairs(own, rule)
        for kind, rule in rules.items()
        for name, own in (("oo", o), ("pp", p))
    }
    made = similarity_sets(pairs, setup, once=tuple(pairs))
    for name in ("oo_within", "oo_between"):
        if made.sets[name].d_diag == 0:
            raise InputError(f"{name}: D_diag is 0, original voices cannot be told apart")
    return SessionAssessment(
        sets=made.sets,
        intervals=setup.intervals(_statistics(made) if made.plain else {}, segments.size),
        backend=scorer.name,
        sessions=protected.sessions.n_unique,
        replicates=replicates,
        level=level,
        seed=seed,
    )


def _statistics(made: Comparisons) -> dict[str, Statistic]:
    """What intervals are made from, by metric."""
    sets, drawn, number = made.sets, made.plain, made.setup.replicates

    def over_original(kind: str) -> tuple[float, FloatArray]:
        pp, oo = f"pp_{kind}", f"oo_{kind}"
        return ratio(sets[pp].signed, sets[oo].signed, drawn[pp].signed, drawn[oo].signed)

    own, between = sets["pp_between"], drawn["pp_between"]
    evidence = Statistic(own.signed, between.signed, number, bounds=(-1.0, 1.0))
    bits, half = (0.0, LARGEST_D_ECE), (0.0, 0.5)
    return {
        "g_vd_within": Statistic(*over_original("within"), number, decibels),
        "unlinkability_between": Statistic(*over_original("between"), number, lost),
        "d_ece_between": Statistic(
            own.zebra.d_ece, between.d_ece, number, bounds=bits, evidence=evidence
        ),
        "eer_between": Statistic(
            own.roc.eer(), between.eer, number, bounds=half, evidence=evidence, chance=0.5
        ),
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
