from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit
from tests.helpers.populations import named_speakers, score_matrices

from unmask import InputError, Plda, Whitening
from unmask.engine import LARGEST_D_ECE, Roc
from unmask.privacy import Attacker, compare_safeguards, pseudonymisation
from unmask.privacy.legal import pooled
from unmask.privacy.recordings import half_by_content
from unmask.privacy.similarity import api, resampling as similarity_resampling
from unmask.privacy.similarity.halves import STRONGEST
from unmask.privacy.similarity.intervals import Statistic, decibels, lost
from unmask.privacy.similarity.result import assessed
from unmask.run import progress, run_on
from unmask.scoring import Cosine, Sides, score_matrix
from unmask.trials import Embeddings, Ids, Scores

REFERENCE = Path(__file__).parents[1] / "reference"


def laplace_llr(target, nontarget):
    """Oracle LLRs of every score from the definition: labels sorted, ties pooled, isotonic fit."""
    scores = np.concatenate([target, nontarget])
    label = np.concatenate([np.ones(target.size), np.zeros(nontarget.size)])
    values, place = np.unique(scores, return_inverse=True)
    weight = np.bincount(place).astype(float)
    share = np.bincount(place, label) / weight
    share = np.concatenate([[1, 0], share, [1, 0]])
    weight = np.concatenate([[1, 1], weight, [1, 1]])
    fitted = isotonic_regression(share, weights=weight).x[2:-2]
    llr = logit(fitted) - np.log(target.size / nontarget.size)
    return dict(zip(values.tolist(), llr.tolist(), strict=True))


def brute_force(scores, speakers, mean, pairs):
    """Sim(i, j) by loops over all pairs of segments."""
    names = list(dict.fromkeys(speakers))
    n = len(speakers)
    cells = {(a, b): [] for a in names for b in names}
    for k in range(n):
        for l in range(n):  # noqa: E741
            if k == l or (pairs == "upper" and k > l):
                continue
            cells[speakers[k], speakers[l]].append(scores[k, l])
    if pairs == "upper":
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                cells[a, b] = cells[b, a] = cells[a, b] + cells[b, a]
    kept = np.ones((n, n), dtype=bool) if pairs == "all" else np.triu(np.ones((n, n), dtype=bool))
    np.fill_diagonal(kept, False)
    same = np.equal.outer(speakers, speakers)
    llr = laplace_llr(scores[kept & same], scores[kept & ~same])
    matrix = np.empty((len(names), len(names)))
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            values = np.array([llr[score] for score in cells[a, b]])
            if mean == "geometric":
                matrix[i, j] = np.prod(expit(values) ** (1 / values.size))
            else:
                matrix[i, j] = expit(values.mean())
    return matrix


def d_diag(matrix):
    n = matrix.shape[0]
    off = sum(matrix[j, k] for j in range(n) for k in range(n) if j != k)
    return abs(np.trace(matrix) / n - off / (n * (n - 1)))


def crossed_d_diag(original, scored):
    """D_diag of an attack on halves: of originals ``here`` and protected speech of the others."""
    first = half_by_content(original, 0)
    people = np.eye(original.speakers.codes.max() + 1)[original.speakers.codes]
    similar = []
    for here in (first, ~first):
        scores, who, whose = scored(here), people[here], people[~here]
        same = who @ whose.T > 0
        llr = laplace_llr(scores[same], scores[~same])
        logs = np.log(expit(np.vectorize(llr.__getitem__)(scores)))
        similar.append(who.T @ logs @ whose / np.outer(who.sum(axis=0), whose.sum(axis=0)))
    return d_diag(np.exp(np.mean(similar, axis=0)))


@st.composite
def score_sets(draw):
    counts = draw(st.lists(st.integers(2, 4), min_size=2, max_size=4))
    speakers = np.repeat([f"s{i}" for i in range(len(counts))], counts)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    speakers = rng.permutation(speakers)
    sign = draw(st.sampled_from([1.0, -1.0, 0.0]))
    digits = draw(st.sampled_from([0, 1, 6]))
    return speakers.tolist(), score_matrices(rng, speakers, 2.0, sign, 1.0, digits=digits)


@settings(max_examples=40, deadline=None)
@given(
    score_sets(),
    st.sampled_from(["geometric", "arithmetic"]),
    st.sampled_from(["all", "upper"]),
)
def test_matrices_agree_with_the_definition(made, mean, pairs):
    speakers, sets = made
    try:
        result = pseudonymisation(*sets, speakers, mean=mean, pairs=pairs, replicates=0)
    except InputError as error:
        assert "D_diag is 0" in str(error)  # noqa: PT017
        assert d_diag(brute_force(sets[0], speakers, mean, pairs)) < 1e-12
        return
    expected = [brute_force(scores, speakers, mean, pairs) for scores in sets]
    for name, matrix in zip(("oo", "op", "pp"), expected, strict=True):
        np.testing.assert_allclose(result.matrices[name], matrix, atol=1e-12)
        assert result.d_diag[name] == pytest.approx(d_diag(matrix), abs=1e-12)
    assert result.deid == pytest.approx(1 - d_diag(expected[1]) / d_diag(expected[0]), abs=1e-9)
    negated = d_diag(brute_force(-sets[1], speakers, mean, pairs))
    assert result.attacks["negated"] == pytest.approx(1 - negated / d_diag(expected[0]), abs=1e-9)
    strongest = result.strongest
    assert strongest.deid.value <= result.deid
    assert result.per_speaker.attacker == strongest.attacker
    assert result.per_speaker.deid.mean() == pytest.approx(strongest.deid.value, abs=1e-9)


