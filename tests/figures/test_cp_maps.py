from __future__ import annotations

import numpy as np
import pytest

import unmask as um
from unmask.figures import NARROW, save
from unmask.figures.cp_cells import kept, panel_for
from unmask.figures.cp_map import cp_map_figure
from unmask.figures.delta_cp_map import delta_cp_map_figure, reach
from unmask.figures.roadmap import roadmap_figure
from unmask.stress import contour


@pytest.fixture(scope="module")
def roadmap():
    rng = np.random.default_rng(2)
    truth = rng.normal(2.5, 1, 400), rng.normal(0, 1, 500)
    systems = {
        name: tuple(c + rng.normal(0, noise, c.size) for c in truth)
        for name, noise in (("first", 1.0), ("second <b>", 0.5), ("third", 0.0))
    }
    return um.cp_roadmap(systems, target_hardness=truth[0], nontarget_hardness=truth[1], grid=20)


def layers(figure):
    spec = figure.spec()
    panels = spec.get("concat") or [p for row in spec["vconcat"] for p in row["hconcat"]]
    return panels, [layer for panel in panels for layer in panel["layer"]]


def cells_of(figure):
    """Data of the first layer of each panel, read back from the specification."""
    spec = figure.spec()
    panels, _ = layers(figure)
    found = []
    for panel in panels:
        data = panel["layer"][0]["data"]
        text = data["values"] if "values" in data else spec["datasets"][data["name"]]
        lines = [line.split(",") for line in text.splitlines()[1:]]
        found.append({(int(i), int(j)): float(value) for i, j, value in lines})
    return found


def test_a_map_carries_the_value_of_every_well_defined_cell(roadmap):
    cp = roadmap.maps[0]
    (cells,) = cells_of(cp_map_figure({"first": cp}))
    assert len(cells) == cp.well_defined.sum()
    for (i, j), value in cells.items():
        assert value == pytest.approx(cp.values[j, i], rel=1e-5)
    assert (0, 0) not in cells


def test_small_multiples_share_a_fixed_scale_and_cells_of_whole_pixels(roadmap):
    figure = cp_map_figure({cp.system: cp for cp in roadmap.maps})
    panels, all_layers = layers(figure)
    assert len(panels) == 3
    scales = [x["encoding"]["color"]["scale"] for x in all_layers if "color" in x["encoding"]]
    assert all(scale == {"domain": [0, 1], "scheme": "viridis"} for scale in scales)
    assert all(panel["width"] % 20 == 0 for panel in panels)
    assert "Hatched" in figure.caption


def test_hover_tells_trials_and_value(roadmap):
    panels, _ = layers(cp_map_figure({"first": roadmap.maps[0]}))
    titles = [tip["title"] for tip in panels[0]["layer"][0]["encoding"]["tooltip"]]
    assert {"EER", "Target trials", "Nontarget trials"} <= set(titles)


def test_lines_and_marks(roadmap, tmp_path):
    cp = roadmap.maps[2]
    masks = np.ones(400, bool), np.ones(500, bool)
    rng = np.random.default_rng(0)
    position = um.cp_position(cp, rng.normal(2, 1, 400), rng.normal(0, 1, 500), *masks, name="all")
    figure = cp_map_figure(
        {"third": cp},
        contours={"third": [contour(cp, level) for level in (0.05, 0.5, 2.0)]},
        positions={"third": [position]},
    )
    assert "White lines" in figure.caption
    assert "Marks" in figure.caption
    assert save(figure, tmp_path / "map.png").stat().st_size > 10_000


def test_delta_map_is_centred_at_zero(roadmap):
    figure = delta_cp_map_figure(roadmap.deltas)
    _, all_layers = layers(figure)
    scale = next(x["encoding"]["color"]["scale"] for x in all_layers if "color" in x["encoding"])
    assert scale["domain"][0] == -scale["domain"][1]
    assert scale["domainMid"] == 0
    assert f"wins {100 * roadmap.deltas[0].win:.1f} %" in figure.caption


def test_a_loss_without_bound_is_drawn(tmp_path):
    perfect = um.cp_map(np.arange(100.0) + 200, np.arange(100.0), grid=3)
    poor = um.cp_map(np.arange(100.0), np.arange(100.0) + 50, grid=3)
    delta = um.delta_cp_map(perfect, poor)
    assert np.isneginf(delta.rcr).all()
    assert reach([delta]) == 1.0
    figure = delta_cp_map_figure([delta], width=NARROW)
    assert set(cells_of(figure)[0].values()) == {-1e9}
    assert save(figure, tmp_path / "delta.svg").stat().st_size > 1000


def test_reach_follows_the_largest_change():
    base = um.cp_map(np.arange(100.0), np.arange(100.0), grid=2)
    assert reach([um.delta_cp_map(base, base)]) == 0.1


def test_roadmap_shows_every_map_and_step(roadmap, tmp_path):
    figure = roadmap_figure(roadmap)
    panels, _ = layers(figure)
    assert len(panels) == 5
    assert "first → second <b>" in figure.caption
    drawn = save(figure, tmp_path / "roadmap.svg").read_text(encoding="utf-8")
    assert "second <b>" not in drawn
    assert "second &lt;b&gt;" in drawn


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
    panel = panel_for(cp, side=side)
    assert (panel.step, panel.width) == (step, width)
    drawn = kept(grid, step)
    assert drawn[-1] == grid - 1
    assert width % drawn.size == 0


def test_thinning_is_said(roadmap):
    fine = um.cp_map(np.arange(900.0), np.arange(900.0), grid=300)
    assert "One cell in 3" in cp_map_figure({"fine": fine}).caption


def test_nothing_to_draw_is_refused(roadmap):
    with pytest.raises(um.InputError, match="at least one system"):
        cp_map_figure({})
    with pytest.raises(um.InputError, match="at least one comparison"):
        delta_cp_map_figure([])
    with pytest.raises(um.InputError, match="at least two systems"):
        roadmap_figure(um.CpRoadmap(roadmap.maps[:1], ()))


def test_a_map_without_any_well_defined_cell_is_all_hatched(tmp_path):
    cp = um.cp_map(np.arange(9.0), np.arange(9.0), grid=3)
    assert save(cp_map_figure({"tiny": cp}), tmp_path / "tiny.png").stat().st_size > 1000
