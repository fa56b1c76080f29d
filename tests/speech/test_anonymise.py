from __future__ import annotations

import json
import os
import sys
from pathlib import PurePosixPath

import numpy as np
import pytest

from unmask.errors import InputError
from unmask.run import locked, overwriting, run_on
from unmask.speech import METADATA, External, anonymise, read_audio, recordings, safeguard
from unmask.speech.corpus import Recording

pytest.importorskip("soundfile")


def some(tmp_path, speaker="anna", session=None, utterance="u"):
    return Recording(tmp_path / "x.wav", utterance, speaker, session)


def test_coefficients_depend_on_seed_and_speaker_alone(tmp_path):
    method = safeguard("b2r", seed=1)
    names = [f"s{n}" for n in range(400)]
    drawn = np.array([method.coefficient(some(tmp_path, name)) for name in names])
    again = [method.coefficient(some(tmp_path, name, "x", "other")) for name in reversed(names)]
    np.testing.assert_array_equal(drawn, again[::-1])
    assert drawn.min() >= 0.7
    assert drawn.max() <= 0.9
    # Kolmogorov's distance to the uniform law; 0.0814 is its 1 % point for 400 draws.
    uniform = np.sort((drawn - 0.7) / 0.2)
    assert np.abs(uniform - (np.arange(400) + 0.5) / 400).max() < 0.0814
    other = [safeguard("b2r", seed=2).coefficient(some(tmp_path, name)) for name in names]
    assert abs(np.corrcoef(drawn, other)[0, 1]) < 0.15


def test_scopes(tmp_path):
    per = {scope: safeguard("b2w", per=scope) for scope in ("speaker", "session", "utterance")}
    first, second = some(tmp_path, session="1", utterance="a"), some(tmp_path, "anna", "2", "b")
    assert per["speaker"].coefficient(first) == per["speaker"].coefficient(second)
    assert per["session"].coefficient(first) != per["session"].coefficient(second)
    assert per["utterance"].coefficient(first) != per["utterance"].coefficient(second)
    assert safeguard("b2").coefficient(first) == 0.8


def test_a_corpus_is_protected_with_its_folders_and_levels(corpus, tmp_path):
    outcome = recordings(corpus)
    result = anonymise(outcome, tmp_path / "out", safeguard("b2r", seed=5))
    assert (result.done, result.failures) == (9, ())
    protected = recordings(tmp_path / "out")
    assert [one.utterance for one in protected] == [one.utterance for one in outcome]
    for before, after in zip(outcome, protected, strict=True):
        a, b = read_audio(before.path).samples, read_audio(after.path).samples
        assert a.size == b.size
        assert np.mean(a**2) == pytest.approx(np.mean(b**2), rel=1e-2)
        assert np.abs(b).max() < 1.0
        assert np.mean((a - b) ** 2) > 0.01 * np.mean(a**2)


def test_workers_change_nothing(corpus, tmp_path):
    result = recordings(corpus)
    for workers in (1, 2):
        with run_on(workers=workers):
            anonymise(result, tmp_path / str(workers), safeguard("b2w", seed=9))
    for one in result:
        first, second = (tmp_path / n / f"{one.place}.flac" for n in ("1", "2"))
        assert first.read_bytes() == second.read_bytes()


def test_the_key_is_written_only_if_asked_for(corpus, tmp_path):
    result = recordings(corpus)[:2]
    anonymise(result, tmp_path / "a", safeguard("b2r", seed=77))
    anonymise(result, tmp_path / "b", safeguard("b2r", seed=77), keep_key=True)
    without = json.loads((tmp_path / "a" / "unmask-anonymise.json").read_text())
    with_key = json.loads((tmp_path / "b" / "unmask-anonymise.json").read_text())
    assert {"seed", "coefficients"} & without.keys() == set()
    assert without["coefficient"] == [0.7, 0.9]
    assert with_key["seed"] == 77
    expected = safeguard("b2r", seed=77).coefficient(result[0])
    assert with_key["coefficients"]["anna_0"] == pytest.approx(expected, abs=1e-6)


