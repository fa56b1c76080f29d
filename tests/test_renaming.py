"""Renaming, reordering and moving of files and rows moves no number."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from tests.engine.test_spoofing import three_classes
from tests.helpers.populations import hum

import unmask as um
from unmask.assessment import config_of
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
    new = {f"u{row:03}": f"x{n:03}" for row, n in enumerate(rng.permutation(len(OWNER)))}
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
        return of_sections(um.assess(data["original"], {"it": data["protected"]}, quick=True))

    alike(assessed(given), assessed(other))


@pytest.mark.filterwarnings("ignore::unmask.UnmaskWarning")
def test_no_number_of_a_full_assessment_moves(tmp_path):
    """Files lie in another folder under other names, with their rows in other orders."""
    few = np.flatnonzero((OWNER < 8) & (np.arange(len(OWNER)) % EACH < 4))
    given = {name: voices.select(few) for name, voices in sets().items()}
    other = {name: moved(voices, seed) for seed, (name, voices) in enumerate(given.items())}

    def assessed(data, folder, original, protected):
        folder.mkdir(parents=True)
        um.write(data["original"], folder / original)
        um.write(data["protected"], folder / protected)
        config = config_of(
            str(folder / original),
            {"it": folder / protected},
            changes=["intervals.replicates=9", "figures=[]"],
        )
        return of_sections(um.assess(config, cache=folder / "cache"))

    first = assessed(given, tmp_path / "one", "original.npz", "protected.npz")
    again = assessed(other, tmp_path / "two" / "deep", "zebra.npz", "ape.npz")
    assert any("cp_win" in name for name in first)  # both attacks are on one list of trials
    # Worst cases deal scores into folds by their bits, and the last bits of a sum go by its order.
    first, again = (
        {name: values for name, values in found.items() if not name.startswith("worst_case")}
        for found in (first, again)
    )
    alike(first, again)


def of_sections(result) -> dict[str, tuple[float, ...]]:
    """The numbers of an assessment, by section and row; thresholds are numbers too."""
    found = {}
    for section in result.sections:
        for n, row in enumerate(section.rows):
            for name, values in numbers(row).items():
                # A threshold in a name has last digits that depend on the order of sums.
                short = re.sub(r"\d\.\d{6,}", lambda match: f"{float(match[0]):.4f}", name)
                found[f"{section.key} {n} {dict(row.conditions)} {short}"] = values
    return found


def scored(number: int = 0) -> um.Scores:
    """Ties, two systems, spoofs of a third of the rows, groups of speakers and fine scores."""
    rng = np.random.default_rng(number)
    rows = three_classes(number)
    fine = rng.normal(0, 0.3, len(rows)) + rows.scores("asv")
    sex = {
        f"{side}_sex": um.Ids.from_strings(
            ["fm"[int(name[1:]) % 2] for name in getattr(rows, f"{side}_speaker").to_series()]
        )
        for side in ("enrol", "test")
    }
    return replace(rows, systems={**rows.systems, "other": fine}, columns=sex)


@pytest.mark.filterwarnings("ignore::unmask.UnmaskWarning")
@pytest.mark.parametrize("kind", ["spoofs", "two classes", "groups", "without speakers"])
def test_no_number_of_eval_moves(kind):
    given = scored()
    if kind != "spoofs":
        given = given.select(given.label >= 0).select_systems(["asv", "other"])
    if kind == "without speakers":
        given = replace(given, enrol_speaker=None, test_speaker=None, columns={})
    how = {
        "battery": um.Battery(far=(0.2, 0.05), threshold=(1.5,)),
        # Without speakers trials are drawn one by one, in the order of their rows.
        "replicates": 0 if kind == "without speakers" else 40,
        "by": "sex" if kind == "groups" else None,
    }
    expected = um.evaluate(given, **how)
    shuffled = given.select(np.random.default_rng(1).permutation(len(given)))
    other = um.evaluate(shuffled, **how)
    alike(numbers(expected), numbers(other))
    thresholds = ([one.threshold for one in made.estimates] for made in (expected, other))
    assert list(map(str, next(thresholds))) == list(map(str, next(thresholds)))
    for gaps, same in zip(expected.gaps, other.gaps, strict=True):
        alike(numbers(gaps), numbers(same))
    if kind == "two classes":
        alike(*(numbers(um.compare(table, replicates=40)) for table in (given, shuffled)))


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


@pytest.mark.parametrize("ending", [".npz", ".parquet", ".h5"])
def test_a_file_of_vectors_splits_as_the_run_that_embedded_the_audio(tmp_path, ending):
    """It keeps a digest of each recording: another build of an encoder changes only the vectors."""
    for n in range(12):
        place = tmp_path / "audio" / f"s{n % 2}"
        place.mkdir(parents=True, exist_ok=True)
        soundfile.write(place / f"u{n}.wav", hum(100 + 20 * n, n), 16_000)
    voices = embed(recordings(tmp_path / "audio"), spectrum).embeddings
    um.write(voices, tmp_path / f"x{ending}")
    back = um.read_embeddings(tmp_path / f"x{ending}")
    np.testing.assert_array_equal(back.contents, voices.contents)
    assert not back.columns
    other_build = replace(back, vectors=back.vectors + 1e-3)
    halves = um.privacy.legal.halves_by_content
    for part, again in zip(halves(voices, 0), halves(other_build, 0), strict=True):
        assert part.utterances.to_series().equals(again.utterances.to_series())

    # A second copy keeps them; a file without them goes by its vectors, as files before did.
    um.write(back, tmp_path / "copy.npz")
    np.testing.assert_array_equal(
        um.read_embeddings(tmp_path / "copy.npz").contents, voices.contents
    )
    um.write(replace(voices, contents=None), tmp_path / f"old{ending}")
    old = um.read_embeddings(tmp_path / f"old{ending}")
    assert old.contents is None
    assert (old.content_codes != voices.contents).all()


def test_a_column_of_other_digests_stays_metadata(tmp_path):
    names = ["ab12", "", "0123456789abcdef"]
    arrays = {"embeddings": np.eye(3), "speaker_ids": list("aab"), "content_digest": names}
    np.savez(tmp_path / "x.npz", **arrays)
    voices = um.read_embeddings(tmp_path / "x.npz")
    assert voices.contents is None
    assert list(voices.columns["content_digest"].to_series()) == names


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
