// The panel at the right: what is selected, and fields to change it.

import { h, button } from "./dom.js";
import { isFold, unfolded } from "./folds.js";
import { nameOf, parentOf } from "./groups.js";
import { counted, number, roleName, rolesCounted, total } from "./text.js";

const MIXED = "mixed";

const positive = (least, message) => (text) => {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || !least(value)) throw new Error(message);
  return value;
};

const LINK_FIELDS = {
  bandwidth_GBps: ["Bandwidth", "GB/s", positive((x) => x > 0, "Bandwidth is a number above 0.")],
  latency_us: ["Latency", "µs", positive((x) => x >= 0, "Latency is a number, 0 or above.")],
  count: ["Count", "", positive((x) => x >= 1 && Number.isInteger(x), "Count is a whole number, 1 or above.")],
};
const radix = positive((x) => x >= 0 && Number.isInteger(x), "Radix is a whole number; 0: not stated.");

export class Inspector {
  #drawn = null;

  constructor(editor) {
    this.editor = editor;
    this.panel = h("aside", { class: "nd-inspector", "aria-label": "Inspector" });
  }

  /** Draw again if anything it shows has changed; a field being typed in keeps the focus. */
  render() {
    const { editor } = this;
    const { elements, groups, links } = editor.selected();
    const seen = JSON.stringify([elements, groups, links, editor.tool, editor.editable, editor.name,
      groups.map((path) => [editor.open.has(path), editor.groups.get(path).counts]),
      elements.length + links.length + groups.length ? 0 : [editor.counts(), editor.groups.size],
      [...editor.open].filter((path) => editor.groups.has(path)).length]);
    if (seen === this.#drawn) return;
    this.#drawn = seen;
    const active = this.panel.getRootNode().activeElement;
    const focused = this.panel.contains(active) ? active.getAttribute("name") : null;
    const sections = [
      ...(editor.tool === "node" ? [this.#newNode()] : []),
      ...(elements.length ? [this.#elements(elements)] : []),
      ...groups.map((path) => this.#group(path)).slice(0, 4),
      ...(links.length ? [this.#links(links)] : []),
    ];
    this.panel.replaceChildren(...(sections.length ? sections : [this.#nothing()]));
    if (focused) this.panel.querySelector(`[name="${focused}"]`)?.focus();
  }

  #section(title, ...children) {
    return h("section", {}, h("h2", { title }, title), ...children);
  }

  /** A labelled input that commits on Enter or when left, or says why not. */
  #field({ name, label, unit, value, parse, commit, type = "text" }) {
    const mixed = value === MIXED;
    const problem = h("p", { class: "nd-problem", role: "alert", hidden: true });
    const input = h("input", {
      name,
      type: "text",
      inputmode: type === "number" ? "decimal" : undefined,
      value: mixed ? "" : value,
      placeholder: mixed ? MIXED : undefined,
      disabled: !this.editor.editable,
      spellcheck: "false",
      autocomplete: "off",
      "aria-label": unit ? `${label}, ${unit}` : label,
      onchange: () => {
        if (mixed && input.value === "") return;
        try {
          commit(parse(input.value));
          problem.hidden = true;
          input.removeAttribute("aria-invalid");
        } catch (error) {
          problem.textContent = error.message;
          problem.hidden = false;
          input.setAttribute("aria-invalid", "true");
        }
      },
      onkeydown: (event) => {
        if (event.key !== "Escape") return;
        input.value = mixed ? "" : value;
        problem.hidden = true;
        input.removeAttribute("aria-invalid");
      },
    });
    return h("div", { class: "nd-field" }, h("label", {}, h("span", {}, label), input, h("i", {}, unit)), problem);
  }

  #nothing() {
    const { editor } = this;
    const keys = [
      ["Shift-drag", "select a box"],
      ["Ctrl-click", "add to the selection"],
      ["Double click", "open or close a group"],
      ...(editor.editable ? [["Circle above", "drag it to link"]] : []),
      ["Wheel", "zoom, once clicked"],
    ];
    return this.#section(editor.name || "Drawing",
      h("p", {}, rolesCounted(editor.counts()) || "Empty: choose Device, Switch or Node, then click on the canvas."),
      h("dl", {}, ...keys.flatMap(([key, what]) => [h("dt", {}, key), h("dd", {}, what)])),
      ...this.#openAndClose([...editor.groups.keys()], "all", "all groups"));
  }

  /** Buttons that open or close several groups at once, as far as there are any. */
  #openAndClose(paths, label, title) {
    const { editor } = this;
    const open = paths.filter((path) => editor.open.has(path)).length;
    return [
      open < paths.length && button(`Open ${title}`, `Open ${title}`, () => editor.openAll(paths), `Open ${label}`),
      open > 0 && button(`Close ${title}`, `Close ${title}`, () => editor.closeAll(paths), `Close ${label}`),
    ];
  }

  #newNode() {
    const { editor } = this;
    return this.#section("New nodes", this.#field({
      name: "devices",
      label: "Devices",
      unit: "each",
      value: String(editor.devicesPerNode),
      type: "number",
      parse: positive((x) => x >= 1 && x <= 256 && Number.isInteger(x), "Devices is a whole number from 1 to 256."),
      commit: (value) => { editor.devicesPerNode = value; },
    }), this.#field({
      name: "inside",
      label: "Inside",
      unit: "GB/s",
      value: number(editor.inside.bandwidth_GBps),
      type: "number",
      parse: LINK_FIELDS.bandwidth_GBps[2],
      commit: (value) => { editor.inside.bandwidth_GBps = value; },
    }), h("p", {}, "Each is a group with a switch inside and a NIC per device, as fast as new links. Click on the canvas to place one."));
  }

  #elements(elements) {
    const { editor } = this;
    const same = (name) => (elements.every((one) => one[name] === elements[0][name]) ? elements[0][name] : MIXED);
    const ids = elements.map((element) => element.id);
    const one = elements.length === 1;
    const counts = {};
    for (const { role, count } of elements) counts[role] = (counts[role] ?? 0) + count;
    const roles = h("select", {
      name: "role",
      "aria-label": "Role",
      disabled: !editor.editable,
      onchange: () => editor.setElements(ids, { role: roles.value }),
    }, ...(same("role") === MIXED ? [h("option", { value: "", selected: true, disabled: true }, MIXED)] : []),
    ...["device", "nic", "switch"].map((role) =>
      h("option", { value: role, selected: role === same("role") }, roleName(role))));
    return this.#section(one ? elements[0].id : rolesCounted(counts),
      one && this.#field({
        name: "name",
        label: "Name",
        value: elements[0].id,
        parse: (text) => editor.checkName(text, elements[0].id),
        commit: (name) => editor.rename(elements[0].id, name),
      }),
      h("div", { class: "nd-field" }, h("label", {}, h("span", {}, "Role"), roles, h("i"))),
      this.#field({
        name: "radix",
        label: "Radix",
        unit: "ports",
        value: String(same("radix")),
        type: "number",
        parse: radix,
        commit: (value) => editor.setElements(ids, { radix: value }),
      }),
      elements.every((element) => element.role !== "device") && this.#field({
        name: "count",
        label: "Count",
        unit: "alike",
        value: String(same("count")),
        type: "number",
        parse: LINK_FIELDS.count[2],
        commit: (value) => editor.setElements(ids, { count: value }),
      }),
      this.#field({
        name: "group",
        label: "Group",
        value: unfolded(same("group")),
        parse: (text) => editor.checkPath(text),
        commit: (path) => editor.setElements(ids, { group: path }),
      }),
      elements.length === 2 && editor.editable && button(
        "Link these two", "Join the two selected elements", () => editor.connectPair(ids), "Link these two"));
  }

  #group(path) {
    const { editor } = this;
    const open = editor.open.has(path);
    const label = open ? "Close" : "Open";
    const inside = open ? [...editor.groups.keys()].filter((other) => other.startsWith(`${path}/`)) : [];
    return this.#section(path,
      isFold(path) && h("p", {}, `Alike: ${editor.folds.words(editor.groups, path).words}`),
      h("p", {}, rolesCounted(editor.groups.get(path).counts)),
      !isFold(path) && this.#field({
        name: `group ${path}`,
        label: "Name",
        value: nameOf(path),
        parse: (text) => editor.checkGroupName(text, path),
        commit: (name) => editor.renameGroup(path, parentOf(path) ? `${parentOf(path)}/${name}` : name),
      }),
      button(`${label} group`, `${label} this group (Enter)`, () => editor.toggle(path), label),
      ...this.#openAndClose(inside, "groups inside", `groups inside ${nameOf(path)}`));
  }

  #links(links) {
    const { editor } = this;
    const same = (name) => (links.every((one) => one[name] === links[0][name]) ? links[0][name] : MIXED);
    const parallel = links.reduce((sum, link) => sum + link.count, 0);
    const title = links.length === 1 ? `${links[0].a} – ${links[0].b}` : counted(links.length, "link");
    return this.#section(title,
      ...Object.entries(LINK_FIELDS).map(([name, [label, unit, parse]]) => this.#field({
        name,
        label,
        unit,
        value: same(name) === MIXED ? MIXED : number(same(name)),
        type: "number",
        parse,
        commit: (value) => editor.setLinks(links.map((link) => link.number), { [name]: value }),
      })),
      parallel > 1 && h("p", {}, `${parallel} in parallel, ${number(total(links))} GB/s together`));
  }
}
