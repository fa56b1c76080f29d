"""Renaming, reordering and moving of files and rows moves no number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import soundfile
from tests.helpers.populations import hum

import unmask as um
from unmask.speech import embed, recordings

PEOPLE, EACH, SIZE = 12, 8, 8
OWNER = np.repeat(np.arange(PEOPLE), EACH)


def sets() -> dict[str, um.Embeddings]:
    """Original speech, and a release in which two voices of a person take turns."""
    rng = np.random.default_rng(3)
    voices = rng.normal(size=(3, PEOPLE, SIZE))
    turn = np.tile(np.arange(EACH) % 2, PEOPLE)
    made = {
        "original": voices[0][OWNER],
        "protected": 0.5 * voices[0][OWNER] + voices[1 + turn, OWNER],
    }
    people = [f"p{code:02}" for code in OWNER]
    names = [f"u{row:03}" for row in range(len(OWNER))]
    columns = {"sex": ["f" if code % 2 else "m" for code in OWNER]}
    return {
        name: um.Embeddings(
            vectors + 0.5 * rng.normal(size=vectors.shape), people, names, columns=columns
        )
        for name, vectors in made.items()
    }


def moved(voices: um.Embeddings, seed: int) -> um.Embeddings:
    """The same recordings under other names and in another order."""
    rng = np.random.default_rng(99)
    new = {f"u{row:03}": f"x{n:03}" for row, n in enumerate(rng.permutation(len(voices)))}
    named = [new[name] for name in voices.utterances.to_series()]
    order = np.random.default_rng(seed).permutation(len(voices))
    return replace(voices, utterances=um.Ids.from_strings(named)).select(order)


def numbers(result) -> dict[str, tuple[float, ...]]:
    """All estimates with intervals and levels of luck, by what they are."""
    found: dict[str, tuple[float, ...]] = {}
    for n, estimate in enumerate(result.estimates):
        if isinstance(estimate.value, str):
            continue
        made, luck = estimate.interval, estimate.luck
        ends = () if made is None else (made.low, made.high)
        level = () if luck is None else (luck.value, luck.p)
        found[f"{n} {estimate.metric} {dict(estimate.params)}"] = (estimate.value, *ends, *level)
    return found


def alike(one, other) -> None:
    """Both have the same numbers, as far as sums do not depend on their order."""
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert other[name] == pytest.approx(values, rel=1e-4, abs=1e-6, nan_ok=True), name


@pytest.mark.filterwarnings("ignore::unmask.UnmaskWarning")
def test_no_number_of_privacy_moves():
    given = sets()
    other = {name: moved(voices, seed) for seed, (name, voices) in enumerate(given.items())}
    how = {"replicates": 20}
    expected = numbers(um.pseudonymisation(given["original"], given["protected"], **how))
    alike(expected, numbers(um.pseudonymisation(other["original"], other["protected"], **how)))


@pytest.mark.filterwarnings("ignore::unmask.UnmaskWarning")
def test_no_number_of_legal_moves():
    given = sets()
    other = {name: moved(voices, seed) for seed, (name, voices) in enumerate(given.items())}
    how = {
        "counts": [5, 12],
        "lengths": [1, 2],
        "replicates": 20,
        "attributes": ["sex"],
        "protocol": um.LegalProtocol(folds=3, draws=2),
    }

    def swept(data):
        known, release = data["original"], data["protected"]
        half = set(um.privacy.legal.halves_by_content(known, 0)[0].utterances.to_series())
        enrol = known.select(known.utterances.to_series().is_in(list(half)).to_numpy())
        test = release.select(~release.utterances.to_series().is_in(list(half)).to_numpy())
        attackers = {
            "known": um.Attacker(enrol, test, "whitened", enrols="original"),
            "release": um.within_release(release, "wccn"),
            "records": um.within_release(release, parts="record to record"),
        }
        return um.assess_attackers(attackers, **how)

    alike(numbers(swept(given)), numbers(swept(other)))


@pytest.mark.filterwarnings("ignore::unmask.UnmaskWarning")
def test_no_number_of_assess_moves():
    given = sets()
    other = {name: moved(voices, seed) for seed, (name, voices) in enumerate(given.items())}

    def assessed(data):
        result = um.assess(data["original"], {"it": data["protected"]}, quick=True)
        found = {}
        for section in result.sections:
            for n, row in enumerate(section.rows):
                for name, values in numbers(row).items():
                    found[f"{section.key} {n} {dict(row.conditions)} {name}"] = values
        return found

    alike(assessed(given), assessed(other))


def spectrum(samples: np.ndarray) -> np.ndarray:
    """Stands for an encoder: the long-term spectrum."""
    power = np.abs(np.fft.rfft(samples[:6_400])) ** 2
    return np.log(np.add.reduceat(power, np.arange(0, power.size, 100)) + 1e-9)


def test_recordings_are_told_apart_by_their_bytes(tmp_path):
    """Not by their vectors, whose last bits are those of a build, nor by their names."""
    names = {"a": "x", "b": "z", "c": "y"}
    for n, name in enumerate("abc"):
        for folder, called in (("one", name), ("two", names[name])):
            place = tmp_path / folder / "s0"
            place.mkdir(parents=True, exist_ok=True)
            soundfile.write(place / f"{called}.wav", hum(100 + 20 * n, n), 16_000)
    codes = {}
    for folder in ("one", "two"):
        voices = embed(recordings(tmp_path / folder), spectrum).embeddings
        assert voices.contents is not None
        codes[folder] = dict(zip(voices.utterances.to_series(), voices.contents, strict=True))
    assert len(set(codes["one"].values())) == 3
    for name, called in names.items():
        (one,) = (code for key, code in codes["one"].items() if key.endswith(name))
        (two,) = (code for key, code in codes["two"].items() if key.endswith(called))
        assert one == two


def test_training_speech_without_variation_is_refused_in_a_line(sentences):
    vectors = np.repeat(np.eye(3, 6), 4, axis=0)
    flat = um.Embeddings(vectors, list("aaaabbbbcccc"))

    def singular(train):
        raise np.linalg.LinAlgError("Singular matrix")

    um.privacy.BACKENDS["singular"] = replace(
        um.privacy.BACKENDS["wccn"], name="singular", fit=singular
    )
    try:
        with pytest.raises(um.InputError) as error:
            um.Attacker(flat, flat, "singular", flat).ready()
        sentences.check(str(error.value))
    finally:
        del um.privacy.BACKENDS["singular"]
