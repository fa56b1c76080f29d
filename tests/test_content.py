"""Nothing that was made from other content is used again: every cache, state and "already there"
of the house meets a file that changed under the same name, size and time.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.helpers import other_content
from tests.helpers.notices import steady
from tests.helpers.populations import hum, named_speakers
from tests.scoring.jobs import NUMBERS, RANGES, total

import unmask as um
from unmask.assessment import load_config
from unmask.errors import InputError
from unmask.report import run_assessment as assess
from unmask.report.headline import find
from unmask.run import content_digest, run, run_on
from unmask.scoring import BACKENDS
from unmask.speech import (
    External,
    Recipe,
    anonymise,
    embed,
    load_encoder,
    read_audio,
    recordings,
    safeguard,
    train,
)
from unmask.speech.encoders import fingerprint_of
from unmask.utility import measure, recogniser

soundfile = pytest.importorskip("soundfile")
RATE = 16_000


@pytest.fixture(autouse=True)
def _one_worker():
    with run_on(workers=1):
        yield


def speak(folder: Path, *, people: int = 4, each: int = 2, turn: int = 0) -> Path:
    """Recordings of some people; ``turn`` gives each the voice of another, in files of one size."""
    for person in range(people):
        for i in range(each):
            pitch = 90.0 + 25 * ((person + turn) % people) + i
            path = folder / f"p{person}" / f"p{person}-{i}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            samples = hum(pitch, 100 * turn + 10 * person + i)
            with other_content(path):
                soundfile.write(path, samples, RATE)
    return folder


def test_a_digest_follows_every_change(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"one")
    os.utime(path, (1, 1))
    seen = {content_digest(path), content_digest(tmp_path)}
    for content in (b"two", b"six"):
        with other_content(path):
            path.write_bytes(content)
        assert not {content_digest(path), content_digest(tmp_path)} & seen
        seen |= {content_digest(path), content_digest(tmp_path)}
    (tmp_path / "b").touch()
    assert content_digest(tmp_path) not in seen
    with pytest.raises(InputError, match=r"c: no such file$"):
        content_digest(tmp_path / "c")


def test_jobs_on_maps_of_files(tmp_path):
    path, state = tmp_path / "numbers.npy", tmp_path / "state"
    for factor in (1.0, 3.0):
        with other_content(path):
            np.save(path, factor * NUMBERS[0])
        mapped = np.load(path, mmap_mode="r")
        with run_on(state=state):
            results = [float(one["sum"]) for one in run(total, (mapped,), RANGES)]
        assert sum(results) == pytest.approx(factor * NUMBERS[0].sum())


def test_embeddings_in_files_with_a_state(tmp_path):
    rng = np.random.default_rng(0)
    speakers = np.repeat([f"s{n}" for n in range(6)], 3)
    names = [f"u{n:02d}" for n in range(18)]
    path, state = tmp_path / "x.npz", tmp_path / "state"
    for spread in (0.1, 5.0):
        vectors = rng.normal(size=(18, 4))[np.repeat(np.arange(6), 3) * 3]
        made = um.Embeddings(vectors + spread * rng.normal(size=vectors.shape), speakers, names)
        with other_content(path):
            np.savez(path, embeddings=made.vectors, utt_ids=names, speaker_ids=speakers)
        with run_on(state=state):
            kept = um.engine.cross_pairing(path).results[0]["eer"].value
        shutil.copy(path, tmp_path / "fresh.npz")
        assert kept == um.engine.cross_pairing(tmp_path / "fresh.npz").results[0]["eer"].value


def test_back_ends_registered_under_one_name(tmp_path):
    """All that is made of the attacks of a back-end, tables and maps too, is made anew."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(8, 12))
    for name in ("o", "p"):
        sex = {"sex": np.repeat(["f", "m"] * 4, 6)}
        names = {"speaker": "s{}", "utterance": "u{row}", "columns": sex}
        one = named_speakers(8, 6, 12, noise=0.4, means=means, draws=rng, **names)
        um.write(one, tmp_path / f"{name}.npz")
    (tmp_path / "a.toml").write_text(
        'figures = []\nframeworks = ["similarity", "verification", "cpmap"]\n'
        "intervals = {replicates = 5}\nstandard_attackers = false\n"
        'verification = {by = "sex"}\ncpmap = {replicates = 0, grid = 4}\n'
        '[original]\nembeddings = "o.npz"\n'
        '[[safeguards]]\nname = "P"\nembeddings = "p.npz"\n'
        '[[attackers]]\nname = "one"\nbackends = ["mine"]\n'
    )
    before = dict(BACKENDS)
    found = []
    try:
        for columns in (12, 2):

            def first(vectors, columns=columns):
                return np.asarray(vectors)[:, :columns]

            um.register_backend("mine", lambda *_, f=first: (f, f), needs="attacked", aligns=True)
            result = assess(
                load_config(tmp_path / "a.toml"), tmp_path / "out", cache=tmp_path / "kept"
            )
            assert not result.failures
            rows = {one.key: one.rows for one in result.sections}
            errors = find(rows["verification"], "eer", safeguard="P")
            hard = find(rows["cpmap"], "eer_raw", system="P")
            women = find(rows["verification"], "eer", safeguard="P", group="f")
            deid = find(rows["similarity"], "deid_mine", safeguard="P")
            every = errors, women, hard, deid
            found.append([[one.estimate.value for one in some] for some in every])
    finally:
        BACKENDS.clear()
        BACKENDS.update(before)
    for first, second in zip(*found, strict=True):
        assert first
        assert min(first) < min(second)


