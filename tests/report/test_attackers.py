"""Who attacks what: the meaning of each attacker, and what the report says of those not run."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.helpers.populations import speakers_with_noise

from unmask.assessment.config import ATTACKERS, KNOWN
from unmask.assessment.frameworks import RECORDS
from unmask.assessment.toml import load_config
from unmask.errors import InputError
from unmask.privacy.legal import RELEASE
from unmask.report.assessment import check_inputs, run_assessment as assess
from unmask.report.headline import ALL, WORST, find
from unmask.report.writing import summary_table, write_report
from unmask.trials import Embeddings, Ids, Scores, write

SPEAKERS, PER, DIMENSION = 32, 8, 24
NAMES = np.repeat([f"s{n:02}" for n in range(SPEAKERS)], PER)
UTTERANCES = [f"{name}-{n % PER}" for n, name in enumerate(NAMES)]
CONFIG = """
figures = []
frameworks = ["legal", "trust", "zebra", "verification"]
intervals = {replicates = 20}
legal = {lengths = [1, 2], draws = 2, folds = 4}
[original]
embeddings = "original.npz"
[[safeguards]]
name = "new voice"
embeddings = "protected.npz"
"""


def crowd(seed: int) -> np.ndarray:
    """Voices of as many people as there are speakers, whoever they are."""
    rng = np.random.default_rng(seed)
    return speakers_with_noise(SPEAKERS, PER, DIMENSION, noise=0.3, means=rng)[0]


def put(folder, **sets):
    for name, vectors in sets.items():
        gender = np.where(np.arange(len(NAMES)) // PER % 2, "f", "m")
        one = Embeddings(vectors, NAMES, UTTERANCES, columns={"gender": gender})
        write(one, folder / f"{name}.npz")


def run(folder, more="", *, changes=()):
    (folder / "study.toml").write_text(CONFIG + more, encoding="utf-8")
    return assess(load_config(folder / "study.toml", changes=changes), folder / "out")


def rows_of(result, key):
    return next(section for section in result.sections if section.key == key).rows


@pytest.fixture(scope="module")
def ideal(tmp_path_factory):
    """An unrelated new voice for every speaker; another one in the attacker's own run."""
    folder = tmp_path_factory.mktemp("ideal")
    put(folder, original=crowd(1), protected=crowd(2), again=crowd(3), related=crowd(4))
    return folder, run(folder, 'again = "again.npz"\nrelated = "related.npz"\n')


def test_an_unrelated_new_voice_comes_out_as_protected(ideal):
    result = ideal[1]
    assert result.attackers == tuple(one.name for one in ATTACKERS)
    rows = rows_of(result, "legal")
    for attacker in result.attackers:
        points = find(rows, "linkability", safeguard="new voice", attacker=attacker)
        assert points
        for point in points:
            chance = point.estimate.chance
            assert point.estimate.interval.low <= chance + 0.03, (attacker, point)
            assert point.estimate.value < chance + 0.12, (attacker, point)
    for place in (WORST, ALL):
        (point,) = find(rows, "linkability", safeguard="new voice", point=place)
        assert point.estimate.interval.low <= point.estimate.chance
        (control,) = find(rows, "linkability", safeguard="original", point=place)
        assert control.estimate.value > 0.95
    card = result.cards[0]
    assert card.numbers[0].estimate.value < 0.2
    assert card.numbers[-1].label == "Evidence"
    assert card.numbers[-1].estimate.value < 0.1


def test_trained_attackers_come_with_controls_and_a_learning_curve(ideal):
    """They succeed where they must and fail on people they never saw."""
    rows = rows_of(ideal[1], "trust")
    for attacker in ("original enrolment", "ignorant", "semi-informed", "informed"):
        for metric, least, most in (
            ("linkability_unprotected", 0.9, 1.0),
            ("linkability_own_run", 0.9, 1.0),
            ("linkability_unseen", 0.0, 0.25),
        ):
            result = [
                one
                for one in find(rows, metric, safeguard="new voice")
                if one.attacker.startswith(f"{attacker} (")
            ]
            assert len(result) == 1
            assert least <= result[0].estimate.value <= most, (attacker, metric)
    gains = find(rows, "learning_gain")
    assert len(gains) == 5
    curves = find(rows, "linkability")
    assert {int(one.estimate.params["trained_on"]) for one in curves} == {4, 8, 16}


