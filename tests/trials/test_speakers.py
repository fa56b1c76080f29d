"""Who speaks: files for both sides or each, paths, names like VoxCeleb's."""

from __future__ import annotations

from pathlib import Path

import pytest

from unmask.errors import InputError
from unmask.trials import read_embeddings, read_scores, streamed_scores

VOX = [
    "id10001/v/1.wav id10001/w/2.wav 0.9 target",
    "id10001/v/1.wav id10002/w/1.wav 0.1 nontarget",
]


def put(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def trials(tmp_path: Path) -> str:
    return put(tmp_path / "x", "m1 u1 0.9 target", "m1 u2 0.1 nontarget")


def people(path, speakers) -> tuple[list[str], list[str]]:
    scores = read_scores(path, speakers=speakers)
    with streamed_scores([path], speakers=speakers) as stream:
        assert stream.speakers is not None
        assert stream.speaker_count == scores.n_speakers == len(stream.speakers)
    assert scores.enrol_speaker is not None
    assert scores.test_speaker is not None
    return list(scores.enrol_speaker), list(scores.test_speaker)


def test_several_files_are_one_table(tmp_path, trials, sentences):
    files = [put(tmp_path / "a", "m1 k"), put(tmp_path / "spk2utt", "k u1", "l u2 u3")]
    assert people(trials, files) == (["k", "k"], ["k", "l"])
    files[0] = put(tmp_path / "a", "m1 k", "u2 k")
    with pytest.raises(InputError) as error:
        read_scores(trials, speakers=files)
    sentences.check(str(error.value))


def test_each_side_has_its_file(tmp_path, sentences):
    path = put(tmp_path / "x", "u1 u1 0.9 target", "u1 u2 0.1 nontarget")
    enrol, test = put(tmp_path / "e", "u1 k"), put(tmp_path / "t", "u1 k", "u2 l")
    assert people(path, [f"enrol={enrol}", f"test={test}"]) == (["k", "k"], ["k", "l"])
    for words in ([f"enrol={enrol}"], [f"enrol={enrol}", test]):
        with pytest.raises(InputError) as error:
            read_scores(path, speakers=words)
        sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        read_embeddings(path, speakers=[f"enrol={enrol}", f"test={test}"])
    sentences.check(str(error.value))


def test_a_part_of_the_path_is_a_named_rule(tmp_path, sentences):
    path = put(tmp_path / "x", "d/k/1 d/k/2 0.9 target", "d/k/1 d/l/1 0.1 nontarget")
    assert people(path, "path:2") == (["k", "k"], ["k", "l"])
    assert "speakers by path:2" in read_scores(path, speakers="path:2").sources[0].detected
    with pytest.raises(InputError) as error:
        read_scores(path, speakers="path:0")
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        read_scores(path, speakers="path:3")
    sentences.check(str(error.value))


def test_names_of_voxceleb_tell_their_speakers_and_others_do_not(tmp_path, sentences):
    assert people(put(tmp_path / "x", *VOX), None)[1] == ["id10001", "id10002"]
    detected = read_scores(tmp_path / "x").sources[0].detected
    sentences.check(detected)
    other = put(tmp_path / "y", *VOX, "id10001/v/1.wav noise.wav 0.2 nontarget")
    assert not read_scores(other).has_speakers
    with streamed_scores([other]) as stream:
        assert stream.speakers is None


def test_spk2utt_is_read_by_what_it_holds(tmp_path, trials, sentences):
    found = ["k", "k"], ["k", "l"]
    assert people(trials, put(tmp_path / "any", "k m1 u1", "l u2 u3")) == found
    assert people(trials, put(tmp_path / "spk2utt", "k m1 u1", "l u2")) == found
    with pytest.raises(InputError) as error:
        read_scores(trials, speakers=put(tmp_path / "any", "k m1 u1", "l u2"))
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        read_scores(trials, speakers=put(tmp_path / "any", "k m1 u1", "l u2 u1"))
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        read_scores(trials, speakers=put(tmp_path / "any", "k m1 u1", "l"))
    sentences.check(str(error.value))


def test_commands_take_a_file_per_side(tmp_path, trials, unmask):
    enrol, test = put(tmp_path / "e", "m1 k"), put(tmp_path / "t", "u1 k", "u2 l")
    code, _, err = unmask("validate", trials, "-s", f"enrol={enrol}", "-s", f"test={test}")
    assert (code, err) == (0, "")
