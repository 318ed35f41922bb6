// The fabric beside its level-wise cost matrix: pointing at one lights the other.
//
// Both are SVG from Python. Elements carry data-key, links the keys of both ends with " | "
// between; groups of links carry data-of, their class. A cell of the matrix carries its key, and
// `lights` says which classes of links it lights. `tips` holds the words of a class or an element.

const STYLE = `
.nest-fabric { position: relative; }
.nest-fabric { font-family: var(--st-font); color: var(--st-text-color); }
.nest-fabric .both { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; }
.nest-fabric .head { display: flex; gap: 16px; align-items: flex-end; min-height: 36px; }
.nest-fabric h2 { font-size: 14px; line-height: 18px; font-weight: 600; margin: 0; }
.nest-fabric p { font-size: 12px; line-height: 16px; margin: 0; color: var(--ink3, inherit); }
.nest-fabric .side p { margin-top: 4px; }
.nest-fabric svg { display: block; max-width: none; }
.nest-fabric .main svg [data-key] { cursor: default; }
.nest-fabric.pointed svg .dimmable { opacity: .25; }
.nest-fabric.pointed svg .lighted { opacity: 1; }
.nest-fabric.pointed svg path.lighted.thin { stroke: #e69f00; stroke-width: 1.2px; stroke-opacity: 1; }
.nest-fabric.pointed svg [data-of] > path.lighted:not(.thin) { fill: #f5d38c; }
.nest-fabric.pointed.many svg path.lighted.thin { stroke-width: 1px; stroke-opacity: .35; }
.nest-fabric .side svg .lighted { stroke: var(--st-primary-color); stroke-width: 2.5; }
.nest-fabric .tip { position: absolute; z-index: 5; pointer-events: none; max-width: 320px;
  padding: 8px 12px; border-radius: 4px; font-size: 12px; line-height: 1.5;
  border: 1px solid var(--st-border-color); background: var(--st-background-color);
  color: var(--st-text-color); }
.nest-fabric .tip b { font-weight: 600; }
.nest-fabric .visually-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
`;

const pictures = new WeakMap();
const LEAST_PX = 8;
const MANY = 120;
const STEP_PX = 40;
const SIDE_PX = 240; // for its words, of however few classes it is
const PATIENCE_MS = 200;
const REST_MS = 300;

function escaped(text) {
  const span = document.createElement("span");
  span.textContent = text;
  return span.innerHTML;
}

class Picture {
  constructor(parent) {
    this.root = document.createElement("div");
    this.root.className = "nest-fabric";
    const style = document.createElement("style");
    style.textContent = STYLE;
    parent.append(style, this.root);
    this.root.addEventListener("pointermove", (event) => this.point(event));
    this.root.addEventListener("pointerleave", () => this.leave());
    this.root.addEventListener("keydown", (event) => this.press(event));
    this.seen = new ResizeObserver(() => {
      clearTimeout(this.waits);
      this.waits = setTimeout(() => this.data && this.measure(), PATIENCE_MS);
    });
    this.seen.observe(this.root);
  }

