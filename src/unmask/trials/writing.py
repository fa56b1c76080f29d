"""Writing scores, keys and embeddings in the formats others read."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.run import MARK, atomic_file, check_output
from unmask.trials.embeddings import CONTENT_COLUMN, Embeddings, contents_as_text
from unmask.trials.formats import LAYOUTS, OTHER, Format, format_named
from unmask.trials.ids import Ids
from unmask.trials.readers.kaldi import check_archive_folder, encode
from unmask.trials.trial_list import Scores, TrialList

WORDS = pl.Series(["spoof", "nontarget", "target"])
DIGITS = pl.Series(["", "0", "1"])
LARGEST_MATRIX = 400_000_000
VECTORS_WRITTEN = ("embeddings-npz", "embeddings-parquet", "embeddings-hdf5", "kaldi-ark")
TRIALS_WRITTEN = (
    *(layout.name for layout in LAYOUTS if not {"number", "test_speaker"} & set(layout.roles)),
    *("long", "long-key", "parquet", "npz", "bosaris", "bosaris-key"),
)


def write(
    content: TrialList | Embeddings,
    path: str | Path,
    *,
    format: str | None = None,
    system: str | None = None,
) -> tuple[Path, ...]:
    """Write scores, a key or embeddings; every file is written whole or not at all.

    A Kaldi archive of embeddings comes with an ``.scp`` index and, as it holds no speakers, with
    ``utt2spk`` beside it. Other formats also keep the encoder and, of audio that was embedded, a
    digest of each recording, so that a file read back is split as the recordings themselves.

    Parameters
    ----------
    content : Scores, Trials or Embeddings
        What is written; a format of keys takes labelled scores as well.
    path : path
        Where; ``-`` writes text to standard output.
    format : str, optional
        Without it the ending tells, and a key is written as ``kaldi-trials``.
    system : str, optional
        Which one, where the format holds one and there are several.

    Returns
    -------
    tuple of Path
        The files written.

    Examples
    --------
    >>> import unmask as um
    >>> um.write(um.Scores.from_arrays([2.0, 1.5], [-1.0, 0.5]), "scores.tsv")
    (PosixPath('scores.tsv'),)
    """
    sources = content.sources if isinstance(content, TrialList) else (content.source,)
    check_output(path, [source.name for source in sources if source is not None])
    if isinstance(content, Embeddings):
        return _write_embeddings(content, path, embedding_format(path, format))
    is_scores = isinstance(content, Scores)
    target = _trial_format(path, format if format or is_scores else "kaldi-trials")
    if target.kind != "key" and not is_scores:
        raise InputError(path, "a format of keys", target.name)
    if target.roles:
        write_blocks([content], path, target, system)
    elif target.container == "hdf5":
        _write_bosaris(content, path, target, system)
    else:
        frame = long_frame(content, scores=target.kind == "score", system=system)
        if target.container == "text":
            _write_table(frame, path)
        else:
            _save(target.container, dict(zip(frame.columns, frame, strict=True)), path)
    return (Path(path),)


def embedding_format(path: str | Path, name: str | None = None) -> Format:
    """The format of embeddings that are written to ``path``: ``name``, or what the ending tells."""
    known = {entry: format_named(entry).extensions for entry in VECTORS_WRITTEN}
    endings = {ending: entry for entry, extensions in known.items() for ending in extensions}
    target = format_named(name).name if name else endings.get(Path(path).suffix.lower())
    if target not in known:
        raise InputError(
            f"{path}: expected a format of embeddings among {', '.join(known)} (--to) or an ending "
            f"among {', '.join(endings)}, found neither"
        )
    return format_named(target)


def _trial_format(path: str | Path, name: str | None) -> Format:
    if name is None:
        suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix != ".gz"]
        for target in map(format_named, ("long", "parquet", "npz", "bosaris")):
            if suffixes and suffixes[-1] in target.extensions and suffixes[-1] != ".txt":
                return target
        raise InputError(path, "a known ending or a format (--to)", "neither")
    target = format_named(name)
    if target.name not in TRIALS_WRITTEN:
        known = ", ".join(TRIALS_WRITTEN)
        raise InputError(path, f"a format among {known}", target.name)
    return target


def score_format(path: str | Path, name: str | None = None) -> str:
    """The format of scores written to ``path``: ``name``, what the ending tells, or Kaldi's."""
    try:
        target = _trial_format(path, name)
    except InputError:
        if name is not None:
            raise
        return "kaldi-scores"
    if target.kind != "score":
        raise InputError(path, "a format of scores (--to)", target.name)
    return target.name


