from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import altair as alt
import pytest

from unmask.errors import InputError
from unmask.figures import (
    Figure,
    calibration_plot,
    det,
    ece_profile,
    javascript,
    layout,
    pav_map,
    save,
    save_all,
    score_histograms,
)
from unmask.figures.figure import table
from unmask.figures.image import script_json, typeset

EVIL = "</script><script>alert(1)</script>"


def simple(**words):
    chart = alt.Chart(table(x=[1, 2], system=EVIL)).mark_point().encode(x="x:Q", color="system:N")
    return Figure(
        **{"name": "a", "title": "A title", "caption": "A caption.", "chart": chart} | words
    )


def png_size(content):
    return int.from_bytes(content[16:20]), int.from_bytes(content[20:24])


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.inside = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        if tag in self.inside:
            while self.inside.pop() != tag:
                pass

    def handle_data(self, data):
        for tag in self.inside[-1:]:
            self.text[tag] = self.text.get(tag, "") + data


def test_every_chart_becomes_an_image(three, tmp_path):
    figures = [
        det(three.det),
        pav_map(three.pav),
        ece_profile(three.ece),
        score_histograms(three.histogram),
        calibration_plot(three.reliability),
    ]
    paths = save_all(figures, tmp_path / "new", formats=("png", "svg"))
    assert [p.name for p in paths[:2]] == ["det.png", "det.svg"]
    for figure, png, svg in zip(figures, paths[::2], paths[1::2], strict=True):
        content = png.read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        assert 3.4 * 200 < png_size(content)[0] < 7.3 * 200
        text = svg.read_text()
        assert figure.title in text
        assert figure.caption.split(";")[0][:30] in text
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == sorted(p.name for p in paths)


def test_svg_holds_all_words_escaped(tmp_path):
    words = "Read <b>this</b> & that. " * 20
    text = save(simple(title="Long " * 30, caption=words), tmp_path / "a.svg").read_text()
    lines = re.findall(r"<text[^>]*font-size=\"11\"[^>]*>(Read|[^<]*)</text>", text)
    assert "<b>" not in text
    assert text.count("Read &lt;b&gt;this&lt;/b&gt; &amp; that.") >= 20
    assert lines


def test_pdf(tmp_path):
    content = save(simple(), tmp_path / "a.pdf").read_bytes()
    assert content.startswith(b"%PDF-")


def test_json_is_a_specification_with_its_words(tmp_path):
    spec = json.loads(save(simple(), tmp_path / "a.json").read_text())
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert spec["title"] == {"text": "A title", "subtitle": ["A caption."]}
    alt.Chart.from_dict(spec)


def test_page_is_self_contained_and_names_are_data(tmp_path):
    figure = simple(title=f"Scores of {EVIL}", caption=f"System {EVIL} & others.")
    text = save(figure, tmp_path / "a.html").read_text()
    page = Page(text)
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == 2
    assert page.text["title"] == page.text["h1"] == figure.title
    assert page.text["figcaption"] == figure.caption
    assert dict(page.tags)["html"] == {"lang": "en"}
    assert not {"link", "iframe", "img", "object", "base"} & set(tags)
    assert not any({"src", "href", "srcset", "action"} & set(attrs) for _, attrs in page.tags)
    [policy] = [a["content"] for t, a in page.tags if a.get("http-equiv")]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    hosts = set(re.findall(r"https?://([^/\"'`\s]+)", text.replace(javascript(), "")))
    assert hosts <= {"vega.github.io"}
    assert "</script" not in javascript()
    [spec] = re.findall(r'<script type="application/json">(.*?)</script>', text)
    assert [row["system"] for d in json.loads(spec)["datasets"].values() for row in d] == [EVIL] * 2


def test_bundle_is_only_names_not_addresses_to_load():
    hosts = set(re.findall(r"https?://([^/\"'`\s]+)", javascript()))
    assert hosts <= {"vega.github.io", "www.w3.org", "github.com"}


def test_script_json_keeps_the_value():
    value = {"a": [EVIL, "é & <!-- \u2028"], "b": 1.5}
    text = script_json(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == value


def test_unknown_suffix(tmp_path, sentences):
    with pytest.raises(InputError, match=r"a\.gif: .* \.gif") as error:
        save(simple(), tmp_path / "a.gif")
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="found none"):
        save(simple(), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_one_figure_for_each_name(tmp_path):
    with pytest.raises(InputError, match="'a' twice"):
        save_all([simple(), simple()], tmp_path)


@pytest.mark.parametrize(("width", "inches"), [("column", 3.5), ("page", 7.2)])
def test_a_bare_figure_has_the_width_of_print_and_no_words(width, inches, tmp_path, three):
    with layout(width=width, bare=True, font="serif"):
        figure = det(three.det)
    drawn = save(figure, tmp_path / "det.svg").read_text(encoding="utf-8")
    body = drawn.partition("</desc>")[2]
    assert figure.caption[:30] not in body
    assert figure.title not in body
    assert "Times New Roman" in body
    assert "system-ui" not in body
    [wide] = re.findall(r'^<svg[^>]* width="([\d.]+)"', drawn)
    assert float(wide) <= 96 * inches + 0.5
    assert width == "page" or float(wide) == 336
    assert "title" not in json.loads(save(figure, tmp_path / "det.json").read_text("utf-8"))
    assert "<figcaption></figcaption>" in save(figure, tmp_path / "det.html").read_text("utf-8")


def test_bare_figures_keep_their_keys_and_leave_captions_beside_them(tmp_path, three):
    with layout(width="column", bare=True):
        figures = det(three.det), ece_profile(three.ece)
    for figure in figures:
        figure.save(tmp_path, formats="svg,json")
    det_drawn, ece_drawn = (
        (tmp_path / f"{figure.name}.svg").read_text("utf-8") for figure in figures
    )
    keys = "measured (ROC polygon)", "convex hull", "minimum DCF", "equal error rate (hull)"
    for words in keys:
        assert f">{words}</text>" in det_drawn
    for words in ("oracle (calibrated)", "actual (scores as LLRs)"):
        assert f">{words}</text>" in ece_drawn
    said = [f"{one.name}\n{one.title}\n{one.caption}" for one in figures]
    for _ in range(2):
        assert (tmp_path / "captions.txt").read_text("utf-8") == "\n\n".join(said) + "\n"
        figures[0].save(tmp_path, formats="json")
    det(three.det).save(tmp_path / "captioned", formats=["json"])
    assert [path.name for path in (tmp_path / "captioned").iterdir()] == ["det.json"]


def test_symbols_have_sub_and_superscripts_and_names_of_systems_do_not():
    drawn = typeset("<text>C_llr^min of asv_anon (bits)</text><g aria-label='D_ECE'/>")
    assert re.sub(r"<tspan[^>]*>|</tspan>", "", drawn) == (
        "<text>Cllrmin of asv_anon (bits)</text><g aria-label='D_ECE'/>"
    )
    levels, at = [], 0.0
    for shift, size in re.findall(r'dy="([-\d.]+)em" font-size="(\d+)%"', drawn):
        at += float(shift) * int(size) / 100
        levels.append(round(at, 2))
    assert levels == [0.0, 0.22, -0.38, 0.0]


def test_unknown_layouts_are_refused():
    with pytest.raises(InputError, match="width"), layout(width="poster"):
        pass
