"""The report in a real browser; skipped with a reason where there is none."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from unmask.assessment.toml import load_config
from unmask.report.assessment import run_assessment as assess
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
OPEN = """() => {
  document.querySelectorAll('main details').forEach((part) => { part.open = true; });
  document.querySelectorAll('.pane.off').forEach((pane) => pane.classList.remove('off'));
}"""
DRAWN = """() => {
  const left = [...document.querySelectorAll('figure.chart')].filter(
    (f) => !f.querySelector('[data-drawn] canvas'));
  left[0]?.scrollIntoView({ behavior: 'instant' });
  return left.length === 0; }"""
AXE = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"
SCREENS = 12
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
        result = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield result
        result.close()


@pytest.fixture(scope="module")
def opened(browser, report):
    """The page on a wide screen, with all it said and asked for."""
    text: list[str] = []
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.on("console", lambda message: text.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: text.append(f"error: {error}"))
    page.on("request", lambda request: text.append(f"request: {request.url}"))
    page.goto(report.as_uri())
    page.evaluate(OPEN)
    page.wait_for_function(DRAWN, timeout=60_000)
    yield page, text
    page.close()


def test_no_error_and_no_request(opened, report):
    _, text = opened
    assert [line for line in text if line != f"request: {report.as_uri()}"] == []


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


def test_the_first_paint_is_quick(browser, report):
    painted = []
    for _ in range(2):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(report.as_uri())
        page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
        painted.append(
            page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        )
        page.close()
    assert min(painted) < 1000


def test_a_report_is_a_few_screens_with_the_rest_folded(browser, report):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(report.as_uri())
    seen = "(f) => f.checkVisibility() && !f.querySelector('[data-drawn] canvas')"
    page.wait_for_function(
        f"""() => {{
          const left = [...document.querySelectorAll('figure.chart')].filter({seen});
          left[0]?.scrollIntoView({{ behavior: 'instant' }});
          return left.length === 0; }}""",
        timeout=60_000,
    )
    assert page.evaluate("document.documentElement.scrollHeight") < SCREENS * 900
    page.close()


def test_another_system_can_be_chosen(browser, report):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(report.as_uri())
    choice = page.locator("#similarity .choice").first
    shown = choice.locator(".pane:not(.off)")
    before = shown.get_attribute("data-pane")
    choice.locator("button[aria-pressed=false]").first.click()
    assert shown.count() == 1
    assert shown.get_attribute("data-pane") != before
    shown.locator("[data-drawn] canvas").wait_for()
    page.close()


def test_no_accessibility_fault_of_our_own_list(opened):
    page, _ = opened
    if page.evaluate(CHECKS):  # a theme or a chart may be on its way
        page.wait_for_timeout(2_000)
    assert page.evaluate(CHECKS) == []


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make test installs it")
def test_axe_finds_nothing_serious(browser, report):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(report.as_uri())
    page.evaluate(OPEN)
    page.evaluate(
        "document.querySelectorAll('tbody tr:nth-child(n + 4)').forEach((r) => r.remove())"
    )
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        result = page.evaluate(
            """async () => (await axe.run()).violations
              .filter((one) => ['serious', 'critical'].includes(one.impact))
              .map((one) => `${one.id}: ${one.nodes[0].target} ${one.nodes[0].failureSummary}`)"""
        )
        assert result == [], scheme
    page.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_link_leads_to_its_section_however_charts_above_it_grow(browser, report, width):
    page = browser.new_page(viewport={"width": width, "height": 700})
    page.goto(report.as_uri())
    if width < 1200:
        page.locator("nav .menu summary").click()
    page.locator("nav.side a[href='#similarity']").click()
    seen = "(f) => f.checkVisibility() && !f.querySelector('[data-drawn] canvas')"
    page.wait_for_function(
        f"![...document.querySelectorAll('figure.chart')].some({seen})", timeout=60_000
    )
    page.wait_for_timeout(1_000)
    top = "document.getElementById('similarity').getBoundingClientRect().top"
    assert 0 <= page.evaluate(top) <= 60
    page.mouse.wheel(0, 400)  # a reader who scrolls is left alone
    page.wait_for_function(f"{top} < -300")
    page.evaluate("document.querySelector('#summary').style.paddingBottom = '500px'")
    page.wait_for_timeout(300)
    assert abs(page.evaluate(top)) > 100
    page.locator("nav.side a[href='#words']").evaluate("(link) => link.click()")
    assert page.locator("#words dl").is_visible()
    page.close()


def test_a_safeguard_has_the_colour_of_the_charts_by_night(browser, report):
    page = browser.new_page(color_scheme="dark")
    page.goto(report.as_uri())
    dots = page.locator(".line-of h3 .dot")
    for index in range(dots.count()):
        style = dots.nth(index).evaluate_handle("(dot) => getComputedStyle(dot)")
        colour = style.evaluate("(one) => one.getPropertyValue('--night').trim()")
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        shown = style.evaluate("(one) => one.backgroundColor")
        assert shown == f"rgb({red}, {green}, {blue})"
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_width_and_menu_on_a_phone(browser, report, scheme):
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page.goto(report.as_uri())
    menu = page.locator("nav .menu")
    assert menu.get_attribute("open") is None
    menu.locator("summary").click()
    menu.locator("a").last.click()
    assert menu.get_attribute("open") is None
    page.evaluate(OPEN)
    page.wait_for_function(DRAWN, timeout=60_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(CHECKS) == []
    if scheme == "dark":
        light = page.evaluate(
            """() => [...document.querySelectorAll('figure.chart canvas')].filter((canvas) => {
              const [r, g, b] = canvas.getContext('2d').getImageData(1, 1, 1, 1).data;
              return r + g + b > 300; }).length"""
        )
        assert light == 0
    page.close()


def test_print_is_short_and_cuts_no_chart(browser, report, sentences):
    """What is folded stays folded, and a line says how to read it."""
    page = browser.new_page(viewport={"width": 700, "height": 900})
    page.goto(report.as_uri())
    drawn = "[...document.querySelectorAll('figure.chart')].every((f) => f.querySelector('canvas'))"
    page.wait_for_function(drawn, timeout=60_000)
    page.emulate_media(media="print")
    line = page.locator("header .on-paper")
    assert line.is_visible()
    sentences.check(line.inner_text())
    bad = page.evaluate(
        """() => {
          const bad = [];
          const tall = (297 - 34) / 25.4 * 96;
          document.querySelectorAll('figure.chart').forEach((figure) => {
            const box = figure.querySelector('canvas').getBoundingClientRect();
            const room = figure.querySelector('.drawing').getBoundingClientRect();
            if (!figure.checkVisibility()) return;
            if (box.height < 20) bad.push(`${figure.id} is hidden`);
            if (box.height > tall) bad.push(`${figure.id} is taller than a page`);
            if (box.right > room.right + 1) bad.push(`${figure.id} is cut`);
            if (getComputedStyle(figure).breakInside !== 'avoid') bad.push(`${figure.id} breaks`);
          });
          if (getComputedStyle(document.querySelector('nav.side')).display !== 'none')
            bad.push('the side list is printed');
          return bad; }"""
    )
    assert bad == []
    document = page.pdf(prefer_css_page_size=True, print_background=True)
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", document)) <= 24
    page.close()