def long_frame(trials: TrialList, *, scores: bool, system: str | None = None) -> pl.DataFrame:
    """Return the long table: identifiers, speakers, metadata, label, one column per system."""
    columns: dict[str, Ids | pl.Series | None] = {
        "enrol": trials.enrol,
        "test": trials.test,
        "enrol_spk": trials.enrol_speaker,
        "test_spk": trials.test_speaker,
        **trials.columns,
    }
    if trials.label is not None:
        columns["label"] = _label_words(trials, WORDS, "")
    if scores and isinstance(trials, Scores):
        chosen = trials.systems if system is None else {system: trials.scores(system)}
        columns |= {name: pl.Series(values) for name, values in chosen.items()}
    return pl.DataFrame(_series(columns))


def _series(columns: Mapping[str, Ids | pl.Series | None]) -> dict[str, pl.Series]:
    return {
        name: column.to_series() if isinstance(column, Ids) else column
        for name, column in columns.items()
        if column is not None
    }


def _label_words(trials: TrialList, words: pl.Series, path: str | Path) -> pl.Series:
    if trials.label is None:
        raise InputError(path, "labels to write", "none; give a key (--key)")
    if words is DIGITS and (trials.label == OTHER).any():
        actual = f"{int((trials.label == OTHER).sum())} others, which 0 and 1 cannot tell"
        raise InputError(path, "target and nontarget trials only", actual)
    return words.gather(trials.label.astype(np.int32) + 1)


def _check_names(names: pl.Series, path: str | Path) -> None:
    bad = names.filter(names.str.contains(r"[\s\x00]") | (names == ""))
    if len(bad):
        raise InputError(path, "identifiers without blanks", f"{bad[0]!r} ({len(bad)} in all)")


def write_blocks(
    blocks: Iterable[TrialList], path: str | Path, target: Format, system: str | None = None
) -> None:
    """Write trials that come a block at a time in a layout without header."""
    _save_lines((_lines(block, path, target, system) for block in blocks), path)


def _lines(trials: TrialList, path: str | Path, target: Format, system: str | None) -> pl.DataFrame:
    columns: dict[str, pl.Series] = {}
    for role in target.roles:
        if role == "score" and isinstance(trials, Scores):
            columns[role] = pl.Series(trials.scores(system))
        elif role in ("label", "digit", "word"):
            columns[role] = _label_words(trials, DIGITS if role == "digit" else WORDS, path)
        else:
            if trials.side is not None:
                raise InputError(f"{path}: {target.name} cannot hold the side of a segment")
            enrol, test, _ = trials.ids
            ids = enrol if role == "enrol" else test
            _check_names(ids.present, path)
            columns[role] = ids.to_series()
    return pl.DataFrame(columns)


def _save_lines(frames: Iterable[pl.DataFrame], path: str | Path) -> None:
    with atomic_file(path) as file:
        for frame in frames:
            frame.write_csv(file, separator=" ", include_header=False, quote_style="never")


def _write_table(frame: pl.DataFrame, path: str | Path) -> None:
    comma = ".csv" in Path(path).suffixes
    if not comma:
        for column in frame.select(pl.col(pl.String)):
            bad = column.str.contains(r"[\t\n\r]")
            if bad.any():
                actual = f"{column.filter(bad)[0]!r} in column {column.name!r}"
                raise InputError(path, "text without tabs", actual)
    with atomic_file(path) as file:
        frame.write_csv(
            file, separator="," if comma else "\t", quote_style="necessary" if comma else "never"
        )


def _save(container: str, columns: Mapping[str, Any], path: str | Path) -> None:
    """Series, vectors and single words as columns of a parquet file or arrays of an npz file."""
    with atomic_file(path) as file:
        if container == "parquet":
            pl.DataFrame(columns).write_parquet(file, metadata={"tool": MARK.decode()})
            return
        method = zipfile.ZIP_STORED if "embeddings" in columns else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(file, "w", method) as archive:
            for name, column in columns.items():
                text = isinstance(column, pl.Series) and column.dtype == pl.String
                array = np.array(column.to_list(), dtype=str) if text else np.asanyarray(column)
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)