@pytest.mark.parametrize("mean", ["geometric", "arithmetic"])
@pytest.mark.parametrize("pairs", ["all", "upper"])
def test_reference_values(mean, pairs):
    data = np.load(REFERENCE / "sim8.npz")
    expected = json.loads((REFERENCE / "expected.json").read_text())["sim8"][f"{pairs}_pairs"][mean]
    result = pseudonymisation(
        data["oo"], data["op"], data["pp"], data["spk"], mean=mean, pairs=pairs, replicates=0
    )
    for name in ("oo", "op", "pp"):
        assert result.d_diag[name] == pytest.approx(expected[f"Ddiag_{name}"], abs=1e-8)
    assert result.deid == pytest.approx(expected["DeID"], abs=1e-8)
    assert result.g_vd == pytest.approx(expected["G_VD"], abs=1e-8)


def population(rng, speakers=12, each=6, dimension=8, within=0.5):
    names = {"speaker": "spk{}", "utterance": "u{row}"}
    return named_speakers(speakers, each, dimension, noise=within, means=rng, **names)


def like(original, vectors, **changes):
    return Embeddings(vectors, original.speakers, original.utterances, **changes)


@pytest.fixture(scope="module")
def original():
    return population(np.random.default_rng(0))


def test_a_safeguard_that_does_nothing(original):
    result = pseudonymisation(original, original, replicates=50)
    assert result.deid == pytest.approx(0.0, abs=1e-12)
    assert result.g_vd == pytest.approx(0.0, abs=1e-12)
    assert result.deid_d_ece == pytest.approx(0.0, abs=1e-12)
    assert result.g_min_cllr == pytest.approx(0.0, abs=1e-12)
    assert result.strongest.attacker == "centred"
    assert result.strongest.deid.value == pytest.approx(0.0, abs=0.05)
    assert not result.beats_plain
    assert [notice.code for notice in result.notices] == ["unclear-reading", "few-speakers"]
    # Nobody of the sample is protected; somebody outside it may be, in two of n pairs.
    share = 1 - 0.025 ** (2 / len(result.speakers))
    for estimate in (*result.estimates[:3], *result.details):
        made = estimate.interval
        assert made.low < made.high
        assert made.low <= estimate.value <= made.high
    made, best = result.interval("deid"), result.interval("deid_strongest")
    assert (made.low, made.high) == (pytest.approx(-share), pytest.approx(share))
    assert best.low <= made.low < made.high <= best.high


def test_another_reading_of_unchanged_speech_is_no_surer_than_the_plain_one():
    original = population(np.random.default_rng(0), speakers=60, each=5, within=0.5)
    result = pseudonymisation(original, original, replicates=50)
    assert result.strongest.attacker != "plain"
    plain, best = result.interval("deid"), result.strongest.deid.interval
    assert best.low <= plain.low < result.strongest.deid.value < plain.high <= best.high


def test_disclosure_that_no_resample_moves_has_an_interval():
    original = population(np.random.default_rng(0), speakers=20, each=4, within=0.01)
    result = pseudonymisation(original, original, replicates=50)
    made = {e.metric: e for e in result.estimates}["d_ece"]
    assert made.value == pytest.approx(LARGEST_D_ECE)
    # A share q of targets that score like strangers, all others certain: D_ECE written out.
    q = 1 - 0.025 ** (1 / 20)
    roc = Roc.from_scores([0.0, 1.0], [0.0], target_weights=[q, 1 - q], nontarget_weights=[1.0])
    assert made.interval.low == pytest.approx(roc.d_ece(), rel=1e-9)
    assert made.interval.high == pytest.approx(LARGEST_D_ECE)


@pytest.mark.parametrize("by", [None, "sex"])
def test_notices_name_the_safeguard_and_few_speakers_the_set_alone(original, by):
    sexes = {"sex": ["fm"[int(name[3:]) % 2] for name in original.speakers.to_series()]}
    speech = like(original, original.vectors, columns=sexes)
    turned = {name: like(original, -original.vectors) for name in ("one", "two")}
    result = compare_safeguards(speech, turned, by=by, replicates=20)
    sets = ("f", "m") if by else ("",)
    about = [", ".join(filter(None, (name, part))) for part in sets for name in turned]
    *told, last = [(notice.code, notice.subject) for notice in result.notices]
    assert last == ("not-tried", "")
    few = [("few-speakers", part) for part in sets]
    assert told[-len(sets) :] == few
    others = [subject for code, subject in told[: -len(sets)]]
    assert "few-speakers" not in [code for code, _ in told[: -len(sets)]]
    assert {subject.partition(": ")[0] for subject in others} == set(about)


