from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from unmask import InputError, Plda, Whitening
from unmask.detection import Roc
from unmask.detection.information import z
from unmask.privacy import (
    pseudonymisation,
    pseudonymisation_from_embeddings,
    pseudonymisation_from_scores,
)
from unmask.scoring import Cosine
from unmask.trials import Embeddings, Ids, Scores

ORACLES = Path(__file__).parents[2].parent / "shared" / "oracles"


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


@st.composite
def score_sets(draw):
    counts = draw(st.lists(st.integers(2, 4), min_size=2, max_size=4))
    speakers = np.repeat([f"s{i}" for i in range(len(counts))], counts)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    speakers = rng.permutation(speakers)
    same = np.equal.outer(speakers, speakers)
    sign = draw(st.sampled_from([1.0, -1.0, 0.0]))
    digits = draw(st.sampled_from([0, 1, 6]))
    return speakers.tolist(), [
        np.round(rng.normal(size=same.shape) + shift * same, digits) for shift in (2.0, sign, 1.0)
    ]


@settings(max_examples=60, deadline=None)
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
    assert result.negated_deid == pytest.approx(1 - negated / d_diag(expected[0]), abs=1e-9)
    assert result.per_speaker.deid.mean() == pytest.approx(result.deid, abs=1e-9)
    assert result.per_speaker.negated_deid.mean() == pytest.approx(result.negated_deid, abs=1e-9)


@pytest.mark.skipif(not ORACLES.exists(), reason="reference values are not at hand")
@pytest.mark.parametrize("mean", ["geometric", "arithmetic"])
@pytest.mark.parametrize("pairs", ["all", "upper"])
def test_reference_values(mean, pairs):
    data = np.load(ORACLES / "sim8.npz")
    expected = json.loads((ORACLES / "expected.json").read_text())["sim8"][f"{pairs}_pairs"][mean]
    result = pseudonymisation(
        data["oo"], data["op"], data["pp"], data["spk"], mean=mean, pairs=pairs
    )
    for name in ("oo", "op", "pp"):
        assert result.d_diag[name] == pytest.approx(expected[f"Ddiag_{name}"], abs=1e-8)
    assert result.deid == pytest.approx(expected["DeID"], abs=1e-8)
    assert result.g_vd == pytest.approx(expected["G_VD"], abs=1e-8)


def population(rng, speakers=12, each=6, dimension=8, within=0.5):
    codes = np.repeat(np.arange(speakers), each)
    vectors = rng.normal(size=(speakers, dimension))[codes]
    vectors += within * rng.normal(size=(codes.size, dimension))
    names = [f"spk{c}" for c in codes]
    return Embeddings(vectors, names, [f"u{i}" for i in range(codes.size)])


def like(original, vectors, **changes):
    return Embeddings(vectors, original.speakers, original.utterances, **changes)


@pytest.fixture(scope="module")
def original():
    return population(np.random.default_rng(0))


def test_a_safeguard_that_does_nothing(original):
    result = pseudonymisation_from_embeddings(original, original)
    assert result.deid == pytest.approx(0.0, abs=1e-12)
    assert result.g_vd == pytest.approx(0.0, abs=1e-12)
    assert result.deid_d_ece == pytest.approx(0.0, abs=1e-12)
    assert result.g_min_cllr == pytest.approx(0.0, abs=1e-12)
    assert result.warnings == ()


def test_a_safeguard_that_replaces_vectors_by_noise():
    rng = np.random.default_rng(1)
    original = population(rng, speakers=30, each=10)
    result = pseudonymisation_from_embeddings(
        original, like(original, rng.normal(size=original.vectors.shape))
    )
    assert result.deid > 0.98
    assert result.g_vd < -10
    assert result.interval("deid").low > 0.9


def test_protected_voices_that_are_all_the_same(matrices):
    (oo, _, _), speakers = matrices
    result = pseudonymisation(oo, np.zeros((9, 9)), np.ones((9, 9)), speakers)
    assert result.deid == 1.0
    assert result.g_vd == -np.inf
    assert result.per_speaker.worst() == ()
    assert result.warnings == ()