def test_shards_of_embed(tmp_path, sentences):
    """Whoever is asked while a run goes on notices an encoder that changed, too."""
    from unmask.speech import embedding

    with pytest.raises(InputError) as error:
        embedding._once("numpy:sort", "of another day", "cpu")
    sentences.check(steady(error.value))
    corpus = speak(tmp_path / "corpus")
    vectors = []
    for turn in (0, 1):
        files = recordings(corpus if turn == 0 else speak(corpus, turn=turn))
        vectors.append(embed(files, "numpy:sort", parts=tmp_path / "parts").embeddings.vectors)
        np.testing.assert_array_equal(vectors[-1], embed(files, "numpy:sort").embeddings.vectors)
    assert not np.array_equal(*vectors)


def test_recordings_that_were_protected_once(tmp_path, monkeypatch, sentences):
    """A run that goes on protects what changed, and what was removed or replaced since."""
    state = tmp_path / "state"
    monkeypatch.setattr(
        "unmask.speech.safeguards.file_workers", lambda **_: run_on(workers=1, state=state)
    )
    corpus, out, method = tmp_path / "corpus", tmp_path / "out", safeguard("b2")

    def protected() -> list[bytes]:
        result = anonymise(recordings(corpus), out, method)
        assert (result.done, result.failures, result.remarks) == (8, (), ())
        return [path.read_bytes() for path in sorted(out.rglob("*.flac"))]

    speak(corpus)
    first = protected()
    with other_content(out / "p1" / "p1-0.flac") as path:
        path.write_bytes(bytes(path.stat().st_size))
    shutil.rmtree(out / "p2")
    assert protected() == first
    speak(corpus, turn=1)
    result = anonymise(recordings(corpus), out, method)
    assert result.done == 8
    made = read_audio(out / "p0" / "p0-0.flac").samples
    anonymise(recordings(corpus)[:1], tmp_path / "fresh", method)
    np.testing.assert_array_equal(read_audio(tmp_path / "fresh/p0/p0-0.flac").samples, made)
    (corpus / "p0" / "p0-0.wav").write_bytes(b"no audio")
    shutil.rmtree(corpus / "p3")
    result = anonymise(recordings(corpus), out, method)
    assert "p0-0.flac" in result.failures[0]
    assert "p3-0.flac" in result.remarks[-1]
    sentences.check(steady(result.failures[0]), result.remarks[-1])


TOOL = """
import sys, soundfile
samples, rate = soundfile.read(sys.argv[1])
soundfile.write(sys.argv[2], {factor} * samples, rate, format="FLAC")
"""


def test_a_command_is_known_by_its_files(tmp_path):
    script, other = tmp_path / "tool.py", tmp_path / "model.bin"
    script.write_text(TOOL.format(factor=0.5))
    other.write_bytes(b"12")
    command = f"{sys.executable} {script} {{input}} {{output}} --model={other}"
    first = External(command)
    assert External(command) == first
    with other_content(other):
        other.write_bytes(b"34")
    second = External(command)
    with other_content(script):
        script.write_text(TOOL.format(factor=0.2))
    assert len({first.content, second.content, External(command).content}) == 3
    assert External(command).describe()["sha256"] == External(command).content
    assert first.content in repr(first)


