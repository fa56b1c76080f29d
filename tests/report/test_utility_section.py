"""Utility in an assessment: its section, the plane on the first screen, what a config may name."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from report_study import SPEAKERS, UTTERANCES
from tests.helpers import other_content

from unmask.assessment.config import UtilityConfig
from unmask.assessment.frameworks.utility import FRAMEWORK, _seconds
from unmask.assessment.toml import load_config
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.report.assessment import run_assessment as assess
from unmask.report.html import render_html
from unmask.run import run_on
from unmask.speech import Recording
from unmask.utility import COLUMNS, Measurements, utility_of, write_measurements

COUNT = len(SPEAKERS) * UTTERANCES


def measured(study, names=("original", "weak", "strong")):
    rng = np.random.default_rng(0)
    values = {}
    for n, name in enumerate(names):
        values[name] = {c: np.full(COUNT, np.nan) for c in COLUMNS}
        values[name]["words"] = np.full(COUNT, 5.0)
        values[name]["word_errors"] = rng.binomial(5, 0.1 + 0.3 * n, COUNT).astype(float)
    names = tuple(f"{s}/{n}" for s in range(len(SPEAKERS)) for n in range(UTTERANCES))
    result = Measurements(names, tuple(np.repeat(SPEAKERS, UTTERANCES).tolist()), values, "nobody")
    write_measurements(result, study / "utility.csv")


def assessed(study, *changes):
    quick = ("intervals.replicates=2", "legal.lengths=[1]", "legal.attributes={}")
    chosen = ('frameworks=["legal", "utility"]', 'utility.measurements="utility.csv"')
    changes = (*quick, *chosen, *changes)
    with run_on(workers=1):
        return assess(load_config(study / "study.toml", changes=changes), study / "out")


def test_the_plane_stands_on_the_first_screen(study):
    measured(study)
    result = assessed(study)
    section = next(one for one in result.sections if one.key == "utility")
    assert section.answer[0].startswith("weak: ")
    assert {"wer", "wer_unprotected", "wer_difference"} <= {
        e.metric for row in section.rows for e in row.estimates
    }
    assert result.plane is not None
    for name in ("original", "weak", "strong", "silence"):
        assert f"{name}: risk" in result.plane.spec()["description"]
    page = render_html(result)
    assert page.index('id="plane"') < page.index('id="numbers"')
    assert result.plane in result.all_figures


def test_a_quick_look_draws_the_plane_alone_and_tables_have_the_cost(study):
    measured(study)
    result = assessed(study, "quick=true")
    assert result.all_figures == [result.plane]
    rows = result.overview.shown[0]
    table = {r.conditions["system"]: {e.metric: e.value for e in r.estimates} for r in rows}
    errors = np.random.default_rng(0)
    for n, name in enumerate(("original", "weak", "strong")):
        share = errors.binomial(5, 0.1 + 0.3 * n, COUNT).mean() / 5
        assert table[name]["wer"] == pytest.approx(share)


def test_a_section_that_was_kept_with_names_is_not_taken_for_a_redacted_one(study, monkeypatch):
    measured(study)
    named = Notice("clipped", "weak", "/voices/ada.wav: 3.0 % of its samples are clipped")
    monkeypatch.setattr(
        "unmask.utility.utility_of", lambda *a, **o: replace(utility_of(*a, **o), notices=(named,))
    )
    for change, told in (("redact=false", True), ("redact=true", False)):
        result = assessed(study, 'frameworks=["utility"]', change)
        assert ("ada.wav" in render_html(result)) == told


def test_the_step_goes_by_content(tmp_path):
    """Recordings, whose they are, their words, a grammar and a listener may all change in place."""
    for folder in ("original", "protected"):
        (tmp_path / folder / "ann").mkdir(parents=True)
        (tmp_path / folder / "ann" / "a.wav").write_bytes(b"a" * 50)
    files = {
        "original/ann/a.wav": ("a" * 50, "b" * 50),
        "protected/ann/a.wav": ("a" * 50, "c" * 50),
        "text": ("a one two", "a one one"),
        "utt2spk": ("a ann", "a bob"),
        "words.gram": ("#JSGF V1.0; grammar g; public <g> = (one)+ ;", None),
        "hear.py": ("print('one')", "print('two')"),
    }
    (tmp_path / "a.toml").write_text(
        '[original]\naudio = "original"\nspeakers = "utt2spk"\n'
        '[[safeguards]]\nname = "p"\naudio = "protected"\nspeakers = "utt2spk"\n'
    )
    for name, (content, _) in files.items():
        (tmp_path / name).write_text(content)

    def key(*changes):
        config = load_config(tmp_path / "a.toml", changes=('utility.transcripts="text"', *changes))
        study = SimpleNamespace(config=config, inputs=SimpleNamespace(safeguards=("p",)))
        return FRAMEWORK.steps(study)["utility"]["utility"].key

    grammar = f'utility.grammar="{tmp_path / "words.gram"}"'
    listener = f'utility.recogniser="{sys.executable} {tmp_path / "hear.py"} {{input}}"'
    seen = {(key(grammar), key(listener))}
    for name, (content, other) in files.items():
        with other_content(tmp_path / name) as path:
            path.write_text(other or content.replace("one", "two"))
        seen.add((key(grammar), key(listener)))
    assert len(seen) == 1 + len(files)
    assert len({one for pair in seen for one in pair}) == 2 * (1 + len(files)) - 2


def test_measurements_of_others_and_code_are_refused(study, sentences):
    measured(study, ("original", "other"))
    result = assessed(study)
    assert result.plane is None
    (failure,) = [one for one in result.failures if "weak, strong" in one.sentence]
    assert failure.code == "not-computed"
    sentences.check(failure.sentence)
    with pytest.raises(InputError, match=r"utility\.recogniser: .*--allow-code"):
        assessed(study, 'utility.recogniser="listen {input}"')


def test_the_forecast_counts_what_measuring_takes(monkeypatch):
    clock = [0.0]

    def measure(original, protected, **_):
        clock[0] += 0.5 * len(original) + 0.25 * sum(map(len, protected.values()))

    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    monkeypatch.setattr("unmask.utility.measure", measure)
    files = [Recording(Path("x"), f"u{n}", f"s{n % 3}") for n in range(12)]
    with run_on(workers=1):
        took = _seconds(UtilityConfig(dnsmos=2), files, {"a": files, "b": files})
    assert took == pytest.approx(12 * (0.5 + 2 * 0.25) + 0.4 * 6 * 3)
