"""Protected recordings without speech, and vectors of two encoders: both read as protected."""

from __future__ import annotations

import json
import re
from dataclasses import astuple, replace

import jsonschema
import numpy as np
import pytest
from tests.helpers.populations import named_speakers

from unmask.assessment.sound import ENCODER, sound_notices
from unmask.assessment.toml import load_config
from unmask.errors import InputError
from unmask.report import json_schema
from unmask.report.assessment import run_assessment as assess
from unmask.report.writing import summary_table, write_report
from unmask.trials import Embeddings, Sound, write

PLAIN = Sound(3.1, -24.0, 0.2, 0.0, 16_000)
CAMPPLUS, OTHER = (f"{name}:{letter * 64}" for name, letter in (("campplus", "a"), ("other", "b")))


def told(*protected: Sound, original: Sound = PLAIN) -> list[str]:
    sets = {"original": [original] * len(protected), "safeguards.V": protected}
    named = {
        name: {f"u{n}": np.array(astuple(one)) for n, one in enumerate(some)}
        for name, some in sets.items()
    }
    notices = list(sound_notices(named))
    assert all((one.code, one.subject) == ("sound", "V") for one in notices)
    return [one.sentence for one in notices]


@pytest.mark.parametrize(
    ("change", "values"),
    [
        ({"seconds": 0.05}, ("0.05 s", "3.1 s")),
        ({"seconds": 7.0}, ("7.0 s", "3.1 s")),
        ({"level": -80.0}, ("−80 dB", "−24 dB")),
        ({"silent": 0.98}, ("98 %", "20 %")),
        ({"clipped": 0.6}, ("60 %", "0 %")),
        ({"rate": 8000}, ("8,000 Hz", "16,000 Hz")),
    ],
)
def test_what_differs_much_is_told(change, values, sentences):
    (said,) = told(*[replace(PLAIN, **change)] * 4)
    protected, _, original = said.partition("(median)")
    assert f" {values[0]}" in protected
    assert f" {values[1]}" in original
    sentences.check(said)


def test_clipping_is_told_where_the_original_has_less_than_half_of_what_is_too_much():
    loud = replace(PLAIN, clipped=0.6)
    assert told(*[loud] * 4, original=replace(PLAIN, clipped=0.04))
    assert not told(*[loud] * 4, original=replace(PLAIN, clipped=0.05))


@pytest.mark.parametrize(
    "change",
    [{"seconds": 1.6}, {"seconds": 6.0}, {"level": -50.0}, {"silent": 0.4}, {"rate": 48_000}],
)
def test_what_safeguards_do_is_not(change):
    assert not told(*[replace(PLAIN, **change)] * 4)


def test_silence_and_clipping_of_the_originals_are_no_difference():
    loud = replace(PLAIN, clipped=0.3, silent=0.6)
    assert not told(*[loud] * 4, original=loud)


def test_a_tenth_of_a_set_is_enough_and_unread_recordings_are_none(sentences):
    """The median of all would hide it."""
    short = replace(PLAIN, seconds=0.05)
    (said,) = told(*[PLAIN] * 90, *[short] * 10)
    assert said.startswith("10 of 100 ")
    assert " 0.05 s " in said
    sentences.check(said)
    assert not told(*[PLAIN] * 97, *[short] * 3)
    unread = Sound(*[np.nan] * 5)
    sentences.check(*told(*[unread] * 9, short))
    assert not told(unread)


CONFIG = """
frameworks = ["legal"]
figures = []
[intervals]
replicates = 20
[legal]
draws = 2
folds = 2
[original]
audio = "original"
encoder = "spectrum_of:encode"
"""
SAFEGUARD = """
[[safeguards]]
name = "{name}"
audio = "{name}"
encoder = "spectrum_of:encode"
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Recordings of four people: protected, cut to 50 ms, and as noise of −80 dB."""
    soundfile = pytest.importorskip("soundfile")
    folder = tmp_path_factory.mktemp("recorded")
    lines = ["import numpy as np", "def encode(x): return np.abs(np.fft.rfft(x, 512))[:20] + 1e-3"]
    (folder / "spectrum_of.py").write_text("\n".join(lines))
    rng = np.random.default_rng(0)
    made = {
        "original": lambda voice: voice,
        "fine": lambda voice: voice[::-1],
        "cut": lambda voice: voice[:800],
        "quiet": lambda voice: 1e-4 * rng.normal(size=voice.size),
    }
    for person in range(4):
        for n in range(4):
            time = np.arange(24_000) / 16_000
            voice = 0.2 * np.sin(2 * np.pi * (150 + 40 * person) * time) + 0.01 * rng.normal(
                size=time.size
            )
            for name, change in made.items():
                place = folder / name / f"p{person}"
                place.mkdir(parents=True, exist_ok=True)
                soundfile.write(place / f"p{person}_{n}.wav", change(voice), 16_000)
    names = "".join(SAFEGUARD.format(name=name) for name in list(made)[1:])
    (folder / "a.toml").write_text(CONFIG + names)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        result = assess(load_config(folder / "a.toml"), folder / "out", allow_code=True)
        write_report(result, folder / "out", file_copy=True)
        yield folder / "out", result