@pytest.mark.parametrize("what", ["recordings", "listener"])
def test_measurements_of_utility_with_a_state(tmp_path, what):
    script = tmp_path / "hear.py"
    script.write_text("print('one one')")
    corpus, state = tmp_path / "corpus", tmp_path / "state"
    texts = {f"p{p}-{i}": "one one" for p in range(4) for i in range(2)}

    def measured():
        files = recordings(speak(corpus) if not corpus.exists() else corpus)
        listen = recogniser(f"{sys.executable} {script} {{input}}")
        how = {"transcripts": texts, "recogniser": listen, "pitched": False, "state": state}
        return measure(files, {"same": files}, **how).values["original"]

    pytest.importorskip("jiwer")
    before = measured()
    if what == "listener":
        with other_content(script):
            script.write_text("print('one two')")
        assert before["word_errors"].sum() == 0
        assert measured()["word_errors"].sum() == 8
    else:
        path = corpus / "p0" / "p0-0.wav"
        with other_content(path):
            soundfile.write(path, 0.1 * hum(90.0, 0), RATE)
        np.testing.assert_allclose(before["level"] - measured()["level"], [20, *[0] * 7], atol=0.1)


TINY = {
    "network": "tdnn", "channels": 16, "dimension": 16, "bins": 20, "crop": 0.5, "batch": 8,
    "steps": 2, "every": 1, "loss": "softmax", "held_out": 0,
}  # fmt: skip


class TestTrain:
    recipe = Recipe.from_dict(TINY)

    @pytest.fixture(autouse=True)
    def _trainable(self):
        pytest.importorskip("torch")
        pytest.importorskip("safetensors")

    def stopped(self, monkeypatch, *given, **options):
        from unmask.speech.training import loop

        with monkeypatch.context() as patched:
            patched.setattr(loop.Loop, "_keep", interrupted(loop.Loop._keep))
            with pytest.raises(KeyboardInterrupt):
                train(*given, **options)

    def test_a_finished_encoder_of_other_recordings_is_refused(self, tmp_path, sentences):
        corpus = speak(tmp_path / "corpus")
        train(recordings(corpus), tmp_path / "e", recipe=self.recipe)
        speak(corpus, turn=1)
        with pytest.raises(InputError) as error:
            train(recordings(corpus), tmp_path / "e", recipe=self.recipe)
        sentences.check(steady(error.value))

    def test_a_checkpoint_of_other_recordings_is_refused(self, tmp_path, monkeypatch, sentences):
        """And decoded samples of others are not taken when the first ones are back."""
        corpus = speak(tmp_path / "corpus")
        whole = train(recordings(corpus), tmp_path / "whole", recipe=self.recipe)
        self.stopped(monkeypatch, recordings(corpus), tmp_path / "e", recipe=self.recipe)
        shutil.copytree(corpus, tmp_path / "kept", copy_function=shutil.copy2)
        speak(corpus, turn=1)
        with pytest.raises(InputError) as error:
            train(recordings(corpus), tmp_path / "e", recipe=self.recipe)
        sentences.check(steady(error.value))
        shutil.copytree(tmp_path / "kept", corpus, dirs_exist_ok=True, copy_function=shutil.copy2)
        assert train(recordings(corpus), tmp_path / "e", recipe=self.recipe).curve == whole.curve

    @pytest.mark.parametrize("what", ["noise", "responses"])
    def test_other_noise_and_rooms_are_refused(self, tmp_path, what, sentences):
        corpus, path = speak(tmp_path / "corpus"), tmp_path / "more" / "a.wav"
        path.parent.mkdir()
        soundfile.write(path, hum(50.0, 1), RATE)
        recipe = replace(self.recipe, **{what: str(path.parent)})
        train(recordings(corpus), tmp_path / "e", recipe=recipe)
        train(recordings(corpus), tmp_path / "e", recipe=recipe)
        with other_content(path):
            soundfile.write(path, hum(60.0, 1), RATE)
        with pytest.raises(InputError) as error:
            train(recordings(corpus), tmp_path / "e", recipe=recipe)
        sentences.check(steady(error.value))

    def test_weights_that_changed_are_refused_everywhere(self, tmp_path, sentences):
        corpus, e = speak(tmp_path / "corpus"), tmp_path / "e"
        train(recordings(corpus), e, recipe=self.recipe)
        with other_content(e / "weights.safetensors") as path:
            content = path.read_bytes()
            path.write_bytes(content[:-4] + bytes(4))
        for use in (
            lambda: load_encoder(str(e)),
            lambda: fingerprint_of(str(e)),
            lambda: train(recordings(corpus), e, recipe=self.recipe),
            lambda: train(recordings(corpus), tmp_path / "b", recipe=self.recipe, start=str(e)),
        ):
            with pytest.raises(InputError) as error:
                use()
            sentences.check(steady(error.value))