def test_a_safeguard_that_replaces_vectors_by_noise():
    rng = np.random.default_rng(1)
    original = population(rng, speakers=30, each=10)
    result = pseudonymisation(
        original, like(original, rng.normal(size=original.vectors.shape)), replicates=200
    )
    assert result.deid > 0.98
    assert result.g_vd < -10
    assert result.interval("deid").low > 0.9


def test_protected_voices_that_are_all_the_same(matrices):
    (oo, _, _), speakers = matrices
    result = pseudonymisation(oo, np.zeros((9, 9)), np.ones((9, 9)), speakers, replicates=50)
    assert result.deid == 1.0
    assert result.g_vd == -np.inf
    assert result.per_speaker.worst() == ()
    assert result.strongest.attacker == "plain"
    assert [notice.code for notice in result.notices] == ["few-speakers"]
    deid, g_vd = result.interval("deid"), result.interval("g_vd")
    assert (deid.low, deid.high) == (pytest.approx(0.025 ** (1 / 3)), 1.0)
    assert g_vd.low == -np.inf
    assert g_vd.high == pytest.approx(10 * np.log10(1 - 0.025 ** (1 / 3)))


def test_a_safeguard_that_gives_each_speaker_a_new_voice(original):
    rng = np.random.default_rng(2)
    rotation = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    protected = like(original, original.vectors @ rotation)
    result = pseudonymisation(original, protected, replicates=0)
    assert result.g_vd == pytest.approx(0.0, abs=1e-9)
    assert result.deid > 0.5


def test_anti_similar_voices_are_flagged_with_the_numbers_of_the_negated_score(original, sentences):
    noise = 0.1 * np.random.default_rng(17).normal(size=original.vectors.shape)
    protected = like(original, noise - original.vectors)
    result = pseudonymisation(original, protected, replicates=200)
    assert result.deid > 0.9
    assert result.attacks["negated"] == pytest.approx(0.0, abs=0.05)
    strongest = result.strongest
    assert strongest.attacker in ("negated", "centred negated")
    assert strongest.deid.value <= result.attacks["negated"]
    assert strongest.deid.interval.low < strongest.deid.value < strongest.deid.interval.high
    assert f"|attacker:{strongest.attacker}|" in strongest.deid.signature
    notices = {(one.code, one.subject): one.sentence for one in result.notices}
    text = notices["stronger-reading", "OP"]
    value = f"{100 * strongest.deid.value:.1f}".replace("-", "−")
    assert f"{value} %" in text
    sentences.check(text, notices["negated", "OP, utterance pairs"])
    assert result.per_speaker.deid.mean() == pytest.approx(strongest.deid.value)


@pytest.mark.parametrize("backend", ["cosine", "plda", "wccn"])
def test_embeddings_and_their_score_matrices_agree(original, backend):
    made = {"cosine": Cosine, "plda": lambda: Plda.fit(original)}.get(
        backend, lambda: Whitening.fit(original)
    )()
    rng = np.random.default_rng(3)
    shuffle = rng.permutation(len(original))
    protected = like(original, original.vectors + rng.normal(size=original.vectors.shape))
    result = pseudonymisation(original, protected.select(shuffle), backend=made, replicates=50)
    o, p = original.vectors, protected.vectors
    matrices = [score_matrix(made, a, b) for a, b in ((o, o), (o, p), (p, p))]
    direct = pseudonymisation(*matrices, original.speakers, replicates=50)
    for name in ("oo", "op", "pp"):
        np.testing.assert_allclose(result.matrices[name], direct.matrices[name], atol=1e-9)
    assert result.interval("deid") == direct.interval("deid")
    assert result.estimates[0].params["backend"] == made.name
    assert result.estimates[0].trials == direct.estimates[0].trials


def scores_of(matrix, speakers, *, order=None, label=None):
    n = len(speakers)
    k, l = (part.reshape(-1) for part in np.indices((n, n)))  # noqa: E741
    if order is not None:
        k, l = k[order], l[order]  # noqa: E741
    utterances = np.array([f"u{i}" for i in range(n)])
    speakers = np.asarray(speakers)
    return Scores(
        Ids.from_strings(utterances[k]),
        Ids.from_strings(utterances[l]),
        label,
        enrol_speaker=Ids.from_strings(speakers[k]),
        test_speaker=Ids.from_strings(speakers[l]),
        systems={"a": matrix[k, l]},
    )


@pytest.fixture
def matrices():
    speakers = ["b"] * 3 + ["a"] * 2 + ["c"] * 4
    return score_matrices(4, speakers, 2.0, 0.5, 1.0), speakers


