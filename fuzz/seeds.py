"""Small valid files of every kind that is read, made in memory."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec

import numpy as np
import polars as pl

from unmask.trials import FORMATS
from unmask.utility import COLUMNS

ROWS = 8
_WORDS = ("nontarget", "target")


@cache
def installed(package: str) -> bool:
    """Whether a package can be imported."""
    return find_spec(package) is not None


@cache
def seeds() -> dict[str, list[bytes]]:
    """Contents of valid files by target."""
    text = [*_layouts(), *_headed()]
    return {
        "text": text,
        "gzip": [gzip.compress(one, 1, mtime=0) for one in text],
        "pairs": ["".join(f"u{i} s{i % 3}\n" for i in range(ROWS)).encode()],
        "npz": _npz(),
        "npy": [_saved(_vectors()), _saved(_vectors().astype("<f4"))],
        "parquet": _parquet(),
        "hdf5": _hdf5(),
        "ark": _arks(),
        "scp": ["".join(f"u{i} a.ark:{i * 29 + 3}\n" for i in range(ROWS)).encode()],
        "config": _configs(),
        "list": ["".join(f"u{i}\ts{i % 3}\tf{i}.wav\n" for i in range(ROWS)).encode()],
        "audio": _audio(),
        "ledger": _ledgers(),
        "plan": [json.dumps(_PLAN).encode()],
        "model": _models(),
        "slices": [_npz()[4]],
        "measured": [_MEASURED.encode()],
        "words": ["".join(f"u{i} THE {i}TH WORD\n" for i in range(ROWS)).encode()],
        "sheet": _sheets("text", "Well, the word"),
        "labels": _sheets("emotion", "calm"),
        "genders": ["".join(f"s{i} {'fm'[i % 2]}\n" for i in range(ROWS)).encode()],
        "spoken": [_lines({"utterance": f"u{i}", "text": "a word"} for i in range(ROWS))],
        **_manifests(),
        "map": _maps(),
        "stated": [_STATED.encode()],
        "ranked": [_RANKED.encode()],
        "written": [_WRITTEN.encode()],
        **_encoders(),
    }


_PLAN = {
    "$": "mapping",
    "v": [
        ["rows", {"$": "array", "v": "a0", "shape": [8, 4]}],
        ["names", {"$": "names", "v": ["s0", "s1"]}],
        ["rest", {"$": "tuple", "v": [1, 2.5, None, {"$": "float", "v": "inf"}]}],
    ],
}
_MEASURED = "# recogniser: none\ncondition,utterance,speaker," + ",".join(COLUMNS) + "\n"
_MEASURED += "".join(
    f"{c},u{i},s{i % 2},{','.join(str(n + i) for n in range(len(COLUMNS)))}\n"
    for c in ("original", "p")
    for i in range(ROWS // 2)
)


_STATED = ",dataset,split,asr,WER\n0,libri,dev,original,1.85\n1,libri,test,anon,4.30\n"
_WRITTEN = "%WER 8.70 [ 4738 / 54402, 520 ins, 468 del, 3750 sub ]\n%WER 6.73 [ 3664 / 54402 ]\n"
_RANKED = """---- Time: 20240101_000000 ----
---- ASV results ----
 dataset split gender enrollment trial    EER
   libri   dev      f   original  anon 20.031
   libri  test      m       anon  anon 7.4800
---- ASR results ----
 dataset split asr   WER
   libri   dev anon 4.3
---- SER results ----
 dataset split ser   UAR
 IEMOCAP   dev anon 62.2
