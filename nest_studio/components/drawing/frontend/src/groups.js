// Groups as the tree that the elements' paths span, and what of it is in sight.

export const PADDING = 22;
export const SIZES = { device: [30, 30], nic: [16, 16], switch: [56, 24] };

const VISIBLE_AT_FIRST = 150;

export const nameOf = (path) => path.slice(path.lastIndexOf("/") + 1);
export const parentOf = (path) => path.slice(0, Math.max(path.lastIndexOf("/"), 0));

/** The paths of the groups around something, outermost first. */
export function around(path) {
  const found = [];
  for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", end + 1)) {
    found.push(path.slice(0, end));
  }
  if (path) found.push(path);
  return found;
}

/** path -> {path, depth, children, own (elements), counts (of all within, by role)}. */
export function tree(elements) {
  const groups = new Map();
  for (const element of elements.values()) {
    const paths = around(element.group);
    paths.forEach((path, depth) => {
      if (!groups.has(path)) {
        groups.set(path, { path, depth, children: [], own: [], counts: {} });
        if (depth) groups.get(paths[depth - 1]).children.push(path);
      }
      const group = groups.get(path);
      group.counts[element.role] = (group.counts[element.role] ?? 0) + element.count;
    });
    if (paths.length) groups.get(element.group).own.push(element);
  }
  return groups;
}

/** All elements within a group. */
export function within(groups, path) {
  const group = groups.get(path);
  if (!group) return [];
  return [...group.own, ...group.children.flatMap((child) => within(groups, child))];
}

/** The outermost closed group around an element, if any. */
export const closedAround = (path, open) => around(path).find((group) => !open.has(group));

/** Which groups stand open when a drawing is first seen: the deepest level that stays legible. */
export function openAtFirst(elements, groups) {
  const depth = Math.max(0, ...[...groups.values()].map((group) => group.depth + 1));
  for (let level = depth; level > 0; level -= 1) {
    const open = new Set([...groups.keys()].filter((path) => groups.get(path).depth < level));
    if (inSight(elements, open) <= VISIBLE_AT_FIRST) return open;
  }
  return new Set();
}

/** How many elements and closed groups are to be seen. */
export function inSight(elements, open) {
  const closed = new Set();
  let alone = 0;
  for (const element of elements.values()) {
    const group = closedAround(element.group, open);
    if (group === undefined) alone += 1;
    else closed.add(group);
  }
  return alone + closed.size;
}

/** path -> {x1, y1, x2, y2} of every group, its padding included. */
export function extents(groups) {
  const found = new Map();
  const visit = (path) => {
    const group = groups.get(path);
    const box = { x1: Infinity, y1: Infinity, x2: -Infinity, y2: -Infinity };
    const grow = (x1, y1, x2, y2) => {
      box.x1 = Math.min(box.x1, x1);
      box.y1 = Math.min(box.y1, y1);
      box.x2 = Math.max(box.x2, x2);
      box.y2 = Math.max(box.y2, y2);
    };
    for (const { role, x, y } of group.own) {
      const [width, height] = SIZES[role];
      grow(x - width / 2, y - height / 2, x + width / 2, y + height / 2);
    }
    for (const child of group.children) {
      const inner = visit(child);
      grow(inner.x1, inner.y1, inner.x2, inner.y2);
    }
    box.x1 -= PADDING;
    box.y1 -= PADDING;
    box.x2 += PADDING;
    box.y2 += PADDING;
    found.set(path, box);
    return box;
  };
  for (const group of groups.values()) if (group.depth === 0) visit(group.path);
  return found;
}

/**
 * What a link to a whole group attaches to: its switches farthest from devices; its NICs if
 * none of its switches reaches them, as an inner switch of a node does not; else its devices.
 */
export function attachments(groups, path, distance, links) {
  const members = within(groups, path);
  const roles = new Map(members.map((element) => [element.id, element.role]));
  const ofRole = (role) => members.filter((element) => element.role === role);
  const switches = ofRole("switch");
  const nics = ofRole("nic");
  const reached = [...links.values()].some(({ a, b }) => {
    const ends = [roles.get(a), roles.get(b)];
    return ends.includes("nic") && ends.includes("switch");
  });
  if (nics.length && !reached) return nics;
  if (!switches.length) return ofRole("device");
  const top = Math.max(...switches.map((element) => distance.get(element.id)));
  return switches.filter((element) => distance.get(element.id) === top);
}