def test_recordings_without_speech_are_a_limit_wherever_a_report_is_read(recorded, sentences):
    out, result = recorded
    short, faint = (
        next(
            line for line in result.limits if line.startswith(f"{name}: all 16 ") and value in line
        )
        for name, value in (("cut", " 0.05 s "), ("quiet", " −80 dB "))
    )
    sentences.check(short, faint)
    warnings = json.loads((out / "results.json").read_text())["warnings"]
    pages = [(out / name).read_text(encoding="utf-8") for name in ("report.html", "filing.html")]
    for line in (short, faint):
        assert any(line in one for one in result.limits)
        assert any(line in one for one in warnings)
        for page in pages:
            shown = page.partition("<h3>What limits")[2].partition("<h3>What to")[0]
            assert line in shown.replace("\u00a0", " ")
        assert line in summary_table(result)
    assert not any(one.startswith("fine: ") for one in result.limits)


def test_the_table_of_files_tells_what_recordings_are_like(recorded):
    out, result = recorded
    document = json.loads((out / "results.json").read_text())
    jsonschema.validate(document, json_schema())
    sounds = {one["name"].rsplit("/")[-1]: one["sound"] for one in document["inputs"]}
    assert sounds["cut"]["seconds"] == 0.05
    assert sounds["original"]["seconds"] == 1.5
    assert sounds["quiet"]["level"] == pytest.approx(-80, abs=0.5)
    assert sounds["quiet"]["silent"] == 1.0
    assert (
        {one.encoder for one in result.document.inputs}
        == {result.document.inputs[0].encoder}
        != {""}
    )
    for name in ("report.html", "filing.html"):
        page = (out / name).read_text(encoding="utf-8")
        assert ">0.05 s</td>" in page
        assert ">−80 dB</td>" in page
        assert "spectrum_of:encode" in page


def vectors(seed: int, encoder: str, prefix: str = "s") -> Embeddings:
    names = {"speaker": f"{prefix}{{}}", "utterance": f"{prefix}{{row}}"}
    return named_speakers(8, 4, 6, noise=0.3, means=0, draws=seed, encoder=encoder, **names)


def sets(folder, **encoders: str) -> dict[str, str]:
    """Files of vectors by encoder, and the config that names them."""
    for seed, (name, encoder) in enumerate(encoders.items()):
        write(vectors(seed, encoder, "t" if name == "training" else "s"), folder / f"{name}.npz")
    lines = ['frameworks = ["legal"]', "figures = []", "[intervals]", "replicates = 20"]
    if "training" in encoders:
        lines += ["[training]", 'embeddings = "training.npz"']
    lines += ["[original]", 'embeddings = "original.npz"']
    lines += ["[[safeguards]]", 'name = "V"', 'embeddings = "protected.npz"']
    lines += [f'{name} = "{name}.npz"' for name in ("again", "related") if name in encoders]
    (folder / "a.toml").write_text("\n".join(lines))
    return load_config(folder / "a.toml")


@pytest.mark.parametrize("other", ["protected", "again", "related", "training"])
def test_two_encoders_are_refused_where_the_files_tell(tmp_path, other, sentences):
    told = {"original": CAMPPLUS, "protected": CAMPPLUS, other: OTHER}
    with pytest.raises(InputError) as refused:
        assess(sets(tmp_path, **told), tmp_path / "out")
    assert f"{other}.npz" in str(refused.value)
    assert re.search("campplus aaaaaaaa.* other", str(refused.value))
    sentences.check(str(refused.value))


def test_files_that_do_not_tell_are_a_limit(tmp_path, sentences, noticed):
    result = assess(sets(tmp_path, original=CAMPPLUS, protected=""), tmp_path / "out")
    (notice,) = [one for one in noticed if one.code == ENCODER]
    assert "(V)" in notice.sentence
    (limit,) = [line for line in result.limits if notice.sentence[1:] in line]
    assert limit in result.document.warnings
    assert limit in " ".join(summary_table(result).split())
    sentences.check(limit)
    result = assess(sets(tmp_path, original=CAMPPLUS, protected=CAMPPLUS), tmp_path / "out")
    assert ENCODER not in {one.code for one in noticed}
    assert not any(notice.sentence[1:] in line for line in result.limits)


def test_a_redacted_report_names_no_encoder(tmp_path, noticed):
    config = sets(tmp_path, original=CAMPPLUS, protected=CAMPPLUS)
    result = assess(config.model_copy(update={"redact": True}), tmp_path / "out")
    assert {one.encoder for one in result.document.inputs} == {""}
    assert ENCODER not in {one.code for one in noticed}