def test_a_safeguard_that_gives_each_speaker_a_new_voice(original):
    rng = np.random.default_rng(2)
    rotation = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    result = pseudonymisation_from_embeddings(original, like(original, original.vectors @ rotation))
    assert result.g_vd == pytest.approx(0.0, abs=1e-9)
    assert result.deid > 0.5


def test_anti_similar_voices_are_flagged_with_the_numbers_of_the_negated_score(original):
    result = pseudonymisation_from_embeddings(original, like(original, -original.vectors))
    assert result.deid > 0.9
    assert result.negated_deid == pytest.approx(0.0, abs=0.05)
    told = " ".join(result.warnings)
    assert f"DeID is {100 * result.negated_deid:.1f} % instead of" in told
    assert "OP: the negated score discloses more" in told
    speakers = result.per_speaker
    assert speakers.turned
    assert speakers.attacked.mean() == pytest.approx(result.negated_deid)
    assert speakers.worst(1) == (result.speakers[int(speakers.negated_deid.argmin())],)


@pytest.mark.parametrize("backend", ["cosine", "plda", "wccn"])
def test_embeddings_and_their_score_matrices_agree(original, backend):
    made = {"cosine": Cosine, "plda": lambda: Plda.fit(original)}.get(
        backend, lambda: Whitening.fit(original)
    )()
    rng = np.random.default_rng(3)
    shuffle = rng.permutation(len(original))
    protected = like(original, original.vectors + rng.normal(size=original.vectors.shape))
    result = pseudonymisation_from_embeddings(
        original, protected.select(shuffle), backend=made, replicates=50
    )
    o, p = made.prepare(original.vectors), made.prepare(protected.vectors)
    matrices = [made.score_block(a, b) for a, b in ((o, o), (o, p), (p, p))]
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
    rng = np.random.default_rng(4)
    speakers = ["b"] * 3 + ["a"] * 2 + ["c"] * 4
    same = np.equal.outer(speakers, speakers)
    return [rng.normal(size=same.shape) + s * same for s in (2.0, 0.5, 1.0)], speakers


@pytest.mark.parametrize("pairs", ["all", "upper"])
def test_lists_and_matrices_agree(matrices, pairs):
    sets, speakers = matrices
    n = len(speakers)
    order = np.random.default_rng(5).permutation(n * n)
    if pairs == "upper":
        order = np.flatnonzero(np.triu(np.ones((n, n)), 1).reshape(-1))
    lists = [scores_of(matrix, speakers, order=order) for matrix in sets]
    direct = pseudonymisation(*sets, speakers, pairs=pairs)
    result = pseudonymisation_from_scores(*lists, pairs=pairs)
    place = [result.speakers.index(name) for name in direct.speakers]
    for name in ("oo", "op", "pp"):
        found = result.matrices[name][np.ix_(place, place)]
        np.testing.assert_allclose(found, direct.matrices[name], atol=1e-12)
    assert result.deid == pytest.approx(direct.deid)
    np.testing.assert_allclose(result.per_speaker.d_ece[place], direct.per_speaker.d_ece)
    np.testing.assert_allclose(result.per_speaker.l_w[place], direct.per_speaker.l_w)
    expected = () if pairs == "upper" else ("OO: 9 comparisons of a segment with itself left out",)
    assert result.notes[:1] == expected


def test_monotone_maps_of_the_scores_change_nothing(matrices):
    sets, speakers = matrices
    first = pseudonymisation(*sets, speakers)
    second = pseudonymisation(*(np.exp(3 * s) for s in sets), speakers)
    np.testing.assert_allclose(first.matrices["op"], second.matrices["op"])
    assert first.interval("g_vd") == second.interval("g_vd")


def test_order_of_the_segments_changes_nothing_when_all_pairs_count(matrices):
    sets, speakers = matrices
    shuffle = np.random.default_rng(6).permutation(len(speakers))
    second = pseudonymisation(
        *(s[np.ix_(shuffle, shuffle)] for s in sets), np.asarray(speakers)[shuffle]
    )
    assert second.deid == pytest.approx(pseudonymisation(*sets, speakers).deid)


def test_diagonals_are_never_read(matrices):
    sets, speakers = matrices
    first = pseudonymisation(*sets, speakers)
    for matrix in sets:
        np.fill_diagonal(matrix, np.nan)
    second = pseudonymisation(*sets, speakers)
    assert second.deid == first.deid


