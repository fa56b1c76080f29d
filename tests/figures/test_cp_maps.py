from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.helpers import cpmap

import unmask as um
from unmask.estimate import Interval
from unmask.figures import layout, save
from unmask.figures.cp_maps import (
    Panel,
    Shades,
    cp_map_figure,
    delta_cp_map_figure,
    reach,
    roadmap_figure,
)
from unmask.figures.detection import trial_bias_figure
from unmask.stress import CpMetric, DeltaIntervals, contour, trial_bias


@pytest.fixture(scope="module")
def roadmap():
    rng = np.random.default_rng(2)
    truth = rng.normal(2.5, 1, 400), rng.normal(0, 1, 500)
    systems = {
        name: tuple(c + rng.normal(0, noise, c.size) for c in truth)
        for name, noise in (("first", 1.0), ("second <b>", 0.5), ("third", 0.0))
    }
    return cpmap.roadmap(systems, target_hardness=truth[0], nontarget_hardness=truth[1], grid=20)


def layers(figure):
    spec = figure.spec()
    panels = spec.get("concat") or spec["vconcat"]
    return panels, [layer for panel in panels for layer in panel["layer"]]


def cells_of(figure):
    """Data of the first layer of each panel, read back from the specification."""
    spec = figure.spec()
    panels, _ = layers(figure)
    cells = []
    for panel in panels:
        data = panel["layer"][0]["data"]
        text = data["values"] if "values" in data else spec["datasets"][data["name"]]
        lines = [line.split(",") for line in text.splitlines()[1:]]
        cells.append({(int(i), int(j)): float(value) for i, j, value in lines})
    return cells


def test_a_map_carries_the_value_of_every_well_defined_cell(roadmap):
    cp = roadmap.maps[0]
    (cells,) = cells_of(cp_map_figure({"first": cp}))
    assert len(cells) == cp.well_defined.sum()
    for (i, j), value in cells.items():
        assert value == pytest.approx(cp.values[j, i], rel=1e-5)
    assert (0, 0) not in cells


def test_small_multiples_share_a_scale_of_the_values_shown(roadmap, sentences):
    figure = cp_map_figure({cp.system: cp for cp in roadmap.maps})
    panels, all_layers = layers(figure)
    assert len(panels) == 3
    scales = [x["encoding"]["color"]["scale"] for x in all_layers if "color" in x["encoding"]]
    assert len(scales) == 3
    assert all(scale == scales[0] for scale in scales)
    values = np.concatenate([cp.values[cp.well_defined] for cp in roadmap.maps])
    low, high = scales[0]["domain"]
    assert 0.9 * values[values > 0].min() <= low <= values[values > 0].min()
    assert values.max() <= high <= 1.1 * values.max()
    assert scales[0]["type"] == "linear"
    assert all(panel["width"] % 20 == 0 for panel in panels)
    assert "Hatched" in figure.caption
    sentences.check(figure.caption)


