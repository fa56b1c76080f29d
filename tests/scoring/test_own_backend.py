"""A back-end of one's own is taken by all that compares voices, as its score matrices are."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.assessment.config import AttackerConfig, config_schema
from unmask.engine import Roc, cross_pairing
from unmask.privacy import one_minus_eer
from unmask.privacy.legal import count_above_in_scores
from unmask.run import run_on
from unmask.scoring import BACKENDS, AsNorm, Fused, backend_named, fitted, score_matrix


class Distance:
    """−‖x − y‖² = (2x, −‖x‖², 1)·(y, 1, −‖y‖²)."""

    name = "distance"

    def sides(self, vectors):
        rows = np.asarray(vectors, dtype=np.float64)
        own, one = -(rows**2).sum(axis=1, keepdims=True), np.ones((len(rows), 1))
        return um.Sides(np.hstack([2 * rows, own, one]), np.hstack([rows, one, own]))


def voices(tag, seed, *, noise=0.8, speakers=14, each=5):
    more = {"utterance": f"{tag}{{row}}", "sessions": [f"d{n % 2}" for n in range(speakers * each)]}
    return named_speakers(speakers, each, 6, noise=noise, means=9, draws=seed, **more)


def squared(a, b):
    return -((a[:, None] - b[None]) ** 2).sum(axis=2)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_similarity_of_voices_and_over_sessions():
    original, protected = voices("u", 1), voices("u", 2, noise=1.1)
    o, p = original.vectors, protected.vectors
    matrices = squared(o, o), squared(o, p), squared(p, p)
    wanted = um.pseudonymisation(*matrices, original.speakers, replicates=0)
    for options in ({}, {"on": "processes", "workers": 2}, {"on": "cuda", "devices": ["cpu"]}):
        with run_on(**options):
            result = um.pseudonymisation(original, protected, backend=Distance(), replicates=0)
        assert result.deid == pytest.approx(wanted.deid, abs=1e-12)
        for name in ("plain", "negated"):
            assert result.attacks[name] == pytest.approx(wanted.attacks[name], abs=1e-9)
    assert result.estimates[0].params["backend"] == "distance"
    over = um.compare_sessions(original, protected, backend=Distance(), replicates=0)
    between = np.not_equal.outer(protected.sessions.codes, protected.sessions.codes)
    same = np.equal.outer(protected.speakers.codes, protected.speakers.codes)
    roc = Roc.from_scores(matrices[2][between & same], matrices[2][between & ~same])
    assert over.sets["pp_between"].roc.eer() == pytest.approx(roc.eer())


def test_the_legal_risks():
    enrol, test = voices("e", 1), voices("t", 2, noise=1.1)
    code = test.speakers.codes
    models = unit(np.stack([unit(enrol.vectors[code == k]).mean(axis=0) for k in range(14)]))
    scores = squared(unit(test.vectors), models)
    above = count_above_in_scores(scores, code.astype(int))
    linked = um.linkability(enrol, test, counts=[2, 14], backend=Distance())
    np.testing.assert_array_equal(np.sort(linked.above.at_or_above), np.sort(above.at_or_above))
    whole = um.LegalProtocol(singling_out_enrol="all")
    alone = um.singling_out(enrol, test, counts=[5], backend=Distance(), protocol=whole)
    assert alone.backend == "distance"
    errors = one_minus_eer(enrol, test, counts=[14], backend=Distance())
    sweep = um.assess_attackers(
        {"own": um.Attacker(enrol, test, Distance())}, counts=[14], lengths=[1]
    )
    assert sweep["own", "linkability", 1].value[0] == linked.value[1]
    assert sweep["own", "one_minus_eer", 1].value[0] == errors.value[0]


def test_detection_in_memory_and_from_disk(tmp_path):
    data = voices("u", 1)
    path = tmp_path / "voices.npz"
    um.write(data, path)
    upper = np.triu(np.ones((len(data),) * 2, bool), 1)
    same = np.equal.outer(data.speakers.codes, data.speakers.codes)
    scores = squared(data.vectors, data.vectors)
    roc = Roc.from_scores(scores[upper & same], scores[upper & ~same])
    for given in (data, path):
        system = cross_pairing(given, backend=Distance())["distance"]
        assert system["eer"].value == pytest.approx(roc.eer(), abs=1e-6)
        assert system["cllr"].value == pytest.approx(
            um.cllr(scores[upper & same], scores[upper & ~same]), rel=1e-5
        )


def test_the_worst_case():
    data = voices("u", 1)
    levels, counts = [-12.0, -6.0], [1, 5]
    how = um.ImpostorProtocol(backend=Distance(), split=False)
    result = um.worst_case(data, levels, counts=counts, protocol=how)
    pairs = um.stress.speaker_pairs(data, backend=Distance())
    wanted = um.worst_case(pairs, levels, counts=counts, protocol=how)
    np.testing.assert_allclose(result.values, wanted.values, atol=1e-12)


def test_those_of_the_package_are_taken_where_they_were_not():
    data, taught = voices("u", 1), voices("t", 3)
    fused = Fused([backend_named("cosine"), AsNorm.fit(taught)], np.array([1.0, 0.5]))
    for backend in (AsNorm.fit(taught), fused):
        scores = score_matrix(backend, data.vectors, data.vectors)
        upper = np.triu(np.ones(scores.shape, bool), 1)
        same = np.equal.outer(data.speakers.codes, data.speakers.codes)
        roc = Roc.from_scores(scores[upper & same], scores[upper & ~same])
        result = um.evaluate(data, pairs="all", backend=backend, replicates=0)
        assert result[backend.name]["eer"].value == pytest.approx(roc.eer(), abs=1e-5)
        um.worst_case(data, [0.0], counts=[1], protocol=um.ImpostorProtocol(backend=backend))


class Wrong(Distance):
    name = "wrong"

    def __init__(self, enrol, test):
        self.shapes = enrol, test

    def sides(self, vectors):
        made = super().sides(vectors)
        return um.Sides(made.enrol[self.shapes[0]], made.test[self.shapes[1]])


ALL = slice(None)
CALLS = (
    lambda e, t, b: um.pseudonymisation(e, e, backend=b),
    lambda e, t, b: um.compare_sessions(e, e, backend=b),
    lambda e, t, b: um.linkability(e, t, backend=b),
    lambda e, t, b: um.singling_out(e, t, counts=[3], backend=b),
    lambda e, t, b: um.assess_attackers({"a": um.Attacker(e, t, b)}),
    lambda e, t, b: um.evaluate(e, pairs="all", backend=b),
    lambda e, t, b: um.worst_case(e, [0.0], counts=[1], protocol=um.ImpostorProtocol(backend=b)),
)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "backend",
    [Wrong((ALL, slice(3)), ALL), Wrong(slice(1, None), slice(1, None)), Wrong(0, 0), object()],
)
def test_sides_that_do_not_fit_are_refused_in_a_line(call, backend, sentences):
    with pytest.raises(um.InputError) as caught:
        call(voices("e", 1), voices("t", 2), backend)
    sentences.check(str(caught.value))
    assert "\n" not in str(caught.value)


def test_rows_that_are_no_numbers_are_refused(sentences):
    class Unknown(Distance):
        def sides(self, vectors):
            made = super().sides(vectors)
            return um.Sides(made.enrol, np.full_like(made.test, np.nan))

    with pytest.raises(um.InputError) as error:
        um.linkability(voices("e", 1), voices("t", 2), backend=Unknown())
    sentences.check(str(error.value))


def test_negated_sides_have_negated_scores():
    sides = Distance().sides(voices("e", 1).vectors)
    other = sides.negated()
    np.testing.assert_array_equal(other.enrol @ other.test.T, -(sides.enrol @ sides.test.T))


@pytest.fixture
def registered():
    """Names that are gone afterwards."""
    table = dict(BACKENDS)
    yield um.register_backend
    BACKENDS.clear()
    BACKENDS.update(table)


def test_a_registered_back_end_is_known_by_its_name_everywhere(registered, sentences):
    registered("distance", Distance)
    enrol, test = voices("e", 1), voices("t", 2)
    linked = um.linkability(enrol, test, backend="distance")
    assert linked.value == um.linkability(enrol, test, backend=Distance()).value
    plain = {"replicates": 0}
    for call in (um.pseudonymisation, um.compare_sessions):
        assert call(enrol, enrol, backend="distance", **plain).estimates[0].value is not None
    assert um.evaluate(enrol, backend="distance", **plain)["distance"]["eer"].value < 0.5
    um.worst_case(enrol, [-6.0], counts=[1], protocol=um.ImpostorProtocol(backend="distance"))
    config = AttackerConfig(name="x", backends=("cosine", "distance"))
    assert config.backends == ("cosine", "distance")
    names = config_schema()["$defs"]["AttackerConfig"]["properties"]["backends"]["items"]["enum"]
    assert {"cosine", "fusion", "distance"} < set(names)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        AttackerConfig(name="x", backends=("nearness",))
    (told,) = [line for line in str(error.value).splitlines() if "nearness" in line]
    sentences.check(told.partition(" [")[0])


def test_what_a_registered_back_end_is_fitted_on(registered, sentences):
    enrol, test, taught = voices("e", 1), voices("t", 2), voices("x", 3)
    others = [f"o{k}" for k in taught.speakers.codes]
    pairs = tuple(um.Embeddings(v.vectors, others, taught.utterances) for v in (taught, enrol))
    given = []

    def fit(*data):
        given.append(data)
        return Distance()

    def shifted(one, attacked):
        assert isinstance(attacked, np.ndarray)
        return (
            lambda rows: rows - one.vectors.mean(axis=0),
            lambda rows: rows - attacked.mean(axis=0),
        )

    for needs in ("nothing", "training", "attacked", "pairs"):
        registered("mine", fit, needs=needs)
        attacker = um.Attacker(enrol, test, "mine", pairs[0], parallel=pairs)
        assert attacker.allows("mine")
        assert attacker.ready().backend_in_use.name == "distance"
        bare = um.Attacker(enrol, test, "mine")
        assert bare.allows("mine") == (needs in ("nothing", "attacked"))
        if not bare.allows("mine"):
            with pytest.raises(um.InputError) as error:
                bare.ready()
            sentences.check(str(error.value))
    assert [len(data) for data in given] == [0, 1, 2, 4]
    strangers = um.Embeddings(test.vectors, others, test.utterances)
    with pytest.raises(um.InputError) as error:
        um.Attacker(enrol, strangers, "mine", parallel=pairs).ready()
    sentences.check(str(error.value))
    with pytest.raises(um.InputError) as error:
        um.Attacker(enrol, test, "mine", parallel=(test, test)).ready()
    sentences.check(str(error.value))
    registered("shifted", shifted, needs="attacked", aligns=True)
    moved = um.Embeddings(test.vectors + 9.0, test.speakers, test.utterances)
    near, far = (um.linkability(enrol, moved, backend=b) for b in ("shifted", "cosine"))
    assert near.value[0] > far.value[0]
    assert near.backend == "shifted"


def test_what_was_not_tried_beside_a_back_end_of_ones_own(sentences):
    enrol = voices("e", 1)
    for other in [name for name, known in BACKENDS.items() if not known.built_in]:
        BACKENDS.pop(other)
    told = um.compare_safeguards(enrol, {"a": enrol}, backend=Distance(), replicates=0).warnings[-1]
    sentences.check(told)


def test_a_registered_back_end_that_sees_attacked_speech_sees_no_two_versions(registered):
    enrol, seen = voices("e", 1), []

    def fit(one, attacked):
        seen.append((one.vectors, attacked))
        return Distance()

    registered("mine", fit, needs="attacked")
    rivals = {"mine": um.Attacker(enrol, enrol, "mine")}
    result = um.pseudonymisation(enrol, enrol, attackers=rivals, replicates=0)
    assert {"mine, first half", "mine, second half"} < set(result.sets)
    assert not any(np.isin(*both).any() for both in seen)


def test_alignments_are_taken_by_name_as_by_an_attacker(sentences):
    enrol, test = voices("e", 1), voices("t", 2)
    for name in ("whitened", "coral", "wasserstein"):
        used = um.Attacker(enrol, test, name).ready()
        wanted = um.linkability(used.enrol, used.test, backend=used.backend_in_use)
        result = um.linkability(enrol, test, backend=name)
        assert result.value == wanted.value
        assert result.backend == name
        with pytest.raises(um.InputError) as error:
            um.evaluate(enrol, backend=name)
        sentences.check(str(error.value))


def test_names_of_the_package_and_unknown_needs_are_refused(registered, sentences):
    with pytest.raises(um.InputError) as error:
        registered("cosine", Distance)
    sentences.check(str(error.value))
    with pytest.raises(um.InputError) as error:
        registered("mine", Distance, needs="luck")
    sentences.check(str(error.value))
    with pytest.raises(um.InputError) as error:
        um.linkability(voices("e", 1), voices("t", 2), backend="distance")
    sentences.check(str(error.value))


def test_steps_of_a_back_end_of_ones_own_are_not_taken_for_those_of_another():
    from unmask.assessment.cache import Step
    from unmask.scoring import BACKENDS, Cosine

    before = dict(BACKENDS)
    keys = set()
    for _ in range(2):
        um.register_backend("mine", Cosine)
        step, again = (Step("x", ["data"], {"backends": ("mine",)}, lambda: None) for _ in "ab")
        keys.add(step.key)
        assert again.key in keys
    BACKENDS.clear()
    BACKENDS.update(before)
    assert len(keys) == 2


@pytest.mark.parametrize("name", ["wccn", "plda", "whitened"])
def test_a_fit_is_taken_again_for_the_same_content_only(name):
    rng = np.random.default_rng(0)
    vectors, names = rng.normal(size=(40, 4)), np.repeat(list("abcdefgh"), 5)

    def made(vectors, names):
        voices = um.Embeddings(vectors, names)
        return fitted(name, train=voices, enrol=voices, test=voices)

    first = made(vectors, names)
    assert made(vectors.copy(), names) is first
    assert made(vectors + 1e-9 * rng.normal(size=(40, 4)), names) is not first
    if name != "whitened":
        assert made(vectors, np.roll(names, 1)) is not first
