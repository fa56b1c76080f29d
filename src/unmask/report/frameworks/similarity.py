"""Voice similarity matrices, DeID and G_VD of every safeguard (Noé 2020, 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unmask.estimate import Estimate
from unmask.figures import Figure, Point, similarity_matrices, speaker_protection, zoo_plots
from unmask.figures.safeguards import distinctiveness
from unmask.privacy import (
    Pseudonymisation,
    pseudonymisation_from_embeddings,
    pseudonymisation_from_scores,
    zoo_of_set,
)
from unmask.privacy.similarity import PLAIN, SessionAssessment, assess_sessions, quadrants
from unmask.report.cache import Progress, Step, digest_of_embeddings, digest_of_scores
from unmask.report.config import Config
from unmask.report.document import Row
from unmask.report.inputs import Inputs
from unmask.report.section import NOE_2020, NOE_2022, Choice, Method, Section, TableBlock

NARROW = 0.5


def similarity_steps(config: Config, inputs: Inputs) -> dict[str, Step]:
    """The three matrices of each safeguard."""
    how: dict[str, Any] = {
        "mean": config.similarity.mean,
        "pairs": config.similarity.pairs,
        "replicates": config.intervals.replicates,
        "level": config.intervals.level,
        "seed": config.seed,
    }
    steps = {}
    for name, protected in inputs.protected.items():
        original = inputs.original
        assert original is not None

        def compute(progress: Progress, o=original, p=protected) -> Pseudonymisation:  # type: ignore[no-untyped-def]
            return pseudonymisation_from_embeddings(o, p, **how, progress=progress)

        digests = [digest_of_embeddings(original), digest_of_embeddings(protected)]
        steps[name] = Step(f"voice similarity of {name}", digests, how, compute, weight=2.0)
    for name, sets in inputs.sets.items():

        def compute_scores(progress: Progress, s=sets) -> Pseudonymisation:  # type: ignore[no-untyped-def]
            return pseudonymisation_from_scores(s["oo"], s["op"], s["pp"], **how)

        digests = [digest_of_scores(sets[part]) for part in ("oo", "op", "pp")]
        steps[name] = Step(f"voice similarity of {name}", digests, how, compute_scores, weight=2.0)
    return steps


def session_steps(config: Config, inputs: Inputs) -> dict[str, Step]:
    """Within and between sessions, where protected utterances name theirs."""
    steps = {}
    how: dict[str, Any] = {
        "mean": config.similarity.mean,
        "replicates": config.intervals.replicates,
        "level": config.intervals.level,
        "seed": config.seed,
    }
    for name, protected in inputs.protected.items():
        if protected.sessions is None or protected.sessions.n_unique < 2:
            continue
        original = inputs.original
        assert original is not None

        def compute(progress: Progress, o=original, p=protected) -> SessionAssessment:  # type: ignore[no-untyped-def]
            return assess_sessions(o, p, **how)

        digests = [digest_of_embeddings(original), digest_of_embeddings(protected)]
        steps[name] = Step(f"sessions of {name}", digests, how, compute, weight=2.0)
    return steps


def section(
    found: Mapping[str, Pseudonymisation],
    within: Mapping[str, SessionAssessment],
    colours: Mapping[str, str],
) -> Section:
    """Matrices, distinctiveness against de-identification, each speaker, the zoo."""
    matrices: tuple[tuple[str, Figure], ...] = tuple(
        (
            name,
            similarity_matrices(
                {name: quadrants(result)},
                name=f"similarity_{number}",
                title=f"{name}: voice similarity of every pair of speakers",
            ),
        )
        for number, (name, result) in enumerate(found.items(), start=1)
    )
    speakers = tuple(
        (
            name,
            speaker_protection(
                {name: result.per_speaker},
                colours=colours,
                name=f"speaker_protection_{number}",
                title=f"{name}: de-identification of each speaker",
            ),
        )
        for number, (name, result) in enumerate(found.items(), start=1)
    )
    zoos = tuple(
        (
            name,
            zoo_plots(
                {name: zoo_of_set(result.sets["pp"])},
                name=f"zoo_{number}",
                title=f"{name}: who is recognised and who is confused among protected voices",
            ),
        )
        for number, (name, result) in enumerate(found.items(), start=1)
    )
    points = [
        Point(n, "all", r.deid, r.g_vd, r.interval("deid"), r.interval("g_vd"), *r.beyond_plain)
        for n, r in found.items()
    ]
    tables = [
        TableBlock(
            "De-identification and voice distinctiveness",
            tuple(
                Row({"safeguard": n, "strongest attack": r.strongest.attacker}, r.estimates)
                for n, r in found.items()
            ),
        ),
        TableBlock(
            "Normalised twins, diagonal dominance, all attackers",
            tuple(Row({"safeguard": n}, r.details) for n, r in found.items()),
            folded=True,
        ),
    ]
    if within:
        rows = tuple(Row({"safeguard": n}, s.estimates) for n, s in within.items())
        tables.insert(1, TableBlock("Within and between sessions", rows))
    return Section(
        key="similarity",
        title="Voice similarity",
        question="Does a protected voice still resemble its owner, and do protected voices remain"
        " different from each other?",
        answer=tuple(_answer(name, result) for name, result in found.items()),
        figures=(
            Choice("Matrices of", matrices),
            distinctiveness(points, colours=colours),
            Choice("Speakers under", speakers),
            Choice("Zoo of", zoos),
        ),
        tables=tuple(tables),
        warnings=tuple(
            f"{name}: {line}"
            for name, lines in [
                *((n, r.warnings) for n, r in found.items()),
                *((n, s.warnings) for n, s in within.items()),
            ]
            for line in lines
        ),
        method=_METHOD,
        citation=f"{NOE_2020} {NOE_2022}",
    )


def _answer(name: str, result: Pseudonymisation) -> str:
    strongest = result.strongest
    against = "" if strongest.attacker == PLAIN else f" by the {strongest.attacker} score"
    return (
        f"Under this recogniser {name} takes {_percent(strongest.deid)} of the diagonal dominance"
        f" that ties a voice to its owner (DeID, judged{against or ' by the score as it is'});"
        f" {_distinct(result)}."
    ).replace("-", "−")


def _percent(estimate: Estimate) -> str:
    assert not isinstance(estimate.value, str)
    text = f"{100 * estimate.value:.1f} %"
    if estimate.interval is None:
        return text
    return f"{text} [{100 * estimate.interval.low:.1f}, {100 * estimate.interval.high:.1f}]"


def _distinct(result: Pseudonymisation) -> str:
    """Whether protected voices stay distinct, as far as the interval of G_VD can tell."""
    gain, interval = result.g_vd, result.interval("g_vd")
    if interval is None:
        return f"G_VD of protected voices is {gain:+.1f} dB, without an interval"
    told = f"G_VD {gain:+.1f} dB [{interval.low:+.1f}, {interval.high:+.1f}]"
    if interval.low > 0:
        return f"protected voices are easier to tell apart than before ({told})"
    if interval.high < 0:
        return f"protected voices are harder to tell apart than before ({told})"
    if max(-interval.low, interval.high) <= NARROW:
        return f"protected voices are as distinct as before ({told})"
    return f"whether protected voices are as distinct as before remains open ({told})"


_METHOD = (
    Method(
        "Similarity",
        "Sim(i,j) = geometric mean of σ(llr) over all pairs of segments of speakers i and j",
        "Scores of OO, OP and PP are each calibrated on their own (PAV with Laplace; 2022, eq. 6).",
    ),
    Method(
        "De-identification",
        "DeID = 1 − D_diag(OP)/D_diag(OO)",
        "D_diag is how far the diagonal of the matrix stands out (2022, eq. 8, 9): DeID is its"
        " relative loss under one recogniser. The score as it is, negated, centred, and both"
        " compete; another than the plain one is named where it wins by more than noise.",
    ),
    Method(
        "Gain of voice distinctiveness",
        "G_VD = 10·log₁₀(D_diag(PP)/D_diag(OO)) dB",
        "0 dB: protected voices are as distinct as the originals; below, less (2022, eq. 10).",
    ),
)
