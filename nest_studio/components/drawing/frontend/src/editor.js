// The canvas as a whole: drawing, view and panels, and everything a person can do to them.

import cytoscape from "cytoscape";
import edgehandles from "cytoscape-edgehandles";
import { Bridge } from "./bridge.js";
import { h } from "./dom.js";
import { Folds } from "./folds.js";
import { attach } from "./gestures.js";
import { around, attachments, inSight, nameOf, openAtFirst, parentOf, tree, within } from "./groups.js";
import { Inspector } from "./inspector.js";
import { place } from "./layout.js";
import { Drawing, tiers } from "./model.js";
import { handles, palette, toolbar, zoomButtons } from "./panels.js";
import { stylesheet } from "./style.js";
import { counted, linksLabel, rolesCounted, whole } from "./text.js";
import { readTheme } from "./theme.js";
import { View, elementKey, groupKey } from "./view.js";

cytoscape.use(edgehandles);
cytoscape.warnings(false);

const OPEN_LATER = 150; // new groups appear open while no more than this is in sight
const NODE_STEP = 58;

export class Editor {
  drawing = new Drawing();
  groups = new Map();
  open = new Set();
  folds = new Folds();
  tool = "select";
  editable = true;
  name = "";
  defaults = { bandwidth_GBps: 50, latency_us: 0.6, count: 1 };
  /** Links between the devices of a new node and its switch. */
  inside = { bandwidth_GBps: 450, latency_us: 0.25, count: 1 };
  devicesPerNode = 4;
  #known = new Set();
  #fitted = false;
  #theme = "";
  #copied = null;

  constructor(host, css) {
    this.bridge = new Bridge((waiting) => this.root.toggleAttribute("data-waiting", waiting));
    this.stage = h("div", {
      class: "nd-stage", tabindex: "0", role: "application", "aria-label": "Drawing of the fabric",
    });
    this.surface = h("div", { class: "nd-surface" });
    this.stage.append(this.surface);
    this.counted = h("span", { class: "nd-counts" });
    this.said = h("span", { class: "nd-said", "aria-live": "polite" });
    this.palette = palette((tool) => this.use(tool));
    this.toolbar = toolbar(this.defaults, (name) => (name === "delete" ? this.removeSelected() : this.ask(name)));
    this.inspector = new Inspector(this);
    this.root = h("div", { class: "nd-root" }, h("style", {}, css), this.toolbar.panel,
      h("div", { class: "nd-main" }, this.palette.panel, this.stage, this.inspector.panel),
      h("div", { class: "nd-status" }, this.counted, this.said,
        zoomButtons((how) => this.zoom(how))));
    host.append(this.root);
    this.cy = cytoscape({
      container: this.surface,
      minZoom: 0.02,
      maxZoom: 4,
      boxSelectionEnabled: true,
    });
    this.root.__cy = this.cy;
    this.view = new View(this.cy, this.folds);
    this.handles = handles(this.stage, {
      onLink: (node) => this.handlesLink(node),
      onToggle: (path) => this.toggle(path),
    });
    this.detach = attach(this);
    this.resized = new ResizeObserver(() => {
      this.cy.resize();
      if (!this.#fitted) this.fit();
    });
    this.resized.observe(this.stage);
    this.use("select");
  }

  /** One run of the page: its data, and the functions to answer with. */
  update(data, port) {
    this.bridge.connect(port);
    this.#dress(data);
    // The palette comes or goes, and with it the room to show everything in.
    if (this.editable !== data.editable) this.#fitted = false;
    this.editable = data.editable;
    this.name = data.name;
    this.#allowMoving();
    this.root.toggleAttribute("data-readonly", !data.editable);
    if (this.bridge.receive(data)) this.#replace(data);
    this.refreshPanels();
  }

  #dress({ height }) {
    this.root.style.height = `${height}px`;
    const theme = readTheme(this.root);
    const text = JSON.stringify(theme);
    if (text === this.#theme) return;
    this.#theme = text;
    this.cy.style(stylesheet(theme));
  }

  #replace(data) {
    if (this.#fitted && !this.bridge.done && this.drawing.same(data)) return;
    const before = this.drawing.elements;
    // What cannot be edited and has another size is another drawing.
    const same = data.elements.some((element) => before.has(element.id))
      && (this.editable || data.elements.length === before.size);
    this.drawing.replace(data);
    if (!same) this.folds.find(this.drawing);
    this.folds.apply(this.drawing.elements);
    const relaid = data.elements.some((element) => element.x == null || element.y == null);
    place(this.drawing, this.cy.width() / this.cy.height());
    this.groups = tree(this.drawing.elements);
    if (!same) {
      this.open = this.folds.opened([...openAtFirst(this.drawing.elements, this.groups)]);
      this.#known = new Set(this.groups.keys());
    }
    this.#show();
    if (!same || relaid || this.bridge.done === "arrange") this.fit();
    if (this.bridge.done === "duplicate") this.#selectAdded(before);
  }

  /** What was not there before, whole groups as such, and in sight. */
  #selectAdded(before) {
    const earlier = tree(before);
    const added = [...this.drawing.elements.values()].filter(({ id }) => !before.has(id));
    this.select(new Set(added.map(({ id, group }) => {
      const copied = around(group).find((path) => !earlier.has(path));
      return copied === undefined ? elementKey(id) : groupKey(copied);
    })));
    const { x1, y1, x2, y2 } = this.cy.$(":selected").renderedBoundingBox();
    if (x1 < 0 || y1 < 0 || x2 > this.cy.width() || y2 > this.cy.height()) this.fit();
  }