@pytest.mark.parametrize("pairs", ["all", "upper"])
def test_lists_and_matrices_agree(matrices, pairs):
    sets, speakers = matrices
    n = len(speakers)
    order = np.random.default_rng(5).permutation(n * n)
    if pairs == "upper":
        order = np.flatnonzero(np.triu(np.ones((n, n)), 1).reshape(-1))
    lists = [scores_of(matrix, speakers, order=order) for matrix in sets]
    direct = pseudonymisation(*sets, speakers, pairs=pairs, replicates=20)
    result = pseudonymisation(*lists, pairs=pairs, replicates=20)
    place = [result.speakers.index(name) for name in direct.speakers]
    for name in ("oo", "op", "pp"):
        outcome = result.matrices[name][np.ix_(place, place)]
        np.testing.assert_allclose(outcome, direct.matrices[name], atol=1e-12)
    assert result.deid == pytest.approx(direct.deid)
    np.testing.assert_allclose(result.per_speaker.d_ece[place], direct.per_speaker.d_ece)
    np.testing.assert_allclose(result.per_speaker.l_w[place], direct.per_speaker.l_w)
    expected = () if pairs == "upper" else ("OO: 9 comparisons of a segment with itself left out",)
    assert tuple(note.line for note in result.notes[:1]) == expected


def test_monotone_maps_of_the_scores_change_nothing(matrices):
    sets, speakers = matrices
    first = pseudonymisation(*sets, speakers, replicates=20)
    second = pseudonymisation(*(np.exp(3 * s) for s in sets), speakers, replicates=20)
    np.testing.assert_allclose(first.matrices["op"], second.matrices["op"])
    assert first.interval("g_vd") == second.interval("g_vd")


def test_order_of_the_segments_changes_nothing_when_all_pairs_count(matrices):
    sets, speakers = matrices
    shuffle = np.random.default_rng(6).permutation(len(speakers))
    second = pseudonymisation(
        *(s[np.ix_(shuffle, shuffle)] for s in sets), np.asarray(speakers)[shuffle], replicates=0
    )
    assert second.deid == pytest.approx(pseudonymisation(*sets, speakers, replicates=0).deid)


def test_diagonals_are_never_read(matrices):
    sets, speakers = matrices
    first = pseudonymisation(*sets, speakers, replicates=20)
    for matrix in sets:
        np.fill_diagonal(matrix, np.nan)
    second = pseudonymisation(*sets, speakers, replicates=20)
    assert second.deid == first.deid


def test_threads_and_single_precision(matrices):
    sets, speakers = matrices
    with run_on(workers=1):
        one = pseudonymisation(*sets, speakers, replicates=20)
    with run_on(workers=3):
        three = pseudonymisation(*sets, speakers, replicates=20)
    np.testing.assert_array_equal(one.matrices["op"], three.matrices["op"])
    assert one.interval("deid") == three.interval("deid")
    low = pseudonymisation(*(s.astype(np.float32) for s in sets), speakers, replicates=20)
    assert low.deid == pytest.approx(one.deid)


def test_log_domain_and_normalised_twins(matrices):
    sets, speakers = matrices
    result = pseudonymisation(*sets, speakers, replicates=20)
    matrix = np.log2(result.matrices["op"])
    assert result.d_diag_log["op"] == pytest.approx(d_diag(matrix))
    same = np.equal.outer(speakers, speakers)
    off = ~np.eye(len(speakers), dtype=bool)
    rocs = [Roc.from_scores(s[same & off], s[~same]) for s in sets]
    disclosed = [roc.d_ece() for roc in rocs]
    assert result.deid_d_ece == pytest.approx(1 - disclosed[1] / disclosed[0])
    assert result.g_d_ece == pytest.approx(10 * np.log10(disclosed[2] / disclosed[0]))
    cost = [roc.min_cllr() for roc in rocs]
    assert result.deid_min_cllr == pytest.approx((cost[1] - cost[0]) / (1 - cost[0]))
    assert result.g_min_cllr == pytest.approx(10 * np.log10((1 - cost[2]) / (1 - cost[0])))


def test_per_speaker_disclosure_averages_to_the_whole():
    original = population(np.random.default_rng(7))
    rng = np.random.default_rng(8)
    protected = like(original, original.vectors + rng.normal(size=original.vectors.shape))
    result = pseudonymisation(original, protected, replicates=0)
    op = result.sets["op"]
    assert op.speaker_d_ece.mean() == pytest.approx(op.zebra.d_ece)
    assert op.speaker_l_w.max() == pytest.approx(op.zebra.l_w)


def explicit(scores, speakers, drawn, mean, pairs):
    """Signed dominance of a resample, expanded and calibrated from the definition: copies of one
    speaker are not compared with each other."""
    names = list(dict.fromkeys(speakers))
    speakers = np.asarray(speakers)
    cells, target, nontarget = {}, [], []
    for a, one in enumerate(drawn):
        for b, two in enumerate(drawn):
            if a != b and one == two:
                continue
            k, l = np.meshgrid(  # noqa: E741
                np.flatnonzero(speakers == names[one]),
                np.flatnonzero(speakers == names[two]),
                indexing="ij",
            )
            kept = k < l if pairs == "upper" else k != l
            cells[a, b] = scores[k[kept], l[kept]]
            (target if a == b else nontarget).append(cells[a, b])
    llr = laplace_llr(np.concatenate(target), np.concatenate(nontarget))

    def similarity_of(values):
        values = np.array([llr[value] for value in values])
        if mean == "geometric":
            return np.exp(np.log(expit(values)).mean())
        return expit(values.mean())

    if pairs == "upper":
        cells = {
            (a, b): cell if a == b else np.concatenate([cell, cells[b, a]])
            for (a, b), cell in cells.items()
        }
    result = {pair: similarity_of(cell) for pair, cell in cells.items()}
    own = np.mean([value for (a, b), value in result.items() if a == b])
    return own - np.mean([value for (a, b), value in result.items() if a != b])


