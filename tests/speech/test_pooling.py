from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.populations import named_speakers

from unmask.errors import InputError
from unmask.speech import pool_voices
from unmask.trials import Embeddings


def voices(count, per, prefix, seed, *, spread=0.3):
    names = {"speaker": f"{prefix}{{}}", "utterance": "{name}_{row}"}
    gender = {"gender": ["mf"[n // per % 2] for n in range(count * per)]}
    return named_speakers(count, per, 12, noise=spread, means=seed, columns=gender, **names)


@pytest.fixture
def mine():
    return voices(6, 5, "s", 1)


@pytest.fixture
def pool():
    return voices(60, 1, "p", 2)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def test_a_pseudo_voice_is_a_mean_of_the_farthest_of_the_same_gender(mine, pool):
    # With average = farthest nothing is left to chance: the definition written out.
    result = pool_voices(mine, pool, farthest=10, average=10, variation=False)
    rows = unit(pool.vectors)[np.array([n % 2 for n in range(60)]) == 0]
    speaker = unit(unit(mine.vectors[:5]).mean(axis=0))
    far = rows[np.argsort(rows @ speaker)[:10]]
    np.testing.assert_allclose(result.vectors[:5], np.tile(far.mean(axis=0), (5, 1)), rtol=1e-12)


def test_variation_is_that_of_the_speaker(mine, pool):
    plain = pool_voices(mine, pool, farthest=20, average=5, variation=False)
    varied = pool_voices(mine, pool, farthest=20, average=5)
    own = unit(mine.vectors)
    expected = own - np.repeat(own.reshape(6, 5, 12).mean(axis=1), 5, axis=0)
    np.testing.assert_allclose(varied.vectors - plain.vectors, expected, atol=1e-12)
    assert varied.utterances is mine.utterances


def test_the_farthest_voices_point_away_from_the_speaker(mine, pool):
    result = unit(pool_voices(mine, pool, farthest=10, average=5, variation=False).vectors)
    assert (result * unit(mine.vectors)).sum(axis=1).max() < 0


def test_draws_depend_on_seed_and_speaker_alone(mine, pool):
    options = {"farthest": 20, "average": 5, "variation": False}
    whole = pool_voices(mine, pool, seed=3, **options)
    part = pool_voices(mine.select(np.arange(15, 30)[::-1]), pool, seed=3, **options)
    np.testing.assert_allclose(part.vectors[::-1], whole.vectors[15:], rtol=1e-12)
    other = pool_voices(mine, pool, seed=4, **options)
    assert not np.allclose(other.vectors, whole.vectors)


def test_utterance_level_breaks_the_link_between_utterances(mine, pool):
    result = pool_voices(mine, pool, farthest=25, average=2, level="utterance", variation=False)
    assert len(np.unique(result.vectors[:5], axis=0)) == 5


@pytest.mark.parametrize(
    "options",
    [
        {"farthest": 31, "average": 5},
        {"farthest": 5, "average": 6},
        {"farthest": 5, "average": 5, "level": "word"},
        {"farthest": 5, "average": 5, "attribute": "age"},
    ],
)
def test_bad_options_are_refused(mine, pool, options, sentences):
    with pytest.raises(InputError) as error:
        pool_voices(mine, pool, **options)
    sentences.check(str(error.value))


def test_a_protected_speaker_cannot_be_in_the_pool(mine, sentences):
    with pytest.raises(InputError) as error:
        pool_voices(mine, mine, farthest=2, average=1)
    sentences.check(str(error.value))


def test_one_speaker_has_one_gender(mine, pool, sentences):
    mixed = Embeddings(mine.vectors, mine.speakers, columns={"gender": ["m", "f", *["m"] * 28]})
    with pytest.raises(InputError) as error:
        pool_voices(mixed, pool, farthest=2, average=1)
    sentences.check(str(error.value))
