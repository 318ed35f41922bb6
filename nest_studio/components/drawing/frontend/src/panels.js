// The frame around the canvas: palette, tool bar, zoom, status, and the handle on hovered things.

import { button, h, icon } from "./dom.js";
import { number } from "./text.js";

const TOOLS = {
  select: ["Select", "Select and move (V); shift-drag selects a box"],
  link: ["Link", "Link: drag from one element to another (L)"],
  device: ["Device", "Place devices: click where (D)"],
  nic: ["NIC", "Place NICs: click where (N)"],
  switch: ["Switch", "Place switches: click where (S)"],
  node: ["Node", "Place nodes, that is devices around a switch, with a NIC each: click where (G)"],
};
export const TOOL_KEYS = { v: "select", l: "link", d: "device", n: "nic", s: "switch", g: "node" };

const ACTIONS = {
  undo: ["Undo", "Undo (Ctrl+Z)"],
  redo: ["Redo", "Redo (Ctrl+Shift+Z)"],
  duplicate: ["Duplicate", "Duplicate the selection (Ctrl+D)"],
  delete: ["Delete", "Delete the selection (Del)"],
  arrange: ["Arrange", "Arrange everything automatically"],
};

export function palette(onTool) {
  const buttons = {};
  for (const [tool, [label, title]] of Object.entries(TOOLS)) {
    buttons[tool] = button(label, title, () => onTool(tool), icon(tool), h("span", {}, label));
  }
  const panel = h("div", { class: "nd-palette", role: "toolbar", "aria-label": "Tools" },
    ...Object.values(buttons));
  const show = (tool) => {
    for (const [name, made] of Object.entries(buttons)) {
      made.setAttribute("aria-pressed", String(name === tool));
    }
  };
  return { panel, show };
}

/** Properties of new links, and what is done to the whole drawing or the selection. */
export function toolbar(defaults, onAction) {
  const field = (name, label, unit, least) => {
    const input = h("input", {
      type: "number",
      value: number(defaults[name]),
      min: least,
      step: "any",
      "aria-label": `${label} of new links${unit ? `, ${unit}` : ""}`,
      onchange: () => {
        const value = Number(input.value);
        const whole = name !== "count" || Number.isInteger(value);
        const good = input.value !== "" && whole && (name === "latency_us" ? value >= 0 : value > 0);
        if (good) defaults[name] = value;
        else input.value = number(defaults[name]);
      },
    });
    return h("label", {}, label, input, unit);
  };
  const buttons = {};
  for (const [name, [label, title]] of Object.entries(ACTIONS)) {
    buttons[name] = button(label, title, () => onAction(name), icon(name));
  }
  const panel = h("div", { class: "nd-bar" },
    h("span", { class: "nd-new", title: "Every link drawn from now on gets these" },
      h("b", {}, "New links"),
      field("bandwidth_GBps", "bandwidth", "GB/s", 0),
      field("latency_us", "latency", "µs", 0),
      field("count", "count", "", 1)),
    h("span", { class: "nd-actions", role: "toolbar", "aria-label": "Edit" },
      ...Object.values(buttons)));
  const show = (selected) => {
    buttons.duplicate.disabled = !selected.things;
    buttons.delete.disabled = !selected.any;
  };
  return { panel, show };
}

export const zoomButtons = (onZoom) =>
  h("div", { class: "nd-zoom", role: "toolbar", "aria-label": "View" },
    button("Zoom in", "Zoom in (+)", () => onZoom("in"), icon("plus")),
    button("Zoom out", "Zoom out (-)", () => onZoom("out"), icon("minus")),
    button("Fit", "Show everything (0)", () => onZoom("fit"), icon("fit")));

/** The handle that starts a link, and the button that opens or closes a group. */
export function handles(stage, { onLink, onToggle }) {
  let node = null;
  let timer = null;
  const link = h("span", { class: "nd-handle", title: "Drag to link" });
  const toggle = h("button", { type: "button", class: "nd-toggle", tabindex: "-1" });
  const layer = h("div", { class: "nd-handles", hidden: true }, link, toggle);
  stage.append(layer);

  const hide = () => {
    clearTimeout(timer);
    timer = null;
    layer.hidden = true;
    node = null;
  };
  const leave = () => {
    if (node) timer ??= setTimeout(hide, 350);
  };
  const stay = () => {
    clearTimeout(timer);
    timer = null;
  };
  const show = (over) => {
    stay();
    if (node === over) return;
    node = over;
    const group = over.hasClass("closed") || over.hasClass("open");
    const box = over.renderedBoundingBox({ includeLabels: false, includeOverlays: false });
    const left = Math.max(4, Math.min((box.x1 + box.x2) / 2, stage.clientWidth - 18));
    link.style.translate = `${left - 7}px ${Math.max(2, box.y1 - 15)}px`;
    toggle.style.translate = `${Math.min(box.x2 - 9, stage.clientWidth - 22)}px ${Math.max(2, box.y1 - 9)}px`;
    toggle.hidden = !group;
    const closed = over.hasClass("closed");
    toggle.textContent = closed ? "+" : "−";
    toggle.setAttribute("aria-label", closed ? "Open group" : "Close group");
    toggle.title = closed ? "Open this group" : "Close this group";
    layer.hidden = false;
  };
  link.addEventListener("mousedown", (event) => {
    event.preventDefault();
    event.stopPropagation();
    const from = node;
    hide();
    if (from) onLink(from);
  });
  toggle.addEventListener("mousedown", (event) => event.stopPropagation());
  toggle.addEventListener("click", () => {
    const path = node?.id().slice(2);
    hide();
    if (path) onToggle(path);
  });
  layer.addEventListener("pointerenter", stay, true);
  layer.addEventListener("pointerleave", leave, true);
  const holds = (event) => event?.composedPath().includes(layer);
  return { show, leave, hide, holds };
}
