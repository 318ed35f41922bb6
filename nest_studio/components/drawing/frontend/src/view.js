// What of the drawing is in sight, as cytoscape elements; keeps viewport and selection.

import { isFold, unfolded } from "./folds.js";
import { SIZES, around, closedAround, extents, nameOf, parentOf, within } from "./groups.js";
import { alike, cut, linksLabel, rolesCounted, shortName } from "./text.js";

const CHARACTER = 0.56; // width of a letter, in font sizes
const LONGEST_PATH = 16; // as the name of a closed group
const LABELLED_AT_MOST = 160; // edges in sight
const LEAST_PX = 9; // of a label on the screen
const MANY = 400; // elements in sight that are no longer drawn at leisure

export const elementKey = (id) => `e:${id}`;
export const groupKey = (path) => `g:${path}`;

export class View {
  constructor(cy, folds) {
    this.cy = cy;
    this.folds = folds;
    this.links = new Map(); // cytoscape id of an edge -> the links it stands for
    this.boxes = new Map(); // extents of groups
  }

  /** Show the drawing with these groups open. */
  sync(drawing, groups, open) {
    this.drawing = drawing;
    this.groups = groups;
    this.boxes = extents(groups);
    const wanted = new Map();
    this.#nodes(open, wanted);
    this.#enlarge(wanted);
    this.#edges(open, wanted);
    this.#replace(wanted);
    this.#tune();
    this.label();
    this.size();
  }

  /** Leave out labels that would be too small to be read at this zoom; of groups all but the name. */
  size() {
    const zoom = this.cy.zoom();
    const many = this.cy.nodes().length > MANY;
    this.cy.batch(() => this.cy.elements().forEach((shown) => {
      const small = (shown.data("font") ?? 10) * zoom < LEAST_PX;
      if (small && !many && shown.is(".device, .switch")) this.#shorten(shown, zoom);
      const { nameFont = 0 } = shown.data();
      shown.toggleClass("small", small && nameFont * zoom < LEAST_PX);
      shown.toggleClass("brief", small && nameFont * zoom >= LEAST_PX);
    }));
  }

