// Faults of rendered text: too small, cut off, or drawn over other text. Returns sentences.
// Menus, dialogs and what is hidden, see-through or scrolled away are left out.
(smallest) => {
  const plain = (text) => text.replace(/\s+/g, " ").trim();
  const shown = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
    plain(element.textContent) !== "Skip to main content" &&
    !element.closest("[aria-hidden=true], .visually-hidden, [data-testid=stHeader], [role=tooltip]");
  const within = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    const found = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.nodeType === Node.TEXT_NODE) found.push(node);
      else if (node.shadowRoot) found.push(...within(node.shadowRoot));
    }
    return found;
  };
  const around = (element) => element.parentElement ?? element.getRootNode().host;
  const range = document.createRange();
  const runs = [];
  for (const node of within(document.body)) {
    const element = node.parentElement;
    if (!element || !plain(node.data) || /^(script|style|option|title|desc)$/i.test(element.tagName)) continue;
    if (!shown(element)) continue;
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width > 1 && box.height > 1) runs.push({ node, element, box, text: plain(node.data) });
    }
  }
  const scale = (element) => {
    const matrix = element instanceof SVGElement ? element.getScreenCTM?.() : null;
    return matrix ? Math.hypot(matrix.a, matrix.b) : 1;
  };
  const faults = new Set();
  const say = (what, run) => faults.add(`${what}: "${run.text.slice(0, 60)}"`);
  const seen = [];
  for (const run of runs) {
    const size = parseFloat(getComputedStyle(run.element).fontSize) * scale(run.element);
    if (size < smallest - 0.05) say(`${size.toFixed(1)} px`, run);
    let { left, right, top, bottom } = run.box;
    let away = false;
    for (let above = run.element; above && above !== document.body; above = around(above)) {
      const style = getComputedStyle(above);
      const frame = above.getBoundingClientRect();
      const scrolls = (flow) => flow === "auto" || flow === "scroll";
      const cuts = (flow) => flow === "hidden" || flow === "clip";
      const outX = Math.max(frame.left - left, right - frame.right);
      const outY = Math.max(frame.top - top, bottom - frame.bottom);
      if (scrolls(style.overflowX) && outX > 1) { away = true; break; }
      if (scrolls(style.overflowY) && outY > 1) { away = true; break; }
      if (above instanceof SVGElement && above.tagName !== "svg") continue;
      if (cuts(style.overflowX) && outX > 2) { say(`cut off by ${outX.toFixed(0)} px`, run); break; }
      if (cuts(style.overflowY) && outY > run.box.height / 3) { say("cut off in height", run); break; }
    }
    if (!away && (left < -1 || right > window.innerWidth + 1)) say("outside of the window", run);
    if (!away) seen.push(run);
  }
  seen.sort((one, other) => one.box.top - other.box.top);
  for (let at = 0; at < seen.length; at++) {
    const one = seen[at];
    for (let next = at + 1; next < seen.length && seen[next].box.top < one.box.bottom; next++) {
      const other = seen[next];
      if (one.node === other.node) continue;
      const wide = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const high = Math.min(one.box.bottom, other.box.bottom) - other.box.top;
      const least = Math.min(one.box.height, other.box.height);
      if (wide <= 2 || high <= 0.4 * least) continue;
      const x = (Math.max(one.box.left, other.box.left) + Math.min(one.box.right, other.box.right)) / 2;
      const y = other.box.top + high / 2;
      const top = document.elementFromPoint(x, y);
      const covers = top && [one, other].some((run) => {
        const over = run.element.closest("[data-testid=stPopoverBody], [role=dialog]");
        return over && over.contains(top);
      });
      if (!covers) faults.add(`over each other: "${one.text.slice(0, 40)}" and "${other.text.slice(0, 40)}"`);
    }
  }
  if (document.documentElement.scrollWidth > window.innerWidth + 1) faults.add("the page scrolls sideways");
  return [...faults];
}
