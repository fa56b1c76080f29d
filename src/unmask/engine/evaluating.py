"""Every detection metric of whatever one has: a table, arrays, embeddings or files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from unmask.base import Tabular
from unmask.engine.battery import Battery
from unmask.engine.evaluation import Analysis, Evaluation, evaluate_table, group_masks
from unmask.engine.metrics import refuse_labels
from unmask.engine.streaming import evaluate_files
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice
from unmask.trials import (
    Embeddings,
    Ids,
    Input,
    OnProblem,
    Scores,
    Speakers,
    Trials,
    holds_embeddings,
    is_frame,
    joined_embeddings,
    read_embeddings,
    read_scores,
)

if TYPE_CHECKING:
    import polars as pl

    from unmask.engine.groups import GroupGaps

ScoreData: TypeAlias = (
    "Scores | Embeddings | pl.DataFrame | pl.LazyFrame | npt.ArrayLike | str | Path"
    " | Sequence[str | Path] | Mapping[str, Any]"
)
"""A table, embeddings, a frame, target scores, or score files, by name where a mapping is given."""


class ReadOptions(TypedDict, total=False):
    """How files and frames are read, as in :func:`read_scores`."""

    key: str | Path | Trials | None
    speakers: Speakers | None
    format: str | None
    columns: Any
    missing: OnProblem
    duplicates: OnProblem


class DataOptions(ReadOptions, total=False):
    """The same, whether files are read in batches, which pairs of embeddings are compared, and what
    spoof trials are for.
    """

    stream: bool | None
    pairs: str
    enrolment: int
    backend: Any
    alpha: float
    spoof: bool | None
    role: str | Mapping[str, str] | None
    a_dcf: Sequence[float] | None
    t_dcf: Sequence[float] | None


def evaluate(
    data: ScoreData,
    nontarget: npt.ArrayLike | None = None,
    *,
    systems: Sequence[str] | None = None,
    by: str | None = None,
    equalise: str | None = None,
    convention: str | None = None,
    battery: Battery | None = None,
    dev: Any = None,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    **options: Unpack[DataOptions],
) -> Evaluation:
    """Every detection metric of every system, over all trials and, with ``by``, over its groups.

    Intervals come from the joint speaker bootstrap (the trial bootstrap where no speakers are
    known, and a warning says so), less the bias that resampling shows
    (:mod:`unmask.base.intervals`). Replicate i of ``seed`` draws the same speakers in every number.
    Beyond two million trials the default is the bootstrap of trials in bins
    (:mod:`.binned_bootstrap`), first order in the draws of speakers; a number of replicates asks
    for the bootstrap of all trials, which runs on the current place (:func:`unmask.run.run_on`).

    Parameters
    ----------
    data : Scores, frame, array-like, mapping, path or Embeddings
        A table of scores; target scores, with ``nontarget``; pairs of arrays by system; score files
        of any length (:func:`~.streaming.evaluate_files`); or embeddings, of which the trials of
        ``key`` are scored (:func:`score`), or all pairs compared (:func:`~.pairing.cross_pairing`).
    nontarget : array-like, optional
        Nontarget scores, where ``data`` are target scores.
    systems : sequence of str, optional
        Those wanted; all unless given.
    by : str, optional
        A column to group by, or a name such as ``sex`` for ``enrol_sex`` and ``test_sex``.
    equalise : str, optional
        A column whose conditions weigh alike within each class, anew in every replicate.
    convention : str, optional
        Whose rules hold, one of ``engine.CONVENTIONS`` such as ``voiceprivacy-2020``.
    battery : Battery, optional
        Priors, costs, rates, thresholds and estimators, where no convention says them.
    dev : Scores, array pair or path, optional
        A development list with other speakers: its thresholds are judged on ``data``.
    replicates : int, optional
        1,000 unless given; 0 for no intervals.
    level : float
        Confidence of the intervals.
    seed : int
        Seed of all draws.
    **options
        Of files and frames those of :func:`read_scores`, and ``stream``; of embeddings ``pairs``,
        ``enrolment``, ``backend`` and ``speakers``. With ``by`` the ``alpha`` of
        :func:`group_gaps`. Of lists with spoof trials: ``spoof``, whether they are a third class
        (unless given, they are); ``role``, ``"cm"`` (countermeasure) or ``"asv"`` of all systems
        or by name (unless given, names tell); ``a_dcf`` and ``t_dcf``, priors of targets,
        nontargets and spoofs, costs of a miss and of accepting the others.

    Returns
    -------
    Evaluation
        It prints as a table; ``result["plda"]["eer"]`` is one estimate.

    Examples
    --------
    >>> import unmask as um
    >>> result = um.evaluate([1.0, 2.0, 3.0], [0.0, 1.5], replicates=0)
    >>> result["eer"]
    eer 20 %, chance 50 %
    """
    given: Any = data if nontarget is None else (data, nontarget)
    asked: dict[str, Any] = dict(options)
    analysis = Analysis.of(battery, replicates, level, seed, convention, equalise)
    spoofs = {name: asked.pop(name, None) for name in ("spoof", "role", "a_dcf", "t_dcf")}
    if spoofs["spoof"] is None and spoofs["role"] is None:
        costs = spoofs["a_dcf"] is not None or spoofs["t_dcf"] is not None
        spoofs["spoof"] = True if costs else (None if dev is None else False)
    alpha = asked.pop("alpha", analysis.alpha)
    analysis = dataclasses.replace(analysis, alpha=alpha, **spoofs)
    if asked.get("key") is not None and (voices := _voices(given)) is not None:
        given, asked = _scored(voices, by=by, **asked), {}
    elif "backend" in asked and not isinstance(given, Embeddings):
        raise InputError("backend", "embeddings and a key, or pairs of them", "scores")
    if dev is not None:
        return _judged(given, dev, analysis, systems=systems, by=by, **asked)
    if isinstance(given, Embeddings):
        from unmask.engine.pairing import cross_pairing

        for name, value in (("systems", systems), ("equalise", equalise)):
            if value is not None:
                raise InputError(name, "a table of scores", "embeddings")
        how: dict[str, Any] = {"replicates": replicates, "level": level, "seed": seed}
        how |= {"by": by, "alpha": alpha}
        return cross_pairing(given, battery=analysis.battery, **how, **asked)
    table = table_of(given, **asked)
    if table is None:
        if not hasattr(given, "__iter__") and not isinstance(given, Path):
            wanted = "a path, several, a frame, embeddings or two arrays"
            raise InputError("scores", wanted, type(given).__name__)
        return evaluate_files(given, analysis, systems=systems, by=by, **asked)
    return evaluate_table(table, analysis, by=by, systems=systems)


def table_of(data: Any, **options: Any) -> Scores | None:
    """The table of a frame, a table or arrays, to which few ``options`` apply; None of files."""
    if not isinstance(data, Scores) and is_frame(data):
        return read_scores(data, **options)
    data = of_arrays(data)
    if isinstance(data, Scores) and options:
        if unknown := sorted(set(options).difference(DataOptions.__annotations__)):
            raise TypeError(f"unexpected keyword argument '{unknown[0]}'")
        raise TypeError(f"no option {', '.join(options)} for a table of scores")
    return data if isinstance(data, Scores) else None


def _judged(
    data: Any, dev: Any, analysis: Analysis, *, systems: Sequence[str] | None, **options: Any
) -> Evaluation:
    """Thresholds of EER, costs and demanded rates, set on ``dev``, judged on it and ``data``."""
    by, stream = options.pop("by"), options.pop("stream", None)
    if stream or isinstance(data, Embeddings):
        found = "a stream" if stream else "embeddings"
        raise InputError("dev", "an evaluation list in memory", found)
    other = table_of(dev)
    other = read_scores(dev, **options) if other is None else other
    table = table_of(data) if not options else None
    table = read_scores(data, **options) if table is None else table
    names = list(systems or table.systems)
    if set(names) <= set(other.systems):
        other = other.select_systems(names)
    elif len(other.systems) == len(names):
        columns = zip(names, other.systems.values(), strict=True)
        other = dataclasses.replace(other, systems=dict(columns))
    else:
        raise InputError("dev", f"the systems {', '.join(names)}", ", ".join(other.systems))
    told = _shared_speakers(table, other)
    first = evaluate_table(other, dataclasses.replace(analysis, replicates=0), by=None)
    wanted = ("eer", "min_dcf", "threshold")
    points = {
        name: {
            _named(estimate): float(estimate.threshold)
            for estimate in first[name].estimates
            if estimate.metric in wanted and estimate.threshold is not None
        }
        for name in names
    }
    battery = dataclasses.replace(analysis.battery, judged=tuple(points[names[0]]))
    whole = dataclasses.replace(analysis, battery=battery, at=points)
    result = evaluate_table(table, whole, by=by, systems=names)
    other_result = evaluate_table(other, whole, by=None)
    notices = (*told, *result.notices)
    return dataclasses.replace(result, notices=notices, dev=other_result)


def _named(point: Estimate) -> str:
    """A threshold by what set it, as tables have it."""
    if point.metric == "threshold":
        return f"FAR ≤ {100 * float(point.params['far'] or 0):g} %"
    return "EER" if point.metric == "eer" else f"minDCF ({point.params['p_target']:g})"


def _shared_speakers(table: Scores, dev: Scores) -> tuple[Notice, ...]:
    """Refuse a development list with speakers of the evaluation; say where nobody can know."""
    sides = [
        [ids for ids in (scores.enrol_speaker, scores.test_speaker) if ids is not None]
        for scores in (table, dev)
    ]
    if not all(sides):
        sentence = "speakers are not known: thresholds are too good if both lists share some"
        return (Notice("dev-speakers", "dev", sentence),)
    here, there = ({str(ids.names[int(k)]) for ids in side for k in ids.used} for side in sides)
    if shared := sorted(here & there):
        shown = ", ".join(shared[:3]) + (", …" if len(shared) > 3 else "")
        found = f"{len(shared)} of both: {shown}"
        raise InputError("dev", "other speakers than the evaluation has", found)
    return ()


_VECTORS = (".npz", ".npy", ".parquet", ".ark", ".scp", ".h5", ".hdf5")


def _voices(data: Any) -> list[Embeddings | str | Path] | None:
    """Embeddings, or the files of them, where scores are expected; several are shards of a set."""
    if isinstance(data, Embeddings):
        return [data]
    files = list(data.values()) if isinstance(data, Mapping) else data
    paths = list(files) if isinstance(files, list | tuple) else [files]
    if not paths or not all(isinstance(path, str | Path) for path in paths):
        return None
    return paths if all(map(_holds_vectors, paths)) else None


def _holds_vectors(path: str | Path) -> bool:
    """Whether a folder of Kaldi, or a file by its name and content, holds embeddings."""
    if Path(path).is_dir():
        return True
    if Path(path).suffix not in _VECTORS:
        return False
    with Input(path) as source:
        return holds_embeddings(source)


def _scored(
    voices: Sequence[Embeddings | str | Path], *, by: str | None = None, **options: Any
) -> Scores:
    """Scores of the trials of a key; a column ``by`` of embeddings becomes one of both sides."""
    from unmask.scoring import score

    backend = {name: options.pop(name) for name in ("backend",) if name in options}
    trials, speakers = options.pop("key"), options.pop("speakers", None)
    for name, value in options.items():
        files = ("missing", "duplicates"), ("format", "stream", "columns")
        if not (name in files[0] and value == "error") and not (name in files[1] and not value):
            raise InputError(name, "score files", "embeddings")
    sets = [
        part if isinstance(part, Embeddings) else read_embeddings(part, speakers=speakers)
        for part in voices
    ]
    whole = joined_embeddings(sets)
    scores = score(whole, trials=trials, **backend)
    sources = [part.source for part in sets if part.source is not None]
    known = tuple(dict.fromkeys((*scores.sources, *sources)))
    scores = dataclasses.replace(scores, sources=known)
    if by is None or by in scores.columns or f"enrol_{by}" in scores.columns:
        return scores
    return _with_column(scores, whole, by)


def _with_column(scores: Scores, voices: Embeddings, by: str) -> Scores:
    """The scores with a column of the speakers of ``voices`` on both sides of each trial."""
    enrol, test = scores.enrol_speaker, scores.test_speaker
    if by not in voices.columns or enrol is None or test is None:
        return scores
    speakers, values = voices.speakers.alphabetical(), voices.columns[by].alphabetical()
    value = np.zeros(len(speakers.names), np.int64)
    value[speakers.codes] = values.codes
    if (torn := np.flatnonzero(value[speakers.codes] != values.codes)).size:
        who = speakers.decode(int(torn[0]))
        raise InputError(f"{voices.name}, {by}", "one value of each speaker", f"several of {who}")
    columns = dict(scores.columns)
    for side, ids in (("enrol", enrol), ("test", test)):
        names = ids.names.to_list()
        known = {str(name): code for code, name in enumerate(speakers.names)}
        of_name = np.array([value[known[name]] if name in known else -1 for name in names])
        if lacking := [names[int(code)] for code in ids.used if of_name[int(code)] < 0]:
            raise InputError(f"{voices.name}, {by}", "every speaker of the key", lacking[0])
        columns[f"{side}_{by}"] = Ids(of_name[ids.codes].astype(np.int32), values.names)
    return dataclasses.replace(scores, columns=columns)


def of_arrays(data: Any) -> Any:
    """The table of a pair (target scores, nontarget scores), or of such pairs by system on the same
    trials; any other ``data`` as they are.
    """
    named = data if isinstance(data, Mapping) else {"system": data}
    pairs = {
        name: pair
        for name, pair in named.items()
        if isinstance(pair, tuple) and len(pair) == 2 and not isinstance(pair[0], str | Path)
    }
    for name, given in named.items():
        if isinstance(given, np.ndarray) or (pairs and name not in pairs):
            raise InputError(name, "a pair (target scores, nontarget scores)", type(given).__name__)
    if not pairs:
        return data
    for pair in pairs.values():
        refuse_labels(*pair)
    tables = {name: Scores.from_arrays(*pair, system=name) for name, pair in pairs.items()}
    first, *others = tables.values()
    for table in others:
        if table.counts != first.counts:
            sizes = (
                "{target:,} target and {nontarget:,} nontarget scores".format(**t.counts)
                for t in (first, table)
            )
            raise InputError(next(iter(table.systems)), *sizes)
    systems = {name: table.scores(name) for name, table in tables.items()}
    return Scores(None, None, first.label, systems=systems)


_METRICS = ("eer", "min_dcf", "threshold", "safe_threshold", "far", "frr", "cost")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Thresholds(Tabular):
    """What :func:`operating_point` found: its table prints; ``result["far"]`` is one number, that
    of a system ``result.evaluation["plda"]["far"]``.
    """

    evaluation: Evaluation

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Thresholds, FAR, FRR and costs, those of EER and minimum cost first."""
        return tuple(one for one in self.evaluation.estimates if one.metric in _METRICS)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What is to be said of the numbers."""
        return self.evaluation.notices

    def rows(self) -> list[dict[str, Any]]:
        """One row per system, group and number; with a development list, of both lists."""
        return [row for row in self.evaluation.rows() if row["metric"] in _METRICS]


def operating_point(
    data: ScoreData,
    nontarget: npt.ArrayLike | None = None,
    *,
    threshold: float | Sequence[float] = (),
    far: float | Sequence[float] = (),
    dev: Any = None,
    p_target: float = 0.01,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Thresholds:
    """Errors at a threshold, or the threshold for a demanded false-alarm rate.

    A score equal to the threshold is accepted: FAR is the share of nontargets of at least it, FRR
    that of targets below it. A demanded FAR gets the smallest threshold that keeps it, and the
    *safe* one, where the upper end of the interval of FAR keeps it.

    Parameters
    ----------
    data : Scores, frame, array-like or path
        As in :func:`evaluate`; target scores, where ``nontarget`` is given.
    nontarget : array-like, optional
        Nontarget scores.
    threshold : float or sequence of float
        Thresholds to judge.
    far : float or sequence of float
        Demanded false-alarm rates.
    dev : Scores or array pair, optional
        A development list with other speakers: its thresholds are judged on ``data``.
    p_target, c_miss, c_fa : float
        Prior and costs of :func:`min_dcf`.
    replicates : int, optional
        Bootstrap replicates over speakers, 1,000 unless given; 0 for no intervals.
    level : float
        Confidence of the intervals.
    seed : int
        Seed of all draws.

    Returns
    -------
    Thresholds
        It prints as a table.

    Examples
    --------
    >>> import unmask as um
    >>> point = um.operating_point([1.0, 2.0, 3.0], [0.0, 1.5], threshold=1.5, replicates=0)
    >>> point["far"], point["frr"]
    (far 50 %, frr 33.33 %)
    """
    given = [(one,) if isinstance(one, int | float) else tuple(one) for one in (threshold, far)]
    battery = Battery((p_target,), c_miss, c_fa, threshold=given[0], far=given[1])
    how: dict[str, Any] = {"replicates": replicates, "level": level, "seed": seed}
    return Thresholds(evaluate(data, nontarget, battery=battery, dev=dev, **how))


def group_gaps(
    data: ScoreData,
    by: str,
    *,
    system: str | None = None,
    threshold: float | None = None,
    far: float | None = None,
    dev: Any = None,
    alpha: float = 0.5,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    **options: Unpack[ReadOptions],
) -> GroupGaps:
    """Error rates of groups of speakers at one threshold, and the gaps between the groups.

    FNMR of a group is over the target trials of its speakers, FMR over the nontarget trials of
    which both speakers are of it; others stand apart. Gaps are ratio and difference of the highest
    and the lowest rate, FDR and GARBE, each with what equal groups would read by chance.

    Parameters
    ----------
    data : Scores, frame or path
        A table of scores whose speakers are known.
    by : str
        A column of speakers: ``sex`` for ``enrol_sex`` and ``test_sex``.
    system : str, optional
        Which one, where the table has several.
    threshold, far : float, optional
        The common threshold, or the false-alarm rate that sets it; unless given that of the EER of
        all trials.
    dev : Scores or path, optional
        A development list with other speakers, on which the threshold is set.
    alpha : float
        Weight of FMR in FDR and GARBE.
    replicates, level, seed
        Those of :func:`evaluate`.
    **options
        Of files and frames those of :func:`read_scores`.

    Returns
    -------
    GroupGaps
        ``result.of("fnmr")`` has the rates by group, ``result["fnmr_ratio"]`` is one gap.

    Examples
    --------
    >>> import unmask as um
    >>> from unmask.data import demo_scores
    >>> with demo_scores() as path:
    ...     scores = um.read_scores(path)
    >>> um.group_gaps(scores, "sex", system="campplus", far=0.01)["fmr_ratio"]
    fmr_ratio 5.834 [1, 18.23] (95 %), chance 1.554
    """
    from unmask.engine.groups import gaps_of

    given, rates = ((one,) if one is not None else () for one in (threshold, far))
    battery = Battery(threshold=given, far=rates)
    chosen = None if system is None else [system]
    whole = evaluate(data, systems=chosen, battery=battery, dev=dev, replicates=0, **options)
    if whole.scores is None or len(whole.scores.systems) > 1:
        systems = ", ".join(dict.fromkeys(result.system for result in whole))
        raise InputError("system", "one system, in memory", systems)
    group_masks(whole.scores, by)
    analysis = dataclasses.replace(Analysis.of(battery, replicates, level, seed), alpha=alpha)
    gaps, none = gaps_of(whole.scores, analysis, by, whole.results)
    for notice in none:
        raise InputError(notice.sentence)
    return gaps[0]
