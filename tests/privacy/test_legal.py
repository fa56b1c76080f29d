from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from legal_sets import population

import unmask as um
from unmask.privacy import default_counts

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "embeddings"


def attackers(**noises):
    return {
        name: um.Attacker(
            population(30, 8, noise=noise, tag=f"{name}-e", columns=True),
            population(30, 8, noise=noise, tag=f"{name}-t", columns=True),
        )
        for name, noise in noises.items()
    }


OPTIONS = {"draws": 2, "folds": 4, "replicates": 50}


@pytest.fixture(scope="module")
def sweep():
    return um.legal_sweep(
        attackers(original=0.5, ignorant=5.0, informed=1.5),
        counts=[5, 20, 30],
        lengths=[1, 4],
        asked="ignorant",
        attributes={"gender": ()},
        **OPTIONS,
    )


def test_one_result_holds_every_condition(sweep):
    assert sweep.attackers == ("original", "ignorant", "informed")
    assert sweep.protected == ("ignorant", "informed")
    assert sweep.lengths == (1, 4)
    assert len(sweep.curves) == 3 * 3 * 2
    assert sweep.counts(1) == (5, 20, 30)
    same = um.linkability(
        population(30, 8, noise=1.5, tag="informed-e"),
        population(30, 8, noise=1.5, tag="informed-t"),
        counts=[5, 20, 30],
        replicates=50,
    )
    assert sweep.curves["informed", "linkability", 1].value == pytest.approx(same.value)
    metrics = {e.metric for e in sweep.estimates}
    assert {
        "singling_out",
        "linkability",
        "one_minus_eer",
        "linkability_residual",
        "linkability_worst_decile",
        "singling_out_negated",
        "mean_d",
        "max_d",
        "identification_rate",
        "inference",
    } <= metrics


def test_the_strongest_is_named_beside_the_one_asked_for(sweep):
    assert sweep.strongest("linkability", 1, 30).attacker == "informed"
    line = next(text for text in sweep.sentences if text.startswith("Linkability, 1 utterance"))
    assert "strongest attacker informed" in line
    assert "asked for: ignorant" in line
    assert "chance 3.33 %" in line
    assert not any("anonymous" in text for text in (*sweep.sentences, *sweep.warnings))


def test_a_weak_attacker_is_not_believed(sweep):
    assert not any("weak attacker" in line for line in sweep.warnings)
    weak = um.legal_sweep(
        attackers(original=8.0, informed=9.0), counts=[20], lengths=[1], **OPTIONS
    )
    assert any("weak attacker: on unprotected speech linkability" in w for w in weak.warnings)
    assert any("no better than chance" in w for w in weak.warnings)
    alone = um.legal_sweep(attackers(informed=1.0), counts=[20], lengths=[1], **OPTIONS)
    assert alone.warnings[0].startswith("no attacker on unprotected speech was given")
    assert alone.protected == ("informed",)


def test_reversed_evidence_is_told():
    one = attackers(x=0.5)["x"]
    turned = um.Embeddings(-one.test.vectors, one.test.speakers)
    result = um.legal_sweep(
        {"x": um.Attacker(one.enrol, turned)}, counts=[20], lengths=[1], **OPTIONS
    )
    assert any("linkability: the negated score succeeds more often" in w for w in result.warnings)


def test_counts_beyond_some_conditions_are_left_out_and_told():
    test = population(30, [1] * 10 + [8] * 20, noise=1.0, tag="t")
    enrol = population(30, 8, noise=1.0, tag="e")
    result = um.legal_sweep(
        {"a": um.Attacker(enrol, test)}, counts=[10, 25], lengths=[1], **OPTIONS
    )
    assert result.curves["a", "singling_out", 1].counts.tolist() == [10]
    assert any("too few speakers for 25, left out" in w for w in result.warnings)
    with pytest.raises(um.InputError, match="at most the 20 speakers"):
        um.legal_sweep({"a": um.Attacker(enrol, test)}, counts=[31], lengths=[1], **OPTIONS)


def test_usual_counts_and_lengths():
    assert default_counts(22_024) == (
        20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 22_024,
    )  # fmt: skip
    assert default_counts(7) == (7,)
    result = um.legal_sweep(attackers(a=1.0), metrics=["linkability"], **OPTIONS)
    assert result.lengths == (1, 3)
    assert any("length 30" in w for w in result.warnings)


