"""G_VD by a recogniser retrained on protected speech: whose fault a loss of distinctiveness is."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.brute import oracle_llrs
from tests.helpers.notices import lines_of
from tests.helpers.populations import speakers_with_noise

import unmask as um
from unmask import InputError
from unmask.privacy.recordings import drawn_names
from unmask.privacy.similarity import Retrained, retrained

PEOPLE, EACH, SIZE = 24, 8, 24
RNG = np.random.default_rng(0)
WHO = np.repeat([f"s{n:02d}" for n in range(PEOPLE)], EACH)
NAMES = [f"u{n:03d}" for n in range(PEOPLE * EACH)]


def voices(spread=1.0, *, people=PEOPLE):
    """A voice of its own for each person; ``spread`` tells how far they lie apart."""
    means = spread * RNG.normal(size=(people, SIZE))
    return speakers_with_noise(people, EACH, SIZE, noise=0.5, means=means, draws=RNG)[0]


def speech(vectors):
    return um.Embeddings(vectors, WHO[: len(vectors)], NAMES[: len(vectors)])


def masked():
    """New voices under noise in six directions, turned: a cosine hears the noise alone."""
    noise = np.zeros((len(WHO), SIZE))
    noise[:, :6] = 8 * RNG.normal(size=(len(WHO), 6))
    return (voices() + noise) @ np.linalg.qr(RNG.normal(size=(SIZE, SIZE)))[0]


ORIGINAL = speech(voices())
MASKED, COLLAPSED = speech(masked()), speech(voices(0.15))


def brute(data, teacher):
    """D_diag with the cosine after WCCN by people of the other half, all written out."""
    unit = data.vectors / np.linalg.norm(data.vectors, axis=1, keepdims=True)
    taught = teacher.vectors / np.linalg.norm(teacher.vectors, axis=1, keepdims=True)
    drawn = drawn_names(sorted(set(WHO)), len(set(WHO)) // 2)
    half = np.array([int(name in drawn) for name in WHO])
    rows = np.empty_like(unit)
    for one in (0, 1):
        others = taught[half != one].reshape(-1, EACH, SIZE)
        deviation = (others - others.mean(axis=1, keepdims=True)).reshape(-1, SIZE)
        within = deviation.T @ deviation / (len(deviation) - len(others))
        within = 0.9 * within + 0.1 * np.trace(within) / SIZE * np.eye(SIZE)
        value, basis = np.linalg.eigh(within)
        moved = (unit[half == one] - others.reshape(-1, SIZE).mean(axis=0)) @ (basis / value**0.5)
        rows[half == one] = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    scores, same = rows @ rows.T, WHO[:, None] == WHO
    counted = (half[:, None] == half) & ~np.eye(len(WHO), dtype=bool)
    llrs = np.full(scores.shape, np.nan)
    own, other = counted & same, counted & ~same
    llrs[own], llrs[other] = oracle_llrs(scores[own], scores[other], laplace=True)
    with np.errstate(all="ignore"):
        cells = -np.logaddexp(0, -llrs).reshape(PEOPLE, EACH, PEOPLE, EACH)
        matrix = np.exp(np.nanmean(cells.swapaxes(1, 2), axis=(2, 3)))
    diagonal = np.eye(PEOPLE, dtype=bool)
    return abs(matrix[diagonal].mean() - np.nanmean(matrix[~diagonal]))


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_it_is_the_definition_written_out():
    own, unprotected = speech(masked()), brute(ORIGINAL, ORIGINAL)
    for teacher in (MASKED, own):
        made = retrained(ORIGINAL, MASKED, ORIGINAL, teacher, replicates=0)
        wanted = 10 * np.log10(brute(MASKED, teacher) / unprotected)
        assert made.g_vd == pytest.approx(wanted, abs=1e-6)


def test_what_only_a_recogniser_lost_comes_back_and_what_a_safeguard_collapsed_does_not(sentences):
    table = um.compare_safeguards(
        ORIGINAL, {"masked": MASKED, "collapsed": COLLAPSED}, replicates=100
    )
    given = {row.system: row.result.g_vd for row in table}
    anew = {row.system: row.retrained for row in table}
    assert max(given.values()) < -8
    assert anew["masked"].g_vd > -1.5
    assert anew["collapsed"].g_vd < -8
    notes = um.document(table).notes
    told = [note for note in notes if note.startswith(("masked: G_VD", "collapsed: G_VD"))]
    assert len(told) == 2
    sentences.check(*told)
    assert any("12 people teach" in one for one in notes)
    (row,) = [one for one in um.document(table).rows if "collapsed" in one.conditions.values()][-1:]
    assert [one.metric for one in row.estimates] == ["g_vd_retrained"]
    assert row.estimates[0].interval.low < anew["collapsed"].g_vd < row.estimates[0].interval.high


def test_untouched_voices_read_nothing_lost_however_much_training_helps():
    hard = speech(masked())
    made = retrained(hard, hard, replicates=0)
    assert made.g_vd == 0
    plain = um.pseudonymisation(hard, hard, replicates=0)
    assert made.sets["oo"].d_diag > 5 * plain.d_diag["oo"]


def test_people_apart_teach_about_everybody():
    apart = [um.Embeddings(one.vectors, [f"t{n}" for n in WHO]) for one in (ORIGINAL, MASKED)]
    made = retrained(ORIGINAL, MASKED, *apart, replicates=0)
    assert made.people == PEOPLE
    assert made.sets["pp"].sums.count.all()
    halves = retrained(ORIGINAL, MASKED, replicates=0)
    assert halves.people == PEOPLE // 2
    assert (halves.sets["pp"].sums.count == 0).sum() == PEOPLE**2 // 2


def test_too_few_people_and_equal_recordings_say_so(sentences):
    few = slice(0, 4 * EACH)
    small = [speech(one.vectors[few]) for one in (ORIGINAL, MASKED)]
    with pytest.raises(InputError) as error:
        retrained(*small, replicates=0)
    sentences.check(str(error.value))
    table = um.compare_safeguards(small[0], {"B2": small[1]}, replicates=0)
    assert next(iter(table)).retrained is None
    sentences.check(*lines_of(table, "not-retrained"))
    equal = speech(np.repeat(np.eye(SIZE), EACH, axis=0))
    with pytest.raises(InputError) as error:
        retrained(ORIGINAL, equal, replicates=0)
    sentences.check(str(error.value))


@pytest.mark.parametrize(
    ("given", "own", "said"),
    [
        ((-3, -4, -2), (-0.5, -1, 0.1), "was the recogniser's fault"),
        ((-3, -4, -2), (-3, -4, -2), "the loss is the safeguard's"),
        ((-3, -4, -2), (-1, -3, 1), "remains open"),
        ((-1, -2, 1), (-1, -2, 1), "no loss of distinctiveness is shown"),
        ((-1, None, None), (-1, None, None), "without intervals"),
    ],
)
def test_the_sentence_goes_by_intervals(given, own, said):
    def number(value, low, high):
        ends = None if low is None else um.estimate.Interval(low, high, 0.95, "", 0, 0)
        return um.estimate.Estimate("g_vd", value, "dB", ends)

    class Made(Retrained):
        estimates = (number(*own),)

    made = Made(sets={}, intervals={}, people=9)
    assert said in made.said(number(*given))
    assert "-" not in made.said(number(*given))