  update(data, ports) {
    this.ports = ports;
    const now = JSON.stringify(data);
    if (now === this.shown) return;
    this.shown = now;
    this.data = data;
    const rows = data.said.map((row) => `<tr>${row.map((word) => `<td>${escaped(word)}</td>`).join("")}</tr>`);
    this.at = null;
    this.root.classList.remove("pointed");
    const head = (title, below) => `<h2>${escaped(title)}</h2>${below ? `<p>${escaped(below)}</p>` : ""}`;
    const side = data.matrix
      ? `<div class="side"><h2>${escaped(data.finding)}</h2>${data.matrix}<p>${escaped(data.reading)}</p></div>`
      : "";
    this.root.innerHTML =
      `<div class="both"><div class="main">${head(data.title, data.subtitle)}${data.svg}</div>${side}</div>` +
      // A table is as high as its rows, whatever its style says: without a box around it the page is too.
      `<div class="visually-hidden"><table><caption>${escaped(data.title)}</caption><tbody>${rows.join("")}</tbody></table></div>` +
      `<div class="tip" hidden></div>`;
    this.tip = this.root.querySelector(".tip");
    this.links = [...this.root.querySelectorAll(".main svg [data-of] > *")];
    this.boxes = [...this.root.querySelectorAll(".main svg :not(text)[data-key]")].filter((one) => !this.links.includes(one));
    this.cells = [...this.root.querySelectorAll(".side svg :not(text)[data-key]")];
    for (const one of this.links) {
      one.classList.add("dimmable");
      // A band of links has an area of its own; lines are widened for the pointer alone.
      const group = one.parentElement;
      if (group.hasAttribute("stroke-width")) {
        one.classList.add("thin");
        const wide = parseFloat(group.getAttribute("stroke-width"));
        if (wide < LEAST_PX && this.links.length < 400) {
          const target = one.cloneNode();
          target.setAttribute("style", `stroke:transparent;stroke-width:${LEAST_PX}px;pointer-events:stroke`);
          target.removeAttribute("class");
          target.dataset.for = one.dataset.key ?? "";
          group.append(target);
        }
      }
    }
    for (const one of this.boxes) one.classList.add("dimmable");
    for (const one of this.cells) {
      one.setAttribute("tabindex", "-1");
      one.setAttribute("role", "img");
      one.setAttribute("aria-label", this.words(one).join("; "));
    }
    // An image has no parts for a screen reader; a group does.
    for (const one of this.root.querySelectorAll("svg:has([tabindex])")) one.setAttribute("role", "group");
    this.cells[0]?.setAttribute("tabindex", "0");
    this.align();
    this.measure();
  }

  /** Rows of the matrix at the height of the tiers, whatever stands above the two. */
  align() {
    const main = this.root.querySelector(".main svg");
    const side = this.root.querySelector(".side svg");
    if (main) main.parentElement.style.maxWidth = `${main.getBoundingClientRect().width}px`;
    if (!main || !side) return;
    side.parentElement.style.maxWidth = `${Math.max(SIDE_PX, side.getBoundingClientRect().width)}px`;
    const apart = () => main.getBoundingClientRect().top - side.getBoundingClientRect().top;
    if (side.getBoundingClientRect().left > main.getBoundingClientRect().left + 8) side.style.marginTop = `${apart()}px`;
  }

  /** Tell Python how much room the picture has, once it differs; it is laid out anew for it. */
  measure() {
    const whole = this.root.clientWidth;
    if (!whole) return;
    const matrix = this.root.querySelector(".side svg")?.getBoundingClientRect().width;
    const beside = matrix ? whole - Math.max(SIDE_PX, matrix) - 17 : whole;
    const room = Math.floor((beside >= 400 ? beside : whole) / STEP_PX) * STEP_PX;
    if (room < 300 || room === this.asked || room === this.data.width) return;
    this.asked = room;
    this.ports.setStateValue("width", room);
  }

  of(element) {
    return element.parentElement?.dataset.of ?? "";
  }

  point(event) {
    const at = event.target.closest?.("[data-key], [data-of] > *");
    if (!at || !this.root.contains(at)) return this.leave();
    if (at === this.at) return this.place(event);
    this.leave();
    this.at = at;
    this.light(at);
    const lines = this.words(at);
    if (lines.length) {
      this.tip.innerHTML = `<b>${escaped(lines[0])}</b>` + lines.slice(1).map((line) => `<br>${escaped(line)}`).join("");
      this.tip.hidden = false;
    }
    this.place(event);
  }

  place(event) {
    if (this.tip.hidden) return;
    const frame = this.root.getBoundingClientRect();
    const x = event.clientX - frame.left;
    const y = event.clientY - frame.top;
    const right = x + 16 + this.tip.offsetWidth > frame.width;
    this.tip.style.left = `${Math.max(0, right ? x - 12 - this.tip.offsetWidth : x + 16)}px`;
    this.tip.style.top = `${Math.max(0, Math.min(y + 16, frame.height - this.tip.offsetHeight))}px`;
  }

