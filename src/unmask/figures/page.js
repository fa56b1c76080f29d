// A chart is drawn when it comes near the screen; those that nobody saw yet are drawn when there is
// nothing else to do, so that a printer gets them. Where the drawing is wider than its place,
// legends go below, panels into fewer columns and what is still too wide shrinks; then it is drawn
// again: letters keep their size and the pointer still hits what it points at. Where there is room,
// panels but squares grow wider.
const night = matchMedia("(prefers-color-scheme: dark)");
const inNight = NIGHT; // replaced by the theme's colours
const recoloured = (node) => {
  if (typeof node === "string") return inNight[node] ?? node;
  if (Array.isArray(node)) return node.map(recoloured);
  if (node === null || typeof node !== "object") return node;
  return Object.fromEntries(Object.entries(node).map(([key, value]) =>
    [key, key === "datasets" || key === "values" ? value : recoloured(value)]));
};
// Symbols such as D_ECE have sub- and superscripts: their parts are drawn one after another.
const symbol = /SYMBOL/;
for (const name of ["fillText", "strokeText"]) {
  const pen = CanvasRenderingContext2D.prototype, plain = pen[name];
  pen[name] = function (text, x, y, ...more) {
    const parts = String(text).split(symbol);
    if (parts.length === 1) return plain.call(this, text, x, y, ...more);
    const { font, textAlign } = this, size = parseFloat(font.match(/([\d.]+)px/)[1]);
    const small = font.replace(/[\d.]+px/, `${0.72 * size}px`);
    const fonts = [font, `italic ${font}`, small, small], lifts = [0, 0, 0.22, -0.38];
    const widths = parts.map((part, i) => {
      this.font = fonts[i % 4];
      return this.measureText(part ?? "").width;
    });
    const whole = widths.reduce((sum, width) => sum + width, 0);
    let at = x - whole * ({ center: 0.5, right: 1, end: 1 }[textAlign] ?? 0);
    this.textAlign = "left";
    parts.forEach((part, i) => {
      this.font = fonts[i % 4];
      plain.call(this, part ?? "", at, y + size * lifts[i % 4]);
      at += widths[i];
    });
    Object.assign(this, { font, textAlign });
  };
}
const inside = ["spec", "layer", "hconcat", "vconcat", "concat"];
const square = (node) => {
  if (Array.isArray(node)) return node.some(square);
  if (Math.abs(node.width - node.height) < 0.2 * node.width) return true;
  return inside.some((key) => key in node && square(node[key]));
};
const fitted = (node, fit) => {
  if (Array.isArray(node)) return node.map((child) => fitted(child, fit));
  if (node === null || typeof node !== "object") return node;
  const copy = { ...node };
  if (typeof copy.columns === "number")
    copy.columns = Math.max(1, Math.floor(copy.columns * fit.columns));
  if (typeof copy.width === "number") copy.width = Math.max(40, Math.floor(copy.width * fit.x));
  if (typeof copy.height === "number") copy.height = Math.max(40, Math.floor(copy.height * fit.y));
  if (fit.narrow && copy.encoding)
    copy.encoding = Object.fromEntries(Object.entries(copy.encoding).map(([name, channel]) =>
      [name, channel.legend ? { ...channel, legend: { ...channel.legend, orient: "bottom",
        direction: channel.legend.gradientLength ? "horizontal" : "vertical", columns: 1,
        labelLimit: fit.narrow - 60, titleLimit: fit.narrow - 20 } } : channel]));
  for (const key of inside) if (key in copy) copy[key] = fitted(copy[key], fit);
  return copy;
};
const below = { legend: { orient: "bottom", direction: "vertical", columns: 1,
  layout: { bottom: { direction: "vertical", anchor: "start" } } } };
const draw = async (figure) => {
  const plain = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
  const spec = night.matches ? recoloured(plain) : plain;
  const place = figure.querySelector(".drawing");
  const room = figure.clientWidth - 24;
  const options = { mode: "vega-lite", renderer: "canvas", actions: false };
  const fit = { columns: 1, x: 1, y: 1 };
  const wide = room > 800 ? room - 260 : room;
  for (let turn = 0; turn < 5; turn += 1) {
    if (figure.drawing) figure.drawing.finalize();
    figure.drawing = await vegaEmbed(place, fitted(spec, fit), options);
    const drawn = place.querySelector("canvas").width / (window.devicePixelRatio || 1);
    if (room <= 0) break;
    if (drawn <= room + 1) {
      if (turn > 0 || square(spec) || drawn > 0.95 * wide) break;
      fit.x = Math.min(wide / drawn, 1.6);
    } else if (fit.narrow === undefined) {
      options.config = below;
      fit.narrow = room;
      fit.x = 1;
      fit.columns = room / drawn;
    } else {
      fit.x *= room / drawn;
      fit.y = Math.max(fit.x, 0.7);
    }
  }
  place.setAttribute("data-drawn", night.matches ? "night" : "day");
};
const near = new IntersectionObserver((entries) => entries.forEach((entry) => {
  if (!entry.isIntersecting) return;
  near.unobserve(entry.target);
  draw(entry.target);
}), { rootMargin: "300px 0px" });
const figures = () => [...document.querySelectorAll("figure.chart")];
window.unmaskDraw = () => figures().forEach((figure) => {
  near.unobserve(figure);
  near.observe(figure);
});
night.addEventListener("change", window.unmaskDraw);
let known = window.innerWidth;
let pending;
window.addEventListener("resize", () => {
  if (window.innerWidth === known) return;
  known = window.innerWidth;
  clearTimeout(pending);
  pending = setTimeout(window.unmaskDraw, 200);
});
const idle = window.requestIdleCallback ?? ((next) => setTimeout(next, 50));
const rest = async () => {
  const figure = figures().find((one) => !one.querySelector("canvas"));
  if (figure === undefined) return;
  await draw(figure);
  idle(rest);
};
setTimeout(() => idle(rest), 1500); // before charts out of sight are drawn