def test_the_same_people_are_not_linked_by_chance(ideal):
    shared = find(rows_of(ideal[1], "legal"), "overlap")
    assert {one.conditions["tenth"] for one in shared} == {"easiest", "hardest"}
    assert all(one.estimate.chance == 3 / 32 for one in shared)


def test_stable_new_voices_are_linked_within_the_release_and_to_nobody(ideal, sentences):
    result = ideal[1]
    rows = rows_of(result, "legal")
    for point in (RELEASE, RECORDS):
        (within,) = find(rows, "linkability", safeguard="new voice", point=point)
        assert within.conditions["setting"] == RELEASE
        assert within.estimate.value > 0.95
    (known,) = find(rows, "linkability", safeguard="new voice", point=WORST)
    assert known.conditions["setting"] == KNOWN
    assert known.estimate.interval.low <= known.estimate.chance
    card = result.cards[0]
    assert card.extent == "chance"
    (number,) = (one for one in card.numbers if one.label == f"Linkability, {RELEASE}")
    assert number.estimate.value > 0.95
    sentences.check(*(line for line in card.sentences if RELEASE in line.lower()))


def test_calibration_comes_from_another_run_only(ideal):
    folder, result = ideal
    assert find(rows_of(result, "zebra"), "c_ece", safeguard="new voice")
    for data in ('related = "related.npz"\n', 'keyless = true\nrelated = "related.npz"\n'):
        other = run(folder, data, changes=['frameworks=["zebra"]'])
        assert not find(rows_of(other, "zebra"), "c_ece")


def test_attackers_without_their_data_are_named_as_not_run(ideal, sentences):
    folder, _ = ideal
    result = run(folder, changes=['frameworks=["legal"]'])
    assert result.attackers == ("original enrolment",)
    assert "1 attacker." in result.line
    facts = " ".join(f"{name} {value}" for name, value in result.facts)
    notices = [one for one in result.cards[0].notices if one.code == "attacker-not-run"]
    sentences.check(*(notice.line for notice in notices))
    text = [notice.sentence for notice in notices]
    written = json.dumps(result.document.to_dict()["results"])
    for name in ("ignorant", "semi-informed", "informed"):
        assert [line for line in text if line.startswith(f"the {name} attacker")]
        assert f"Attacker {name}" not in facts
        assert f'"attacker": "{name}' not in written
    assert {notice.code for notice in result.cards[0].notices} == {"attacker-not-run"}
    names = "ignorant, informed and informed with originals"
    (limit,) = (line for line in result.limits if names in line)
    sentences.check(limit)
    assert limit in " ".join(summary_table(result).split())


def test_without_a_key_the_attackers_run_is_the_safeguards_own(ideal, sentences):
    folder, _ = ideal
    result = run(folder, "keyless = true\n", changes=['frameworks=["legal"]'])
    others = [one.name for one in ATTACKERS if one.name != "semi-informed"]
    assert result.attackers == tuple(others)
    (worst,) = find(rows_of(result, "legal"), "linkability", safeguard="new voice", point=WORST)
    assert worst.estimate.value > 0.9
    card = result.cards[0]
    assert worst.estimate.chance == 0.05
    assert card.sentences[0].endswith("p = 0.005.")
    assert " of 32 attempts " in card.verdict
    sentences.check(card.verdict, card.sentences[0])


