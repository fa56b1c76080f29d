const value = (row, column) => {
  const cell = row.cells[column];
  const text = cell.dataset.sort ?? cell.textContent.trim();
  const number = Number(text.replaceAll(",", "").replaceAll("−", "-"));
  return text !== "" && Number.isFinite(number) ? number : text;
};
const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b
    : String(a).localeCompare(String(b), undefined, { numeric: true });
document.querySelectorAll("table.sortable").forEach((table) => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => (up ? 1 : -1) * compare(value(a, column), value(b, column)));
    table.tBodies[0].append(...rows);
  }));
});
document.querySelectorAll(".choice").forEach((choice) => {
  choice.querySelectorAll("button[data-show]").forEach((button) =>
    button.addEventListener("click", () => {
      choice.querySelectorAll("button[data-show]").forEach((other) =>
        other.setAttribute("aria-pressed", String(other === button)));
      choice.querySelectorAll(".pane").forEach((pane) =>
        pane.classList.toggle("off", pane.dataset.pane !== button.dataset.show));
    }));
});
const links = new Map([...document.querySelectorAll("nav.side a")].map((a) => [a.hash.slice(1), a]));
const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
  if (!entry.isIntersecting) return;
  links.forEach((link) => link.removeAttribute("aria-current"));
  links.get(entry.target.id)?.setAttribute("aria-current", "true");
}), { rootMargin: "-10% 0px -70% 0px" });
document.querySelectorAll("main > section").forEach((section) => seen.observe(section));
const menu = document.querySelector("nav.side .menu");
const narrow = window.matchMedia("(max-width: 74.99rem)");
menu.open = !narrow.matches;
narrow.addEventListener("change", () => { menu.open = !narrow.matches; });
// What a link leads to stays in place while charts above it are drawn, until the reader moves.
let goal = document.getElementById(location.hash.slice(1));
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (!link) return;
  goal = document.getElementById(link.hash.slice(1));
  if (narrow.matches && menu.contains(link)) menu.open = false;
  if (goal.id === "words") goal.querySelector("details").open = true;
});
for (const move of ["wheel", "touchmove", "keydown", "pointerdown"])
  window.addEventListener(move, () => { goal = null; }, { passive: true });
new ResizeObserver(() => goal?.scrollIntoView({ behavior: "instant" })).observe(document.body);
if (window.unmaskDraw) window.unmaskDraw();
