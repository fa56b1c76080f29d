"""``unmask embed``: from recordings to speaker embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from unmask.cli.common import Terminal, Where, remark
from unmask.cli.options import argument, group, option
from unmask.errors import InputError
from unmask.speech import Extraction, Recording, embed as embed_recordings, forget, recordings
from unmask.trials import check_archive_folder, embedding_format, write


@dataclass(frozen=True)
class Recorded(Terminal):
    """Recordings, whose they are, and the processes that work on them."""

    speakers: str | None = option(
        "Whose the files are: folder, name, pattern:REGEX, or an utt2spk file.",
        "--speakers",
        "-s",
        show_default="folder, or the Kaldi directory's own",
    )
    workers: int | None = option("Processes.", "--workers", "-w", min=1, show_default="all cores")

    def read(self, *sources: Path) -> list[Recording]:
        """The recordings of folders, directories and lists."""
        return [one for source in sources for one in recordings(source, speakers=self.speakers)]

    @contextmanager
    def running(self, what: str) -> Iterator[None]:
        """Work in processes, ``what`` beside a progress bar."""
        with Where("local", self.workers, None).running(what, quiet=self.quiet):
            yield

    def problems(self, result: Any) -> None:
        """Remarks and failures of a result, a line each."""
        for line in result.remarks:
            self.remark(f"remark: {line}")
        for line in result.failures:
            remark(f"unmask: {line}")


def embed(
    recorded: Recorded,
    source: Path = argument("A folder of audio, a Kaldi directory, or a list of files."),
    output: Path = option("Where to: .npz, .parquet or .ark.", "--output", "-o", default=...),
    encoder: str = option(
        "campplus, resemblyzer, a trained FOLDER, MODEL.onnx or module:function.",
        "--encoder",
        "-e",
        default="campplus",
    ),
    extraction: Extraction = group(
        trim=option("Shorten pauses first.", "--vad"),
        segment=option("Cut into pieces of that many s.", min=0.1),
        most=option("At most so many per file.", "--max-segments", min=1),
    ),
    device: str = option("cpu, or cuda for a GPU.", default="cpu"),
    shard: int = option("Files per shard, the unit of resuming.", default=64, min=1),
) -> None:
    """Turn recordings into speaker embeddings; a run that was stopped goes on where it was."""
    embedding_format(output)
    if not output.absolute().parent.is_dir():
        raise InputError(f"{output.absolute().parent}: no such folder")
    if output.is_dir():
        raise InputError(f"{output}: expected a file to write, found a folder")
    if output.suffix == ".ark":
        check_archive_folder(output)
    files = recorded.read(source)
    parts = output.with_name(f"{output.name}.parts")
    earlier = parts.is_dir()
    if earlier:
        recorded.remark(f"{parts}: what fits of an earlier run is kept")
    with recorded.running("embedding"):
        result = embed_recordings(
            files, encoder, extraction=extraction, parts=parts, shard=shard, device=device
        )
    recorded.problems(result)
    if result.embeddings is None:
        if not earlier:
            forget(parts)
        raise InputError(f"{source}: none of {len(files)} recordings could be embedded")
    written = write(result.embeddings, output)
    forget(parts)
    recorded.remark(
        f"{len(result.embeddings)} vectors of {result.embeddings.n_speakers} speakers,"
        f" {result.seconds / 60:.1f} minutes of audio, encoder {result.encoder};"
        f" {len(result.failures)} of {len(files)} files failed"
    )
    recorded.remark(f"wrote {', '.join(map(str, written))}")
    if result.failures:
        raise typer.Exit(1)
