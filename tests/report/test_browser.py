"""The report in a real browser; skipped with a reason where there is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unmask.report.assessment import assess
from unmask.report.config import load_config
from unmask.report.html import render_html

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = Path("/usr/bin/chromium")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DRAWN = "[...document.querySelectorAll('figure.chart')].every((f) => f.querySelector('canvas'))"
CHECKS = (Path(__file__).parent / "accessibility.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    from report_study import make

    folder = make(tmp_path_factory.mktemp("browser"))
    changes = ['frameworks=["legal", "similarity", "zebra"]', "legal.lengths=[1]"]
    page = folder / "report.html"
    page.write_text(
        render_html(assess(load_config(folder / "study.toml", changes=changes), folder / "out")),
        encoding="utf-8",
    )
    return page


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def opened(browser, report):
    """The page on a wide screen, with all it said and asked for."""
    told: list[str] = []
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.on("console", lambda message: told.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: told.append(f"error: {error}"))
    page.on("request", lambda request: told.append(f"request: {request.url}"))
    page.goto(report.as_uri())
    page.wait_for_function(DRAWN, timeout=60_000)
    yield page, told
    page.close()


def test_no_error_and_no_request(opened, report):
    _, told = opened
    assert [line for line in told if line != f"request: {report.as_uri()}"] == []


def test_charts_are_really_drawn(opened):
    page, _ = opened
    colours = page.evaluate(
        """() => [...document.querySelectorAll('figure.chart canvas')].map((canvas) => {
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          const seen = new Set();
          for (let i = 0; i < data.length; i += 4)
            seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
          return seen.size; })"""
    )
    assert len(colours) >= 8
    assert min(colours) > 10


def test_pointing_at_a_matrix_cell_names_the_speakers(opened):
    page, _ = opened
    canvas = page.locator("#similarity_1 canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    tip = page.locator("#vg-tooltip-element")
    for step in range(2, 9):
        page.mouse.move(box["x"] + box["width"] * step / 12, box["y"] + box["height"] * step / 12)
        page.wait_for_timeout(120)
        if tip.count() and tip.is_visible():
            break
    text = tip.inner_text()
    assert re.search(r"speaker-\d\d|Ada & Bob|Ümit|<script>", text)


def test_tables_sort(opened):
    page, _ = opened
    table = page.locator("#legal table.sortable").first
    head = table.locator("th.n button").last
    values = """(table) => [...table.tBodies[0].rows].map(
      (row) => Number(row.cells[row.cells.length - 1].dataset.sort))"""
    head.click()
    up = table.evaluate(values)
    head.click()
    down = table.evaluate(values)
    assert up == sorted(up)
    assert down == up[::-1]
    assert table.locator("th[aria-sort=descending]").count() == 1


def test_a_chart_zooms_and_goes_back(opened):
    page, _ = opened
    canvas = page.locator("#zebra_profiles canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    before = canvas.evaluate("(c) => c.toDataURL()")
    page.mouse.move(box["x"] + 150, box["y"] + 100)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    page.wait_for_timeout(300)
    assert canvas.evaluate("(c) => c.toDataURL()") != before
    page.mouse.dblclick(box["x"] + 150, box["y"] + 100)
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.wait_for_timeout(300)
    assert canvas.evaluate("(c) => c.toDataURL()") == before


def test_another_system_can_be_chosen(opened):
    page, _ = opened
    choice = page.locator("#legal .choice")
    shown = choice.locator(".pane:not(.off)")
    before = shown.get_attribute("data-pane")
    choice.locator("button[aria-pressed=false]").first.click()
    assert shown.count() == 1
    assert shown.get_attribute("data-pane") != before


def test_no_serious_accessibility_fault(opened):
    page, _ = opened
    assert page.evaluate(CHECKS) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_and_width_on_a_phone(browser, report, scheme):
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page.goto(report.as_uri())
    page.wait_for_function(DRAWN, timeout=60_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(CHECKS) == []
    page.close()


def test_print_shows_everything_and_cuts_no_chart(browser, report):
    page = browser.new_page(viewport={"width": 700, "height": 900})
    page.goto(report.as_uri())
    page.wait_for_function(DRAWN, timeout=60_000)
    page.emulate_media(media="print")
    faults = page.evaluate(
        """() => {
          const told = [];
          const tall = (297 - 34) / 25.4 * 96;
          document.querySelectorAll('figure.chart').forEach((figure) => {
            const box = figure.querySelector('canvas').getBoundingClientRect();
            const room = figure.querySelector('.drawing').getBoundingClientRect();
            if (box.height < 20) told.push(`${figure.id} is hidden`);
            if (box.height > tall) told.push(`${figure.id} is taller than a page`);
            if (box.right > room.right + 1) told.push(`${figure.id} is cut`);
            if (getComputedStyle(figure).breakInside !== 'avoid') told.push(`${figure.id} breaks`);
          });
          if (getComputedStyle(document.querySelector('nav.side')).display !== 'none')
            told.push('the side list is printed');
          return told; }"""
    )
    assert faults == []
    document = page.pdf(prefer_css_page_size=True, print_background=True)
    assert len(re.findall(rb"/Type\s*/Page\b", document)) >= 3
    page.close()