  /** After any change of the drawing: groups, view, panels. */
  #show() {
    this.groups = tree(this.drawing.elements);
    for (const path of this.groups.keys()) {
      if (this.#known.has(path)) continue;
      const wider = new Set(this.open).add(path);
      if (inSight(this.drawing.elements, wider) <= OPEN_LATER) this.open = wider;
    }
    this.#known = new Set(this.groups.keys());
    this.handles.hide();
    this.view.sync(this.drawing, this.groups, this.open);
    this.refreshPanels();
  }

  /** A gesture is finished: show it, say it, send it. */
  #finished(message) {
    this.#show();
    this.say(message);
    this.bridge.changed(this.drawing.plain());
  }

  say(message) {
    this.said.textContent = message;
  }

  refreshPanels() {
    const selected = this.view.selection();
    const things = selected.elements.length + selected.groups.length;
    const any = things + selected.links.length;
    this.toolbar.show({ things, any });
    this.inspector.render();
    const links = [...this.drawing.links.values()];
    const parallel = links.reduce((sum, link) => sum + link.count, 0);
    this.counted.textContent = [
      rolesCounted(this.counts()) || "no elements",
      counted(links.length, "link") + (parallel > links.length ? ` (${whole(parallel)} with parallel ones)` : ""),
      ...(any ? [`${any} selected`] : []),
    ].join(", ");
    const { dataset } = this.root;
    dataset.revision = String(this.bridge.revision);
    dataset.elements = String(this.drawing.elements.size);
    dataset.links = String(links.length);
    dataset.selected = String(any);
    dataset.tool = this.tool;
  }

  counts() {
    return { device: this.drawing.count("device"), nic: this.drawing.count("nic"), switch: this.drawing.count("switch") };
  }

  /** The selection as the things themselves, for the inspector. */
  selected() {
    const { elements, groups, links } = this.view.selection();
    return {
      elements: elements.map((id) => this.drawing.elements.get(id)),
      groups: groups.filter((path) => this.groups.has(path)),
      links: links.filter((link) => this.drawing.links.has(link.number)),
    };
  }

  /** Names of the selected elements, those in selected groups included. */
  selectedIds() {
    const { elements, groups } = this.selected();
    const inside = groups.flatMap((path) => within(this.groups, path));
    return [...new Set([...elements, ...inside].map((element) => element.id))];
  }

  use(tool) {
    this.tool = this.editable ? tool : "select";
    this.palette.show(this.tool);
    this.edges[this.tool === "link" ? "enableDrawMode" : "disableDrawMode"]();
    this.#allowMoving();
    this.handles.hide();
    this.refreshPanels();
  }

  #allowMoving() {
    this.cy.autoungrabify(!this.editable || this.tool === "link");
  }

  select(ids) {
    this.cy.batch(() => {
      this.cy.elements().unselect();
      for (const id of ids) this.cy.getElementById(id).select();
    });
    this.refreshPanels();
  }

  // Changes

  placeAt({ x, y }, group) {
    const at = { x: Math.round(x), y: Math.round(y) };
    if (this.tool === "node") {
      this.#placeNode(at, group);
      return;
    }
    const id = this.drawing.freeName(this.tool);
    this.drawing.add({ id, role: this.tool, radix: 0, count: 1, group, ...at });
    if (group) this.open.add(group);
    this.#finished(`Placed ${id}`);
    this.select([elementKey(id)]);
  }

  #placeNode({ x, y }, outer) {
    const prefix = outer ? `${outer}/` : "";
    const path = prefix + this.drawing.freeName("node", (name) =>
      this.groups.has(prefix + name)
      || [...this.drawing.elements.keys()].some((id) => id.startsWith(`${name}-`)));
    const name = nameOf(path);
    const count = this.devicesPerNode;
    const hub = this.drawing.freeName(`${name}-switch`);
    this.drawing.add({ id: hub, role: "switch", radix: 0, count: 1, group: path, x, y: y - 68 });
    const columns = Math.min(8, count);
    for (let index = 0; index < count; index += 1) {
      const row = Math.floor(index / columns);
      const column = (index % columns) - (Math.min(columns, count - row * columns) - 1) / 2;
      const at = { x: Math.round(x + column * NODE_STEP), y: y + 34 + row * 78 };
      const id = this.drawing.freeName(`${name}-device`);
      this.drawing.add({ id, role: "device", radix: 0, count: 1, group: path, ...at });
      this.drawing.join(id, hub, this.inside);
      const nic = this.drawing.freeName(`${name}-nic`);
      this.drawing.add({ id: nic, role: "nic", radix: 0, count: 1, group: path, x: at.x, y: at.y - 34 });
      this.drawing.join(id, nic, { ...this.defaults, latency_us: 0, count: 1 });
    }
    this.#finished(`Placed ${name}: ${counted(count, "device")}, a NIC each, and a switch`);
    this.select([groupKey(path)]);
  }

  /** Join two things in sight; a group stands for its outermost switches, NICs or devices. */
  connect(from, to) {
    if (from === to) return;
    const ends = [from, to].map((key) => this.#ends(key));
    const joined = [];
    for (const a of ends[0]) {
      for (const b of ends[1]) if (a !== b) joined.push(this.drawing.join(a, b, this.defaults));
    }
    if (!joined.length) return;
    const [first] = joined;
    const names = `${nameOf(from.slice(2))} – ${nameOf(to.slice(2))}`;
    this.#finished(joined.length === 1
      ? `Linked ${names}, ${linksLabel([first])}`
      : `Linked ${names}: ${counted(joined.length, "link")}, ${linksLabel(joined)}`);
  }

  #ends(key) {
    if (key.startsWith("e:")) return [key.slice(2)];
    const distance = tiers(this.drawing.elements, this.drawing.links);
    return attachments(this.groups, key.slice(2), distance, this.drawing.links).map((element) => element.id);
  }

  connectPair([a, b]) {
    this.connect(elementKey(a), elementKey(b));
  }

  removeSelected() {
    if (!this.editable) return;
    const ids = this.selectedIds();
    const links = this.selected().links.map((link) => link.number);
    if (!ids.length && !links.length) return;
    this.drawing.remove(ids, links);
    this.#finished(ids.length ? `Deleted ${counted(ids.length, "element")}` : `Deleted ${counted(links.length, "link")}`);
  }

  positions() {
    return new Map([...this.drawing.elements.values()].map(({ id, x, y }) => [id, [x, y]]));
  }

  /** After a drag that began with these positions. */
  moved(start) {
    let count = 0;
    for (const { id, x, y } of this.drawing.elements.values()) {
      const [oldX, oldY] = start.get(id) ?? [x, y];
      count += x !== oldX || y !== oldY;
    }
    if (count) this.#finished(`Moved ${counted(count, "element")}`);
  }

  /** By keyboard. */
  nudge(x, y) {
    const ids = this.selectedIds();
    if (!ids.length || !this.editable) return;
    for (const id of ids) {
      const element = this.drawing.elements.get(id);
      element.x += x;
      element.y += y;
    }
    this.#finished(`Moved ${counted(ids.length, "element")}`);
  }

  setElements(ids, values) {
    for (const id of ids) Object.assign(this.drawing.elements.get(id), values);
    const keys = ids.map(elementKey);
    if (values.group) {
      for (let path = values.group; path; path = parentOf(path)) this.open.add(path);
    }
    this.#finished(`Set ${Object.keys(values)[0]} of ${counted(ids.length, "element")}`);
    this.select(keys);
  }

  setLinks(numbers, values) {
    for (const number of numbers) Object.assign(this.drawing.links.get(number), values);
    const [name] = Object.keys(values);
    this.#finished(`Set ${name.split("_")[0]} of ${counted(numbers.length, "link")}`);
  }

  checkName(text, own) {
    const name = text.trim();
    if (!name) throw new Error("A name cannot be empty.");
    if (name !== own && this.drawing.elements.has(name)) throw new Error(`There is already a ${name}.`);
    return name;
  }

  checkPath(text) {
    const path = text.trim();
    if (path.split("/").some((part) => part.trim() !== part || (!part && path))) {
      throw new Error("A group is a path such as pod0/rack1, or empty.");
    }
    return path;
  }

  checkGroupName(text, path) {
    const name = text.trim();
    const renamed = parentOf(path) ? `${parentOf(path)}/${name}` : name;
    if (!name) throw new Error("A name cannot be empty.");
    if (name.includes("/")) throw new Error("A group's name has no slash.");
    if (renamed !== path && this.groups.has(renamed)) throw new Error(`There is already a ${name}.`);
    return name;
  }

  rename(id, name) {
    if (id === name) return;
    this.drawing.rename(id, name);
    this.#finished(`Renamed ${id} to ${name}`);
    this.select([elementKey(name)]);
  }

  renameGroup(path, renamed) {
    if (path === renamed) return;
    this.drawing.renameGroup(path, renamed);
    for (const group of [...this.open]) {
      if (group === path || group.startsWith(`${path}/`)) this.open.add(renamed + group.slice(path.length));
    }
    for (const group of [...this.#known]) {
      if (group.startsWith(`${path}/`)) this.#known.add(renamed + group.slice(path.length));
    }
    this.#known.add(renamed);
    this.#finished(`Renamed ${nameOf(path)} to ${nameOf(renamed)}`);
    this.select([groupKey(renamed)]);
  }

  // What Python does

  ask(name, ids = this.selectedIds()) {
    if (!this.editable || (name === "duplicate" && !ids.length)) return;
    const groups = this.selected().groups;
    this.bridge.ask(name, ids, groups);
    this.say({ undo: "Undo", redo: "Redo", arrange: "Arranged" }[name]
      ?? `Duplicated ${counted(ids.length, "element")}`);
  }

  copy() {
    this.#copied = this.selectedIds();
    if (this.#copied.length) this.say(`Copied ${counted(this.#copied.length, "element")}`);
  }

  paste() {
    const ids = (this.#copied ?? []).filter((id) => this.drawing.elements.has(id));
    if (ids.length) this.ask("duplicate", ids);
  }

  // Looking

  toggle(path) {
    const closing = this.open.has(path);
    if (closing) this.open.delete(path);
    else this.open.add(path);
    this.#show();
    this.select([groupKey(path)]);
    this.say(`${closing ? "Closed" : "Opened"} ${nameOf(path)}`);
  }

  openAll(paths) {
    for (const path of paths) this.open.add(path);
    this.#show();
    this.say(`Opened ${counted(paths.length, "group")}`);
  }

  closeAll(paths) {
    for (const path of paths) this.open.delete(path);
    this.#show();
    this.say(`Closed ${counted(paths.length, "group")}`);
  }

  fit() {
    this.cy.resize();
    if (!this.cy.width() || !this.cy.height() || this.bridge.revision === null) return;
    this.#fitted = true;
    this.view.fit();
  }

  zoom(how) {
    if (how === "fit") {
      this.fit();
      return;
    }
    const level = this.cy.zoom() * (how === "in" ? 1.25 : 0.8);
    this.cy.zoom({ level, renderedPosition: { x: this.cy.width() / 2, y: this.cy.height() / 2 } });
  }

  destroy() {
    this.bridge.close();
    this.resized.disconnect();
    this.detach();
    this.cy.destroy();
    this.root.remove();
  }
}
