"""No recording vanishes: what is listed or lies in a folder is read, or refused with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unmask.assessment import starter_config
from unmask.errors import InputError
from unmask.run import content_digest, files_below, folders_below, text_lines
from unmask.speech.corpus import recordings
from unmask.speech.training.data import audio_files
from unmask.trials import read_speakers
from unmask.utility import read_transcripts


def touch(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return root


def manifest(root: Path, name: str, *lines: str) -> Path:
    touch(root, "a_0.flac", "a_1.flac", "b_0.flac")
    (root / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


HEAD = "file_name,speaker,text"


@pytest.mark.parametrize(
    "rows",
    [
        ['a_0.flac,a,"he said', "a_1.flac,a,fine", 'b_0.flac,b,"ok"'],
        ["a_0.flac,a,fine", 'b_0.flac,b,"ok" no'],
        ["a_0.flac,a,fine,more"],
        ["a_0.flac,a"],
        ["a_0.flac,,fine"],
        [",,"],
    ],
)
def test_rows_of_metadata_are_lines(tmp_path, rows, sentences):
    with pytest.raises(InputError) as error:
        recordings(manifest(tmp_path, "metadata.csv", HEAD, *rows))
    sentences.check(str(error.value))


def test_a_table_of_metadata_with_quotes_is_read_whole(tmp_path):
    rows = ('a_0.flac,a,"he said, ""no"""', "", "a_1.flac,a,fine", 'b_0.flac,b,"ok"')
    found = recordings(manifest(tmp_path, "metadata.csv", HEAD, *rows))
    assert [(one.utterance, one.speaker) for one in found] == [
        ("a_0", "a"), ("a_1", "a"), ("b_0", "b"),
    ]  # fmt: skip


def test_a_column_stands_once(tmp_path, sentences):
    root = manifest(tmp_path, "metadata.csv", "file_name,speaker,Speaker", "a_0.flac,a,b")
    with pytest.raises(InputError) as error:
        recordings(root)
    sentences.check(str(error.value))


@pytest.mark.parametrize(
    ("speaker", "refused"),
    [
        (["a"], "text as speaker"),
        (True, "text as speaker"),
        (1.5, "text as speaker"),
        (None, "file_name and"),
    ],
)
def test_lines_of_metadata_name_a_speaker(tmp_path, speaker, refused):
    line = json.dumps({"file_name": "a_0.flac", "speaker": speaker})
    with pytest.raises(InputError, match=refused):
        recordings(manifest(tmp_path, "metadata.jsonl", line))


def test_a_number_is_a_speaker_of_metadata(tmp_path):
    lines = [json.dumps({"file_name": f"{n}_0.flac", "speaker": who}) for n, who in (("a", 0),)]
    assert recordings(manifest(tmp_path, "metadata.jsonl", *lines))[0].speaker == "0"


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ('{"file_name": "a.wav", "speaker": "x", "speaker": "y"}', "expected names of different"),
        ('{"file_name": "a.wav", "speaker": "\\ud800"}', "expected whole characters as speaker"),
        ('{"file_name": "a.wav", "speaker": "  "}', "expected file_name and speaker"),
    ],
)
def test_a_line_names_one_speaker_that_can_be_written(tmp_path, line, refused):
    with pytest.raises(InputError, match=f"metadata.jsonl, line 1: {refused}"):
        recordings(manifest(tmp_path, "metadata.jsonl", line))


def test_a_table_without_rows_is_named(tmp_path):
    with pytest.raises(InputError, match=r"metadata.csv: expected a line for each recording"):
        recordings(manifest(tmp_path, "metadata.csv", "file_name,speaker"))


def test_what_is_nested_too_deep_is_one_line(tmp_path, sentences):
    with pytest.raises(InputError) as error:
        recordings(manifest(tmp_path, "metadata.jsonl", '{"a":' + "[" * 200_000))
    sentences.check(str(error.value))


