"""Pseudo-voices over sessions: distinct within one, not linkable between two.

Both papers name this as open: within a session (one teleconference) protected voices should stay
distinct, between sessions they should not be linkable to each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from unmask.base import FloatArray, few_speakers
from unmask.engine import negated_warnings
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval
from unmask.privacy.similarity.align import aligned
from unmask.privacy.similarity.intervals import (
    NOT_ASKED,
    SAME,
    WITH_TRIALS,
    Statistic,
    decibels,
    gain,
    interval_of,
    lost,
    ratio,
    resamples,
)
from unmask.privacy.similarity.matrix import SimilaritySet, similarity_sets
from unmask.privacy.similarity.pairs import EmbeddingPairs, Pairs, Sessions, prepared
from unmask.privacy.similarity.sets import check_backend
from unmask.run import Where
from unmask.scoring import Backend, resolve
from unmask.trials import Embeddings


@dataclass(frozen=True, eq=False)
class SessionAssessment:
    """Voice distinctiveness within sessions and linkability between them.

    ``sets`` holds the similarity sets of original (``oo``) and protected (``pp``) segments over the
    pairs ``within`` a session and ``between`` two, each calibrated on its own: ``oo_within``, ….
    """

    sets: Mapping[str, SimilaritySet]
    backend: str
    sessions: int
    replicates: int = 1000
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("oo_within", "oo_between"):
            if self.sets[name].d_diag == 0:
                raise InputError(f"{name}: D_diag is 0, original voices cannot be told apart")

    @property
    def g_vd_within(self) -> float:
        """10·log10(D_diag(PP)/D_diag(OO)) over pairs of one session, in dB: should stay near 0."""
        return float(gain(self.sets["pp_within"].d_diag, self.sets["oo_within"].d_diag))

    @property
    def unlinkability_between(self) -> float:
        """1 − D_diag(PP)/D_diag(OO) over pairs of two sessions: should reach 1."""
        return 1 - self.sets["pp_between"].d_diag / self.sets["oo_between"].d_diag

    @cached_property
    def _statistics(self) -> Mapping[str, Statistic]:
        """What intervals are made from, by metric; nothing where no replicates were asked for."""
        between = self.sets["pp_between"]
        if between.resampled is None:
            return {}
        evidence = Statistic(
            between.signed, between.resampled.signed, self.replicates, bounds=(-1.0, 1.0)
        )
        return {
            "g_vd_within": Statistic(*self._over_original("within"), self.replicates, decibels),
            "unlinkability_between": Statistic(
                *self._over_original("between"), self.replicates, lost
            ),
            "d_ece_between": Statistic(
                between.zebra.d_ece,
                between.resampled.d_ece,
                self.replicates,
                bounds=(0.0, 1 / (2 * np.log(2))),
                evidence=evidence,
            ),
            "eer_between": Statistic(
                between.roc.eer(),
                between.resampled.eer,
                self.replicates,
                bounds=(0.0, 0.5),
                evidence=evidence,
                chance=0.5,
            ),
        }

    def _over_original(self, kind: str) -> tuple[float, FloatArray]:
        pp, oo = self.sets[f"pp_{kind}"], self.sets[f"oo_{kind}"]
        assert pp.resampled is not None
        assert oo.resampled is not None
        return ratio(pp.signed, oo.signed, pp.resampled.signed, oo.resampled.signed)

    def interval(self, metric: str) -> Interval | None:
        """Interval of any metric of :attr:`estimates`, where it has one."""
        return interval_of(
            self._statistics.get(metric),
            speakers=len(self.sets["oo_within"].speakers),
            level=self.level,
            replicates=self.replicates,
            seed=self.seed,
        )

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
        interval = self.interval(metric)
        reason = ""
        if interval is None:
            known = {"l_w_between": WITH_TRIALS, "tag_between": WITH_TRIALS}
            reason = known.get(metric, SAME if self.replicates else NOT_ASKED)
        own = self.sets[name]
        compared = int((own.sums.count > 0).sum()) - len(own.speakers)
        return Estimate(
            metric,
            value,
            unit,
            interval=interval,
            chance=chance,
            n={
                "target": round(own.roc.targets),
                "nontarget": round(own.roc.nontargets),
                "speakers": len(own.speakers),
                "sessions": self.sessions,
                "speaker_pairs": compared,
            },
            params={
                "set": name,
                "mean": own.mean,
                "backend": self.backend,
                "bins": own.bins or None,
                "partners": own.partners or None,
            },
            no_interval=reason,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Negated scores that disclose more, and pairs of speakers who share no session."""
        told = []
        for name, own in self.sets.items():
            told += [f"{name}: {text}" for text in negated_warnings(own.roc, own.roc.negated())]
            speakers = len(own.speakers)
            missing = int((own.sums.count == 0).sum())
            if missing:
                told.append(
                    f"{name}: {missing} of {speakers * (speakers - 1)} ordered pairs of speakers"
                    " have no comparison and do not count"
                )
        few = few_speakers(len(self.sets["oo_within"].speakers)) if self.replicates else None
        return (*told, *([few] if few else []))


def assess_sessions(
    original: Embeddings,
    protected: Embeddings,
    *,
    backend: Backend | str = "cosine",
    mean: str = "geometric",
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
) -> SessionAssessment:
    """Assess pseudo-voices within and between the sessions named on the protected segments.

    Every speaker needs two segments in one session and segments in two sessions. The original
    segments of the same pairs are the reference, so that what sessions do to unprotected speech
    (room, day, microphone) is not laid to the safeguard. ``on``, ``workers`` and ``state`` as in
    :func:`pseudonymisation_from_embeddings`.
    """
    where = Where(on, workers, state)
    scorer = resolve(backend)
    check_backend(scorer, where)
    if protected.sessions is None:
        raise InputError("sessions: expected a session for every protected segment, found none")
    segments, protected_order = aligned(original, protected)
    order = protected_order[segments.order]
    rows = {
        "oo": prepared(scorer, original, segments.order),
        "pp": prepared(scorer, protected, order),
    }
    codes = protected.sessions.codes[order].astype(np.int64)
    rules = {"within": Sessions(codes, within=True), "between": Sessions(codes, within=False)}
    sets = similarity_sets(
        {
            f"{name}_{kind}": Pairs(EmbeddingPairs.of(scorer, own, own), segments, rule)
            for kind, rule in rules.items()
            for name, own in rows.items()
        },
        mean=mean,
        once=("oo_within", "pp_within", "oo_between", "pp_between"),
        times=resamples(segments.speakers, replicates, seed),
        where=where,
    )
    for name, made in sets.items():
        _refuse_missing(made, name.partition("_")[2])
    return SessionAssessment(
        sets, scorer.name, protected.sessions.n_unique, replicates, level, seed
    )


def _refuse_missing(own: SimilaritySet, kind: str) -> None:
    missing = np.flatnonzero(np.diag(own.sums.count) == 0)
    if missing.size:
        needed = "two segments in one session" if kind == "within" else "segments in two sessions"
        raise InputError(
            f"speaker {own.speakers[missing[0]]} lacks {needed} ({missing.size} such speakers)"
        )
