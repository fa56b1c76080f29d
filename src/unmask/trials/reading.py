"""Reading scores, keys and embeddings, whatever their format."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unmask.base import BoolArray
from unmask.errors import InputError
from unmask.trials import problems
from unmask.trials.embeddings import CONTENT_COLUMN, Embeddings, contents_of_text
from unmask.trials.formats import OnProblem, Source, Units, check_choice, format_named, natural
from unmask.trials.ids import as_text, plain_text, text_ids
from unmask.trials.readers import detect, kaldi
from unmask.trials.readers.arrays import (
    datasets,
    is_bosaris,
    load_npy,
    load_npz,
    parse_bosaris,
    parse_npz,
)
from unmask.trials.readers.detect import NamedColumns, TextSample, Wanted
from unmask.trials.readers.files import Input
from unmask.trials.readers.guard import load_parquet
from unmask.trials.readers.tables import Parsed, TypedRows, open_headed, open_table
from unmask.trials.readers.text import read_columns
from unmask.trials.speakers import Speakers, assign, speaker_rule, voxceleb_rule
from unmask.trials.trial_list import Scores, TrialList, Trials

Frame = pl.DataFrame | pl.LazyFrame
_SCP_LINE = re.compile(rb"^\S+[ \t]+\S+:\d+[ \t]*\r?$")


def read_scores(
    path: str | Path | Sequence[str | Path] | Mapping[str, str | Path] | Frame,
    *,
    format: str | None = None,
    key: str | Path | Trials | None = None,
    speakers: Speakers | None = None,
    systems: Sequence[str] | None = None,
    columns: NamedColumns | None = None,
    scores_are: Units = "ln",
    missing: OnProblem = "error",
    duplicates: OnProblem = "error",
) -> Scores:
    """Read a score file, or several as one table of all their systems (:meth:`Scores.merged`).

    Parameters
    ----------
    path : path, list, mapping or data frame
        A file (``-`` is standard input, gzip is read), several, several by name
        (``{"ours": "scores.txt"}``), or a frame with the columns of such a file.
    format : str, optional
        Needed only where two layouts fit; ``unmask formats`` lists them.
    key : path or Trials, optional
        Labels, joined by trial.
    speakers : path, list, mapping or str, optional
        ``utt2spk`` or ``spk2utt``, several of them, ``["enrol=F", "test=G"]``, ``"path:1"`` (first
        part of the path), ``"pattern:REGEX"`` with one group, or a mapping. Without it: speaker
        columns of the file, or the names where they are like VoxCeleb's.
    systems : list of str, optional
        Only these columns of scores.
    columns : mapping or str, optional
        Columns of a table by role: ``{"enrol": "ref_file", "score": ["a", "b"]}``, or their
        numbers. With a key, ``label``, speakers and ``group`` are columns of its file.
    scores_are : {"ln", "log10", "lr"}
        What the file holds: natural-log likelihood ratios (or any scores), in base 10, or the
        ratios themselves. The table holds natural logarithms.
    missing : {"error", "skip"}
        Whether trials that lack a score or a label are left out, and counted.
    duplicates : {"error", "skip"}
        Whether the first of repeated trials is kept, and the others counted.

    Returns
    -------
    Scores
        Its ``sources`` say what each file was taken for, and what was left out.

    Examples
    --------
    >>> import polars as pl, unmask as um
    >>> table = {"ref": ["a", "a"], "com": ["b", "c"], "same": ["SS", "DS"], "llr": [2.5, -1.0]}
    >>> roles = {"enrol": "ref", "test": "com", "label": "same"}
    >>> um.read_scores(pl.DataFrame(table), columns=roles)
    Scores(2 trials; 1 target, 1 nontarget; system system)
    """
    columns, of_key = detect.columns_of(columns, key)
    if not isinstance(path, str | Path | Frame) and not is_frame(path):
        if isinstance(key, str | Path):
            key = read_key(key, columns=of_key, duplicates=duplicates)
        options: dict[str, Any] = {"missing": missing, "duplicates": duplicates, "format": format}
        options |= {"key": key, "speakers": speakers, "systems": systems}
        options |= {"columns": columns, "scores_are": scores_are}
        files: list[Any] = list(path.values() if isinstance(path, Mapping) else path)
        for file in files:
            if not isinstance(file, str | Path | Frame) and not is_frame(file):
                wanted = "paths or data frames (of arrays: Scores.from_arrays)"
                raise InputError("scores", wanted, f"a {type(file).__name__}")
        tables = [read_scores(file, **options) for file in files]
        for row, name in enumerate(path) if isinstance(path, Mapping) else ():
            own = tables[row].systems
            named = {name if len(own) == 1 else f"{name} {x}": own[x] for x in own}
            tables[row] = replace(tables[row], systems=named)
        return tables[0] if len(tables) == 1 else Scores.merged(*tables)
    if isinstance(path, str | Path):
        role = "scores" if key is None else "scores for a key"
        with Input(path) as source:
            parsed = _parse(source, Wanted(role, format, systems, columns))
        if not parsed.systems:
            raise problems.only_a_key(parsed.name, parsed.format)
    else:
        parsed = _parse_frame(path, Wanted("scores", None, systems, columns))
    logs = {name: natural(x, scores_are, parsed.where) for name, x in parsed.systems.items()}
    parsed = replace(parsed, systems=logs)
    return _scores(parsed, key, of_key, speakers, missing, duplicates)


def read_key(
    path: str | Path,
    *,
    format: str | None = None,
    speakers: Speakers | None = None,
    columns: NamedColumns | None = None,
    duplicates: OnProblem = "error",
) -> Trials:
    """Read a key: trials with labels. A labelled score file serves as well.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    format, speakers, columns, duplicates
        As in :func:`read_scores`.

    Returns
    -------
    Trials
        Labelled trials without scores.

    Examples
    --------
    >>> import unmask as um
    >>> made = um.make_trials({"a1": "ann", "a2": "ann", "b1": "bob"})
    >>> made.write("trials")
    >>> um.read_key("trials")
    Trials(3 trials; 1 target, 2 nontarget)
    """
    with Input(path) as source:
        parsed = _parse(source, Wanted("a key", format, columns=columns))
    return _trials(parsed, speakers, duplicates)


def read_trials(path: str | Path) -> tuple[TrialList, Callable[[int], str]]:
    """Trials to score, labelled or not, each once; and what names a row of the file."""
    with Input(path) as source:
        sample = TextSample.of(source) if source.container == "text" else None
        if sample is not None and sample.header is None and len(sample.columns) == 2:
            (enrol, test), where = read_columns(source, ["enrol", "test"], layout="enrol test")
            about = Source(source.name, source.sha256, "", detected="trials without labels")
            trials = TrialList(enrol, test, None, sources=(about,))
        else:
            parsed = _parse(source, Wanted("a key"))
            trials, where = TrialList(**_columns(parsed)), parsed.where
    if not trials.has_ids:
        raise problems.no_identifiers(trials.name, "score")
    cure = "leave out the repeated lines"
    return trials.without_duplicates("error", where=where, cure=cure), where


def read_any(
    path: str | Path,
    *,
    format: str | None = None,
    key: str | Path | Trials | None = None,
    speakers: Speakers | None = None,
    systems: Sequence[str] | None = None,
    columns: NamedColumns | None = None,
    missing: OnProblem = "error",
    duplicates: OnProblem = "error",
) -> Scores | Trials | Embeddings:
    """Read a file of any kind: scores, a key or embeddings. Options as in :func:`read_scores`."""
    named = None if format is None else format_named(format)
    if str(path) != "-" and Path(path).is_dir():
        return read_embeddings(path, format=format, speakers=speakers)
    with Input(path) as source:
        if source.container != "text":
            source.load()
        if named.kind == "embedding" if named else holds_embeddings(source):
            return _embeddings(source, format=format, speakers=speakers)
        columns, of_key = detect.columns_of(columns, key)
        parsed = _parse(source, Wanted("scores or a key", format, systems, columns))
    if parsed.systems:
        return _scores(parsed, key, of_key, speakers, missing, duplicates)
    if key is not None:
        raise InputError(parsed.name, "scores for the key", parsed.format.name)
    return _trials(parsed, speakers, duplicates)


def check_format(source: Input, name: str | None) -> None:
    """Refuse a format that does not exist or that the first bytes of the input rule out."""
    container = source.container if name is None else format_named(name).container
    if container != source.container:
        raise InputError(source.name, f"{name} ({container})", f"a file of kind {source.container}")


def _parse(source: Input, wanted: Wanted) -> Parsed:
    """The columns of a file of scores or labels, in memory."""
    check_format(source, wanted.format)
    table = open_table(source, wanted)
    if table is not None:
        parsed = table.in_memory()
    elif source.container == "npz":
        parsed = parse_npz(source, wanted)
    elif wanted.columns is not None:
        raise InputError(source.name, "a table, whose columns can be named", source.container)
    elif source.container == "hdf5":
        parsed = parse_bosaris(source, as_key=wanted.as_key)
    else:
        raise InputError(source.name, wanted.role, f"a file of kind {source.container}")
    problems.check_systems(source.name, list(parsed.systems), wanted.systems)
    return replace(parsed, sha256=source.sha256)


def _parse_frame(data: Any, wanted: Wanted) -> Parsed:
    """The columns of a data frame, as if it were a parquet file."""
    table = _Table.of(data)
    rows = TypedRows(table.name, table.frame)
    parsed = open_headed(rows, "system", wanted, format="parquet").in_memory()
    problems.check_systems(table.name, list(parsed.systems), wanted.systems)
    return replace(parsed, sha256=table.sha256)


@dataclass(frozen=True)
class _Table:
    """A data frame of polars or pandas in place of an opened file."""

    frame: pl.DataFrame
    sha256: str
    name: str = "table"
    container: str = "frame"

    @classmethod
    def of(cls, data: Any) -> _Table:
        if isinstance(data, pl.LazyFrame):
            data = data.collect()
        names = [str(name) for name in data.columns]
        if twice := [name for n, name in enumerate(names) if name in names[:n]]:
            raise InputError(cls.name, "columns of different names", f"{twice[0]} twice")
        if not isinstance(data, pl.DataFrame):
            data = pl.DataFrame([_series(str(name), list(data[name])) for name in data.columns])
        try:
            content = data.write_ipc(None).getbuffer()
        except pl.exceptions.PolarsError:
            objects = next((n for n, kind in data.schema.items() if kind == pl.Object), "a column")
            wanted = "columns of numbers, text or vectors"
            raise InputError(cls.name, wanted, f"other values in {objects}") from None
        return cls(data, hashlib.sha256(content).hexdigest())


def is_frame(data: Any) -> bool:
    """Whether data are a frame of polars or pandas."""
    if isinstance(data, Frame):
        return True
    return not isinstance(data, TrialList | Embeddings) and hasattr(data, "columns")


def _series(name: str, values: list[Any]) -> pl.Series:
    """A column of a frame of pandas, whose marks for none are of another kind than its values."""
    try:
        return pl.Series(name, values)
    except (TypeError, pl.exceptions.PolarsError):
        known = [value if plain_text(value) else None for value in values]
        return pl.Series(name, known, strict=False)


def _trials(parsed: Parsed, speakers: Speakers | None, duplicates: OnProblem) -> Trials:
    labelled, named = (parsed.trials[what] is not None for what in ("label", "enrol"))
    problems.check_key(parsed.name, parsed.format, labelled, named)
    trials = Trials(**_columns(parsed)).without_duplicates(duplicates, where=parsed.where)
    if speakers is not None:
        trials = trials.with_speakers(speakers)
    return trials.counted()


def _scores(
    parsed: Parsed,
    key: str | Path | Trials | None,
    of_key: NamedColumns | None,
    speakers: Speakers | None,
    missing: OnProblem,
    duplicates: OnProblem,
) -> Scores:
    """Validated scores with labels of the key and speakers; systems without any are left out."""
    check_choice("missing", missing)
    absent = {name: np.isnan(values) for name, values in parsed.systems.items()}
    empty = {name: bool(gaps.all()) for name, gaps in absent.items()}
    names, remarks = problems.check_scored(parsed.name, empty)
    parsed = replace(parsed, remarks=(*parsed.remarks, *remarks))
    lacking: BoolArray = np.logical_or.reduce([absent[name] for name in names])
    systems = {name: parsed.systems[name] for name in names}
    if lacking.any():
        if missing == "error":
            first = int(np.flatnonzero(lacking)[0])
            raise problems.no_score(parsed.where(first), int(lacking.sum()))
        systems = {name: np.where(lacking, 0.0, values) for name, values in systems.items()}
    scores = Scores(**_columns(parsed), systems=systems)
    if lacking.any():
        scores = scores.select(~lacking)._left_out(missing=int(lacking.sum()))
    where = lambda row: parsed.where(int(np.flatnonzero(~lacking)[row]))  # noqa: E731
    scores = scores.without_duplicates(duplicates, where=where)
    if key is not None:
        if isinstance(key, str | Path):
            key = read_key(key, columns=of_key, duplicates=duplicates)
        same = key.source is not None and key.source.sha256 == parsed.sha256
        if same and parsed.trials["label"] is None:
            actual = "the key itself: its labels were read as scores"
            raise InputError(parsed.name, "scores", actual)
        scores = scores.with_key(key, missing=missing, duplicates=duplicates)
    if speakers is not None:
        scores = scores.with_speakers(speakers)
    elif scores.has_ids and not scores.has_speakers:
        rule = voxceleb_rule(*(ids.present for ids in scores.ids[:2]))
        scores = scores.spoken(rule, rule) if rule else scores
    return scores.counted()


def _columns(parsed: Parsed) -> dict[str, Any]:
    """What trials and scores have in common."""
    source = parsed.format.said_of(parsed.name, parsed.sha256, parsed.remarks)
    return parsed.trials | {"sources": (source,)}


def read_embeddings(
    path: str | Path | Frame, *, format: str | None = None, speakers: Speakers | None = None
) -> Embeddings:
    """Read embeddings from a file, a Kaldi directory or a data frame.

    Parameters
    ----------
    path : path or data frame
        A file (npz, npy, HDF5, parquet, Kaldi archive or script), a Kaldi directory, or a frame of
        polars or pandas with the columns ``utterance``, ``speaker`` and ``embedding`` (vectors).
    format : str, optional
        What it must be; ``unmask formats --kind embedding`` lists them.
    speakers : path, list, mapping or str, optional
        As in :func:`read_scores`, without sides. Without it: those of the file, ``utt2spk`` beside
        Kaldi files, or names like VoxCeleb's.

    Returns
    -------
    Embeddings
        One vector per utterance.

    Examples
    --------
    >>> import numpy as np, unmask as um
    >>> np.savez("voices.npz", embeddings=np.eye(2), utt_ids=["a1", "b1"], speaker_ids=["a", "b"])
    >>> um.read_embeddings("voices.npz")
    Embeddings(2 vectors of 2 dimensions, float64; 2 speakers, utterances)
    """
    if is_frame(path):
        return _embeddings(_Table.of(path), format=format, speakers=speakers)
    if not isinstance(path, str | Path):
        raise InputError("embeddings", "a path or a data frame", f"a {type(path).__name__}")
    is_directory = str(path) != "-" and Path(path).is_dir()
    file = kaldi.vector_file(Path(path)) if is_directory else path
    with Input(file) as source:
        return _embeddings(
            source, format=format, speakers=speakers, directory=str(path) if is_directory else None
        )


def holds_embeddings(source: Input) -> bool:
    """Whether an input holds embeddings and not scores or a key."""
    match _container(source):
        case "npz":
            return "vectors" in detect.embedding_columns(load_npz(source))
        case "parquet":
            return "vectors" in detect.embedding_columns(load_parquet(source).columns)
        case "hdf5":
            return not is_bosaris(datasets(source))
        case "npy" | "ark" | "scp":
            return True
    return False


def _container(source: Input | _Table) -> str:
    """Kind of file, telling Kaldi archives and script files from other text."""
    if isinstance(source, _Table) or source.container != "text":
        return source.container
    if b"\0B" in source.head[:4096] or source.name.endswith((".ark", ".ark.gz")):
        return "ark"
    return "scp" if _SCP_LINE.match(source.head.split(b"\n", 1)[0]) else "text"


def _embeddings(
    source: Input | _Table,
    *,
    format: str | None,
    speakers: Speakers | None,
    directory: str | None = None,
) -> Embeddings:
    """Read embeddings from an opened input; ``directory`` is the Kaldi directory it belongs to."""
    name = directory or source.name
    expected = None if format is None else format_named(format)
    rule = None if speakers is None else speaker_rule(speakers)
    stored, content = _vectors(source)
    kind = format_named("kaldi-dir" if directory else stored)
    if expected is not None and expected is not kind:
        raise InputError(name, expected.name, kind.name)
    folder = Path(source.name).parent if stored.startswith("kaldi") else None
    remarks = []
    if rule is None and folder:
        rule = kaldi.directory_speakers(folder)
        remarks += [f"speakers from {rule.name}"] if rule else []
    if rule is None and content.get("speakers") is None and content.get("utterances") is not None:
        rule = voxceleb_rule(text_ids(content["utterances"], "utterances", name).names)
    if stored == "embeddings-npy":
        if rule is None or rule.table is None:
            raise InputError(name, "an utt2spk file for the rows of a matrix", "none")
        content["utterances"], content["speakers"] = rule.table
        remarks.append("utterances in the order of utt2spk")
    elif rule is not None:
        if content.get("utterances") is None:
            raise InputError(name, "utterances to find speakers for", "none")
        content["utterances"] = text_ids(content["utterances"], "utterances", name)
        content["speakers"] = assign(content["utterances"], rule)
        remarks += [rule.said] if rule.said else []
    elif content.get("speakers") is None:
        raise InputError(name, "speakers in the file or an utt2spk file (--speakers)", "neither")
    spoken = content["speakers"] = text_ids(content["speakers"], "speakers", name)
    columns = content.pop("columns", {}) | (
        kaldi.directory_gender(folder, spoken) if folder else {}
    )
    if columns:
        remarks.append(f"metadata: {', '.join(columns)}")
    about = kind.said_of(name, content.pop("digest", None) or source.sha256, remarks)
    encoder = content.setdefault("encoder", "")
    about = replace(about, speakers=spoken.n_unique, encoder=encoder)
    return Embeddings(**content, columns=columns, source=about)


def _vectors(source: Input | _Table) -> tuple[str, dict[str, Any]]:
    """The format of an embedding file, arguments of `Embeddings`, and a digest of further files."""
    if isinstance(source, _Table):
        arrays = {column.name: _array(column, source.name) for column in source.frame}
        return _from_table(source.name, arrays, "embeddings-parquet")
    match _container(source):
        case "npz":
            return _from_table(source.name, load_npz(source), "embeddings-npz")
        case "npy":
            return "embeddings-npy", {"vectors": load_npy(source)}
        case "parquet":
            arrays = {column.name: _array(column, source.name) for column in load_parquet(source)}
            return _from_table(source.name, arrays, "embeddings-parquet")
        case "hdf5":
            return _from_hdf5(source)
        case "ark":
            return "kaldi-ark", kaldi.read_ark(source)
        case "scp":
            return "kaldi-scp", kaldi.read_scp(source)
    wanted = "embeddings (npz, npy, HDF5, parquet, Kaldi archive)"
    raise InputError(source.name, wanted, "an empty file" if not source.head else "something else")


def _array(column: pl.Series, source: str) -> Any:
    """A column of a table: text, or a matrix where it holds vectors."""
    if not column.dtype.is_nested():
        return as_text(column).fill_null("")
    lengths = column.list.len() if column.dtype == pl.List else None
    if column.null_count() or (lengths is not None and lengths.n_unique() != 1):
        raise InputError(source, f"vectors of one length in column {column.name!r}", "others")
    single = getattr(column.dtype, "inner", None) == pl.Float32
    try:
        return np.array(column.to_list(), dtype=np.float32 if single else np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(source, f"numbers in column {column.name!r}", column.dtype) from error


def _from_table(source: str, arrays: Mapping[str, Any], format: str) -> tuple[str, dict[str, Any]]:
    roles = detect.embedding_columns(arrays)
    content = {role: arrays[name] for role, name in roles.items()}
    if np.ndim(content.get("vectors", 0)) == 0:
        layout = format_named(format).layout
        raise InputError(source, layout, ", ".join(arrays) or "nothing")
    shape = (len(content["vectors"]),)
    others = {detect.normalise(name): name for name in arrays if name not in roles.values()}
    columns = {
        short: arrays[name] for short, name in others.items() if np.shape(arrays[name]) == shape
    }
    told = set(np.ravel(arrays.get("encoder", [])).tolist())
    if len(told) == 1:
        content["encoder"] = str(told.pop())
        columns.pop("encoder", None)
    digests = columns.get(detect.normalise(CONTENT_COLUMN))
    contents = None if digests is None else contents_of_text(digests)
    if contents is not None:
        content["contents"] = contents
        columns.pop(detect.normalise(CONTENT_COLUMN))
    return format, {**content, "columns": columns}


def _from_hdf5(source: Input) -> tuple[str, dict[str, Any]]:
    data = datasets(source)
    if "vectors" in detect.embedding_columns(data):
        try:
            arrays = {
                name: one.values if one.kind == "numbers" and one.values.ndim == 2 else one.texts
                for name, one in data.items()
            }
        except InputError as error:
            raise InputError(f"{source.name}: {error}") from None
        return _from_table(source.name, arrays, "embeddings-hdf5")
    if not data:
        raise InputError(f"{source.name}: the file holds no vectors")
    vectors: list[np.ndarray] = []
    for name, dataset in data.items():
        vector = dataset.values.squeeze()
        like = (vectors or [vector])[0]
        is_vector = dataset.kind == "numbers" and vector.ndim == 1 and vector.dtype.kind == "f"
        if not is_vector or vector.shape != like.shape:
            actual = f"{dataset.kind} {dataset.values.dtype} {dataset.values.shape}"
            raise InputError(source.name, f"a vector like the first for {name}", actual)
        vectors.append(vector)
    content = {"vectors": np.stack(vectors), "utterances": list(data)}
    speakers = [dataset.speaker for dataset in data.values()]
    return "embeddings-hdf5", content | ({} if None in speakers else {"speakers": speakers})