  /** The label of an element as it has room in pixels, or its number. */
  #shorten(shown, zoom) {
    const { label, width } = shown.data();
    const room = (shown.hasClass("device") ? 1.7 : 1) * width * zoom;
    const fits = (text) => text && text.length * CHARACTER * LEAST_PX <= room;
    const name = [label, /\d+$/.exec(label)?.[0]].find(fits) ?? "";
    shown.data({ name, nameFont: name && LEAST_PX / zoom });
  }

  #nodes(open, wanted) {
    for (const element of this.drawing.elements.values()) {
      const closed = closedAround(element.group, open);
      const inSight = around(closed === undefined ? element.group : parentOf(closed));
      for (const path of inSight) if (!wanted.has(groupKey(path))) this.#open(path, wanted);
      if (closed !== undefined) {
        if (!wanted.has(groupKey(closed))) this.#closed(closed, wanted);
        continue;
      }
      const [width, height] = SIZES[element.role];
      const most = { device: 10, nic: 6, switch: 12 }[element.role];
      wanted.set(elementKey(element.id), {
        group: "nodes",
        classes: element.role,
        position: { x: element.x, y: element.y },
        data: {
          label: cut(alike(element) ?? shortName(element.id, element.group), most),
          width,
          height,
          font: element.role === "nic" ? 9 : 10,
        },
      });
    }
  }

  #open(path, wanted) {
    const label = nameOf(path);
    wanted.set(groupKey(path), {
      group: "nodes",
      classes: "open",
      ...this.#box(path, { label, line: 1, depth: this.groups.get(path).depth - 100 }),
    });
  }

  /** Where the frame of an open group stands. */
  #box(path, data) {
    const { x1, y1, x2, y2 } = this.boxes.get(path);
    const [width, height] = [x2 - x1, y2 - y1];
    // The name stands at the left, where few links pass.
    const shift = Math.min(0, (10 * CHARACTER * nameOf(path).length - width) / 2 + 8);
    return {
      position: { x: (x1 + x2) / 2, y: (y1 + y2) / 2 },
      data: { ...data, width, height, shift },
    };
  }

  #closed(path, wanted) {
    const { x1, y1, x2, y2 } = this.boxes.get(path);
    const [width, height] = [x2 - x1, y2 - y1];
    const name = path.length <= LONGEST_PATH ? unfolded(path) || nameOf(path) : nameOf(path);
    const fold = isFold(path) ? this.folds.words(this.groups, path) : null;
    const contents = fold?.words ?? rolesCounted(this.groups.get(path).counts);
    const { label, font } = [`${name}\n${contents}`, `${name}\n${contents.replaceAll(", ", ",\n")}`]
      .map((text) => ({ label: text, font: fitting(text, width, height) }))
      .reduce((one, other) => (other.font > one.font ? other : one));
    wanted.set(groupKey(path), {
      group: "nodes",
      classes: fold?.fewer ? "closed fewer" : "closed",
      position: { x: (x1 + x2) / 2, y: (y1 + y2) / 2 },
      data: {
        label,
        width,
        height,
        font,
        name,
        nameFont: fitting(name, width, height),
        line: Math.max(1, font / 11),
      },
    });
  }

  /** Elements beside closed groups grow with these, as far as there is room. */
  #enlarge(wanted) {
    const shown = [...wanted.values()];
    const closed = shown.filter((node) => node.classes?.startsWith("closed"));
    if (!closed.length) return;
    const singles = shown.filter((node) => node.classes in SIZES);
    const tops = closed.map((node) => node.position.y - node.data.height / 2);
    const rows = Map.groupBy(singles, (node) => Math.round(node.position.y));
    const fonts = closed.map((node) => node.data.font).sort((one, other) => one - other);
    let most = fonts[Math.floor(fonts.length / 2)] / 12;
    for (const [y, row] of rows) {
      const xs = row.map((node) => node.position.x).sort((one, other) => one - other);
      for (let i = 1; i < xs.length; i += 1) most = Math.min(most, (0.85 * (xs[i] - xs[i - 1])) / row[0].data.width);
      for (const top of [...tops, ...rows.keys()]) {
        if (top > y) most = Math.min(most, (0.85 * (top - y)) / row[0].data.height);
      }
    }
    if (most <= 1) return;
    for (const { data } of singles) {
      data.width *= most;
      data.height *= most;
      data.font *= most;
    }
  }

  #edges(open, wanted) {
    const seenAs = (id) => {
      const closed = closedAround(this.drawing.elements.get(id).group, open);
      return closed === undefined ? elementKey(id) : groupKey(closed);
    };
    const fonts = [...wanted.values()]
      .filter((node) => node.classes?.startsWith("closed"))
      .map((node) => node.data.font);
    const scale = fonts.length ? Math.max(1, Math.min(...fonts) / 12) : 1;
    for (const node of wanted.values()) if (node.classes === "open") node.data.line = scale;
    this.links = new Map();
    for (const link of this.drawing.links.values()) {
      const ends = [seenAs(link.a), seenAs(link.b)].sort();
      if (ends[0] === ends[1]) continue;
      const single = ends.every((end) => end.startsWith("e:"));
      const key = single ? `l:${link.number}` : `b:${JSON.stringify(ends)}`;
      if (!this.links.has(key)) this.links.set(key, { ends, links: [] });
      this.links.get(key).links.push(link);
    }
    const beside = new Map();
    for (const { ends } of this.links.values()) {
      const pair = JSON.stringify(ends);
      beside.set(pair, (beside.get(pair) ?? 0) + 1);
    }
    for (const [key, { ends, links }] of this.links) {
      const count = links.reduce((sum, link) => sum + link.count, 0);
      wanted.set(key, {
        group: "edges",
        classes: beside.get(JSON.stringify(ends)) > 1 ? "parallel" : "",
        data: {
          source: ends[0],
          target: ends[1],
          label: linksLabel(links),
          font: 10 * scale,
          width: (1.1 + 0.5 * Math.log2(count)) * Math.sqrt(scale),
        },
      });
    }
  }

  /** Bring cytoscape's elements to those wanted, touching only what differs. */
  #replace(wanted) {
    const { cy } = this;
    cy.batch(() => {
      const gone = cy.collection();
      cy.elements().forEach((shown) => {
        const element = wanted.get(shown.id());
        const elsewhere = shown.isEdge() && element
          && (shown.data("source") !== element.data.source || shown.data("target") !== element.data.target);
        if (!element || elsewhere) gone.merge(shown);
      });
      gone.remove();
      const added = [];
      for (const [id, { group, classes, position, data }] of wanted) {
        const shown = cy.getElementById(id);
        if (shown.nonempty()) this.#refresh(shown, classes, position, data);
        else added.push({ group, classes, position: position && { ...position }, data: { id, ...data } });
      }
      cy.add(added.filter((element) => element.group === "nodes"));
      cy.add(added.filter((element) => element.group === "edges"));
      // A drag that begins on a frame pans, unless the group is selected.
      const frames = cy.nodes(".open").not(":selected");
      frames.panify();
      cy.nodes().not(frames).unpanify();
    });
  }

  #refresh(shown, classes, position, data) {
    for (const [name, value] of Object.entries(data)) {
      if (!["source", "target"].includes(name) && shown.data(name) !== value) shown.data(name, value);
    }
    const kinds = shown.isEdge() ? ["parallel"] : ["device", "nic", "switch", "open", "closed", "fewer"];
    for (const kind of kinds) shown.toggleClass(kind, classes.split(" ").includes(kind));
    if (position) {
      const at = shown.position();
      if (at.x !== position.x || at.y !== position.y) shown.position({ ...position });
    }
  }

  /** Small drawings are drawn finely; large ones leave their edges out while the viewport moves. */
  #tune() {
    const renderer = this.cy.renderer();
    const many = this.cy.elements().length > MANY;
    renderer.hideEdgesOnViewport = many;
    renderer.textureOnViewport = many;
    const ratio = many ? 1 : 2;
    if (renderer.forcedPixelRatio === ratio) return;
    renderer.forcedPixelRatio = ratio;
    this.cy.resize();
  }

  /** Label the edges whose label covers neither a node nor another label. */
  label() {
    const { cy } = this;
    const edges = cy.edges().not(".eh-ghost, .eh-preview");
    cy.batch(() => {
      edges.removeClass("labelled");
      if (edges.length > LABELLED_AT_MOST) return;
      const taken = cy.nodes().not(".eh-ghost, .open").map((node) => {
        const { x, y } = node.position();
        const width = node.data("width");
        const text = node.hasClass("device") ? 16 : 0;
        return [x - width / 2, y - node.data("height") / 2, width, node.data("height") + text];
      });
      edges.forEach((edge) => {
        const from = edge.source().position();
        const to = edge.target().position();
        const width = edge.data("label").length * CHARACTER * edge.data("font") + 4;
        const height = edge.data("font") * 1.4;
        const box = [(from.x + to.x - width) / 2, (from.y + to.y - height) / 2, width, height];
        if (taken.some((other) => overlap(box, other))) return;
        taken.push(box);
        edge.addClass("labelled");
      });
    });
  }

  /** Take the positions over into the drawing; says how many elements moved. */
  takePositions() {
    let moved = 0;
    this.cy.nodes(".closed").forEach((node) => {
      const path = node.id().slice(2);
      const box = this.boxes.get(path);
      const { x, y } = node.position();
      const [byX, byY] = [x - (box.x1 + box.x2) / 2, y - (box.y1 + box.y2) / 2].map(Math.round);
      if (!byX && !byY) return;
      for (const element of within(this.groups, path)) {
        element.x += byX;
        element.y += byY;
        moved += 1;
      }
    });
    this.cy.nodes(".device, .nic, .switch").forEach((node) => {
      const element = this.drawing.elements.get(node.id().slice(2));
      const { x, y } = node.position();
      if (Math.round(x) === Math.round(element.x) && Math.round(y) === Math.round(element.y)) return;
      element.x = Math.round(x);
      element.y = Math.round(y);
      moved += 1;
    });
    return moved;
  }

  /** Frames of open groups follow their members. */
  reframe() {
    this.boxes = extents(this.groups);
    this.cy.batch(() => {
      this.cy.nodes(".open").forEach((node) => {
        const { position, data } = this.#box(node.id().slice(2), {});
        this.#refresh(node, "open", position, data);
      });
    });
  }

  /** The nodes in sight that belong to a group. */
  inside(path) {
    return this.cy.nodes().filter((node) => this.#path(node).startsWith(`g:${path}/`));
  }

  /** Whether one is the other or stands within it. */
  nested(one, other) {
    const [a, b] = [one, other].map((node) => this.#path(node));
    return a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
  }

  /** "g:pod0/rack1" of a group, "g:pod0/rack1/ name" of an element in it. */
  #path(node) {
    const id = node.id();
    if (id.startsWith("g:")) return id;
    return `g:${this.drawing.elements.get(id.slice(2))?.group ?? ""}/ ${id.slice(2)}`;
  }

  /** What is selected: elements by name, groups by path, links by number. */
  selection() {
    const found = { elements: [], groups: [], links: [] };
    this.cy.$(":selected").forEach((shown) => {
      const id = shown.id();
      if (shown.isEdge()) found.links.push(...(this.links.get(id)?.links ?? []));
      else if (id.startsWith("g:")) found.groups.push(id.slice(2));
      else found.elements.push(id.slice(2));
    });
    return found;
  }

  fit() {
    const { cy } = this;
    if (cy.elements().nonempty()) cy.fit(undefined, 24);
    else cy.viewport({ zoom: 1, pan: { x: cy.width() / 2, y: cy.height() / 2 } });
    if (cy.zoom() > 1.25) {
      cy.zoom(1.25);
      cy.center();
    }
    // Text is crisp on whole pixels.
    cy.pan({ x: Math.round(cy.pan().x), y: Math.round(cy.pan().y) });
  }
}

/** The font size at which a text of several lines fills a box. */
function fitting(text, width, height) {
  const lines = text.split("\n");
  const longest = Math.max(...lines.map((line) => line.length));
  return Math.min((0.86 * width) / (CHARACTER * longest), (0.75 * height) / lines.length, 240);
}

function overlap([x, y, width, height], [otherX, otherY, otherWidth, otherHeight]) {
  return x < otherX + otherWidth && otherX < x + width
    && y < otherY + otherHeight && otherY < y + height;
}
