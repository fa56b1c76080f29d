"""Lists of trials that are made: against all pairs written out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from unmask.errors import InputError
from unmask.trials import Embeddings, make_trials, making, read_key

OWNERS = {f"{s}{i}": s for s, n in {"a": 3, "b": 2, "c": 5, "d": 1}.items() for i in range(n)}
SEX = {"a": "f", "b": "m", "c": "f", "d": "m"}
TABLE = pl.DataFrame(
    {
        "utterance": list(OWNERS),
        "speaker": list(OWNERS.values()),
        "sex": [SEX[one] for one in OWNERS.values()],
        "session": [str(int(one[1:]) % 2) for one in OWNERS],
    }
)


def listed(made) -> dict[frozenset[str], bool]:
    trials = made.trials
    rows = zip(trials.enrol, trials.test, trials.label.tolist(), strict=True)
    pairs = [(frozenset(pair), bool(label)) for *pair, label in rows]
    assert len(dict(pairs)) == len(pairs) == sum(made.counts.values())
    return dict(pairs)


def wanted(same=False, crossed=False) -> dict[frozenset[str], bool]:
    rows = {row["utterance"]: row for row in TABLE.to_dicts()}
    pairs = {}
    for one, two in combinations(rows, 2):
        own = rows[one]["speaker"] == rows[two]["speaker"]
        if same and rows[one]["sex"] != rows[two]["sex"]:
            continue
        if crossed and own and rows[one]["session"] == rows[two]["session"]:
            continue
        pairs[frozenset((one, two))] = own
    return pairs


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("crossed", [False, True])
def test_all_pairs_are_there_once(same, crossed, monkeypatch):
    monkeypatch.setattr(making, "BLOCK", 7)
    options = {"same": "sex" if same else None, "cross_session": "session" if crossed else None}
    made = make_trials(TABLE, **options)
    assert listed(made) == wanted(same, crossed)
    assert listed(make_trials(TABLE.sample(fraction=1, shuffle=True, seed=3), **options)) == (
        wanted(same, crossed)
    )
    assert made.trials.enrol_speaker is not None
    sides = [set(ids) for ids in (made.trials.enrol_speaker, made.trials.test_speaker)]
    assert sides[0] >= {"b", "c"}
    assert sides[1] >= {"a", "b", "c"}


def test_a_balanced_list_draws_each_pair_with_the_same_chance():
    drawn = [listed(make_trials(OWNERS, balanced=True, seed=seed)) for seed in range(400)]
    every = wanted()
    target = sum(every.values())
    assert all(sum(one.values()) * 2 == len(one) == 2 * target for one in drawn)
    assert all(one.items() <= every.items() for one in drawn)
    assert drawn[0] == listed(make_trials(OWNERS, balanced=True, seed=0)) != drawn[1]
    others = [pair for pair, own in every.items() if not own]
    counts = np.array([sum(pair in one for one in drawn) for pair in others])
    chance = target / len(others)
    assert np.abs(counts - 400 * chance).max() < 4.5 * np.sqrt(400 * chance * (1 - chance))


def test_a_number_of_nontargets_is_drawn_from_all_of_them(sentences):
    every = wanted()
    others = sum(not own for own in every.values())
    made = make_trials(OWNERS, nontargets=3, seed=2)
    assert made.counts == {"target": sum(every.values()), "nontarget": 3}
    assert listed(made).items() <= every.items()
    assert listed(made) != listed(make_trials(OWNERS, nontargets=3, seed=5))
    assert listed(make_trials(OWNERS, nontargets=others)) == every
    with pytest.raises(InputError) as error:
        make_trials(OWNERS, nontargets=others + 1)
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        make_trials(OWNERS, nontargets=3, balanced=True)
    sentences.check(str(error.value))


@pytest.mark.parametrize("crossed", [False, True])
def test_models_enrol_utterances_that_are_not_tested(crossed):
    made = make_trials(TABLE, enrol=2, cross_session="session" if crossed else None, seed=1)
    assert made.models is not None
    assert list(made.models) == ["a", "c"]
    assert all(len(utterances) == 2 for utterances in made.models.values())
    enrolled = {one for utterances in made.models.values() for one in utterances}
    tested = set(made.trials.test)
    assert tested == set(OWNERS) - enrolled
    session = dict(zip(TABLE["utterance"], TABLE["session"], strict=True))
    expected = {}
    for model, utterances in made.models.items():
        of = {session[one] for one in utterances}
        assert len(of) == 1 or not crossed
        for one in tested:
            if not (crossed and OWNERS[one] == model and session[one] in of):
                expected[frozenset((model, one))] = OWNERS[one] == model
    assert listed(made) == expected


def test_at_most_so_many_utterances_of_a_speaker():
    made = make_trials(OWNERS, per_speaker=2)
    assert made.counts == {"target": 3, "nontarget": 18}


def test_a_speaker_with_two_groups_has_two_models():
    table = {"utt": list("pqrstu"), "spk": ["a"] * 4 + ["b"] * 2, "channel": list("112212")}
    made = make_trials(pl.DataFrame(table), enrol=1, same="channel")
    assert list(made.models or ()) == ["a-1", "a-2"]


def test_files_embeddings_and_tables_make_the_same_list(tmp_path, unmask):
    (tmp_path / "utt2spk").write_text("".join(f"{u} {s}\n" for u, s in OWNERS.items()))
    (tmp_path / "spk2gender").write_text("".join(f"{s} {x}\n" for s, x in SEX.items()))
    TABLE.write_csv(tmp_path / "t.csv")
    vectors = Embeddings(
        np.eye(len(OWNERS)), OWNERS.values(), OWNERS, columns={"sex": TABLE["sex"]}
    )
    for voices in (tmp_path, tmp_path / "utt2spk", tmp_path / "t.csv", vectors):
        assert listed(make_trials(voices, same="sex")) == wanted(same=True)
    output = tmp_path / "made"
    code, out, err = unmask("trials", str(tmp_path), "-o", str(output), "--same", "sex")
    pairs = wanted(same=True)
    count = sum(pairs.values())
    assert (code, out) == (0, "")
    assert f"{count} target and {len(pairs) - count} nontarget trials" in err
    assert read_key(output).counts == {"target": count, "nontarget": len(pairs) - count, "other": 0}
    first = output.read_bytes()
    unmask("trials", str(tmp_path), "-o", str(output), "--same", "sex")
    assert output.read_bytes() == first
    unmask("trials", str(tmp_path), "-o", str(output), "--enrol", "2", "--to", "voxceleb")
    assert (tmp_path / "made.spk2utt").read_text().split()[0] == "a"
    assert read_key(output).source.format == "voxceleb"


@pytest.mark.parametrize(
    ("voices", "options"),
    [
        ({"a1": "a", "b1": "b"}, {}),
        ({"a1": "a", "a2": "a"}, {}),
        (OWNERS, {"enrol": 9}),
        (OWNERS, {"same": "sex"}),
        (OWNERS, {"per_speaker": 0}),
        (pl.DataFrame({"utt": ["a", "a"], "spk": ["b", "c"]}), {}),
        (pl.DataFrame({"x": ["a"]}), {}),
    ],
)
def test_what_gives_no_list_is_refused(voices, options, sentences):
    with pytest.raises(InputError) as error:
        make_trials(voices, **options)
    sentences.check(str(error.value))


def test_nothing_is_written_where_no_target_is_possible(tmp_path, unmask):
    (tmp_path / "utt2spk").write_text("a1 a\nb1 b\n")
    code, _, err = unmask("trials", str(tmp_path / "utt2spk"), "-o", str(tmp_path / "made"))
    assert code == 1
    assert "found 0 target" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["utt2spk"]