def test_a_voice_turned_round_is_found_by_the_negated_score(tmp_path):
    voices = crowd(1)
    rng = np.random.default_rng(0)
    put(tmp_path, original=voices, protected=-voices + 0.3 * rng.normal(size=voices.shape))
    result = run(tmp_path)
    known = [n for n in result.cards[0].numbers if "within the release" not in n.label]
    assert [n.label for n in known] == ["Linkability", "Singling Out", "Evidence"]
    linked, _, disclosed = known
    for number in known:
        assert number.attacker.endswith("negated")
        assert number.estimate.interval is not None
    assert linked.estimate.value > 0.95
    assert disclosed.estimate.value > 0.6
    speakers = [e for row in result.least[0].rows for e in row.estimates]
    assert np.mean([e.value for e in speakers]) > 0.9


def test_other_people_train_back_ends_that_may_not_see_the_attacked(ideal, tmp_path, sentences):
    folder, _ = ideal
    for name in ("original", "protected", "again"):
        (tmp_path / f"{name}.npz").write_bytes((folder / f"{name}.npz").read_bytes())
    for name, seed in (("others", 8), ("others-protected", 9)):
        people = [f"t{speaker[1:]}" for speaker in NAMES]
        utterances = [f"t{utterance[1:]}" for utterance in UTTERANCES]
        write(Embeddings(crowd(seed), people, utterances), tmp_path / f"{name}.npz")
    data = 'again = "again.npz"\ntraining = "others-protected.npz"\n'
    quick = [
        'frameworks=["legal", "similarity"]',
        'legal.metrics=["linkability"]',
        "legal.lengths=[1]",
    ]
    result = run(tmp_path, data + '[training]\nembeddings = "others.npz"\n', changes=quick)
    rows = rows_of(result, "legal")
    named = {row.conditions.get("attacker", "") for row in rows}
    for backend in ("procrustes", "asnorm", "fusion"):
        assert f"informed with originals ({backend})" in named
    (worst,) = find(rows, "linkability", safeguard="new voice", point=WORST)
    assert worst.estimate.interval.low <= worst.estimate.chance
    matrices = rows_of(result, "similarity")
    for backend in ("whitened", "wasserstein", "procrustes", "asnorm", "fusion", "wccn", "plda"):
        (tried,) = find(matrices, f"deid_{backend}", safeguard="new voice")
        assert tried.estimate.interval.high > 0.95, backend
    everyone, *_ = find(matrices, "deid_strongest", safeguard="new voice")
    assert everyone.estimate.value > 0.85
    for strongest in find(matrices, "deid_strongest", safeguard="new voice"):
        assert strongest.estimate.interval.high > 0.95
    facts = dict(result.facts)
    sentences.check(facts["Attacker informed with originals"])
    with pytest.raises(InputError, match="found 32") as error:
        run(tmp_path, data + '[training]\nembeddings = "original.npz"\n', changes=quick)
    sentences.check(str(error.value))