@pytest.fixture
def drawn(monkeypatch):
    """What the resamples of the latest result gave, by set; results keep none of it."""
    latest = {}

    def keep(made, **more):
        for name, readings in made.readings.items():
            for kind, one in zip(("plain", "negated"), readings, strict=False):
                latest.setdefault(kind, {})[name] = one.resampled
        return assessed(made, **more)

    monkeypatch.setattr(api, "assessed", keep)
    return latest


@pytest.mark.parametrize("mean", ["geometric", "arithmetic"])
@pytest.mark.parametrize("pairs", ["all", "upper"])
def test_replicates_are_those_of_an_explicit_resampling(mean, pairs, drawn):
    rng = np.random.default_rng(9)
    speakers = rng.permutation(np.repeat(list("abcde"), [2, 4, 3, 5, 4]))
    sets = score_matrices(rng, speakers, 2.0, 0.7, 1.0, digits=1)
    for matrix in (sets[0], sets[2]):
        matrix[:] = (matrix + matrix.T) / 2
    result = pseudonymisation(*sets, speakers, mean=mean, pairs=pairs, replicates=12, seed=3)
    names = list(dict.fromkeys(speakers))
    assert list(result.speakers) == names
    for number, child in enumerate(np.random.SeedSequence(3).spawn(12)):
        chosen = np.argsort(names)[np.random.default_rng(child).integers(0, 5, 5)]
        for name, scores in zip(("oo", "op", "pp"), sets, strict=True):
            outcome = drawn["plain"][name].signed[number]
            if np.unique(chosen).size == 1:
                assert np.isnan(outcome)
            else:
                expected = explicit(scores, speakers, chosen, mean, pairs)
                assert outcome == pytest.approx(expected, abs=1e-5)
        negated = drawn["negated"]["op"].signed[number]
        assert negated == pytest.approx(explicit(-sets[1], speakers, chosen, mean, pairs), abs=1e-5)


def test_replicates_in_few_bins_are_close_to_exact_ones(monkeypatch, drawn):
    rng = np.random.default_rng(11)
    original = population(rng, speakers=15, each=6, within=0.9)
    vectors = original.vectors + 0.8 * rng.normal(size=original.vectors.shape)
    protected = like(original, vectors)
    result, values = {}, {}
    for most in (96, 4096):
        monkeypatch.setattr(similarity_resampling, "MOST", most)
        result[most] = pseudonymisation(original, protected, replicates=40)
        values[most] = dict(drawn)
    assert result[96].sets["op"].bins < 100 < result[4096].sets["op"].bins
    for name in ("oo", "op", "pp"):
        few, many = (values[most]["plain"][name] for most in (96, 4096))
        for metric in ("signed", "d_ece"):
            one, other = getattr(few, metric), getattr(many, metric)
            assert np.sqrt(np.mean((one - other) ** 2)) < 0.1 * other.std()


def test_where_room_is_short_each_speaker_keeps_some_partners(monkeypatch):
    rng = np.random.default_rng(12)
    original = population(rng, speakers=60, each=3, within=0.9)
    protected = like(original, original.vectors + 0.8 * rng.normal(size=original.vectors.shape))
    full = pseudonymisation(original, protected, replicates=60)
    monkeypatch.setattr(similarity_resampling, "CELLS", 60 * 96 * 33)
    some = pseudonymisation(original, protected, replicates=60)
    assert 30 <= some.sets["op"].partners <= 32
    assert f"|partners:{some.sets['oo'].partners}|" in some.estimates[0].signature
    assert "partners" not in full.estimates[0].signature
    assert some.deid == full.deid
    for name in ("deid", "g_vd"):
        one, other = full.interval(name), some.interval(name)
        assert other.high - other.low == pytest.approx(one.high - one.low, rel=0.3)


def test_intervals_reach_a_signed_zero_and_no_further_than_their_range():
    def ends(value, drawn, read):
        return Statistic(value, np.asarray(drawn), len(drawn), read).ends(20, 0.95)

    low, high = ends(0.02, np.linspace(-0.1, 0.18, 200), lost)
    assert low < 0.9 < high == 1.0
    assert ends(0.5, np.linspace(0.4, 0.6, 99), lost)[1] < 0.7
    low, high = ends(0.9, np.linspace(0.8, 1.0, 99), decibels)
    assert low < 10 * np.log10(0.9) < high < 1
    reach = 1 - 0.025 ** (2 / 20)
    assert ends(1.0, np.ones(50), lost) == (pytest.approx(-reach), pytest.approx(reach))
    assert ends(np.nan, np.ones(50), lost) is None
    assert ends(0.0, np.zeros(50), lost) == (pytest.approx(0.025 ** (1 / 20)), 1.0)


