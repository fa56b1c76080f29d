"""The interval of the strongest attack: of few people, and where everybody is told apart."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.populations import score_matrices

import unmask as um
from unmask.estimate import Interval
from unmask.privacy import halves as halving
from unmask.privacy.halves import DEID, FEW_PEOPLE, halves_of, stretched
from unmask.privacy.similarity.halves import STRONGEST
from unmask.trials import Ids, Scores

COMMON = 3 * np.random.default_rng(100).normal(size=64)


def shifted(people: int, *, shift: float = 1.0):
    """Original voices that everybody tells apart, and the same with one shift for all."""
    rng = np.random.default_rng(0)
    who = np.repeat([f"s{i:02d}" for i in range(people)], 10)
    names = [f"u{i:03d}" for i in range(10 * people)]
    voices = np.repeat(rng.normal(size=(people, 64)), 10, axis=0)
    original = voices + 0.2 * rng.normal(size=voices.shape)
    protected = original + 0.2 * rng.normal(size=voices.shape) + shift * COMMON
    return um.Embeddings(original, who, names), um.Embeddings(protected, who, names)


def half_protected(people: int, kept: float = 0.5, *, seed: int = 1, dimensions: int = 16):
    """Voices of which protection keeps a share."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), 6)
    named = [f"s{i:02d}" for i in who], [f"u{i:03d}" for i in range(len(who))]
    voice, new = rng.normal(size=(2, people, dimensions))
    left = kept * voice + np.sqrt(1 - kept**2) * new
    both = (side[who] + 0.8 * rng.normal(size=(len(who), dimensions)) for side in (voice, left))
    return tuple(um.Embeddings(vectors, *named) for vectors in both)


@pytest.mark.parametrize("people", [10, 20])
def test_an_attack_that_separates_everybody_has_the_interval_of_no_success(people):
    """Laplace's rule leaves 0.32 % of ten people: the interval has a width all the same."""
    original, protected = shifted(people)
    (row,) = um.compare_safeguards(original, {"shift": protected}, replicates=100)
    estimate = row.result.strongest.deid
    assert 0 < estimate.value < 0.005
    share = 1 - (0.05 / 2) ** (1 / people)
    reach = (1 - (1 - share) ** 2) * (1 - estimate.value)
    assert estimate.interval.low == pytest.approx(estimate.value - reach)
    assert estimate.interval.high >= estimate.value + reach - 1e-12
    assert estimate.interval.high - estimate.interval.low > 0.5
    for other in (*row.result.estimates, *row.result.details):
        # The lengths of these vectors say next to nothing: that interval is rightly narrow.
        if other.interval is not None and not other.metric.startswith("deid_length"):
            assert other.interval.high - other.interval.low > 0.05, other.metric


def test_a_person_whom_an_attack_separates_has_no_interval_of_no_width():
    people = um.pseudonymisation(*shifted(10), replicates=100).per_speaker
    assert (people.high - people.low > 0.5).all()


def test_halves_are_of_people_and_follow_their_names():
    names = [f"s{k}" for k in range(9)]
    halves = halves_of(names, 3)
    assert len(halves) == 8
    for first, other in zip(halves[::2], halves[1::2], strict=True):
        assert first | other == set(names)
        assert not first & other
        assert sorted((len(first), len(other))) == [4, 5]
    assert halves_of(names[::-1], 3) == halves
    assert halves_of(names, 4) != halves
    assert halves_of(names[:5], 3) == []


@pytest.mark.parametrize(
    ("metric", "value", "half", "low", "high"),
    [
        ("deid_strongest", 0.6, 0.5, 0.4, 0.8),
        ("deid_strongest", 0.6, 0.7, 0.4, 0.7),
        ("deid_strongest", 0.9, 0.1, 0.4, 1.0),
        ("d_ece_strongest", 0.5, 0.6, 0.3, 0.7),
        ("d_ece_strongest", 0.5, 0.4, 0.4, 0.7),
        ("d_ece_strongest", 0.5, 0.95, 0.0, 0.7),
        ("eer_strongest", 0.3, 0.25, 0.2, 0.45),
        ("eer_strongest", 0.3, 0.1, 0.2, 0.5),
    ],
)
def test_the_end_of_less_risk_moves_by_what_halves_show_more(metric, value, half, low, high):
    given = {"deid": (0.4, 0.7), "d_ece": (0.4, 0.7), "eer": (0.2, 0.4)}
    ends = given[metric.removesuffix("_strongest")]
    interval = Interval(*ends, 0.95, "drawn", 100, 0)
    numbers = [half + step for step in (-0.01, 0.01)]
    made = stretched(interval, STRONGEST[metric], value, 20, numbers)
    assert (made.low, made.high) == pytest.approx((low, high))
    assert made.method == "drawn,2 halves"
    assert stretched(interval, STRONGEST[metric], value, 20, ()) == interval