def test_threads_and_single_precision(matrices):
    sets, speakers = matrices
    one = pseudonymisation(*sets, speakers, workers=1)
    three = pseudonymisation(*sets, speakers, workers=3)
    np.testing.assert_array_equal(one.matrices["op"], three.matrices["op"])
    low = pseudonymisation(*(s.astype(np.float32) for s in sets), speakers)
    assert low.deid == pytest.approx(one.deid)


def test_log_domain_and_normalised_twins(matrices):
    sets, speakers = matrices
    result = pseudonymisation(*sets, speakers)
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
    result = pseudonymisation_from_embeddings(original, protected)
    op = result.sets["op"]
    assert op.speaker_d_ece.mean() == pytest.approx(op.zebra.d_ece)
    assert op.speaker_l_w.max() == pytest.approx(op.zebra.l_w)
    worst = result.per_speaker.worst(3)
    lowest = np.argsort(result.per_speaker.deid)[:3]
    assert worst == tuple(np.array(result.speakers)[lowest])


def test_intervals_are_those_of_resampled_matrices(matrices):
    sets, speakers = matrices
    result = pseudonymisation(*sets, speakers, replicates=200, seed=3)
    values = []
    for child in np.random.SeedSequence(3).spawn(200):
        drawn = np.random.default_rng(child).integers(0, 3, 3)
        if np.unique(drawn).size == 1:
            continue
        dominance = {}
        for name in ("oo", "op"):
            matrix = result.matrices[name]
            cells = [(a, b) for a in drawn for b in drawn if a != b]
            other = np.mean([matrix[a, b] for a, b in cells])
            dominance[name] = abs(np.mean([matrix[a, a] for a in drawn]) - other)
        values.append(1 - dominance["op"] / dominance["oo"])
    interval = result.interval("deid")
    assert interval.low == pytest.approx(np.quantile(values, 0.025, method="inverted_cdf"))
    assert interval.high == pytest.approx(np.quantile(values, 0.975, method="inverted_cdf"))
    assert "calibration:pav,laplace,held" in result.estimates[0].signature


def test_the_interval_of_d_ece_holds_the_calibration():
    rng = np.random.default_rng(9)
    speakers = np.repeat(list("abcdef"), 4)
    same = np.equal.outer(speakers, speakers)
    sets = [rng.normal(size=same.shape) + s * same for s in (2.0, 1.0, 1.0)]
    result = pseudonymisation(*sets, speakers, replicates=50, seed=1)
    op = result.sets["op"]
    llr = op.roc.pav.apply(sets[1])
    own_trial = np.eye(24, dtype=bool)
    values = []
    for child in np.random.SeedSequence(1).spawn(50):
        drawn = np.random.default_rng(child).integers(0, 6, 6)
        times = np.bincount(drawn, minlength=6)[np.repeat(np.arange(6), 4)].astype(float)
        target = np.repeat(times[:, None], 24, axis=1)[same & ~own_trial]
        nontarget = np.outer(times, times)[~same]
        hits = np.average(z(llr[same & ~own_trial]), weights=target)
        misses = np.average(z(-llr[~same]), weights=nontarget)
        values.append((hits + misses) / (2 * np.log(2)))
    interval = result.interval("d_ece")
    assert interval.low == pytest.approx(np.quantile(values, 0.025, method="inverted_cdf"))
    assert interval.high == pytest.approx(np.quantile(values, 0.975, method="inverted_cdf"))
    assert "calibration:pav,held" in result.estimates[2].signature


def test_estimates_carry_units_counts_and_signatures(matrices):
    sets, speakers = matrices
    result = pseudonymisation(*sets, speakers)
    by_name = {e.metric: e for e in (*result.estimates, *result.details)}
    assert by_name["deid"].unit == "%"
    assert by_name["g_vd"].unit == "dB"
    assert by_name["deid"].n == {"target": 20, "nontarget": 52, "speakers": 3}
    assert by_name["tag"].value == result.sets["op"].zebra.tag
    assert by_name["d_diag_pp"].value == result.d_diag["pp"]
    assert pseudonymisation(*sets, speakers, replicates=0).estimates[0].interval is None


