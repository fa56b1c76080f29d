"""What hostile or unlucky input did once, and must not do again; files that readers refuse are in
``fuzz/corpus``.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
from fuzz.__main__ import CORPUS
from tests.helpers.notices import steady

import unmask as um
from unmask.assessment.cache import Work
from unmask.assessment.inputs import read_inputs
from unmask.assessment.toml import load_config
from unmask.errors import InputError
from unmask.privacy.similarity import compare_sessions, matrix
from unmask.run import files, scratch_folder
from unmask.speech import recordings
from unmask.trials import Embeddings, read_embeddings, read_scores, write


def table(path, header, rows):
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


ROWS = [f"e{i},t{i},{('nontarget', 'target')[i % 2]},f,m,0.{i}" for i in range(1, 7)]


def test_columns_that_differ_in_case_alone_do_not_become_one(tmp_path, sentences):
    path = table(tmp_path / "x.csv", "enrol,test,label,Sex,sex,plda", ROWS)
    with pytest.raises(InputError) as error:
        read_scores(path)
    sentences.check(str(error.value))


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 400])
def test_numbers_that_overflow_are_refused_and_infinite_ones_are_not(tmp_path, number, sentences):
    good = [f"e{i} t{i} 0.{i} target" for i in range(5)]
    (tmp_path / "x").write_text("\n".join([*good, f"a b {number} nontarget"]) + "\n")
    with pytest.raises(InputError) as error:
        read_scores(tmp_path / "x")
    sentences.check(str(error.value))
    (tmp_path / "x").write_text("\n".join([*good, "a b -inf nontarget"]) + "\n")
    assert len(read_scores(tmp_path / "x")) == 6


def test_decimal_commas_are_not_taken_for_labels(tmp_path):
    (tmp_path / "x").write_text("".join(f"a{i},b{i},{i % 2},5{i}\n" for i in range(6)))
    with pytest.raises(InputError, match="decimal comma"):
        read_scores(tmp_path / "x")
    assert len(read_scores(tmp_path / "x", format="speechbrain")) == 6


def test_a_key_is_not_taken_for_its_own_scores(tmp_path, sentences):
    (tmp_path / "key").write_text("".join(f"a{i} b{i} {i % 2}\n" for i in range(6)))
    with pytest.raises(InputError) as error:
        read_scores(tmp_path / "key", key=tmp_path / "key")
    sentences.check(str(error.value))


def test_columns_called_like_an_option_can_be_written(tmp_path):
    columns = {"file": ["x", "y", "z"], "allow_pickle": ["1", "2", "3"]}
    vectors = np.eye(3, 4)
    made = Embeddings(vectors, ["s", "s", "t"], ["a", "b", "c"], columns=columns)
    write(made, tmp_path / "x.npz")
    again = read_embeddings(tmp_path / "x.npz")
    np.testing.assert_array_equal(again.vectors, vectors)
    assert again.columns["file"].to_series().to_list() == ["x", "y", "z"]


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_file_names_that_are_no_utf8_are_refused_by_name(tmp_path, sentences):
    (tmp_path / "s").mkdir()
    with open(os.fsencode(tmp_path) + b"/s/\xff.wav", "wb"):
        pass
    with pytest.raises(InputError) as caught:
        recordings(tmp_path)
    sentences.check(str(caught.value))
    str(caught.value).encode()


def test_memory_of_similarity_matrices_is_asked_for_before_work(monkeypatch, sentences):
    rng = np.random.default_rng(0)
    speakers = [f"s{i // 2}" for i in range(40)]
    voices = um.Embeddings(rng.normal(size=(40, 4)), speakers, [f"u{i}" for i in range(40)])
    monkeypatch.setattr(files, "memory_left", lambda: 20 * 20 * matrix.CELL)
    with pytest.raises(InputError) as error:
        um.privacy.pseudonymisation(voices, voices, replicates=0)
    sentences.check(str(error.value))


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_container_has_no_more_memory_than_it_may_take(tmp_path, monkeypatch, name):
    monkeypatch.setattr(files, "_GROUP", tmp_path)
    whole = files.memory_left()
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("max\n")
    assert files.memory_left() > whole / 2
    path.write_text("1000000\n")
    assert files.memory_left() == 1_000_000


def test_what_libraries_print_of_damaged_tables_is_not_shown(capfd, sentences):
    sentences.replaced[str(CORPUS)] = "<corpus>"
    with pytest.raises(InputError) as error:
        read_scores(CORPUS / "parquet-page-declares-more")
    sentences.check(str(error.value))
    assert capfd.readouterr().err == ""


def test_one_bad_recording_of_an_assessment_costs_itself_and_is_named(
    tmp_path, monkeypatch, sentences
):
    soundfile = pytest.importorskip("soundfile")
    (tmp_path / "given.py").write_text("def encode(x): return abs(x[:1600]).reshape(8, 200).sum(1)")
    monkeypatch.syspath_prepend(tmp_path)
    rng = np.random.default_rng(0)
    for folder in ("original", "protected"):
        for speaker in "ab":
            (tmp_path / folder / speaker / "chapter").mkdir(parents=True)
            for n in range(3):
                path = tmp_path / folder / speaker / "chapter" / f"{speaker}{n}.wav"
                soundfile.write(path, 0.1 * rng.normal(size=1600), 16000)
    (tmp_path / "protected" / "b" / "chapter" / "b1.wav").write_bytes(b"RIFF")
    (tmp_path / "a.toml").write_text(
        '[original]\naudio = "original"\nencoder = "given:encode"\n'
        '[[safeguards]]\nname = "p"\naudio = "protected"\nencoder = "given:encode"\n'
    )
    config = load_config(tmp_path / "a.toml")
    result = read_inputs(config, Work(tmp_path / "kept"), base=tmp_path, allow_code=True)
    for voices in (result.original, result.protected["p"]):
        assert sorted(voices.utterances.to_series()) == ["a0", "a1", "a2", "b0", "b2"]
    (lost,) = result.notices
    assert (lost.code, lost.subject) == ("not-read", "safeguards.p")
    sentences.check(steady(lost.sentence))
    assert "b1.wav" in lost.sentence
    hidden = config.model_copy(update={"redact": True})
    result = read_inputs(hidden, Work(tmp_path / "kept"), base=tmp_path, allow_code=True)
    assert "b1" not in result.notices[0].sentence


def test_what_is_wrong_with_training_speech_is_said_too(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"u{i}" for i in range(12)]
    for name, who, own in (("o", "s", names), ("p", "s", names), ("t", "t", None)):
        speakers = [f"{who}{i // 4}" for i in range(12)]
        write(Embeddings(rng.normal(size=(12, 4)), speakers, own), tmp_path / f"{name}.npz")
    (tmp_path / "a.toml").write_text(
        '[original]\nembeddings = "o.npz"\n[training]\nembeddings = "t.npz"\n'
        '[[safeguards]]\nname = "p"\nembeddings = "p.npz"\n'
    )
    config = load_config(tmp_path / "a.toml")
    noticed = read_inputs(config, Work(tmp_path / "kept"), base=tmp_path).notices
    told = [(one.code, one.subject) for one in noticed]
    assert told[:2] == [("no-names", "training"), ("encoder-untold", "")]


def test_steps_that_others_could_have_written_are_not_trusted(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(InputError, match="not trusted"):
        Work(tmp_path)
    tmp_path.chmod(0o700)
    Work(tmp_path)


def test_sessions_of_one_speaker_each_say_so(sentences):
    speakers, names = [f"s{i // 4}" for i in range(16)], [f"u{i}" for i in range(16)]
    vectors = np.random.default_rng(0).normal(size=(16, 4))
    voices = um.Embeddings(vectors, speakers, names, [f"{i // 2}" for i in range(16)])
    with pytest.raises(InputError) as error:
        compare_sessions(voices, voices, replicates=0)
    sentences.check(str(error.value))


def test_a_killed_run_leaves_a_scratch_folder_that_the_next_one_removes(tmp_path, monkeypatch):
    code = (
        "import os, signal; from unmask.run import scratch_folder\n"
        "with scratch_folder() as folder:\n"
        "    (folder / 'x').write_text('x'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    options = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=options, check=False)
    assert done.returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch_folder() as folder:
        assert list(tmp_path.iterdir()) == [folder]
