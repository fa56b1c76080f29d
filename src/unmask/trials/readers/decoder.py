"""A process that decodes files for another one, which ends it where a library hangs.

It is run as a script, with ``hdf5``, ``parquet`` or ``slices`` behind it and without this package.
A request is two numbers (free memory, bytes) and a file, or in place of that the slice of one that
is wanted (JSON); an answer is a byte (1 decoded, 0 refused), a length, and contents or a sentence.
"""

from __future__ import annotations

import io
import json
import struct
import sys
from contextlib import suppress
from typing import Any

REQUEST, ANSWER = struct.Struct("<QQ"), struct.Struct("<BQ")


def main() -> None:
    """Answer requests until standard input ends."""
    decode = {"hdf5": hdf5, "parquet": parquet, "slices": slices}[sys.argv[1]]
    __import__("h5py" if decode is hdf5 else "polars")  # the first request is timed
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory ends, this process does, not the one that asked
    source, target = sys.stdin.buffer, sys.stdout.buffer
    target.write(b"!")
    target.flush()
    while head := source.read(REQUEST.size):
        memory, size = REQUEST.unpack(head)
        try:
            code, answer = 1, decode(source.read(size), memory)
        except BaseException as error:
            code, answer = 0, str(error).encode("utf-8", "replace")
        target.write(ANSWER.pack(code, len(answer)))
        target.write(answer)
        target.flush()


def check_memory(needed: int, memory: int) -> None:
    """Refuse what memory cannot hold twice."""
    if 2 * needed > memory:
        raise ValueError(
            f"expected at most {memory / 2e9:.1f} GB, half of the free memory,"
            f" found {needed / 1e9:.1f} GB"
        )


def parquet(data: bytes, memory: int) -> bytes:
    """All columns of a table in Arrow's file format."""
    import polars as pl

    scan = pl.scan_parquet(io.BytesIO(data))
    rows = int(scan.select(pl.len()).collect().item())
    check_memory(rows * len(scan.collect_schema()) * 8, memory)
    frame = pl.read_parquet(io.BytesIO(data))
    if frame.height != rows:
        raise ValueError(f"expected {rows} rows as declared, found {frame.height}")
    return arrow(frame)


def slices(data: bytes, memory: int) -> bytes:
    """How many rows a file declares, and some rows of some columns."""
    import polars as pl

    path, columns, first, rows = json.loads(data)
    scan = pl.scan_parquet(path)
    height = int(scan.select(pl.len()).collect().item())
    check_memory(rows * len(columns) * 8, memory)
    frame = pl.DataFrame(schema=scan.collect_schema())
    if rows:
        frame = scan.select(columns).slice(first, rows).collect()
    return struct.pack("<Q", height) + arrow(frame)


def arrow(frame: Any) -> bytes:
    """A table in Arrow's file format."""
    made = io.BytesIO()
    frame.write_ipc(made)
    return made.getvalue()


def hdf5(data: bytes, memory: int) -> bytes:
    """All datasets of a file as an npz archive."""
    import h5py
    import numpy as np

    arrays: dict[str, Any] = {}
    about: list[tuple[str, str, str | None]] = []
    with h5py.File(io.BytesIO(data), "r") as file:
        items = datasets(file)
        check_memory(sum(int(item.nbytes) for item in items.values()), memory)
        for name, item in items.items():
            speaker = item.attrs.get("speaker_id", item.attrs.get("speaker"))
            array, kind = plain(item)
            arrays[f"a{len(about)}"] = array
            about.append((name, kind, None if speaker is None else text(speaker)))
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    made = io.BytesIO()
    np.savez(made, **arrays)
    return made.getvalue()


def datasets(file: Any) -> dict[str, Any]:
    """Every dataset of a file by its path; none may lie in another file."""
    items: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if hasattr(item, "shape"):
            if item.external or item.is_virtual:
                raise ValueError(f"the dataset {name} lies in other files, which are not read")
            items[name] = item
            return
        for part in item:
            if hasattr(item.get(part, getlink=True), "path"):
                raise ValueError(f"{part} is a link to elsewhere, which is not followed")

    visit("", file)
    file.visititems(visit)
    return items


def plain(item: Any) -> tuple[Any, str]:
    """Numbers as they are, text as UTF-8 in one array of bytes; another kind by its name alone."""
    import numpy as np

    if item.shape is None:
        return np.zeros(0), "an empty dataset"
    if item.dtype.kind in "biuf":
        return np.asarray(item[()]), "numbers"
    if item.dtype.kind in "OS":
        values = np.asarray(item[()]).ravel()
        if all(isinstance(value, (bytes, str)) for value in values.tolist()):
            words = [text(value) for value in values.tolist()]
            return np.frombuffer(json.dumps(words).encode(), np.uint8), "text"
    return np.zeros(0), str(item.dtype)


def text(value: Any) -> str:
    """Text, padding removed."""
    return (value.decode("utf-8") if isinstance(value, bytes) else str(value)).rstrip(" \0")


if __name__ == "__main__":
    main()