def test_fewer_than_fifteen_people_move_twice_as_far():
    interval = Interval(0.4, 0.7, 0.95, "drawn", 100, 0)
    made = stretched(interval, DEID, 0.55, FEW_PEOPLE - 1, [0.5])
    assert made.high == pytest.approx(0.8)
    assert made.method == "drawn,1 halves twice"


def test_halves_are_fitted_and_chosen_anew():
    """The strongest numbers of a half are those of its people assessed alone."""
    original, protected = half_protected(20)
    whole = um.pseudonymisation(original, protected, replicates=50)
    numbers = []
    for people in halves_of(whole.speakers, 0):
        inside = np.array([name in people for name in original.speakers.to_series()])
        alone = original.select(inside), protected.select(inside)
        result = um.pseudonymisation(*alone, replicates=0)
        numbers.append([result[metric].value for metric in STRONGEST])
    more = np.mean(numbers, axis=0) - [whole[metric].value for metric in STRONGEST]
    bare = um.pseudonymisation(original, protected, replicates=50)
    for metric, gained in zip(STRONGEST, more * [-1, 1, -1], strict=True):
        assert gained > 0
        made = whole[metric].interval
        assert made.method == "speaker,recalibrated,corrected,8 halves"
        assert "8 halves" in whole[metric].signature
        assert made == bare[metric].interval


def test_the_end_of_more_risk_stays(monkeypatch):
    data = half_protected(20)
    after = um.pseudonymisation(*data, replicates=50)
    monkeypatch.setattr(halving, "LEAST_PEOPLE", 100)
    before = um.pseudonymisation(*data, replicates=50)
    for metric, is_high in zip(STRONGEST, (True, False, True), strict=True):
        one, other = before[metric].interval, after[metric].interval
        assert one.method == "speaker,recalibrated,corrected"
        if is_high:
            assert one.low == other.low
            assert one.high < other.high
        else:
            assert one.high == other.high
            assert one.low > other.low


def test_matrices_and_lists_have_halves_too():
    speakers = np.repeat([f"s{k:02}" for k in range(12)], 4)
    matrices = score_matrices(3, speakers, 4.0, 1.0, 3.0)
    of_matrices = um.pseudonymisation(*matrices, speakers, replicates=50)
    assert "8 halves twice" in of_matrices["deid_strongest"].signature
    rows, columns = (~np.eye(len(speakers), dtype=bool)).nonzero()
    names, owners = Ids.from_strings([f"u{k}" for k in range(48)]), Ids.from_strings(speakers)
    whose = names.take(rows), names.take(columns), None
    both = {"enrol_speaker": owners.take(rows), "test_speaker": owners.take(columns)}
    lists = [Scores(*whose, systems={"a": m[rows, columns]}, **both) for m in matrices]
    of_lists = um.pseudonymisation(*lists, replicates=50)
    for metric in STRONGEST:
        one, other = (made[metric].interval for made in (of_matrices, of_lists))
        assert one.method == other.method
        assert (one.low, one.high) == pytest.approx((other.low, other.high))


def test_few_people_are_told_what_the_interval_may_lack():
    sentence = "may hold the truth in fewer than 95 of 100 cases"
    for people in (5, 14):
        told = um.pseudonymisation(*half_protected(people), replicates=50)
        assert sentence in told.notices[-1].sentence
        assert ("halves" in told["deid_strongest"].signature) == (people > 5)
    enough = um.pseudonymisation(*half_protected(15), replicates=50)
    assert sentence not in enough.notices[-1].sentence


def test_the_level_of_l_w_stands_beside_what_the_same_bins_show(sentences):
    """Bins lower l_w: what is shown may lie above a level that what was found does not reach."""
    original, protected = half_protected(20, 0.0, seed=3)
    result = um.pseudonymisation(original, protected, replicates=50)
    estimate = result["l_w_strongest"]
    luck = estimate.luck
    assert luck.p > 0.05
    assert luck.found <= estimate.value
    assert f" {luck.found:.3f}" in estimate.luck_shown
    sentences.check(estimate.luck_shown)
    document = um.document(result)
    rows = document.to_dict()["results"]
    (row,) = [e for e in rows if e["metric"] == "l_w_strongest"]
    assert row["luck"]["found"] == luck.found
    assert result["deid_strongest"].luck.found is None
    assert "luck_found" in um.render(document, "csv").splitlines()[0]