def interrupted(function):
    """The same, then a stop."""

    def stop(*given):
        function(*given)
        raise KeyboardInterrupt

    return stop


def external(location: str) -> bytes:
    """The bytes in which a model names a file of weights."""
    name = location.encode()
    size = [len(name)] if len(name) < 128 else [len(name) & 0x7F | 0x80, len(name) >> 7]
    return b"\x0a\x08location\x12" + bytes(size) + name


@pytest.mark.parametrize("name", ["weights.bin", "parts/" + "w" * 200])
def test_weights_beside_an_onnx_model(tmp_path, name):
    model, beside = tmp_path / "net.onnx", tmp_path / name
    beside.parent.mkdir(exist_ok=True)
    beside.write_bytes(b"one")
    model.write_bytes(b"\x08\x07..." + external(name) + external("none") + b"...")
    first = fingerprint_of(str(model))
    assert fingerprint_of(str(model)) == first
    with other_content(beside):
        beside.write_bytes(b"two")
    second = fingerprint_of(str(model))
    with other_content(model):
        model.write_bytes(b"\x08\x08..." + external(name) + external("none") + b"...")
    assert len({first, second, fingerprint_of(str(model))}) == 3


def test_onnx_keeps_the_names_of_its_files_so(tmp_path):
    onnx = pytest.importorskip("onnx")
    weights = onnx.numpy_helper.from_array(np.ones((80, 4), np.float32), "w")
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", "t", width])
        for name, width in (("x", 80), ("y", 4))
    ]
    graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:], [weights])
    path = tmp_path / "net.onnx"
    onnx.save_model(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)]),
        path,
        save_as_external_data=True,
        location="net.data",
        size_threshold=0,
    )
    before = fingerprint_of(str(path))
    with other_content(tmp_path / "net.data") as beside:
        beside.write_bytes(bytes(beside.stat().st_size))
    assert fingerprint_of(str(path)) != before


def test_python_that_changed_is_refused(tmp_path, monkeypatch, sentences):
    """Python itself takes compiled code of other source, of the same size and time, for it."""
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "changing.py"
    module.write_text("SCALE = 1\ndef encode(x): return SCALE * x[:2]\n")
    first = load_encoder("changing:encode")
    assert first.encode([np.ones(9, np.float32)]).tolist() == [[1, 1]]
    with other_content(module):
        module.write_text("SCALE = 2\ndef encode(x): return SCALE * x[:2]\n")
    with pytest.raises(InputError) as error:
        load_encoder("changing:encode")
    sentences.check(steady(error.value))
    monkeypatch.delitem(sys.modules, "changing")
    with pytest.raises(InputError) as error:
        fingerprint_of("changing:encode")
    sentences.check(steady(error.value))
    shutil.rmtree(tmp_path / "__pycache__")
    monkeypatch.delitem(sys.modules, "changing")
    second = load_encoder("changing:encode")
    assert second.encode([np.ones(9, np.float32)]).tolist() == [[2, 2]]
    assert first.fingerprint != second.fingerprint
    monkeypatch.delitem(sys.modules, "changing")


CONFIG = """
figures = []
frameworks = [{frameworks}]
intervals = {{replicates = 20}}
legal = {{lengths = [1], draws = 1, folds = 2, metrics = ["linkability"]}}
[original]
audio = "original"
encoder = "spectra:encode"
[[safeguards]]
name = "V"
audio = "protected"
encoder = "spectra:encode"
{how}
[[attackers]]
name = "{attacker}"
enrol = "own"
{training}
backends = ["cosine"]
{more}
"""
SPECTRA = """
import numpy as np

def encode(samples):
    return np.log(1e-3 + np.abs(np.fft.rfft(samples, 4096))[:400])
"""
B2 = 'method = "b2"'