def test_where_the_jackknife_tells_of_more_spread_the_interval_has_it():
    rng = np.random.default_rng(16)
    drawn = 0.5 + 0.01 * rng.normal(size=500)
    left_out = rng.normal(size=20)
    left_out = 0.5 + 0.03 * (left_out - left_out.mean()) / left_out.std() / np.sqrt(19)
    narrow = Statistic(0.5, drawn, 500).ends(20, 0.95)
    wide = Statistic(0.5, np.concatenate([drawn, left_out]), 500).ends(20, 0.95)
    stretched = 0.03 / (drawn.std() * np.sqrt(20 / 19))
    assert wide[1] - wide[0] == pytest.approx(stretched * (narrow[1] - narrow[0]))


def test_every_number_has_an_interval_or_a_reason(original):
    rng = np.random.default_rng(13)
    protected = like(original, original.vectors + rng.normal(size=original.vectors.shape))
    result = pseudonymisation(original, protected, replicates=100)
    for estimate in (*result.estimates, *result.details):
        assert (estimate.interval is None) == bool(estimate.no_interval), estimate.metric
        if estimate.interval is not None:
            assert estimate.interval.low <= estimate.value <= estimate.interval.high
            assert estimate.interval.low < estimate.interval.high
            halves = ",8 halves twice" if estimate.metric in STRONGEST else ""
            assert estimate.interval.method == f"speaker,recalibrated,corrected{halves}"
    none = {e.metric for e in (*result.estimates, *result.details) if e.no_interval}
    assert none == {"l_w", "tag", "l_w_strongest", "tag_strongest"}
    speakers = result.per_speaker
    assert (speakers.low < speakers.deid).all()
    assert (speakers.deid < speakers.high).all()


def test_a_comparison_counts_once_whichever_way_it_was_scored(original):
    result = pseudonymisation(original, original, replicates=0)
    unit = Cosine().sides(original.vectors).enrol
    scores = unit @ unit.T
    speakers = original.speakers.codes
    upper = np.triu(np.ones(scores.shape, dtype=bool), 1)
    same = np.equal.outer(speakers, speakers)
    once = Roc.from_scores(scores[upper & same], scores[upper & ~same])
    for name in ("oo", "pp"):
        own = result.sets[name]
        assert own.zebra.targets == 12 * 15
        assert own.zebra.nontargets == 66 * 36
        assert own.zebra.l_w == pytest.approx(once.l_w())
        assert own.zebra.d_ece == pytest.approx(once.d_ece())
        assert own.speaker_l_w.max() == pytest.approx(own.zebra.l_w)
    assert result.sets["op"].zebra.targets == 2 * 12 * 15
    assert result.sets["op"].zebra.l_w > once.l_w()


def test_comparisons_of_lists_count_once(matrices):
    sets, speakers = matrices
    sets = [(m + m.T) / 2 if i != 1 else m for i, m in enumerate(sets)]
    lists = [scores_of(matrix, speakers) for matrix in sets]
    result = pseudonymisation(*lists, replicates=0)
    direct = pseudonymisation(*sets, speakers, replicates=0)
    for name in ("oo", "op", "pp"):
        assert result.sets[name].zebra == direct.sets[name].zebra


def test_the_centred_score_takes_out_what_all_voices_share():
    rng = np.random.default_rng(14)
    original = population(rng, speakers=40, each=5, dimension=16, within=0.4)
    shared = 6 * rng.normal(size=16)
    noise = 1.5 * rng.normal(size=(40, 16))[original.speakers.codes]
    rows = original.vectors + noise
    scale = np.exp(0.7 * rng.normal(size=(len(rows), 1)))
    protected = like(original, scale * rows + shared)
    result = pseudonymisation(original, protected, replicates=30)
    o, p = (Cosine().sides(voices.vectors).enrol for voices in (original, protected))

    def scored(here):
        e, t = (rows - rows.mean(axis=0) for rows in (o[here], p[~here]))
        return Cosine().sides(e).enrol @ Cosine().sides(t).enrol.T

    expected = 1 - crossed_d_diag(original, scored) / result.d_diag["oo"]
    assert result.attacks["centred"] == pytest.approx(expected)
    assert result.attacks["centred"] < result.deid
    assert result.strongest.tried == ("plain", "negated", "centred", "centred negated")


