from __future__ import annotations

from pathlib import Path

import pytest

from unmask.errors import InputError
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


def test_speakers_from_names_patterns_and_tables(tmp_path):
    root = touch(tmp_path / "flat", "103-1240-0000.flac", "1034_121119.flac")
    assert [one.speaker for one in recordings(root, speakers="name")] == ["103", "1034"]
    assert [one.speaker for one in recordings(root, speakers=r"pattern:^(\d\d)")] == ["10", "10"]
    named = recordings(root, speakers=r"pattern:^(?P<speaker>\d+)[-_](?P<session>\d+)")
    assert [one.session for one in named] == ["1240", "121119"]
    table = tmp_path / "utt2spk"
    table.write_text("103-1240-0000 anna\n1034_121119 bert\n")
    assert [one.speaker for one in recordings(root, speakers=str(table))] == ["anna", "bert"]
    table.write_text("103-1240-0000 anna\n")
    with pytest.raises(InputError, match="no speaker for utterance 1034_121119"):
        recordings(root, speakers=str(table))


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
    ("names", "speakers", "words"),
    [
        ((), None, "expected audio files"),
        (("a.wav",), None, "lies in no speaker's folder"),
        (("a.wav",), "folder", "in no speaker's folder"),
        (("s/a.wav",), "pattern:(x", "not a regular expression"),
        (("s/a.wav",), "pattern:x", "expected one group"),
        (("s/a.wav",), "pattern:(x)", "does not match"),
        (("s/a.wav", "s/a.flac"), None, "appears twice"),
    ],
)
def test_bad_corpora_are_refused(tmp_path, names, speakers, words):
    touch(tmp_path, *names)
    with pytest.raises(InputError, match=words):
        recordings(tmp_path, speakers=speakers)


@pytest.mark.parametrize("line", ["../../etc anna a.wav", "u .. a.wav", "u /root a.wav"])
def test_names_cannot_lead_out_of_the_output_folder(tmp_path, line):
    (tmp_path / "list").write_text(line + "\n")
    with pytest.raises(InputError, match="cannot name a file after"):
        recordings(tmp_path / "list")


def test_a_place_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no such file or folder"):
        recordings(tmp_path / "absent")