def test_one_bad_file_does_not_stop_the_rest(corpus, tmp_path):
    (corpus / "bert" / "bert_1.wav").write_text("not audio")
    outcome = recordings(corpus)
    (corpus / "cleo" / "cleo_2.wav").unlink()
    result = anonymise(outcome, tmp_path / "out", safeguard("b2"))
    assert result.done == 7
    assert [line.split(":")[0] for line in result.failures] == [
        str(corpus / "bert" / "bert_1.wav"),
        str(corpus / "cleo" / "cleo_2.wav"),
    ]
    assert len(list((tmp_path / "out").rglob("*.flac"))) == 7
    assert not list((tmp_path / "out").rglob(".*"))


def test_the_input_is_never_overwritten(corpus):
    with pytest.raises(InputError, match="another output folder"):
        anonymise(recordings(corpus), corpus, safeguard("b2"), suffix=".wav")


@pytest.fixture(autouse=True)
def alone():
    """One process does all, unless a test says otherwise."""
    with run_on(workers=1):
        yield


COPY = "import shutil,sys; shutil.copy(sys.argv[1], sys.argv[2])"


def test_an_external_command(corpus, tmp_path):
    script = tmp_path / "copy it.py"
    script.write_text(COPY)
    command = f"{sys.executable} '{script}' {{input}} {{output}} {{speaker}}"
    outcome = recordings(corpus)[:2]
    result = anonymise(outcome, tmp_path / "out", External(command), suffix=".wav")
    assert (result.done, result.failures) == (2, ())
    copied = tmp_path / "out" / "anna" / "anna_0.wav"
    assert copied.read_bytes() == outcome[0].path.read_bytes()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import sys; sys.exit('out of ideas')", "out of ideas"),
        ("pass", "wrote no output"),
        ("import sys; open(sys.argv[2], 'w').write('x')", "not readable as audio"),
    ],
)
def test_an_external_command_that_fails(corpus, tmp_path, body, words):
    script = tmp_path / "broken.py"
    script.write_text(body)
    command = External(f"{sys.executable} {script} {{input}} {{output}}")
    result = anonymise(recordings(corpus)[:1], tmp_path / "out", command)
    assert result.done == 0
    assert words in result.failures[0]
    assert [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] == [
        "unmask-anonymise.json"
    ]


def test_bad_options_are_refused():
    with pytest.raises(InputError, match="expected one of b2, b2r, b2w"):
        safeguard("b3")
    with pytest.raises(InputError, match="low ≤ high"):
        safeguard("b2r", low=0.95)
    with pytest.raises(InputError, match=r"\{output\}"):
        External("tool {input}")


def test_two_recordings_that_would_be_one_file_are_refused_before_any_work(
    corpus, tmp_path, sentences
):
    files = [one.path for one in recordings(corpus)][:2]
    result = [
        Recording(files[0], "b/c", "a", place=PurePosixPath("a/b/c")),
        Recording(files[1], "c", "a/b", place=PurePosixPath("a/b/c")),
    ]
    with pytest.raises(InputError) as error:
        anonymise(result, tmp_path / "out", safeguard("b2"))
    sentences.check(str(error.value))
    assert not (tmp_path / "out").exists()


def test_two_runs_into_one_folder_never_mix_keys(corpus, tmp_path, sentences):
    """The second is refused in a line; a run that was killed leaves a folder that is taken up."""
    recorded, out = recordings(corpus), tmp_path / "out"
    out.mkdir()
    with locked(out), pytest.raises(InputError) as error:
        anonymise(recorded, out, safeguard("b2r", seed=5))
    sentences.check(str(error.value))
    assert not list(out.iterdir())
    (out / METADATA).write_text('{"tool": "unmask 0.1.0", "finished": false}')
    anonymise(recorded, out, safeguard("b2r", seed=4))
    assert "finished" not in json.loads((out / METADATA).read_text())
    before = {path: path.read_bytes() for path in out.rglob("*.flac")}
    anonymise(recorded, out, safeguard("b2r", seed=5))
    assert all(path.read_bytes() != content for path, content in before.items())


def test_a_folder_of_others_and_the_inputs_are_kept(corpus, tmp_path, sentences):
    recorded = recordings(corpus)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(InputError) as error:
        anonymise(recorded, tmp_path / "mine", safeguard("b2"))
    sentences.check(str(error.value))
    first = recorded[0]
    target = tmp_path / "same" / f"{first.place}.flac"
    target.parent.mkdir(parents=True)
    os.link(first.path, target)
    with overwriting(), pytest.raises(InputError) as error:
        anonymise(recorded, tmp_path / "same", safeguard("b2"))
    sentences.check(str(error.value))
    assert target.read_bytes() == first.path.read_bytes()
