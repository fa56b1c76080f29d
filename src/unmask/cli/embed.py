"""``unmask embed``: from recordings to speaker embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import common
from unmask.errors import InputError
from unmask.run import place, reporting
from unmask.speech import Extraction, forget, recordings
from unmask.speech import embed as embed_recordings
from unmask.trials import check_archive_folder, embedding_format, write

SpeakersOption = Annotated[
    str | None,
    typer.Option(
        "--speakers",
        "-s",
        help="Whose the files are: folder, name, pattern:REGEX, or an utt2spk file.",
        show_default="folder, or the Kaldi directory's own",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", "-w", min=1, help="Processes.", show_default="all cores"),
]


def embed(
    source: Annotated[
        Path, typer.Argument(help="A folder of audio, a Kaldi directory, or a list of files.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to: .npz, .parquet or .ark.")
    ],
    encoder: Annotated[
        str,
        typer.Option(
            "--encoder",
            "-e",
            help="campplus, resemblyzer, a trained FOLDER, MODEL.onnx or module:function.",
        ),
    ] = "campplus",
    speakers: SpeakersOption = None,
    vad: Annotated[bool, typer.Option("--vad", help="Shorten pauses first.")] = False,
    segment: Annotated[
        float | None, typer.Option("--segment", min=0.1, help="Cut into pieces of that many s.")
    ] = None,
    segments: Annotated[
        int | None, typer.Option("--max-segments", min=1, help="At most so many per file.")
    ] = None,
    workers: WorkersOption = None,
    device: Annotated[str, typer.Option("--device", help="cpu, or cuda for a GPU.")] = "cpu",
    shard: Annotated[
        int, typer.Option("--shard", min=1, help="Files per shard, the unit of resuming.")
    ] = 64,
    quiet: common.QuietOption = False,
) -> None:
    """Turn recordings into speaker embeddings; a run that was stopped goes on where it was."""
    embedding_format(output)
    if not output.absolute().parent.is_dir():
        raise InputError(f"{output.absolute().parent}: no such folder")
    if output.suffix == ".ark":
        check_archive_folder(output)
    found = recordings(source, speakers=speakers)
    parts = output.with_name(f"{output.name}.parts")
    if parts.exists():
        common.remark(f"{parts}: what fits of an earlier run is kept", quiet=quiet)
    here = place(workers=workers)
    with here, common.progress("embedding", quiet=quiet) as bar, reporting(bar):
        result = embed_recordings(
            found,
            encoder,
            extraction=Extraction(vad, segment, segments),
            parts=parts,
            shard=shard,
            device=device,
        )
    for line in result.remarks:
        common.remark(f"remark: {line}", quiet=quiet)
    for line in result.failures:
        common.remark(f"unmask: {line}")
    if result.embeddings is None:
        raise InputError(f"{source}: none of {len(found)} recordings could be embedded")
    written = write(result.embeddings, output)
    forget(parts)
    common.remark(
        f"{len(result.embeddings)} vectors of {result.embeddings.n_speakers} speakers,"
        f" {result.seconds / 60:.1f} minutes of audio, encoder {result.encoder};"
        f" {len(result.failures)} of {len(found)} files failed",
        quiet=quiet,
    )
    common.remark(f"wrote {', '.join(map(str, written))}", quiet=quiet)
    if result.failures:
        raise typer.Exit(1)