def _save_hdf5(
    path: str | Path, columns: Mapping[str, Any], matrices: Mapping[str, Any] | None = None
) -> None:
    try:
        import h5py
    except ImportError as error:
        raise InputError(f"{path}: writing HDF5 needs h5py (unmask[formats])") from error
    with atomic_file(path) as stream, h5py.File(stream, "w") as file:
        try:
            file.update(columns)
            for name, matrix in (matrices or {}).items():
                file.create_dataset(name, data=matrix, compression="gzip")
        except ValueError as error:
            raise InputError(f"{path}: HDF5 cannot hold these names ({error})") from None


def _write_bosaris(trials: TrialList, path: str | Path, target: Format, system: str | None) -> None:
    enrol, test, side = trials.ids
    if side is not None:
        raise InputError(f"{path}: {target.name} cannot hold the side of a segment")
    if trials.first_occurrence is not None:
        raise InputError(path, "each trial once", "duplicates")
    rows, i = np.unique(enrol.codes, return_inverse=True)
    columns, j = np.unique(test.codes, return_inverse=True)
    shape = (len(rows), len(columns))
    if shape[0] * shape[1] > LARGEST_MATRIX:
        raise InputError(path, f"at most {LARGEST_MATRIX} cells", f"{shape[0]} x {shape[1]}")
    tables: dict[str, np.ndarray] = {}
    if isinstance(trials, Scores) and target.kind == "score":
        tables["scores"] = np.zeros(shape)
        tables["scores"][i, j] = trials.scores(system)
        tables["score_mask"] = np.zeros(shape, np.uint8)
        tables["score_mask"][i, j] = 1
    if trials.label is not None or target.kind == "key":
        words = _label_words(trials, DIGITS, path)
        tables["trial_mask"] = np.zeros(shape, np.int8)
        tables["trial_mask"][i, j] = 2 * words.cast(pl.Int8).to_numpy() - 1

    names = {"ID/row_ids": enrol.names.gather(rows), "ID/column_ids": test.names.gather(columns)}
    _save_hdf5(path, {name: series.to_list() for name, series in names.items()}, tables)


def _write_embeddings(embeddings: Embeddings, path: str | Path, target: Format) -> tuple[Path, ...]:
    if target.container == "ark":
        return _write_ark(embeddings, Path(path))
    is_npz = target.container == "npz"
    columns = _series(
        {
            "utt_ids" if is_npz else "utterance_id": embeddings.utterances,
            "speaker_ids" if is_npz else "speaker_id": embeddings.speakers,
            "session": embeddings.sessions,
            **embeddings.columns,
        }
    )
    if embeddings.contents is not None:
        columns[CONTENT_COLUMN] = pl.Series(contents_as_text(embeddings.contents))
    told = {"encoder": embeddings.encoder} if embeddings.encoder else {}
    if is_npz:
        _save("npz", {"embeddings": embeddings.vectors, **columns, **told}, path)
    elif target.container == "parquet":
        vectors = pl.Series("embedding", np.ascontiguousarray(embeddings.vectors))
        made = {name: pl.repeat(text, len(vectors), eager=True) for name, text in told.items()}
        _save("parquet", {**columns, "embedding": vectors, **made}, path)
    else:
        texts = {name: series.to_list() for name, series in columns.items()}
        _save_hdf5(path, {"embedding": embeddings.vectors, **texts, **told})
    return (Path(path),)


def _write_ark(embeddings: Embeddings, path: Path) -> tuple[Path, ...]:
    """An archive in the order of its names, as Kaldi wants it, its index and ``utt2spk``."""
    if embeddings.utterances is None:
        raise InputError(path, "utterances for a Kaldi archive", "none")
    check_archive_folder(path)
    utterances, speakers = embeddings.utterances.to_series(), embeddings.speakers.to_series()
    _check_names(utterances, path)
    _check_names(speakers, path)
    order = utterances.arg_sort().to_numpy()
    position, index = 0, []
    with atomic_file(path) as file:
        for row in order:
            name = f"{utterances[int(row)]} ".encode()
            index.append(f"{path.name}:{position + len(name)}")
            position += file.write(name + encode(embeddings.vectors[row]))
    names = utterances.gather(order)
    tables = {
        path.with_suffix(".scp"): pl.DataFrame({"utterance": names, "at": index}),
        path.with_name("utt2spk"): pl.DataFrame({"utterance": names, "s": speakers.gather(order)}),
    }
    for place, table in tables.items():
        _save_lines([table], place)
    return (path, *tables)