@pytest.mark.parametrize("backend", ["cosine", "plda", "own"])
def test_double_centred_scores_are_the_same_from_matrices_and_lists(original, backend):
    class Own(Cosine):
        def sides(self, vectors):
            rows = super().sides(vectors).enrol
            return Sides(2 * rows, rows)

    made = {"cosine": Cosine, "plda": lambda: Plda.fit(original), "own": Own}[backend]()
    rng = np.random.default_rng(15)
    protected = like(original, original.vectors + rng.normal(size=original.vectors.shape))
    o, p = original.vectors, protected.vectors
    matrices = [score_matrix(made, a, b) for a, b in ((o, o), (o, p), (p, p))]
    direct = pseudonymisation(*matrices, original.speakers, replicates=0)
    lists = [scores_of(m, original.speakers.to_series().to_list()) for m in matrices]
    listed = pseudonymisation(*lists, replicates=0)
    expected = matrices[1] - 0.0
    np.fill_diagonal(expected, np.nan)
    rows, columns = np.nanmean(expected, axis=1), np.nanmean(expected, axis=0)
    expected = expected - rows[:, None] - columns
    np.fill_diagonal(expected, 0.0)
    written = pseudonymisation(matrices[0], expected, matrices[2], original.speakers, replicates=0)
    for outcome in (direct, listed):
        np.testing.assert_allclose(
            outcome.sets["double-centred"].matrix, written.matrices["op"], atol=1e-9
        )


def test_attackers_that_align_and_learn_compete(sentences):
    """A turned voice is undone by whoever finds the rotation; all read their scores both ways."""
    rng = np.random.default_rng(3)
    people = population(rng, speakers=60, each=4, dimension=8, within=0.3)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    turned = like(people, people.vectors @ turn + 0.05 * rng.normal(size=people.vectors.shape))
    asked = people.speakers.codes < 25
    original, protected = people.select(asked), turned.select(asked)
    pairs = people.select(~asked), turned.select(~asked)
    names = ("whitened", "coral", "wasserstein", "procrustes", "asnorm", "fusion")
    attackers = {
        name: Attacker(original, protected, name, pooled(pairs), parallel=pairs) for name in names
    }
    result = pseudonymisation(original, protected, attackers=attackers, replicates=30)
    assert {name + way for name in names for way in ("", " negated")} < set(result.attacks)
    assert result.strongest.attacker == "procrustes"
    assert result.strongest.deid.value < 0.3 < 0.6 < result.deid

    def scored(here):
        one = Attacker(original.select(here), protected.select(~here), "procrustes", parallel=pairs)
        used = one.ready()
        e, t = (Cosine().sides(side.vectors).enrol for side in (used.enrol, used.test))
        return e @ t.T

    expected = 1 - crossed_d_diag(original, scored) / result.d_diag["oo"]
    assert result.attacks["procrustes"] == pytest.approx(expected)
    o, p = (Cosine().sides(one.vectors).enrol for one in (original, protected))
    fused = attackers["fusion"].ready().backend_in_use
    scores = score_matrix(fused, original.vectors, protected.vectors)
    direct = pseudonymisation(o @ o.T, scores, p @ p.T, original.speakers, replicates=0)
    assert result.attacks["fusion"] == pytest.approx(direct.deid, abs=1e-9)
    sentences.check(next(line for line in result.warnings if "procrustes" in line))


def test_noise_is_not_taken_for_an_attack():
    """New voices that have nothing to do with the old ones, for five populations."""
    named = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        original = population(rng, speakers=20, each=3, dimension=16)
        fresh = population(rng, speakers=20, each=3, dimension=16)
        protected = like(original, fresh.vectors)
        names = ("whitened", "coral", "wasserstein")
        rivals = {name: Attacker(original, protected, name) for name in names}
        result = pseudonymisation(original, protected, attackers=rivals, replicates=60)
        named += [one.sentence for one in result.notices if one.code == "stronger-reading"]
        named += result.per_speaker.worst()
        assert result.strongest.deid.value == min(result.attacks.values()) > 0.9
        assert result.strongest.deid.interval.high == result.interval("deid").high == 1.0
    assert len(named) <= 1


def test_the_lowest_deid_is_the_headline_where_few_speakers_cannot_prove_it():
    """Ten voices that keep half of the opposite of the old ones: resamples do not tell the readings
    apart, the plain score says 100 %.
    """
    rng = np.random.default_rng(2)
    owner = np.repeat(np.arange(10), 4)
    voices, noise = rng.normal(size=(10, 8)), 0.7 * rng.normal(size=(40, 8))
    original = Embeddings(voices[owner] + noise, owner)
    other = rng.normal(size=(10, 8)) - 0.5 * voices
    protected = Embeddings(other[owner] + 0.7 * rng.normal(size=(40, 8)), owner)
    result = pseudonymisation(original, protected, replicates=100)
    assert not result.beats_plain
    assert result.deid > 0.99
    assert result.strongest.deid.value == min(result.attacks.values()) < 0.7
    unclear = {one.code: one.sentence for one in result.notices}["unclear-reading"]
    assert f"{100 * min(result.attacks.values()):.1f} % instead of 100.0 %" in unclear


def test_estimates_carry_units_counts_and_signatures(matrices):
    sets, speakers = matrices
    result = pseudonymisation(*sets, speakers, replicates=20)
    by_name = {e.metric: e for e in (*result.estimates, *result.details)}
    assert by_name["deid"].unit == "%"
    assert by_name["g_vd"].unit == "dB"
    assert by_name["deid"].n == {"target": 20, "nontarget": 52, "speakers": 3}
    assert by_name["d_diag_pp"].n == {"target": 10, "nontarget": 26, "speakers": 3}
    assert by_name["tag"].value == result.sets["op"].zebra.tag
    assert by_name["d_diag_pp"].value == result.d_diag["pp"]
    assert pseudonymisation(*sets, speakers, replicates=0).estimates[0].interval is None


