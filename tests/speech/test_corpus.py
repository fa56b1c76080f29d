from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from unmask.errors import InputError
from unmask.speech.audio import read_audio, write_audio
from unmask.speech.corpus import recordings


def touch(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return root


def labels(result):
    return [(one.utterance, one.speaker, one.session) for one in result]


def test_speakers_from_folders(tmp_path):
    touch(tmp_path, "b/2.wav", "b/1.FLAC", "a/x.mp3", "a/notes.txt", "a/.hidden.wav")
    result = recordings(tmp_path)
    assert labels(result) == [("x", "a", None), ("1", "b", None), ("2", "b", None)]
    assert result[1].place.as_posix() == "b/1"


def test_a_folder_between_is_the_session(tmp_path):
    touch(tmp_path, "id1/video/00001.wav", "id2/video/00001.wav")
    assert labels(recordings(tmp_path)) == [
        ("id1/video/00001", "id1", "video"),
        ("id2/video/00001", "id2", "video"),
    ]


def test_speakers_from_names_patterns_and_tables(tmp_path, sentences):
    root = touch(tmp_path / "flat", "103-1240-0000.flac", "1034_121119.flac")
    assert [one.speaker for one in recordings(root, speakers="name")] == ["103", "1034"]
    assert [one.speaker for one in recordings(root, speakers=r"pattern:^(\d\d)")] == ["10", "10"]
    named = recordings(root, speakers=r"pattern:^(?P<speaker>\d+)[-_](?P<session>\d+)")
    assert [one.session for one in named] == ["1240", "121119"]
    table = tmp_path / "utt2spk"
    table.write_text("103-1240-0000 anna\n1034_121119 bert\n")
    assert [one.speaker for one in recordings(root, speakers=str(table))] == ["anna", "bert"]
    table.write_text("103-1240-0000 anna\n")
    with pytest.raises(InputError) as error:
        recordings(root, speakers=str(table))
    sentences.check(str(error.value))


def test_a_kaldi_directory(tmp_path):
    touch(tmp_path, "audio/one.wav")
    (tmp_path / "wav.scp").write_text("u2 audio/one.wav\nu1 /elsewhere/a b.wav\n")
    (tmp_path / "utt2spk").write_text("u1 s1\nu2 s2\n")
    result = recordings(tmp_path)
    assert labels(result) == [("u1", "s1", None), ("u2", "s2", None)]
    assert result[0].path == Path("/elsewhere/a b.wav")
    assert result[1].path == tmp_path / "audio/one.wav"
    (tmp_path / "wav.scp").write_text("u1 flac -dc x.flac |\n")
    with pytest.raises(InputError, match="found a command"):
        recordings(tmp_path)


def test_lists(tmp_path):
    (tmp_path / "list").write_text("anna\tx/a one.wav\nbert\tx/b.wav\n")
    assert labels(recordings(tmp_path / "list")) == [("a one", "anna", None), ("b", "bert", None)]
    (tmp_path / "list").write_text("u1 anna a.wav\nu2 bert b.wav\n")
    assert labels(recordings(tmp_path / "list")) == [("u1", "anna", None), ("u2", "bert", None)]
    (tmp_path / "list").write_text("x/anna/a.wav\n\nx/bert/b.wav\n")
    assert labels(recordings(tmp_path / "list")) == [("a", "anna", None), ("b", "bert", None)]
    assert labels(recordings(tmp_path / "list", speakers=r"pattern:/(\w)\.wav$"))[0][1] == "a"


@pytest.mark.parametrize(
    ("names", "speakers"),
    [
        ((), None),
        (("a.wav",), None),
        (("a.wav",), "folder"),
        (("s/a.wav",), "pattern:(x"),
        (("s/a.wav",), "pattern:x"),
        (("s/a.wav",), "pattern:(x)"),
        (("s/a.wav", "s/a.flac"), None),
    ],
)
def test_bad_corpora_are_refused(tmp_path, names, speakers, sentences):
    touch(tmp_path, *names)
    with pytest.raises(InputError) as error:
        recordings(tmp_path, speakers=speakers)
    sentences.check(str(error.value))


@pytest.mark.parametrize("line", ["../../etc anna a.wav", "u .. a.wav", "u /root a.wav"])
def test_names_cannot_lead_out_of_the_output_folder(tmp_path, line, sentences):
    (tmp_path / "list").write_text(line + "\n")
    with pytest.raises(InputError) as error:
        recordings(tmp_path / "list")
    sentences.check(str(error.value))


def test_a_place_that_is_not_there(tmp_path, sentences):
    with pytest.raises(InputError) as error:
        recordings(tmp_path / "absent")
    sentences.check(str(error.value))


def lhotse(root, supervisions, *, recording=None):
    root.mkdir(exist_ok=True)
    samples = np.random.default_rng(0).normal(size=32000) * 0.1
    write_audio(root / "a.wav", samples.astype(np.float32))
    source = {"type": "file", "channels": [0], "source": "a.wav"} | (recording or {})
    rows = {
        "x_recordings.jsonl.gz": [{"id": "r", "sources": [source], "duration": 2.0}],
        "x_supervisions.jsonl.gz": [
            {"id": i, "recording_id": r, "start": s, "duration": d, "channel": 0, "speaker": who}
            for i, r, s, d, who in supervisions
        ],
    }
    for name, objects in rows.items():
        lines = "".join(json.dumps(one) + "\n" for one in objects)
        (root / name).write_bytes(gzip.compress(lines.encode()))
    return root


def test_supervisions_of_lhotse_are_cuts_of_recordings(tmp_path, sentences):
    pytest.importorskip("soundfile")
    root = lhotse(tmp_path, [("u1", "r", 0, 2, "k"), ("u2", "r", 0.5, 1, "l")])
    whole, cut = recordings(root)
    assert labels([whole, cut]) == [("u1", "k", None), ("u2", "l", None)]
    assert whole.path == root / "a.wav"
    assert cut.digest == whole.digest
    inside = read_audio(whole.path).samples[8000:24000]
    np.testing.assert_array_equal(read_audio(cut.path).samples, inside)
    assert labels(recordings(root / "x_supervisions.jsonl.gz")) == labels([whole, cut])
    with pytest.raises(InputError) as error:
        read_audio(f"{root / 'a.wav'}#t=1.5,2.5")
    sentences.check(str(error.value))


@pytest.mark.parametrize(
    "rows",
    [
        [("u", "r", 1.5, 1, "k")],
        [("u", "r", 0, 1, "k"), ("u", "r", 1, 1, "l")],
        [("u", "q", 0, 1, "k")],
    ],
)
def test_supervisions_that_cannot_be_are_one_line(tmp_path, rows, sentences):
    pytest.importorskip("soundfile")
    with pytest.raises(InputError) as error:
        recordings(lhotse(tmp_path, rows))
    sentences.check(str(error.value))


def test_a_manifest_names_files_that_are_there(tmp_path, sentences):
    pytest.importorskip("soundfile")
    rows = [("u", "r", 0, 1, "k")]
    with pytest.raises(InputError) as error:
        recordings(lhotse(tmp_path, rows, recording={"source": "b.wav"}))
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        recordings(lhotse(tmp_path, rows, recording={"type": "command"}))
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        recordings(lhotse(tmp_path, rows, recording={"channels": [0, 1]}))
    sentences.check(str(error.value))


def test_metadata_says_whose_files_are(tmp_path, sentences):
    root = touch(tmp_path, "x/1.wav", "x/2.wav")
    table = root / "metadata.csv"
    table.write_text('file_name,speaker_id,text\nx/1.wav,k,"a, b"\nx/2.wav,l,c\n')
    assert labels(recordings(root)) == [("1", "k", None), ("2", "l", None)]
    assert labels(recordings(root, speakers="name")) == [("1", "1", None), ("2", "2", None)]
    for text, line in {
        "file_name,speaker\nx/1.wav,k\nx/1.wav,l\n": "line 3: expected one speaker of x/1.wav",
        "file_name,speaker\nx/3.wav,k\n": "line 2: expected the file x/3.wav, found none",
    }.items():
        table.write_text(text)
        with pytest.raises(InputError, match=line):
            recordings(root)
    table.write_text("id,text\n1,hello\n")
    assert [one.speaker for one in recordings(root)] == ["x", "x"]
    with pytest.raises(InputError) as error:
        recordings(table)
    sentences.check(str(error.value))
    table.unlink()
    lines = [{"file_name": f"x/{n}.wav", "speaker": "k", "session": n} for n in (1, 2)]
    (root / "metadata.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert labels(recordings(root)) == [("1", "k", "1"), ("2", "k", "2")]
