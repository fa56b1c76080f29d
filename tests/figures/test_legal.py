from __future__ import annotations

import dataclasses
from functools import partial

import pytest
from tests.helpers.populations import population

import unmask as um
from unmask import figures
from unmask.figures import RiskLine, layout, risk_comparison, save
from unmask.figures.legal import (
    count_ticks,
    legal_figures,
    legal_panel,
    rank_histograms,
    speaker_risks,
)


@pytest.fixture(scope="module")
def sweep():
    made = partial(population, 30, 6, dimension=12)
    attackers = {
        name: um.Attacker(made(noise=noise, tag="e"), made(noise=noise, tag="t"))
        for name, noise in (("original", 0.3), ("ignorant", 5.0), ("informed", 1.5))
    }
    return um.assess_attackers(
        attackers,
        counts=[5, 20, 30],
        lengths=[1, 3],
        protocol=um.LegalProtocol(draws=1, folds=2),
        replicates=20,
    )


def values(spec):
    """All data rows of a specification."""
    return [row for rows in spec["datasets"].values() for row in rows]


def test_the_panel_carries_the_numbers(sweep, sentences):
    figure = legal_panel(sweep)
    spec = figure.spec()
    assert len(spec["concat"]) == 6
    rows = [r for r in values(spec) if r.get("attacker") == "informed" and r.get("low") is not None]
    curve = sweep.shown("informed", "linkability", 3)
    shown = {(r["count"], r["value"]) for r in rows}
    for count, value in zip(curve.counts, curve.value, strict=True):
        assert any(c == count and v == pytest.approx(value, rel=1e-5) for c, v in shown)
    chance = [r for r in values(spec) if r.get("attacker") == "chance"]
    levels = {r["value"] for r in chance if r["count"] == 20}
    assert {0.05, 0.5} < levels
    assert all(0.25 < one < 0.367879 for one in levels - {0.05, 0.5})
    assert 0.367879 in {r.get("value") for r in values(spec)}
    sentences.check(figure.caption)


def test_ticks_stand_at_data_and_at_both_ends():
    assert count_ticks([20, 50, 60], 170) == [20, 50, 60]
    assert count_ticks([20, 58, 60], 170) == [20, 60]
    assert count_ticks([20], 170) == [20]
    many = count_ticks([20, 50, 100, 500, 1_000, 5_000, 10_000, 20_000, 22_024], 170)
    assert many[0] == 20
    assert many[-1] == 22_024
    assert 3 <= len(many) <= 6


def test_speakers_and_ranks(sweep):
    curves = {n: sweep.curves[n, "linkability", 1] for n in sweep.attackers}
    spec = speaker_risks(curves, original="original").spec()
    risks = [r["risk"] for r in values(spec) if r.get("attacker") == "ignorant"]
    assert risks == sorted(risks, reverse=True)
    assert len(risks) == 30
    ranks = {n: sweep.ranks[n, 1] for n in sweep.attackers}
    figure = rank_histograms(ranks)
    assert "1/N" in figure.caption
    assert any(
        r.get("probability") == pytest.approx(1 / 30, rel=1e-5) for r in values(figure.spec())
    )


@pytest.mark.parametrize("width", ["column", "page"])
def test_all_are_drawn(sweep, tmp_path, width):
    with layout(width=width):
        drawn = legal_figures(sweep)
    names = ["legal_panel", "speaker_risks_singling_out", "speaker_risks_linkability"]
    assert [figure.name for figure in drawn] == [*names, "rank_histograms"]
    for figure in drawn[:1]:
        save(figure, tmp_path / f"{figure.name}.svg")
        assert (tmp_path / f"{figure.name}.svg").stat().st_size > 2_000


def test_risks_of_speakers_are_drawn_at_the_length_of_the_largest_risk_or_at_one_chosen(
    sweep, sentences
):
    worst = sweep.worst("linkability").length
    (other,) = set(sweep.lengths) - {worst}

    def captions(**options):
        return {figure.name: figure.caption for figure in legal_figures(sweep, **options)}

    assert captions() == captions(length=worst) | {
        "speaker_risks_singling_out": captions(length=sweep.worst("singling_out").length)[
            "speaker_risks_singling_out"
        ]
    }
    assert captions(length=other)["rank_histograms"] != captions()["rank_histograms"]
    with pytest.raises(um.InputError, match=r"length: .* 1, 3, .* 7") as error:
        legal_figures(sweep, length=7)
    sentences.check(str(error.value))


def test_a_chart_that_was_removed_says_what_to_use(sentences):
    with pytest.raises(AttributeError, match=r"roc_hull .* det") as error:
        getattr(figures, "roc_hull")  # noqa: B009
    sentences.check(str(error.value))


def test_nothing_to_draw_is_refused():
    with pytest.raises(um.InputError, match="found none"):
        rank_histograms({})
    with pytest.raises(um.InputError, match="found none"):
        speaker_risks({})


def test_panels_that_lack_a_safeguard_have_the_colours_of_all(sweep):
    curve = next(iter(sweep.curves.values()))
    lines = [RiskLine(name, "informed", "linkability", 1, curve) for name in ("B2", "B1")]
    lines.append(RiskLine("B2", "informed", "linkability", 3, curve))
    spec = risk_comparison(lines, colours={"B1": "#111111", "B2": "#222222"}).spec()

    def domains(node):
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            if key == "color" and "scale" in child:
                yield tuple(child["scale"]["domain"])
            elif isinstance(child, dict | list) and key != "datasets":
                yield from domains(child)

    assert set(domains(spec)) == {("B2", "B1")}


def test_chance_reaches_as_far_as_the_longest_line(sweep):
    long = sweep.curves["informed", "linkability", 1]
    cut = {name: getattr(long, name)[:1] for name in ("counts", "value", "low", "high", "chance")}
    lines = [
        RiskLine("B1", "informed", "linkability", 1, dataclasses.replace(long, **cut)),
        RiskLine("B2", "informed", "linkability", 1, long),
    ]
    spec = risk_comparison(lines, colours={"B1": "#111111", "B2": "#222222"}).spec()
    chance = [row for row in values(spec) if row.keys() == {"count", "value"}]
    assert [row["count"] for row in chance] == [5, 20, 30]