@pytest.mark.parametrize(
    ("values", "expected", "ticks"),
    [
        ([0.021, 0.4], Shades(0.021, 0.4, log=True), [0.05, 0.1, 0.2]),
        ([0.0, 0.002, 0.61], Shades(0.002, 0.61, log=True, zeros=True), [0.002, 0.005, 0.01]),
        ([0.113, 0.387], Shades(0.11, 0.39, log=False), [0.2, 0.3]),
        ([0.0, 0.5], Shades(0.0, 0.5, log=False), [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]),
        ([0.3, 0.3], Shades(0.0, 0.3, log=False), [0.0, 0.1, 0.2, 0.3]),
        ([0.0], Shades(0.0, 1.0, log=False), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ([], Shades(0.0, 1.0, log=False), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
    ],
)
def test_colours_follow_the_values(values, expected, ticks):
    shades = Shades.of(np.array(values))
    assert shades == expected
    assert set(ticks) <= set(shades.ticks)
    assert all(shades.low <= tick <= shades.high for tick in shades.ticks)
    assert (shades.share(shades.low), shades.share(shades.high)) == pytest.approx((0, 1))


def test_hover_tells_trials_and_value(roadmap):
    panels, _ = layers(cp_map_figure({"first": roadmap.maps[0]}))
    titles = [tip["title"] for tip in panels[0]["layer"][0]["encoding"]["tooltip"]]
    assert {"EER", "Target trials", "Nontarget trials"} <= set(titles)


def test_lines_and_marks(roadmap, tmp_path):
    cp = roadmap.maps[2]
    masks = np.ones(400, bool), np.ones(500, bool)
    rng = np.random.default_rng(0)
    position = um.stress.cp_position(
        cp, rng.normal(2, 1, 400), rng.normal(0, 1, 500), *masks, name="all"
    )
    figure = cp_map_figure(
        {"third": cp},
        contours={"third": [contour(cp, level) for level in (0.05, 0.5, 2.0)]},
        positions={"third": [position]},
    )
    assert "Lines: where" in figure.caption
    assert "Marks" in figure.caption
    assert save(figure, tmp_path / "map.png").stat().st_size > 10_000


def test_delta_map_is_centred_at_zero(roadmap):
    figure = delta_cp_map_figure(roadmap.deltas)
    _, all_layers = layers(figure)
    scale = next(x["encoding"]["color"]["scale"] for x in all_layers if "color" in x["encoding"])
    assert scale["domain"][0] == -scale["domain"][1]
    assert scale["domainMid"] == 0
    assert f"win {100 * roadmap.deltas[0].win:.1f} %" in figure.caption


def test_intervals_stand_in_the_headings(roadmap):
    made = Interval(0.5, 0.999, 0.95, "speaker,bands of cells", 100, 0)
    intervals = DeltaIntervals(made, made, made, (20, 20))
    delta = replace(roadmap.deltas[0], intervals=intervals)
    for figure in (
        delta_cp_map_figure([delta]),
        roadmap_figure(um.stress.CpRoadmap(roadmap.maps[:2], (delta,))),
    ):
        words = json.dumps(figure.spec(), ensure_ascii=False)
        for name in ("win", "tie", "lose"):
            assert f"{name} {100 * getattr(delta, name):.1f} [50.0, 99.9] %" in words


def test_two_metrics_stand_side_by_side(roadmap):
    by_cost = replace(roadmap.deltas[0], metric=CpMetric("min_dcf"))
    figure = delta_cp_map_figure([roadmap.deltas[0], by_cost])
    spec = figure.spec()
    assert spec["columns"] == 2
    assert "minDCF" in json.dumps(spec)


def test_a_loss_without_bound_is_drawn_and_marked(tmp_path, sentences):
    order = {"target_hardness": np.arange(100.0), "nontarget_hardness": np.arange(100.0)}
    perfect = um.cp_map(np.arange(100.0) + 200, np.arange(100.0), grid=3, **order)
    poor = um.cp_map(np.arange(100.0), np.arange(100.0) + 50, grid=3, **order)
    delta = um.delta_cp_map(perfect, poor)
    assert np.isneginf(delta.rcr).all()
    assert reach([delta]) == 5.0
    with layout(width="column"):
        figure = delta_cp_map_figure([delta])
    assert set(cells_of(figure)[0].values()) == {-1e9}
    assert "Dots: 9 cells" in figure.caption
    assert " ±500 %" in figure.caption
    sentences.check(figure.caption)
    marks = [layer["mark"]["type"] for layer in layers(figure)[1]]
    assert marks.count("circle") == 1
    assert save(figure, tmp_path / "delta.svg").stat().st_size > 1000


def test_reach_holds_all_but_a_hundredth_of_the_cells():
    base = um.cp_map(np.arange(400.0), np.arange(400.0), grid=10)
    delta = um.delta_cp_map(base, base)
    assert reach([delta]) == 0.05
    rcr = np.full((10, 10), -0.2)
    rcr[0, 0] = -40.0
    far = replace(delta, rcr=rcr)
    assert reach([far]) == 0.25
    assert "Dots: 1 cells" in delta_cp_map_figure([far]).caption
    rcr[0, 1] = -0.8
    assert reach([replace(delta, rcr=rcr)]) == 1.0


def test_roadmap_shows_every_map_and_step(roadmap, tmp_path, sentences):
    figure = roadmap_figure(roadmap)
    panels, _ = layers(figure)
    assert len(panels) == 6
    assert len([p for p in panels if len(p["layer"]) > 1]) == 5
    assert "first → second <b>" in figure.caption
    assert not all(cp.well_defined.all() for cp in roadmap.maps)
    assert " 30 trials" in figure.caption
    sentences.check(figure.caption)
    drawn = save(figure, tmp_path / "roadmap.svg").read_text(encoding="utf-8")
    assert "second <b>" not in drawn
    assert "second &lt;b&gt;" in drawn


def test_a_branch_has_a_row_below_the_system_it_grew_from(roadmap, tmp_path):
    maps = {cp.system: cp for cp in roadmap.maps}
    deltas = [um.delta_cp_map(maps["first"], maps[name]) for name in ("second <b>", "third")]
    figure = roadmap_figure(um.stress.CpRoadmap(roadmap.maps, tuple(deltas)))
    panels, _ = layers(figure)
    assert figure.spec()["columns"] == 2
    assert len(panels) == 6
    assert "first → third" in json.dumps(figure.spec(), ensure_ascii=False)
    assert save(figure, tmp_path / "tree.png").stat().st_size > 10_000


def test_trial_bias_is_two_configs_on_one_axis(tmp_path, sentences):
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(3, 1, 4000), rng.normal(0, 1, 4000)
    hard = nontarget[nontarget > 0]
    configs = trial_bias({"cross-pairing": (target, nontarget), "deployment": (target, hard)})
    assert configs[0].eer == pytest.approx(0.0668, abs=0.01)  # Figure 3 of the paper
    assert configs[1].eer > configs[0].eer
    np.testing.assert_array_equal(configs[0].edges, configs[1].edges)
    width = np.diff(configs[0].edges)
    for config in configs:
        assert (config.target * width).sum() == pytest.approx(1)
        assert (config.nontarget * width).sum() == pytest.approx(1)
    figure = trial_bias_figure(configs)
    panels, all_layers = layers(figure)
    assert len(panels) == 2
    scales = [
        x["encoding"]["x"]["scale"]
        for x in all_layers
        if "y" in x["encoding"] and "scale" in x["encoding"]["x"]
    ]
    assert scales[0] == scales[1]
    assert save(figure, tmp_path / "bias.png").stat().st_size > 10_000
    with pytest.raises(um.InputError) as error:
        trial_bias({})
    sentences.check(str(error.value))
    same = trial_bias({"one": ([1.0, 1.0], [1.0])})
    assert same[0].edges[0] < 1 < same[0].edges[-1]


@pytest.mark.parametrize(
    ("grid", "side", "step", "width"),
    [
        (100, 400, 1, 400),
        (100, 151, 2, 150),
        (1000, 400, 10, 400),
        (7, 100, 1, 98),
        (250, 125, 6, 84),
    ],
)
def test_panels_have_cells_of_whole_pixels(grid, side, step, width):
    cp = um.cp_map(np.arange(2000.0), np.arange(2000.0), grid=grid)
    panel = Panel.of(cp, side=side)
    assert (panel.step, panel.width) == (step, width)
    for drawn in panel.drawn:
        assert drawn[-1] == grid - 1
        assert width % drawn.size == 0


def test_thinning_is_said(roadmap):
    fine = um.cp_map(np.arange(900.0), np.arange(900.0), grid=300)
    assert "One cell in 3" in cp_map_figure({"fine": fine}).caption


def test_nothing_to_draw_is_refused(roadmap, sentences):
    alone = um.stress.CpRoadmap(roadmap.maps[:1], ())
    for draw, nothing in (
        (cp_map_figure, {}),
        (delta_cp_map_figure, []),
        (roadmap_figure, alone),
        (trial_bias_figure, []),
    ):
        with pytest.raises(um.InputError) as error:
            draw(nothing)
        sentences.check(str(error.value))


def test_a_map_without_any_well_defined_cell_is_all_hatched(tmp_path):
    cp = um.cp_map(np.arange(9.0), np.arange(9.0), grid=3)
    assert save(cp_map_figure({"tiny": cp}), tmp_path / "tiny.png").stat().st_size > 1000