"""


def _lines(objects: Iterable[dict[str, object]]) -> bytes:
    return "".join(f"{json.dumps(one)}\n" for one in objects).encode()


def _manifests() -> dict[str, list[bytes]]:
    """Lists of recordings: tables of metadata, lhotse, Kaldi."""
    rows = "".join(f'f{i}.wav,s{i % 3},"he said, {i}"\n' for i in range(ROWS))
    sources = [{"type": "file", "channels": [0], "source": f"f{i}.wav"} for i in range(ROWS)]
    return {
        "metadata": [f"file_name,speaker,text\n{rows}".encode()],
        "objects": [
            _lines({"file_name": f"f{i}.wav", "speaker": f"s{i % 3}"} for i in range(ROWS))
        ],
        "recorded": [
            _lines(
                {"id": f"r{i}", "sources": [sources[i]], "duration": 2.5, "sampling_rate": 16000}
                for i in range(ROWS)
            )
        ],
        "supervised": [
            _lines(
                {"id": f"u{i}", "recording_id": f"r{i}", "start": 0.0, "duration": 1.5,
                 "speaker": f"s{i % 3}", "channel": 0}
                for i in range(ROWS)
            )
        ],
        "scripts": ["".join(f"u{i} f{i}.wav\n" for i in range(ROWS)).encode()],
    }  # fmt: skip


def _maps() -> list[bytes]:
    head = {"format": "unmask calibration 1"}
    isotonic = {"kind": "IsotonicCalibration", "score": [-1.0, 0.5], "llr": [-2.0, 3.0]}
    fusion = {"kind": "Fusion", "systems": ["a", "b"], "quality": [], "weights": [1.5, 0.5]}
    made = [head | isotonic | {"laplace": True}]
    made.append(head | fusion | {"offset": -1.0, "separable": False})
    return [json.dumps(one, indent=1).encode() for one in made]


def _layouts() -> list[bytes]:
    made = []
    for layout in FORMATS:
        if not layout.roles:
            continue
        lines = []
        for i in range(ROWS):
            word, score = _WORDS[i % 2], f"{i - 3.5:.3f}"
            fields = {"enrol": f"e{i}", "test": f"t{i}", "score": score, "number": f"0.{i}"}
            fields |= {"label": word, "digit": str(i % 2), "word": word}
            fields |= {"enrol_speaker": f"k{i}", "test_speaker": f"k{i - i % 2}"}
            lines.append(" ".join(fields[role] for role in layout.roles))
        made.append(("\n".join(lines) + "\n").encode())
    return made


def _headed() -> list[bytes]:
    tables = {
        "enrol test label enrol_spk test_spk sex plda lda": "e{i} t{i} {w} s{m} s{m} f 0.{i} -{i}",
        "enrol test label enrol_spk test_spk": "e{i} t{i} {w} s{m} s{m}",
        "modelid segmentid side LLR": "m{i} s{i}.sph a -{i}.25",
        "modelid segmentid side targettype num_enroll_segs gender": "m{i} s{i}.sph a {w} 1 male",
        "spk filename cm-score asv-score sasv-score": "E{i} F{i} - - 0.0{i}",
        "spk filename cm-label asv-label": "E{i} F{i} bonafide {w}",
        "label score": "{w} 0.{i}",
        "asv_score cm_score sasv_label": "0.{i} {i} {m}.0",
        "LLR hypothesis": "-{i}.5 {w}",
        "claimed_id real_id probe score": "k{m} k1 p{i} 0.{i}",
    }
    made = []
    for header, row in tables.items():
        lines = [header, *(row.format(i=i, m=i % 2, w=_WORDS[i % 2]) for i in range(ROWS))]
        plain = "\n".join(lines) + "\n"
        made += [plain.replace(" ", mark).encode() for mark in ("\t", ",")]
    made.append(made[1].replace(b"e1", b'"e,1"'))
    return made


def _vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(ROWS, 4))


def _names(letter: str, of: int = ROWS) -> np.ndarray:
    return np.array([f"{letter}{i % of}" for i in range(ROWS)])


def _saved(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _zipped(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _npz() -> list[bytes]:
    scores, labels = np.arange(ROWS) / 3, np.arange(ROWS) % 2
    return [
        _zipped(tar=scores, non=scores - 2),
        _zipped(scores=scores, labels=labels),
        _zipped(scores=np.outer(scores, scores), enrol=_names("e"), test=_names("t")),
        _zipped(enrol=_names("e"), test=_names("t"), label=labels, plda=scores),
        _zipped(embeddings=_vectors(), utt_ids=_names("u"), speaker_ids=_names("s", 3)),
    ]


def _parquet() -> list[bytes]:
    scores = np.arange(ROWS) / 3
    words = [_WORDS[i % 2] for i in range(ROWS)]
    frames = [
        pl.DataFrame({"enrol": _names("e"), "test": _names("t"), "label": words, "plda": scores}),
        pl.DataFrame(
            {
                "utterance_id": _names("u"),
                "speaker_id": _names("s", 3),
                "embedding": pl.Series(_vectors().astype(np.float32)),
            }
        ),
    ]
    made = []
    for frame in frames:
        for compression in ("uncompressed", "zstd"):
            file = io.BytesIO()
            frame.write_parquet(file, compression=compression)  # type: ignore[arg-type]
            made.append(file.getvalue())
    return made


def _hdf5() -> list[bytes]:
    if not installed("h5py"):
        return []
    import h5py

    scores = np.outer(np.arange(ROWS), np.arange(ROWS)) / 7
    contents = [
        {"ID/row_ids": _names("e"), "ID/column_ids": _names("t"), "scores": scores,
         "score_mask": np.ones(scores.shape, np.uint8)},
        {"ID/row_ids": _names("e"), "ID/column_ids": _names("t"),
         "trial_mask": np.where(np.eye(ROWS), 1, -1).astype(np.int8)},
        {"utterance_id": _names("u"), "speaker_id": _names("s", 3), "embedding": _vectors()},
        {f"s{i % 3}/u{i}": row for i, row in enumerate(_vectors())},
    ]  # fmt: skip
    made = []
    for content in contents:
        for packed in (False, True):
            file = io.BytesIO()
            with h5py.File(file, "w") as root:
                for name, array in content.items():
                    if array.dtype.kind == "U":
                        root[name] = array.tolist()
                    else:
                        root.create_dataset(
                            name, data=array, compression="gzip" if packed else None
                        )
            made.append(file.getvalue())
    return made


def _arks() -> list[bytes]:
    vectors = _vectors()
    made = []
    for token, number in ((b"FV ", "<f4"), (b"DV ", "<f8")):
        head = b"\0B" + token + struct.pack("<bi", 4, 4)
        made.append(
            b"".join(
                f"u{i} ".encode() + head + v.astype(number).tobytes() for i, v in enumerate(vectors)
            )
        )
    head = b"\0BFM " + struct.pack("<bibi", 4, 1, 4, 4)
    made.append(
        b"".join(
            f"u{i} ".encode() + head + v.astype("<f4").tobytes() for i, v in enumerate(vectors)
        )
    )
    for token, kind in ((b"CM ", "u1"), (b"CM2 ", "<u2"), (b"CM3 ", "u1")):
        head = b"\0B" + token + struct.pack("<ffii", -1.0, 2.0, 1, 4)
        quantiles = (
            np.tile(np.array([0, 20000, 40000, 65535], "<u2"), 4).tobytes()
            if token == b"CM "
            else b""
        )
        codes = np.arange(4).astype(kind).tobytes()
        made.append(b"".join(f"u{i} ".encode() + head + quantiles + codes for i in range(ROWS)))
    made.append(
        "".join(
            f"u{i}  [ {' '.join(f'{x:.4f}' for x in v)} ]\n" for i, v in enumerate(vectors)
        ).encode()
    )
    return made


def _configs() -> list[bytes]:
    return [
        b'title = "T"\nseed = 3\nframeworks = ["legal", "verification"]\nredact = true\n'
        b'[intervals]\nlevel = 0.9\nreplicates = 50\n[original]\nembeddings = "a.npz"\n'
        b'[[safeguards]]\nname = "B2"\nembeddings = "a.npz"\nkeyless = true\n'
        b'[[attackers]]\nname = "x"\nenrol = "own"\ntrain = ["original", "own"]\n'
        b"[legal]\nlengths = [1, 3]\ncounts = [2, 5]\n[legal.attributes]\nage = [30, 50.5]\n",
        b'[[scores]]\nname = "s"\nfiles = ["a.npz"]\n[verification]\np_target = [0.01]\n'
        b"[cpmap]\ngrid = 10\n[worst_case]\ncounts = [1, 10]\nlevel = 0.95\n",
    ]


def _audio() -> list[bytes]:
    if not installed("soundfile"):
        return []
    import soundfile

    samples = 0.3 * np.sin(np.arange(400) / 9)
    made = []
    for kind, subtype, rate, channels in (
        ("WAV", "PCM_16", 16000, 1),
        ("WAV", "FLOAT", 16000, 2),
        ("FLAC", "PCM_16", 16000, 1),
        ("FLAC", "PCM_24", 8000, 1),
        ("OGG", "VORBIS", 16000, 1),
        ("AIFF", "PCM_16", 16000, 1),
    ):
        file = io.BytesIO()
        soundfile.write(file, np.tile(samples[:, None], channels), rate, subtype, format=kind)
        made.append(file.getvalue())
    return made


def _ledgers() -> list[bytes]:
    from unmask.run import store

    kind = np.asarray("unmask job 1")
    return [
        _zipped(number=np.asarray(2), **{"0-a": np.arange(3), "1-a": np.arange(3)}, format=kind),
        _zipped(done=np.asarray(2), a=np.arange(3.0), format=kind),
        store.to_bytes({"a": np.arange(8.0), "b": (1, float("inf"), "x"), "c": [None, True]}),
        json.dumps({"$": "tuple", "v": [1, {"$": "float", "v": "nan"}]}).encode(),
    ]


def _models() -> list[bytes]:
    square = np.eye(4)
    whole = {"centre": np.zeros(4), "mean": np.zeros(4), "between": square, "within": square}
    return [
        _zipped(**whole, iterations=np.asarray(3), format=np.asarray("unmask-plda-1")),
        _zipped(oo=square, op=square, pp=square, speakers=_names("s")[:4]),
    ]


def _sheets(column: str, cell: str) -> list[bytes]:
    rows = "".join(f'u{i}.wav,s{i % 3},"{cell}"\n' for i in range(ROWS))
    return [f"utterance,speaker,{column}\n{rows}".encode()]


def _encoders() -> dict[str, list[bytes]]:
    """A trained encoder: its weights, and cards that name them."""
    if not installed("safetensors"):
        return {"card": [], "weights": []}
    import safetensors.numpy

    from unmask.speech.encoders.card import KIND, Recipe

    tensors = {"mean": _vectors().astype("<f4"), "steps": np.asarray(3)}
    weights = safetensors.numpy.save(tensors, {"note": "a line"})
    digest = hashlib.sha256(weights).hexdigest()
    cards = [
        {"kind": KIND, "weights": digest, "recipe": Recipe(network=name).to_dict(), "curve": []}
        for name in ("tdnn", "ivector")
    ]
    return {"card": [json.dumps(one, indent=1).encode() for one in cards], "weights": [weights]}
