// Elements of the page. Text goes in as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** h("button", {class: "x", onclick: f}, "text", child) */
export function h(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child != null && child !== false));
  return made;
}

const ICONS = {
  select: "M5 3l12 8-5.4 1L9.5 17z",
  link: "M5 15a2.4 2.4 0 1 1 0-.01M15 5a2.4 2.4 0 1 1 0-.01M6.8 13.2l6.4-6.4",
  device: "M4 4h12v12H4z",
  nic: "M10 5.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 1 1 0-9z",
  switch: "M4.5 6h11A1.5 1.5 0 0 1 17 7.5v5a1.5 1.5 0 0 1-1.5 1.5h-11A1.5 1.5 0 0 1 3 12.5v-5A1.5 1.5 0 0 1 4.5 6z",
  node: "M2.5 2.5h15v15h-15zM6 11.5h3v3H6zM11 11.5h3v3h-3zM6 5.5h8v2.5H6z",
  undo: "M7 4L3.5 7.5 7 11M3.5 7.5H12a4.25 4.25 0 0 1 0 8.5H7",
  redo: "M13 4l3.5 3.5L13 11M16.5 7.5H8a4.25 4.25 0 0 0 0 8.5h5",
  duplicate: "M7 7h9.5v9.5H7zM4 13H3.5V3.5H13V4",
  delete: "M4 5.5h12M8 5.5V3.5h4v2M5.5 5.5l.8 11h7.4l.8-11M8.5 8.5v5M11.5 8.5v5",
  arrange: "M7.5 3h5v4h-5zM2.5 13h4v4h-4zM8 13h4v4H8zM13.5 13h4v4h-4zM10 7v6M4.5 13v-2.5h11V13",
  fit: "M3 7V3h4M13 3h4v4M17 13v4h-4M7 17H3v-4",
  plus: "M10 4v12M4 10h12",
  minus: "M4 10h12",
};

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  if (["device", "nic", "switch"].includes(name)) path.setAttribute("class", `nd-fill-${name}`);
  svg.append(path);
  return svg;
}

export const button = (label, title, onclick, ...children) =>
  h("button", { type: "button", "aria-label": label, title, onclick }, ...children);
