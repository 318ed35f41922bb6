// Places for elements that have none: switches above what they join, devices at the bottom,
// every group a box of its own, boxes side by side.

import { PADDING, tree } from "./groups.js";
import { tiers } from "./model.js";

const CELLS = { device: [58, 62], nic: [58, 50], switch: [84, 74] };
const GAP = 26;
const ROW = 1400; // as wide as a row of boxes may be before it breaks
const ASPECT = 1.9;
const FLAT = 24; // width over height of a row above boxes: room to be seen from afar
const MOST_IN_A_ROW = 8;

/** Give the elements without a position one; those with one stay. `aspect`: of what they are seen in. */
export function place(drawing, aspect) {
  const homeless = new Map();
  const placed = [];
  for (const [id, element] of drawing.elements) {
    if (element.x == null || element.y == null) homeless.set(id, element);
    else placed.push(element);
  }
  if (!homeless.size) return;
  const box = arrange(homeless, tiers(drawing.elements, drawing.links), Math.min(3, aspect || ASPECT));
  const left = placed.length ? Math.max(...placed.map((element) => element.x)) + 140 : 0;
  const top = placed.length ? Math.min(...placed.map((element) => element.y)) : 0;
  const shift = placed.length ? [left, top - 20] : [-box.width / 2, -box.height / 2];
  for (const { element, x, y } of box.items) {
    element.x = Math.round(x + shift[0]);
    element.y = Math.round(y + shift[1]);
  }
}

function arrange(elements, distance, aspect) {
  const groups = tree(elements);
  const boxOf = (group) => {
    const inner = stack(group.own, group.children.map((path) => boxOf(groups.get(path))), distance);
    return {
      width: inner.width + 2 * PADDING,
      height: inner.height + 2 * PADDING,
      items: inner.items.map((item) => ({ ...item, x: item.x + PADDING, y: item.y + PADDING })),
    };
  };
  const own = [...elements.values()].filter((element) => !element.group);
  const outermost = [...groups.values()].filter((group) => group.depth === 0);
  return stack(own, outermost.map(boxOf), distance, aspect);
}

/** Rows from top to bottom: switches by distance from devices, boxes, NICs, devices. */
function stack(own, boxes, distance, aspect = ASPECT) {
  const byTier = new Map();
  for (const element of own) {
    if (element.role !== "switch") continue;
    const tier = distance.get(element.id);
    byTier.set(tier, [...(byTier.get(tier) ?? []), element]);
  }
  const ofRole = (role) => own.filter((element) => element.role === role);
  const below = [
    ...(boxes.length ? [packed(boxes, aspect)] : []),
    ...["nic", "device"].filter((role) => ofRole(role).length).map((role) => cells(ofRole(role), role, 0)),
  ];
  const room = Math.max(0, ...below.map((row) => row.width));
  const above = [...byTier].sort((one, other) => other[0] - one[0])
    .map(([, switches]) => cells(switches, "switch", room));
  const rows = [...above, ...below];
  const width = Math.max(...rows.map((row) => row.width));
  const items = [];
  let height = 0;
  for (const row of rows) {
    const left = (width - row.width) / 2;
    for (const item of row.items) items.push({ ...item, x: item.x + left, y: item.y + height });
    height += row.height;
  }
  return { width, height, items };
}

function cells(elements, role, room) {
  const count = elements.length;
  const across = Math.min(count, MOST_IN_A_ROW * 2);
  const width = Math.max(CELLS[role][0], room / Math.max(across, 8));
  const height = Math.max(CELLS[role][1], room / FLAT);
  const columns = count <= MOST_IN_A_ROW
    ? count
    : Math.max(MOST_IN_A_ROW, Math.floor(room / width + 1e-6), Math.ceil(Math.sqrt(count * ASPECT * 1.2)));
  const used = Math.min(columns, count);
  const items = elements.map((element, index) => {
    const row = Math.floor(index / columns);
    const inRow = Math.min(columns, count - row * columns);
    const column = (index % columns) + (used - inRow) / 2;
    return { element, x: (column + 0.5) * width, y: (row + 0.5) * height };
  });
  return { width: used * width, height: Math.ceil(count / columns) * height, items };
}

function packed(boxes, aspect) {
  const width = Math.max(...boxes.map((box) => box.width)) + GAP;
  const height = Math.max(...boxes.map((box) => box.height)) + GAP;
  const count = boxes.length;
  const columns = count * width <= ROW
    ? count
    : Math.min(count, Math.max(1, Math.round(Math.sqrt((count * height * aspect) / width))));
  const items = boxes.flatMap((box, index) => {
    const left = (index % columns) * width + (width - box.width) / 2;
    const top = Math.floor(index / columns) * height + GAP / 2;
    return box.items.map((item) => ({ ...item, x: item.x + left, y: item.y + top }));
  });
  return { width: columns * width, height: Math.ceil(count / columns) * height, items };
}
