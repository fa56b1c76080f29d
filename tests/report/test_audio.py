"""From two folders of recordings to a report, by way of ``unmask init``."""

from __future__ import annotations

import contextlib
import json
import shutil

import pytest
from tests.helpers.populations import hum

from unmask.assessment import config_of
from unmask.assessment.starter import starter_config
from unmask.assessment.toml import load_config
from unmask.errors import InputError
from unmask.report.assessment import check_inputs, run_assessment as assess
from unmask.report.writing import write_report
from unmask.speech.encoders import weights_of

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("torch")


def test_recordings_become_a_report(tmp_path, sentences):
    if not weights_of("campplus").installed:
        pytest.skip("the weights of campplus are not installed")
    for folder, shift in (("original", 1.0), ("protected", 1.3)):
        for speaker, pitch in (("ann", 210.0), ("bob", 110.0), ("cid", 150.0)):
            target = tmp_path / folder / speaker
            target.mkdir(parents=True)
            for i in range(4):
                voice = hum(shift * pitch * (1 + 0.01 * i), i, seconds=1.0)
                soundfile.write(target / f"{speaker}_{i}.wav", voice, 16_000)
    (tmp_path / "assessment.toml").write_text(starter_config(tmp_path), encoding="utf-8")
    changes = ["intervals.replicates=20", "figures=[]", 'frameworks=["legal", "similarity"]']
    config = load_config(tmp_path / "assessment.toml", changes=changes)
    out = tmp_path / "out"
    write_report(assess(config, out), out)
    outcome = json.loads((out / "results.json").read_text())
    assert {"linkability", "deid"} <= {result["metric"] for result in outcome["results"]}
    (left_out,) = (line for line in outcome["warnings"] if " of 3, 30 utterances" in line)
    sentences.check(left_out)
    shutil.copytree(tmp_path / "protected", tmp_path / "copy")
    versions = {"V": tmp_path / "protected", "V-again": tmp_path / "copy"}
    with pytest.raises(InputError, match=r"V\.again: ") as error:
        check_inputs(config_of(tmp_path / "original", versions))
    sentences.check(str(error.value))


def test_a_config_names_no_code_unless_allowed(tmp_path, monkeypatch, sentences):
    mark = tmp_path / "ran"
    lines = ["import os", f"os.mkdir({str(mark)!r})", "def encode(x): return x[:8]"]
    (tmp_path / "payload.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    for folder in ("original", "protected"):
        (tmp_path / folder / "ann").mkdir(parents=True)
        soundfile.write(tmp_path / folder / "ann" / "a.wav", hum(200.0, 1, seconds=1.0), 16_000)
    (tmp_path / "a.toml").write_text(
        'title = "x"\n[original]\naudio = "original"\nencoder = "payload:encode"\n'
        '[[safeguards]]\nname = "p"\naudio = "protected"\nencoder = "payload:encode"\n'
    )
    config = load_config(tmp_path / "a.toml")
    with pytest.raises(InputError, match=r"payload:encode.* --allow-code") as error:
        assess(config, tmp_path / "out")
    sentences.check(str(error.value))
    assert not mark.exists()
    with contextlib.suppress(InputError):
        assess(config, tmp_path / "out", allow_code=True)
    assert mark.exists()
