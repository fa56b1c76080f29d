from __future__ import annotations

import json
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n[legal2]\nx = 1\n", "legal2: unknown key"),
        ("\n[similarity]\ncount = [1]\n", "similarity.count: unknown key"),
        ('\n[[safeguards]]\nname = "weak"\nembeddings = "weak.npz"\n', "'weak' twice"),
        ('\n[[safeguards]]\nname = "gone"\nembeddings = "gone.npz"\n', "gone.npz: no such file"),
        ('\n[[safeguards]]\nname = "none"\n', "expected embeddings, audio or scores"),
        ('\n[[safeguards]]\nname = "original"\nembeddings = "weak.npz"\n', "unprotected speech"),
        ('\n[[attackers]]\nname = "x"\nenrol = "nobody"\n', "attackers.0.enrol: input should be"),
        ("\n[similarity]\nmean = 2\n", "similarity.mean: input should be 'geometric'"),
        ("\n= 3\n", "expected TOML"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key(study, text, said):
    with pytest.raises(InputError) as sentence:
        load_config(with_line(study, text))
    assert said in str(sentence.value)
    assert "\n" not in str(sentence.value)


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


def test_nothing_to_assess():
    with pytest.raises(InputError, match="expected safeguards or scores"):
        check_config({})


def test_values_can_be_set(study):
    changes = ["legal.lengths=[1, 3]", "safeguards.0.name=renamed", "intervals.level=0.9"]
    config = load_config(study / "study.toml", changes=changes)
    assert config.legal.lengths == (1, 3)
    assert config.safeguards[0].name == "renamed"
    assert config.intervals.level == 0.9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("seed", "expected key=value"),
        ("safeguards.9.name=x", "expected an index below 2"),
        ("title.x=1", "title holds a value"),
        ("sead=1", "sead: unknown key"),
    ],
)
def test_a_wrong_change_is_told(study, change, said):
    with pytest.raises(InputError, match=said):
        load_config(study / "study.toml", changes=[change])


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


def test_starter_of_an_empty_folder(tmp_path):
    with pytest.raises(InputError, match="expected embeddings, recordings or scores"):
        starter_config(tmp_path)
    (tmp_path / "a.flac").write_bytes(b"fLaC")
    with pytest.raises(InputError, match=r"found a\.flac in no speaker's folder \(SAFEGUARD/SPEA"):
        starter_config(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'nam = "b2"\nembeddings = "weak.npz"',
            "safeguards.2.nam: unknown key (line {}), did you mean name?",
        ),
        ('name = "x"\nprotected = "weak.npz"', "did you mean embeddings or audio?"),
        ('name = "x"\nembedings = 3\nkeylss = 1', "did you mean embeddings?; safeguards.2.keylss"),
    ],
)
def test_a_mistyped_key_names_the_nearest_one_and_its_line(study, text, said):
    path = with_line(study, f"\n[[safeguards]]\n{text}\n")
    line = next(
        (n for n, one in enumerate(path.read_text().splitlines(), 1) if one.startswith("nam =")), 0
    )
    with pytest.raises(InputError) as refused:
        load_config(path)
    assert said.format(line) in str(refused.value)
    assert "found none" not in str(refused.value)


def test_several_mistakes_are_told_together(study):
    path = with_line(study, "\n[similarity]\ncount = [1]\nmean = 2\n[intervalls]\n[a]\n[b]\n[c]\n")
    with pytest.raises(InputError) as refused:
        load_config(path)
    said = str(refused.value)
    for part in ("similarity.count", "intervalls: unknown key", "did you mean intervals?", "more"):
        assert part in said