def test_backends_of_an_attacker_with_training_speech():
    one = attackers(informed=2.0)["informed"]
    train = population(30, 8, noise=2.0, tag="train", seed=5)
    trained = um.Attacker(one.enrol, one.test, train=train)
    found = um.with_backends({"informed": trained, "ignorant": one}, ["cosine", "wccn", "plda"])
    assert list(found) == ["informed (cosine)", "informed (wccn)", "informed (plda)", "ignorant"]
    result = um.legal_sweep(found, counts=[20], lengths=[1], metrics=["linkability"], **OPTIONS)
    used = [result.curves[name, "linkability", 1].backend for name in found]
    assert used == ["cosine", "wccn", "plda", "cosine"]


def test_progress_reaches_the_end():
    seen = []
    um.legal_sweep(
        attackers(a=1.0),
        counts=[10],
        lengths=[1],
        attributes=["gender"],
        progress=lambda done, total: seen.append((done, total)),
        **OPTIONS,
    )
    assert seen[-1] == (4, 4)
    assert [done for done, _ in seen] == [1, 2, 3, 4]


def test_bad_names():
    with pytest.raises(um.InputError, match="expected at least one"):
        um.legal_sweep({})
    with pytest.raises(um.InputError, match="metric: expected one of singling_out"):
        um.legal_sweep(attackers(a=1.0), metrics=["eer"])
    with pytest.raises(um.InputError, match="attacker: expected one of a, found b"):
        um.legal_sweep(attackers(a=1.0), asked="b")


def save(path, embeddings):
    np.savez(
        path,
        embeddings=embeddings.vectors,
        speaker_ids=embeddings.speakers.to_series().to_numpy().astype(str),
        utt_ids=embeddings.utterances.to_series().to_numpy().astype(str),
        gender=embeddings.columns["gender"].to_series().to_numpy().astype(str),
    )


def test_config(tmp_path):
    both = attackers(original=0.5, informed=2.0)
    for name, attacker in both.items():
        save(tmp_path / f"{name}-e.npz", attacker.enrol)
        save(tmp_path / f"{name}-t.npz", attacker.test)
    path = tmp_path / "legal.toml"
    path.write_text(
        "counts = [5, 20]\nlengths = [1]\ndraws = 2\nfolds = 4\nreplicates = 50\n"
        'backends = ["cosine", "plda"]\n'
        "attributes = { gender = [] }\n"
        '[attackers.original]\nenrol = "original-e.npz"\ntest = "original-t.npz"\n'
        '[attackers.informed]\nenrol = "informed-e.npz"\ntest = "informed-t.npz"\n'
        'train = "informed-e.npz"\n'
    )
    result = um.legal_from_config(um.read_legal_config(path))
    assert result.attackers == ("original", "informed (cosine)", "informed (plda)")
    assert result.original == "original"
    direct = um.linkability(
        both["informed"].enrol, both["informed"].test, counts=[5, 20], replicates=50
    )
    curve = result.curves["informed (cosine)", "linkability", 1]
    assert curve.value == pytest.approx(direct.value)
    assert len(result.sources) == 4


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("counts = [", "expected TOML"),
        ("counts = [5]", "attackers: Field required"),
        ('what = 1\n[attackers.a]\nenrol = "e"\ntest = "t"', "what: Extra inputs"),
        ('[attackers.a]\nenrol = "e"', "attackers.a.test: Field required"),
    ],
)
def test_bad_config(tmp_path, text, match):
    path = tmp_path / "legal.toml"
    path.write_text(text)
    with pytest.raises(um.InputError, match=match):
        um.read_legal_config(path)


def test_missing_config_and_training(tmp_path):
    with pytest.raises(um.InputError, match="cannot be read"):
        um.read_legal_config(tmp_path / "none.toml")
    files = {"a": {"enrol": "e.npz", "test": "t.npz"}}
    with pytest.raises(um.InputError, match="back-end: expected cosine, wccn, plda"):
        um.legal_from_config(um.LegalConfig(attackers=files, backends=["lda"]))


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the real embeddings")
def test_real_voices_are_linked_and_singled_out():
    voices = um.read_embeddings(SHARED / "audiomnist_1200_campplus192.npz")
    first = np.arange(len(voices)) % 20 < 5
    enrol, test = voices.select(first), voices.select(~first)
    linked = um.linkability(enrol, test, counts=[20, 60])
    assert linked.value.min() > 0.9
    isolated = um.singling_out(enrol, test, counts=[20, 60], draws=2, enrol_length=5)
    assert isolated.value.min() > 0.8
    assert isolated.left_out == 0