class TestAssess:
    """Recordings, a command or weights are replaced in place between two runs with one cache."""

    @pytest.fixture
    def study(self, tmp_path, monkeypatch):
        (tmp_path / "spectra.py").write_text(SPECTRA)
        monkeypatch.syspath_prepend(tmp_path)
        self.protect(speak(tmp_path / "original", people=6), tmp_path / "protected")
        yield tmp_path
        sys.modules.pop("spectra", None)

    def protect(self, corpus: Path, to: Path) -> None:
        shutil.rmtree(to, ignore_errors=True)
        anonymise(recordings(corpus), to, safeguard("b2", seed=5))

    def linkability(self, study: Path, output: str, **text: str) -> tuple[float, int]:
        words = {
            "frameworks": '"legal"', "how": B2, "attacker": "own", "training": "", "more": "",
        }  # fmt: skip
        (study / "a.toml").write_text(CONFIG.format(**{**words, **text}))
        config = load_config(study / "a.toml")
        done = assess(config, study / output, cache=study / output, allow_code=True)
        legal = next(one for one in done.sections if one.key == "legal")
        values = [
            estimate.value
            for row in legal.rows
            for estimate in row.estimates
            if estimate.metric == "linkability" and row.conditions.get("safeguard") == "V"
        ]
        return max(values), done.computed

    def test_other_recordings_under_the_same_names(self, study):
        """The first attack of the review: an own run of recordings that are gone."""
        before, _ = self.linkability(study, "out")
        assert self.linkability(study, "out") == (before, 0)
        speak(study / "original", people=6, turn=2)
        self.protect(study / "original", study / "protected")
        stale, _ = self.linkability(study, "out")
        fresh, _ = self.linkability(study, "fresh")
        assert stale == fresh == pytest.approx(1.0)

    def test_another_command_under_the_same_name(self, study):
        """An own run by a tool that does something else protects nobody."""
        tool = study / "tool.py"
        tool.write_text(TOOL.format(factor=0.5))
        how = f'command = "{sys.executable} {tool} {{input}} {{output}}"'
        self.linkability(study, "out", how=how)
        runs = set((study / "out" / "runs").iterdir())
        with other_content(tool):
            tool.write_text(TOOL.format(factor=0.2))
        _, computed = self.linkability(study, "out", how=how)
        assert computed > 0
        assert len(runs) == 1
        assert len(set((study / "out" / "runs").iterdir())) == 2

    def test_other_training_speech_under_the_same_names(self, study):
        pytest.importorskip("torch")
        other = speak(study / "other", people=4, turn=3)
        for path in sorted(other.rglob("*.wav")):
            path.rename(path.with_name(f"t{path.name}"))
        for path in sorted(other.iterdir()):
            path.rename(path.with_name(f"t{path.name}"))
        recipe = ", ".join(f"{k} = {v!r}" for k, v in TINY.items()).replace("'", '"')
        training = '[training]\naudio = "other"\nstart = "scratch"\ndevice = "cpu"\ncurve = []\n'
        text = {
            "attacker": "trained", "training": "train = true",
            "more": f"{training}recipe = {{{recipe}}}\nencoder = \"spectra:encode\"\n",
        }  # fmt: skip
        self.linkability(study, "out", **text)
        assert self.linkability(study, "out", **text)[1] == 0
        extractors = study / "out" / "extractors"
        assert len(list(extractors.iterdir())) == 1
        path = other / "tp0" / "tp0-0.wav"
        with other_content(path):
            soundfile.write(path, hum(77.0, 7), RATE)
        assert self.linkability(study, "out", **text)[1] > 0
        assert len(list(extractors.iterdir())) == 2

    def test_other_vectors(self, tmp_path):
        rng = np.random.default_rng(0)
        names = [f"u{n:02d}" for n in range(24)]
        speakers = [f"s{n // 4}" for n in range(24)]
        voices = np.repeat(rng.normal(size=(6, 8)), 4, axis=0)
        config = (
            'figures = []\nframeworks = ["similarity"]\nintervals = {replicates = 20}\n'
            '[original]\nembeddings = "o.npz"\n[[safeguards]]\nname = "V"\nembeddings = "p.npz"\n'
        )
        (tmp_path / "a.toml").write_text(config)
        deid = []
        for spread in (0.01, 3.0):
            for name, noise in (("o", 0.01), ("p", spread)):
                made = voices + noise * rng.normal(size=voices.shape)
                path = tmp_path / f"{name}.npz"
                with other_content(path):
                    np.savez(path, embeddings=made, utt_ids=names, speaker_ids=speakers)
            done = assess(load_config(tmp_path / "a.toml"), tmp_path / "out", cache=tmp_path / "c")
            estimates = [e for s in done.sections for row in s.rows for e in row.estimates]
            deid.append(next(e.value for e in estimates if e.metric == "deid"))
        assert deid[0] < 0.2 < 0.5 < deid[1]

    def test_other_sessions_of_the_same_recordings(self, study):
        from unmask.assessment.cache import Work
        from unmask.assessment.runs import embedded

        files = recordings(study / "original")
        work = Work(study / "cache")
        for session in ("a", "b"):
            some = [replace(one, session=session) for one in files]
            made, *_ = embedded(some, "spectra:encode", "x", work)
            assert set(made.sessions.to_series()) == {session}
