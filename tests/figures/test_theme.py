from __future__ import annotations

import altair as alt
import numpy as np
import pytest
from hypothesis import given, strategies as st

import unmask.figures
from unmask.errors import InputError
from unmask.figures import Figure, layout, system_colours
from unmask.figures.draw import colours_for, panel_columns
from unmask.figures.figure import table
from unmask.figures.image import wrap
from unmask.figures.theme import CONFIG, ORIGINAL, PALETTE, shorten


def test_the_door_has_all_its_names_and_no_other():
    assert all(hasattr(unmask.figures, name) for name in unmask.figures.__all__)
    with pytest.raises(AttributeError, match="no attribute 'pie'"):
        _ = unmask.figures.pie


def test_original_is_grey_and_takes_no_colour_from_the_others():
    colours = system_colours(["B3", "original", "T10"], original="original")
    assert colours == {"B3": PALETTE[0], "original": ORIGINAL, "T10": PALETTE[1]}


def test_ten_systems_have_ten_colours():
    assert len(set(system_colours([f"s{i}" for i in range(10)]).values())) == 10


@given(st.lists(st.text(max_size=5), max_size=15), st.integers(0, 15))
def test_a_system_keeps_its_colour_when_systems_follow(names, cut):
    whole = system_colours(names)
    assert system_colours(names[:cut]).items() <= whole.items()


def test_a_missing_colour_is_told():
    with pytest.raises(InputError, match="none for 'B4'"):
        colours_for(["B3", "B4"], {"B3": "#000000"})


@given(st.text(min_size=1, max_size=80), st.integers(5, 40))
def test_shortened_names_keep_both_ends(name, limit):
    short = shorten(name, limit=limit)
    assert len(short) <= limit
    assert short[0] == name[0]
    assert short[-1] == name[-1]


@given(st.text(max_size=300), st.floats(60, 700))
def test_wrapping_loses_no_letter(text, width):
    lines = wrap(text, width=width, size=11)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_word_longer_than_the_line_is_broken():
    assert max(len(line) for line in wrap("x" * 300, width=110, size=11)) <= 20


def test_table_rounds_and_marks_what_json_cannot_hold():
    rows = table(a=np.array([1 / 3, np.inf, np.nan]), b="x", n=np.array([1, 2, 3])).values
    assert rows[0] == {"a": 0.333333, "b": "x", "n": 1}
    assert [row["a"] for row in rows[1:]] == [None, None]


def test_table_refuses_columns_of_different_length():
    with pytest.raises(InputError, match="one length"):
        table(a=[1, 2], b=[1, 2, 3])


def test_figure_lays_the_theme_on_any_chart():
    chart = alt.Chart(table(x=[1])).mark_point().encode(x="x:Q")
    for made in (chart, chart | chart, chart & chart, chart + chart):
        spec = Figure("a", "Title", "Caption", made).spec()
        assert spec["config"]["font"] == CONFIG["font"]
        assert spec["description"] == "Title. Caption"
    assert isinstance(chart.config, type(alt.Undefined))


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b", "x\n"])
def test_figure_names_are_file_names(name):
    with pytest.raises(InputError, match="figure name"):
        Figure(name, "t", "c", alt.Chart())


def test_panels_per_row():
    assert [panel_columns(n) for n in (1, 2, 3, 4, 8)] == [1, 2, 3, 2, 3]
    with layout(width="column"):
        assert panel_columns(8) == 1
    assert panel_columns(8) == 3
