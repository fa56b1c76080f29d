"""Writing scores and keys in the formats others read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.run import atomic_file, atomic_path
from unmask.trials.formats import format_named
from unmask.trials.hdf5 import BOSARIS, BOSARIS_KEY
from unmask.trials.labels import OTHER
from unmask.trials.layouts import LAYOUTS
from unmask.trials.npz import NPZ
from unmask.trials.parquet import PARQUET
from unmask.trials.registry import Format
from unmask.trials.scores import Scores
from unmask.trials.tables import LONG, LONG_KEY
from unmask.trials.trial_list import TrialList

WORDS = pl.Series(["spoof", "nontarget", "target"])
DIGITS = pl.Series(["", "0", "1"])
LARGEST_MATRIX = 400_000_000

WRITTEN = (
    *(layout for layout in LAYOUTS if "number" not in layout.roles),
    LONG,
    LONG_KEY,
    PARQUET,
    NPZ,
    BOSARIS,
    BOSARIS_KEY,
)
_BY_SUFFIX = {
    ".tsv": LONG,
    ".csv": LONG,
    ".parquet": PARQUET,
    ".npz": NPZ,
    ".h5": BOSARIS,
    ".hdf5": BOSARIS,
}


def write_scores(
    scores: Scores, path: str | Path, *, format: str | None = None, system: str | None = None
) -> None:
    """Write scores. Formats of one system need ``system`` where there are several."""
    _write(scores, path, _output_format(path, format), system)


def write_key(trials: TrialList, path: str | Path, *, format: str = "kaldi-trials") -> None:
    """Write the labelled trials, of a key or of scores."""
    target = _output_format(path, format)
    if target.kind != "key":
        raise InputError(f"{path}: expected a format of keys, found {target.name}")
    _write(trials, path, target, None)


def _output_format(path: str | Path, name: str | None) -> Format:
    if name is not None:
        target = format_named(name)
    else:
        suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix != ".gz"]
        found = _BY_SUFFIX.get(suffixes[-1] if suffixes else "")
        if found is None:
            raise InputError(f"{path}: expected a known ending or a format (--to), found neither")
        target = found
    if target not in WRITTEN:
        known = ", ".join(entry.name for entry in WRITTEN)
        raise InputError(f"{path}: expected a format among {known}, found {target.name}")
    return target


def _write(trials: TrialList, path: str | Path, target: Format, system: str | None) -> None:
    if target.kind == "score" and not isinstance(trials, Scores):
        raise InputError(f"{path}: expected scores to write as {target.name}, found a key")
    if target.roles:
        _write_layout(trials, path, target, system)
    elif target in (BOSARIS, BOSARIS_KEY):
        _write_bosaris(trials, path, target, system)
    else:
        frame = long_frame(trials, scores=target is not LONG_KEY, system=system)
        _table_writers()[target.container](frame, path)


def _label_words(trials: TrialList, words: pl.Series, path: str | Path) -> pl.Series:
    if trials.label is None:
        raise InputError(f"{path}: expected labels to write, found none; give a key (--key)")
    if words is DIGITS and (trials.label == OTHER).any():
        raise InputError(
            f"{path}: expected target and nontarget trials only, found "
            f"{int((trials.label == OTHER).sum())} others, which 0 and 1 cannot tell"
        )
    return words.gather(trials.label.astype(np.int32) + 1)


def _write_layout(trials: TrialList, path: str | Path, target: Format, system: str | None) -> None:
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
            names = ids.names.gather(ids.used)
            bad = names.filter(names.str.contains(r"\s") | (names == ""))
            if len(bad):
                raise InputError(
                    f"{path}: expected identifiers without blanks, found {bad[0]!r} "
                    f"({len(bad)} in all)"
                )
            columns[role] = ids.to_series()
    frame = pl.DataFrame(columns)
    with atomic_file(path) as file:
        frame.write_csv(file, separator=" ", include_header=False, quote_style="never")


def long_frame(trials: TrialList, *, scores: bool, system: str | None = None) -> pl.DataFrame:
    """Return the long table: identifiers, speakers, metadata, label, one column per system."""
    columns: dict[str, pl.Series] = {}
    if trials.enrol is not None and trials.test is not None:
        columns |= {"enrol": trials.enrol.to_series(), "test": trials.test.to_series()}
    if trials.enrol_speaker is not None and trials.test_speaker is not None:
        columns["enrol_spk"] = trials.enrol_speaker.to_series()
        columns["test_spk"] = trials.test_speaker.to_series()
    columns |= {name: column.to_series() for name, column in trials.columns.items()}
    if trials.label is not None:
        columns["label"] = _label_words(trials, WORDS, "")
    if scores and isinstance(trials, Scores):
        chosen = trials.systems if system is None else {system: trials.scores(system)}
        columns |= {name: pl.Series(values) for name, values in chosen.items()}
    return pl.DataFrame(columns)


def _table_writers() -> dict[str, Callable[[pl.DataFrame, str | Path], None]]:
    return {"text": _write_text, "parquet": _write_parquet, "npz": _write_npz}


def _write_text(frame: pl.DataFrame, path: str | Path) -> None:
    comma = ".csv" in Path(path).suffixes
    if not comma:
        for column in frame.select(pl.col(pl.String)):
            bad = column.str.contains(r"[\t\n\r]")
            if bad.any():
                raise InputError(
                    f"{path}: expected text without tabs, found {column.filter(bad)[0]!r} in "
                    f"column {column.name!r}"
                )
    with atomic_file(path) as file:
        frame.write_csv(
            file,
            separator="," if comma else "\t",
            quote_style="necessary" if comma else "never",
        )


def _write_parquet(frame: pl.DataFrame, path: str | Path) -> None:
    with atomic_path(path) as temporary:
        frame.write_parquet(temporary)


def _write_npz(frame: pl.DataFrame, path: str | Path) -> None:
    arrays = {
        column.name: column.to_numpy().astype(str)
        if column.dtype == pl.String
        else column.to_numpy()
        for column in frame
    }
    with atomic_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _write_bosaris(trials: TrialList, path: str | Path, target: Format, system: str | None) -> None:
    try:
        import h5py
    except ImportError as error:
        raise InputError(f"{path}: writing HDF5 needs h5py (unmask[formats])") from error
    enrol, test, side = trials.ids
    if side is not None:
        raise InputError(f"{path}: {target.name} cannot hold the side of a segment")
    if trials.first_occurrence is not None:
        raise InputError(f"{path}: expected each trial once, found duplicates")
    rows, i = np.unique(enrol.codes, return_inverse=True)
    columns, j = np.unique(test.codes, return_inverse=True)
    shape = (len(rows), len(columns))
    if shape[0] * shape[1] > LARGEST_MATRIX:
        raise InputError(
            f"{path}: expected at most {LARGEST_MATRIX} cells, found {shape[0]} x {shape[1]}"
        )
    tables: dict[str, np.ndarray] = {}
    if isinstance(trials, Scores) and target is BOSARIS:
        tables["scores"] = np.zeros(shape)
        tables["scores"][i, j] = trials.scores(system)
        tables["score_mask"] = np.zeros(shape, np.uint8)
        tables["score_mask"][i, j] = 1
    if trials.label is not None:
        _label_words(trials, DIGITS, path)
        tables["trial_mask"] = np.zeros(shape, np.int8)
        tables["trial_mask"][i, j] = 2 * trials.label - 1
    elif target is BOSARIS_KEY:
        raise InputError(f"{path}: expected labels to write, found none; give a key (--key)")
    with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
        file["ID/row_ids"] = enrol.names.gather(rows).to_list()
        file["ID/column_ids"] = test.names.gather(columns).to_list()
        for name, table in tables.items():
            file.create_dataset(name, data=table, compression="gzip")