def test_progress_reaches_the_end(matrices):
    sets, speakers = matrices
    seen = []
    with progress(lambda done, total: seen.append((done, total))):
        pseudonymisation(*sets, speakers, replicates=0)
    assert seen == [(i, 8) for i in range(1, 9)]


def test_bad_input_is_named(matrices, original, sentences):
    (oo, op, pp), speakers = matrices
    with pytest.raises(InputError) as error:
        pseudonymisation(oo, op[:, :8], pp, speakers, replicates=0)
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="speaker d has 1 segment"):
        pseudonymisation(oo, op, pp, ["d", *speakers[1:]])
    with pytest.raises(InputError, match="2 speakers or more"):
        pseudonymisation(oo, op, pp, ["d"] * 9)
    with pytest.raises(InputError) as error:
        pseudonymisation(oo, op, pp, speakers, mean="median")
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        pseudonymisation(oo, op, pp, speakers, pairs="lower")
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="OO: D_diag is 0"):
        pseudonymisation(np.zeros((9, 9)), op, pp, speakers, replicates=0)
    broken = pp.copy()
    broken[0, 8] = np.nan
    with pytest.raises(InputError, match=r"PP: .*NaN"):
        pseudonymisation(oo, op, broken, speakers, replicates=0)
    broken = pp.copy()
    broken[0, 1] = np.nan
    with pytest.raises(InputError, match=r"PP: .*NaN"):
        pseudonymisation(oo, op, broken, speakers, replicates=0)
    with pytest.raises(InputError) as error:
        pseudonymisation([["x"] * 9] * 9, op, pp, speakers, replicates=0)
    # What follows the second colon is what numpy says.
    sentences.check(":".join(str(error.value).split(":")[:2]))


def test_sets_that_do_not_match_are_named(original, sentences):
    fewer = original.select(np.arange(len(original)) >= 6)
    with pytest.raises(InputError) as error:
        pseudonymisation(original, fewer)
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        pseudonymisation(fewer, original)
    sentences.check(str(error.value))
    one_less = original.select(np.arange(len(original)) > 0)
    with pytest.raises(InputError) as error:
        pseudonymisation(original, one_less)
    sentences.check(str(error.value))
    bare = Embeddings(original.vectors, original.speakers)
    with pytest.raises(InputError) as error:
        pseudonymisation(original, bare)
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="72 and 71 vectors"):
        pseudonymisation(bare, bare.select(np.arange(71)))
    with pytest.raises(InputError) as error:
        pseudonymisation(bare, bare.select(np.arange(72)[::-1]))
    sentences.check(str(error.value))


def test_lists_that_do_not_fit_are_named(matrices, sentences):
    sets, speakers = matrices
    lists = [scores_of(matrix, speakers) for matrix in sets]
    some = lists[1].select(lists[1].enrol_speaker.to_series().to_numpy() != "c")
    result = pseudonymisation(lists[0], some, lists[2], replicates=0)
    assert "c" not in result.sets["oo"].speakers
    assert (result.notes[0].code, result.notes[0].severity) == ("speakers-left-out", "note")
    alone = lists[1].select(lists[1].enrol_speaker.to_series().to_numpy() == "c")
    with pytest.raises(InputError) as error:
        pseudonymisation(lists[0], alone, lists[2])
    sentences.check(str(error.value))
    bare = Scores(lists[1].enrol, lists[1].test, None, systems=lists[1].systems)
    with pytest.raises(InputError) as error:
        pseudonymisation(lists[0], bare, lists[2])
    sentences.check(str(error.value))
    same = np.equal.outer(speakers, speakers).reshape(-1)
    wrong = scores_of(sets[1], speakers, label=np.where(same, 0, 1).astype(np.int8))
    with pytest.raises(InputError) as error:
        pseudonymisation(lists[0], wrong, lists[2])
    sentences.check(str(error.value))
    n = len(speakers)
    upper = np.flatnonzero(np.triu(np.ones((n, n)), 1).reshape(-1))
    with pytest.raises(InputError, match="pairs=upper"):
        pseudonymisation(*(scores_of(matrix, speakers, order=upper) for matrix in sets))


@pytest.mark.parametrize(("signed", "reaches"), [(0.01, True), (0.2, False)])
def test_an_interval_reaches_chance_where_signed_evidence_may_be_none(signed, reaches):
    rng = np.random.default_rng(6)
    evidence = Statistic(signed, signed + rng.normal(0, 0.02, 200), 200, bounds=(-1.0, 1.0))
    drawn = 0.1 + rng.uniform(0, 0.02, 200)
    alone = Statistic(0.1, drawn, 200, bounds=(0.0, 0.72)).ends(20, 0.95)
    result = Statistic(0.1, drawn, 200, bounds=(0.0, 0.72), evidence=evidence).ends(20, 0.95)
    assert alone[0] > 0
    assert result == ((0.0, alone[1]) if reaches else alone)