def test_progress_reaches_the_end(matrices):
    sets, speakers = matrices
    seen = []
    pseudonymisation(*sets, speakers, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 6) for i in range(1, 7)]


def test_bad_input_is_named(matrices, original):
    (oo, op, pp), speakers = matrices
    with pytest.raises(InputError, match=r"OP: expected a square matrix of 9 x 9.*\(9, 8\)"):
        pseudonymisation(oo, op[:, :8], pp, speakers)
    with pytest.raises(InputError, match="speaker d has 1 segment"):
        pseudonymisation(oo, op, pp, ["d", *speakers[1:]])
    with pytest.raises(InputError, match="2 speakers or more"):
        pseudonymisation(oo, op, pp, ["d"] * 9)
    with pytest.raises(InputError, match="mean: expected geometric or arithmetic, found median"):
        pseudonymisation(oo, op, pp, speakers, mean="median")
    with pytest.raises(InputError, match="pairs: expected all or upper, found lower"):
        pseudonymisation(oo, op, pp, speakers, pairs="lower")
    with pytest.raises(InputError, match="OO: D_diag is 0"):
        pseudonymisation(np.zeros((9, 9)), op, pp, speakers)
    broken = pp.copy()
    broken[0, 8] = np.nan
    with pytest.raises(InputError, match=r"PP: .*NaN"):
        pseudonymisation(oo, op, broken, speakers)
    broken = pp.copy()
    broken[0, 1] = np.nan
    with pytest.raises(InputError, match=r"PP: .*NaN"):
        pseudonymisation(oo, op, broken, speakers)
    with pytest.raises(InputError, match="OO: expected a matrix of numbers"):
        pseudonymisation([["x"] * 9] * 9, op, pp, speakers)


def test_sets_that_do_not_match_are_named(original):
    fewer = original.select(np.arange(len(original)) >= 6)
    with pytest.raises(InputError, match="speaker spk0 is in the original set only"):
        pseudonymisation_from_embeddings(original, fewer)
    with pytest.raises(InputError, match="speaker spk0 is in the protected set only"):
        pseudonymisation_from_embeddings(fewer, original)
    one_less = original.select(np.arange(len(original)) > 0)
    with pytest.raises(InputError, match="utterance u0 is in the original set only"):
        pseudonymisation_from_embeddings(original, one_less)
    bare = Embeddings(original.vectors, original.speakers)
    with pytest.raises(InputError, match="only one of the two sets names"):
        pseudonymisation_from_embeddings(original, bare)
    with pytest.raises(InputError, match="72 and 71 vectors"):
        pseudonymisation_from_embeddings(bare, bare.select(np.arange(71)))
    with pytest.raises(InputError, match=r"row 1 of the original set is of speaker spk0.*spk11"):
        pseudonymisation_from_embeddings(bare, bare.select(np.arange(72)[::-1]))


def test_lists_that_do_not_fit_are_named(matrices):
    sets, speakers = matrices
    lists = [scores_of(matrix, speakers) for matrix in sets]
    some = lists[1].select(lists[1].enrol_speaker.to_series().to_numpy() != "c")
    with pytest.raises(InputError, match="speaker c is on the OO enrolment side but not on"):
        pseudonymisation_from_scores(lists[0], some, lists[2])
    bare = Scores(lists[1].enrol, lists[1].test, None, systems=lists[1].systems)
    with pytest.raises(InputError, match="OP: expected the speakers"):
        pseudonymisation_from_scores(lists[0], bare, lists[2])
    same = np.equal.outer(speakers, speakers).reshape(-1)
    wrong = scores_of(sets[1], speakers, label=np.where(same, 0, 1).astype(np.int8))
    with pytest.raises(InputError, match="OP: 81 trials are labelled against their speakers"):
        pseudonymisation_from_scores(lists[0], wrong, lists[2])
    n = len(speakers)
    upper = np.flatnonzero(np.triu(np.ones((n, n)), 1).reshape(-1))
    with pytest.raises(InputError, match="pairs=upper"):
        pseudonymisation_from_scores(*(scores_of(matrix, speakers, order=upper) for matrix in sets))
