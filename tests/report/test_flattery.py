"""Inputs that would make a bad safeguard look good: each is refused, or told in the report."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import resources

import numpy as np
import polars as pl
import pytest
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.assessment import load_config
from unmask.assessment.runs import Speech
from unmask.assessment.sound import run_notices
from unmask.errors import InputError
from unmask.report import check_inputs, run_assessment as assess
from unmask.report.words import note
from unmask.run import run_on
from unmask.trials import Embeddings, Ids, write

CASE = resources.files("unmask.data").joinpath("case_study")
SPEAKERS, EACH, DIM = 12, 6, 16
HEAD = """
figures = []
frameworks = ["legal"]
intervals = {replicates = 20}
legal = {lengths = [1], draws = 2, folds = 2, metrics = ["linkability"]}
"""
BODY = """
[original]
embeddings = "original.npz"
[[safeguards]]
name = "V"
embeddings = "v.npz"
"""
WEAK = """
[[attackers]]
name = "informed"
enrol = "original"
train = ["original"]
backends = ["cosine"]
"""


@pytest.fixture(autouse=True, scope="module")
def alone():
    with run_on(workers=1):
        yield


def speech(seed: int = 1, *, spread: float = 0.2) -> Embeddings:
    return named_speakers(SPEAKERS, EACH, DIM, noise=spread, means=0, draws=seed)


def turned(embeddings: Embeddings) -> Embeddings:
    """One rotation of the space for all: nobody is hidden from who aligns the two."""
    turn = np.linalg.qr(np.random.default_rng(9).normal(size=(DIM, DIM)))[0]
    return replace(embeddings, vectors=embeddings.vectors @ turn)


def renamed(embeddings: Embeddings, name) -> Embeddings:
    return replace(
        embeddings, speakers=Ids.from_strings([name(s) for s in embeddings.speakers.to_series()])
    )


def without(embeddings: Embeddings, *endings: str) -> Embeddings:
    assert embeddings.utterances is not None
    kept = [not name.endswith(endings) for name in embeddings.utterances.to_series()]
    return embeddings.select(np.array(kept))


def among(embeddings: Embeddings, first: int, last: int = SPEAKERS) -> Embeddings:
    codes = embeddings.speakers.codes
    return embeddings.select((codes >= first) & (codes < last))


def config(tmp_path, *, original=None, protected=None, head=HEAD, more="", **sets):
    every = {"original": original or speech(), "v": protected or speech(2), **sets}
    for name, one in every.items():
        write(one, tmp_path / f"{name}.npz")
    (tmp_path / "a.toml").write_text(head + BODY + more)
    return load_config(tmp_path / "a.toml")


def run(tmp_path, **how):
    return assess(config(tmp_path, **how), tmp_path / "out", cache=tmp_path / "kept")


def both(how, tmp_path):
    """What an assessment refuses, validation refuses in the same words."""
    made = config(tmp_path, **how)
    with pytest.raises(InputError) as first:
        check_inputs(made)
    with pytest.raises(InputError) as second:
        assess(made, tmp_path / "out", cache=tmp_path / "kept")
    assert str(first.value) == str(second.value)
    return str(first.value)


@pytest.mark.parametrize("which", ["protected", "again", "related", "training"])
def test_speakers_that_contradict_are_refused_with_the_first_row(tmp_path, which, sentences):
    mixed = renamed(speech(3), lambda name: f"s{(int(name[1:]) + 7) % SPEAKERS:02d}")
    more = "" if which in ("protected", "training") else f'{which} = "x.npz"\n'
    if which == "training":
        mixed = renamed(speech(3), lambda name: f"t{name[1:]}")
        more = '[training]\nembeddings = "x.npz"\n'
    how = {"protected": mixed} if which == "protected" else {"x": mixed, "more": more}
    said = both(how, tmp_path)
    assert "row 1: " in said
    assert "(72 such rows)" in said
    sentences.check(said)


def test_no_common_speaker_is_said_in_those_words(tmp_path, sentences):
    other = replace(speech(2), utterances=Ids.from_strings([f"u{i}" for i in range(72)]))
    said = both({"protected": renamed(other, lambda name: f"p{name[1:]}")}, tmp_path)
    assert "safeguards.V" in said
    assert "(p00, p01 … against s00, s01 …)" in said
    sentences.check(said)


def test_a_weak_attacker_cannot_be_called_informed(tmp_path, sentences):
    with pytest.raises(InputError) as refused:
        config(tmp_path, more=WEAK)
    assert "attackers.0: name: 'informed'" in str(refused.value)
    sentences.check(str(refused.value))


def test_attackers_are_added_to_the_usual_ones(tmp_path):
    how = {
        "protected": turned(speech(2)),
        "more": 'again = "again.npz"\n' + WEAK.replace("informed", "mine"),
    }
    result = run(tmp_path, again=turned(speech(3)), **how)
    assert result.attackers[-1] == "mine"
    assert {"original enrolment", "ignorant", "informed"} <= set(result.attackers)
    assert result.cards[0].extent == "most"


def left_out(result) -> list[str]:
    """What the report says of the usual things that the config leaves out."""
    start = note("left_out", what="|", named="").partition("|")[0]
    return [line for line in result.limits if line.startswith(start)]


def limiting(result, noticed, code: str, *, subject: str = "V", name: str = "") -> str:
    """The one sentence of this code, with this name, on what was read: a limit of the report."""
    (notice,) = [one for one in noticed if one.code == code and name in one.sentence]
    assert notice.subject == subject
    (limit,) = [line for line in result.limits if notice.sentence in line]
    assert limit.startswith(f"{subject}: ")
    return limit


def test_attackers_that_the_config_drops_are_told(tmp_path, sentences):
    weak = "standard_attackers = false\n" + HEAD
    more = WEAK.replace("informed", "mine")
    result = run(tmp_path, protected=turned(speech(2)), head=weak, more=more)
    assert result.attackers == ("mine",)
    lines = left_out(result)
    assert len(lines) == 4
    names = ("original enrolment, ignorant,", "frameworks: ", "singling_out, one_minus_eer.")
    for name in (*names, " 3, 30."):
        assert any(name in line for line in lines), result.limits
    sentences.check(*lines)


def test_back_ends_that_an_entry_of_a_usual_name_drops_are_told(tmp_path, sentences):
    more = '[[attackers]]\nname = "original enrolment"\nbackends = ["cosine"]\n'
    result = run(tmp_path, more=more)
    (line,) = [line for line in left_out(result) if "original enrolment" in line]
    assert ": wccn, " in line
    sentences.check(line)


def test_people_without_protected_speech_are_counted(tmp_path, sentences, noticed):
    absent = among(speech(2), 4)
    more = 'again = "again.npz"\n'
    result = run(tmp_path, protected=absent, more=more, again=among(speech(3), 4))
    line = limiting(result, noticed, "absent")
    for count in ("4 of 12 people", "24 of 72 recordings", "(first: s00-0)"):
        assert count in line
    (few,) = [limit for limit in result.limits if " 8 people" in limit]
    sentences.check(line, few, result.line, dict(result.facts)["Attacked"])
    assert result.line.startswith("8 of 12 speakers")
    assert result.cards[0].extent == "most"
    assert not result.failures


def test_recordings_that_were_deleted_are_counted(tmp_path, sentences, noticed):
    result = run(tmp_path, protected=without(speech(2), "-3", "-4"))
    line = limiting(result, noticed, "absent")
    assert "24 of 72 recordings" in line
    assert "(first: s00-3)" in line
    sentences.check(line)


def test_people_without_original_speech_are_counted(tmp_path, sentences, noticed):
    result = run(tmp_path, original=among(speech(), 0, 11))
    line = limiting(result, noticed, "absent", name="(first: s11)")
    assert "1 protected person" in line
    sentences.check(line)
    assert result.cards[0].extent == "most"


def test_people_whom_nobody_enrols_are_left_out_and_counted(tmp_path, sentences, noticed):
    listed = [f"s{s:02d}-{i}" for s in range(10) for i in range(3)]
    (tmp_path / "enrol.txt").write_text("\n".join(listed))
    head = HEAD + 'split = {utterances = "enrol.txt"}\n'
    result = run(tmp_path, head=head)
    line = limiting(result, noticed, "absent")
    assert "2 protected people" in line
    attacked = dict(result.facts)["Attacked"]
    assert "30 utterances" in attacked
    assert "10 people" in attacked
    sentences.check(line)


def test_distractors_are_candidates(tmp_path):
    head = HEAD.replace("legal = {", "legal = {counts = [8, 12], ")
    result = run(tmp_path, protected=among(speech(2), 4), head=head)
    rows = [
        row for s in result.sections for row in s.rows if row.conditions.get("speakers") == "12"
    ]
    assert any(row.conditions["safeguard"] == "V" for row in rows)


@pytest.mark.parametrize("frameworks", ['["legal"]', '["legal", "verification", "similarity"]'])
def test_a_back_end_that_cannot_be_fitted_costs_itself(tmp_path, frameworks):
    head = HEAD.replace('["legal"]', frameworks) + "split = {enrol = 1}\n"
    result = run(tmp_path, head=head)
    assert not result.failures
    assert {s.key for s in result.sections} == set(eval(frameworks))
    assert any("(wccn): not tried" in line for line in result.limits), result.limits
    assert result.cards[0].extent == "most"


def test_back_ends_that_need_other_people_are_told(tmp_path, sentences):
    result = run(tmp_path, more='again = "again.npz"\n', again=speech(3))
    (line,) = [line for line in result.limits if line.startswith("Not tried: asnorm ")]
    assert "informed with originals" in line
    sentences.check(line)


def test_voices_drawn_for_each_utterance_are_their_own_run(tmp_path):
    result = run(tmp_path, more='per = "utterance"\n')
    assert {"ignorant", "informed"} <= set(result.attackers)
    lacking = [n for n in result.cards[0].notices if n.code == "attacker-not-run"]
    assert all("semi-informed" in notice.sentence for notice in lacking)


@pytest.mark.parametrize("run_of", ["again", "related"])
@pytest.mark.parametrize("copied", ["original", "protected"])
def test_a_copy_is_no_run_of_the_attackers_own(tmp_path, run_of, copied, sentences):
    sets = {"original": speech(), "protected": speech(2)}
    said = both({"x": sets[copied], "more": f'{run_of} = "x.npz"\n'}, tmp_path)
    assert "72 of 72 rows" in said
    sentences.check(said)


def mixed(embeddings: Embeddings, *, people: bool) -> Embeddings:
    """Vectors of other people, of one person each or of anybody."""
    rows = np.arange(len(embeddings))
    order = np.roll(rows, 2 * EACH) if people else np.random.default_rng(3).permutation(rows)
    return replace(embeddings, vectors=embeddings.vectors[order])


@pytest.mark.parametrize("safeguard", [lambda speech: speech, turned], ids=["weak", "turned"])
@pytest.mark.parametrize("people", [True, False])
def test_an_own_run_of_mixed_vectors_is_told(tmp_path, people, safeguard, sentences, noticed):
    how = {"protected": safeguard(speech(2)), "more": 'again = "again.npz"\n'}
    result = run(tmp_path, again=mixed(safeguard(speech(3)), people=people), **how)
    said = limiting(result, noticed, "unlike-run")
    sentences.check(said)
    honest = run(tmp_path, again=safeguard(speech(3)), **how)
    assert "unlike-run" not in {notice.code for notice in noticed}
    assert honest.cards[0].extent == "most"


def test_an_own_run_of_training_people_is_told(tmp_path, sentences, noticed):
    def others(embeddings: Embeddings) -> Embeddings:
        moved = renamed(embeddings, lambda name: f"t{name[1:]}")
        names = Ids.from_strings([f"t{name}" for name in embeddings.utterances.to_series()])
        return replace(moved, utterances=names)

    more = 'training = "t2.npz"\n[training]\nembeddings = "t1.npz"\n'
    own = mixed(others(speech(5)), people=False)
    result = run(tmp_path, more=more, t1=others(speech(4)), t2=own)
    said = limiting(result, noticed, "unlike-run")
    assert "training people" in said
    sentences.check(said)


def test_the_runs_of_the_case_study_look_like_runs():
    names = np.load(CASE / "campplus.npz")
    people = np.repeat([f"s{n:02d}" for n in range(60)], 20)
    sets = {name: Embeddings(names[name].astype(float), people) for name in names}
    rng = np.random.default_rng(0)
    for one, own in (("b2", "b2"), ("b2r", "b2r-again"), ("b2w", "b2w-again"),
                     ("pooling", "pooling-again")):  # fmt: skip
        for count in range(12, 42):
            rows = np.isin(people, rng.choice(people, count)) & (np.arange(1200) % 20 < 6)
            few = {name: sets[name].select(rows) for name in ("original", one, own)}
            known = {"original": few["original"], "own": few[own]}
            assert not list(run_notices({"V": Speech(few[one], known)}))
        for first, second in ((one, own), (own, one)):
            known = {"original": sets["original"], "own": sets[second]}
            assert not list(run_notices({"V": Speech(sets[first], known)}))
            known["own"] = replace(sets[second], vectors=np.roll(sets[second].vectors, 60, axis=0))
            assert list(run_notices({"V": Speech(sets[first], known)})), (first, second)


def test_a_few_stored_voices_read_as_many_times_chance_and_are_told(tmp_path, sentences):
    """Four voices for all people: guessing among those who have the same is right, not hidden."""
    protected = speech(2)
    stored = np.random.default_rng(5).normal(size=(4, DIM))[protected.speakers.codes % 4]
    protected = replace(protected, vectors=stored)
    result = run(tmp_path, protected=protected, more="keyless = true\n")
    ties = {
        notice.line for part in result.sections for notice in part.notices if notice.code == "ties"
    }
    (shown,) = [line for line in result.limits if line.startswith(tuple(ties))]
    sentences.check(shown)
    (card,) = result.cards
    assert card.worst.estimate.value >= 4 / SPEAKERS - 1e-9
    assert card.worst.estimate.chance == pytest.approx(1 / SPEAKERS)


@pytest.mark.parametrize("which", ["original", "protected"])
def test_vectors_that_several_utterances_have_are_told(tmp_path, which, sentences, noticed):
    every = {"original": speech(), "protected": speech(2)}
    one = every[which]
    for count, told in ((3, False), (4, True)):
        rows = np.arange(len(one))
        rows[7 : 7 + count] = 6
        every[which] = replace(one, vectors=one.vectors[rows])
        result = run(tmp_path, **every)
        assert ("repeated-vectors" in {notice.code for notice in noticed}) == told
    subject = {"original": "original", "protected": "V"}[which]
    line = limiting(result, noticed, "repeated-vectors", subject=subject)
    assert "4 of 72 vectors" in line
    assert "(first: s01-0 and s01-1)" in line
    hidden = run(tmp_path, head="redact = true\n" + HEAD, **every)
    unnamed = limiting(hidden, noticed, "repeated-vectors", subject=subject)
    assert "s01" not in unnamed
    sentences.check(line, unnamed)


@pytest.mark.parametrize("which", ["speakers", "utterances"])
def test_names_that_look_like_those_of_another_set_are_refused(tmp_path, which, sentences):
    one = speech(2)
    names = [name.replace("s00", "s0\u200b0") for name in getattr(one, which).to_series()]
    said = both({"protected": replace(one, **{which: Ids.from_strings(names)})}, tmp_path)
    assert said.startswith(f"original and safeguards.V: expected {which}")
    assert "'s0\\u200b0" in said
    sentences.check(said)


def test_attacked_people_are_no_training_people_under_other_names(tmp_path, sentences):
    other = renamed(speech(2), lambda name: f"t{name[1:]}")
    other = replace(other, utterances=Ids.from_strings([f"t{i}" for i in range(72)]))
    said = both({"x": other, "more": '[training]\nembeddings = "x.npz"\n'}, tmp_path)
    assert re.match(r"training: .* safeguards\.V", said)
    sentences.check(said)


def test_protected_recordings_without_an_original_are_left_out_and_counted(
    tmp_path, sentences, noticed
):
    own = speech(2)
    noise = np.random.default_rng(3).normal(size=(SPEAKERS * 8, DIM))
    names = [f"s{s:02d}" for s in range(SPEAKERS) for _ in range(8)]
    padded = Embeddings(
        np.concatenate([own.vectors, noise]),
        [*own.speakers.to_series(), *names],
        [*own.utterances.to_series(), *(f"{n}-x{i}" for i, n in enumerate(names))],
    )
    result = run(tmp_path, protected=padded)
    assert result.cards[0].extent == "most"
    line = limiting(result, noticed, "absent")
    assert "96 of 168 protected recordings" in line
    sentences.check(line)


def test_one_talkative_person_costs_nobody_their_numbers(tmp_path):
    head = HEAD.replace("lengths = [1], ", "").replace(
        '["linkability"]', '["linkability", "singling_out"]'
    )
    rng, more = np.random.default_rng(8), {}
    for name, one in (("original", speech()), ("protected", speech(2))):
        extra = one.vectors[:6] + 0.1 * rng.normal(size=(6, DIM))
        more[name] = Embeddings(
            np.concatenate([one.vectors, extra]),
            [*one.speakers.to_series(), *["s00"] * 6],
            [*one.utterances.to_series(), *(f"s00-{i}" for i in range(6, 12))],
        )
    result = run(tmp_path, head=head, **more)
    assert not result.failures
    labels = [number.label for number in result.cards[0].numbers]
    assert {"Linkability", "Singling Out"} <= set(labels)


def test_settings_that_attacks_depend_on_are_told(tmp_path, sentences, noticed):
    head = HEAD.replace("legal = {", "legal = {counts = [2], ")
    (tmp_path / "enrol.txt").write_text("\n".join([f"s{s:02d}-0" for s in range(12)] + ["nobody"]))
    result = run(tmp_path, head=head + 'split = {utterances = "enrol.txt"}\n')
    (settings,) = [line for line in result.limits if "legal.counts = (2,)" in line]
    assert "split.utterances" in settings
    (absent,) = [notice for notice in noticed if notice.subject == "split"]
    assert absent.code == "absent"
    (split,) = [line for line in result.limits if line.startswith("Split: ")]
    assert "1 of 13 " in split
    sentences.check(settings, split)
    assert any(source.format == "list" for source in result.document.inputs)


def test_one_session_a_person_is_no_session(tmp_path):
    named = replace(speech(), sessions=speech().speakers)
    result = run(tmp_path, original=named)
    assert note("no_sessions") in result.limits


def test_reversed_scores_are_told_where_safeguards_are_compared(sentences):
    rng = np.random.default_rng(0)
    labels = ["target"] * 60 + ["nontarget"] * 60
    score = np.where(np.array(labels) == "target", 2.0, 0.0) + rng.normal(size=120)
    frame = pl.DataFrame(
        {"enrol": [f"e{i}" for i in range(120)], "test": [f"t{i}" for i in range(120)],
         "label": labels, "a": score, "b": -score}
    )  # fmt: skip
    with pytest.warns(um.UnmaskWarning) as warned:
        result = um.compare(frame, "a", "b", replicates=20, privacy=True)
    (negated,) = [notice for notice in result.notices if notice.code == "negated"]
    assert negated.line in [str(one.message) for one in warned]
    sentences.check(negated.line)


def case_voices() -> Embeddings:
    """CAM++ vectors of 60 AudioMNIST speakers, six utterances each."""
    vectors = np.load(CASE / "campplus.npz")["original"].astype(float)
    few = np.arange(len(vectors)) % 20 < EACH
    people = np.repeat(np.arange(60), EACH)
    names = [f"s{n:02d}-{i}" for n in range(60) for i in range(EACH)]
    return Embeddings(vectors[few], [f"s{n:02d}" for n in people], names)


def mostly(embeddings: Embeddings) -> Embeddings:
    """Nine tenths of each voice."""
    noise = np.random.default_rng(3).normal(size=embeddings.vectors.shape)
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    return replace(embeddings, vectors=0.9 * embeddings.normalised().vectors + 0.44 * noise)


@pytest.mark.parametrize("redact", [False, True])
def test_one_person_under_two_names_is_told(tmp_path, redact, sentences, noticed):
    whole = case_voices()
    place = np.arange(len(whole)) % EACH
    split = Ids.from_strings(
        [f"{name}{'ab'[n % 2]}" for name, n in zip(whole.speakers.to_series(), place, strict=True)]
    )
    whole = replace(whole, speakers=split)
    head = HEAD if not redact else "redact = true\n" + HEAD
    result = run(tmp_path, original=whole, protected=mostly(whole), head=head)
    said = limiting(result, noticed, "double-names", subject="original")
    assert ("Speaker " in said) == redact
    assert any(f"s{n:02d}a and s{n:02d}b" in said for n in range(60)) != redact
    if not redact:
        sentences.check(said)


@pytest.mark.parametrize("redact", [False, True])
def test_voices_stored_under_the_next_person_are_told(tmp_path, redact, sentences, noticed):
    whole = case_voices()
    protected = mostly(whole)
    protected = replace(protected, vectors=np.roll(protected.vectors, EACH, axis=0))
    head = HEAD if not redact else "redact = true\n" + HEAD
    result = run(tmp_path, original=whole, protected=protected, head=head)
    said = limiting(result, noticed, "misplaced-voices")
    assert ("Speaker " in said) == redact
    right = [f"s{n:02d} resembles s{(n - 1) % 60:02d}" for n in range(60)]
    assert any(one in said for one in right) != redact
    if not redact:
        sentences.check(said)


def test_names_that_are_right_are_not_doubted(tmp_path, noticed):
    whole = case_voices()
    result = run(tmp_path, original=whole, protected=mostly(whole))
    doubts = {"double-names", "misplaced-voices"}
    assert not doubts & {notice.code for notice in noticed}, result.limits


def test_a_side_column_that_is_spelled_otherwise_is_refused(tmp_path, sentences):
    def sexes(embeddings: Embeddings, *spelled: str) -> Embeddings:
        codes = embeddings.speakers.codes
        return replace(
            embeddings, columns={"sex": Ids.from_strings([spelled[code % 2] for code in codes])}
        )

    head = HEAD.replace("legal = {", 'legal = {side = ["sex"], ')
    how = {"original": sexes(speech(), "f", "m"), "head": head}
    said = both({**how, "protected": sexes(speech(2), "female", "male")}, tmp_path)
    assert re.match(r"sex: .* female .* 11 ", said)
    sentences.check(said)
    result = run(tmp_path, protected=sexes(speech(2), "f", "m"), **how)
    assert result.cards[0].extent == "most"


def test_a_vector_whose_length_names_the_person_is_linked(tmp_path):
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(30), 10)
    size = rng.normal(size=30)[people]
    sets = []
    for _ in "op":
        rows = rng.normal(size=(30, DIM))[people] + 0.5 * rng.normal(size=(300, DIM))
        length = np.exp(size + 0.3 * rng.normal(size=300))
        rows *= (length / np.linalg.norm(rows, axis=1))[:, None]
        names = [f"s{n:02d}-{i}" for n in range(30) for i in range(10)]
        sets.append(Embeddings(rows, [f"s{n:02d}" for n in people], names))
    result = run(tmp_path, original=sets[0], protected=sets[1])
    assert "(length" in result.cards[0].worst.attacker
    assert result.cards[0].extent in ("some", "most")