def lhotse(root: Path, **changes: object) -> Path:
    touch(root, "a.wav")
    source = {"type": "file", "channels": [0], "source": "a.wav"}
    whole = {"id": "r", "sources": [source], "duration": 2.0}
    part = {"id": "u", "recording_id": "r", "start": 0.0, "duration": 2.0, "speaker": "s"}
    whole |= {name[1:]: value for name, value in changes.items() if name[0] == "_"}
    part |= {name: value for name, value in changes.items() if name[0] != "_"}
    (root / "recordings.jsonl").write_text(json.dumps(whole) + "\n")
    (root / "supervisions.jsonl").write_text(json.dumps(part) + "\n")
    return root


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"speaker": None}, "a text as speaker, found null"),
        ({"speaker": 3}, "a text as speaker, found 3"),
        ({"speaker": ["s"]}, "a text as speaker"),
        ({"speaker": " "}, "a text as speaker"),
        ({"start": float("nan")}, "a finite start, found nan"),
        ({"duration": float("inf")}, "a finite duration, found inf"),
        ({"_duration": float("inf")}, "a finite duration, found inf"),
    ],
)
def test_supervisions_tell_speakers_and_times(tmp_path, changes, refused):
    with pytest.raises(InputError, match=rf"line 1: expected {refused}"):
        recordings(lhotse(tmp_path, **changes))
    assert recordings(lhotse(tmp_path))[0].speaker == "s"


def test_one_file_has_one_speaker_in_a_list(tmp_path, sentences):
    touch(tmp_path, "a.wav", "b.wav")
    (tmp_path / "link.wav").symlink_to(tmp_path / "a.wav")
    for last in ("a.wav", "link.wav"):
        (tmp_path / "x.lst").write_text(f"u s a.wav\nv s b.wav\nw t {last}\n")
        with pytest.raises(InputError) as error:
            recordings(tmp_path / "x.lst")
        sentences.check(str(error.value))
    (tmp_path / "x.lst").write_text("u s a.wav\nw s a.wav\n")
    assert len(recordings(tmp_path / "x.lst")) == 2


def test_a_carriage_return_alone_is_refused_with_its_line(tmp_path, sentences):
    path = tmp_path / "f"
    path.write_bytes(b"u0 s0\nu1 s0\ru2 s1\ru3 s1\r")
    with pytest.raises(InputError) as error:
        read_speakers(path)
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        text_lines(path)
    sentences.check(str(error.value))
    path.write_bytes(b"u0 s0\r\nu1 s0\r\n")
    assert read_speakers(path) == {"u0": "s0", "u1": "s0"}
    assert text_lines(path) == ["u0 s0", "u1 s0"]


@pytest.fixture
def linked(tmp_path):
    """Two people in folders, one in a folder that is a link, and loops."""
    root = touch(tmp_path / "orig", "am01/a.flac", "am02/b.flac", "am02/deep/c.flac")
    touch(tmp_path / "elsewhere", "am03/d.flac", "am03/am03.trans.txt", "am03/more/e.flac")
    (tmp_path / "elsewhere/am03/am03.trans.txt").write_text("d YES\n")
    (root / "am03").symlink_to(tmp_path / "elsewhere" / "am03")
    (root / "am02/deep/up").symlink_to(root)
    (tmp_path / "elsewhere/am03/more/self").symlink_to(tmp_path / "elsewhere/am03")
    (root / "aa").symlink_to(root / "am01")
    return root


def test_folders_that_are_links_are_followed_once(linked):
    names = [path.relative_to(linked).as_posix() for path in files_below(linked)]
    assert names == [
        "am01/a.flac",
        "am02/b.flac",
        "am02/deep/c.flac",
        "am03/am03.trans.txt",
        "am03/d.flac",
        "am03/more/e.flac",
    ]
    assert len(folders_below(linked)) == 6
    assert len(folders_below(linked, depth=1)) == 4


def test_linked_people_are_found_wherever_recordings_are_looked_for(linked):
    found = recordings(linked)
    assert {one.speaker for one in found} == {"am01", "am02", "am03"}
    assert len(found) == len(audio_files(linked)) == 5
    assert read_transcripts(linked) == {"d": "YES"}
    before = content_digest(linked)
    (linked.parent / "elsewhere/am03/d.flac").write_bytes(b"other")
    assert content_digest(linked) != before
    everything = linked.parent / "all"
    everything.mkdir()
    for name in ("original", "protected"):
        (everything / name).symlink_to(linked)
    (everything / "protected").unlink()
    (everything / "protected").mkdir()
    (everything / "protected" / "am03").symlink_to(linked / "am03")
    assert 'audio = "protected"' in starter_config(everything)


def test_a_folder_that_cannot_be_read_is_refused(tmp_path, monkeypatch, sentences):
    def unreadable(self):
        raise PermissionError(13, "Permission denied")

    touch(tmp_path, "a/x.wav")
    monkeypatch.setattr(Path, "iterdir", unreadable)
    with pytest.raises(InputError) as error:
        files_below(tmp_path)
    sentences.check(str(error.value))