def test_fits_within_groups_compete_where_the_attacker_knows_them(tmp_path, sentences):
    rng = np.random.default_rng(3)
    shift = 6 * rng.normal(size=(2, DIMENSION))[np.arange(len(NAMES)) // PER % 2]
    voices = crowd(1)
    put(tmp_path, original=voices, protected=voices + shift + 0.2 * rng.normal(size=voices.shape))
    known = (
        'legal.side=["gender"]', "legal.lengths=[1]", "standard_attackers=false",
        'frameworks=["legal", "similarity", "verification"]',
    )  # fmt: skip
    more = '[[attackers]]\nname = "one"\nbackends = ["wasserstein"]\n'
    found = {}
    for changes in ((), known[:1]):
        result = run(tmp_path, more, changes=(*changes, *known[1:]))
        assert not result.failures
        point = {"point": WORST, "safeguard": "new voice", "setting": KNOWN}
        (linked,) = find(rows_of(result, "legal"), "linkability", **point)
        found[linked.conditions["attacker"]] = linked.estimate
        deid = find(rows_of(result, "similarity"), "deid_strongest")[0]
        assert "group" not in deid.conditions
        errors = find(rows_of(result, "verification"), "eer", safeguard="new voice")
        eer = min(one.estimate.value for one in errors)
        found[f"{len(changes)} known"] = deid.estimate.value, eer
    plain, group = found["one (wasserstein)"], found["one (wasserstein by gender)"]
    assert group.value > 0.95 > 0.8 > plain.value
    assert group.chance == pytest.approx(0.1, abs=0.01)
    assert plain.chance == 0.05
    assert found["0 known"][0] > 0.3 > 0.05 > found["1 known"][0]
    assert found["0 known"][1] > 0.1 > 0.03 > found["1 known"][1]
    (tmp_path / "study.toml").write_text(CONFIG + more, encoding="utf-8")
    with pytest.raises(InputError, match=r"legal\.side: original: .*age.* gender") as error:
        check_inputs(load_config(tmp_path / "study.toml", changes=['legal.side=["age"]']))
    sentences.check(str(error.value))


def test_inference_stands_on_the_card_with_chance_and_control(ideal):
    folder, _ = ideal
    changes = ['frameworks=["legal"]', "legal.attributes.gender=[]"]
    result = run(folder, changes=changes)
    (number,) = [one for one in result.cards[0].numbers if one.label == "Inference"]
    assert number.chance == 0.5
    assert number.unprotected is not None
    assert "gender" in number.what


def test_a_run_cannot_be_its_own_second_run(ideal, sentences):
    folder, _ = ideal
    for data in ('again = "new voice"\n', 'again = "again.npz"\nkeyless = true\n'):
        with pytest.raises(InputError, match=r"safeguards\.0") as error:
            run(folder, data)
        sentences.check(str(error.value).replace(str(folder), "<folder>"))


def scores(folder, *, pairs):
    """Scores of 40 speakers; most pairs of them meet ``pairs`` times, one only once."""
    rng = np.random.default_rng(0)
    enrol, test = [], []
    for i in range(40):
        enrol += [i] * 4
        test += [i] * 4
        for j in range(40):
            if i != j:
                times = 1 if (i, j) == (3, 5) else pairs
                enrol += [i] * times
                test += [j] * times
    same = np.array(enrol) == np.array(test)
    write(
        Scores(
            Ids.from_strings([f"e{i}" for i in enrol]),
            Ids.from_strings([f"t{j}-{n}" for n, j in enumerate(test)]),
            same.astype(np.int8),
            enrol_speaker=Ids.from_strings([f"s{i:02}" for i in enrol]),
            test_speaker=Ids.from_strings([f"s{j:02}" for j in test]),
            systems={"asv": rng.normal(size=same.size) + 2 * same},
        ),
        folder / "scores.parquet",
    )
    (folder / "a.toml").write_text(
        """
figures = []
frameworks = ["verification", "worst_case"]
intervals = {replicates = 5}
[[scores]]
name = "ours"
files = ["scores.parquet"]
""",
        encoding="utf-8",
    )


REFUSAL = "pairs: 1 of 1,560 have one score"


def test_a_framework_that_refuses_costs_its_own_section(tmp_path, monkeypatch):
    scores(tmp_path, pairs=2)

    def refuse(*args, **kwargs):
        raise InputError(REFUSAL)

    monkeypatch.setattr("unmask.stress.worst_case_study", refuse)
    result = assess(load_config(tmp_path / "a.toml"), tmp_path / "out")
    assert [section.key for section in result.sections] == ["verification"]
    (failure,) = result.failures
    assert (failure.code, failure.subject) == ("not-computed", "worst_case")
    assert REFUSAL in failure.sentence
    assert failure.sentence in summary_table(result)
    write_report(result, tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert REFUSAL in page
    results = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert failure.sentence in results["warnings"]


def test_where_every_framework_refuses_the_reason_is_the_error(tmp_path, monkeypatch, sentences):
    scores(tmp_path, pairs=2)

    def refuse(*args, **kwargs):
        raise InputError(REFUSAL)

    monkeypatch.setattr("unmask.stress.worst_case_study", refuse)
    config = load_config(tmp_path / "a.toml", changes=['frameworks=["worst_case"]'])
    with pytest.raises(InputError, match=f"worst case.*{REFUSAL}") as error:
        assess(config, tmp_path / "out")
    sentences.check(str(error.value))
