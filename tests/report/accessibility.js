() => {
  const faults = [];
  const rgb = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (node) => {
    for (let n = node; n; n = n.parentElement) {
      const colour = rgb(getComputedStyle(n).backgroundColor);
      if (colour.length && (colour.length < 4 || colour[3] > 0.5)) return colour;
    }
    return [255, 255, 255];
  };
  const name = (n) => `${n.tagName.toLowerCase()}${n.id ? `#${n.id}` : ""}.${n.className}`;
  if (!document.documentElement.lang) faults.push("no language");
  if (!document.title) faults.push("no title");
  if (document.querySelectorAll("main").length !== 1) faults.push("not one main landmark");
  document.querySelectorAll("nav, section").forEach((n) => {
    if (!n.getAttribute("aria-label") && !n.getAttribute("aria-labelledby"))
      faults.push(`${name(n)} has no name`);
  });
  let level = 0;
  document.querySelectorAll("h1, h2, h3, h4").forEach((h) => {
    const now = Number(h.tagName[1]);
    if (now > level + 1) faults.push(`${name(h)} skips a level`);
    level = now;
  });
  document.querySelectorAll("img:not([alt]), [role=img]:not([aria-label])").forEach((n) =>
    faults.push(`${name(n)} has no alternative`));
  document.querySelectorAll("button, a[href], input, select").forEach((n) => {
    if (!n.textContent.trim() && !n.getAttribute("aria-label")) faults.push(`${name(n)} is unnamed`);
  });
  document.querySelectorAll("a[href^='#']").forEach((a) => {
    if (!document.getElementById(a.hash.slice(1))) faults.push(`${a.hash} leads nowhere`);
  });
  document.querySelectorAll("th").forEach((th) => {
    if (!th.scope) faults.push("a head without scope");
  });
  const ids = [...document.querySelectorAll("[id]")].map((n) => n.id);
  ids.forEach((id, i) => { if (ids.indexOf(id) !== i) faults.push(`id ${id} twice`); });
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (words.nextNode()) {
    const node = words.currentNode.parentElement;
    if (!words.currentNode.textContent.trim() || seen.has(node)) continue;
    seen.add(node);
    if (node.closest("script, style, .vega-embed, .off")) continue;
    const style = getComputedStyle(node);
    if (style.visibility === "hidden" || !node.getClientRects().length) continue;
    const a = light(rgb(style.color)), b = light(ground(node));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faults.push(`${name(node)} has contrast ${contrast.toFixed(2)}`);
  }
  return [...new Set(faults)];
}
