from __future__ import annotations

import json
import re
import tomllib

import jsonschema
import pytest

from unmask.assessment.config import ATTACKERS, Config, config_schema
from unmask.assessment.starter import starter_config
from unmask.assessment.toml import check_config, load_config, to_toml
from unmask.errors import InputError


def with_line(study, text):
    path = study / "study.toml"
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    return path


def test_reads_paths_relative_to_the_file(study, monkeypatch):
    monkeypatch.chdir("/")
    config = load_config(study / "study.toml")
    assert config.original.embeddings == (study / "original.npz").resolve()
    assert config.safeguards[0].again == str((study / "weak-again.npz").resolve())


MISTAKES = {
    "section": ("\n[legal2]\nx = 1\n", "legal2"),
    "key": ("\n[similarity]\ncount = [1]\n", "similarity.count"),
    "twice": ('\n[[safeguards]]\nname = "weak"\nembeddings = "weak.npz"\n', "'weak'"),
    "absent": ('\n[[safeguards]]\nname = "gone"\nembeddings = "gone.npz"\n', "gone.npz"),
    "nothing": ('\n[[safeguards]]\nname = "none"\n', "safeguards"),
    "original": ('\n[[safeguards]]\nname = "original"\nembeddings = "weak.npz"\n', "original"),
    "enrol": ('\n[[attackers]]\nname = "x"\nenrol = "nobody"\n', "attackers.0.enrol"),
    "mean": ("\n[similarity]\nmean = 2\n", "similarity.mean"),
    "syntax": ("\n= 3\n", "TOML"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_that_names_the_key(study, mistake, sentences):
    text, key = MISTAKES[mistake]
    with pytest.raises(InputError) as error:
        load_config(with_line(study, text))
    assert key in str(error.value)
    assert "\n" not in str(error.value)
    # What is wrong with the syntax, Python's own parser tells.
    sentences.check(re.sub("mistake: .*", "mistake", str(error.value)))


def test_missing_config_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent\.toml: cannot be read"):
        load_config(tmp_path / "absent.toml")


def test_intervals_are_drawn_as_often_as_the_numbers_say():
    config = check_config({"scores": [{"name": "t", "files": ["t.txt"]}]})
    assert (config.intervals.replicates, config.intervals.level) == (1000, 0.95)
    assert (config.cpmap.grid, config.cpmap.replicates) == (50, 100)


def test_a_config_stays_as_it_was_read(study):
    config = load_config(study / "study.toml")
    for part, key in ((config, "seed"), (config.intervals, "replicates")):
        with pytest.raises(ValueError, match="frozen"):
            setattr(part, key, 3)


def test_nothing_to_assess(sentences):
    with pytest.raises(InputError) as error:
        check_config({})
    sentences.check(str(error.value))


def test_values_can_be_set(study):
    changes = ["legal.lengths=[1, 3]", "safeguards.0.name=renamed", "intervals.level=0.9"]
    config = load_config(study / "study.toml", changes=changes)
    assert config.legal.lengths == (1, 3)
    assert config.safeguards[0].name == "renamed"
    assert config.intervals.level == 0.9


@pytest.mark.parametrize("change", ["seed", "safeguards.9.name=x", "title.x=1", "sead=1"])
def test_a_wrong_change_is_told(study, change, sentences):
    with pytest.raises(InputError, match=change.partition(".")[0].partition("=")[0]) as error:
        load_config(study / "study.toml", changes=[change])
    sentences.check(str(error.value))


def test_the_schema_accepts_the_example(study):
    schema = config_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    raw = tomllib.loads((study / "study.toml").read_text(encoding="utf-8"))
    jsonschema.validate(raw, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**raw, "sead": 1}, schema)
    json.dumps(schema)


def test_the_resolved_config_reads_back_the_same(study, tmp_path):
    config = load_config(study / "study.toml", changes=['title="say \\"what\\" \\\\ é"'])
    out = tmp_path / "somewhere"
    out.mkdir()
    (out / "assessment.toml").write_text(to_toml(config, base=out), encoding="utf-8")
    assert load_config(out / "assessment.toml") == config


def test_starter_names_what_is_there(study):
    (study / "study.toml").unlink()
    text = starter_config(study)
    (study / "made.toml").write_text(text, encoding="utf-8")
    config = load_config(study / "made.toml")
    assert isinstance(config, Config)
    assert config.original.embeddings == (study / "original.npz").resolve()
    weak = {one.name: one for one in config.safeguards}
    assert weak["weak"].again == "weak-again"
    assert weak["weak-again"].hidden
    assert config.attackers == ATTACKERS
    assert [one.name for one in config.scores] == ["scores"]


def test_starter_of_an_empty_folder(tmp_path, sentences):
    with pytest.raises(InputError) as nothing:
        starter_config(tmp_path)
    (tmp_path / "a.flac").write_bytes(b"fLaC")
    with pytest.raises(InputError, match=r"a\.flac .*\(SAFEGUARD/SPEAKER") as alone:
        starter_config(tmp_path)
    sentences.check(str(nothing.value), str(alone.value))


MISTYPED = {
    "name": ('nam = "b2"\nembeddings = "weak.npz"', r"safeguards\.2\.nam: .*\(line {}\).* name\?"),
    "embeddings": ('name = "x"\nprotected = "weak.npz"', r"embeddings or audio\?"),
    "two": ('name = "x"\nembedings = 3\nkeylss = 1', r"embeddings\?; safeguards\.2\.keylss"),
}


@pytest.mark.parametrize("key", MISTYPED)
def test_a_mistyped_key_names_the_nearest_one_and_its_line(study, key, sentences):
    text, named = MISTYPED[key]
    path = with_line(study, f"\n[[safeguards]]\n{text}\n")
    line = next(
        (n for n, one in enumerate(path.read_text().splitlines(), 1) if one.startswith("nam =")), 0
    )
    with pytest.raises(InputError, match=named.format(line)) as refused:
        load_config(path)
    assert "found none" not in str(refused.value)
    sentences.check(str(refused.value))


def test_several_mistakes_are_told_together(study, sentences):
    path = with_line(study, "\n[similarity]\ncount = [1]\nmean = 2\n[intervalls]\n[a]\n[b]\n[c]\n")
    with pytest.raises(InputError) as refused:
        load_config(path)
    said = str(refused.value)
    for part in ("similarity.count", "intervalls", "intervals?"):
        assert part in said
    sentences.check(said)
