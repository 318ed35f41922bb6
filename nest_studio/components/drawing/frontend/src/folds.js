// Folds: groups that are alike and hang on the same switches are seen as one group with a count.
//
// A fold is a group around them whose name begins with MARK. It exists in the browser alone: what
// goes to Python has none. A switch that nothing else below hangs on stands in it, so a leaf and its
// hosts are one box; a fold with fewer members than most of its kind says so.

import { closedAround, extents, inSight, nameOf, openAtFirst, parentOf, tree } from "./groups.js";

const MARK = "\u2063"; // an invisible separator, which nobody types
const LEGIBLE = 60; // boxes and elements in sight that can still be read

export const isFold = (path) => nameOf(path).startsWith(MARK);

/** The group without folds around it. */
export const unfolded = (group) =>
  group.includes(MARK) ? group.split("/").filter((part) => !part.startsWith(MARK)).join("/") : group;

export class Folds {
  /** Group -> the fold around it; switches by "id:name". */
  #inside = new Map();
  /** Fold -> {members, usual}. */
  kinds = new Map();

  /** Find what is alike in a drawing that is seen for the first time. */
  find(drawing) {
    this.forget();
    const groups = tree(drawing.elements);
    const open = openAtFirst(drawing.elements, groups);
    if (inSight(drawing.elements, open) <= LEGIBLE) return;
    const closed = [...groups.keys()].filter((path) => !open.has(path) && (!parentOf(path) || open.has(parentOf(path))));
    const seen = new Map(closed.map((path) => [path, { path, within: [], without: new Map() }]));
    const below = new Map(); // switch beside groups -> the groups that hang on it
    for (const { a, b, count, bandwidth_GBps } of drawing.links.values()) {
      const [one, other] = [a, b].map((id) => drawing.elements.get(id));
      const [here, there] = [one, other].map((end) => closedAround(end.group, open));
      if (here !== undefined && here === there) {
        seen.get(here).within.push([[one.role, other.role].sort(), count, bandwidth_GBps].join());
        continue;
      }
      for (const [group, away, end] of [[here, there, other], [there, here, one]]) {
        if (group === undefined) continue;
        const { without } = seen.get(group);
        const key = away === undefined ? end.id : `/${away}`;
        without.set(key, (without.get(key) ?? 0) + count * bandwidth_GBps);
        if (away !== undefined || end.role !== "switch") continue;
        if (!below.has(end.id)) below.set(end.id, new Set());
        below.get(end.id).add(group);
      }
    }
    const kindOf = ({ path, within: links, without }) =>
      JSON.stringify([parentOf(path), groups.get(path).counts, links.sort(), without.size]);
    const alike = Map.groupBy(seen.values(), (group) =>
      JSON.stringify([kindOf(group), [...group.without].sort()]));
    const folds = [...alike.values()].filter((members) => members.length > 1);
    const usual = Map.groupBy(folds, (members) => kindOf(members[0]));
    for (const members of folds) {
      const sizes = usual.get(kindOf(members[0])).map((fold) => fold.length);
      // What everything hangs on is no part of anything.
      const apart = members.length < closed.length ? below : new Map();
      this.#fold(drawing, members, apart, most(sizes));
    }
    if (overlapping(drawing, this)) this.forget();
  }

  forget() {
    this.#inside = new Map();
    this.kinds = new Map();
  }

  #fold(drawing, members, below, usual) {
    const paths = new Set(members.map(({ path }) => path));
    const parent = parentOf(members[0].path);
    const hangs = [...members[0].without.keys()];
    const switches = hangs.filter((id) => below.has(id)
      && drawing.elements.get(id).group === parent
      && !this.#inside.has(`id:${id}`)
      && (hangs.length === 1 || [...below.get(id)].every((path) => paths.has(path))));
    const [first, last] = [members[0], members.at(-1)].map(({ path }) => nameOf(path));
    const name = switches.length === 1 ? switches[0] : `${first} to ${last}`;
    const fold = `${parent ? `${parent}/` : ""}${MARK}${name.replaceAll("/", "-")}`;
    for (const path of paths) this.#inside.set(path, fold);
    for (const id of switches) this.#inside.set(`id:${id}`, fold);
    this.kinds.set(fold, { members: paths.size, usual });
  }

  /** Which of these groups stand open at first: what is folded, or beside a fold, does not. */
  opened(paths) {
    const beside = new Set([...this.kinds.keys()].map(parentOf));
    return new Set(paths.filter((path) => !path.includes(MARK) && !beside.has(parentOf(path))));
  }

  /** Put the folds around what is in them. */
  apply(elements) {
    if (!this.#inside.size) return;
    for (const element of elements.values()) element.group = this.#around(element);
  }

  #around({ id, group }) {
    const alone = this.#inside.get(`id:${id}`);
    if (alone && parentOf(alone) === group) return alone;
    for (let path = group; path; path = parentOf(path)) {
      const fold = this.#inside.get(path);
      if (fold) return `${fold}/${nameOf(path)}${group.slice(path.length)}`;
    }
    return group;
  }

  /** What a closed fold says: how many, and how many fewer than most of its kind. */
  words(groups, path) {
    const { members, usual } = this.kinds.get(path);
    const [child] = groups.get(path)?.children ?? [];
    const { device = 0 } = child ? groups.get(child).counts : {};
    const now = groups.get(path)?.children.length ?? members;
    const what = device > 0 ? `${now} × ${device} devices` : `${now} alike`;
    const fewer = Math.max(0, usual - now);
    return { words: fewer ? `${what}, ${fewer} fewer` : what, fewer };
  }
}

/** Whether boxes of elements that have their places would lie upon each other. */
function overlapping(drawing, folds) {
  const elements = new Map([...drawing.elements].map(([id, element]) => [id, { ...element }]));
  if ([...elements.values()].some(({ x, y }) => x == null || y == null)) return false;
  folds.apply(elements);
  const boxes = extents(tree(elements));
  const outer = [...boxes].filter(([path]) => !parentOf(path)).map(([, box]) => box);
  return outer.some((one, at) => outer.slice(at + 1).some((other) =>
    one.x1 < other.x2 && other.x1 < one.x2 && one.y1 < other.y2 && other.y1 < one.y2));
}

function most(counts) {
  const often = Map.groupBy(counts, (count) => count);
  return [...often].sort((one, other) => other[1].length - one[1].length || other[0] - one[0])[0][0];
}
