"""WORLD's voices: statistics moved where they should go, keys, pools, refusals."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from unmask.errors import InputError
from unmask.run import run_on
from unmask.speech import anonymise, pooling as room, read_audio, read_gender, recordings, safeguard
from unmask.speech.vocoding import (
    analysed,
    cepstrum,
    mean_voice,
    moments,
    moved,
    synthesised,
    voice_of,
    warped,
    warping,
)

pytest.importorskip("pyworld")
pytest.importorskip("soundfile")


@pytest.fixture(scope="module")
def spoken():
    from tests.speech.conftest import SPEAKERS

    return {name: one.say(seconds=0.9) for name, one in SPEAKERS.items()}


@pytest.fixture(scope="module")
def heard(spoken):
    return {name: analysed(samples) for name, samples in spoken.items()}


@pytest.fixture(scope="module")
def voices(heard):
    return {name: voice_of(moments(speech)) for name, speech in heard.items()}


def test_statistics_become_those_of_the_target(spoken, heard, voices):
    made = moved(heard["bert"], voices["bert"], voices["anna"])
    now = voice_of(moments(made))
    assert now.log_f0[0] == pytest.approx(voices["anna"].log_f0[0], abs=0.01)
    assert np.abs(now.mean[1:] - voices["anna"].mean[1:]).max() < 0.05
    assert now.aperiodicity == pytest.approx(voices["anna"].aperiodicity, abs=0.2)
    again = analysed(synthesised(made, spoken["bert"]).samples)
    pitch = np.exp(voice_of(moments(again)).log_f0[0])
    assert pitch == pytest.approx(np.exp(voices["anna"].log_f0[0]), rel=0.03)


def test_a_voice_moved_to_itself_stays(heard, voices):
    assert warping(voices["cleo"], voices["cleo"]) == 0.0
    made = moved(heard["cleo"], voices["cleo"], voices["cleo"])
    np.testing.assert_allclose(made.envelope, heard["cleo"].envelope, atol=1e-6)
    np.testing.assert_allclose(made.f0, heard["cleo"].f0, rtol=1e-9)


def test_sums_join_and_voices_average(heard, voices):
    both = voice_of(moments(heard["anna"]) + moments(heard["bert"]))
    rows = [np.log(one.f0[one.voiced]) for one in (heard["anna"], heard["bert"])]
    every = np.concatenate(rows)
    assert both.log_f0 == pytest.approx((every.mean(), every.std()))
    middle = mean_voice([voices["anna"], voices["bert"]])
    np.testing.assert_allclose(middle.mean, (voices["anna"].mean + voices["bert"].mean) / 2)


def test_warping_moves_formants(heard):
    envelope = heard["anna"].envelope
    np.testing.assert_allclose(warped(envelope, 0.0), envelope)
    peak = [int(np.argmax(warped(envelope, w)[60, 5:200])) for w in (-0.1, 0.0, 0.1)]
    assert peak[0] > peak[1] > peak[2]
    c = cepstrum(envelope)
    np.testing.assert_allclose(c[:, 1:512], c[:, :512:-1], atol=1e-12)


def test_pitch_alone_moves(corpus, tmp_path):
    outcome = recordings(corpus)[:1]
    with run_on(workers=1):
        result = anonymise(outcome, tmp_path / "out", safeguard("pitch"))
    assert result.failures == ()
    before, after = (
        analysed(read_audio(one.path).samples)
        for one in (outcome[0], recordings(tmp_path / "out")[0])
    )
    shift = 12 * np.log2(np.median(after.f0[after.voiced]) / np.median(before.f0[before.voiced]))
    assert shift == pytest.approx(4.0, abs=0.3)
    assert safeguard("pitch", low=-3, high=3, seed=1).describe(key=True) == {
        "method": "pitch",
        "semitones": [-3, 3],
        "drawn": "uniform",
        "per": "speaker",
        "seed": 1,
    }


@pytest.fixture
def pool(tmp_path, speakers):
    import soundfile

    names = [f"p{n}" for n in range(6)]
    for n, name in enumerate(names):
        (tmp_path / "pool" / name).mkdir(parents=True)
        voice = type(speakers["anna"])(110.0 + 15 * n, 0.9 + 0.05 * n)
        soundfile.write(tmp_path / "pool" / name / f"{name}.wav", voice.say(seconds=0.6), 16000)
    return recordings(tmp_path / "pool")


def direction(recordings, encoder, embeddings):
    """Vectors by name in place of an encoder."""
    names = sorted({one.speaker for one in recordings})
    vectors = {}
    for name in names:
        row = np.random.default_rng(list(name.encode())).standard_normal(8)
        vectors[name] = row / np.linalg.norm(row)
    return vectors


def test_same_key_same_bytes_other_key_others(corpus, pool, tmp_path, monkeypatch):
    monkeypatch.setattr(room, "_speaker_vectors", direction)
    monkeypatch.setattr(room, "_voices", cache(room._voices))
    some = tuple(one for one in recordings(corpus) if one.utterance == "bert_0")
    how = {"farthest": 4, "average": 1}
    with run_on(workers=1):
        plans = [room.pooled_voices(some, pool, seed=seed, **how) for seed in (1, 1, *range(2, 9))]
        other = next(plan for plan in plans[2:] if repr(plan) != repr(plans[0]))
        content = []
        for n, plan in enumerate((*plans[:2], other)):
            result = anonymise(some, tmp_path / f"o{n}", plan)
            assert result.failures == ()
            content.append(next((tmp_path / f"o{n}").rglob("*.flac")).read_bytes())
            said = (tmp_path / f"o{n}" / "unmask-anonymise.json").read_text()
            assert "WORLD in place of" in said
            assert "seed" not in said
    assert content[0] == content[1]
    assert content[0] != content[2]
    assert {one.code for one in plan.notices} == {"small-pool", "no-gender"}
    assert (plan.farthest, plan.average, plan.pool) == (3, 1, 6)


def test_pools_that_do_not_fit(corpus, pool, monkeypatch, tmp_path, sentences):
    monkeypatch.setattr(room, "_speaker_vectors", direction)
    monkeypatch.setattr(room, "_voices", lambda files: dict.fromkeys(one.speaker for one in files))
    some = recordings(corpus)
    with pytest.raises(InputError) as error:
        room.pooled_voices(some, some)
    sentences.check(str(error.value))
    gender = {"anna": "f", "bert": "m", "cleo": "f"} | {f"p{n}": "m" for n in range(6)}
    with pytest.raises(InputError) as error:
        room.pooled_voices(some, pool, gender=gender)
    sentences.check(str(error.value))
    del gender["p3"]
    with pytest.raises(InputError, match="found none of p3"):
        room.pooled_voices(some, pool, gender=gender)
    with pytest.raises(InputError, match="1 ≤ average ≤ farthest"):
        room.pooled_voices(some, pool, farthest=2, average=3)
    (tmp_path / "g").write_text("; comment\n14 | F | x\n16, m\n")
    assert read_gender(tmp_path / "g") == {"14": "f", "16": "m"}
    (tmp_path / "g").write_text("14 f\n14 m\n")
    with pytest.raises(InputError) as error:
        read_gender(tmp_path / "g")
    sentences.check(str(error.value))


def test_the_command_wants_a_pool_for_b1_alone(corpus, tmp_path):
    from typer.testing import CliRunner

    from unmask.cli import app

    for options in (["--method", "b1"], ["--method", "b2", "--pool", str(corpus)]):
        done = CliRunner().invoke(app, ["anonymise", str(corpus), "-o", str(tmp_path), *options])
        assert done.exit_code == 2
        assert "belong together" in done.output


@pytest.mark.parametrize("given", [False, True])
def test_the_command_takes_vectors_of_the_pool_where_there_are_some(
    corpus, pool, tmp_path, monkeypatch, given
):
    from typer.testing import CliRunner

    from unmask import speech
    from unmask.cli import app
    from unmask.trials import Embeddings, write

    heard = []

    def planned(files, others, *, embeddings, **_):
        heard.append(embeddings)
        raise InputError("enough")

    monkeypatch.setattr(speech, "pooled_voices", planned)
    names = [one.speaker for one in pool]
    write(Embeddings(np.eye(len(names)), names, names), tmp_path / "pool.npz")
    more = ["--pool-embeddings", str(tmp_path / "pool.npz")] if given else []
    asked = ["--method", "b1", "--pool", str(tmp_path / "pool"), *more]
    done = CliRunner().invoke(app, ["anonymise", str(corpus), "-o", str(tmp_path / "o"), *asked])
    assert str(done.exception) == "enough"
    assert [one is not None for one in heard] == [given]
