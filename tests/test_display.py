"""Results show themselves: readable, as a table in a notebook, as a frame, item by item."""

import numpy as np
import pytest

import unmask as um


def voices(seed, *, tag="", noise=1.0):
    means = np.random.default_rng(0).normal(size=(12, 16))
    vectors = np.repeat(means, 4, 0) + noise * np.random.default_rng(seed).normal(size=(48, 16))
    speakers = [f"s{k:02d}" for k in range(12) for _ in range(4)]
    return um.Embeddings(vectors, speakers, [f"{tag}{row:02d}" for row in range(48)])


ORIGINAL, PROTECTED, OTHER = voices(1), voices(2, noise=2.0), voices(2, tag="x", noise=2.0)


def results():
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(1, 1, 50), rng.normal(0, 1, 80)
    yield um.evaluate(um.Scores.from_arrays(target, nontarget), replicates=20)
    yield um.pseudonymisation(ORIGINAL, PROTECTED, replicates=20)
    yield um.safeguards(ORIGINAL, {"x": PROTECTED}, replicates=20)
    yield um.linkability(ORIGINAL, OTHER, counts=[5])
    yield um.singling_out(ORIGINAL, OTHER, counts=[5])
    yield um.legal({"ignorant": um.Attacker(ORIGINAL, OTHER)}, counts=[5], lengths=[1])
    yield um.worst_case(ORIGINAL, [0.1, 0.5], counts=[1, 5])
    yield um.cp_map(target, nontarget)


def test_a_result_is_a_table():
    for result in results():
        rows = result.rows()
        assert rows
        frame = result.to_polars()
        assert frame.height == len(rows)
        assert {"metric", "value", "low", "high"} <= set(frame.columns)
        shown = repr(result)
        assert shown.splitlines()[0] == type(result).__name__
        assert "array(" not in shown
        assert result._repr_html_().count("<tr>") == 1 + len(rows)


def test_numbers_by_name():
    result = um.pseudonymisation(ORIGINAL, PROTECTED, replicates=20)
    assert result["deid"] == result.estimates[0]
    with pytest.raises(KeyError, match=r"expected one of deid, .* found eer"):
        result["eer"]
    table = um.safeguards(ORIGINAL, {"x": PROTECTED}, replicates=20)
    assert table["x"]["deid"].value == result["deid"].value
    with pytest.raises(KeyError, match="expected one of x, found y"):
        table["y"]
    sweep = um.legal({"ignorant": um.Attacker(ORIGINAL, OTHER)}, counts=[5], lengths=[1])
    assert sweep["ignorant", "linkability", 1]["linkability"].value == pytest.approx(
        um.linkability(ORIGINAL, OTHER, counts=[5])["linkability"].value
    )


def test_a_figure_draws_itself_with_title_and_caption():
    sweep = um.legal({"ignorant": um.Attacker(ORIGINAL, OTHER)}, counts=[2, 5], lengths=[1])
    figure = um.report.figures_of(sweep)[0]
    drawn = figure._repr_svg_()
    assert drawn.startswith("<svg")
    assert figure.title.split()[0] in drawn