  words(at) {
    const { tips } = this.data;
    const key = at.dataset.for || at.dataset.key || "";
    const of = this.of(at);
    if (key in tips) return tips[key];
    const kind = of || key.replace(/ [\d–-]+$/, "");
    return [key.replace(" | ", " to "), ...(tips[kind] ?? [])].filter((line) => line);
  }

  /** A cell lights its classes of links; a link its class's cells, both ends; a box all its links. */
  light(at) {
    const key = at.dataset.for || at.dataset.key || "";
    const lights = this.data.lights;
    const on = new Set();
    const boxes = new Set();
    const add = (link) => {
      on.add(link);
      for (const end of (link.dataset.key ?? "").split(" | ")) boxes.add(end);
    };
    if (key in lights) {
      on.add(this.cells.find((cell) => cell.dataset.key === key));
      for (const link of this.links) if (lights[key].includes(this.of(link))) add(link);
    } else if (this.of(at)) {
      for (const link of this.links) if (link === at || (key && link.dataset.key === key)) add(link);
      for (const cell of this.cells) if (lights[cell.dataset.key]?.includes(this.of(at))) on.add(cell);
    } else {
      boxes.add(key);
      for (const link of this.links) if ((link.dataset.key ?? "").split(" | ").includes(key)) add(link);
      if (!on.size) return;
    }
    for (const box of this.boxes) if (boxes.has(box.dataset.key)) on.add(box);
    for (const one of on) one.classList.add("lighted");
    this.root.classList.add("pointed");
    this.root.classList.toggle("many", on.size > MANY);
  }

  leave() {
    if (!this.at) return;
    this.at = null;
    this.tip.hidden = true;
    this.root.classList.remove("pointed");
    for (const one of this.root.querySelectorAll(".lighted")) one.classList.remove("lighted");
  }

  press(event) {
    const at = this.root.getRootNode().activeElement;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const among = this.cells;
    if (!step || !among.includes(at)) return;
    event.preventDefault();
    const next = among[(among.indexOf(at) + step + among.length) % among.length];
    for (const one of among) one.setAttribute("tabindex", one === next ? "0" : "-1");
    next.focus();
    this.leave();
    this.light(next);
    this.at = next;
  }
}

/** While the page is drawn anew, parts of its answer are no lower than they were.
 *
 * What is drawn is empty for a moment. The height is set before anything is taken away: a page that
 * was too low for a moment is scrolled up for good. This stands here as this is the one script of
 * pages with a fabric, which outlives what it is called for.
 */
function keepHeights(app) {
  const parts = () => document.querySelectorAll('[class*="st-key-results"]');
  const hold = (part) => {
    part.style.minHeight = `${part.getBoundingClientRect().height}px`;
  };
  const isDrawn = () => app.dataset.testScriptState !== "notRunning" || document.querySelector(".stProgress");
  const sizes = new ResizeObserver((entries) => isDrawn() && entries.forEach(({ target }) => hold(target)));
  let rests;
  const look = () => {
    clearTimeout(rests);
    for (const part of parts()) {
      sizes.observe(part);
      if (isDrawn()) hold(part);
    }
    if (!isDrawn()) rests = setTimeout(() => parts().forEach((part) => part.style.removeProperty("min-height")), REST_MS);
  };
  new MutationObserver(look).observe(app, { attributeFilter: ["data-test-script-state"] });
}

const app = document.querySelector("[data-test-script-state]");
if (app) keepHeights(app);

export default function fabric({ parentElement, data, setStateValue }) {
  let picture = pictures.get(parentElement);
  if (!picture) pictures.set(parentElement, (picture = new Picture(parentElement)));
  picture.update(data, { setStateValue });
}
